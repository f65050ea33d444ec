//! IndexService.

use cairn_chassis::identity::{Permission, Scope};
use cairn_index::Counts;
use cairn_proto::retrieval::v1::index_service_server::IndexService;
use cairn_proto::retrieval::v1::{
    self as proto, GetIndexStatusRequest, GetIndexStatusResponse, Holdings, IndexedFeed,
};
use tonic::{Request, Response, Status};

use crate::Service;
use crate::error::Error;
use crate::generations::Rebuilding;
use crate::indexing::Progress;

#[tonic::async_trait]
impl IndexService for Service {
    async fn get_index_status(
        &self,
        request: Request<GetIndexStatusRequest>,
    ) -> Result<Response<GetIndexStatusResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let workspace = identity.workspace_id()?;
        let generation = self.generations().current();
        let holdings = match identity.scope {
            Scope::All => {
                let counted = generation.engine.counts(workspace.0).await.map_err(Error::from)?;
                Some(encode_counts(counted))
            }
            Scope::Folders(_) => None,
        };
        Ok(Response::new(GetIndexStatusResponse {
            feeds: generation.indexer.progress(workspace).into_iter().map(encode_progress).collect(),
            holdings,
            embedder: generation.embedder().to_owned(),
            rebuilding: self.generations().rebuilding().map(encode_rebuilding),
            not_embedded: generation.indexer.not_embedded(workspace),
        }))
    }
}

fn encode_progress(progress: Progress) -> IndexedFeed {
    IndexedFeed {
        feed: progress.feed.as_str().to_owned(),
        position: progress.position,
        behind: progress.behind,
    }
}

fn encode_counts(counts: Counts) -> Holdings {
    Holdings { documents: counts.documents, chunks: counts.chunks }
}

fn encode_rebuilding(rebuilding: Rebuilding) -> proto::Rebuilding {
    proto::Rebuilding { embedder: rebuilding.embedder, behind: rebuilding.behind }
}
