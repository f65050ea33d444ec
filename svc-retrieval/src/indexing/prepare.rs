//! Turns the documents of an owner into documents for the index: cut into chunks, each with its vector.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cairn_chassis::clock::Timestamp;
use cairn_embed::{self as embed, Embedder, ImmediateEmbedder, StaticRows, TextKind};
use cairn_index::chunk::{self, Chunk};
use cairn_index::words;
use cairn_index::{Engine, IndexedChunk, IndexedDocument};
use cairn_proto::document::v1::{Document, DocumentRef, Format};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::IndexedDocument as IndexedOutcome;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::acknowledge;
use crate::error::Error;
use crate::{kinds, partition};

/// Texts in one call of the embedder, across the documents of a batch.
const TEXTS_PER_CALL: usize = 64;

/// With an immediate embedder, stored vectors are looked up only for documents with at least this many chunks.
const MIN_CHUNKS_FOR_LOOKUP: usize = 8;

/// The failure that the owner, and through it a person, sees of a document that cannot be cut.
const CANNOT_BE_CUT: &str = "the text could not be cut into passages, so search does not find it";

/// The vectors of chunks, by their embedded texts.
pub(super) type VectorsByText = HashMap<String, Embedded>;

/// A vector, and the pieces that it is a sum of where it is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Embedded {
    vector: Vec<f32>,
    pieces: Vec<u16>,
}

impl From<Vec<f32>> for Embedded {
    fn from(vector: Vec<f32>) -> Self {
        Self { vector, pieces: Vec::new() }
    }
}

/// The initial capacity of the cache, in documents.
const DOCUMENTS_EXPECTED: usize = 256;
/// Bytes of cut documents that are cached, where vectors follow the words: the same document is then cut twice more within seconds
/// or minutes. A larger cache would help only where many large documents wait for their vectors.
const CACHE_BYTES: u64 = 8 << 20;

/// A document's chunks with the texts that they are embedded as.
type Chunks = Arc<[(Chunk, String)]>;

/// Everything that chunks and their embedded texts depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CutKey {
    document: Uuid,
    title: String,
    format: i32,
    content: blake3::Hash,
}

/// Cuts documents, with a cache of recent ones.
#[derive(Debug, Clone)]
pub(super) struct Cutter(Arc<Cache<CutKey, Chunks, ByteWeighter>>);

#[derive(Debug, Clone)]
struct ByteWeighter;

impl Weighter<CutKey, Chunks> for ByteWeighter {
    fn weight(&self, _: &CutKey, chunks: &Chunks) -> u64 {
        // A text is there twice: by itself, and under its title and headings.
        chunks.iter().map(|(chunk, text)| chunk.text.len() + text.len() + 256).sum::<usize>() as u64 + 256
    }
}

impl Default for Cutter {
    fn default() -> Self {
        Self(Arc::new(Cache::with_weighter(DOCUMENTS_EXPECTED, CACHE_BYTES, ByteWeighter)))
    }
}

impl Cutter {
    /// Without a cache.
    pub(super) fn uncached() -> Self {
        Self(Arc::new(Cache::with_weighter(0, 0, ByteWeighter)))
    }

    /// Cuts documents into chunks, in their order, with the vectors that the index has for unchanged texts. The title of a
    /// document is a part of each of its texts, so renaming it changes them all; moving it changes none.
    pub(super) async fn cut(
        &self,
        index: &dyn Engine,
        workspace: WorkspaceId,
        documents: Vec<Document>,
    ) -> Result<Cut, Error> {
        self.cut_with_stored_vectors(index, workspace, documents, 1).await
    }

    /// The same for that embedder: for an immediate one, stored vectors of documents with few chunks are not looked up, since
    /// searching each segment costs more than embedding them, and a new document has none.
    pub(super) async fn cut_for(
        &self,
        embedder: &dyn Embedder,
        index: &dyn Engine,
        workspace: WorkspaceId,
        documents: Vec<Document>,
    ) -> Result<Cut, Error> {
        let min_chunks = if embedder.is_immediate() { MIN_CHUNKS_FOR_LOOKUP } else { 1 };
        self.cut_with_stored_vectors(index, workspace, documents, min_chunks).await
    }

