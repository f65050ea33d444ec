//! The index proposes, the owner disposes: before a result leaves, its owner confirms it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{self as proto, CoverageNote};
use uuid::Uuid;

use super::rank::Ranking;
use super::request::SearchRequest;
use super::{Searcher, answer};
use crate::error::Error;
use crate::index::{ChunkId, StoredChunk};

/// Chunks that are confirmed in one go: the largest page and a margin for what its owner holds back.
const CHUNKS_A_ROUND: usize = 64;

impl Searcher {
    /// The best confirmed results, and notes for what is missing among them.
    pub(super) async fn confirmed_results(
        &self,
        workspace: WorkspaceId,
        call: &Call,
        request: &SearchRequest,
        ranking: Ranking,
    ) -> Result<(Vec<proto::Result>, Vec<CoverageNote>), Error> {
        let hits = ranking.by_chunk();
        let wanted: Vec<ChunkId> = ranking
            .hits
            .iter()
            .filter(|hit| f64::from(hit.score) >= request.min_score)
            .map(|hit| hit.chunk)
            .collect();
        let mut page = answer::Page::new(request);
        let mut outdated = HashSet::new();
        for round in wanted.chunks(CHUNKS_A_ROUND) {
            let chunks = self.stored(workspace, round.to_vec()).await?;
            let confirmed = self.confirm(call, &chunks).await?;
            for chunk in chunks {
                let (Some(document), Some(hit)) = (confirmed.get(&chunk.id.document), hits.get(&chunk.id))
                else {
                    continue;
                };
                if document.content_hash != chunk.content_hash {
                    // Its lines were counted in a text that is no longer there.
                    outdated.insert(chunk.id.document);
                    continue;
                }
                let trace = request.explain.then(|| ranking.trace(hit));
                page.push(answer::result(chunk, document, hit.score, trace));
                if page.is_full() {
                    return Ok(page.finish(outdated.len()));
                }
            }
        }
        Ok(page.finish(outdated.len()))
    }

    async fn stored(&self, workspace: WorkspaceId, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        let index = Arc::clone(&self.index);
        let read = tokio::task::spawn_blocking(move || index.chunks(workspace.0, &ids));
        Ok(read.await??)
    }

    /// The confirmed documents of these chunks; what is missing is trashed, foreign or out of scope.
    async fn confirm(
        &self,
        call: &Call,
        chunks: &[StoredChunk],
    ) -> Result<HashMap<Uuid, ConfirmedDocument>, Error> {
        let mut by_feed: HashMap<&'static str, HashMap<Uuid, DocumentRef>> = HashMap::new();
        for chunk in chunks {
            let kind = Kind::from_str_name(&chunk.kind).unwrap_or_default();
            let reference = DocumentRef { kind: kind.into(), id: chunk.id.document.hyphenated().to_string() };
            by_feed.entry(feed_of(kind)).or_default().insert(chunk.id.document, reference);
        }
        let mut confirmed = HashMap::new();
        for (feed, refs) in by_feed {
            let owner = self.indexer.owner(feed).ok_or(Error::Answer("no owner is known for a document"))?;
            for document in owner.confirm(call, refs.into_values().collect()).await? {
                let id = document.r#ref.as_ref().and_then(|reference| Uuid::try_parse(&reference.id).ok());
                confirmed.extend(id.map(|id| (id, document)));
            }
        }
        Ok(confirmed)
    }
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
