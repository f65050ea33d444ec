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
        let (mut ingested, mut of_sources) = (Vec::new(), Vec::new());
        for (kind, outcome) in asked.documents.into_iter().filter_map(decode) {
            match kind {
                Kind::Ingested => ingested.push(outcome),
                Kind::SourceDocument => of_sources.push(outcome),
                // Not a kind of this service.
                Kind::Unspecified
                | Kind::File
                | Kind::Folder
                | Kind::Memory
                | Kind::Database
                | Kind::Record => {}
            }
        }
        self.indexing.acknowledge(&asked.workspace_id, ingested).await?;
        self.indexing.acknowledge_of_sources(&asked.workspace_id, of_sources).await?;
        Ok(Response::new(AckDocumentsResponse {}))
    }
}

fn decode(told: IndexedDocument) -> Option<(Kind, Outcome)> {
    let (kind, id) = decode_ref(told.r#ref?).key()?;
    let IndexedDocument { content_hash, chunks, failure, .. } = told;
    Some((kind, Outcome { id, content_hash, chunks, failure }))
}
