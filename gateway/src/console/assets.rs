//! The bytes of an asset, for a person's browser. Assets are untrusted, so nothing in them may run here.

use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use cairn_proto::content::v1 as proto;
use cairn_proto::ids::AssetId;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Answer;
use crate::auth::Authenticator;
use crate::extract::{PathId, Query};
use crate::operations::assets;
use crate::operations::person::Person;
use crate::rest::conditional;
use crate::schema::inputs;

inputs!(ReadAsset);

/// Types that browsers display without running anything. SVG may contain scripts.
const SHOWN: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "application/pdf"];
const PDF: &str = "application/pdf";
const SANDBOX: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
/// Browsers show no PDF in a sandbox; their viewers isolate it from the page's origin.
const PDF_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'";
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Where the asset is.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ReadAsset {
    /// One of the person's workspaces; without it, all of them are asked.
    workspace_id: Option<String>,
}

/// Read the bytes of an asset, or a range of them.
#[utoipa::path(
    get, path = "/api/assets/{id}/content", operation_id = "getAssetContent", tag = "Assets",
    params(("id" = String, Path, format = "uuid", description = "The asset."), ReadAsset),
    responses(
        (status = 200, description = "The bytes.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "The range.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "What the caller has is current."),
        (status = 416, description = "There are no such bytes."),
    ),
)]
pub(super) async fn content(
    State(authenticator): State<Arc<Authenticator>>,
    method: Method,
    headers: HeaderMap,
    person: Person,
    PathId(id): PathId<AssetId>,
    Query(query): Query<ReadAsset>,
) -> Answer {
    let session = authenticator.session_secret(&headers).unwrap_or_default();
    let named = query.workspace_id.map(|text| text.parse().into_iter().collect());
    let found = assets::find(&person, authenticator.tokens(), session, named, id).await?;
    let asset = &found.asset;
    let mut response = Response::new(Body::empty());
    describe(response.headers_mut(), asset);
    if conditional::is_current(&headers, &asset.content_hash) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    let size = asset.size_bytes;
    let range = match requested_range(&method, &headers, &asset.content_hash, size) {
        RequestedRange::Whole => 0..size,
        RequestedRange::Part(range) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let text = format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
            set(response.headers_mut(), header::CONTENT_RANGE, &text);
            range
        }
        RequestedRange::Nothing => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            set(response.headers_mut(), header::CONTENT_RANGE, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    let length = range.end.saturating_sub(range.start);
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if method != Method::HEAD {
        // A failure midway truncates the response below its length, so that clients detect it.
        let bytes = assets::download(&person, &found, range.start, length).await?;
        *response.body_mut() = Body::from_stream(bytes);
    }
    Ok(response)
}

fn describe(headers: &mut HeaderMap, asset: &proto::Asset) {
    let is_shown = SHOWN.contains(&asset.media_type.as_str());
    set(headers, header::CONTENT_TYPE, &asset.media_type);
    set(headers, header::CONTENT_DISPOSITION, &disposition(is_shown, &asset.name));
    let policy = if asset.media_type == PDF { PDF_POLICY } else { SANDBOX };
    set(headers, header::CONTENT_SECURITY_POLICY, policy);
    set(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(headers, CROSS_ORIGIN_RESOURCE_POLICY, "same-origin");
    // Browsers may cache it but must revalidate, so that access is checked each time.
    set(headers, header::CACHE_CONTROL, "private, no-cache");
    set(headers, header::ACCEPT_RANGES, "bytes");
    if let Some(etag) = conditional::etag(&asset.content_hash) {
        headers.insert(header::ETAG, etag);
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// RFC 6266, with an ASCII name for every client and the full one (RFC 8187).
pub(super) fn disposition(is_shown: bool, name: &str) -> String {
    let kind = if is_shown { "inline" } else { "attachment" };
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            '"' | '\\' | '%' => '_',
            ' '..='~' => letter,
            _ => '_',
        })
        .collect();
    let mut full = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            full.push(char::from(byte));
        } else {
            full.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{full}")
}

/// The byte range of a request.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    Part(Range<u64>),
    /// Unsatisfiable.
    Nothing,
}

/// Parses `Range` (RFC 9110, section 14.2): a single byte range, valid for the current content (`If-Range`).
/// Everything else gets the whole, as the RFC allows.
fn requested_range(method: &Method, headers: &HeaderMap, content_hash: &str, size: u64) -> RequestedRange {
    if method != Method::GET || !may_be_part(headers, content_hash) {
        return RequestedRange::Whole;
    }
    let text = headers.get(header::RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some((unit, range)) = text.split_once('=') else { return RequestedRange::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRange::Whole;
    }
    let Some((first, last)) = range.trim().split_once('-') else { return RequestedRange::Whole };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if last >= first => part(first, last.saturating_add(1).min(size), size),
        (Some(first), None) if last.is_empty() => part(first, size, size),
        (None, Some(0)) if first.is_empty() => RequestedRange::Nothing,
        (None, Some(suffix)) if first.is_empty() => part(size.saturating_sub(suffix), size, size),
        _ => RequestedRange::Whole,
    }
}

fn part(start: u64, end: u64, size: u64) -> RequestedRange {
    if start < size { RequestedRange::Part(start..end) } else { RequestedRange::Nothing }
}

/// Digits only: `parse` would accept a sign.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { Some(text.parse().unwrap_or(u64::MAX)) } else { None }
}

