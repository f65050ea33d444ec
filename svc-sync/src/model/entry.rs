//! The baseline of a sync or an import: what its runs wrote last.

use std::collections::BTreeMap;

use cairn_proto::ids::SyncRunId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The kind of an object that a run writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    File,
    Folder,
    /// Only written by imports, like those below.
    Asset,
    Database,
    Record,
}

impl Kind {
    /// The number in the database.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::File => 1,
            Self::Folder => 2,
            Self::Asset => 3,
            Self::Database => 4,
            Self::Record => 5,
        }
    }

    pub(crate) fn from_number(number: i64) -> Option<Self> {
        let all = [Self::File, Self::Folder, Self::Asset, Self::Database, Self::Record];
        all.into_iter().find(|kind| kind.number() == number)
    }

    /// Whether writes of it share a transaction; other kinds take a call each.
    pub(crate) const fn is_in_batches(self) -> bool {
        matches!(self, Self::File | Self::Folder | Self::Record)
    }
}

/// An object as the runs of a sync left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The path in the directory; of an import, the identity of the object across imports.
    pub(crate) path: String,
    pub(crate) id: Uuid,
    /// 0 for folders and assets, which have none.
    pub(crate) version: u64,
    /// Empty for folders. Of an import: the hash of the archive's entry, which does not depend on the ids of link targets.
    pub(crate) hash: String,
    /// The run that wrote it last.
    pub(crate) run: SyncRunId,
}

/// All entries of a sync, by kind and path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Baseline(pub(crate) BTreeMap<(Kind, String), Entry>);

impl Baseline {
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