    /// With the stored vectors of documents that have at least `min_chunks` chunks.
    async fn cut_with_stored_vectors(
        &self,
        index: &dyn Engine,
        workspace: WorkspaceId,
        documents: Vec<Document>,
        min_chunks: usize,
    ) -> Result<Cut, Error> {
        let cutter = self.clone();
        let mut cut = super::run_blocking(move || cutter.cut_all(workspace, documents)).await?;
        cut.load_stored_vectors(index, workspace, min_chunks).await?;
        Ok(cut)
    }

    /// A document that cannot be cut is left out, and keeps no other one from the index.
    fn cut_all(&self, workspace: WorkspaceId, documents: Vec<Document>) -> Cut {
        let mut cut = Cut {
            documents: Vec::with_capacity(documents.len()),
            known: VectorsByText::new(),
            failed: Vec::new(),
        };
        for document in documents {
            let (reference, content_hash) = (document.r#ref.clone(), document.content_hash.clone());
            // Texts come from outside: a fault that one of them meets here is that document's alone.
            match std::panic::catch_unwind(AssertUnwindSafe(|| self.cut_one(workspace, document))) {
                Ok(Ok(document)) => cut.documents.push(document),
                Ok(Err(error)) => tracing::error!(%workspace, %error, "a document cannot be indexed"),
                Err(_panicked) => {
                    let reference = reference.unwrap_or_default();
                    tracing::error!(%workspace, document.id = reference.id, "cutting a document panicked");
                    cut.failed.push(acknowledge::failed(reference, content_hash, CANNOT_BE_CUT));
                }
            }
        }
        cut
    }

    /// Documents for the index, with vectors where the embedder is immediate; the others have none, and are found by their
    /// words.
    pub(super) fn index_now(
        &self,
        workspace: WorkspaceId,
        documents: Vec<Document>,
        embedder: &dyn Embedder,
    ) -> Vec<IndexedDocument> {
        let mut cut = self.cut_all(workspace, documents);
        if let Some(immediate) = embedder.immediate() {
            cut.embed_now(immediate);
        }
        cut.into_documents(embedder.dimensions())
    }

    /// How many chunks a document has; `None` when it cannot be cut.
    pub(super) fn count(&self, id: Uuid, document: &Document) -> Option<u32> {
        let chunks = std::panic::catch_unwind(AssertUnwindSafe(|| self.chunks(id, document).len())).ok()?;
        u32::try_from(chunks).ok()
    }

    fn cut_one(&self, workspace: WorkspaceId, document: Document) -> Result<CutDocument, Error> {
        let reference = document.r#ref.clone().ok_or(Error::Answer("a document has no reference"))?;
        let id =
            Uuid::try_parse(&reference.id).map_err(|_| Error::Answer("a document's id is not a UUID"))?;
        let container = document.folder_id.as_deref().or(document.source_id.as_deref());
        let container = container.and_then(|id| Uuid::try_parse(id).ok());
        let holder = document.database_id.as_deref().and_then(|id| Uuid::try_parse(id).ok());
        let chunks = self.chunks(id, &document);
        let is_entry = document.catalog_only;
        let kind = Kind::try_from(reference.kind).unwrap_or_default();
        let document = IndexedDocument {
            workspace: partition::of(workspace, document.catalog_only),
            document: id,
            container,
            holder,
            kind: kinds::stored(kind).to_owned(),
            title: chunk::stem(&document.title).to_owned(),
            // The chunk of an entry says where it stands.
            path: if is_entry { String::new() } else { indexed_path(kind, document.path) },
            tags: document.tags,
            language: words::detect(&document.content),
            content_hash: document.content_hash,
            updated_at: document.updated_at.as_ref().map_or(0, |at| Timestamp::from_proto(at).as_micros()),
            chunks: Vec::new(),
        };
        Ok(CutDocument { document, chunks, is_entry })
    }

    fn chunks(&self, id: Uuid, document: &Document) -> Chunks {
        if document.catalog_only {
            return entry(document);
        }
        let key = CutKey {
            document: id,
            title: document.title.clone(),
            format: document.format,
            content: blake3::hash(document.content.as_bytes()),
        };
        if let Some(chunks) = self.0.get(&key) {
            return chunks;
        }
        let cut = chunk::split(format(document), &document.content).into_iter();
        let chunks: Chunks = cut
            .map(|chunk| {
                let text = chunk::index_text(&document.title, &chunk);
                (chunk, text)
            })
            .collect();
        self.0.insert(key, Arc::clone(&chunks));
        chunks
    }
}

/// Documents in chunks, with the vectors that are known.
#[derive(Debug)]
pub(super) struct Cut {
    documents: Vec<CutDocument>,
    known: VectorsByText,
    /// Documents that could not be cut.
    failed: Vec<IndexedOutcome>,
}

#[derive(Debug)]
struct CutDocument {
    /// Without its chunks.
    document: IndexedDocument,
    chunks: Chunks,
    /// Whether it is an entry of a catalog.
    is_entry: bool,
}

impl Cut {
    async fn load_stored_vectors(
        &mut self,
        index: &dyn Engine,
        workspace: WorkspaceId,
        min_chunks: usize,
    ) -> Result<(), Error> {
        let cut = self.embedded().filter(|cut| cut.chunks.len() >= min_chunks);
        let documents: Vec<Uuid> = cut.map(|cut| cut.document.document).collect();
        if documents.is_empty() {
            return Ok(());
        }
        let mut stored = index.embedded(workspace.0, documents).await?;
        for cut in &self.documents {
            let stored = stored.remove(&cut.document.document).unwrap_or_default().into_iter().map(|chunk| {
                // Stored with the blank lines that follow it.
                let passage = chunk.text.trim_end();
                let text = chunk::text_under(&chunk.title, &chunk.heading_path, &chunk.table_header, passage);
                (text, Embedded { vector: chunk.embedding, pieces: chunk.pieces })
            });
            let stored: VectorsByText = stored.collect();
            for (_, text) in cut.chunks.iter() {
                if let Some(embedded) = stored.get(text.trim_end()) {
                    self.known.insert(text.clone(), embedded.clone());
                }
            }
        }
        Ok(())
    }

