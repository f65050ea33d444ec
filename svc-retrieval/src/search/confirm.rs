//! The index proposes, the owner disposes: the owner confirms every result before it is returned.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_index::{ChunkId, StoredChunk};
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use futures::future::try_join_all;
use uuid::Uuid;

use crate::error::Error;
use crate::generations::Generation;
use crate::kinds;

/// Confirmed documents.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    /// The documents that exist and are in scope.
    documents: HashMap<Uuid, Arc<ConfirmedDocument>>,
    /// Documents whose owner does not answer now: they are left out, too.
    pub(crate) unanswered: HashSet<Uuid>,
}

impl Confirmed {
    /// A document; `None` for one that is trashed, foreign, out of scope or not confirmed.
    pub(crate) fn get(&self, id: Uuid) -> Option<&Arc<ConfirmedDocument>> {
        self.documents.get(&id)
    }
}

impl IntoIterator for Confirmed {
    type Item = (Uuid, Arc<ConfirmedDocument>);
    type IntoIter = std::collections::hash_map::IntoIter<Uuid, Arc<ConfirmedDocument>>;

    fn into_iter(self) -> Self::IntoIter {
        self.documents.into_iter()
    }
}

/// The given chunks in the given order, without those that the index no longer has.
pub(crate) async fn stored(
    generation: &Generation,
    workspace: WorkspaceId,
    ids: Vec<ChunkId>,
) -> Result<Vec<StoredChunk>, Error> {
    Ok(generation.engine.chunks(workspace.0, ids).await?)
}

/// The confirmed documents of these chunks.
pub(crate) async fn confirm(
    generation: &Generation,
    call: &Call,
    chunks: &[StoredChunk],
) -> Result<Confirmed, Error> {
    let documents = chunks.iter().map(|chunk| (kinds::of_chunk(chunk), chunk.id.document));
    confirm_documents(generation, call, documents).await
}

/// Those of the documents that exist and are in the caller's scope. One call for each owner, concurrently.
pub(super) async fn confirm_documents(
    generation: &Generation,
    call: &Call,
    documents: impl Iterator<Item = (Kind, Uuid)>,
) -> Result<Confirmed, Error> {
    let mut by_feed: HashMap<Feed, HashMap<Uuid, DocumentRef>> = HashMap::new();
    for (kind, document) in documents {
        let reference = DocumentRef { kind: kind.into(), id: document.hyphenated().to_string() };
        by_feed.entry(kinds::feed_of(kind)).or_default().insert(document, reference);
    }
    let asked = by_feed.into_iter().map(|(feed, refs)| async move {
        let owner =
            generation.indexer.owner(feed).ok_or(Error::Answer("no owner is known for a document"))?;
        let (ids, refs): (Vec<Uuid>, Vec<DocumentRef>) = refs.into_iter().unzip();
        Ok::<_, Error>((ids, owner.confirm(call, refs).await?))
    });
    let mut confirmed = Confirmed::default();
    for (ids, answer) in try_join_all(asked).await? {
        let Some(documents) = answer else {
            confirmed.unanswered.extend(ids);
            continue;
        };
        for document in documents {
            let id = document.r#ref.as_ref().and_then(|reference| Uuid::try_parse(&reference.id).ok());
            confirmed.documents.extend(id.map(|id| (id, Arc::new(document))));
        }
    }
    Ok(confirmed)
}
