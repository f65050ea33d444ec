//! The JSON-RPC 2.0 envelope: what a message is, before anybody asks what it wants.

use serde_json::{Map, Value};

use super::reply::Failure;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// It wants an answer.
    Request(Request),
    /// It wants none.
    Notification(Request),
    /// It answers something; we never ask, so there is nothing to do with it.
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
    /// The id that an answer to it bears.
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

    /// A parameter that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }
}

/// Reads a message; what is not one is refused under the id that it bears, if that is one.
pub(super) fn read(value: Value) -> Result<Message, (Value, Failure)> {
    let Value::Object(mut fields) = value else {
        return Err((Value::Null, Failure::invalid_request("a message is a JSON object")));
    };
    let id = fields.remove("id");
    let known_id = id.clone().filter(|id| id.is_string() || id.is_number()).unwrap_or_default();
    let refused = |failure: Failure| Err((known_id.clone(), failure));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refused(Failure::invalid_request("`jsonrpc` must be \"2.0\""));
    }
    if id.is_some() && known_id.is_null() {
        return refused(Failure::invalid_request(
            "`id` must be a string or a number; leave it out in a notification",
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
            (json!({"jsonrpc": "2.0", "id": "a", "method": 5}), json!("a"), -32600),
            (json!({"jsonrpc": "2.0", "id": "a"}), json!("a"), -32600),
            (json!({"jsonrpc": "2.0", "id": "a", "method": "ping", "params": [1]}), json!("a"), -32602),
        ] {
            let (refused, failure) = read(value.clone()).unwrap_err();
            assert_eq!((refused, failure.code), (id, code), "{value}");
        }
    }
}
