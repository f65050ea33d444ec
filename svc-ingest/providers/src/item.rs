//! What providers return: documents, pages of them, and bodies.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Fault, Position};

/// Characters of a title; longer ones are truncated.
const MAX_TITLE_CHARS: usize = 500;

/// A provider's own id of a document: 1 to 2 048 bytes without NUL, so that it fits into a key of every store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExternalId(String);

/// An invalid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to 2048 bytes and no NUL character")]
pub struct InvalidExternalId;

impl ExternalId {
    /// Bytes of an id.
    pub const MAX_BYTES: usize = 2_048;

    /// Validates an id.
    ///
    /// # Errors
    /// When it is empty, too long, or contains NUL.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidExternalId> {
        let text = text.into();
        let is_valid = !text.is_empty() && text.len() <= Self::MAX_BYTES && !text.contains('\0');
        if is_valid { Ok(Self(text)) } else { Err(InvalidExternalId) }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for ExternalId {
    type Error = InvalidExternalId;

    fn try_from(text: String) -> Result<Self, InvalidExternalId> {
        Self::new(text)
    }
}

impl From<ExternalId> for String {
    fn from(id: ExternalId) -> Self {
        id.0
    }
}

/// The version of a document: a hash, a revision or a time, only compared for equality. At most 128 bytes; a longer one is replaced by its
/// hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Version(String);

impl Version {
    const MAX_BYTES: usize = 128;

    /// A version.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let fits = text.len() <= Self::MAX_BYTES && !text.contains('\0');
        Self(if fits { text } else { blake3::hash(text.as_bytes()).to_string() })
    }

    /// For listings without versions: the document has to be fetched each time, and its stored version stays.
    pub const fn unknown() -> Self {
        Self(String::new())
    }

    /// Whether it can be compared.
    pub const fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// The hash of the content, for documents without another version.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_string())
    }

    /// The version.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Version {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

/// A document in a listing or a search result.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The provider's id.
    pub id: ExternalId,
    /// Its version.
    pub version: Version,
    /// One line, at most 500 characters, never empty.
    pub title: String,
    /// The media type, if it is known without the body.
    pub mime: Option<String>,
    /// The size in bytes, if it is known.
    pub size: Option<u64>,
    /// The path in the source, separated by `/`. Absent if documents have no path of their own.
    pub path: Option<String>,
    /// The provider's URL of the document, for citations.
    pub url: Option<String>,
    /// The last modification according to the provider.
    pub updated_at: Option<Timestamp>,
    /// The body, if the listing includes it at no extra cost, which saves a fetch.
    pub body: Option<Body>,
}

impl Entry {
    /// An entry with only these fields. The title is normalized to one line; an empty one is replaced by the end of the id.
    pub fn new(id: ExternalId, version: Version, title: &str) -> Self {
        let mut title = one_line(title, MAX_TITLE_CHARS);
        if title.is_empty() {
            title = title_of(&id);
        }
        let (mime, size, path, url, updated_at, body) = (None, None, None, None, None, None);
        Self { id, version, title, mime, size, path, url, updated_at, body }
    }

    /// Whether the title is only the end of the id, so that a better one should be preferred.
    pub fn is_nameless(&self) -> bool {
        self.title == title_of(&self.id)
    }
}

/// The title of a document of which only the id is known.
fn title_of(id: &ExternalId) -> String {
    let end = id.as_str().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let title = one_line(if end.is_empty() { id.as_str() } else { end }, MAX_TITLE_CHARS);
    if title.is_empty() { "untitled".to_owned() } else { title }
}

/// Normalizes untrusted text to one line: collapses white space, removes control characters, and truncates.
pub(crate) fn one_line(text: &str, most_chars: usize) -> String {
    let mut line = String::new();
    // Stops early, because the text may be megabytes long.
    let words = text.split_whitespace().take(most_chars);
    for (position, word) in words.enumerate() {
        if position > 0 {
            line.push(' ');
        }
        line.extend(word.chars().take(most_chars).filter(|letter| !letter.is_control()));
        if line.len() >= most_chars.saturating_mul(4) {
            break;
        }
    }
    line.chars().take(most_chars).collect::<String>().trim().to_owned()
}

/// An item of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// It exists.
    Present(Box<Entry>),
    /// It was deleted, or access to it was lost, according to the provider.
    Gone(ExternalId),
}

