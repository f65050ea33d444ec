//! `cairn.ingest.v1.IndexingService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::Verifier;
use cairn_proto::ingest::v1::indexing_service_server::{IndexingService, IndexingServiceServer};
use cairn_proto::ingest::v1::{AckDocumentsRequest, AckDocumentsResponse, IndexedDocument};
use tonic::{Request, Response, Status};

use super::decode_ref;
use crate::indexing::Indexing;
use crate::model::Outcome;

pub(crate) fn server(indexing: Indexing, verifier: Verifier) -> IndexingServiceServer<Rpc> {
    IndexingServiceServer::new(Rpc { indexing, verifier }).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    indexing: Indexing,
    verifier: Verifier,
}

#[tonic::async_trait]
impl IndexingService for Rpc {
    async fn ack_documents(
        &self,
        request: Request<AckDocumentsRequest>,
    ) -> Result<Response<AckDocumentsResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let outcomes = asked.documents.into_iter().filter_map(decode).collect();
        self.indexing.acknowledge(&asked.workspace_id, outcomes).await?;
        Ok(Response::new(AckDocumentsResponse {}))
    }
}

/// What is no ingested document is nobody's here.
fn decode(told: IndexedDocument) -> Option<Outcome> {
    let (kind, id) = decode_ref(told.r#ref?).key()?;
    (kind == Kind::Ingested).then_some(Outcome {
        id,
        content_hash: told.content_hash,
        chunks: told.chunks,
        failure: told.failure,
    })
}
