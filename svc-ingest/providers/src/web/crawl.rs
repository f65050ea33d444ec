//! A breadth-first crawl from a start page, within its folder and origin.

use std::borrow::Cow;

use tokio::sync::Mutex;
use url::Url;

use super::address::{self, Scope};
use super::frontier::Frontier;
use super::robots::DISALLOWED;
use super::site::{Sites, Visit, Visited};
use crate::rest::Collected;
use crate::{
    Body, Call, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Page, Partial, Position, Then, Version,
};

/// Visited pages per page of the listing, and their bytes: at most these are visited again after a crash.
const AT_ONCE: u32 = 10;
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Consecutive failures after which the site counts as down.
const MAX_SILENT: u32 = 5;

/// A crawl.
#[derive(Debug)]
pub(super) struct Crawl {
    pub(super) scope: Scope,
    pub(super) most_pages: u32,
    pub(super) most_depth: u32,
    /// The frontier after the last page of the listing.
    here: Mutex<Option<Frontier>>,
}

/// Builds one page of the listing.
struct Visits {
    frontier: Frontier,
    page: Collected,
    bytes: usize,
    silent: u32,
}

impl Crawl {
    pub(super) fn new(start: Url, most_pages: u32, most_depth: u32) -> Self {
        Self { scope: Scope::of(start), most_pages, most_depth, here: Mutex::new(None) }
    }

    /// Visits some pages.
    pub(super) async fn list(
        &self,
        sites: &Sites,
        call: &Call,
        from: Option<&Position>,
    ) -> Result<Page, Fault> {
        let mut here = self.here.lock().await;
        let frontier = match from {
            None => Frontier::of(self.scope.start().clone()),
            Some(position) => Frontier::at(position, here.as_ref())?,
        };
        let mut visits = Visits { frontier, page: Collected::default(), bytes: 0, silent: 0 };
        for number in 0..AT_ONCE {
            let Some((depth, url)) = visits.frontier.next() else { break };
            match sites.visit(call, &url, None).await {
                Ok(Visited::Page(visit)) => self.take(&mut visits, sites, call, depth, *visit).await?,
                Ok(Visited::Other(fetched)) => visits.take_other(&url, fetched)?,
                // Returns what was visited; the next page of the listing fails at the same URL.
                Err(Fault::Waiting { .. } | Fault::Budget) if number > 0 => break,
                Err(fault @ (Fault::Waiting { .. } | Fault::Budget)) => return Err(fault),
                Err(fault) => visits.take_fault(&url, fault)?,
            }
            visits.frontier.pop();
            if visits.bytes > MAX_BYTES {
                break;
            }
        }
        let Visits { frontier, page, .. } = visits;
        let then = match frontier.next() {
            Some(_) => Then::More(frontier.position()?),
            None => Then::End { next: Frontier::default().position()?, partial: left_out(&frontier) },
        };
        *here = Some(frontier);
        page.into_page(then)
    }

    /// The URL of the first page after redirects.
    ///
    /// # Errors
    /// [`Fault::Broken`] if it is outside of the crawl's scope.
    pub(super) fn first(&self, url: Url) -> Result<Url, Fault> {
        let elsewhere =
            Fault::broken("the first page leads to another site: give the address that it leads to");
        address::page(url).filter(|url| self.scope.has(url)).ok_or(elsewhere)
    }