    /// Takes out the documents that could not be cut.
    pub(super) fn take_failed(&mut self) -> Vec<IndexedOutcome> {
        std::mem::take(&mut self.failed)
    }

    /// Without the entries of catalogs, which are found by their words alone.
    fn embedded(&self) -> impl Iterator<Item = &CutDocument> {
        self.documents.iter().filter(|cut| !cut.is_entry)
    }

    /// Adds vectors.
    pub(super) fn with(mut self, known: VectorsByText) -> Self {
        self.known.extend(known);
        self
    }

    /// The texts without a known vector, each once.
    pub(super) fn missing(&self) -> Vec<&str> {
        let mut missing: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (_, text) in self.embedded().flat_map(|document| document.chunks.iter()) {
            if !self.known.contains_key(text) && seen.insert(text) {
                missing.push(text);
            }
        }
        missing
    }

    /// Embeds what is missing. An error keeps the vectors of earlier calls.
    pub(super) async fn embed(&mut self, embedder: &dyn Embedder) -> Result<(), embed::Error> {
        let missing: Vec<String> = self.missing().into_iter().map(ToOwned::to_owned).collect();
        for texts in missing.chunks(TEXTS_PER_CALL) {
            let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
            let embedded: Vec<Embedded> = match embedder.rows() {
                Some(rows) => borrowed.iter().map(|text| summed(rows, text)).collect(),
                None => {
                    let vectors = embedder.embed(TextKind::Passage, &borrowed).await?;
                    vectors.into_iter().map(Embedded::from).collect()
                }
            };
            self.known.extend(texts.iter().cloned().zip(embedded));
        }
        Ok(())
    }

