//! Web pages: a list of URLs, those in a sitemap or feed, or those found by a crawl.
//!
//! There is no change feed: every run requests every page, with a conditional request where the host supports it, and compares hashes. A
//! page counts as deleted after it was missing twice, an hour apart. `robots.txt` and robots directives in pages are honored, and requests
//! to a host are sequential with a delay.

mod address;
mod charset;
mod crawl;
mod feed;
mod frontier;
mod listing;
mod page;
mod robots;
mod site;
mod sitemap;
mod version;

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_proto::domain::SourceMode;
use url::Url;

use self::crawl::Crawl;
use self::feed::Feed;
use self::listing::{Listed, Listing as Pages};
use self::robots::NO_INDEX;
use self::site::{Sites, Visit, Visited};
use self::sitemap::{MAX_URLS, Sitemap};
use crate::connect::Draft;
use crate::{
    Account, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Listing, Page, Position, Provider,
    Search, Then, Traits, Version,
};

/// The default first.
pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const SHAPE: u16 = 1;
/// A missing page counts as deleted if it is still missing this much later: hosts have outages.
const GONE_AFTER: Duration = Duration::from_secs(60 * 60);
const EVERY_HOUR: Duration = Duration::from_secs(60 * 60);
const EVERY_DAY: Duration = Duration::from_secs(24 * 60 * 60);

const USUAL_PAGES: u32 = 1_000;
const USUAL_DEPTH: u32 = 10;
const MAX_DEPTH: u32 = 100;

/// The kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Sitemap,
    Feed,
    Crawl,
}

const KINDS: [&str; 4] = ["page", "sitemap", "feed", "crawl"];

impl FromStr for Kind {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "page" => Ok(Self::Page),
            "sitemap" => Ok(Self::Sitemap),
            "feed" => Ok(Self::Feed),
            "crawl" => Ok(Self::Crawl),
            _ => Err(()),
        }
    }
}

/// The origin of the list of pages.
#[derive(Debug)]
enum Origin {
    Pages(Vec<Listed>),
    Sitemap(Sitemap),
    Feed(Url),
    Crawl(Crawl),
}

/// A connection to a set of pages.
#[derive(Debug)]
struct Web {
    origin: Origin,
    sites: Sites,
    mode: SourceMode,
}

/// Parses the settings `url`, `urls`, `kind`, `maxPages` and `maxDepth`.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let (settings, guard) = (&mut draft.settings, draft.reach.guard());
    let kind =
        settings.required_choice::<Kind>("kind", &KINDS, "say what to read: page, sitemap, feed or crawl");
    let has_list = settings.value("urls").is_some();
    let more = settings.addresses("urls", guard);
    let url = match has_list {
        true => settings.address("url", guard),
        false => settings.required_address("url", "give the address to begin at", guard),
    };
    if has_list && kind.is_some_and(|kind| kind != Kind::Page) {
        settings.refuse("urls", "invalid_value", "is for the kind `page`; others begin at one `url`");
    }
    let most_urls = u32::try_from(MAX_URLS).unwrap_or(u32::MAX);
    let most_pages = settings.number("maxPages", 1..=most_urls).unwrap_or(USUAL_PAGES);
    let most_depth = settings.number("maxDepth", 0..=MAX_DEPTH).unwrap_or(USUAL_DEPTH);
    let kind = kind?;
    if kind == Kind::Crawl && draft.mode != SourceMode::Indexed {
        let message = "`crawl` finds pages by reading them: use the mode `indexed`, or a sitemap or feed";
        draft.settings.refuse("kind", "invalid_value", message);
    }
    let origin = match kind {
        Kind::Page => Origin::Pages(pages(url.into_iter().chain(more))),
        Kind::Sitemap => Origin::Sitemap(Sitemap::new(url?, most_pages)),
        Kind::Feed => Origin::Feed(url?),
        Kind::Crawl => Origin::Crawl(Crawl::new(address::page(url?)?, most_pages, most_depth)),
    };
    Some(Box::new(Web { origin, sites: Sites::default(), mode: draft.mode }))
}

/// The pages without duplicates, in the order of the settings.
fn pages(urls: impl Iterator<Item = Url>) -> Vec<Listed> {
    let mut met = HashSet::new();
    let listed = urls.filter_map(address::page).filter(|url| met.insert(url.clone()));
    listed.map(|url| Listed { url, title: String::new(), updated_at: None }).collect()
}

impl Web {
    const fn listing(&self) -> Pages {
        Pages { reads_pages: matches!(self.mode, SourceMode::Indexed) }
    }

    /// Whether a page may belong to this source. Feeds may link to any host.
    async fn may_have(&self, call: &Call, url: &Url) -> Result<bool, Fault> {
        Ok(match &self.origin {
            Origin::Pages(pages) => pages.iter().any(|page| page.url == *url),
            Origin::Sitemap(sitemap) => address::is_same_site(&sitemap.url, url),
            Origin::Crawl(crawl) => crawl.scope.has(url),
            Origin::Feed(feed) if address::is_same_site(feed, url) || self.mode == SourceMode::Indexed => {
                true
            }
            // Otherwise, callers could request any URL.
            Origin::Feed(feed) => {
                let feed = Feed::get(&self.sites, call, feed).await?;
                feed.pages.iter().any(|page| page.url == *url)
            }
        })
    }

