//! Which answers are compressed: JSON and pages that are large enough to gain by it, and that hold no secret.
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
const KINDS: [&[u8]; 2] = [b"application/json", b"text/html"];

/// What compresses, in the way that the caller likes best. The quickest level: most of the gain, for a fraction of the
/// time.
pub(crate) fn layer() -> CompressionLayer<Gainful> {
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(Gainful)
}

/// Leaves an answer as it is, since it may hold secrets.
pub(crate) fn forbid(response: &mut Response) {
    response.extensions_mut().insert(Secret);
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
        kind.is_some_and(|kind| KINDS.iter().any(|known| kind.starts_with(known)))
            && response.body().size_hint().lower() > LEAST_BYTES
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
        Gainful.should_compress(&response)
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
