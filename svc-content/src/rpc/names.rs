//! `cairn.content.v1.NameService`.

use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::content::v1::name_service_server::{NameService, NameServiceServer};
use cairn_proto::content::v1::{self as proto, FindNamesRequest, FindNamesResponse};
use tonic::{Request, Response, Status};

use super::authorize;
use crate::names::{Finder, NamedItem};

pub(crate) fn server(finder: Finder, verifier: Verifier) -> NameServiceServer<Rpc> {
    NameServiceServer::new(Rpc { finder, verifier })
}

#[derive(Debug)]
pub(crate) struct Rpc {
    finder: Finder,
    verifier: Verifier,
}

#[tonic::async_trait]
impl NameService for Rpc {
    async fn find_names(
        &self,
        request: Request<FindNamesRequest>,
    ) -> Result<Response<FindNamesResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let found = self.finder.find(&caller, &asked.query, asked.limit).await?;
        let items = found.items.into_iter().map(encode).collect();
        Ok(Response::new(FindNamesResponse { items, is_part: found.is_part }))
    }
}

fn encode(item: NamedItem) -> proto::NamedItem {
    proto::NamedItem { kind: item.kind.into(), id: item.id.to_string(), name: item.name, path: item.path }
}