fn may_be_part(headers: &HeaderMap, content_hash: &str) -> bool {
    match headers.get(header::IF_RANGE) {
        None => true,
        Some(value) => conditional::etag(content_hash).is_some_and(|etag| etag == *value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: &str, if_range: Option<&str>) -> RequestedRange {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        if let Some(tag) = if_range {
            headers.insert(header::IF_RANGE, tag.parse().unwrap());
        }
        requested_range(&Method::GET, &headers, "blake3:a", 10)
    }

    #[test]
    fn one_range_of_bytes_is_a_part() {
        assert_eq!(asked("bytes=0-0", None), RequestedRange::Part(0..1));
        assert_eq!(asked("BYTES=2-5", None), RequestedRange::Part(2..6));
        assert_eq!(asked("bytes=7-", None), RequestedRange::Part(7..10));
        assert_eq!(asked("bytes=7-99999999999999999999999", None), RequestedRange::Part(7..10));
        assert_eq!(asked("bytes=-3", None), RequestedRange::Part(7..10));
        assert_eq!(asked("bytes=-30", None), RequestedRange::Part(0..10));
        for beyond in ["bytes=10-", "bytes=10-11", "bytes=-0"] {
            assert_eq!(asked(beyond, None), RequestedRange::Nothing, "{beyond}");
        }
        for whole in
            ["bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes", "bytes=", "bytes=-", "bytes=+1-2", "x"]
        {
            assert_eq!(asked(whole, None), RequestedRange::Whole, "{whole}");
        }
    }

    #[test]
    fn a_part_is_of_the_content_that_the_caller_has() {
        assert_eq!(asked("bytes=1-2", Some("\"blake3:a\"")), RequestedRange::Part(1..3));
        for other in ["\"blake3:b\"", "W/\"blake3:a\"", "Sat, 21 Nov 2026 12:00:00 GMT"] {
            assert_eq!(asked("bytes=1-2", Some(other)), RequestedRange::Whole, "{other}");
        }
        let none = HeaderMap::new();
        assert_eq!(requested_range(&Method::GET, &none, "blake3:a", 10), RequestedRange::Whole);
        assert_eq!(requested_range(&Method::GET, &none, "blake3:a", 0), RequestedRange::Whole);
    }

    #[test]
    fn a_name_cannot_leave_its_header() {
        assert_eq!(disposition(true, "a.png"), "inline; filename=\"a.png\"; filename*=UTF-8''a.png");
        assert_eq!(
            disposition(false, "a\"; x=\\é%.svg"),
            "attachment; filename=\"a_; x=___.svg\"; filename*=UTF-8''a%22%3B%20x%3D%5C%C3%A9%25.svg"
        );
    }

    #[test]
    fn only_what_runs_nothing_is_shown() {
        for (media_type, kind, is_boxed) in [
            ("image/png", "inline", true),
            ("application/pdf", "inline", false),
            ("image/svg+xml", "attachment", true),
            ("text/html", "attachment", true),
            ("application/octet-stream", "attachment", true),
        ] {
            let asset =
                proto::Asset { media_type: media_type.into(), name: "a".into(), ..Default::default() };
            let mut headers = HeaderMap::new();
            describe(&mut headers, &asset);
            let text = |name: HeaderName| headers[name].to_str().unwrap().to_owned();
            assert!(text(header::CONTENT_DISPOSITION).starts_with(kind), "{media_type}");
            assert_eq!(text(header::CONTENT_SECURITY_POLICY).ends_with("sandbox"), is_boxed, "{media_type}");
            assert_eq!(text(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        }
    }
}
