//! From an owner's documents to what the index takes: cut into chunks, each with its vector.

use cairn_chassis::clock::Timestamp;
use cairn_proto::document::v1::{Document, Format};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use crate::chunk::{self, Chunk};
use crate::embed::Embedder;
use crate::error::Error;
use crate::index::{IndexedChunk, IndexedDocument};

/// The documents in the form of the index, in their order.
pub(super) async fn documents(
    workspace: WorkspaceId,
    documents: Vec<Document>,
    embedder: &dyn Embedder,
) -> Result<Vec<IndexedDocument>, Error> {
    let mut prepared = Vec::with_capacity(documents.len());
    for document in documents {
        prepared.push(prepare(workspace, document, embedder).await?);
    }
    Ok(prepared)
}

async fn prepare(
    workspace: WorkspaceId,
    document: Document,
    embedder: &dyn Embedder,
) -> Result<IndexedDocument, Error> {
    let reference = document.r#ref.clone().ok_or(Error::Answer("a document has no reference"))?;
    let id = Uuid::try_parse(&reference.id).map_err(|_| Error::Answer("a document's id is not a UUID"))?;
    let container = document.folder_id.as_deref().and_then(|id| Uuid::try_parse(id).ok());
    let chunks = chunk::split(format(&document), &document.content);

    let texts: Vec<String> = chunks.iter().map(|chunk| chunk::index_text(&document.title, chunk)).collect();
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embeddings = embedder.embed(&borrowed).await?;

    Ok(IndexedDocument {
        workspace: workspace.0,
        document: id,
        container,
        kind: Kind::try_from(reference.kind).unwrap_or_default().as_str_name().to_owned(),
        title: chunk::stem(&document.title).to_owned(),
        content_hash: document.content_hash,
        version: 0,
        updated_at: document.updated_at.as_ref().map_or(0, |at| Timestamp::from_proto(at).as_micros()),
        chunks: chunks
            .into_iter()
            .zip(embeddings)
            .map(|(chunk, embedding)| indexed(chunk, embedding))
            .collect(),
    })
}

fn indexed(chunk: Chunk, embedding: Vec<f32>) -> IndexedChunk {
    IndexedChunk {
        text: chunk.text,
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
