//! Client authentication, at the endpoints that only clients call.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_proto::auth::v1::ClientProof;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};

use super::fields::{Fields, without_nul};
use super::refusal::Refusal;
use super::server::Server;
use crate::class::Class;

const FORM: &str = "application/x-www-form-urlencoded";
/// Parameters only accepted in the body: URLs end up in logs.
const SECRET: [&str; 7] =
    ["client_id", "client_secret", "code", "code_verifier", "refresh_token", "token", "grant_type"];

/// Reads the form of a client's request and the client's credentials.
pub(super) async fn read(
    server: &Server,
    parts: &Parts,
    body: Body,
) -> Result<(Fields, ClientProof), Refusal> {
    server.limits.open_body(parts).await?;
    if !is_form(&parts.headers) {
        return Err(Refusal::invalid_request(format!(
            "send the parameters as a form, with Content-Type: {FORM}"
        )));
    }
    let query = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
    if let Some(name) = query.any_of(&SECRET) {
        return Err(Refusal::invalid_request(format!("{name} must be sent in the body, not in the address")));
    }
    let bytes =
        server.intake.receive(body, Class::of(&parts.extensions).max_bytes, &parts.extensions, None).await;
    let bytes = bytes.map_err(|error| Refusal::new(error.status, "invalid_request", error.message))?;
    let fields = Fields::read(&bytes);
    without_nul(&fields)?;
    fields.require_single(&[
        "grant_type",
        "client_id",
        "client_secret",
        "code",
        "code_verifier",
        "redirect_uri",
        "refresh_token",
        "scope",
        "token",
    ])?;
    let proof = proof(&parts.headers, &fields)?;
    Ok((fields, proof))
}

fn is_form(headers: &HeaderMap) -> bool {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
}

fn proof(headers: &HeaderMap, fields: &Fields) -> Result<ClientProof, Refusal> {
    let in_body = (fields.first("client_id"), fields.first("client_secret"));
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (only, more) = (sent.next(), sent.next());
    if more.is_some() {
        return Err(Refusal::invalid_request("more than one Authorization header: send exactly one"));
    }
    let Some(only) = only else {
        let (client_id, client_secret) = in_body;
        let client_id = client_id.ok_or_else(|| Refusal::invalid_request("client_id is required"))?;
        return Ok(ClientProof { client_id, client_secret });
    };
    let (client_id, secret) = only.to_str().ok().and_then(basic).ok_or_else(|| {
        Refusal::invalid_client("the Authorization header of a client must be Basic with its id and secret")
    })?;
    match in_body {
        (_, Some(_)) => {
            Err(Refusal::invalid_request("send the client secret once: in the header or in the body"))
        }
        (Some(named), None) if named != client_id => {
            Err(Refusal::invalid_request("the header and the body name two different clients"))
        }
        (Some(_) | None, None) => {
            Ok(ClientProof { client_id, client_secret: Some(secret).filter(|secret| !secret.is_empty()) })
        }
    }
}

/// RFC 6749, section 2.3.1: both parts are form-encoded inside of Basic.
fn basic(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    let plain = |text: &str| {
        let named = format!("v={text}");
        form_urlencoded::parse(named.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    let (id, secret) = (plain(id)?, plain(secret)?);
    (!id.is_empty() && !id.contains('\0') && !secret.contains('\0')).then_some((id, secret))
}

/// The response to an unsupported grant type.
pub(super) fn unsupported_grant_type() -> Refusal {
    let description = "grant_type must be authorization_code or refresh_token";
    Refusal::new(StatusCode::BAD_REQUEST, "unsupported_grant_type", description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn basic_holds_two_encoded_parts() {
        let read = |text: &str| basic(&sent(text));
        assert_eq!(read("id:secret"), Some(("id".to_owned(), "secret".to_owned())));
        assert_eq!(
            read("https%3A%2F%2Ftools.example%2Fc.json:a%3Ab+c"),
            Some(("https://tools.example/c.json".to_owned(), "a:b c".to_owned()))
        );
        assert_eq!(read("id:"), Some(("id".to_owned(), String::new())));
        for odd in ["", "id", ":secret", "id%00:x", "id:%00"] {
            assert_eq!(read(odd), None, "{odd}");
        }
        for odd in ["Basic", "Basic !", "Bearer aWQ6eA==", ""] {
            assert_eq!(basic(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_form_is_told_by_its_content_type() {
        let is = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, text.parse().unwrap());
            is_form(&headers)
        };
        assert!(is(FORM) && is("Application/x-www-form-urlencoded; charset=UTF-8"));
        assert!(!is("application/json") && !is("") && !is_form(&HeaderMap::new()));
    }
}
