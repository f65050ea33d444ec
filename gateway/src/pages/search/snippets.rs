//! The search as a command line and as a tool call, for copying. No secret is included; the command reads the token
//! from the environment.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{SearchQuery, fields};
use crate::pages::parts as part;

/// The search tool.
const TOOL: &str = "search_context";
/// The environment variable of the server's URL if that is unknown, as in the `cairn` CLI.
const ADDRESS: &str = "CAIRN_URL";

/// The blocks, in a disclosure element.
pub(super) fn blocks(search_query: &SearchQuery, base: Option<&str>) -> Markup {
    html! {
        details {
            summary { "Copy this search" }
            p { "For a terminal. The variable CAIRN_TOKEN holds a token." }
            (part::snippet("copy-curl", &curl(search_query, base)))
            @if let Some(command) = command(search_query) {
                p { "With the program cairn." }
                (part::snippet("copy-cairn", &command))
            }
            p { "As a call of the tool over MCP." }
            (part::snippet("copy-tool", &call(search_query)))
        }
    }
}

fn curl(search_query: &SearchQuery, base: Option<&str>) -> String {
    const PATH: &str = "/api/v1/search_context";
    let address = match base {
        Some(base) => quoted(&format!("{base}{PATH}")),
        None => format!("\"${ADDRESS}{PATH}\""),
    };
    let body = quoted(&Value::Object(fields(search_query)).to_string());
    format!(
        "curl -sS {address} \\\n  -H \"Authorization: Bearer $CAIRN_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  \
         -d {body}"
    )
}

/// The command, if it supports all parameters.
fn command(search_query: &SearchQuery) -> Option<String> {
    let is_usual = |value: &Option<String>, usual: &str| {
        value.as_deref().is_none_or(|value| value.is_empty() || value == usual)
    };
    let mode = cairn_proto::domain::Mode::default().as_str();
    let is_narrowed =
        search_query.folder().is_some() || search_query.source.as_deref().is_some_and(|id| !id.is_empty());
    if is_narrowed || !is_usual(&search_query.mode, mode) || search_query.query().contains(char::is_control) {
        return None;
    }
    let strategy = search_query.strategy.as_deref().filter(|strategy| !strategy.is_empty());
    let strategy = strategy.map(|strategy| format!("--strategy {} ", quoted(strategy))).unwrap_or_default();
    Some(format!("cairn search {strategy}-- {}", quoted(search_query.query())))
}

fn call(search_query: &SearchQuery) -> String {
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": TOOL, "arguments": fields(search_query)},
    });
    serde_json::to_string_pretty(&call).unwrap_or_default()
}

/// Quotes a text as a single shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_query(query: &str) -> SearchQuery {
        SearchQuery { q: Some(query.to_owned()), ..SearchQuery::default() }
    }

    #[test]
    fn what_is_asked_stays_one_word_of_the_shell() {
        let curl = curl(&search_query("it's $(id) `id` \"x\"\n"), Some("https://cairn.example"));
        assert!(curl.starts_with("curl -sS 'https://cairn.example/api/v1/search_context' \\\n"), "{curl}");
        assert!(curl.ends_with(r#"-d '{"query":"it'\''s $(id) `id` \"x\""}'"#), "{curl}");
        assert!(curl.contains("Bearer $CAIRN_TOKEN\""), "{curl}");
        let unknown = super::curl(&search_query("x"), None);
        assert!(unknown.contains("\"$CAIRN_URL/api/v1/search_context\""), "{unknown}");
    }

    #[test]
    fn the_command_is_offered_where_it_says_the_same() {
        assert_eq!(command(&search_query("-x 'y'")).as_deref(), Some(r"cairn search -- '-x '\''y'\'''"));
        let narrow = SearchQuery {
            strategy: Some("keyword".to_owned()),
            mode: Some("balanced".to_owned()),
            ..search_query("x")
        };
        assert_eq!(command(&narrow).as_deref(), Some("cairn search --strategy 'keyword' -- 'x'"));
        assert_eq!(command(&SearchQuery { folder: Some("f".to_owned()), ..search_query("x") }), None);
        assert_eq!(command(&SearchQuery { mode: Some("fresh".to_owned()), ..search_query("x") }), None);
        assert_eq!(command(&search_query("a\u{1b}b")), None);
    }

    #[test]
    fn the_call_is_what_the_tool_takes() {
        let narrow = SearchQuery {
            folder: Some("f".to_owned()),
            mode: Some(String::new()),
            ..search_query("é \"x\"")
        };
        let read: Value = serde_json::from_str(&call(&narrow)).unwrap();
        assert_eq!(read["params"]["arguments"], json!({"query": "é \"x\"", "folderId": "f"}));
        assert_eq!(read["params"]["name"], "search_context");
        let html = blocks(&search_query("<script>"), None).into_string();
        assert!(!html.contains("<script>") && html.matches("data-copy").count() == 3, "{html}");
    }
}
