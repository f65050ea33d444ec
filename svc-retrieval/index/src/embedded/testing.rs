//! What tests of the index do over and over.

use super::{Index, LexicalQuery};
use crate::contract::WORKSPACE;
use crate::{Batch, ChunkId, IndexedDocument, ParsedQuery};

pub(super) fn add(index: &Index, documents: Vec<IndexedDocument>) {
    index.apply(Batch { documents, ..Batch::default() }).unwrap();
}

pub(super) fn found(index: &Index, text: &str) -> Vec<ChunkId> {
    let words = ParsedQuery::parse(text);
    let query =
        LexicalQuery { workspace: WORKSPACE, words: &words, containers: None, documents: None, limit: 10 };
    index.search(&query).unwrap().into_iter().map(|hit| hit.chunk).collect()
}