impl From<Entry> for Item {
    fn from(entry: Entry) -> Self {
        Self::Present(Box::new(entry))
    }
}

/// A document that exists and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFault {
    /// Its id, unless that is what is wrong with it.
    pub id: Option<ExternalId>,
    /// Its version, where it is known.
    pub version: Option<Version>,
    /// Its title.
    pub title: String,
    /// The message for people; never text of the provider.
    pub reason: Cow<'static, str>,
    /// Whether it lasts until the document changes; otherwise a retry may succeed.
    pub is_lasting: bool,
}

impl ItemFault {
    /// A document with an invalid id.
    pub fn unusable_id(title: &str) -> Self {
        let title = one_line(title, MAX_TITLE_CHARS);
        let reason = Cow::Borrowed("its id is empty, longer than 2048 bytes, or holds a NUL character");
        Self { id: None, version: None, title, reason, is_lasting: true }
    }

    /// A document that cannot be read until it changes.
    pub fn lasting(entry: &Entry, reason: impl Into<Cow<'static, str>>) -> Self {
        let (id, version) = (Some(entry.id.clone()), Some(entry.version.clone()));
        Self { id, version, title: entry.title.clone(), reason: reason.into(), is_lasting: true }
    }

    /// A document that could not be read this time.
    pub fn passing(id: ExternalId, title: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        let title = one_line(title, MAX_TITLE_CHARS);
        Self { id: Some(id), version: None, title, reason: reason.into(), is_lasting: false }
    }
}

/// A page of a listing or of changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Documents, without duplicates.
    pub items: Vec<Item>,
    /// Documents that cannot be read. They exist, so they do not count as absent.
    pub faults: Vec<ItemFault>,
    /// What follows.
    pub then: Then,
}

impl Page {
    /// Documents of a page.
    pub const MAX_ITEMS: usize = 10_000;

    /// A page.
    ///
    /// # Errors
    /// [`Fault::Broken`] when it has more than 10 000 documents.
    pub fn new(items: Vec<Item>, faults: Vec<ItemFault>, then: Then) -> Result<Self, Fault> {
        if items.len().saturating_add(faults.len()) > Self::MAX_ITEMS {
            return Err(Fault::broken("the provider sends more than 10000 documents at once"));
        }
        Ok(Self { items, faults, then })
    }
}

/// What follows a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// More pages, from this position.
    More(Position),
    /// This was the last page.
    End {
        /// The position for [`crate::Provider::changes`]; without those, the state for the next listing.
        next: Position,
        /// What was left out; empty if the listing is complete.
        partial: Vec<Partial>,
    },
}

/// A part of a listing that was not read: its documents do not count as absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// The prefix of the ids in that part; `None` for all of them.
    pub scope: Option<String>,
    /// The message for people; never text of the provider.
    pub reason: Cow<'static, str>,
}

impl Partial {
    /// Anything may be missing.
    pub fn everywhere(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { scope: None, reason: reason.into() }
    }

    /// Ids with this prefix may be missing.
    pub fn below(scope: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { scope: Some(scope.into()), reason: reason.into() }
    }
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The document still has the caller's version.
    Same,
    /// The document.
    Body(Body),
    /// It does not exist.
    Gone,
    /// It is larger than the limit: its size in bytes, or a lower bound of it.
    TooLarge(u64),
    /// It has a media type without text.
    Unsupported(String),
    /// It exists and must not be stored until it changes; a message for people, never text of the provider.
    Unreadable(Cow<'static, str>),
}

/// The bytes of a document, as the provider has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// As received; untrusted.
    pub bytes: Bytes,
    /// The media type, with its parameters.
    pub mime: String,
    /// The version of exactly these bytes.
    pub version: Version,
    /// The title, if it is better than that of the listing.
    pub title: Option<String>,
    /// The provider's URL, if it is better than that of the listing; the base of links in the text.
    pub url: Option<String>,
}

impl Body {
    /// A body with only these fields.
    pub fn new(bytes: impl Into<Bytes>, mime: impl Into<String>, version: Version) -> Self {
        Self { bytes: bytes.into(), mime: mime.into(), version, title: None, url: None }
    }
}

#[cfg(test)]
mod tests;
