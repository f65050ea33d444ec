//! OidcService.

use std::sync::Arc;

use cairn_proto::auth::v1::oidc_service_server::OidcService;
use cairn_proto::auth::v1::{
    BeginSignInRequest, BeginSignInResponse, FinishSignInRequest, FinishSignInResponse, GetProviderRequest,
    GetProviderResponse,
};
use tonic::{Request, Response, Status};

use super::source;
use crate::oidc as rules;
use crate::sessions::Device;

#[derive(Debug)]
pub(super) struct Oidc {
    pub(super) rules: Arc<rules::Oidc>,
}

#[tonic::async_trait]
impl OidcService for Oidc {
    async fn get_provider(
        &self,
        _: Request<GetProviderRequest>,
    ) -> Result<Response<GetProviderResponse>, Status> {
        Ok(Response::new(GetProviderResponse { name: self.rules.name().map(ToOwned::to_owned) }))
    }

    async fn begin_sign_in(
        &self,
        request: Request<BeginSignInRequest>,
    ) -> Result<Response<BeginSignInResponse>, Status> {
        let message = request.get_ref();
        let begun = self.rules.begin(&message.redirect_uri, &message.return_to).await?;
        Ok(Response::new(BeginSignInResponse {
            authorization_url: begun.authorization_url,
            ticket: begun.ticket.text().to_owned(),
            expires_at: Some(begun.ticket.expires_at().to_proto()),
        }))
    }

    /// The ticket and the provider's response are the credentials.
    async fn finish_sign_in(
        &self,
        request: Request<FinishSignInRequest>,
    ) -> Result<Response<FinishSignInResponse>, Status> {
        let FinishSignInRequest { ticket, state, code, redirect_uri, source_address, agent } =
            request.into_inner();
        let attempt = rules::Attempt { ticket, state, code, redirect_uri };
        let device = Device::new(&agent, source(source_address.as_deref()));
        let (signed_in, return_to) = self.rules.finish(&device, &attempt).await?;
        Ok(Response::new(FinishSignInResponse {
            session_secret: signed_in.secret,
            expires_at: Some(signed_in.expires_at.to_proto()),
            return_to,
        }))
    }
}
