//! Turns a request into ranked, cited evidence (spec 2.6, 4.4).

mod answer;
mod confirm;
pub mod fusion;
mod rank;
mod request;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::{Identity, Scope};
use cairn_proto::content::v1::ResolveScopeRequest;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{CoverageNote, SearchContextResponse};
use uuid::Uuid;

pub use self::request::{Mode, SearchRequest, Strategy, Subquery, SubqueryKind};

use crate::embed::Embedder;
use crate::error::Error;
use crate::index::Engine;
use crate::indexing::Indexer;

/// Answers searches; cheap to clone.
#[derive(Debug, Clone)]
pub struct Searcher {
    index: Arc<dyn Engine>,
    embedder: Arc<dyn Embedder>,
    indexer: Indexer,
    content: ServiceChannel,
}

impl Searcher {
    /// A searcher over the index that the indexer keeps; `content` resolves folder scopes.
    pub fn new(
        index: Arc<dyn Engine>,
        embedder: Arc<dyn Embedder>,
        indexer: Indexer,
        content: ServiceChannel,
    ) -> Self {
        Self { index, embedder, indexer, content }
    }

    /// Ranked evidence of the identity's workspace, confirmed by its owners for the identity's scope.
    ///
    /// # Errors
    /// FORBIDDEN for an identity without a workspace; UNAVAILABLE when an owner cannot confirm.
    pub async fn search(
        &self,
        identity: &Identity,
        call: &Call,
        request: SearchRequest,
    ) -> Result<SearchContextResponse, Error> {
        let workspace = identity.workspace_id()?;
        let mut coverage = self.catch_up(workspace, &request).await;
        if !request.source_ids.is_empty() {
            coverage.extend(request.source_ids.iter().map(|id| answer::source_not_connected(id)));
            return Ok(answer::response(Vec::new(), coverage, request.mode));
        }
        let containers = self.scope(identity, call).await?;
        let request = Arc::new(request);
        let ranking = self.rank(workspace, containers, Arc::clone(&request)).await?;
        let (results, notes) = self.confirmed_results(workspace, call, &request, ranking).await?;
        coverage.extend(notes);
        Ok(answer::response(results, coverage, request.mode))
    }

    /// Waits for the writes that the caller must see; says so when it could not, or when the index is known to lag.
    async fn catch_up(&self, workspace: WorkspaceId, request: &SearchRequest) -> Vec<CoverageNote> {
        let reached = tokio::time::timeout(request.max_wait, self.reach_all(workspace, request)).await;
        match reached {
            Ok(true) => {}
            Ok(false) | Err(_) => return vec![answer::index_behind_write()],
        }
        match self.indexer.lag(workspace) {
            0 => Vec::new(),
            lag => vec![answer::index_lags(lag)],
        }
    }

    async fn reach_all(&self, workspace: WorkspaceId, request: &SearchRequest) -> bool {
        for after in &request.after {
            let Some(owner) = self.indexer.owner(&after.feed) else {
                return false;
            };
            match self.indexer.reach(owner, workspace, after.position).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    tracing::warn!(%workspace, %error, "the index cannot reach a write that a search waits for");
                    return false;
                }
            }
        }
        true
    }

    /// The folders that the identity may see; `None` for all.
    async fn scope(&self, identity: &Identity, call: &Call) -> Result<Option<HashSet<Uuid>>, Error> {
        if identity.scope == Scope::All {
            return Ok(None);
        }
        let mut folders =
            FolderServiceClient::new(self.content.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let scope = folders.resolve_scope(call.request(ResolveScopeRequest {})).await?.into_inner();
        if scope.whole_workspace {
            return Ok(None);
        }
        Ok(Some(scope.folder_ids.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect()))
    }

    async fn rank(
        &self,
        workspace: WorkspaceId,
        containers: Option<HashSet<Uuid>>,
        request: Arc<SearchRequest>,
    ) -> Result<rank::Ranking, Error> {
        let index = Arc::clone(&self.index);
        let embedder = Arc::clone(&self.embedder);
        let runtime = tokio::runtime::Handle::current();
        let ranked = tokio::task::spawn_blocking(move || {
            let vectors = runtime.block_on(rank::embed_queries(&request, embedder.as_ref()))?;
            rank::rank(index.as_ref(), workspace, containers.as_ref(), &request, &vectors)
        });
        ranked.await?
    }
}

/// How long a search waits for a write when the caller does not say (contract, "Consistency token").
pub const DEFAULT_WAIT: Duration = Duration::from_secs(2);
/// The longest that a caller may ask for.
pub const MAX_WAIT: Duration = Duration::from_secs(10);
