//! The directory as a run receives it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{FileType, Kind, SyncAction};

/// The place of a document's text in the pieces of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextPlace {
    pub(crate) piece: u32,
    pub(crate) offset: u32,
}

/// A document of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Document {
    /// Normal form C, with `/` between names.
    pub(crate) path: String,
    pub(crate) file_type: FileType,
    /// `blake3:` and 64 hexadecimal digits.
    pub(crate) hash: String,
    /// Of the text.
    pub(crate) bytes: u32,
    /// Absent when the baseline had the same content at the preview.
    pub(crate) text: Option<TextPlace>,
}

impl Document {
    /// The folders above it and its name.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or(("", &self.path))
    }
}

/// A warning about a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Warning {
    pub(crate) path: String,
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Warning {
    pub(crate) fn new(path: &str, code: &str, message: &str) -> Self {
        Self { path: path.to_owned(), code: code.to_owned(), message: message.to_owned() }
    }
}

/// An object that an earlier run wrote and the manifest lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prunable {
    pub(crate) kind: Kind,
    pub(crate) id: Uuid,
    pub(crate) path: String,
}

/// The result of a preview, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Details {
    pub(crate) documents: Vec<Document>,
    /// Warnings about the documents themselves.
    pub(crate) notes: Vec<Warning>,
    pub(crate) would_prune: Vec<Prunable>,
    /// The planned action of each document that is not skipped, by path.
    #[serde(default)]
    pub(crate) changes: Vec<(String, SyncAction)>,
}
