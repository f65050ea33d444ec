//! TokenService.

use std::sync::Arc;

use cairn_chassis::call::{Call, Channel};
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Scope, Verifier};
use cairn_proto::auth::v1::token_service_server::TokenService;
use cairn_proto::auth::v1::{
    self as proto, CreateTokenRequest, CreateTokenResponse, DeleteTokenRequest, DeleteTokenResponse,
    ExchangeRequest, ExchangeResponse, IssueTokenViewRequest, IssueTokenViewResponse, ListTokensRequest,
    ListTokensResponse, UpdateTokenRequest, UpdateTokenResponse,
};
use cairn_proto::ids::TokenId;
use tonic::{Request, Response, Status};

use super::{user, workspace_id};
use crate::error::Error;
use crate::model::tokens::Token;
use crate::tokens::{self as rules, Draft, ViewTarget};

#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) rules: Arc<rules::Tokens>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl TokenService for Tokens {
    async fn exchange(
        &self,
        request: Request<ExchangeRequest>,
    ) -> Result<Response<ExchangeResponse>, Status> {
        let call = Call::from_metadata(request.metadata());
        let issued = self.rules.exchange(&request.get_ref().api_token, &call).await?;
        let expires_at = Some(issued.expires_at.to_proto());
        Ok(Response::new(ExchangeResponse { identity: issued.identity, expires_at }))
    }

    async fn list_tokens(
        &self,
        request: Request<ListTokensRequest>,
    ) -> Result<Response<ListTokensResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let workspace = workspace_id(&request.get_ref().workspace_id)?;
        let tokens = self.rules.list(user, workspace).await?;
        Ok(Response::new(ListTokensResponse { tokens: tokens.into_iter().map(encode).collect() }))
    }

    async fn create_token(
        &self,
        request: Request<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let call = Call::from_metadata(request.metadata());
        let message = request.into_inner();
        let workspace = workspace_id(&message.workspace_id)?;
        let created = self.rules.create(user, workspace, decode(message), &call).await?;
        Ok(Response::new(CreateTokenResponse { token: Some(encode(created.token)), secret: created.secret }))
    }

    async fn update_token(
        &self,
        request: Request<UpdateTokenRequest>,
    ) -> Result<Response<UpdateTokenResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let (workspace, id) = (workspace_id(&message.workspace_id)?, token_id(&message.token_id)?);
        let token = self.rules.update(user, workspace, id, message.active, message.name.as_deref()).await?;
        Ok(Response::new(UpdateTokenResponse { token: Some(encode(token)) }))
    }

    async fn issue_token_view(
        &self,
        request: Request<IssueTokenViewRequest>,
    ) -> Result<Response<IssueTokenViewResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.into_inner();
        let workspace = workspace_id(&message.workspace_id)?;
        let seen = match message.token_id.as_str() {
            "" => ViewTarget::Draft {
                permissions: message.permissions.into_iter().map(Permission::from_number).collect(),
                folders: message.scope.map(|scope| scope.folder_ids),
            },
            id => ViewTarget::Token(token_id(id)?),
        };
        let view = self.rules.view(user, workspace, seen).await?;
        Ok(Response::new(IssueTokenViewResponse {
            identity: view.issued.identity,
            expires_at: Some(view.issued.expires_at.to_proto()),
            permissions: view.permissions.numbers(),
            scope: encode_scope(&view.scope),
        }))
    }

    async fn delete_token(
        &self,
        request: Request<DeleteTokenRequest>,
    ) -> Result<Response<DeleteTokenResponse>, Status> {
        let user = user(&self.verifier, request.metadata()).await?;
        let message = request.get_ref();
        let (workspace, id) = (workspace_id(&message.workspace_id)?, token_id(&message.token_id)?);
        self.rules.delete(user, workspace, id).await?;
        Ok(Response::new(DeleteTokenResponse {}))
    }
}

fn token_id(text: &str) -> Result<TokenId, Error> {
    text.parse().map_err(|_| Error::NotFound("token"))
}

fn decode(message: CreateTokenRequest) -> Draft {
    Draft {
        permissions: message.permissions.into_iter().map(Permission::from_number).collect(),
        expires_at: message.expires_at.as_ref().map(Timestamp::from_proto),
        folders: message.scope.map(|scope| scope.folder_ids),
        name: message.name,
    }
}

/// `None` for the whole workspace.
fn encode_scope(scope: &Scope) -> Option<proto::TokenScope> {
    match scope {
        Scope::All => None,
        Scope::Folders(folders) => {
            Some(proto::TokenScope { folder_ids: folders.iter().map(ToString::to_string).collect() })
        }
    }
}

fn encode(token: Token) -> proto::Token {
    let scope = encode_scope(&token.scope);
    proto::Token {
        id: token.id.to_string(),
        workspace_id: token.workspace.to_string(),
        owner_id: token.owner.to_string(),
        name: token.name,
        permissions: token.permissions.numbers(),
        scope,
        last_four: token.last_four,
        active: token.active,
        created_at: Some(token.created_at.to_proto()),
        expires_at: token.expires_at.map(Timestamp::to_proto),
        last_used_at: token.last_used_at.map(Timestamp::to_proto),
        last_client: token.last_client,
        last_channel: token.last_channel.map(Channel::as_str).unwrap_or_default().to_owned(),
    }
}
