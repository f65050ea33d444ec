//! Reads all pages of a provider.

use std::collections::{BTreeMap, BTreeSet};

use crate::rest::fake::WORDS;
use crate::{
    Call, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Page, Partial, Position, Provider, Then,
};

/// Bounds endless listings.
const MAX_PAGES: usize = 10_000;

/// All pages of a listing or of changes.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) entries: BTreeMap<ExternalId, Entry>,
    /// Titles by id.
    pub(crate) present: BTreeMap<String, String>,
    pub(crate) gone: BTreeSet<String>,
    pub(crate) faults: Vec<ItemFault>,
    pub(crate) partial: Vec<Partial>,
    pub(crate) next: Option<Position>,
    pub(crate) pages: usize,
}

impl Read {
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.present.keys().map(String::as_str).collect()
    }

    /// Adds a page; returns the next position.
    fn take(&mut self, page: Page) -> Option<Position> {
        self.pages += 1;
        assert!(self.pages < MAX_PAGES, "it does not end");
        for item in page.items {
            match item {
                Item::Present(entry) => {
                    self.present.insert(entry.id.to_string(), entry.title.clone());
                    self.entries.insert(entry.id.clone(), *entry);
                }
                Item::Gone(id) => drop(self.gone.insert(id.to_string())),
            }
        }
        for fault in page.faults {
            assert!(!fault.reason.contains(WORDS) && !fault.reason.is_empty());
            self.faults.push(fault);
        }
        match page.then {
            Then::More(position) => Some(position),
            Then::End { next, partial } => {
                (self.next, self.partial) = (Some(next), partial);
                None
            }
        }
    }
}

/// Reads all pages; each position is serialized and parsed, as if another process continued.
pub(crate) async fn read(
    call: &Call,
    connect: &(dyn Fn() -> Box<dyn Provider> + Sync),
    changes_from: Option<&Position>,
) -> Result<(Read, Position), Fault> {
    let mut read = Read::default();
    let mut at: Option<Position> = changes_from.cloned();
    loop {
        let provider = connect();
        let page = match (&at, changes_from) {
            (Some(at), Some(_)) => provider.changes(call, at).await?,
            (at, _) => provider.list(call, at.as_ref()).await?,
        };
        match read.take(page) {
            Some(next) => at = Some(Position::try_from(next.as_str().to_owned()).unwrap()),
            None => {
                let next = read.next.clone().unwrap();
                return Ok((read, next));
            }
        }
    }
}

/// The whole listing, over one connection.
pub(crate) async fn listed(provider: &dyn Provider, call: &Call) -> Read {
    let (mut read, mut from) = (Read::default(), None);
    loop {
        from = read.take(provider.list(call, from.as_ref()).await.unwrap());
        if from.is_none() {
            return read;
        }
    }
}

/// All changes since a position, over one connection.
pub(crate) async fn changed(provider: &dyn Provider, call: &Call, since: &Position) -> Read {
    let (mut read, mut from) = (Read::default(), since.clone());
    loop {
        match read.take(provider.changes(call, &from).await.unwrap()) {
            Some(position) => from = position,
            None => return read,
        }
    }
}

/// The text of a document; `None` if it does not exist.
pub(crate) async fn text(call: &Call, provider: &dyn Provider, id: &str) -> Option<String> {
    match provider.fetch(call, &ExternalId::new(id).unwrap(), None).await {
        Ok(Fetched::Body(body)) => Some(String::from_utf8_lossy(&body.bytes).into_owned()),
        Ok(Fetched::Gone) => None,
        other => panic!("{id}: {other:?}"),
    }
}
