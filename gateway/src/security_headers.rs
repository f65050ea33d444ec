//! Security headers on every response: content policy, framing, referrer.
//!
//! A page that needs more sets a header of its own, which is kept.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Non-HTML responses load nothing and cannot be framed.
const EVERYWHERE: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
    ),
    (OPENER_POLICY, HeaderValue::from_static("same-origin")),
    (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
];
/// A year, without subdomains: other hosts of the domain are none of our business.
const TRANSPORT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Adds the headers that are missing.
pub(crate) fn complete(headers: &mut HeaderMap, is_https: bool) {
    headers.reserve(EVERYWHERE.len());
    for (name, value) in EVERYWHERE {
        headers.entry(name).or_insert(value);
    }
    if is_https {
        headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert(TRANSPORT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_says_itself_stays() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'self'"));
        complete(&mut headers, false);
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], "default-src 'self'");
        assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
        assert!(
            !headers.contains_key(header::STRICT_TRANSPORT_SECURITY),
            "plain HTTP on loopback stays usable"
        );
    }

    #[test]
    fn https_is_insisted_on_where_it_is_used() {
        let mut headers = HeaderMap::new();
        complete(&mut headers, true);
        assert_eq!(headers[header::STRICT_TRANSPORT_SECURITY], "max-age=31536000");
    }
}
