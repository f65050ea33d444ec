//! JSON-RPC batches, as of 2025-03-26; later versions of the 2025 era dropped them, but we still accept them.

use std::collections::HashSet;

use http::HeaderMap;
use serde_json::Value;

use super::envelope::{self, Message};
use super::era::{self, Era};
use super::failure::{Failure, failure_message};
use super::methods;
use super::reply::{self, Reply};
use crate::operations::Context;

/// A batch runs sequentially within one deadline.
pub(super) const MAX_MESSAGES: usize = 50;

/// Checks a batch as a whole, before any of it is run.
pub(super) fn check(headers: &HeaderMap, members: &[Value]) -> Result<(), Failure> {
    era::allow_batch(headers)?;
    if members.is_empty() || members.len() > MAX_MESSAGES {
        let message = format!("a batch holds 1 to {MAX_MESSAGES} messages; send the rest in another request");
        return Err(Failure::invalid_request(message));
    }
    let mut seen = HashSet::new();
    for id in members.iter().filter_map(envelope::request_id) {
        if !seen.insert(id.to_string()) {
            let message = "two requests of the batch have the same id: no answer could be told from the other; \
                nothing of it was run";
            return Err(Failure::invalid_request(message));
        }
    }
    Ok(())
}

/// Answers a checked batch, message by message.
pub(super) async fn answer(context: &Context, members: Vec<Value>) -> Reply {
    let mut answers = Vec::new();
    for member in members {
        if let Some(answer) = answer_member(context, member).await {
            answers.push(answer);
        }
    }
    if answers.is_empty() { Reply::accepted() } else { Reply::batch(answers) }
}

async fn answer_member(context: &Context, value: Value) -> Option<Value> {
    let request = match envelope::read(value) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification(_) | Message::Response) => return None,
        Err((id, failure)) => return Some(failure_message(id, failure)),
    };
    if request.method == methods::INITIALIZE || era::is_modern(&request) {
        let message = format!("{} must be sent alone, not in a batch", request.method);
        return Some(failure_message(request.id, Failure::invalid_request(message)));
    }
    let id = request.id.clone();
    let answer = methods::answer(context, Era::Legacy, request).await;
    Some(reply::message(Era::Legacy, id, answer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_stands_once_in_a_batch() {
        let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let ok =
            [ping(json!(1)), ping(json!("1")), json!({"jsonrpc": "2.0", "method": "x"}), json!(5), json!(5)];
        assert!(
            check(&HeaderMap::new(), &ok).is_ok(),
            "a text is no number, and what is no message has no id"
        );
        let twice = [ping(json!("a")), ping(json!(1)), ping(json!("a"))];
        assert!(check(&HeaderMap::new(), &twice).is_err());
    }
}
