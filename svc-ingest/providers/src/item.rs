//! What providers tell: documents, pages of them, and bodies.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Fault, Position};

/// The most characters of a title; what is beyond goes.
const MOST_TITLE_CHARS: usize = 500;

/// A provider's own id of a document: 1 to 2 048 bytes without NUL, so that it fits into a key of every store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExternalId(String);

/// The text is no id that can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to 2048 bytes and no NUL character")]
pub struct InvalidExternalId;

impl ExternalId {
    /// The most bytes of one.
    pub const MOST_BYTES: usize = 2_048;

    /// Takes an id.
    ///
    /// # Errors
    /// When it is empty, too long, or holds NUL.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidExternalId> {
        let text = text.into();
        let is_valid = !text.is_empty() && text.len() <= Self::MOST_BYTES && !text.contains('\0');
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

/// What differs when a document differs: a hash, a revision or a time, compared for equality only. At most 128 bytes;
/// a longer one is kept as its hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Version(String);

impl Version {
    const MOST_BYTES: usize = 128;

    /// Takes a version.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let fits = text.len() <= Self::MOST_BYTES && !text.contains('\0');
        Self(if fits { text } else { blake3::hash(text.as_bytes()).to_string() })
    }

    /// The version that a listing gives where only the document itself can tell: it is asked for each time, and what was
    /// known of it stays known.
    pub const fn unknown() -> Self {
        Self(String::new())
    }

    /// Whether there is one to compare with.
    pub const fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// The version of a document that has no other than its own bytes.
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

/// What a listing or a search tells of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The provider's id.
    pub id: ExternalId,
    /// What differs when the document differs.
    pub version: Version,
    /// One line, at most 500 characters, never empty.
    pub title: String,
    /// The media type, where it is known before the body is.
    pub mime: Option<String>,
    /// In bytes, where it is known.
    pub size: Option<u64>,
    /// Where it stands in the source, with `/` between the parts. Absent where documents have no path of their own.
    pub path: Option<String>,
    /// The provider's own address of the document, for citations.
    pub url: Option<String>,
    /// When the provider says that it was last written.
    pub updated_at: Option<Timestamp>,
    /// The body, when the listing brings it along for nothing: whoever keeps bodies need not fetch it then.
    pub body: Option<Body>,
}

impl Entry {
    /// An entry of which nothing more is known. The title becomes one line; an empty one becomes the end of the id.
    pub fn new(id: ExternalId, version: Version, title: &str) -> Self {
        let mut title = one_line(title, MOST_TITLE_CHARS);
        if title.is_empty() {
            title = title_of(&id);
        }
        let (mime, size, path, url, updated_at, body) = (None, None, None, None, None, None);
        Self { id, version, title, mime, size, path, url, updated_at, body }
    }

    /// Whether the title is no more than the end of the id: whoever knows a better one keeps it.
    pub fn is_nameless(&self) -> bool {
        self.title == title_of(&self.id)
    }
}

/// What a document is called of which only the id is known.
fn title_of(id: &ExternalId) -> String {
    let end = id.as_str().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let title = one_line(if end.is_empty() { id.as_str() } else { end }, MOST_TITLE_CHARS);
    if title.is_empty() { "untitled".to_owned() } else { title }
}

/// Text of others as one line: white space is one space, control characters go, and what is beyond the bound.
pub(crate) fn one_line(text: &str, most_chars: usize) -> String {
    let mut line = String::new();
    // A text of megabytes is not walked to its end for one line of it.
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

/// What a page tells of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// It is there.
    Present(Box<Entry>),
    /// It is not there any more, or access to it ended: the provider says so itself.
    Gone(ExternalId),
}

impl From<Entry> for Item {
    fn from(entry: Entry) -> Self {
        Self::Present(Box::new(entry))
    }
}

/// A document that is there and cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFault {
    /// Its id, unless that is what is wrong with it.
    pub id: Option<ExternalId>,
    /// Its version, where it is known.
    pub version: Option<Version>,
    /// What it is called.
    pub title: String,
    /// A sentence for people, in our own words.
    pub reason: Cow<'static, str>,
    /// Whether it stays so until the document changes; otherwise it is worth another try.
    pub is_lasting: bool,
}

