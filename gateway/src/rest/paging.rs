//! Lists: a JSON array as the spec requires, with total and next page in headers (RFC 8288).

use axum::extract::Query;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, Uri, header};
use serde::Serialize;

use crate::answers::Links;
use crate::json_body::JsonBody;
use crate::operations::Page;

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");
const CURSOR: &str = "cursor";

/// A page as a response; `uri` is the request's.
pub(crate) fn respond<T: Serialize>(page: Page<T>, uri: &Uri, links: &Links) -> Response {
    let mut response = linked(&page.items, page.next, uri, links);
    response.headers_mut().insert(TOTAL, HeaderValue::from(page.total));
    response
}

/// The same for a list without a total.
pub(crate) fn linked<T: Serialize>(items: &[T], next: Option<String>, uri: &Uri, links: &Links) -> Response {
    let mut response = JsonBody(items).into_response();
    let headers = response.headers_mut();
    let link = next.and_then(|cursor| HeaderValue::from_str(&next_link(uri, &cursor, links)).ok());
    if let Some(link) = link {
        headers.insert(header::LINK, link);
    }
    response
}

fn next_link(uri: &Uri, cursor: &str, links: &Links) -> String {
    let sent = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|query| query.0).unwrap_or_default();
    let kept =
        sent.iter().filter(|(name, _)| name != CURSOR).map(|(name, value)| (name.as_str(), value.as_str()));
    let query: Vec<String> = kept
        .chain([(CURSOR, cursor)])
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    format!("<{}?{}>; rel=\"next\"", links.to(uri.path()), query.join("&"))
}

/// Percent-encodes everything but the unreserved characters of RFC 3986.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_link_keeps_the_filter_and_replaces_the_cursor() {
        let uri: Uri = "/api/v1/files?folderId=root&cursor=old&limit=2&x=a%20b".parse().unwrap();
        let links = Links::new(Some("https://cairn.example/"));
        assert_eq!(
            next_link(&uri, "n+w", &links),
            "<https://cairn.example/api/v1/files?folderId=root&limit=2&x=a%20b&cursor=n%2Bw>; rel=\"next\""
        );
    }
}
