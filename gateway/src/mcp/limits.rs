//! The rate-limit units and the cost of a body, and its refusal: SDKs show the message of a JSON-RPC error only if
//! it carries the request's id.

use axum::response::{IntoResponse as _, Response};
use cairn_chassis::status::Problem;
use http::{HeaderValue, header};
use serde_json::{Value, json};

use super::body::Body;
use super::failure::{Failure, failure_message};
use super::reply::Reply;
use super::{envelope, tools};
use crate::cost::Cost;
use crate::rate_limit::{Refusal, WindowState};

/// The methods that count towards the rate limit (spec 8); all others are free.
const COUNTED: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];

/// How many rate-limit units a body counts. A body that is rejected as a whole counts none.
pub(super) fn units(body: &Body) -> u32 {
    u32::try_from(body.messages().iter().filter(|message| counts(message)).count()).unwrap_or(u32::MAX)
}

/// A notification counts nothing.
fn counts(message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    message.get("id").is_some() && method.is_some_and(|method| COUNTED.contains(&method))
}

/// The admission cost of a body: that of its most expensive message, because a batch runs sequentially.
pub(super) fn cost(body: &Body) -> Cost {
    body.messages().iter().map(cost_of).max().unwrap_or(Cost::POINT)
}

fn cost_of(message: &Value) -> Cost {
    match message.get("method").and_then(Value::as_str) {
        Some("tools/call") => tools::cost(message.pointer("/params/name").and_then(Value::as_str)),
        Some(
            "resources/list" | "resources/read" | "prompts/list" | "prompts/get" | "completion/complete",
        ) => Cost::LIST,
        Some(_) | None => Cost::POINT,
    }
}

/// The response to a rate-limited body: an error for each of its requests.
pub(super) fn refuse(refusal: Refusal, body: Option<&Body>) -> Response {
    let failure = || match refusal {
        Refusal::Exhausted { state, .. } => Failure::rate_limited(refusal.to_string(), details(state)),
        Refusal::TooLarge { .. } => Failure::invalid_request(refusal.to_string()),
    };
    let mut response = answer(failure, body);
    if let Refusal::Exhausted { state, .. } = refusal {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(state.resets_in));
    }
    response
}

/// The response to a body that was not admitted: none of it was run.
pub(super) fn shed(busy: &Problem, body: &Body) -> Response {
    let seconds = busy.retry_after.map_or(1, |wait| wait.as_secs().max(1));
    let mut response = answer(|| Failure::overloaded(&busy.message, seconds), Some(body));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// The same failure for each request of a body.
fn answer(failure: impl Fn() -> Failure, body: Option<&Body>) -> Response {
    let status = failure().status;
    let answer = match body {
        Some(Body::Batch(members)) => {
            let asked = members.iter().filter_map(envelope::request_id);
            Value::Array(asked.map(|id| failure_message(id.clone(), failure())).collect())
        }
        Some(Body::Single(message)) => {
            failure_message(envelope::request_id(message).cloned().unwrap_or_default(), failure())
        }
        Some(Body::Refused(_)) | None => failure_message(Value::Null, failure()),
    };
    Reply { status, body: Some(answer) }.into_response()
}

fn details(state: WindowState) -> Value {
    json!({
        "retryAfterSeconds": state.resets_in,
        "limit": state.limit,
        "remaining": state.remaining,
        "window": state.window.as_str(),
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::mcp::batch;

    fn units(headers: &HeaderMap, body: &Value) -> u32 {
        super::units(&Body::of(headers, Ok(body.clone())))
    }

    fn call(id: u32) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x"}})
    }

    #[test]
    fn only_what_reads_or_acts_counts() {
        let none = HeaderMap::new();
        assert_eq!(units(&none, &call(1)), 1);
        for free in [
            "initialize",
            "ping",
            "tools/list",
            "server/discover",
            "skills/list",
            "notifications/initialized",
        ] {
            assert_eq!(units(&none, &json!({"jsonrpc": "2.0", "id": 1, "method": free})), 0, "{free}");
        }
        let notification = json!({"jsonrpc": "2.0", "method": "tools/call"});
        let mixed = json!([
            call(1),
            notification,
            {"jsonrpc": "2.0", "id": 2, "method": "resources/read"},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
            5,
            {"jsonrpc": "2.0", "id": 4, "method": "prompts/get"},
        ]);
        assert_eq!(units(&none, &mixed), 3);
        assert_eq!(units(&none, &json!([call(1), call(1)])), 0, "two of one id are refused");
        assert_eq!(units(&none, &json!([])), 0);
        assert_eq!(units(&none, &json!("tools/call")), 0);
    }

    #[test]
    fn a_body_costs_what_its_tools_do() {
        let cost = |body: &Value| super::cost(&Body::of(&HeaderMap::new(), Ok(body.clone())));
        let call = |name: &str| json!({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name}});
        assert_eq!(cost(&call("get_file")), Cost::POINT);
        assert_eq!(cost(&call("search_context")), Cost::SEARCH);
        assert_eq!(cost(&call("browse_context")), Cost::SCRIPT);
        assert_eq!(cost(&call("create_file")), Cost::WRITE);
        assert_eq!(cost(&call("no_such_tool")), Cost::POINT);
        assert_eq!(cost(&json!([call("get_file"), call("search_context"), 5])), Cost::SEARCH);
        for cheap in [json!({"id": 1, "method": "ping"}), json!([]), json!(7)] {
            assert_eq!(cost(&cheap), Cost::POINT, "{cheap}");
        }
    }

    #[test]
    fn every_request_of_a_batch_without_a_place_is_told() {
        let busy = Problem::unavailable("too much", std::time::Duration::from_secs(1));
        let body = json!([call(1), call(2), {"jsonrpc": "2.0", "method": "x"}]);
        let response = shed(&busy, &Body::of(&HeaderMap::new(), Ok(body)));
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "1");
    }

    #[test]
    fn what_runs_nothing_counts_nothing() {
        let long: Vec<Value> = (0..=batch::MAX_MESSAGES).map(|id| call(u32::try_from(id).unwrap())).collect();
        assert_eq!(units(&HeaderMap::new(), &Value::Array(long)), 0);
        let modern: HeaderMap =
            [(http::HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static("2026-07-28"))]
                .into_iter()
                .collect();
        assert_eq!(units(&modern, &json!([call(1)])), 0);
    }

    #[test]
    fn every_request_of_a_batch_learns_when_to_come_back() {
        let state =
            WindowState { window: crate::rate_limit::Window::Minute, limit: 5, remaining: 1, resets_in: 12 };
        let refusal = Refusal::Exhausted { plan: "free", units: 2, state };
        let body = json!([call(1), call(2), {"jsonrpc": "2.0", "method": "x"}]);
        let response = refuse(refusal, Some(&Body::of(&HeaderMap::new(), Ok(body))));
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()["retry-after"], "12");
    }
}