impl ItemFault {
    /// A document whose id cannot be kept.
    pub fn unusable_id(title: &str) -> Self {
        let title = one_line(title, MOST_TITLE_CHARS);
        let reason = Cow::Borrowed("its id is empty, longer than 2048 bytes, or holds a NUL character");
        Self { id: None, version: None, title, reason, is_lasting: true }
    }

    /// A document that cannot be taken while it is as it is.
    pub fn lasting(entry: &Entry, reason: impl Into<Cow<'static, str>>) -> Self {
        let (id, version) = (Some(entry.id.clone()), Some(entry.version.clone()));
        Self { id, version, title: entry.title.clone(), reason: reason.into(), is_lasting: true }
    }

    /// A document that could not be read this time.
    pub fn passing(id: ExternalId, title: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        let title = one_line(title, MOST_TITLE_CHARS);
        Self { id: Some(id), version: None, title, reason: reason.into(), is_lasting: false }
    }
}

/// Part of a listing or of changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Documents; none is in it twice.
    pub items: Vec<Item>,
    /// Documents that cannot be taken. They are there: absence is not concluded from it.
    pub faults: Vec<ItemFault>,
    /// How it goes on.
    pub then: Then,
}

impl Page {
    /// The most documents of a page.
    pub const MOST_ITEMS: usize = 10_000;

    /// A page.
    ///
    /// # Errors
    /// [`Fault::Broken`] when it has more than 10 000 documents.
    pub fn new(items: Vec<Item>, faults: Vec<ItemFault>, then: Then) -> Result<Self, Fault> {
        if items.len().saturating_add(faults.len()) > Self::MOST_ITEMS {
            return Err(Fault::broken("the provider sends more than 10000 documents at once"));
        }
        Ok(Self { items, faults, then })
    }
}

/// How a listing goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// There is more, from there.
    More(Position),
    /// This was the last page.
    End {
        /// Where [`crate::Provider::changes`] begin; where there are none, where the next listing may begin to know more.
        next: Position,
        /// What was left out. Empty: all of it was read, from the first page to the last.
        partial: Vec<Partial>,
    },
}

/// A part of a listing that was not read: nothing in it is taken for deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partial {
    /// What the ids of that part begin with; `None` for all of them.
    pub scope: Option<String>,
    /// A sentence for people, in our own words.
    pub reason: Cow<'static, str>,
}

impl Partial {
    /// Anything may be missing.
    pub fn everywhere(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { scope: None, reason: reason.into() }
    }

    /// What begins with this may be missing.
    pub fn below(scope: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { scope: Some(scope.into()), reason: reason.into() }
    }
}

/// What a fetch gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The document still has the version that the caller knows.
    Same,
    /// The document.
    Body(Body),
    /// It is not there.
    Gone,
    /// It is larger than what is read: of so many bytes, or of more than these.
    TooLarge(u64),
    /// It is of a kind that has no text; the media type.
    Unsupported(String),
    /// It is there and may not be kept while it is as it is; a sentence for people, in our own words.
    Unreadable(Cow<'static, str>),
}

/// The bytes of a document, as the provider has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// As they were sent. Whoever reads them takes them for hostile.
    pub bytes: Bytes,
    /// The media type, with its parameters where it was sent with some.
    pub mime: String,
    /// The version of exactly these bytes.
    pub version: Version,
    /// The title, when this knows it better than the listing did.
    pub title: Option<String>,
    /// The provider's own address, when this knows it better than the listing did; links in the text are relative to it.
    pub url: Option<String>,
}

impl Body {
    /// A body of which nothing more is known.
    pub fn new(bytes: impl Into<Bytes>, mime: impl Into<String>, version: Version) -> Self {
        Self { bytes: bytes.into(), mime: mime.into(), version, title: None, url: None }
    }
}

#[cfg(test)]
mod tests;
