//! Discovery documents: RFC 9728 and RFC 8414.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::identity::Permission;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::server::Server;
use super::{API, ENDPOINT};
use crate::json_body::JsonBody;

/// Short, so that clients find a moved deployment again.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// Metadata of the MCP endpoint as a protected resource.
pub(super) async fn resource(State(server): State<Server>, headers: HeaderMap) -> Result<Response, Refusal> {
    protected(&server, &headers, ENDPOINT)
}

/// Metadata of the API as a protected resource, for programs that act for a person, such as the CLI.
pub(super) async fn api(State(server): State<Server>, headers: HeaderMap) -> Result<Response, Refusal> {
    protected(&server, &headers, API)
}

fn protected(server: &Server, headers: &HeaderMap, path: &str) -> Result<Response, Refusal> {
    let base = server.origins.base_url(headers).ok_or_else(Refusal::no_address)?;
    Ok(document(json!({
        "resource": format!("{base}{path}"),
        "authorization_servers": [base],
        "scopes_supported": scopes(),
        "bearer_methods_supported": ["header"],
        "resource_name": "Cairn",
        "resource_documentation": format!("{base}/api/docs/swagger"),
    })))
}

/// Metadata of the authorization server. The issuer is spelled as in [`resource`]: clients compare the strings.
pub(super) async fn server(State(server): State<Server>, headers: HeaderMap) -> Result<Response, Refusal> {
    let base = server.origins.base_url(&headers).ok_or_else(Refusal::no_address)?;
    let methods = ["none", "client_secret_post", "client_secret_basic"];
    Ok(document(json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"),
        "registration_endpoint": format!("{base}/oauth/register"),
        "revocation_endpoint": format!("{base}/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "scopes_supported": scopes(),
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    })))
}

fn scopes() -> [&'static str; 3] {
    Permission::ALL.map(Permission::as_str)
}

/// `Vary`: the issuer may follow the `Host`.
fn document(value: Value) -> Response {
    let vary = HeaderValue::from_static("Host");
    ([(header::CACHE_CONTROL, CACHE_POLICY), (header::VARY, vary)], JsonBody(value)).into_response()
}