    /// Adds a page and its links.
    async fn take(
        &self,
        visits: &mut Visits,
        sites: &Sites,
        call: &Call,
        depth: u32,
        visit: Visit,
    ) -> Result<(), Fault> {
        let Visit { body, facts, url } = visit;
        visits.silent = 0;
        let at = match visits.frontier.is_at_start() {
            true => Some(self.first(url)?),
            false => self.scope.follow(&url),
        };
        let Some(at) = at else { return Ok(()) };
        let queued = visits.frontier.next().map(|(_, url)| url);
        // The redirect target is visited on its own.
        if queued.as_ref() != Some(&at) && !visits.frontier.mark_seen(&at) {
            return Ok(());
        }
        if facts.allowed.follow && depth < self.most_depth {
            for link in &facts.links {
                let Some(url) = self.scope.follow(link) else { continue };
                if !visits.frontier.has_seen(&url) && sites.allow(call, &url).await? {
                    visits.frontier.add(depth + 1, url, self.most_pages);
                }
            }
        }
        // A duplicate under another URL: the canonical one is used.
        let named = facts.canonical.and_then(|named| self.scope.follow(&named)).filter(|named| *named != at);
        let id = match named {
            Some(named) if !visits.frontier.mark_seen(&named) => return Ok(()),
            Some(named) => named,
            None => at,
        };
        if facts.allowed.index {
            visits.bytes = visits.bytes.saturating_add(body.bytes.len());
            visits.page.take(entry(&id, body).map(Item::from));
        }
        Ok(())
    }
}

impl Visits {
    /// Handles a URL that is not a page; an error only for the first.
    fn take_other(&mut self, url: &Url, fetched: Fetched) -> Result<(), Fault> {
        self.silent = 0;
        let is_at_start = self.frontier.is_at_start();
        match fetched {
            Fetched::Gone if is_at_start => Err(Fault::Gone),
            Fetched::Unreadable(_) if is_at_start => {
                Err(Fault::broken("the robots.txt of the site does not allow its first page to be read"))
            }
            Fetched::TooLarge(bytes) => {
                let reason = format!("it is larger than what is read: {bytes} bytes or more");
                self.fault(url, reason.into());
                Ok(())
            }
            Fetched::Unreadable(why) if why != DISALLOWED => {
                self.fault(url, why);
                Ok(())
            }
            // Dead links, images and disallowed URLs are ignored.
            Fetched::Gone
            | Fetched::Same
            | Fetched::Unsupported(_)
            | Fetched::Unreadable(_)
            | Fetched::Body(_) => Ok(()),
        }
    }

    /// Records a page that could not be read.
    fn take_fault(&mut self, url: &Url, fault: Fault) -> Result<(), Fault> {
        self.silent += u32::from(fault == Fault::Unavailable);
        if self.frontier.is_at_start() || self.silent >= MAX_SILENT {
            return Err(fault);
        }
        self.frontier.unread += 1;
        self.page.take(match ExternalId::new(url.as_str()) {
            Ok(id) => Err(ItemFault::passing(id, "", fault.to_string())),
            Err(_) => Err(ItemFault::unusable_id(url.as_str())),
        });
        Ok(())
    }

    fn fault(&mut self, url: &Url, reason: Cow<'static, str>) {
        let fault = match ExternalId::new(url.as_str()) {
            Ok(id) => ItemFault::lasting(&Entry::new(id, Version::unknown(), ""), reason),
            Err(_) => ItemFault::unusable_id(url.as_str()),
        };
        self.page.take(Err(fault));
    }
}

fn entry(url: &Url, body: Body) -> Result<Entry, ItemFault> {
    let id = ExternalId::new(url.as_str()).map_err(|_| ItemFault::unusable_id(url.as_str()))?;
    let mut entry = Entry::new(id, body.version.clone(), "");
    entry.mime = Some(body.mime.clone());
    entry.size = u64::try_from(body.bytes.len()).ok();
    entry.body = Some(body);
    Ok(entry)
}

fn left_out(frontier: &Frontier) -> Vec<Partial> {
    let mut partial = Vec::new();
    if frontier.is_cut {
        partial.push(Partial::everywhere("the site has more pages than are visited of it: see maxPages"));
    }
    if frontier.unread > 0 {
        let reason = format!("pages that could not be read, nor what only they lead to: {}", frontier.unread);
        partial.push(Partial::everywhere(reason));
    }
    partial
}
