//! The token and the revocation endpoint.

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::clock::Timestamp;
use cairn_proto::auth::v1 as proto;
use http::StatusCode;
use serde_json::json;

use super::client::{self, unsupported_grant_type};
use super::fields::Fields;
use super::refusal::{Refusal, not_kept};
use super::server::Server;
use crate::auth::call_of;
use crate::error;
use crate::json_body::JsonBody;

/// Exchanges a code or a refresh token for tokens.
pub(super) async fn redeem(State(server): State<Server>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let (fields, proof) = client::read(&server, &parts, body).await?;
    let base = server.origins.base_url(&parts.headers).ok_or_else(Refusal::no_address)?;
    let call = call_of(&parts);
    let mut auth = server.upstreams.oauth();
    let answer = match fields.text("grant_type").as_str() {
        "authorization_code" => {
            let message = redeem_code(&fields, proof, base)?;
            auth.redeem_code(call.request(message)).await.map(|answer| answer.into_inner().tokens)
        }
        "refresh_token" => {
            let message = redeem_refresh_token(&fields, proof, base)?;
            auth.redeem_refresh_token(call.request(message)).await.map(|answer| answer.into_inner().tokens)
        }
        "" => return Err(Refusal::invalid_request("grant_type is required")),
        _ => return Err(unsupported_grant_type()),
    };
    let tokens = answer.map_err(|status| error::from_upstream(&status))?;
    Ok(token_response(&tokens.unwrap_or_default(), server.clock.now()))
}

/// Revokes a token. Whether it existed is not revealed (RFC 7009).
pub(super) async fn revoke(State(server): State<Server>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let (fields, proof) = client::read(&server, &parts, body).await?;
    let token = required(&fields, "token")?;
    let message = call_of(&parts).request(proto::RevokeTokenRequest { client: Some(proof), token });
    server.upstreams.oauth().revoke_token(message).await.map_err(|status| error::from_upstream(&status))?;
    let mut response = StatusCode::OK.into_response();
    not_kept(response.headers_mut());
    Ok(response)
}

fn redeem_code(
    fields: &Fields,
    proof: proto::ClientProof,
    base: String,
) -> Result<proto::RedeemCodeRequest, Refusal> {
    Ok(proto::RedeemCodeRequest {
        client: Some(proof),
        code: required(fields, "code")?,
        redirect_uri: fields.first("redirect_uri"),
        code_verifier: required(fields, "code_verifier")?,
        resources: fields.all("resource").map(ToOwned::to_owned).collect(),
        base_url: base,
    })
}

fn redeem_refresh_token(
    fields: &Fields,
    proof: proto::ClientProof,
    base: String,
) -> Result<proto::RedeemRefreshTokenRequest, Refusal> {
    Ok(proto::RedeemRefreshTokenRequest {
        client: Some(proof),
        refresh_token: required(fields, "refresh_token")?,
        scope: fields.first("scope"),
        resources: fields.all("resource").map(ToOwned::to_owned).collect(),
        base_url: base,
    })
}

fn required(fields: &Fields, name: &str) -> Result<String, Refusal> {
    fields.first(name).ok_or_else(|| Refusal::invalid_request(format!("{name} is required")))
}

/// The granted scope, which may be less than requested.
fn token_response(tokens: &proto::TokenSet, now: Timestamp) -> Response {
    let end = tokens.expires_at.as_ref().map_or(now, Timestamp::from_proto);
    let mut response = JsonBody(json!({
        "access_token": tokens.access_token,
        "token_type": "Bearer",
        "expires_in": end.since(now).as_secs(),
        "refresh_token": tokens.refresh_token,
        "scope": scope(tokens.permissions()),
    }))
    .into_response();
    not_kept(response.headers_mut());
    response
}

fn scope(permissions: impl Iterator<Item = proto::Permission>) -> String {
    permissions.filter_map(super::pages::scope_name).collect::<Vec<_>>().join(" ")
}
