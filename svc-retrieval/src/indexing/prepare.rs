//! From an owner's documents to what the index takes: cut into chunks, each with its vector.

use std::collections::HashMap;

use cairn_chassis::clock::Timestamp;
use cairn_embed::{self as embed, Embedder};
use cairn_index::chunk::{self, Chunk};
use cairn_index::words;
use cairn_index::{Engine, IndexedChunk, IndexedDocument};
use cairn_proto::document::v1::{Document, Format};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use crate::error::Error;

/// Texts that are handed to the embedder at once, across the documents of a batch.
const TEXTS_AT_ONCE: usize = 64;

/// The vectors of chunks by the texts that they are embedded as.
pub(super) type Known = HashMap<String, Vec<f32>>;

/// Documents in chunks, with the vectors that are known.
#[derive(Debug)]
pub(super) struct Cut {
    documents: Vec<CutDocument>,
    known: Known,
}

#[derive(Debug)]
struct CutDocument {
    /// Without its chunks.
    document: IndexedDocument,
    /// With the texts that they are embedded as.
    chunks: Vec<(Chunk, String)>,
}

/// Cuts documents into chunks, in their order. Known are the vectors of texts that the index holds of the same document.
/// The name of a document is a part of each of its texts: to rename it is to change them all, to move it is not.
pub(super) fn cut(
    index: &dyn Engine,
    workspace: WorkspaceId,
    documents: Vec<Document>,
) -> Result<Cut, Error> {
    let documents = documents.into_iter().map(|document| cut_one(workspace, document));
    let mut cut = Cut { documents: documents.collect::<Result<_, Error>>()?, known: Known::new() };
    cut.know_stored(index)?;
    Ok(cut)
}

fn cut_one(workspace: WorkspaceId, document: Document) -> Result<CutDocument, Error> {
    let reference = document.r#ref.clone().ok_or(Error::Answer("a document has no reference"))?;
    let id = Uuid::try_parse(&reference.id).map_err(|_| Error::Answer("a document's id is not a UUID"))?;
    let container = document.folder_id.as_deref().and_then(|id| Uuid::try_parse(id).ok());
    let chunks = chunk::split(format(&document), &document.content).into_iter().map(|chunk| {
        let text = chunk::index_text(&document.title, &chunk);
        (chunk, text)
    });
    let chunks = chunks.collect();
    let document = IndexedDocument {
        workspace: workspace.0,
        document: id,
        container,
        kind: Kind::try_from(reference.kind).unwrap_or_default().as_str_name().to_owned(),
        title: chunk::stem(&document.title).to_owned(),
        path: document.path,
        language: words::detect(&document.content),
        content_hash: document.content_hash,
        updated_at: document.updated_at.as_ref().map_or(0, |at| Timestamp::from_proto(at).as_micros()),
        chunks: Vec::new(),
    };
    Ok(CutDocument { document, chunks })
}

impl Cut {
    fn know_stored(&mut self, index: &dyn Engine) -> Result<(), Error> {
        for cut in self.documents.iter().filter(|cut| !cut.chunks.is_empty()) {
            let stored = index.embedded(cut.document.workspace, cut.document.document)?;
            // Stored with the blank lines that follow it.
            let stored: HashMap<String, Vec<f32>> = stored
                .into_iter()
                .map(|chunk| {
                    (
                        chunk::text_under(&chunk.title, &chunk.heading_path, chunk.text.trim_end()),
                        chunk.embedding,
                    )
                })
                .collect();
            for (_, text) in &cut.chunks {
                if let Some(vector) = stored.get(text.trim_end()) {
                    self.known.insert(text.clone(), vector.clone());
                }
            }
        }
        Ok(())
    }

    /// Takes vectors that are known.
    pub(super) fn with(mut self, known: Known) -> Self {
        self.known.extend(known);
        self
    }

    /// The texts without a known vector, each once.
    pub(super) fn missing(&self) -> Vec<&str> {
        let mut missing: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (_, text) in self.documents.iter().flat_map(|document| &document.chunks) {
            if !self.known.contains_key(text) && seen.insert(text) {
                missing.push(text);
            }
        }
        missing
    }

    /// Embeds what is missing. After an error, what was embedded before is known.
    pub(super) async fn embed(&mut self, embedder: &dyn Embedder) -> Result<(), embed::Error> {
        let missing: Vec<String> = self.missing().into_iter().map(ToOwned::to_owned).collect();
        for texts in missing.chunks(TEXTS_AT_ONCE) {
            let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
            let vectors = embedder.embed(&borrowed).await?;
            self.known.extend(texts.iter().cloned().zip(vectors));
        }
        Ok(())
    }

    /// The vectors that are known.
    pub(super) fn into_known(self) -> Known {
        self.known
    }

    /// What the index takes. A chunk whose vector is not known gets the zero vector: it is found by its words.
    pub(super) fn into_documents(self, dimensions: usize) -> Vec<IndexedDocument> {
        let known = self.known;
        let vector = |text: &str| known.get(text).cloned().unwrap_or_else(|| vec![0.0; dimensions]);
        let with_chunks = |cut: CutDocument| {
            let chunks = cut.chunks.into_iter().map(|(chunk, text)| indexed(chunk, vector(&text)));
            IndexedDocument { chunks: chunks.collect(), ..cut.document }
        };
        self.documents.into_iter().map(with_chunks).collect()
    }
}

fn indexed(chunk: Chunk, embedding: Vec<f32>) -> IndexedChunk {
    IndexedChunk {
        // With what follows it, so that a search can put neighbours together line by line.
        text: chunk.text + chunk.gap.as_deref().unwrap_or_default(),
        heading_path: chunk.heading_path,
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        embedding,
    }
}

fn format(document: &Document) -> chunk::Format {
    match document.format() {
        Format::Markdown => chunk::Format::Markdown,
        Format::Json => chunk::Format::Json,
        Format::Yaml => chunk::Format::Yaml,
        Format::Text | Format::Unspecified => chunk::Format::Text,
    }
}

#[cfg(test)]
mod tests;