    /// All pages of a list that is one document.
    async fn listed(&self, call: &Call) -> Result<Arc<Vec<Listed>>, Fault> {
        Ok(match &self.origin {
            Origin::Pages(pages) => Arc::new(pages.clone()),
            Origin::Sitemap(sitemap) => sitemap.first(&self.sites, call).await?,
            Origin::Feed(feed) => Arc::new(Feed::get(&self.sites, call, feed).await?.pages),
            Origin::Crawl(_) => return Err(Fault::Refused),
        })
    }

    /// Visits the first page, which must be readable.
    async fn visit_first(&self, call: &Call, url: &Url) -> Result<Visit, Fault> {
        match self.sites.visit(call, url, None).await? {
            Visited::Page(visit) => Ok(*visit),
            Visited::Other(Fetched::Gone) => Err(Fault::Gone),
            Visited::Other(Fetched::TooLarge(bytes)) => Err(Fault::TooLarge(bytes)),
            Visited::Other(Fetched::Unreadable(why)) => Err(Fault::Broken(why)),
            Visited::Other(Fetched::Unsupported(_) | Fetched::Same | Fetched::Body(_)) => {
                Err(Fault::broken("what is at the address has no text that could be read"))
            }
        }
    }
}

#[async_trait]
impl Provider for Web {
    fn traits(&self) -> Traits {
        let (listing, deletions, every) = match &self.origin {
            Origin::Pages(_) => (Listing::Exhaustive, Deletions::FromListing, EVERY_DAY),
            Origin::Sitemap(_) => (Listing::Exhaustive, Deletions::FromListing, EVERY_DAY),
            // A page that left a feed, or is no longer linked, may still exist.
            Origin::Feed(_) => (Listing::BestEffort, Deletions::ByProbe, EVERY_HOUR),
            Origin::Crawl(_) => (Listing::BestEffort, Deletions::ByProbe, EVERY_DAY),
        };
        let search = if self.mode == SourceMode::Live { Search::Titles } else { Search::None };
        Traits { listing, changes: Changes::None, deletions, gone_after: Some(GONE_AFTER), search, every }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        let message = match &self.origin {
            Origin::Crawl(crawl) => {
                crawl.first(self.visit_first(call, crawl.scope.start()).await?.url)?;
                "The first page can be read.".to_owned()
            }
            Origin::Pages(pages) => {
                let first = pages.first().ok_or(Fault::Refused)?;
                if !self.visit_first(call, &first.url).await?.facts.allowed.index {
                    return Err(Fault::broken(NO_INDEX));
                }
                "The page can be read.".to_owned()
            }
            Origin::Sitemap(_) => {
                let count = self.listed(call).await?.len();
                format!("The sitemap can be read; pages in its first file: {count}.")
            }
            Origin::Feed(_) => {
                format!("The feed can be read; pages in it: {}.", self.listed(call).await?.len())
            }
        };
        Ok(Account::new(None, message))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let feed = match &self.origin {
            Origin::Sitemap(sitemap) => return sitemap.list(&self.sites, call, self.listing(), from).await,
            Origin::Crawl(crawl) => return crawl.list(&self.sites, call, from).await,
            Origin::Pages(pages) => Feed { pages: pages.clone(), faults: Vec::new() },
            Origin::Feed(url) => Feed::get(&self.sites, call, url).await?,
        };
        if let Some(from) = from {
            from.read::<()>(SHAPE)?;
        }
        let then = Then::End { next: Position::new(SHAPE, &())?, partial: Vec::new() };
        let mut page = self.listing().page(feed.pages.iter(), then)?;
        page.faults.extend(feed.faults);
        Ok(page)
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        let Some(url) = address::of_id(id) else { return Ok(Fetched::Gone) };
        if !self.may_have(call, &url).await? {
            return Ok(Fetched::Gone);
        }
        Ok(match self.sites.visit(call, &url, known).await? {
            Visited::Page(visit) if !visit.facts.allowed.index => Fetched::Unreadable(NO_INDEX.into()),
            Visited::Page(visit) if known.is_some_and(|known| version::is_of(known, &visit.body.bytes)) => {
                Fetched::Same
            }
            Visited::Page(visit) => Fetched::Body(visit.body),
            Visited::Other(fetched) => fetched,
        })
    }

    /// Sites have no search API, so this ranks the listed pages by the words of the query in their titles and URLs.
    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        if self.mode != SourceMode::Live {
            return Err(Fault::Refused);
        }
        let listed = self.listed(call).await?;
        let words: Vec<String> = words(query).collect();
        let is_choice = matches!(self.origin, Origin::Pages(_));
        let mut found: Vec<(usize, &Listed)> =
            listed.iter().map(|page| (score(page, &words), page)).collect();
        // Pages that were listed by hand are few, and are all returned.
        found.retain(|(score, _)| is_choice || *score > 0);
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let entries = found.into_iter().filter_map(|(_, page)| self.listing().entry(page).ok());
        Ok(entries.take(limit).collect())
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

fn score(page: &Listed, wanted: &[String]) -> usize {
    let said: HashSet<String> = words(&page.title).chain(words(page.url.path())).collect();
    wanted.iter().filter(|word| said.contains(*word)).count()
}

#[cfg(test)]
mod tests;
