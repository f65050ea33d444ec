//! An index filled as the service fills it: documents cut, embedded with the built-in rows, and applied in batches.

use std::path::Path;
use std::time::Duration;

use cairn_embed::{Embedder as _, StaticRows, TextKind};
use cairn_index::chunk::{self, Format};
use cairn_index::embedded::Index;
use cairn_index::words;
use cairn_index::{Batch, IndexedChunk, IndexedDocument};
use cpu_time::ProcessTime;
use uuid::Uuid;

use crate::corpus::Document;

/// As many as the service applies at once.
const DOCUMENTS_PER_BATCH: usize = 100;

/// The workspace of all documents.
pub(crate) const WORKSPACE: Uuid = Uuid::from_u128(1);

/// An index that is being filled.
pub(crate) struct Filling {
    pub(crate) index: Index,
    pub(crate) embedder: StaticRows,
    documents: u128,
    pub(crate) chunks: usize,
    pub(crate) cpu: Duration,
}

impl Filling {
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        let embedder = StaticRows::open()?;
        let index = Index::open(folder, embedder.name(), embedder.dimensions())?;
        Ok(Self { index, embedder, documents: 0, chunks: 0, cpu: Duration::ZERO })
    }

    /// Adds the documents, each as one more, up to that many chunks in all; counts the CPU time of this process.
    pub(crate) async fn add(&mut self, documents: &[Document], up_to: usize) -> anyhow::Result<()> {
        let started = ProcessTime::now();
        for batch in documents.chunks(DOCUMENTS_PER_BATCH) {
            let mut prepared = Vec::with_capacity(batch.len());
            for document in batch {
                if self.chunks >= up_to {
                    break;
                }
                let number = self.documents + 1;
                let document = prepare(&self.embedder, document, number);
                self.documents = number;
                self.chunks += document.chunks.len();
                prepared.push(document);
            }
            if prepared.is_empty() {
                break;
            }
            self.index.apply(Batch { documents: prepared, ..Batch::default() })?;
        }
        self.cpu += started.elapsed();
        Ok(())
    }

    pub(crate) async fn vector(&self, text: &str) -> anyhow::Result<Vec<f32>> {
        Ok(self.embedder.embed(TextKind::Query, &[text]).await?.pop().unwrap_or_default())
    }
}

/// What the index takes of a document.
pub(crate) fn prepare(embedder: &StaticRows, document: &Document, number: u128) -> IndexedDocument {
    let chunks = chunk::split(Format::Markdown, &document.text);
    let texts: Vec<String> = chunks.iter().map(|chunk| chunk::index_text(&document.name, chunk)).collect();
    let embedded = texts.iter().map(|text| embedder.embed_with_pieces(text));
    let chunks = chunks.into_iter().zip(embedded).map(|(chunk, (embedding, pieces))| IndexedChunk {
        text: chunk.text,
        heading_path: chunk.heading_path,
        table_header: chunk.table_header,
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        embedding,
        pieces,
    });
    IndexedDocument {
        workspace: WORKSPACE,
        // Spread as the real ones are.
        document: Uuid::from_u128(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)),
        container: None,
        holder: None,
        kind: "FILE".to_owned(),
        title: chunk::stem(&document.name).to_owned(),
        path: document.name.clone(),
        tags: Vec::new(),
        language: words::detect(&document.text),
        content_hash: "0".repeat(71),
        updated_at: 0,
        chunks: chunks.collect(),
    }
}
