//! Dynamic client registration (RFC 7591).

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::clock::Timestamp;
use cairn_proto::auth::v1 as proto;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::{Refusal, not_kept};
use super::server::Server;
use crate::auth::call_of;
use crate::class::Class;
use crate::error;
use crate::json_body::JsonBody;

/// The client metadata that we use; the rest is ignored, as the RFC requires.
#[derive(Debug, Deserialize)]
struct Metadata {
    client_name: Option<String>,
    redirect_uris: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    client_uri: Option<String>,
}

pub(super) async fn register(State(server): State<Server>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    server.limits.registration(&parts).await?;
    let bytes =
        server.intake.receive(body, Class::of(&parts.extensions).max_bytes, &parts.extensions, None).await;
    let bytes =
        bytes.map_err(|error| Refusal::new(error.status, "invalid_client_metadata", error.message))?;
    let call = call_of(&parts);
    let message = call.request(read(&bytes)?);
    let registered = server.upstreams.oauth().register_client(message).await;
    let client = registered.map_err(|status| error::from_upstream(&status))?.into_inner();
    let mut response = (StatusCode::CREATED, JsonBody(record(client))).into_response();
    not_kept(response.headers_mut());
    Ok(response)
}

fn read(bytes: &[u8]) -> Result<proto::RegisterClientRequest, Refusal> {
    let metadata: Metadata = serde_json::from_slice(bytes).map_err(|_| {
        let description =
            "the body must be a JSON object with client metadata (RFC 7591), at least redirect_uris";
        Refusal::new(StatusCode::BAD_REQUEST, "invalid_client_metadata", description)
    })?;
    let has_nul = bytes.windows(6).any(|window| window == br"\u0000");
    if has_nul {
        let description = "client metadata may not hold a NUL character";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "invalid_client_metadata", description));
    }
    Ok(proto::RegisterClientRequest {
        client_name: metadata.client_name.unwrap_or_default(),
        redirect_uris: metadata.redirect_uris.unwrap_or_default(),
        token_endpoint_auth_method: metadata.token_endpoint_auth_method,
        grant_types: metadata.grant_types.unwrap_or_default(),
        response_types: metadata.response_types.unwrap_or_default(),
        client_uri: metadata.client_uri.unwrap_or_default(),
    })
}

fn record(client: proto::RegisterClientResponse) -> Value {
    let issued_at = client.issued_at.as_ref().map_or(0, |at| Timestamp::from_proto(at).as_seconds());
    let mut record = json!({
        "client_id": client.client_id,
        "client_id_issued_at": issued_at,
        "client_name": client.client_name,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": client.token_endpoint_auth_method,
        "scope": "read write delete",
    });
    if let (Some(secret), Some(fields)) = (client.client_secret, record.as_object_mut()) {
        fields.insert("client_secret".to_owned(), Value::from(secret));
        // Never expires.
        fields.insert("client_secret_expires_at".to_owned(), Value::from(0));
    }
    record
}
