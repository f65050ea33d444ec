//! `cairn.ingest.v1.LocationService`.

use cairn_chassis::identity::Verifier;
use cairn_proto::ingest::v1::location_service_server::{LocationService, LocationServiceServer};
use cairn_proto::ingest::v1::{LocateDocumentRequest, LocateDocumentResponse};
use tonic::{Request, Response, Status};

use crate::locations::Locations;

pub(crate) fn server(locations: Locations, verifier: Verifier) -> LocationServiceServer<Rpc> {
    LocationServiceServer::new(Rpc { locations, verifier })
}

#[derive(Debug)]
pub(crate) struct Rpc {
    locations: Locations,
    verifier: Verifier,
}

#[tonic::async_trait]
impl LocationService for Rpc {
    async fn locate_document(
        &self,
        request: Request<LocateDocumentRequest>,
    ) -> Result<Response<LocateDocumentResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.user_id()?;
        let asked = request.get_ref();
        let (workspace, kind) = self.locations.locate(&asked.document_id, &asked.workspace_ids).await?;
        Ok(Response::new(LocateDocumentResponse { workspace_id: workspace.to_string(), kind: kind.into() }))
    }
}
