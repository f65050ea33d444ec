//! What is looked up in the index in one step of a search.

use std::collections::HashSet;

use uuid::Uuid;

use crate::ParsedQuery;

/// A search for words.
#[derive(Debug, Clone)]
pub struct LexicalQuery<'a> {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The words, phrases and exclusions.
    pub words: &'a ParsedQuery,
    /// The folders and sources searched, none for the whole workspace. Documents at the root are in no
    /// set.
    pub containers: Option<&'a HashSet<Uuid>>,
    /// The documents searched, none for all. It narrows what is found and moves no score.
    pub documents: Option<&'a HashSet<Uuid>>,
    /// Most hits returned.
    pub limit: usize,
}
