//! Client ID Metadata Documents: a client whose id is the URL of a JSON document that describes it.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::outbound::{Guard, Limits, Refused};
use http::{HeaderMap, header};
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;

use super::client_name::displayable;
use super::redirect;
use crate::error::Error;
use crate::model::oauth::Client;
use crate::model::oauth_error::{Code, OauthError};

const LIMITS: Limits = Limits { time: Duration::from_secs(5), bytes: 64 * 1024 };
/// Bounds the outbound requests that anonymous callers could cause.
const CONCURRENCY: usize = 8;
const MAX_URL_BYTES: usize = 2_048;
/// Bounds of the lifetime in the host's cache headers.
const MIN_LIFETIME: Duration = Duration::from_secs(60);
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60 * 60);
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const NO_SECRET: &str = "none";

/// The relevant part of the document.
#[derive(Debug, Deserialize)]
struct Document {
    client_id: String,
    client_name: String,
    redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

/// Whether a client's id is a URL.
pub(super) fn is_address(id: &str) -> bool {
    id.starts_with("https://") || id.starts_with("http://")
}

/// Fetches documents.
#[derive(Debug)]
pub(super) struct Documents {
    guard: Guard,
    at_once: Semaphore,
}

impl Documents {
    pub(super) fn new(guard: Guard) -> Self {
        Self { guard, at_once: Semaphore::new(CONCURRENCY) }
    }

    /// The client that the document at this URL describes.
    pub(super) async fn fetch(&self, id: &str, now: Timestamp) -> Result<Client, Error> {
        check_address(id)?;
        let place = tokio::time::timeout(LIMITS.time, self.at_once.acquire()).await;
        let _place = place.map_err(|_| refused(Refused::TimedOut.to_string()))?;
        let fetched = self.guard.get(id, &["application/json"], LIMITS).await;
        let response = fetched.map_err(|reason| refused(reason.to_string()))?;
        let document: Document = serde_json::from_slice(response.body()).map_err(|_| {
            refused("it is no JSON object with client_id, client_name and redirect_uris".to_owned())
        })?;
        let fresh_until = Some(now.plus(lifetime(response.headers())));
        Ok(read(document, id).map(|client| Client { fresh_until, ..client })?)
    }
}

/// A URL that parsing would normalize is rejected: two spellings would name one client.
fn check_address(id: &str) -> Result<(), OauthError> {
    let url = Url::parse(id).ok().filter(|url| url.as_str() == id && id.len() <= MAX_URL_BYTES);
    if url.is_some_and(|url| url.path() != "/" && url.query().is_none()) {
        return Ok(());
    }
    Err(refused("it must be an https URL with a path and without a query".to_owned()))
}

fn read(document: Document, id: &str) -> Result<Client, OauthError> {
    if document.client_id != id {
        return Err(refused(
            "its client_id is another address than the one that it was fetched from".to_owned(),
        ));
    }
    // Some clients prefer a method that we do not support, and accept `none` as well.
    let preferred = document.token_endpoint_auth_method.as_deref().unwrap_or(NO_SECRET);
    let accepted = &document.token_endpoint_auth_methods_supported;
    if preferred != NO_SECRET && !accepted.iter().any(|method| method == NO_SECRET) {
        return Err(refused(
            "its token_endpoint_auth_method must be none, or none among those supported".to_owned(),
        ));
    }
    redirect::check(&document.redirect_uris).map_err(|fault| refused(fault.description))?;
    let name =
        displayable(&document.client_name).ok_or_else(|| refused("its client_name is empty".to_owned()))?;
    Ok(Client {
        id: id.to_owned(),
        name,
        redirect_uris: document.redirect_uris,
        secret: None,
        fresh_until: None,
    })
}

fn refused(reason: String) -> OauthError {
    let message = format!("the metadata document of this client cannot be used: {reason}");
    OauthError::new(Code::InvalidClient, "client_id", message)
}

/// The freshness lifetime of the document (RFC 9111), within our bounds.
fn lifetime(headers: &HeaderMap) -> Duration {
    let text = |name| {
        headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or_default()
    };
    let directives = || text(header::CACHE_CONTROL).split(',').map(|part| part.trim().to_ascii_lowercase());
    if directives().any(|part| matches!(part.as_str(), "no-store" | "no-cache")) {
        return MIN_LIFETIME;
    }
    let max_age = directives().find_map(|part| part.strip_prefix("max-age=")?.parse::<u64>().ok());
    let age = text(header::AGE).parse::<u64>().unwrap_or(0);
    max_age
        .map_or(DEFAULT_LIFETIME, |seconds| Duration::from_secs(seconds.saturating_sub(age)))
        .clamp(MIN_LIFETIME, MAX_LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "https://tools.example/client.json";

    fn document() -> serde_json::Value {
        serde_json::json!({
            "client_id": ID, "client_name": "Tools", "redirect_uris": ["http://127.0.0.1/callback"],
            "jwks_uri": "https://tools.example/jwks.json",
        })
    }

    fn read_json(value: serde_json::Value) -> Result<Client, OauthError> {
        read(serde_json::from_value(value).unwrap(), ID)
    }

    #[test]
    fn a_document_describes_a_public_client() {
        let client = read_json(document()).unwrap();
        assert_eq!((client.id.as_str(), client.name.as_str(), client.secret), (ID, "Tools", None));
        let mut prefers = document();
        prefers["token_endpoint_auth_method"] = "private_key_jwt".into();
        assert!(read_json(prefers.clone()).is_err());
        prefers["token_endpoint_auth_methods_supported"] = serde_json::json!(["private_key_jwt", "none"]);
        assert!(read_json(prefers).is_ok());
    }

    #[test]
    fn a_document_of_another_or_with_bad_parts_is_refused() {
        for (field, value) in [
            ("client_id", serde_json::json!("https://tools.example/other.json")),
            ("client_name", serde_json::json!(" \u{200b}")),
            ("redirect_uris", serde_json::json!([])),
            ("redirect_uris", serde_json::json!(["javascript:alert(1)"])),
            ("token_endpoint_auth_method", serde_json::json!("client_secret_post")),
        ] {
            let mut changed = document();
            changed[field] = value;
            assert_eq!(read_json(changed).unwrap_err().code, Code::InvalidClient, "{field}");
        }
    }

    #[test]
    fn an_address_has_one_spelling_and_a_path() {
        assert!(check_address(ID).is_ok());
        for odd in [
            "https://tools.example",
            "https://tools.example/",
            "https://Tools.example/client.json",
            "https://tools.example:443/client.json",
            "https://tools.example/a/../client.json",
            "https://tools.example/client.json?x=1",
            "https://",
        ] {
            assert!(check_address(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn cache_headers_are_honoured_within_bounds() {
        let with = |control: &str, age: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CACHE_CONTROL, control.parse().unwrap());
            headers.insert(header::AGE, age.parse().unwrap());
            lifetime(&headers)
        };
        assert_eq!(lifetime(&HeaderMap::new()), DEFAULT_LIFETIME);
        assert_eq!(with("public, max-age=600", "0"), Duration::from_secs(600));
        assert_eq!(with("Max-Age=600", "100"), Duration::from_secs(500));
        assert_eq!(with("max-age=600, no-store", "0"), MIN_LIFETIME);
        assert_eq!(with("max-age=1", "0"), MIN_LIFETIME);
        assert_eq!(with("max-age=99999999", "0"), MAX_LIFETIME);
        assert_eq!(with("max-age=x", "0"), DEFAULT_LIFETIME);
    }
}
