//! What goes in, what comes out, and what went wrong.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// The longest text of a document, in bytes of UTF-8 (contract, "Ingest"): whatever it is taken out of, as long as one that
/// is sent as a text.
pub const MOST_TEXT_BYTES: usize = 5 * 1024 * 1024;

/// The largest file that is read.
pub const MOST_FILE_BYTES: usize = 100 * 1024 * 1024;

/// A file, or the body of a page, whose text is wanted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// Its bytes.
    pub bytes: Bytes,
    /// The file's name or path, where it has one: its extension says what kind it is.
    pub name: Option<String>,
    /// The media type that came with it, such as `text/html; charset=windows-1252`: a hint, except for its charset.
    pub mime: Option<String>,
    /// Where it is from: links in HTML are made absolute to it.
    pub base_url: Option<String>,
    /// What it is, where that is known and not to be guessed.
    pub kind: Option<Kind>,
    /// Whether a provider sent it: of text and Markdown, too, what people cannot see goes then. What a caller sends
    /// itself is kept byte for byte.
    pub of_provider: bool,
}

impl Raw {
    /// Bytes of which only the name is known.
    pub fn file(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), name: Some(name.into()), ..Self::default() }
    }

    /// HTML that is text already, such as the content of a request.
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

/// Shows no content: files are their owner's.
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

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Markdown, written or made from a file.
    Markdown,
    /// Plain text.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// The text of a document as it is retained: UTF-8 without a byte order mark, at most [`MOST_TEXT_BYTES`], without NUL.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    /// How it is written.
    pub format: Format,
    /// The text.
    pub content: String,
    /// The title that the file gives itself, on one line.
    pub title: Option<String>,
}

/// Shows no content: files are their owner's.
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
    /// It opens with a password only.
    Encrypted,
    /// It holds no text, such as a scan.
    NoText,
    /// The file, or its text, is longer than what is kept.
    TooLarge,
    /// It is not what it says, or damaged.
    Broken,
    /// Reading it used up time or memory, or ended the reader.
    Exhausted,
    /// No reader could be started; another time it may work.
    Unavailable,
}

/// Why a document has no text, in a sentence for a person that holds nothing of the document and nothing of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The sentence.
    pub message: String,
}

impl Failure {
    /// A failure of that kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether the same document may be read another time.
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
