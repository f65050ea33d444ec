//! IndexService.

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Permission, Scope};
use cairn_index::Counts;
use cairn_proto::domain::DocumentState;
use cairn_proto::retrieval::v1::index_service_server::IndexService;
use cairn_proto::retrieval::v1::{
    self as proto, BatchGetDocumentStatesRequest, BatchGetDocumentStatesResponse, GetDocumentStatusRequest,
    GetDocumentStatusResponse, GetIndexStatusRequest, GetIndexStatusResponse, Holdings, IndexedFeed,
    StateOfDocument,
};
use tonic::{Request, Response, Status};

use crate::Service;
use crate::error::Error;
use crate::generations::Rebuilding;
use crate::indexing::Progress;
use crate::search::state::State;
use crate::search::stored_document::StoredDocument;

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

    async fn get_document_status(
        &self,
        request: Request<GetDocumentStatusRequest>,
    ) -> Result<Response<GetDocumentStatusResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let call = Call::from_metadata(request.metadata());
        let asked = request.into_inner();
        let (kind, id) = (asked.kind(), asked.id.as_str());
        let freshness = (asked.after.as_slice(), asked.max_wait.as_ref());
        let (content_hash, state) = self.searcher().state_of(&identity, &call, (kind, id), freshness).await?;
        Ok(Response::new(encode_state(content_hash, state)))
    }

    async fn batch_get_document_states(
        &self,
        request: Request<BatchGetDocumentStatesRequest>,
    ) -> Result<Response<BatchGetDocumentStatesResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require(Permission::Read)?;
        let call = Call::from_metadata(request.metadata());
        let asked = request.into_inner();
        let states = self.searcher().states_of(&identity, &call, asked.kind(), &asked.ids).await?;
        let documents = states
            .into_iter()
            .map(|(id, state)| StateOfDocument { id: id.hyphenated().to_string(), state: state.into() });
        Ok(Response::new(BatchGetDocumentStatesResponse { documents: documents.collect() }))
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
    let percent = rebuilding.percent();
    proto::Rebuilding { embedder: rebuilding.embedder, behind: rebuilding.behind, percent }
}

fn encode_state(content_hash: String, state: State) -> GetDocumentStatusResponse {
    let answer = |state: DocumentState| GetDocumentStatusResponse {
        state: state.into(),
        content_hash: content_hash.clone(),
        ..GetDocumentStatusResponse::default()
    };
    let held = |state: DocumentState, held: StoredDocument| GetDocumentStatusResponse {
        indexed_hash: Some(held.content_hash),
        chunks: held.chunks,
        embedded: held.embedded,
        ..answer(state)
    };
    match state {
        State::Current(all) if all.embedded == all.chunks => held(DocumentState::Searchable, all),
        State::Current(some) => held(DocumentState::WordsOnly, some),
        State::Outdated(older) => held(DocumentState::Behind, older),
        State::Waiting => answer(DocumentState::Behind),
        State::Empty => answer(DocumentState::Empty),
        State::Failed(error) => {
            GetDocumentStatusResponse { error: Some(error.to_owned()), ..answer(DocumentState::Failed) }
        }
    }
}
