//! Reads any bytes as a client's message and judges it by the rules of both eras.
//!
//! The three modules are compiled as they stand in the gateway, which shows them to nobody: `tests/fuzz/run.sh envelope`.
#![no_main]

#[path = "../../../gateway/src/mcp"]
mod mcp {
    #![allow(dead_code, reason = "the gateway uses what is not used here")]

    mod envelope;
    mod era;
    mod failure;

    use http::{HeaderMap, HeaderName, HeaderValue};
    use serde_json::Value;

    use self::envelope::Message;
    use self::era::Era;
    use self::failure::{Failure, failure_message};

    const HEADERS: [&str; 3] = ["mcp-protocol-version", "mcp-method", "mcp-name"];

    /// The first lines are headers, the rest is the body.
    pub(crate) fn read(data: &[u8]) {
        let mut parts = data.splitn(HEADERS.len() + 1, |byte| *byte == b'\n');
        let mut headers = HeaderMap::new();
        for name in HEADERS {
            let sent = parts.next().unwrap_or_default();
            if let Some(value) = HeaderValue::from_bytes(sent).ok().filter(|_| !sent.is_empty()) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        match serde_json::from_slice(parts.next().unwrap_or_default()) {
            Ok(Value::Array(members)) => {
                let _ = era::allow_batch(&headers);
                for member in members {
                    message(member, &headers);
                }
            }
            Ok(value) => message(value, &headers),
            Err(error) => check(Value::Null, Failure::parse_error(&error)),
        }
    }

    fn message(value: Value, headers: &HeaderMap) {
        let asked = envelope::request_id(&value).cloned();
        let message = match envelope::read(value) {
            Ok(message) => message,
            Err((id, failure)) => {
                assert_eq!(id, asked.unwrap_or_default(), "a refusal bears the id of what it refuses");
                return check(id, failure);
            }
        };
        if let Message::Request(request) = &message {
            assert_eq!(Some(&request.id), asked.as_ref());
        }
        match era::judge(&message, headers) {
            Ok(Era::Modern) => {
                let version = headers.get(HEADERS[0]).and_then(|value| value.to_str().ok()).unwrap();
                // White space around a value is no part of it (RFC 9110, section 5.5).
                assert_eq!(version.trim(), era::SUPPORTED[0]);
            }
            Ok(Era::Legacy) => {}
            Err(failure) => check(message.id(), failure),
        }
    }

    /// What a client gets is a whole error, whatever it sent.
    fn check(id: Value, failure: Failure) {
        assert!(failure.status.is_success() || failure.status.is_client_error());
        let told = failure_message(id, failure);
        assert!(told["error"]["code"].is_i64() && !told["error"]["message"].as_str().unwrap().is_empty());
        assert!(told.to_string().len() < 4096 || told["id"].is_string(), "no error repeats what was sent");
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp::read(data));
