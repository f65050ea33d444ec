//! A scripted provider.

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

/// The documents and the behavior of a scripted provider. Clones and connections share their state.
///
/// Every page, fetch and search reserves one request in the call's ledger.
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
    /// All changes in order; the index is the time.
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

/// The result of fetching a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reply {
    Body,
    Fault(Fault),
    Fetched(Fetched),
    /// The listing reports it as a fault.
    Listed(&'static str),
    /// It can be fetched, but no listing includes it.
    Unlisted,
}

/// Counts of requests.
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
    /// The start of the changes.
    mark: usize,
    /// The listing continues after this id.
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

    /// A connection to the provider.
    pub fn provider(&self) -> Box<dyn Provider> {
        Box::new(Scripted(self.clone()))
    }

    /// Sets the documents per page.
    pub fn set_page_size(&self, size: usize) {
        self.state().page_size = size.max(1);
    }

    /// Sets [`Traits::gone_after`].
    pub fn set_gone_after(&self, after: Option<Duration>) {
        self.state().traits.gone_after = after;
    }

    /// Sets whether pages include bodies.
    pub fn bring_bodies(&self, brings: bool) {
        self.state().brings_bodies = brings;
    }

    /// Makes listings repeat their first page forever.
    pub fn never_go_on(&self) {
        self.state().is_stuck = true;
    }

    /// Makes listings omit versions, which only fetches return.
    pub fn hide_versions(&self) {
        self.state().knows_versions = false;
    }

    /// Writes a document whose title is its id.
    pub fn put(&self, id: &str, text: &str) {
        self.put_as(id, id, text, Reply::Body);
    }

    /// Writes a document with a title.
    pub fn put_titled(&self, id: &str, title: &str, text: &str) {
        self.put_as(id, title, text, Reply::Body);
    }

    /// Adds a listed document whose fetch fails with this fault.
    pub fn put_failing(&self, id: &str, fault: Fault) {
        self.put_as(id, id, "", Reply::Fault(fault));
    }

    /// Adds a listed document whose fetch has this result.
    pub fn put_answering(&self, id: &str, fetched: Fetched) {
        self.put_as(id, id, "", Reply::Fetched(fetched));
    }

    /// Adds a document that pages report as a fault.
    pub fn put_unreadable(&self, id: &str, reason: &'static str) {
        self.put_as(id, id, "", Reply::Listed(reason));
    }

    /// Adds a document that listings omit silently.
    pub fn put_unlisted(&self, id: &str) {
        self.put_as(id, id, "it is there", Reply::Unlisted);
    }

    /// Makes the fetch of a document succeed with this text, under the same version.
    pub fn mend(&self, id: &str, text: &str) {
        let Ok(id) = ExternalId::new(id) else { return };
        if let Some(document) = self.state().documents.get_mut(&id) {
            document.reply = Reply::Body;
            text.clone_into(&mut document.text);
        }
    }

    /// Deletes a document.
    pub fn remove(&self, id: &str) {
        if let Ok(id) = ExternalId::new(id) {
            let mut state = self.state();
            if state.documents.remove(&id).is_some() {
                state.changes.push(id);
            }
        }
    }

    /// Makes the next requests fail with these faults.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.extend(faults);
    }

    /// Clears the scripted faults.
    pub fn forget_faults(&self) {
        self.state().faults.clear();
    }

    /// Invalidates all positions.
    pub fn lose_positions(&self) {
        self.state().epoch += 1;
    }

    /// Sets the partial result of listings; empty for complete ones.
    pub fn set_partial(&self, partial: Vec<Partial>) {
        self.state().partial = partial;
    }

    /// Blocks requests, which are counted, until [`Shelf::open`].
    pub fn close(&self) {
        self.0.is_open.send_replace(false);
    }

    /// Unblocks requests.
    pub fn open(&self) {
        self.0.is_open.send_replace(true);
    }

    /// The counts of requests.
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
        // The sender lives as long as the provider.
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
            // The first page repeats the last change before the mark, as an overlap.
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
