//! The types of the engine interface: documents, batches, queries, results.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::query::ParsedQuery;
use crate::vectors::Composed;
use crate::words::Language;

/// Last applied positions by feed and workspace.
pub type Cursors = BTreeMap<String, BTreeMap<Uuid, u64>>;

/// The stable id of a chunk: its document and its ordinal. Ordered by document, then by ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId {
    /// The document.
    pub document: Uuid,
    /// The index of the chunk in the document, from 0.
    pub ordinal: u32,
}

impl fmt::Display for ChunkId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.document.hyphenated(), self.ordinal)
    }
}

/// A chunk and its score in a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The chunk.
    pub chunk: ChunkId,
    /// BM25 in a list of words, the cosine in a list of vectors, 0 to 1 after fusion.
    pub score: f32,
}

/// Sorts by descending score, then by [`ChunkId`], so that the order does not depend on the engine.
pub fn sort_hits(hits: &mut [Hit]) {
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
}

/// A document with all its chunks, which replaces its indexed version.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedDocument {
    /// The workspace that owns it.
    pub workspace: Uuid,
    /// The document.
    pub document: Uuid,
    /// The folder of a workspace document or the connected source of a source document, for filters; `None` at the root.
    pub container: Option<Uuid>,
    /// A named parent within the container, such as a record's database, if any. The document is found by its name and by those above.
    pub holder: Option<Uuid>,
    /// The kind that the owner gave the document (file, record, …); opaque here.
    pub kind: String,
    /// The title without a file extension; its words are indexed with every chunk.
    pub title: String,
    /// Its path when it was indexed, without containers whose names are resolved at search time. The words of its folders are searched,
    /// too.
    pub path: String,
    /// Its tags; searched, too.
    pub tags: Vec<String>,
    /// The language used for stemming.
    pub language: Language,
    /// The hash of the whole document, which the line numbers of chunks refer to.
    pub content_hash: String,
    /// When the document last changed, in microseconds since 1970.
    pub updated_at: i64,
    /// The chunks in order; without chunks the document is removed.
    pub chunks: Vec<IndexedChunk>,
}

/// One chunk of an [`IndexedDocument`].
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedChunk {
    /// The text that is returned, without title and headings.
    pub text: String,
    /// The headings above it, outermost first.
    pub heading_path: Vec<String>,
    /// The header of the table if the text starts within one, otherwise empty.
    pub table_header: String,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line, inclusive.
    pub end_line: u32,
    /// Its vector, with the dimensions of the index and any norm; a zero vector is never found by semantic search.
    pub embedding: Vec<f32>,
    /// The distinct pieces that the vector is the sum of, in ascending order; empty if the embedder works differently.
    pub pieces: Vec<u16>,
}

impl IndexedDocument {
    /// The nearest named parent.
    pub(crate) fn named_parent(&self) -> Option<Uuid> {
        self.holder.or(self.container)
    }

    /// One of its chunks as an index would store it, with its vector if it has one.
    pub fn stored_chunk(&self, ordinal: u32) -> Option<(StoredChunk, Option<Composed>)> {
        let chunk = self.chunks.get(usize::try_from(ordinal).ok()?)?;
        let stored = StoredChunk {
            id: ChunkId { document: self.document, ordinal },
            container: self.container,
            kind: self.kind.clone(),
            title: self.title.clone(),
            heading_path: chunk.heading_path.clone(),
            table_header: chunk.table_header.clone(),
            text: chunk.text.clone(),
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            content_hash: self.content_hash.clone(),
            updated_at: self.updated_at,
        };
        Some((stored, Composed::of(chunk)))
    }
}

/// How far a feed has been applied for a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The feed's name.
    pub feed: String,
    /// The workspace.
    pub workspace: Uuid,
    /// The last position applied.
    pub position: u64,
}

/// Changes that are applied together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Documents to replace. Of several versions of one document the last one wins.
    pub documents: Vec<IndexedDocument>,
    /// Documents to remove, by workspace and id. Applied before `documents`.
    pub deletions: Vec<(Uuid, Uuid)>,
    /// The cursors after the batch.
    pub cursors: Vec<Cursor>,
}

/// A search for candidates in one workspace: lists by words, by vector, or both.
#[derive(Debug, Clone)]
pub struct Query {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The folders and sources searched, `None` for the whole workspace. Documents at the root are in no set.
    pub containers: Option<HashSet<Uuid>>,
    /// The documents searched, `None` for all. A filter only: it does not change scores.
    pub documents: Option<HashSet<Uuid>>,
    /// The maximum number of hits by words, and of those by vector, of each list.
    pub limit: usize,
    /// The requested lists.
    pub lists: Vec<ListQuery>,
}

/// The query of one list. No chunk in it contains an exclusion of `words` or `without`.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// The words, phrases and exclusions; `None` for a purely semantic list.
    pub words: Option<Arc<ParsedQuery>>,
    /// The query vector, with the dimensions of the index and any norm; `None` for a purely lexical list.
    pub vector: Option<Arc<[f32]>>,
    /// Queries whose exclusions apply, too.
    pub without: Vec<Arc<ParsedQuery>>,
}

impl ListQuery {
    /// Whether semantic hits are dropped, since a phrase is required and some chunk contains it.
    pub(crate) fn requires_phrase_match(&self, words: &[Hit]) -> bool {
        !words.is_empty() && self.words.as_ref().is_some_and(|words| !words.phrases().is_empty())
    }
}

/// The candidates of one list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    /// The best by BM25, best first, ties by [`ChunkId`]. A chunk contains every quoted phrase, and otherwise at least one word. A query
    /// without words and phrases finds nothing.
    pub words: Vec<Hit>,
    /// The nearest by cosine, if positive, best first, ties by [`ChunkId`]; none if the words require a phrase and some chunk contains
    /// it. A hybrid list also has the cosines of the hits by words, 0 for a chunk without a vector. Cosines are exact to half
    /// precision.
    pub cosines: Vec<Hit>,
}

/// A chunk as stored in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// The chunk.
    pub id: ChunkId,
    /// The folder or source of its document.
    pub container: Option<Uuid>,
    /// The kind that the owner gave the document.
    pub kind: String,
    /// The document's title.
    pub title: String,
    /// The headings above the chunk, outermost first.
    pub heading_path: Vec<String>,
    /// The header of the table if the chunk starts within one, otherwise empty.
    pub table_header: String,
    /// The chunk's text.
    pub text: String,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line, inclusive.
    pub end_line: u32,
    /// The hash of the whole document.
    pub content_hash: String,
    /// When the document last changed, in microseconds since 1970.
    pub updated_at: i64,
}

/// The embedded texts of a stored chunk, and its vector.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedChunk {
    /// The document's title as it was indexed.
    pub title: String,
    /// The headings above the chunk, outermost first.
    pub heading_path: Vec<String>,
    /// The header of the table if the chunk starts within one, otherwise empty.
    pub table_header: String,
    /// The chunk's text.
    pub text: String,
    /// Its vector, of length 1.
    pub embedding: Vec<f32>,
    /// The distinct pieces that the vector is the sum of, if stored.
    pub pieces: Vec<u16>,
}

/// The numbers of indexed documents and chunks of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Documents with at least one chunk.
    pub documents: u64,
    /// Chunks.
    pub chunks: u64,
}
