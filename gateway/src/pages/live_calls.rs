//! The live list of agent calls: caller, tool, number of results, duration. Never the content of a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::parts::{self, Choice, Tone};
use super::words;
use crate::events::AgentCall;
use crate::schema::inputs;

inputs!(LiveListQuery);

const MAX_CALLS: usize = 12;

/// The filter of the list, and whether it is paused.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct LiveListQuery {
    /// The id of a token or an app; all without one.
    who: Option<String>,
    /// `paused`, or nothing.
    wire: Option<String>,
}

impl LiveListQuery {
    fn who(&self) -> &str {
        self.who.as_deref().unwrap_or_default()
    }

    fn is_paused(&self) -> bool {
        self.wire.as_deref() == Some("paused")
    }
}

/// The list of a workspace's calls.
pub(super) fn section(workspace: WorkspaceId, calls: &[Arc<AgentCall>], shown: &LiveListQuery) -> Markup {
    let fitting = calls.iter().filter(|call| shown.who().is_empty() || call.principal_id == shown.who());
    let fitting: Vec<_> = fitting.take(MAX_CALLS).collect();
    let live = (!shown.is_paused()).then_some("call");
    html! {
        section #wire aria-labelledby="wire-title" data-live=[live] {
            h2 #wire-title { "As it happens" }
            @if calls.is_empty() {
                p.quiet { "Calls of agents appear here as they come, with what they asked for and how long it took. None has come since this server began." }
            } @else {
                (choices(workspace, calls, shown))
                @if fitting.is_empty() { p.quiet { "No call of this one has come of late." } } @else { (table(&fitting)) }
            }
        }
    }
}

fn choices(workspace: WorkspaceId, calls: &[Arc<AgentCall>], shown: &LiveListQuery) -> Markup {
    let callers: BTreeMap<&str, &str> =
        calls.iter().map(|call| (call.principal_id.as_str(), call.principal_name.as_str())).collect();
    let all = Choice { value: "", label: "Everybody", is_chosen: shown.who().is_empty() };
    let each =
        callers.into_iter().map(|(value, label)| Choice { value, label, is_chosen: value == shown.who() });
    let address = format!("/w/{workspace}");
    html! {
        form.filter method="get" action=(address) data-swap="#wire" {
            (parts::choices("who", "Who", [all].into_iter().chain(each)))
            button type="submit" { "Show" }
            @if shown.is_paused() { button.primary type="submit" { "Go on" } }
            @else { button type="submit" name="wire" value="paused" { "Pause" } }
        }
    }
}

fn table(calls: &[&Arc<AgentCall>]) -> Markup {
    let rows = html! {
        @for call in calls {
            tr {
                th scope="row" { bdi { (call.principal_name) } }
                td { code { (call.tool) } }
                td.number {
                    @if call.failed { (parts::badge(Tone::Wrong, "Refused")) }
                    @else if let Some(results) = call.results { (words::grouped(results as u64)) }
                }
                td.number { (words::grouped(call.ms)) " ms" }
                td { (parts::time(&call.at)) }
            }
        }
    };
    parts::table("Calls of late", &["Who", "What", "Results", "Took", "When"], &rows)
}

/// The result of the last search, in words.
pub(super) fn last_search(calls: &[Arc<AgentCall>]) -> Option<String> {
    let is_search = |call: &&Arc<AgentCall>| {
        !call.failed && matches!(call.tool.as_str(), "search_context" | "POST /api/v1/search_context")
    };
    let call = calls.iter().find(is_search)?;
    Some(match call.results {
        Some(results) => {
            let results = words::count(results as u64, "result", "results");
            format!("Its last search: {results}, {} ms.", words::grouped(call.ms))
        }
        None => format!("Its last search took {} ms.", words::grouped(call.ms)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(who: &str, tool: &str) -> Arc<AgentCall> {
        Arc::new(AgentCall {
            principal_kind: "token",
            principal_id: who.to_owned(),
            principal_name: format!("<b>{who}"),
            channel: "mcp",
            tool: tool.to_owned(),
            results: Some(4),
            failed: false,
            ms: 6,
            at: "2026-11-23T14:05:09Z".to_owned(),
        })
    }

    #[test]
    fn calls_are_shown_of_all_or_of_one_and_stand_still_when_paused() {
        let workspace = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let calls = [call("a", "search_context"), call("b", "get_file")];
        let all = section(workspace, &calls, &LiveListQuery::default()).into_string();
        assert!(
            all.contains("&lt;b&gt;a") && all.contains("get_file") && all.contains("data-live=\"call\""),
            "{all}"
        );
        let one = LiveListQuery { who: Some("b".to_owned()), wire: Some("paused".to_owned()) };
        let one = section(workspace, &calls, &one).into_string();
        assert!(
            !one.contains("search_context") && one.contains("get_file") && !one.contains("data-live"),
            "{one}"
        );
        assert_eq!(last_search(&calls).unwrap(), "Its last search: 4 results, 6 ms.");
        assert_eq!(last_search(&calls[1..]), None);
    }
}
