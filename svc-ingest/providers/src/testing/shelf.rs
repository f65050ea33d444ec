//! A provider that answers by a script.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Listing,
    Page, Partial, Position, Provider, Search, Then, Traits, Version,
};

const POSITION_VERSION: u16 = 1;

/// What a scripted provider holds, and how it behaves. Clones are the same shelf, and so are the providers of it.
///
/// Every list, change page, fetch and search costs one request of the call's ledger.
#[derive(Debug, Clone)]
pub struct Shelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    is_open: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    traits: Traits,
    page_size: usize,
    brings_bodies: bool,
    is_stuck: bool,
    knows_versions: bool,
    documents: BTreeMap<ExternalId, Document>,
    /// Every change in the order of time; its position is its time.
    changes: Vec<ExternalId>,
    epoch: u32,
    partial: Vec<Partial>,
    faults: VecDeque<Fault>,
    requests: Requests,
}

#[derive(Debug, Clone)]
struct Document {
    changed: usize,
    title: String,
    text: String,
    reply: Reply,
}

/// What a fetch of a document answers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reply {
    Body,
    Fault(Fault),
    Fetched(Fetched),
    /// The listing has it as a fault.
    Listed(&'static str),
    /// It can be fetched, and no listing has it.
    Unlisted,
}

/// How often a scripted provider was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Pages of listings.
    pub listed: u32,
    /// Pages of changes.
    pub changed: u32,
    /// Documents.
    pub fetched: u32,
    /// Searches.
    pub searched: u32,
}

#[derive(Serialize, Deserialize)]
struct At {
    epoch: u32,
    /// The changes begin here.
    mark: usize,
    /// The listing goes on behind this id.
    after: Option<ExternalId>,
}

impl Shelf {
    /// An empty shelf with pages of ten.
    pub fn new(listing: Listing, changes: Changes, deletions: Deletions) -> Self {
        let traits = Traits {
            listing,
            changes,
            deletions,
            gone_after: None,
            search: Search::Text,
            every: Duration::from_secs(3_600),
        };
        let state = State {
            traits,
            page_size: 10,
            brings_bodies: false,
            is_stuck: false,
            knows_versions: true,
            documents: BTreeMap::new(),
            changes: Vec::new(),
            epoch: 0,
            partial: Vec::new(),
            faults: VecDeque::new(),
            requests: Requests::default(),
        };
        Self(Arc::new(Inner { state: Mutex::new(state), is_open: watch::Sender::new(true) }))
    }

    /// A connection to it.
    pub fn provider(&self) -> Box<dyn Provider> {
        Box::new(Scripted(self.clone()))
    }

    /// Documents of a page.
    pub fn set_page_size(&self, size: usize) {
        self.state().page_size = size.max(1);
    }

    /// What a fetch that finds nothing takes to count, see [`Traits::gone_after`].
    pub fn set_gone_after(&self, after: Option<Duration>) {
        self.state().traits.gone_after = after;
    }

    /// Whether pages bring the bodies along.
    pub fn bring_bodies(&self, brings: bool) {
        self.state().brings_bodies = brings;
    }

    /// Listings tell their first page again and again.
    pub fn never_go_on(&self) {
        self.state().is_stuck = true;
    }

    /// Pages tell no versions: only a fetch does.
    pub fn hide_versions(&self) {
        self.state().knows_versions = false;
    }

    /// Writes a document; its id is its title, too.
    pub fn put(&self, id: &str, text: &str) {
        self.put_as(id, id, text, Reply::Body);
    }

    /// Writes a document with a title.
    pub fn put_titled(&self, id: &str, title: &str, text: &str) {
        self.put_as(id, title, text, Reply::Body);
    }

    /// A document that is listed, and whose fetch fails so.
    pub fn put_failing(&self, id: &str, fault: Fault) {
        self.put_as(id, id, "", Reply::Fault(fault));
    }

    /// A document that is listed, and whose fetch answers so.
    pub fn put_answering(&self, id: &str, fetched: Fetched) {
        self.put_as(id, id, "", Reply::Fetched(fetched));
    }

