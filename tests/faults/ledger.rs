//! What one client knows of what it wrote: what was acknowledged, and what may have happened besides.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

/// How a file stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Live {
        content: String,
    },
    Trashed,
    /// It may never have been made.
    Absent,
}

/// A file that one client alone writes.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `None` until its creation was acknowledged.
    pub(crate) id: Option<String>,
    /// A word that stands in no other file.
    pub(crate) word: String,
    pub(crate) acknowledged: Standing,
    /// Asked for and not acknowledged: it may have happened, or happen yet. Such a file is not written again.
    pub(crate) possible: Option<Standing>,
    pub(crate) etag: String,
    pub(crate) change: String,
}

impl Entry {
    pub(crate) fn is_settled(&self) -> bool {
        self.possible.is_none()
    }

    /// Whether the file may stand like this.
    pub(crate) fn allows(&self, standing: &Standing) -> bool {
        self.acknowledged == *standing || self.possible.as_ref() == Some(standing)
    }
}

/// A file that a sync of one client alone writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Synced {
    /// What the last run that was told to be done wrote.
    pub(crate) acknowledged: Option<String>,
    /// What runs may have written, or may write yet, of whose end nobody was told.
    pub(crate) possible: Vec<String>,
}

impl Synced {
    /// Whether the file may stand like this, absent or with a content.
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
    /// Keys of ingested documents: each was sent until it was acknowledged, and is there once; those whose last sending
    /// was not acknowledged are `false`.
    pub(crate) documents: BTreeMap<String, bool>,
    /// Names of files that syncs write.
    pub(crate) synced: BTreeMap<String, Synced>,
    /// Names of files that imports made, and whether their run was told to be done.
    pub(crate) imported: BTreeMap<String, bool>,
    /// How many requests were answered, and how many were not or with an error of a fault.
    pub(crate) answered: usize,
    pub(crate) failed: usize,
}

/// What must never happen, and did.
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

/// The titles, names, … of a list.
pub(crate) fn each<'a>(list: &'a Value, field: &'a str) -> impl Iterator<Item = &'a str> {
    list.as_array().into_iter().flatten().filter_map(move |item| item[field].as_str())
}
