//! A Model Context Protocol server: its resources, or its search and fetch tools.
//!
//! A server need not list all of its resources, and does not report changes: every run lists, changes are detected by hash, and deletions
//! by reading a resource.

mod results;
mod session;
mod sse;
mod tools;

use std::time::Duration;

use async_trait::async_trait;
use cairn_proto::domain::SourceMode;
use http::header;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;

use self::results::Resource;
use self::session::{Answer, Session};
use self::tools::{Choice, Tools};
use crate::connect::Draft;
use crate::rest::{Api, Collected, Items, MAX_BODY_BYTES, MAX_LIST_BYTES, read};
use crate::{
    Account, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing, Page, Partial,
    Position, Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const SHAPE: u16 = 1;
const EVERY: Duration = Duration::from_secs(60 * 60);
/// A base64 body within JSON.
const MAX_ANSWER_BYTES: usize = 2 * MAX_BODY_BYTES;

/// JSON-RPC error codes: unknown method; invalid params, which is also an unknown resource since 2026-07-28; unknown resource before that.
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const RESOURCE_NOT_FOUND: i64 = -32_002;

/// A connection to a server.
#[derive(Debug)]
struct Mcp {
    session: Session,
    choice: Choice,
    mode: SourceMode,
    tools: OnceCell<Tools>,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let settings = &mut draft.settings;
    let advice = "give the address of the server's MCP endpoint, such as https://example.com/mcp";
    let url = settings.required_address("url", advice, draft.reach.guard());
    let choice = Choice {
        search_tool: settings.text("searchTool"),
        query_argument: settings.text("queryArgument"),
        fetch_tool: settings.text("fetchTool"),
    };
    if choice.query_argument.is_some() && choice.search_tool.is_none() {
        settings.refuse("queryArgument", "invalid_value", "belongs to a tool: name it in `searchTool`");
    }
    let token = draft.credentials.secret("token");
    let mut api = Api::new(url?);
    if let Some(token) = token {
        match token.bearer() {
            Ok(value) => api = api.with(header::AUTHORIZATION, value),
            Err(_) => draft.credentials.refuse("token", "invalid_value", "cannot stand in an HTTP header"),
        }
    }
    Some(Box::new(Mcp { session: Session::new(api), choice, mode: draft.mode, tools: OnceCell::new() }))
}

impl Mcp {
    async fn tools(&self, call: &Call) -> Result<&Tools, Fault> {
        self.tools.get_or_try_init(|| Tools::find(&self.session, call, &self.choice)).await
    }

    async fn resource(&self, call: &Call, uri: &str, known: Option<&Version>) -> Result<Fetched, Fault> {
        #[derive(Deserialize)]
        struct Read<'a> {
            #[serde(borrow)]
            contents: Items<'a>,
        }
        let asked =
            self.session.request(call, "resources/read", json!({ "uri": uri }), MAX_ANSWER_BYTES).await;
        let result = match asked {
            Ok(Answer::Result(result)) => result,
            // Only a JSON-RPC error tells that: a 404 of the endpoint is not about a resource.
            Ok(Answer::Error(INVALID_PARAMS | RESOURCE_NOT_FOUND)) => return Ok(Fetched::Gone),
            Ok(Answer::Error(_)) => return Err(Fault::Refused),
            Err(Fault::TooLarge(bytes)) => return Ok(Fetched::TooLarge(bytes)),
            Err(fault) => return Err(fault),
        };
        let contents = &read::<Read<'_>>(result.as_bytes())?.contents;
        let fetched = results::cited(results::contents(contents)?, uri);
        let is_known = matches!(&fetched, Fetched::Body(body) if known == Some(&body.version));
        Ok(if is_known { Fetched::Same } else { fetched })
    }
}

#[async_trait]
impl Provider for Mcp {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::BestEffort,
            changes: Changes::None,
            deletions: Deletions::ByProbe,
            gone_after: None,
            search: if self.mode == SourceMode::Live { Search::Text } else { Search::None },
            every: EVERY,
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        let greeting = self.session.greet(call).await?;
        if self.mode == SourceMode::Live || self.choice.search_tool.is_some() {
            if self.tools(call).await?.search.is_none() {
                return Err(Fault::broken(match self.choice.search_tool {
                    Some(_) => "the server has no tool with the name that `searchTool` gives",
                    None => {
                        "the server has no tool `search` that it marks as read-only; name one in `searchTool`"
                    }
                }));
            }
        } else if !greeting.has_resources {
            return Err(Fault::broken(
                "the server has no resources that could be read; mode `live` uses its search tool",
            ));
        }
        Ok(Account::new(
            greeting.name.as_deref(),
            "The server answers. Everything that it shows with this token is read.",
        ))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        #[derive(Deserialize)]
        struct Listed<'a> {
            #[serde(borrow)]
            resources: Items<'a>,
            #[serde(rename = "nextCursor", default)]
            next_cursor: Option<String>,
        }
        let end =
            |partial| Ok::<_, Fault>(Then::End { next: Position::new(SHAPE, &None::<String>)?, partial });
        let none = || vec![Partial::everywhere("the server lists no resources")];
        let cursor: Option<String> = from.map(|from| from.read(SHAPE)).transpose()?.flatten();
        if !self.session.greet(call).await?.has_resources {
            return Page::new(Vec::new(), Vec::new(), end(none())?);
        }
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let result = match self.session.request(call, "resources/list", params, MAX_LIST_BYTES).await? {
            Answer::Result(result) => result,
            Answer::Error(METHOD_NOT_FOUND) => return Page::new(Vec::new(), Vec::new(), end(none())?),
            Answer::Error(INVALID_PARAMS) if cursor.is_some() => return Err(Fault::PositionLost),
            Answer::Error(_) => return Err(Fault::Refused),
        };
        let listed: Listed<'_> = read(result.as_bytes())?;
        let mut page = Collected::default();
        for resource in listed.resources.each::<Resource>() {
            page.take(resource.and_then(|resource| resource.entry()).map(Item::from));
        }
        let then = match listed.next_cursor.filter(|next| !next.is_empty()) {
            None => end(Vec::new())?,
            next if next == cursor => {
                return Err(Fault::broken("the server's list of resources does not go on"));
            }
            next => Then::More(Position::new(SHAPE, &next)?),
        };
        page.into_page(then)
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        if self.mode != SourceMode::Live {
            return self.resource(call, id.as_str(), known).await;
        }
        match &self.tools(call).await?.fetch {
            None => self.resource(call, id.as_str(), known).await,
            Some(tool) => {
                let output = tool.call(&self.session, call, id.as_str(), MAX_ANSWER_BYTES).await;
                match output {
                    Err(Fault::TooLarge(bytes)) => Ok(Fetched::TooLarge(bytes)),
                    output => Ok(results::cited(results::fetched(&output?), id.as_str())),
                }
            }
        }
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        let tools = self.tools(call).await?;
        let Some(tool) = &tools.search else { return Err(Fault::Refused) };
        let output = tool.call(&self.session, call, query, MAX_LIST_BYTES).await?;
        Ok(results::found(&output, &tool.name, limit, tools.fetch.is_some()))
    }
}

#[cfg(test)]
mod tests;
