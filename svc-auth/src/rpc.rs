//! The gRPC servers: decode, authorize, call, encode; no rules.

mod delegation;
mod feedback;
mod grants;
mod invitations;
pub(crate) mod keys;
mod members;
mod oauth;
mod oidc;
mod sessions;
mod tokens;
mod workspaces;

use std::net::IpAddr;
use std::sync::Arc;

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::Verifier;
use cairn_chassis::server::ServicesOnly;
use cairn_chassis::status::Problem;
use cairn_proto::auth::v1::delegation_service_server::DelegationServiceServer;
use cairn_proto::auth::v1::feedback_service_server::FeedbackServiceServer;
use cairn_proto::auth::v1::grant_service_server::GrantServiceServer;
use cairn_proto::auth::v1::invitation_service_server::InvitationServiceServer;
use cairn_proto::auth::v1::key_service_server::KeyServiceServer;
use cairn_proto::auth::v1::member_service_server::MemberServiceServer;
use cairn_proto::auth::v1::oauth_service_server::OauthServiceServer;
use cairn_proto::auth::v1::oidc_service_server::OidcServiceServer;
use cairn_proto::auth::v1::session_service_server::SessionServiceServer;
use cairn_proto::auth::v1::token_service_server::TokenServiceServer;
use cairn_proto::auth::v1::workspace_service_server::WorkspaceServiceServer;
use cairn_proto::ids::{UserId, WorkspaceId};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;

use crate::error::Error;
use crate::{Service, workspaces as rules};

macro_rules! sized {
    ($server:expr) => {
        $server.max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
    };
}

/// RPCs without an identity are for the gateway only, which knows the user's address for rate limits.
macro_rules! services_only {
    ($server:expr, $verifier:expr) => {
        ServicesOnly::new(sized!($server), $verifier.clone())
    };
}

pub(crate) fn routes(service: &Service) -> Routes {
    let verifier = &service.ambient.verifier;
    let tokens = tokens::Tokens { rules: Arc::clone(&service.tokens), verifier: verifier.clone() };
    let sessions = sessions::Sessions { rules: Arc::clone(&service.sessions), verifier: verifier.clone() };
    let workspaces = workspaces::Workspaces {
        rules: Arc::clone(&service.workspaces),
        tokens: Arc::clone(&service.tokens),
        verifier: verifier.clone(),
    };
    let members = members::Members { rules: Arc::clone(&service.members), verifier: verifier.clone() };
    let invitations =
        invitations::Invitations { rules: Arc::clone(&service.invitations), verifier: verifier.clone() };
    let oauth = oauth::Oauth {
        clients: Arc::clone(&service.oauth_clients),
        authorizations: Arc::clone(&service.oauth_authorizations),
        tokens: Arc::clone(&service.oauth_tokens),
        verifier: verifier.clone(),
    };
    let oidc = oidc::Oidc { rules: Arc::clone(&service.oidc) };
    let grants = grants::Grants { rules: Arc::clone(&service.grants), verifier: verifier.clone() };
    let feedback =
        feedback::FeedbackServer { rules: Arc::clone(&service.feedback), verifier: verifier.clone() };
    let keys = keys::KeyServer {
        keys: Arc::clone(&service.keys),
        identities: Arc::clone(&service.service_identities),
    };
    let delegation =
        delegation::DelegationServer { rules: Arc::clone(&service.delegation), verifier: verifier.clone() };
    Routes::new(sized!(TokenServiceServer::new(tokens)))
        .add_service(services_only!(SessionServiceServer::new(sessions), verifier))
        .add_service(sized!(WorkspaceServiceServer::new(workspaces)))
        .add_service(sized!(MemberServiceServer::new(members)))
        .add_service(services_only!(InvitationServiceServer::new(invitations), verifier))
        .add_service(services_only!(OauthServiceServer::new(oauth), verifier))
        .add_service(services_only!(OidcServiceServer::new(oidc), verifier))
        .add_service(sized!(GrantServiceServer::new(grants)))
        .add_service(sized!(FeedbackServiceServer::new(feedback)))
        .add_service(sized!(KeyServiceServer::new(keys)))
        .add_service(sized!(DelegationServiceServer::new(delegation)))
}

/// The signed-in user who calls.
async fn user(verifier: &Verifier, metadata: &MetadataMap) -> Result<UserId, Problem> {
    verifier.authenticate(metadata).await?.user_id()
}

/// The user's address, as reported by the gateway.
fn source(address: Option<&str>) -> Option<IpAddr> {
    address?.parse().ok()
}

/// A malformed id cannot belong to a workspace.
fn workspace_id(text: &str) -> Result<WorkspaceId, Error> {
    text.parse().map_err(|_| rules::not_found())
}
