//! The folders that documents stand in.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use super::{Plan, States};
use crate::model::{Kind, Memory};

/// Every folder above these paths; parents sort before what stands in them.
pub(super) fn above<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for mut path in paths {
        while let Some((folder, _)) = path.rsplit_once('/') {
            if !folders.insert(folder) {
                break;
            }
            path = folder;
        }
    }
    folders
}

/// A folder that new documents stand in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needed {
    /// It is there.
    There(Uuid),
    /// It is to be made, under this id.
    New(Uuid),
}

impl Needed {
    pub(crate) const fn id(&self) -> Uuid {
        match self {
            Self::There(id) | Self::New(id) => *id,
        }
    }
}

/// The folders that new documents stand in, by path. Those that the sync made are known; of the others, whoever asks the
/// workspace says whether one of that name is there.
#[derive(Debug, Default)]
pub(crate) struct Tree<'a> {
    needed: BTreeSet<&'a str>,
    found: HashMap<&'a str, Needed>,
}

impl<'a> Tree<'a> {
    /// Of the documents that a plan creates.
    pub(crate) fn of(plan: &Plan<'a>, memory: &Memory, states: &States) -> Self {
        let beside = |id: &Uuid| states.get(id).is_some_and(|state| !state.in_trash);
        // What stands beside an old version that is there stands in its folder, wherever that is.
        let new = plan.creates.iter().filter(|(_, old)| !old.is_some_and(|old| beside(&old.id)));
        let needed = above(new.map(|(document, _)| document.path.as_str()));
        let mut found = HashMap::new();
        for folder in &needed {
            let live = memory.get(Kind::Folder, folder).filter(|entry| beside(&entry.id));
            if let Some(entry) = live {
                found.insert(*folder, Needed::There(entry.id));
            }
        }
        Self { needed, found }
    }

    /// The next folder to look for, after what stands above it is known: its path.
    pub(crate) fn unknown(&self) -> Option<&'a str> {
        self.needed.iter().find(|folder| !self.found.contains_key(**folder)).copied()
    }

    /// What the path above a path leads to; absent when nothing stands above it.
    pub(crate) fn parent(&self, path: &str) -> Option<&Needed> {
        path.rsplit_once('/').and_then(|(folder, _)| self.found.get(folder))
    }

    pub(crate) fn put(&mut self, folder: &'a str, needed: Needed) {
        self.found.insert(folder, needed);
    }

    /// Those to be made, parents before what stands in them.
    pub(super) fn new_ones(&self) -> impl Iterator<Item = (&'a str, Uuid)> + '_ {
        self.needed.iter().filter_map(|folder| match self.found.get(folder) {
            Some(Needed::New(id)) => Some((*folder, *id)),
            Some(Needed::There(_)) | None => None,
        })
    }
}
