//! The protocol between the parent and a child: a length-prefixed head in JSON, then a body.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::model::{Failure, Format, Raw, Text};

/// Bytes of a name, media type or URL in a head.
const MAX_FIELD_CHARS: usize = 2_000;

/// A document to read; its bytes follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    name: Option<String>,
    mime: Option<String>,
    base_url: Option<String>,
    kind: Option<Kind>,
    of_provider: bool,
    /// Bytes that follow.
    pub(crate) length: usize,
}

impl Request {
    pub(crate) fn of(raw: &Raw) -> Self {
        let short = |field: &Option<String>| field.as_deref().map(end_of);
        Self {
            name: short(&raw.name),
            mime: short(&raw.mime),
            // A truncated URL would be another URL.
            base_url: raw.base_url.clone().filter(|url| url.chars().count() <= MAX_FIELD_CHARS),
            kind: raw.kind,
            of_provider: raw.of_provider,
            length: raw.bytes.len(),
        }
    }

    pub(crate) fn with(self, bytes: Vec<u8>) -> Raw {
        Raw {
            bytes: bytes.into(),
            name: self.name,
            mime: self.mime,
            base_url: self.base_url,
            kind: self.kind,
            of_provider: self.of_provider,
        }
    }
}

/// Truncates a long field at its start, because its end has the extension.
fn end_of(field: &str) -> String {
    let skipped = field.chars().count().saturating_sub(MAX_FIELD_CHARS);
    field.chars().skip(skipped).collect()
}

/// A child's reply about a document; the text follows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// The format and the title of the text, or the failure.
    outcome: Result<Head, Failure>,
    /// Bytes that follow.
    pub(crate) length: usize,
    /// Whether the reader panicked, so that the child must be replaced.
    pub(crate) worn: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: Format,
    title: Option<String>,
}

impl Reply {
    /// The head and the body of an outcome.
    pub(crate) fn of(outcome: Result<Text, Failure>, worn: bool) -> (Self, String) {
        match outcome {
            Ok(Text { format, content, title }) => {
                let head = Head { format, title };
                (Self { outcome: Ok(head), length: content.len(), worn }, content)
            }
            Err(failure) => (Self { outcome: Err(failure), length: 0, worn }, String::new()),
        }
    }

    /// The outcome with its body; `None` when the body is not UTF-8.
    pub(crate) fn with(self, body: Vec<u8>) -> Option<Result<Text, Failure>> {
        let Head { format, title } = match self.outcome {
            Ok(head) => head,
            Err(failure) => return Some(Err(failure)),
        };
        let content = String::from_utf8(body).ok()?;
        Some(Ok(Text { format, content, title }))
    }
}
