//! The two eras of MCP on one endpoint: 2025-03-26 to 2025-11-25 with `initialize`, and 2026-07-28 where each
//! request carries its version in `_meta` and repeats its method and subject in headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::envelope::{Message, Request};
use super::failure::{self, Failure};

/// Every supported version, newest first.
pub(super) const SUPPORTED: [&str; 4] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];
/// The first version of the modern era.
const MODERN: &str = "2026-07-28";
/// What a legacy peer is offered if it requests an unsupported version.
const NEWEST_LEGACY: &str = "2025-11-25";

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_META: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_META: &str = "io.modelcontextprotocol/serverInfo";

/// The error code of a missing resource in the 2025 era; later versions use another.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The rules that a message follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// The error code of a resource that does not exist or is not visible to the caller.
    pub(super) const fn unknown_resource(self) -> i64 {
        match self {
            Self::Legacy => RESOURCE_NOT_FOUND,
            Self::Modern => failure::INVALID_PARAMS,
        }
    }

    /// Adds the result fields that the era requires.
    pub(super) fn stamped(self, mut result: Map<String, Value>) -> Value {
        if self == Self::Modern {
            result.entry("resultType").or_insert_with(|| Value::from("complete"));
            let meta = result.entry("_meta").or_insert_with(|| json!({}));
            if let Some(fields) = meta.as_object_mut() {
                fields.insert(SERVER_INFO_META.to_owned(), server_info());
            }
        }
        Value::Object(result)
    }
}

/// `serverInfo`.
pub(super) fn server_info() -> Value {
    json!({"name": "cairn", "title": "Cairn", "version": env!("CARGO_PKG_VERSION")})
}

/// Negotiates the version in `initialize`; never the modern one, whose peers do not negotiate.
pub(super) fn negotiated(requested: &str) -> &'static str {
    let spoken = SUPPORTED.into_iter().find(|version| *version == requested && *version < MODERN);
    spoken.unwrap_or(NEWEST_LEGACY)
}

/// Whether the request itself declares the modern era.
pub(super) fn is_modern(request: &Request) -> bool {
    request.meta(VERSION_META).is_some()
}

/// Determines the era of a message and checks the era's transport rules.
pub(super) fn judge(message: &Message, headers: &HeaderMap) -> Result<Era, Failure> {
    let version = header(headers, VERSION_HEADER);
    let named = match message {
        Message::Request(request) | Message::Notification(request) => request.meta(VERSION_META),
        Message::Response => None,
    };
    if named.is_none() && version.is_none_or(|version| version < MODERN) {
        return legacy(version).map(|()| Era::Legacy);
    }
    let Some(version) = version else {
        return Err(Failure::header_mismatch("the header MCP-Protocol-Version is required"));
    };
    if named.is_some_and(|named| named.as_str() != Some(version)) {
        let message = format!("the header MCP-Protocol-Version and `_meta[\"{VERSION_META}\"]` differ");
        return Err(Failure::header_mismatch(message));
    }
    if version != MODERN {
        return Err(Failure::unsupported_version(version, &SUPPORTED));
    }
    match message {
        Message::Request(request) => {
            required_meta(request, VERSION_META, named.is_some())?;
            check_headers(request, headers)?;
            let has_capabilities = request.meta(CAPABILITIES_META).is_some_and(Value::is_object);
            required_meta(request, CAPABILITIES_META, has_capabilities)?;
        }
        Message::Notification(notification) => check_headers(notification, headers)?,
        Message::Response => {}
    }
    Ok(Era::Modern)
}

/// Whether the headers allow a batch.
pub(super) fn allow_batch(headers: &HeaderMap) -> Result<(), Failure> {
    let version = header(headers, VERSION_HEADER);
    if version.is_some_and(|version| version >= MODERN) {
        return Err(Failure::invalid_request(
            "since 2026-07-28 a request holds one message: send them one by one",
        ));
    }
    legacy(version)
}

fn legacy(version: Option<&str>) -> Result<(), Failure> {
    match version {
        // A missing header means 2025-03-26, which had none.
        None => Ok(()),
        Some(version) if SUPPORTED.contains(&version) => Ok(()),
        Some(version) => Err(Failure::unsupported_version(version, &SUPPORTED)),
    }
}

fn required_meta(request: &Request, key: &str, is_there: bool) -> Result<(), Failure> {
    if is_there {
        return Ok(());
    }
    let message = format!("{}: `_meta[\"{key}\"]` is required", request.method);
    Err(Failure::invalid_params(message).bad_request())
}

