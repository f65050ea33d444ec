//! Inputs, results and failures of an extraction.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// Bytes of a document's text in UTF-8 (contract, "Ingest"), the same for extracted texts and for those sent as text.
pub const MAX_TEXT_BYTES: usize = 5 * 1024 * 1024;

/// Bytes of a file.
pub const MAX_FILE_BYTES: usize = 100 * 1024 * 1024;

/// A file, or the body of a page, to extract text from.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// Its bytes.
    pub bytes: Bytes,
    /// The file's name or path, if it has one: its extension indicates the kind.
    pub name: Option<String>,
    /// The declared media type, such as `text/html; charset=windows-1252`: only a hint, except for its charset.
    pub mime: Option<String>,
    /// The base URL of links in HTML.
    pub base_url: Option<String>,
    /// The kind, if it is known and need not be detected.
    pub kind: Option<Kind>,
    /// Whether it comes from a provider: invisible characters are then removed from text and Markdown as well. Text from a caller is stored
    /// byte for byte.
    pub of_provider: bool,
}

impl Raw {
    /// Bytes with only a name.
    pub fn file(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), name: Some(name.into()), ..Self::default() }
    }

    /// HTML as a string, such as the content of a request.
    pub fn html(text: impl Into<String>, base_url: Option<String>) -> Self {
        Self {
            bytes: Bytes::from(text.into()),
            mime: Some("text/html; charset=utf-8".to_owned()),
            base_url,
            kind: Some(Kind::Html),
            ..Self::default()
        }
    }
}

/// Redacts the content, which is private.
impl std::fmt::Debug for Raw {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Raw")
            .field("bytes", &self.bytes.len())
            .field("mime", &self.mime)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Markdown, original or converted.
    Markdown,
    /// Plain text.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// The extracted text of a document: UTF-8 without a byte order mark or NUL, at most [`MAX_TEXT_BYTES`].
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    /// Its format.
    pub format: Format,
    /// The text.
    pub content: String,
    /// The title in the file, on one line.
    pub title: Option<String>,
}

/// Redacts the content, which is private.
impl std::fmt::Debug for Text {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Text")
            .field("format", &self.format)
            .field("content", &self.content.len())
            .finish_non_exhaustive()
    }
}

/// Why there is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No reader for this kind of file.
    Unsupported,
    /// It is encrypted with a password.
    Encrypted,
    /// It has no text, such as a scan.
    NoText,
    /// The file or its text exceeds the limit.
    TooLarge,
    /// It is invalid or damaged.
    Broken,
    /// Reading it exceeded time or memory, or crashed the reader.
    Exhausted,
    /// No reader could be started; a retry may succeed.
    Unavailable,
}

/// Why a document has no text. The message is for people, and contains nothing of the document or this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The message.
    pub message: String,
}

impl Failure {
    /// A failure of that kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether a retry with the same document may succeed.
    pub fn may_pass(&self) -> bool {
        self.kind == FailureKind::Unavailable
    }

    pub(crate) fn broken(what: &str) -> Self {
        Self::new(
            FailureKind::Broken,
            format!("The file cannot be read as {what}: it is damaged or incomplete."),
        )
    }

    pub(crate) fn encrypted() -> Self {
        Self::new(
            FailureKind::Encrypted,
            "The file is encrypted: it opens with a password only. Remove the password and add it again.",
        )
    }

    pub(crate) fn no_text() -> Self {
        Self::new(FailureKind::NoText, "There is no text in the file.")
    }

    pub(crate) fn text_too_long() -> Self {
        Self::new(
            FailureKind::TooLarge,
            "The text of the file is over 5 MB. Divide the file into smaller ones.",
        )
    }
}
