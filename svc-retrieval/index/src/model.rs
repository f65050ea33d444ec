//! What goes into an index, what comes out, and the trait that every engine of words implements.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use uuid::Uuid;

use super::Error;
use super::query::ParsedQuery;
use crate::vectors::VectorIndex;
use crate::words::Language;

/// Positions applied so far: by feed, then by workspace.
pub type Cursors = BTreeMap<String, BTreeMap<Uuid, u64>>;

/// The stable name of a chunk: its document and its place in it. Ordered by document, then by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId {
    /// The document.
    pub document: Uuid,
    /// The chunk's place in the document, from 0.
    pub ordinal: u32,
}

impl fmt::Display for ChunkId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.document.hyphenated(), self.ordinal)
    }
}

/// One chunk found, with the score of the list that it is in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The chunk.
    pub chunk: ChunkId,
    /// BM25 in a list of words, the cosine in a list of vectors, 0 to 1 after fusion.
    pub score: f32,
}

/// Sorts best first; equal scores go by document and place, so that the order never depends on an engine.
pub fn sort_hits(hits: &mut [Hit]) {
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
}

/// A document with all its chunks, replacing whatever the index holds of it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedDocument {
    /// The workspace that owns it.
    pub workspace: Uuid,
    /// The document.
    pub document: Uuid,
    /// The folder of a workspace document or the connected source of a source document, for filters;
    /// none at the root.
    pub container: Option<Uuid>,
    /// What the document is to its owner (file, record, …); kept as given.
    pub kind: String,
    /// The title without a file extension; its words are indexed with every chunk.
    pub title: String,
    /// Where it stood when it was indexed, from the root to its own name; the words of the folders are searched too.
    pub path: String,
    /// The language that its words are stemmed in.
    pub language: Language,
    /// Hash of the whole document that the chunks' lines were counted in.
    pub content_hash: String,
    /// When the document last changed, in microseconds since 1970.
    pub updated_at: i64,
    /// The chunks in order; none removes the document.
    pub chunks: Vec<IndexedChunk>,
}

/// One chunk of an [`IndexedDocument`].
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedChunk {
    /// The text that is returned, without title and headings.
    pub text: String,
    /// The headings above it, outermost first.
    pub heading_path: Vec<String>,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line, inclusive.
    pub end_line: u32,
    /// Its vector, of the index's dimensions and any length; a zero vector is never found by meaning.
    pub embedding: Vec<f32>,
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

/// Changes that become visible together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Documents to replace. Of one document given twice the later stays.
    pub documents: Vec<IndexedDocument>,
    /// Documents to remove: workspace and document. Done before `documents`.
    pub deletions: Vec<(Uuid, Uuid)>,
    /// Where the feeds stand once the batch is applied.
    pub cursors: Vec<Cursor>,
}

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

/// A chunk as the index keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// The chunk.
    pub id: ChunkId,
    /// The folder or source of its document.
    pub container: Option<Uuid>,
    /// What the document is to its owner.
    pub kind: String,
    /// The document's title.
    pub title: String,
    /// The headings above the chunk, outermost first.
    pub heading_path: Vec<String>,
    /// The chunk's text.
    pub text: String,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line, inclusive.
    pub end_line: u32,
    /// Hash of the whole document.
    pub content_hash: String,
    /// When the document last changed, in microseconds since 1970.
    pub updated_at: i64,
}

/// What was embedded of a stored chunk, and its vector.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedChunk {
    /// The document's title as it was indexed.
    pub title: String,
    /// The headings above the chunk, outermost first.
    pub heading_path: Vec<String>,
    /// The chunk's text.
    pub text: String,
    /// Its vector, of length 1.
    pub embedding: Vec<f32>,
}

/// What an index holds of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Documents with at least one chunk.
    pub documents: u64,
    /// Chunks.
    pub chunks: u64,
}

/// An engine that finds chunks by words. Calls block: run them off the async threads.
///
/// No method returns anything of another workspace than the one asked for.
pub trait LexicalIndex: Send + Sync + fmt::Debug {
    /// Applies a batch with its cursors; every search that begins after it returns sees it. A crash leaves the cursors
    /// behind what was written or with it, never ahead, and applying the batch again has the same end.
    ///
    /// The embedded index shows a batch all at once. An engine without transactions may show some of its documents
    /// before others while it is applied, and chunks of two states of one document, which differ in their content hash.
    fn apply(&self, batch: Batch) -> Result<(), Error>;

    /// Removes all chunks of a workspace and its cursors of all feeds, together.
    fn forget(&self, workspace: Uuid) -> Result<(), Error>;

    /// The last position applied of a feed for a workspace, 0 if none.
    fn cursor(&self, feed: &str, workspace: Uuid) -> u64;

    /// All positions applied.
    fn cursors(&self) -> Cursors;

    /// The best chunks by BM25, best first, ties by [`ChunkId`]. A chunk must hold every quoted phrase and
    /// no exclusion; of plain words one is enough. A query without words and phrases finds nothing.
    fn search(&self, query: &LexicalQuery<'_>) -> Result<Vec<Hit>, Error>;

    /// Those of `chunks` that hold an excluded word or phrase, so that a search by meaning can drop them.
    fn excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> Result<HashSet<ChunkId>, Error>;

    /// The given chunks in the given order, without those that the index no longer holds.
    fn chunks(&self, workspace: Uuid, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, Error>;

    /// What the index holds of a workspace.
    fn counts(&self, workspace: Uuid) -> Result<Counts, Error>;
}

/// An engine of words and meaning over the same chunks: what [`LexicalIndex::apply`] reports as applied is found by both.
pub trait Engine: LexicalIndex {
    /// The search by meaning. Changes go through [`LexicalIndex::apply`] alone.
    fn vectors(&self) -> &dyn VectorIndex;

    /// The chunks of a document that have a vector, in any order, so that text which stays is not embedded again.
    fn embedded(&self, workspace: Uuid, document: Uuid) -> Result<Vec<EmbeddedChunk>, Error>;

    /// The last position applied of a feed for a workspace as the storage has it, 0 if none, where other processes may
    /// write to it too; [`LexicalIndex::cursor`] says the same from then on. Blocks.
    fn refresh(&self, feed: &str, workspace: Uuid) -> Result<u64, Error> {
        Ok(self.cursor(feed, workspace))
    }

    /// Whether searches can be answered now. An engine in this process always can.
    fn answers(&self) -> bool {
        true
    }

    /// Makes everything applied outlive the process. Called before it ends; what is not flushed by then is replayed
    /// from the feeds. An engine that keeps nothing back has nothing to do.
    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Called every few seconds by whoever feeds the engine, for what should not wait for the next call.
    fn maintain(&self) -> Result<(), Error> {
        Ok(())
    }
}
