//! The index proposes, the owner disposes: before a result leaves, its owner confirms it.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_index::{ChunkId, StoredChunk};
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use crate::error::Error;
use crate::generations::Generation;
use crate::kinds;

/// The given chunks in the given order, without those that the index no longer holds.
pub(crate) async fn stored(
    generation: &Generation,
    workspace: WorkspaceId,
    ids: Vec<ChunkId>,
) -> Result<Vec<StoredChunk>, Error> {
    Ok(generation.engine.chunks(workspace.0, ids).await?)
}

/// The confirmed documents of these chunks; what is missing is trashed, foreign or out of scope.
pub(crate) async fn confirm(
    generation: &Generation,
    call: &Call,
    chunks: &[StoredChunk],
) -> Result<HashMap<Uuid, Arc<ConfirmedDocument>>, Error> {
    let documents = chunks.iter().map(|chunk| (kinds::of_chunk(chunk), chunk.id.document));
    confirm_documents(generation, call, documents).await
}

/// Those of the documents that live and are in the caller's scope.
pub(super) async fn confirm_documents(
    generation: &Generation,
    call: &Call,
    documents: impl Iterator<Item = (Kind, Uuid)>,
) -> Result<HashMap<Uuid, Arc<ConfirmedDocument>>, Error> {
    let mut by_feed: HashMap<Feed, HashMap<Uuid, DocumentRef>> = HashMap::new();
    for (kind, document) in documents {
        let reference = DocumentRef { kind: kind.into(), id: document.hyphenated().to_string() };
        by_feed.entry(kinds::feed_of(kind)).or_default().insert(document, reference);
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