    /// A document that pages have among their faults.
    pub fn put_unreadable(&self, id: &str, reason: &'static str) {
        self.put_as(id, id, "", Reply::Listed(reason));
    }

    /// A document that is there, and that listings leave out without saying so.
    pub fn put_unlisted(&self, id: &str) {
        self.put_as(id, id, "it is there", Reply::Unlisted);
    }

    /// A document whose fetch works from now on, with this text; its version stays.
    pub fn mend(&self, id: &str, text: &str) {
        let Ok(id) = ExternalId::new(id) else { return };
        if let Some(document) = self.state().documents.get_mut(&id) {
            document.reply = Reply::Body;
            text.clone_into(&mut document.text);
        }
    }

    /// Takes a document away.
    pub fn remove(&self, id: &str) {
        if let Ok(id) = ExternalId::new(id) {
            let mut state = self.state();
            if state.documents.remove(&id).is_some() {
                state.changes.push(id);
            }
        }
    }

    /// The next requests fail so, in this order.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.extend(faults);
    }

    /// No further request fails.
    pub fn forget_faults(&self) {
        self.state().faults.clear();
    }

    /// Positions that were given out are lost.
    pub fn lose_positions(&self) {
        self.state().epoch += 1;
    }

    /// Listings end with this; empty: they are complete.
    pub fn set_partial(&self, partial: Vec<Partial>) {
        self.state().partial = partial;
    }

    /// Requests wait (and are counted) until [`Shelf::open`].
    pub fn close(&self) {
        self.0.is_open.send_replace(false);
    }

    /// Requests are answered.
    pub fn open(&self) {
        self.0.is_open.send_replace(true);
    }

    /// How often it was asked.
    pub fn requests(&self) -> Requests {
        self.state().requests
    }

    fn put_as(&self, id: &str, title: &str, text: &str, reply: Reply) {
        let Ok(id) = ExternalId::new(id) else { return };
        let mut state = self.state();
        let (changed, title, text) = (state.changes.len(), title.to_owned(), text.to_owned());
        state.changes.push(id.clone());
        state.documents.insert(id, Document { changed, title, text, reply });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, call: &Call, count: impl FnOnce(&mut Requests)) -> Result<(), Fault> {
        call.reserve().await?;
        count(&mut self.state().requests);
        let mut is_open = self.0.is_open.subscribe();
        // The sender lives as long as the shelf.
        let _ = is_open.wait_for(|open| *open).await;
        let fault = self.state().faults.pop_front();
        match fault {
            Some(Fault::Waiting { until }) => Err(call.hold_for(until.since(call.now())).await),
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

impl State {
    fn read(&self, from: &Position) -> Result<At, Fault> {
        let at: At = from.read(POSITION_VERSION)?;
        if at.epoch == self.epoch { Ok(at) } else { Err(Fault::PositionLost) }
    }

    fn position(&self, mark: usize, after: Option<&ExternalId>) -> Result<Position, Fault> {
        Position::new(POSITION_VERSION, &At { epoch: self.epoch, mark, after: after.cloned() })
    }

    fn page(&self, ids: &[ExternalId], then: Then) -> Result<Page, Fault> {
        let (mut items, mut faults) = (Vec::new(), Vec::new());
        for id in ids {
            match self.documents.get(id) {
                None => items.push(Item::Gone(id.clone())),
                Some(document) => match &document.reply {
                    Reply::Listed(reason) => {
                        faults.push(ItemFault::lasting(&self.entry(id, document), *reason))
                    }
                    Reply::Unlisted => {}
                    Reply::Body | Reply::Fault(_) | Reply::Fetched(_) => {
                        items.push(self.entry(id, document).into());
                    }
                },
            }
        }
        Page::new(items, faults, then)
    }

    fn entry(&self, id: &ExternalId, document: &Document) -> Entry {
        let version = if self.knows_versions { document.version() } else { Version::unknown() };
        let mut entry = Entry::new(id.clone(), version, &document.title);
        entry.mime = Some("text/markdown".to_owned());
        entry.size = u64::try_from(document.text.len()).ok();
        entry.path = Some(id.as_str().to_owned());
        entry.url = Some(format!("https://shelf.example/{id}"));
        entry.updated_at = Some(document.updated_at());
        let brings = self.brings_bodies && document.reply == Reply::Body;
        entry.body = brings.then(|| document.body());
        entry
    }
}

impl Document {
    fn version(&self) -> Version {
        Version::new(self.changed.to_string())
    }

    fn updated_at(&self) -> Timestamp {
        Timestamp::from_seconds(i64::try_from(self.changed).unwrap_or(i64::MAX))
    }

    fn body(&self) -> Body {
        Body::new(self.text.clone().into_bytes(), "text/markdown", self.version())
    }
}

#[derive(Debug)]
struct Scripted(Shelf);

#[async_trait]
impl Provider for Scripted {
    fn traits(&self) -> Traits {
        self.0.state().traits
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        self.0.ask(call, |_| {}).await?;
        Ok(Account::new(Some("reader@shelf.example"), "the shelf can be read"))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        self.0.ask(call, |requests| requests.listed += 1).await?;
        let state = self.0.state();
        let at = match from {
            Some(from) => state.read(from)?,
            None => At { epoch: state.epoch, mark: state.changes.len(), after: None },
        };
        let behind = state.documents.keys().filter(|id| at.after.as_ref().is_none_or(|after| *id > after));
        let mut ids: Vec<ExternalId> = behind.take(state.page_size + 1).cloned().collect();
        let then = if state.is_stuck {
            ids.truncate(state.page_size);
            Then::More(state.position(at.mark, None)?)
        } else if ids.len() > state.page_size {
            ids.truncate(state.page_size);
            Then::More(state.position(at.mark, ids.last())?)
        } else {
            Then::End { next: state.position(at.mark, None)?, partial: state.partial.clone() }
        };
        state.page(&ids, then)
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        self.0.ask(call, |requests| requests.changed += 1).await?;
        let state = self.0.state();
        let at = state.read(from)?;
        let (begin, tells_gone) = match state.traits.changes {
            Changes::None => return Err(Fault::Refused),
            Changes::Exact => (at.mark, true),
            // The last change before the mark is told again, unless this page goes on.
            Changes::HighWater { .. } => (at.mark.saturating_sub(usize::from(at.after.is_none())), false),
        };
        let end = state.changes.len().min(begin.saturating_add(state.page_size));
        let changed = state.changes.get(begin..end).unwrap_or_default();
        let mut ids: Vec<ExternalId> =
            changed.iter().filter(|id| tells_gone || state.documents.contains_key(*id)).cloned().collect();
        ids.sort();
        ids.dedup();
        let then = match changed.last() {
            Some(last) if end < state.changes.len() => Then::More(state.position(end, Some(last))?),
            _ => Then::End { next: state.position(end, None)?, partial: Vec::new() },
        };
        state.page(&ids, then)
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        self.0.ask(call, |requests| requests.fetched += 1).await?;
        let state = self.0.state();
        let Some(document) = state.documents.get(id) else { return Ok(Fetched::Gone) };
        match &document.reply {
            Reply::Fault(fault) => Err(fault.clone()),
            Reply::Fetched(fetched) => Ok(fetched.clone()),
            Reply::Listed(_) => Err(Fault::broken("it cannot be read")),
            Reply::Body | Reply::Unlisted if known == Some(&document.version()) => Ok(Fetched::Same),
            Reply::Body | Reply::Unlisted => Ok(Fetched::Body(document.body())),
        }
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.0.ask(call, |requests| requests.searched += 1).await?;
        let state = self.0.state();
        let found = state.documents.iter();
        let found =
            found.filter(|(_, document)| document.text.contains(query) || document.title.contains(query));
        Ok(found.take(limit).map(|(id, document)| state.entry(id, document)).collect())
    }
}