/// Headers must match the body, so that a proxy routing by them cannot be fooled.
fn check_headers(request: &Request, headers: &HeaderMap) -> Result<(), Failure> {
    match header(headers, METHOD_HEADER) {
        Some(method) if method == request.method => {}
        Some(_) => return Err(Failure::header_mismatch("the header Mcp-Method and `method` differ")),
        None => return Err(Failure::header_mismatch("the header Mcp-Method is required")),
    }
    let subject = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let Some(sent) = header(headers, NAME_HEADER) else {
        return Err(Failure::header_mismatch("the header Mcp-Name is required"));
    };
    let same = decoded(sent).is_some_and(|name| Some(name.as_str()) == request.text(subject));
    if same {
        return Ok(());
    }
    Err(Failure::header_mismatch(format!("the header Mcp-Name and `params.{subject}` differ")))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // A non-text value compares unequal to anything in a body.
    headers.get(name).map(|value| value.to_str().unwrap_or("?").trim())
}

/// Decodes `=?base64?…?=`, the encoding of names that a header cannot hold.
fn decoded(sent: &str) -> Option<String> {
    let Some(encoded) = sent.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(sent.to_owned());
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::envelope;
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    fn modern_call(name: &str) -> Message {
        let meta = json!({VERSION_META: MODERN, CAPABILITIES_META: {}});
        let params = json!({"name": name, "_meta": meta});
        envelope::read(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).unwrap()
    }

    fn refused(message: &Message, pairs: &[(&'static str, &str)]) -> i64 {
        let failure = judge(message, &headers(pairs)).unwrap_err();
        assert_eq!(failure.status.as_u16(), 400);
        failure.code
    }

    #[test]
    fn the_headers_of_a_modern_request_repeat_its_body() {
        let version = ("mcp-protocol-version", MODERN);
        let method = ("mcp-method", "tools/call");
        let call = modern_call("get_file");
        assert_eq!(judge(&call, &headers(&[version, method, ("mcp-name", "get_file")])), Ok(Era::Modern));
        let encoded = ("mcp-name", "=?base64?Z2V0X2ZpbGU=?=");
        assert_eq!(judge(&call, &headers(&[version, method, encoded])), Ok(Era::Modern));
        for wrong in [
            &[method, ("mcp-name", "get_file")][..],
            &[version, ("mcp-name", "get_file")],
            &[version, method],
            &[version, method, ("mcp-name", "list_files")],
            &[version, ("mcp-method", "tools/list"), ("mcp-name", "get_file")],
            &[("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "get_file")],
            &[version, method, ("mcp-name", "=?base64?%%?=")],
        ] {
            assert_eq!(refused(&call, wrong), -32020, "{wrong:?}");
        }
    }

    #[test]
    fn a_version_that_is_not_spoken_is_named_with_those_that_are() {
        let future = json!({VERSION_META: "2030-01-01", CAPABILITIES_META: {}});
        let message = envelope::read(
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": future}}),
        )
        .unwrap();
        let sent = [("mcp-protocol-version", "2030-01-01"), ("mcp-method", "tools/list")];
        assert_eq!(refused(&message, &sent), -32022);
        let legacy = envelope::read(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).unwrap();
        assert_eq!(refused(&legacy, &[("mcp-protocol-version", "2024-11-05")]), -32022);
        assert_eq!(judge(&legacy, &headers(&[("mcp-protocol-version", "2025-06-18")])), Ok(Era::Legacy));
        assert_eq!(judge(&legacy, &HeaderMap::new()), Ok(Era::Legacy));
    }

    #[test]
    fn a_modern_request_says_what_its_client_can() {
        let meta = json!({VERSION_META: MODERN});
        let message = envelope::read(
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}),
        )
        .unwrap();
        let sent = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
        assert_eq!(refused(&message, &sent), -32602);
        let bare = envelope::read(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).unwrap();
        assert_eq!(refused(&bare, &sent), -32602);
    }

    #[test]
    fn initialize_settles_on_a_version_of_its_era() {
        assert_eq!(negotiated("2025-03-26"), "2025-03-26");
        for other in ["2026-07-28", "2024-11-05", "", "nonsense"] {
            assert_eq!(negotiated(other), NEWEST_LEGACY);
        }
    }

    #[test]
    fn batches_are_of_the_legacy_era() {
        assert!(allow_batch(&HeaderMap::new()).is_ok());
        assert!(allow_batch(&headers(&[("mcp-protocol-version", "2025-11-25")])).is_ok());
        assert!(allow_batch(&headers(&[("mcp-protocol-version", MODERN)])).is_err());
    }
}
