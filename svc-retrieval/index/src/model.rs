//! What goes into an index, and what comes out.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::query::ParsedQuery;
use crate::vectors::Composed;
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
    /// What holds it within the container and has a name, too, such as a record's database; none where nothing does. By that
    /// name it is found, and by those above.
    pub holder: Option<Uuid>,
    /// What the document is to its owner (file, record, …); kept as given.
    pub kind: String,
    /// The title without a file extension; its words are indexed with every chunk.
    pub title: String,
    /// Where it stood when it was indexed, to its own name: what of it is no container, whose names search knows. The words of
    /// the folders are searched too.
    pub path: String,
    /// What it is tagged with; searched too.
    pub tags: Vec<String>,
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
    /// The header of the table that the text begins in the midst of; empty where it begins elsewhere.
    pub table_header: String,
    /// Its first line, from 1.
    pub start_line: u32,
    /// Its last line, inclusive.
    pub end_line: u32,
    /// Its vector, of the index's dimensions and any length; a zero vector is never found by meaning.
    pub embedding: Vec<f32>,
    /// The distinct pieces that the vector is a sum of, in ascending order, of an embedder that works so; none of others.
    pub pieces: Vec<u16>,
}

impl IndexedDocument {
    /// The nearest of what it stands in that has a name.
    pub(crate) fn named_by(&self) -> Option<Uuid> {
        self.holder.or(self.container)
    }

    /// One of its chunks as an index would keep it, with its vector if it has one.
    pub fn at_hand(&self, ordinal: u32) -> Option<(StoredChunk, Option<Composed>)> {
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

/// A search for the chunks that may answer: lists by words, by meaning, or by both, all in one workspace.
#[derive(Debug, Clone)]
pub struct Query {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The folders and sources searched, none for the whole workspace. Documents at the root are in no set.
    pub containers: Option<HashSet<Uuid>>,
    /// The documents searched, none for all. It narrows what is found and moves no score.
    pub documents: Option<HashSet<Uuid>>,
    /// Most hits that a list takes from the words, and most that it takes from the meaning.
    pub limit: usize,
    /// What is looked for, each for a list of its own.
    pub lists: Vec<Wanted>,
}

/// What one list is made of. No chunk in it holds what the words or one of the other queries exclude.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The words, phrases and exclusions; none for a list by meaning alone.
    pub words: Option<Arc<ParsedQuery>>,
    /// The vector that chunks are to be near, of the index's dimensions and any length; none for a list by words alone.
    pub vector: Option<Arc<[f32]>>,
    /// Queries whose exclusions hold here, too.
    pub without: Vec<Arc<ParsedQuery>>,
}

impl Wanted {
    /// Whether what is found by meaning counts for nothing: a phrase is a demand, and some chunk meets it.
    pub(crate) fn is_met_by(&self, words: &[Hit]) -> bool {
        !words.is_empty() && self.words.as_ref().is_some_and(|words| !words.phrases().is_empty())
    }
}

/// What one list found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    /// The best by BM25, best first, ties by [`ChunkId`]. A chunk holds every quoted phrase; of plain words one is enough.
    /// A query without words and phrases finds nothing.
    pub words: Vec<Hit>,
    /// The nearest by cosine that point in the query's direction at all (more than 0), best first, ties by [`ChunkId`];
    /// none where the words demand a phrase and some chunk has it. A list by both has the cosines of what the words found
    /// as well, 0 for a chunk without a vector. Cosines are exact to half precision.
    pub cosines: Vec<Hit>,
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
    /// The header of the table that the chunk begins in the midst of; empty where it begins elsewhere.
    pub table_header: String,
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
    /// The header of the table that the chunk begins in the midst of; empty where it begins elsewhere.
    pub table_header: String,
    /// The chunk's text.
    pub text: String,
    /// Its vector, of length 1.
    pub embedding: Vec<f32>,
    /// The distinct pieces that the vector is a sum of, where they are kept; none otherwise.
    pub pieces: Vec<u16>,
}

/// What an index holds of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Documents with at least one chunk.
    pub documents: u64,
    /// Chunks.
    pub chunks: u64,
}