    /// Embeds what is missing with an immediate embedder.
    pub(super) fn embed_now(&mut self, embedder: &dyn ImmediateEmbedder) {
        let missing: Vec<String> = self.missing().into_iter().map(ToOwned::to_owned).collect();
        for texts in missing.chunks(TEXTS_PER_CALL) {
            let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
            let embedded: Vec<Embedded> = match embedder.rows() {
                Some(rows) => borrowed.iter().map(|text| summed(rows, text)).collect(),
                None => embedder.embed_now(&borrowed).into_iter().map(Embedded::from).collect(),
            };
            self.known.extend(texts.iter().cloned().zip(embedded));
        }
    }

    /// All vectors.
    pub(super) fn into_vectors(self) -> VectorsByText {
        self.known
    }

    /// The documents for the index. A chunk without a vector gets the zero vector: it is found by its words.
    pub(super) fn into_documents(self, dimensions: usize) -> Vec<IndexedDocument> {
        let known = self.known;
        let vector = |text: &str| known.get(text).cloned().unwrap_or_else(|| vec![0.0; dimensions].into());
        let with_chunks = |cut: CutDocument| {
            let chunks = cut.chunks.iter().map(|(chunk, text)| indexed(chunk, vector(text)));
            IndexedDocument { chunks: chunks.collect(), ..cut.document }
        };
        self.documents.into_iter().map(with_chunks).collect()
    }
}

/// The part of a path that is indexed with a document. Names of folders and databases are not: searches resolve them when they
/// run, so that renaming one needs no reindexing.
fn indexed_path(kind: Kind, path: String) -> String {
    match kind {
        Kind::File | Kind::Record => String::new(),
        Kind::Unspecified
        | Kind::Folder
        | Kind::Memory
        | Kind::Database
        | Kind::SourceDocument
        | Kind::Ingested => path,
    }
}

/// An entry of a catalog has one chunk: the words that it is found by, and no text to embed.
fn entry(document: &Document) -> Chunks {
    let (text, heading_path) = (crate::entry::text(document), Vec::new());
    let chunk =
        Chunk { text, heading_path, table_header: String::new(), start_line: 1, end_line: 1, gap: None };
    Arc::new([(chunk, String::new())])
}

/// The outcomes of documents that are about to be indexed, and of those that could not be cut.
pub(super) fn outcomes(documents: &[IndexedDocument], failed: Vec<IndexedOutcome>) -> Vec<IndexedOutcome> {
    let outcome = |document: &IndexedDocument| IndexedOutcome {
        r#ref: Some(DocumentRef {
            kind: kinds::known(&document.kind).into(),
            id: document.document.hyphenated().to_string(),
        }),
        content_hash: document.content_hash.clone(),
        chunks: u32::try_from(document.chunks.len()).unwrap_or(u32::MAX),
        failure: None,
    };
    documents.iter().map(outcome).chain(failed).collect()
}

fn summed(rows: &StaticRows, text: &str) -> Embedded {
    let (vector, pieces) = rows.embed_with_pieces(text);
    Embedded { vector, pieces }
}

fn indexed(chunk: &Chunk, embedded: Embedded) -> IndexedChunk {
    IndexedChunk {
        // With what follows it, so that a search can put neighbours together line by line.
        text: format!("{}{}", chunk.text, chunk.gap.as_deref().unwrap_or_default()),
        heading_path: chunk.heading_path.clone(),
        table_header: chunk.table_header.clone(),
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        embedding: embedded.vector,
        pieces: embedded.pieces,
    }
}

fn format(document: &Document) -> chunk::Format {
    match document.format() {
        Format::Markdown => chunk::Format::Markdown,
        Format::Json => chunk::Format::Json,
        Format::Yaml => chunk::Format::Yaml,
        Format::Text | Format::Unspecified if is_table(&document.title) => chunk::Format::Table,
        Format::Text | Format::Unspecified => chunk::Format::Text,
    }
}

/// Whether a text of that name is a table: its owners know no such format.
fn is_table(title: &str) -> bool {
    let extension = title.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    matches!(extension.as_deref(), Some("csv" | "tsv"))
}

#[cfg(test)]
mod tests;
