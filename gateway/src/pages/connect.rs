//! `/w/{id}/connect`: how to connect an agent. OAuth comes first, which needs no secret.

use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use maud::{Markup, html};
use serde_json::{Value, json};
use std::sync::Arc;

use super::frame::Page;
use super::parts::{self, Tone};
use super::visitor::Visitor;
use super::{Answer, MEMBER, live_calls, words};
use crate::error::Error;
use crate::events::Events;
use crate::operations::{grants, tokens};
use crate::origin::Origins;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/connect", show)
}

/// A client that has connected: its name, and when it was last used.
pub(super) struct Client {
    name: String,
    at: String,
}

/// The used tokens and apps visible to the visitor, most recent first.
pub(super) async fn clients(visitor: &Visitor) -> Result<Vec<Client>, Error> {
    let here = visitor.here()?.id;
    let (tokens, grants) =
        tokio::try_join!(tokens::list(&visitor.person, here), grants::list(&visitor.person, here))?;
    let tokens =
        tokens.into_iter().filter_map(|token| Some(Client { name: token.name, at: token.last_used_at? }));
    let grants = grants.into_iter().filter_map(|grant| {
        Some(Client {
            name: grant.client_name,
            at: crate::answers::optional_time(grant.last_used_at.as_ref())?,
        })
    });
    let mut used: Vec<_> = tokens.chain(grants).collect();
    used.sort_by(|one, other| other.at.cmp(&one.at));
    Ok(used)
}

async fn show(
    State(origins): State<Arc<Origins>>,
    State(events): State<Arc<Events>>,
    visitor: Visitor,
    parts: Parts,
) -> Answer {
    let here = visitor.here()?;
    let used = clients(&visitor).await?;
    let base = origins.base_url(&parts.headers);
    let body = html! {
        (connection_status(&used, live_calls::last_search(&events.recent(here.id)).as_deref()))
        @match &base {
            Some(base) => (setups(&format!("{base}/mcp"), origins.is_loopback(), &format!("/w/{}/tokens/new", here.id))),
            None => p.notice { "This server does not know its own address: its operator has to set CAIRN_BASE_URL." },
        }
        h2 { "With a token" }
        p {
            "A client that cannot sign in takes a token instead, as " code { "Authorization: Bearer <token>" } ". "
            a href={ "/w/" (here.id) "/tokens/new" } { "New token" }
        }
    };
    Ok(Page::new("Connect").live().show(&visitor, &body))
}

/// Whether a client has connected: the page polls until then.
fn connection_status(used: &[Client], searched: Option<&str>) -> Markup {
    html! {
        p #standing role="status" data-live="token call" data-poll=[used.is_empty().then_some("")] {
            @match used.first() {
                Some(client) => {
                    (parts::badge(Tone::Ok, "Connected")) " " bdi { (client.name) } " came last, " (parts::time(&client.at)) "."
                    @if used.len() > 1 { " " (words::count(used.len() as u64 - 1, "other", "others")) " came before." }
                    @if let Some(searched) = searched { " " (searched) }
                }
                None => { (parts::badge(Tone::Plain, "Waiting")) " No agent has come yet. This line changes when one does." }
            }
        }
    }
}

/// A client, and its setup instructions.
struct ClientSetup {
    id: &'static str,
    name: &'static str,
    instructions: &'static str,
    snippet: String,
    /// A deep link that installs it; it contains no secret, since the client signs in.
    link: Option<(&'static str, String)>,
    /// Whether its configuration may contain a token instead.
    takes_token: bool,
}

/// `new_token` is the URL of the form that creates one.
fn setups(endpoint: &str, is_loopback: bool, new_token: &str) -> Markup {
    let server = json!({"url": endpoint});
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let cursor = STANDARD.encode(server.to_string());
    let code = json!({"name": "cairn", "type": "http", "url": endpoint}).to_string();
    let encoded =
        |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
    let all = [
        ClientSetup {
            id: "claude-code",
            name: "Claude Code",
            instructions: "In a terminal; then type /mcp and sign in.",
            snippet: format!("claude mcp add --transport http cairn {endpoint}"),
            link: None,
            takes_token: true,
        },
        ClientSetup {
            id: "claude-desktop",
            name: "Claude Desktop",
            instructions: "Settings, Connectors, Add custom connector, with this address. It comes from Anthropic's servers.",
            snippet: endpoint.to_owned(),
            link: None,
            takes_token: false,
        },
        ClientSetup {
            id: "cursor",
            name: "Cursor",
            instructions: "In .cursor/mcp.json, or by the button.",
            snippet: pretty(&json!({"mcpServers": {"cairn": server}})),
            link: Some((
                "Open in Cursor",
                format!(
                    "cursor://anysphere.cursor-deeplink/mcp/install?name=cairn&config={}",
                    encoded(&cursor)
                ),
            )),
            takes_token: true,
        },
        ClientSetup {
            id: "vs-code",
            name: "VS Code",
            instructions: "In .vscode/mcp.json, or by the button.",
            snippet: pretty(&json!({"servers": {"cairn": {"type": "http", "url": endpoint}}})),
            link: Some(("Open in VS Code", format!("vscode:mcp/install?{}", encoded(&code)))),
            takes_token: true,
        },
        ClientSetup {
            id: "codex",
            name: "Codex",
            instructions: "In a terminal.",
            snippet: format!("codex mcp add cairn --url {endpoint}\ncodex mcp login cairn"),
            link: None,
            takes_token: true,
        },
        ClientSetup {
            id: "gemini-cli",
            name: "Gemini CLI",
            instructions: "In a terminal; then type /mcp auth cairn.",
            snippet: format!("gemini mcp add --transport http cairn {endpoint}"),
            link: None,
            takes_token: true,
        },
        ClientSetup {
            id: "other",
            name: "Another client",
            instructions: "Any client of the Model Context Protocol takes the address. It asks you to sign in here.",
            snippet: endpoint.to_owned(),
            link: None,
            takes_token: false,
        },
    ];
    html! {
        @if is_loopback {
            p.notice { "This address is of this computer alone: clients that run on others, such as Claude on the web, cannot reach it." }
        }
        h2 { "Choose your client" }
        @for (at, way) in all.iter().enumerate() {
            details.card name="client" open[at == 0] {
                summary data-key=(at + 1) { (way.name) }
                p { (way.instructions) }
                (parts::snippet(way.id, &way.snippet))
                @if let Some((label, address)) = &way.link { p { a.button href=(address) rel="noreferrer" { (label) } } }
                @if way.takes_token {
                    p.hint { "Where it cannot sign in: " a href={ (new_token) "?name=" (encoded(way.name)) } { "a token for " (way.name) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_install_hold_the_address_and_no_secret() {
        let html = setups("https://cairn.example/mcp", false, "/w/1/tokens/new").into_string();
        let config = html.split("config=").nth(1).unwrap().split('"').next().unwrap().replace("%3D", "=");
        let read: Value = serde_json::from_slice(&STANDARD.decode(config).unwrap()).unwrap();
        assert_eq!(read, json!({"url": "https://cairn.example/mcp"}));
        assert!(html.contains("vscode:mcp/install?%7B%22name%22%3A%22cairn%22"), "{html}");
        assert!(!html.contains("earer"), "{html}");
    }
}
