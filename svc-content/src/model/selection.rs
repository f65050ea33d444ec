//! The selection and the order of records of a database, as both the SQL engine and the in-memory columns evaluate
//! them.

use cairn_proto::ids::{DatabaseId, PropertyId, WorkspaceId};

use super::Filter;

/// A folded word of a search, and the options whose names contain it.
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

/// The selection of records of a database, and their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    pub(crate) workspace: WorkspaceId,
    pub(crate) database: DatabaseId,
    /// The number of live records of the database.
    pub(crate) total_records: u64,
    /// All of them must match.
    pub(crate) filters: Vec<Filter>,
    /// All of them must be found.
    pub(crate) words: Vec<Word>,
    pub(crate) orders: Vec<Order>,
}

impl Selection {
    /// Whether every record of the database is selected.
    pub(crate) fn is_unfiltered(&self) -> bool {
        self.words.is_empty() && self.filters.iter().all(|filter| *filter == Filter::All(Vec::new()))
    }
}
