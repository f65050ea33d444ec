//! `cairn.content.v1.UsageService`.

use cairn_chassis::identity::Verifier;
use cairn_proto::content::v1::usage_service_server::{UsageService, UsageServiceServer};
use cairn_proto::content::v1::{
    self as proto, GetStorageRequest, GetStorageResponse, GetUsageRequest, GetUsageResponse,
};
use tonic::{Request, Response, Status};

use crate::scope::Caller;
use crate::usage::{Accounts, Measure};

pub(crate) fn server(accounts: Accounts, verifier: Verifier) -> UsageServiceServer<Rpc> {
    UsageServiceServer::new(Rpc { accounts, verifier })
}

#[derive(Debug)]
pub(crate) struct Rpc {
    accounts: Accounts,
    verifier: Verifier,
}

#[tonic::async_trait]
impl UsageService for Rpc {
    async fn get_usage(
        &self,
        request: Request<GetUsageRequest>,
    ) -> Result<Response<GetUsageResponse>, Status> {
        // About the workspace, not its contents: every identity of it may know.
        let caller = Caller::try_from(self.verifier.authenticate(request.metadata()).await?)?;
        let account = self.accounts.get(&caller).await?;
        let (files, storage_bytes) = (Some(encode(account.files)), Some(encode(account.bytes)));
        Ok(Response::new(GetUsageResponse { files, storage_bytes }))
    }

    async fn get_storage(
        &self,
        request: Request<GetStorageRequest>,
    ) -> Result<Response<GetStorageResponse>, Status> {
        // Like the usage of a limit.
        let caller = Caller::try_from(self.verifier.authenticate(request.metadata()).await?)?;
        let stored = self.accounts.stored(&caller).await?;
        Ok(Response::new(GetStorageResponse {
            files_bytes: stored.files,
            assets_bytes: stored.assets,
            records_bytes: stored.records,
        }))
    }
}

const fn encode(measure: Measure) -> proto::Measure {
    proto::Measure { used: measure.used, limit: measure.limit }
}
