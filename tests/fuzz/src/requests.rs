//! Requests out of inputs, over HTTP and gRPC.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};

/// Whom requests come from: a proxy that is believed.
pub const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4711);

/// What requests are addressed to, unless an input says otherwise.
pub const HOST: &str = "localhost:8700";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// An address that no request had before.
pub fn address() -> HeaderValue {
    let [a, b, c, d] = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    HeaderValue::try_from(format!("2001:db8:{a:x}:{b:x}:{c:x}:{d:x}::1")).expect("an address")
}

/// Whom an input is from that bears no credential of its own.
#[derive(Debug, Clone, Copy)]
pub enum Caller<'a> {
    /// Nobody.
    Nobody,
    /// With an API token.
    Agent(&'a str),
    /// With the cookie of a session.
    Person(&'a str),
}

/// A path with the ids of what there is in the place of its parameters, else with their names.
pub fn filled(path: &str, ids: &[(&'static str, String)]) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        let before = segments.last().copied().unwrap_or_default();
        let id = ids.iter().find(|(kind, _)| *kind == before).map(|(_, id)| id.as_str());
        let name = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
        segments.push(name.map_or(segment, |name| id.unwrap_or(name)));
    }
    segments.join("/")
}

/// A text with ids in the place of `$file` and its like.
fn with_ids(text: &[u8], ids: &[(&'static str, String)]) -> Vec<u8> {
    let Some(text) = std::str::from_utf8(text).ok().filter(|text| text.contains('$')) else {
        return text.to_vec();
    };
    let named = |text: String, (kind, id): &(&'static str, String)| {
        let singular = kind.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let singular = singular.unwrap_or_else(|| kind.trim_end_matches('s').to_owned());
        text.replace(&format!("${singular}"), id)
    };
    ids.iter().fold(text.to_owned(), named).into_bytes()
}

/// The first line goes behind the path; the second one is the type of the body, with further headers behind `|`; the third is a
/// credential.
pub fn over_http(
    method: &Method,
    path: &str,
    rest: &[u8],
    caller: Caller<'_>,
    ids: &[(&'static str, String)],
) -> Option<Request<Body>> {
    let mut parts = rest.splitn(4, |byte| *byte == b'\n');
    let behind = with_ids(parts.next().unwrap_or_default(), ids);
    let uri = Uri::try_from([path.as_bytes(), &behind].concat()).ok()?;
    let mut request = Request::builder().method(method).uri(uri);
    let (form, bearer, cookie) = match caller {
        Caller::Nobody => ("", String::new(), ""),
        Caller::Agent(token) => ("", format!("Bearer {token}"), ""),
        Caller::Person(cookie) => ("application/x-www-form-urlencoded", String::new(), cookie),
    };
    let mut fields = parts.next().unwrap_or_default().split(|byte| *byte == b'|');
    let kind = fields.next().unwrap_or_default();
    let credential = parts.next().unwrap_or_default();
    let usual = [
        (header::CONTENT_TYPE, kind, form),
        (header::AUTHORIZATION, credential, bearer.as_str()),
        (header::COOKIE, &b""[..], cookie),
    ];
    for (name, sent, usual) in usual {
        let sent = if sent.is_empty() { usual.as_bytes() } else { sent };
        if let Some(value) = HeaderValue::from_bytes(sent).ok().filter(|_| !sent.is_empty()) {
            request = request.header(name, value);
        }
    }
    for field in fields {
        let (name, value) =
            field.split_at(field.iter().position(|byte| *byte == b':').unwrap_or(field.len()));
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.trim_ascii()), HeaderValue::from_bytes(value))
        {
            request = request.header(name, value);
        }
    }
    let body = with_ids(parts.next().unwrap_or_default(), ids);
    if request.headers_ref().is_some_and(|headers| !headers.contains_key(header::HOST)) {
        request = request.header(header::HOST, HOST);
    }
    let request = request.header("x-forwarded-for", address()).extension(ConnectInfo(PEER));
    request.body(Body::from(body)).ok()
}

/// A message to a method, with the length before it or framed by itself.
pub fn over_grpc(
    method: &str,
    is_framed: bool,
    rest: &[u8],
    credential: &[u8],
) -> Request<tonic::body::Body> {
    let mut body = Vec::new();
    if is_framed {
        body.push(0);
        body.extend(u32::try_from(rest.len()).unwrap_or(u32::MAX).to_be_bytes());
    }
    body.extend(rest);
    let mut request = Request::post(method).header(header::CONTENT_TYPE, "application/grpc");
    let credential = HeaderValue::from_bytes(credential).ok().filter(|credential| !credential.is_empty());
    if let Some(credential) = credential {
        request = request.header(header::AUTHORIZATION, credential);
    }
    request.body(tonic::body::Body::new(http_body_util::Full::from(body))).expect("a request")
}
