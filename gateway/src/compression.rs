//! Which answers are compressed: JSON that is large enough to gain by it, and that holds no secret.
//!
//! The length of a compressed answer tells how much of it repeats: whoever can put text of their own beside a secret, and
//! sees lengths pass by, finds the secret out letter by letter (BREACH). So answers that may hold one stay as they are.

use axum::response::Response;
use http::header;
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

/// Below that the head of the answer is most of it.
const LEAST_BYTES: u64 = 1024;
const JSON: &[u8] = b"application/json";
/// Signing in and out, accounts, invitations, OAuth.
const SECRET_BEGINNINGS: [&str; 5] =
    ["/api/session", "/api/account", "/api/invitations", "/invite", "/oauth/"];
/// Below a workspace: new tokens, and links of invitations.
const SECRET_ENDS: [&str; 3] = ["/tokens", "/members", "/invitations"];

/// What compresses, in the way that the caller likes best. The quickest level: most of the gain, for a fraction of the
/// time.
pub(crate) fn layer() -> CompressionLayer<Gainful> {
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(Gainful)
}

/// Marks the answer of a route whose answers may hold secrets.
pub(crate) fn mark(response: &mut Response, route: &str) {
    let may_hold_secrets = SECRET_BEGINNINGS.iter().any(|beginning| route.starts_with(beginning))
        || SECRET_ENDS.iter().any(|end| route.ends_with(end));
    if may_hold_secrets {
        response.extensions_mut().insert(Secret);
    }
}

/// The answer may hold a secret.
#[derive(Debug, Clone, Copy)]
struct Secret;

/// Tells which answers are compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gainful;

impl Predicate for Gainful {
    fn should_compress<B: Body>(&self, response: &http::Response<B>) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
        let is_json = kind.is_some_and(|kind| kind.starts_with(JSON));
        is_json
            && response.body().size_hint().lower() > LEAST_BYTES
            && response.extensions().get::<Secret>().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_compressed(route: &str, kind: &'static str, bytes: usize) -> bool {
        let mut response = Response::new(axum::body::Body::from(vec![b'x'; bytes]));
        response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
        mark(&mut response, route);
        Gainful.should_compress(&response)
    }

    #[test]
    fn large_json_without_secrets_is_compressed() {
        assert!(is_compressed("/api/v1/files", "application/json", 1025));
        assert!(is_compressed("/mcp", "application/json; charset=utf-8", 5000));
        assert!(!is_compressed("/api/v1/files", "application/json", 1024));
        for kind in ["text/event-stream", "text/markdown", "application/pdf", "image/png"] {
            assert!(!is_compressed("/api/v1/files", kind, 5000), "{kind}");
        }
        for route in [
            "/api/session",
            "/api/workspaces/{id}/tokens",
            "/api/workspaces/{id}/members",
            "/oauth/token",
            "/api/invitations/accept",
        ] {
            assert!(!is_compressed(route, "application/json", 5000), "{route}");
        }
    }
}
