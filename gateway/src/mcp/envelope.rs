//! The JSON-RPC 2.0 envelope: parses messages without interpreting their methods.

use serde_json::{Map, Value};

use super::failure::Failure;

/// 2 to the 53rd: integers up to here are exact in a floating-point number.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// Expects a response.
    Request(Request),
    /// Expects none.
    Notification(Request),
    /// A response; we never send requests, so it is ignored.
    Response,
}

/// A method and its parameters.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    /// Null for a notification.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

impl Message {
    /// The id that a response to it carries.
    pub(super) fn id(&self) -> Value {
        match self {
            Self::Request(request) => request.id.clone(),
            Self::Notification(_) | Self::Response => Value::Null,
        }
    }
}

impl Request {
    /// A value of `params._meta`.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// An optional string parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }

    /// A required string parameter.
    pub(super) fn required(&self, name: &str) -> Result<&str, Failure> {
        let wrong = || Failure::invalid_params(format!("{}: `{name}` must be a string", self.method));
        self.text(name).ok_or_else(wrong)
    }

    /// The cursor of a list request; `None` for the first page.
    pub(super) fn cursor(&self) -> Result<Option<&str>, Failure> {
        match self.params.get("cursor") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(cursor)) => Ok(Some(cursor)),
            Some(_) => Err(Failure::wrong_cursor()),
        }
    }

    /// Rejects a cursor for lists of a single page.
    pub(super) fn no_cursor(&self) -> Result<(), Failure> {
        match self.cursor()? {
            None => Ok(()),
            Some(_) => {
                let message = format!("{}: there is one page, so no cursor is valid", self.method);
                Err(Failure::invalid_params(message))
            }
        }
    }
}

/// The id of a message that may be a request.
pub(super) fn request_id(message: &Value) -> Option<&Value> {
    message.get("id").filter(|id| is_id(id))
}

/// A fractional number, or one beyond exact precision, would not round-trip.
fn is_id(id: &Value) -> bool {
    let is_whole = |number: f64| number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER;
    id.is_string() || id.is_i64() || id.is_u64() || id.as_f64().is_some_and(is_whole)
}

/// Parses a message; an invalid one is refused under its id if that is valid.
pub(super) fn read(value: Value) -> Result<Message, (Value, Failure)> {
    let Value::Object(mut fields) = value else {
        return Err((Value::Null, Failure::invalid_request("a message is a JSON object")));
    };
    let id = fields.remove("id");
    let known_id = id.clone().filter(is_id).unwrap_or_default();
    let refused = |failure: Failure| Err((known_id.clone(), failure));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused(Failure::invalid_request("`jsonrpc` must be \"2.0\""));
    }
    if id.is_some() && known_id.is_null() {
        return refused(Failure::invalid_request(
            "`id` must be a string or a whole number; leave it out in a notification",
        ));
    }
    let method = match fields.remove("method") {
        Some(Value::String(method)) => method,
        None if id.is_some() && (fields.contains_key("result") || fields.contains_key("error")) => {
            return Ok(Message::Response);
        }
        _ => return refused(Failure::invalid_request("`method` must be a string")),
    };
    let params = match fields.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return refused(Failure::invalid_params("`params` must be an object").bad_request()),
    };
    if id.is_some() {
        return Ok(Message::Request(Request { id: known_id, method, params }));
    }
    Ok(Message::Notification(Request { id: Value::Null, method, params }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let request = read(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap();
        assert!(matches!(request, Message::Request(ref ping) if ping.id == 1 && ping.method == "ping"));
        let notification = read(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        assert!(matches!(notification, Message::Notification(_)));
        assert_eq!(read(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), Ok(Message::Response));
    }

    #[test]
    fn what_is_no_message_is_refused_under_its_id() {
        for (value, id, code) in [
            (json!(1), json!(null), -32600),
            (json!({}), json!(null), -32600),
            (json!({"id": 7, "method": "ping"}), json!(7), -32600),
            (json!({"jsonrpc": "1.0", "id": 7, "method": "ping"}), json!(7), -32600),
            (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), json!(null), -32600),
            (json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}), json!(null), -32600),
            (json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}), json!(null), -32600),
            (json!({"jsonrpc": "2.0", "id": true, "method": "ping"}), json!(null), -32600),
            (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), json!(null), -32600),
            (json!({"jsonrpc": "2.0", "id": 1e30, "method": "ping"}), json!(null), -32600),
            (json!({"jsonrpc": "2.0", "id": "a", "method": 5}), json!("a"), -32600),
            (json!({"jsonrpc": "2.0", "id": "a"}), json!("a"), -32600),
            (json!({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": [1]}), json!("a"), -32602),
        ] {
            let (refused, failure) = read(value.clone()).unwrap_err();
            assert_eq!((refused, failure.code), (id, code), "{value}");
        }
    }
}
