//! The index proposes, the owner disposes: before a result leaves, its owner confirms it.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_index::{ChunkId, StoredChunk};
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use crate::error::Error;
use crate::generations::Generation;

/// The given chunks in the given order, without those that the index no longer holds.
pub(crate) async fn stored(
    generation: &Generation,
    workspace: WorkspaceId,
    ids: Vec<ChunkId>,
) -> Result<Vec<StoredChunk>, Error> {
    let index = Arc::clone(&generation.engine);
    let read = tokio::task::spawn_blocking(move || index.chunks(workspace.0, &ids));
    Ok(read.await??)
}

/// The confirmed documents of these chunks; what is missing is trashed, foreign or out of scope.
pub(crate) async fn confirm(
    generation: &Generation,
    call: &Call,
    chunks: &[StoredChunk],
) -> Result<HashMap<Uuid, Arc<ConfirmedDocument>>, Error> {
    let documents = chunks.iter().map(|chunk| (kind_of(chunk), chunk.id.document));
    confirm_documents(generation, call, documents).await
}

/// Those of the documents that live and are in the caller's scope.
pub(super) async fn confirm_documents(
    generation: &Generation,
    call: &Call,
    documents: impl Iterator<Item = (Kind, Uuid)>,
) -> Result<HashMap<Uuid, Arc<ConfirmedDocument>>, Error> {
    let mut by_feed: HashMap<&'static str, HashMap<Uuid, DocumentRef>> = HashMap::new();
    for (kind, document) in documents {
        let reference = DocumentRef { kind: kind.into(), id: document.hyphenated().to_string() };
        by_feed.entry(feed_of(kind)).or_default().insert(document, reference);
    }
    let mut confirmed = HashMap::new();
    for (feed, refs) in by_feed {
        let owner =
            generation.indexer.owner(feed).ok_or(Error::Answer("no owner is known for a document"))?;
        for document in owner.confirm(call, refs.into_values().collect()).await? {
            let id = document.r#ref.as_ref().and_then(|reference| Uuid::try_parse(&reference.id).ok());
            confirmed.extend(id.map(|id| (id, Arc::new(document))));
        }
    }
    Ok(confirmed)
}

/// What the document of a chunk is to its owner.
pub(crate) fn kind_of(chunk: &StoredChunk) -> Kind {
    Kind::from_str_name(&chunk.kind).unwrap_or_default()
}

/// The feed of the service that owns documents of that kind.
fn feed_of(kind: Kind) -> &'static str {
    match kind {
        Kind::SourceDocument | Kind::Ingested => "ingest",
        Kind::File | Kind::Folder | Kind::Memory | Kind::Database | Kind::Record | Kind::Unspecified => {
            "content"
        }
    }
}
