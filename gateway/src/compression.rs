//! Which responses are compressed: JSON and HTML, large enough to be worth it and free of secrets.
//!
//! The length of a compressed response reveals repetition: an attacker who can inject text next to a secret and
//! observe lengths can guess it letter by letter (BREACH). So responses that may hold a secret are not compressed.

use axum::response::Response;
use http::header;
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

/// Below this size, the headers dominate.
const MIN_BYTES: u64 = 1024;
const CONTENT_TYPES: [&[u8]; 2] = [b"application/json", b"text/html"];

/// Compresses with the encoding that the client prefers, at the fastest level: most of the gain for a fraction of
/// the time.
pub(crate) fn layer() -> CompressionLayer<WorthCompressing> {
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(WorthCompressing)
}

/// Exempts a response that may hold secrets.
pub(crate) fn forbid(response: &mut Response) {
    response.extensions_mut().insert(Secret);
}

/// Marks a response that may hold a secret.
#[derive(Debug, Clone, Copy)]
struct Secret;

/// The compression predicate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorthCompressing;

impl Predicate for WorthCompressing {
    fn should_compress<B: Body>(&self, response: &http::Response<B>) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
        kind.is_some_and(|kind| CONTENT_TYPES.iter().any(|known| kind.starts_with(known)))
            && response.body().size_hint().lower() > MIN_BYTES
            && response.extensions().get::<Secret>().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_compressed(kind: &'static str, bytes: usize, has_secrets: bool) -> bool {
        let mut response = Response::new(axum::body::Body::from(vec![b'x'; bytes]));
        response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
        if has_secrets {
            forbid(&mut response);
        }
        WorthCompressing.should_compress(&response)
    }

    #[test]
    fn what_is_large_and_has_no_secrets_is_compressed() {
        assert!(is_compressed("application/json", 1025, false));
        assert!(is_compressed("application/json; charset=utf-8", 5000, false));
        assert!(is_compressed("text/html; charset=utf-8", 5000, false));
        assert!(!is_compressed("text/html; charset=utf-8", 5000, true));
        assert!(!is_compressed("application/json", 1024, false));
        assert!(!is_compressed("application/json", 5000, true));
        for kind in ["text/event-stream", "text/markdown", "application/pdf", "image/png"] {
            assert!(!is_compressed(kind, 5000, false), "{kind}");
        }
    }
}
