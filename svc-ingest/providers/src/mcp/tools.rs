//! The search and fetch tools of a server. Only tools that the server marks as read-only, or that the admin chose, are called.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::session::{Answer, Session};
use crate::rest::{Items, MAX_LIST_BYTES, read};
use crate::{Call, Fault};

/// Pages of the list of tools.
const MAX_PAGES: usize = 20;
const SEARCH: &str = "search";
const FETCH: &str = "fetch";
/// Usual names of the argument for a query or an id, the most likely first.
const QUERY_ARGUMENTS: [&str; 5] = ["query", "q", "search", "text", "question"];
const ID_ARGUMENTS: [&str; 3] = ["id", "uri", "url"];

/// The tools that the admin chose.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    pub(super) search_tool: Option<String>,
    pub(super) query_argument: Option<String>,
    pub(super) fetch_tool: Option<String>,
}

/// The tools that may be called.
#[derive(Debug, Clone, Default)]
pub(super) struct Tools {
    pub(super) search: Option<Tool>,
    pub(super) fetch: Option<Tool>,
}

/// A tool and the argument that takes the query or the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) argument: String,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: Items<'a>,
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Offered {
    name: String,
    #[serde(default)]
    annotations: Option<Annotations>,
    #[serde(rename = "inputSchema", default)]
    input: Option<Input>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint", default)]
    read_only: bool,
}

#[derive(Default, Deserialize)]
struct Input {
    #[serde(default)]
    properties: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    required: Vec<String>,
}

impl Tools {
    /// Selects them from the server's tools.
    pub(super) async fn find(session: &Session, call: &Call, choice: &Choice) -> Result<Self, Fault> {
        let mut found = Self::default();
        if !session.greet(call).await?.has_tools {
            return Ok(found);
        }
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let Answer::Result(result) = session.request(call, "tools/list", params, MAX_LIST_BYTES).await?
            else {
                return Ok(found);
            };
            let listed: Listed<'_> = read(result.as_bytes())?;
            // Tools that cannot be parsed are skipped.
            for offered in listed.tools.each::<Offered>().flatten() {
                found.consider(offered, choice);
            }
            let is_enough = found.search.is_some() && found.fetch.is_some();
            match listed.next_cursor {
                Some(next) if !is_enough && cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => break,
            }
        }
        Ok(found)
    }

    fn consider(&mut self, offered: Offered, choice: &Choice) {
        let is_read_only = offered.annotations.is_some_and(|annotations| annotations.read_only);
        let is_wanted = |chosen: &Option<String>, usual: &str| match chosen {
            Some(chosen) => *chosen == offered.name,
            None => is_read_only && offered.name == usual,
        };
        let input = offered.input.unwrap_or_default();
        if is_wanted(&choice.search_tool, SEARCH) {
            let argument = choice.query_argument.clone().unwrap_or_else(|| input.argument(&QUERY_ARGUMENTS));
            self.search = Some(Tool { name: offered.name, argument });
        } else if is_wanted(&choice.fetch_tool, FETCH) {
            self.fetch = Some(Tool { name: offered.name, argument: input.argument(&ID_ARGUMENTS) });
        }
    }
}

impl Input {
    /// The name of the argument: a usual name, else the only required one.
    fn argument(&self, usual: &[&str]) -> String {
        let named = usual.iter().find(|name| self.properties.contains_key(**name));
        match (named, self.required.as_slice()) {
            (None, [only]) => only.clone(),
            (named, _) => named.or(usual.first()).map_or_else(String::new, |name| (*name).to_owned()),
        }
    }
}

/// The result of a tool.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Output {
    #[serde(default)]
    pub(super) content: Vec<Value>,
    #[serde(rename = "structuredContent", default)]
    pub(super) structured: Option<Value>,
    #[serde(rename = "isError", default)]
    is_error: bool,
}

impl Output {
    /// The structured content, or the JSON in the only text.
    pub(super) fn value(&self) -> Option<Value> {
        self.structured.clone().or_else(|| match self.texts().collect::<Vec<_>>().as_slice() {
            [only] => cairn_chassis::json::read(only.as_bytes()).ok(),
            _ => None,
        })
    }

    /// The texts in it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let texts =
            self.content.iter().filter(|block| block.get("type").and_then(Value::as_str) == Some("text"));
        texts.filter_map(|block| block.get("text").and_then(Value::as_str))
    }
}

impl Tool {
    /// Calls the tool.
    pub(super) async fn call(
        &self,
        session: &Session,
        call: &Call,
        value: &str,
        most_bytes: usize,
    ) -> Result<Output, Fault> {
        let arguments = serde_json::Map::from_iter([(self.argument.clone(), value.into())]);
        let params = json!({ "name": self.name, "arguments": arguments });
        let Answer::Result(result) = session.request(call, "tools/call", params, most_bytes).await? else {
            return Err(Fault::Refused);
        };
        let output: Output = cairn_chassis::json::read(result.as_bytes())
            .map_err(|_| Fault::broken("what the tool of the server gives is not what MCP says it is"))?;
        if output.is_error { Err(Fault::Refused) } else { Ok(output) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(value: Value) -> Offered {
        serde_json::from_value(value).unwrap()
    }

    fn found(choice: &Choice, tools: &[Value]) -> Tools {
        let mut found = Tools::default();
        tools.iter().for_each(|tool| found.consider(offered(tool.clone()), choice));
        found
    }

    #[test]
    fn a_tool_that_may_write_is_never_taken_by_itself() {
        let choice = Choice::default();
        assert!(found(&choice, &[json!({"name": "search"})]).search.is_none());
        assert!(
            found(&choice, &[json!({"name": "search", "annotations": {"readOnlyHint": false}})])
                .search
                .is_none()
        );
        let read_only = json!({"name": "search", "annotations": {"readOnlyHint": true}});
        assert_eq!(
            found(&choice, &[read_only]).search,
            Some(Tool { name: "search".into(), argument: "query".into() })
        );
        let delete = json!({"name": "delete_all", "annotations": {"readOnlyHint": true}});
        assert!(found(&choice, &[delete]).search.is_none());
    }

    #[test]
    fn what_the_admin_chose_is_taken_with_the_argument_that_fits() {
        let choice = Choice { search_tool: Some("find_docs".into()), ..Choice::default() };
        let only = json!({"name": "find_docs", "inputSchema": {"properties": {"needle": {}, "max": {}}, "required": ["needle"]}});
        assert_eq!(found(&choice, &[only]).search.unwrap().argument, "needle");
        let usual = json!({"name": "find_docs", "inputSchema": {"properties": {"q": {}, "x": {}}, "required": ["x"]}});
        assert_eq!(found(&choice, &[usual]).search.unwrap().argument, "q");
        let named = Choice { query_argument: Some("x".into()), ..choice };
        let both = json!({"name": "find_docs", "inputSchema": {"properties": {"query": {}, "x": {}}}});
        assert_eq!(found(&named, &[both]).search.unwrap().argument, "x");
        let usual = json!({"name": "search", "annotations": {"readOnlyHint": true}});
        assert!(found(&named, &[usual]).search.is_none(), "another was chosen");
    }
}
