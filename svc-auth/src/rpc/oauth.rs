//! OauthService.

use std::sync::Arc;

use cairn_chassis::identity::{Permission, PermissionSet, Verifier};
use cairn_proto::auth::v1::oauth_service_server::OauthService;
use cairn_proto::auth::v1::{
    AccessTokenDoor, AuthorizationRequest, AuthorizeRequest, AuthorizeResponse, CheckAuthorizationRequest,
    CheckAuthorizationResponse, ClientProof, ExchangeAccessTokenRequest, ExchangeAccessTokenResponse,
    OauthRefusal, RedeemCodeRequest, RedeemCodeResponse, RedeemRefreshTokenRequest,
    RedeemRefreshTokenResponse, RegisterClientRequest, RegisterClientResponse, RevokeTokenRequest,
    RevokeTokenResponse, TokenSet,
};
use tonic::{Request, Response, Status};

use super::{user, workspace_id};
use crate::oauth::{
    self as rules, AuthorizationParams, CheckedAuthorization, CodeAttempt, Consent, Door, Proof,
    RefreshAttempt, Registration,
};

#[derive(Debug)]
pub(super) struct Oauth {
    pub(super) clients: Arc<rules::Clients>,
    pub(super) authorizations: Arc<rules::Authorizations>,
    pub(super) tokens: Arc<rules::Tokens>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl OauthService for Oauth {
    async fn register_client(
        &self,
        request: Request<RegisterClientRequest>,
    ) -> Result<Response<RegisterClientResponse>, Status> {
        let registered = self.clients.register(registration(request.into_inner())).await?;
        Ok(Response::new(RegisterClientResponse {
            client_id: registered.client.id,
            client_secret: registered.secret,
            issued_at: Some(registered.issued_at.to_proto()),
            client_name: registered.client.name,
            redirect_uris: registered.client.redirect_uris,
            token_endpoint_auth_method: registered.auth_method,
        }))
    }

    /// Anybody may call; a signed-in user may trigger a fetch of client metadata.
    async fn check_authorization(
        &self,
        request: Request<CheckAuthorizationRequest>,
    ) -> Result<Response<CheckAuthorizationResponse>, Status> {
        let is_signed_in = user(&self.verifier, request.metadata()).await.is_ok();
        let params = params(request.into_inner().authorization.unwrap_or_default());
        let checked = self.authorizations.check(&params, is_signed_in).await?;
        let first_sign_in = || CheckAuthorizationResponse { sign_in_first: true, ..Default::default() };
        Ok(Response::new(checked.map_or_else(first_sign_in, encode_checked)))
    }

    async fn authorize(
        &self,
        request: Request<AuthorizeRequest>,
    ) -> Result<Response<AuthorizeResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.into_inner();
        let workspace = workspace_id(&message.workspace_id)?;
        let permissions: PermissionSet =
            message.permissions.into_iter().filter_map(Permission::from_number).collect();
        let consent = Consent { user, workspace, permissions };
        let params = params(message.authorization.unwrap_or_default());
        let (code, redirect_uri) = self.authorizations.authorize(&params, &consent).await?;
        Ok(Response::new(AuthorizeResponse { code, redirect_uri }))
    }

    async fn redeem_code(
        &self,
        request: Request<RedeemCodeRequest>,
    ) -> Result<Response<RedeemCodeResponse>, Status> {
        let message = request.into_inner();
        let attempt = CodeAttempt {
            code: message.code,
            redirect_uri: message.redirect_uri,
            code_verifier: message.code_verifier,
            resources: message.resources,
            base_url: message.base_url,
        };
        let tokens = self.tokens.redeem_code(&proof(message.client), &attempt).await?;
        Ok(Response::new(RedeemCodeResponse { tokens: Some(encode_tokens(tokens)) }))
    }

    async fn redeem_refresh_token(
        &self,
        request: Request<RedeemRefreshTokenRequest>,
    ) -> Result<Response<RedeemRefreshTokenResponse>, Status> {
        let message = request.into_inner();
        let attempt = RefreshAttempt {
            refresh_token: message.refresh_token,
            scope: message.scope,
            resources: message.resources,
            base_url: message.base_url,
        };
        let tokens = self.tokens.refresh(&proof(message.client), &attempt).await?;
        Ok(Response::new(RedeemRefreshTokenResponse { tokens: Some(encode_tokens(tokens)) }))
    }

    async fn revoke_token(
        &self,
        request: Request<RevokeTokenRequest>,
    ) -> Result<Response<RevokeTokenResponse>, Status> {
        let message = request.into_inner();
        self.tokens.revoke(&proof(message.client), &message.token).await?;
        Ok(Response::new(RevokeTokenResponse {}))
    }

    async fn exchange_access_token(
        &self,
        request: Request<ExchangeAccessTokenRequest>,
    ) -> Result<Response<ExchangeAccessTokenResponse>, Status> {
        let message = request.get_ref();
        let door = match message.door() {
            AccessTokenDoor::Unspecified | AccessTokenDoor::Mcp => Door::Mcp,
            AccessTokenDoor::Api => Door::Api,
        };
        let issued = self.tokens.exchange(&message.access_token, &message.base_url, door).await?;
        let expires_at = Some(issued.expires_at.to_proto());
        Ok(Response::new(ExchangeAccessTokenResponse { identity: issued.identity, expires_at }))
    }
}

fn registration(message: RegisterClientRequest) -> Registration {
    Registration {
        name: message.client_name,
        redirect_uris: message.redirect_uris,
        auth_method: message.token_endpoint_auth_method,
        grant_types: message.grant_types,
        response_types: message.response_types,
    }
}

fn params(message: AuthorizationRequest) -> AuthorizationParams {
    AuthorizationParams {
        client_id: message.client_id,
        redirect_uri: message.redirect_uri,
        response_type: message.response_type,
        scope: message.scope,
        resources: message.resources,
        code_challenge: message.code_challenge,
        code_challenge_method: message.code_challenge_method,
        base_url: message.base_url,
    }
}

fn proof(message: Option<ClientProof>) -> Proof {
    let ClientProof { client_id, client_secret } = message.unwrap_or_default();
    Proof { client_id, secret: client_secret }
}

fn encode_checked(checked: CheckedAuthorization) -> CheckAuthorizationResponse {
    let (permissions, refusal) = match checked.requested {
        Ok(requested) => (requested.permissions.numbers(), None),
        Err(no) => {
            let error = no.code.as_str().to_owned();
            (Vec::new(), Some(OauthRefusal { error, description: no.description }))
        }
    };
    CheckAuthorizationResponse {
        sign_in_first: false,
        client_name: checked.client.name,
        redirect_uri: checked.redirect_uri,
        redirect_host: checked.redirect_host,
        is_loopback: checked.is_loopback,
        permissions,
        refusal,
    }
}

fn encode_tokens(tokens: rules::TokenSet) -> TokenSet {
    TokenSet {
        access_token: tokens.access_token,
        expires_at: Some(tokens.expires_at.to_proto()),
        refresh_token: tokens.refresh_token,
        permissions: tokens.permissions.numbers(),
    }
}
