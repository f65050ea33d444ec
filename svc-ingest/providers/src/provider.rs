//! What a provider can do.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Call, Entry, ExternalId, Fault, Fetched, Page, Position, Version};

/// One connection to one provider.
///
/// A run makes one and keeps it while it lasts: a repository is fetched once for each. What it needs to go on after a
/// crash stands in the position. A run makes one call at a time on it; a question fetches a few documents at once. Dropping
/// a call's future cancels it.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync {
    /// What can be expected of it.
    fn traits(&self) -> Traits;

    /// Whether the settings and credentials work, and whose they are. At most a few requests.
    ///
    /// # Errors
    /// What stands in the way.
    async fn check(&self, call: &Call) -> Result<Account, Fault>;

    /// One page of everything that there is; `None` begins. The position for [`Provider::changes`] is taken before the
    /// first page is read, so that nothing that happens meanwhile is missed.
    ///
    /// # Errors
    /// [`Fault::PositionLost`]: the listing must begin again. Others: this page may be asked for again.
    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault>;

    /// One page of what changed since that end of a listing or of earlier changes. Only where
    /// [`Traits::changes`] is not [`Changes::None`]; elsewhere it is refused.
    ///
    /// # Errors
    /// [`Fault::PositionLost`]: a full listing is due. Others: this page may be asked for again.
    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        let _ = (call, from);
        Err(Fault::Refused)
    }

    /// One document; `known` is the version that the caller has, to be told when it is still that one.
    ///
    /// # Errors
    /// What stands in the way. That it is not there, or cannot be read, is an answer.
    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault>;

    /// The best matches of the provider's own search, best first. Only where [`Traits::search`] is not
    /// [`Search::None`]; elsewhere it is refused.
    ///
    /// # Errors
    /// What stands in the way.
    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        let _ = (call, query, limit);
        Err(Fault::Refused)
    }
}

/// What can be expected of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// What a listing that ended proves.
    pub listing: Listing,
    /// How changes are told.
    pub changes: Changes,
    /// How a deletion becomes known.
    pub deletions: Deletions,
    /// [`Fetched::Gone`] counts only when another run finds the same so much later: hosts of pages have bad days.
    pub gone_after: Option<Duration>,
    /// What the provider's own search finds.
    pub search: Search,
    /// How often a run is due when nobody says otherwise.
    pub every: Duration,
}

/// What a listing that ended without [`crate::Partial`] proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// What was not in it is not there.
    Exhaustive,
    /// What was not in it may be there all the same.
    BestEffort,
}

/// How changes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Not at all: every run lists.
    None,
    /// All of them, deletions too.
    Exact,
    /// What was written since a moment, with that much overlap; deletions not always.
    HighWater {
        /// How far before the mark the changes begin.
        overlap: Duration,
    },
}

/// How a deletion becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletions {
    /// The changes tell it.
    FromChanges,
    /// A complete listing no longer has it.
    FromListing,
    /// Only by asking for it: absence proves nothing.
    ByProbe,
}

/// What a provider's own search finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// There is none.
    None,
    /// Titles.
    Titles,
    /// Words of the text.
    Text,
    /// Meaning.
    Semantic,
}

/// What a check found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Whose credentials they are, as the provider says it: data, shown as such. [`Account::new`] bounds it.
    pub name: Option<String>,
    /// What was found, in our own words.
    pub message: Cow<'static, str>,
}

impl Account {
    const MOST_NAME_CHARS: usize = 200;

    /// An account; of the name control characters go, and what is beyond 200 characters.
    pub fn new(name: Option<&str>, message: impl Into<Cow<'static, str>>) -> Self {
        let name = name.map(|name| crate::item::one_line(name, Self::MOST_NAME_CHARS));
        Self { name: name.filter(|name| !name.is_empty()), message: message.into() }
    }
}
