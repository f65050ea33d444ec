//! What a sync remembers of what it wrote.

use std::collections::BTreeMap;

use cairn_proto::ids::SyncRunId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a sync writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    File,
    Folder,
}

/// Something that runs of a sync wrote, as they left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// In the directory.
    pub(crate) path: String,
    pub(crate) id: Uuid,
    /// Of a file; 0 for folders, which have none.
    pub(crate) version: u64,
    /// Empty for folders.
    pub(crate) hash: String,
    /// Which run wrote it last.
    pub(crate) run: SyncRunId,
}

/// All that a sync remembers, by kind and path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Memory(pub(crate) BTreeMap<(Kind, String), Entry>);

impl Memory {
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        Self(entries.into_iter().map(|entry| ((entry.kind, entry.path.clone()), entry)).collect())
    }

    pub(crate) fn get(&self, kind: Kind, path: &str) -> Option<&Entry> {
        self.0.get(&(kind, path.to_owned()))
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Entry> {
        self.0.values().filter(move |entry| entry.kind == kind)
    }
}
