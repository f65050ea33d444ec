//! `cairn.content.v1.LocationService`.

use cairn_chassis::identity::Verifier;
use cairn_proto::content::v1::location_service_server::{LocationService, LocationServiceServer};
use cairn_proto::content::v1::{LocateItemRequest, LocateItemResponse};
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
    async fn locate_item(
        &self,
        request: Request<LocateItemRequest>,
    ) -> Result<Response<LocateItemResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.user_id()?;
        let asked = request.get_ref();
        let found = self.locations.locate(asked.kind(), &asked.item_id, &asked.workspace_ids).await?;
        Ok(Response::new(LocateItemResponse { workspace_id: found.to_string() }))
    }
}
