//! What a sync or an import remembers of what it wrote.

use std::collections::BTreeMap;

use cairn_proto::ids::SyncRunId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a run writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    File,
    Folder,
    /// Of an import, as are the others below.
    Asset,
    Database,
    Record,
}

impl Kind {
    /// In columns.
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

    /// Whether it is written in batches of one transaction; others are calls of their own.
    pub(crate) const fn is_in_batches(self) -> bool {
        matches!(self, Self::File | Self::Folder | Self::Record)
    }
}

/// Something that runs of a sync wrote, as they left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// In the directory; of an import, by what its object is known again.
    pub(crate) path: String,
    pub(crate) id: Uuid,
    /// 0 for folders and assets, which have none.
    pub(crate) version: u64,
    /// Empty for folders; of an import, of what the archive has, without the ids of what it links to.
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
