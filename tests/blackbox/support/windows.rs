//! The rate-limit window as responses report it, and tests that must not span two windows.

use serde_json::json;

use super::callers::{ApiToken, Caller as _};
use super::http::Reply;
use super::wait::eventually;
use super::workspace::Workspace;

/// When a window ends during a round, the next round has a fresh one.
const ROUNDS: u32 = 10;

/// The `X-RateLimit-*` headers of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) name: String,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// Seconds until it ends.
    pub(crate) reset: u64,
}

/// Parses the headers; each must be present.
#[track_caller]
pub(crate) fn window(reply: &Reply) -> Window {
    let number = |name: &str| {
        let value = reply.header(name).unwrap_or_else(|| panic!("no {name} in {reply:?}"));
        value.parse().unwrap_or_else(|_| panic!("{name}: {value} is no whole number"))
    };
    let name = reply.header("x-ratelimit-window").unwrap_or_default().to_owned();
    let length = match name.as_str() {
        "minute" => 60,
        "hour" => 3_600,
        "day" => 86_400,
        odd => panic!("no window: '{odd}' in {reply:?}"),
    };
    let reset = number("x-ratelimit-reset");
    assert!((1..=length).contains(&reset), "a {name} does not end in {reset} s");
    Window { name, limit: number("x-ratelimit-limit"), remaining: number("x-ratelimit-remaining"), reset }
}

/// Runs rounds until one begins and ends in the same window: `round` returns its first and its last window, and a
/// value. A later reset time shows that a window has ended.
pub(crate) async fn in_one_window<T>(mut round: impl AsyncFnMut() -> (Window, Window, T)) -> T {
    for _ in 0..ROUNDS {
        let (first, last, value) = round().await;
        if last.reset <= first.reset {
            return value;
        }
    }
    panic!("a window ended in each of {ROUNDS} rounds");
}

/// Gives the workspace a plan, and waits until the token has that plan's limit.
pub(crate) async fn set_plan(workspace: &Workspace, token: &ApiToken, plan: &str, limit: u64) {
    let path = format!("/api/workspaces/{}", workspace.id);
    workspace.session.patch(&path).json(json!({"plan": plan})).await.expect(200);
    let has_limit = async || (window(&token.get("/api/v1/workspace").await).limit == limit).then_some(());
    eventually("the plan holds", has_limit).await;
}
