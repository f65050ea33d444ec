//! The interface of providers.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Call, Entry, ExternalId, Fault, Fetched, Page, Position, Version};

/// One connection to one provider.
///
/// A run creates one and uses it to its end, so that a repository is fetched once per run. The state to resume after a crash is in the
/// position. A run makes one call at a time; a question fetches a few documents concurrently. Dropping the future of a call cancels it.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync {
    /// The properties of this connection.
    fn traits(&self) -> Traits;

    /// Checks the settings and credentials, and returns their account. Makes only a few requests.
    ///
    /// # Errors
    /// The fault of the request.
    async fn check(&self, call: &Call) -> Result<Account, Fault>;

    /// A page of all documents, from the start for `None`. The position for [`Provider::changes`] is taken before the first page, so that
    /// no change during the listing is missed.
    ///
    /// # Errors
    /// [`Fault::PositionLost`]: the listing must start again. After others, this page can be retried.
    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault>;

    /// A page of the changes since the end of a listing or of earlier changes. Refused if [`Traits::changes`] is [`Changes::None`].
    ///
    /// # Errors
    /// [`Fault::PositionLost`]: a full listing is needed. After others, this page can be retried.
    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        let _ = (call, from);
        Err(Fault::Refused)
    }

    /// Fetches one document, unless it still has the version `known`.
    ///
    /// # Errors
    /// The fault of the request. A document that does not exist or cannot be read is a result, not an error.
    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault>;

    /// The top matches of the provider's own search, best first. Refused if [`Traits::search`] is [`Search::None`].
    ///
    /// # Errors
    /// The fault of the request.
    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        let _ = (call, query, limit);
        Err(Fault::Refused)
    }
}

/// The properties of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// What a finished listing proves.
    pub listing: Listing,
    /// How changes are reported.
    pub changes: Changes,
    /// How deletions are detected.
    pub deletions: Deletions,
    /// [`Fetched::Gone`] must be confirmed by a run this much later: web hosts have outages.
    pub gone_after: Option<Duration>,
    /// What the provider's own search finds.
    pub search: Search,
    /// The default interval of runs.
    pub every: Duration,
}

/// What a finished listing without [`crate::Partial`] proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Documents that are not in it do not exist.
    Exhaustive,
    /// Documents that are not in it may exist all the same.
    BestEffort,
}

/// How changes are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Not at all: every run lists.
    None,
    /// All changes, including deletions.
    Exact,
    /// Writes since a high-water mark, with an overlap; some deletions are missing.
    HighWater {
        /// How far before the mark the changes begin.
        overlap: Duration,
    },
}

/// How deletions are detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletions {
    /// Changes include them.
    FromChanges,
    /// A complete listing lacks them.
    FromListing,
    /// Only by probing each document: absence proves nothing.
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

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name of the account, from the provider: untrusted. [`Account::new`] normalizes it.
    pub name: Option<String>,
    /// The result for people; never text of the provider.
    pub message: Cow<'static, str>,
}

impl Account {
    const MAX_NAME_CHARS: usize = 200;

    /// An account. Removes control characters from the name, and truncates it to 200 characters.
    pub fn new(name: Option<&str>, message: impl Into<Cow<'static, str>>) -> Self {
        let name = name.map(|name| crate::item::one_line(name, Self::MAX_NAME_CHARS));
        Self { name: name.filter(|name| !name.is_empty()), message: message.into() }
    }
}
