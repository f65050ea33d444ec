//! The folders of documents.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use super::{Plan, States};
use crate::model::{Baseline, Kind};

/// All ancestor folders of these paths; parents sort before their contents.
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

/// A folder of new documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FolderRef {
    /// It exists.
    Existing(Uuid),
    /// It will be created with this id.
    New(Uuid),
}

impl FolderRef {
    pub(crate) const fn id(&self) -> Uuid {
        match self {
            Self::Existing(id) | Self::New(id) => *id,
        }
    }
}

/// The folders of new documents, by path. Those that the sync created are known from the baseline; for the others, the caller looks up
/// whether the workspace has a folder of that name.
#[derive(Debug, Default)]
pub(crate) struct Tree<'a> {
    needed: BTreeSet<&'a str>,
    found: HashMap<&'a str, FolderRef>,
}

impl<'a> Tree<'a> {
    /// Of the documents that a plan creates.
    pub(crate) fn of(plan: &Plan<'a>, baseline: &Baseline, states: &States) -> Self {
        let beside = |id: &Uuid| states.get(id).is_some_and(|state| !state.in_trash);
        // A second version goes into the folder of the old file, wherever that is.
        let new = plan.creates.iter().filter(|(_, old)| !old.is_some_and(|old| beside(&old.id)));
        let needed = above(new.map(|(document, _)| document.path.as_str()));
        let mut found = HashMap::new();
        for folder in &needed {
            let live = baseline.get(Kind::Folder, folder).filter(|entry| beside(&entry.id));
            if let Some(entry) = live {
                found.insert(*folder, FolderRef::Existing(entry.id));
            }
        }
        Self { needed, found }
    }

    /// The path of the next folder to look up; its ancestors are known by then.
    pub(crate) fn unknown(&self) -> Option<&'a str> {
        self.needed.iter().find(|folder| !self.found.contains_key(**folder)).copied()
    }

    /// The folder of a path; absent in the root.
    pub(crate) fn parent(&self, path: &str) -> Option<&FolderRef> {
        path.rsplit_once('/').and_then(|(folder, _)| self.found.get(folder))
    }

    pub(crate) fn put(&mut self, folder: &'a str, needed: FolderRef) {
        self.found.insert(folder, needed);
    }

    /// Folders to create, parents before their contents.
    pub(super) fn new_ones(&self) -> impl Iterator<Item = (&'a str, Uuid)> + '_ {
        self.needed.iter().filter_map(|folder| match self.found.get(folder) {
            Some(FolderRef::New(id)) => Some((*folder, *id)),
            Some(FolderRef::Existing(_)) | None => None,
        })
    }
}
