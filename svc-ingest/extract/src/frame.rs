//! What travels between the parent and a child: a head in JSON with its length before it, then a body.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::model::{Failure, Format, Raw, Text};

/// The longest name, media type or address that a head carries.
const MOST_FIELD_CHARS: usize = 2_000;

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
            // An address that is cut is another address.
            base_url: raw.base_url.clone().filter(|url| url.chars().count() <= MOST_FIELD_CHARS),
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

/// The end of a long field: that is where a name has its extension.
fn end_of(field: &str) -> String {
    let skipped = field.chars().count().saturating_sub(MOST_FIELD_CHARS);
    field.chars().skip(skipped).collect()
}

/// What a child says of a document; the text follows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// How the text is written and what it calls itself, or why there is none.
    outcome: Result<Head, Failure>,
    /// Bytes that follow.
    pub(crate) length: usize,
    /// Whether the reader panicked: the child goes on, but is not to be used again.
    pub(crate) worn: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: Format,
    title: Option<String>,
}

impl Reply {
    /// The head for that outcome, and the body that belongs behind it.
    pub(crate) fn of(outcome: Result<Text, Failure>, worn: bool) -> (Self, String) {
        match outcome {
            Ok(Text { format, content, title }) => {
                let head = Head { format, title };
                (Self { outcome: Ok(head), length: content.len(), worn }, content)
            }
            Err(failure) => (Self { outcome: Err(failure), length: 0, worn }, String::new()),
        }
    }

    /// What was read, with the body; `None` when the child wrote no UTF-8.
    pub(crate) fn with(self, body: Vec<u8>) -> Option<Result<Text, Failure>> {
        let Head { format, title } = match self.outcome {
            Ok(head) => head,
            Err(failure) => return Some(Err(failure)),
        };
        let content = String::from_utf8(body).ok()?;
        Some(Ok(Text { format, content, title }))
    }
}
