//! What one client knows about its writes: those that were acknowledged, and those with an unknown outcome.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileState {
    Live {
        content: String,
    },
    Trashed,
    /// It may never have been created.
    Absent,
}

/// A file that only one client writes.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `None` until its creation is acknowledged.
    pub(crate) id: Option<String>,
    /// A word that occurs in no other file.
    pub(crate) word: String,
    pub(crate) acknowledged: FileState,
    /// Requested and not acknowledged: it may have happened, or may still happen. Such a file is not written again.
    pub(crate) possible: Option<FileState>,
    pub(crate) etag: String,
    pub(crate) change: String,
}

impl Entry {
    pub(crate) fn is_settled(&self) -> bool {
        self.possible.is_none()
    }

    /// Whether the file may be in this state.
    pub(crate) fn allows(&self, file_state: &FileState) -> bool {
        self.acknowledged == *file_state || self.possible.as_ref() == Some(file_state)
    }
}

/// A file that only one client's sync writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Synced {
    /// The content of the last acknowledged run.
    pub(crate) acknowledged: Option<String>,
    /// The contents of runs with an unknown outcome.
    pub(crate) possible: Vec<String>,
}

impl Synced {
    /// Whether the file may be absent, or have this content.
    pub(crate) fn allows(&self, content: Option<&str>) -> bool {
        match content {
            None => self.acknowledged.is_none(),
            Some(content) => {
                let is_possible = self.possible.iter().any(|possible| possible == content);
                is_possible || self.acknowledged.as_deref() == Some(content)
            }
        }
    }
}

/// Everything that a client wrote.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By name.
    pub(crate) files: BTreeMap<String, Entry>,
    /// Titles of records, and whether they were acknowledged.
    pub(crate) records: BTreeMap<String, bool>,
    /// Keys of ingested documents: each was retried until it was acknowledged, and exists once; `false` if the last
    /// attempt was not acknowledged.
    pub(crate) documents: BTreeMap<String, bool>,
    /// Names of synced files.
    pub(crate) synced: BTreeMap<String, Synced>,
    /// Names of imported files, and whether their run was acknowledged.
    pub(crate) imported: BTreeMap<String, bool>,
    /// The number of answered requests, and of those that failed or were answered with the error of a fault.
    pub(crate) answered: usize,
    pub(crate) failed: usize,
}

/// Violated invariants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Violations(Rc<RefCell<Vec<String>>>);

impl Violations {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// A field of each item of a list.
pub(crate) fn each<'a>(list: &'a Value, field: &'a str) -> impl Iterator<Item = &'a str> {
    list.as_array().into_iter().flatten().filter_map(move |item| item[field].as_str())
}
