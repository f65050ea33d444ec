//! Which records of a database, in which order: what both the engine and the columns in memory answer.

use cairn_proto::ids::{DatabaseId, PropertyId, WorkspaceId};

use super::Filter;

/// A word of a search, folded, and the options whose names hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) folded: String,
    pub(crate) option_ids: Vec<String>,
}

/// An order by a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) property: PropertyId,
    pub(crate) by_number: bool,
    pub(crate) is_descending: bool,
}

/// Which records of a database, in which order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    pub(crate) workspace: WorkspaceId,
    pub(crate) database: DatabaseId,
    /// How many records the database has.
    pub(crate) everything: u64,
    /// All hold.
    pub(crate) filters: Vec<Filter>,
    /// All are found.
    pub(crate) words: Vec<Word>,
    pub(crate) orders: Vec<Order>,
}

impl Selection {
    /// Whether every record of the database is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.words.is_empty() && self.filters.iter().all(|filter| *filter == Filter::All(Vec::new()))
    }
}
