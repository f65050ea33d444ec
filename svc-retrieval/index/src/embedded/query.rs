//! The lexical query.

use std::collections::HashSet;

use uuid::Uuid;

use crate::ParsedQuery;

/// A search by words.
#[derive(Debug, Clone)]
pub struct LexicalQuery<'a> {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The words, phrases and exclusions.
    pub words: &'a ParsedQuery,
    /// The folders and sources searched, `None` for the whole workspace. Documents at the root are in no set.
    pub containers: Option<&'a HashSet<Uuid>>,
    /// The documents searched, `None` for all. A filter only: it does not change scores.
    pub documents: Option<&'a HashSet<Uuid>>,
    /// The maximum number of hits.
    pub limit: usize,
}
