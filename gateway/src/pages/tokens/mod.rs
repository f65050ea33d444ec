//! `/w/{id}/tokens`: API tokens. A secret is only shown when it is created.

mod create;
mod one;
mod paths;
mod reach;
mod replace;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::Permission;
use cairn_proto::ids::{TokenId, WorkspaceId};
use maud::{Markup, html};
use serde_json::json;

use super::folders::Tree;
use super::form;
use super::frame::Page;
use super::notice::Notice;
use super::own_sessions;
use super::parts::{self, Tone};
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER, words};
use crate::answers::{ScopeType, Token};
use crate::extract::PathIds;
use crate::operations::tokens::{self, UpdateToken};
use crate::routes::Routes;

/// Folders named in a token's row.
const MAX_PATHS: usize = 3;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/tokens", show)
        .get(MEMBER, "/w/{id}/tokens/new", create::ask)
        .post(MEMBER, "/w/{id}/tokens/preview", create::preview)
        .post(MEMBER.with_secrets(), "/w/{id}/tokens", create::create)
        .get(MEMBER, "/w/{id}/tokens/{token}", one::show)
        .post(MEMBER.with_secrets(), "/w/{id}/tokens/{token}/replace", replace::replace)
        .post(MEMBER, "/w/{id}/tokens/{token}/rename", one::rename)
        .post(MEMBER, "/w/{id}/tokens/{token}/off", switch_off)
        .post(MEMBER, "/w/{id}/tokens/{token}/on", switch_on)
        .post(MEMBER, "/w/{id}/tokens/{token}/delete", delete)
}

fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/tokens")
}

async fn show(visitor: Visitor) -> Answer {
    let here = visitor.here()?;
    let mut listed = tokens::list(&visitor.person, here.id).await?;
    let now = visitor.now();
    // Active tokens first; each group newest first.
    listed.sort_by_key(|token| !lives(token, now));
    // For the paths of their folders.
    let tree = if listed.iter().any(|token| token.scope.folder_ids.is_some()) {
        Tree::of(&visitor.context()?).await?
    } else {
        Tree::default()
    };
    let new = html! { a.button.primary href={ (address(here.id)) "/new" } data-key="n" { "New token" } };
    let body = html! {
        @if listed.is_empty() {
            (parts::empty("A token lets a program in, with what you allow it.", &html! { p { a href={ "/w/" (here.id) "/connect" } { "Connect an agent without one" } } }))
        } @else {
            (table(&visitor, here, &listed, &tree))
        }
    };
    Ok(Page::new("Tokens").actions(new).show(&visitor, &body))
}

fn lives(token: &Token, now: Timestamp) -> bool {
    token.active && !has_ended(token, now)
}

fn has_ended(token: &Token, now: Timestamp) -> bool {
    token.expires_at.as_deref().and_then(Timestamp::parse_rfc3339).is_some_and(|end| end <= now)
}

fn table(visitor: &Visitor, here: &Here, listed: &[Token], tree: &Tree) -> Markup {
    let now = visitor.now();
    let rows = html! {
        @for token in listed {
            tr {
                th scope="row" { a href={ (address(here.id)) "/" (token.id) } { bdi { (token.name) } } span.hint { "…" (token.last_four) @if token.owner_id != visitor.user.id { ", another member's" } } }
                td { (permitted(&token.permissions)) }
                td { (reach(token, tree)) }
                td { (status_badge(token, now)) }
                td { (last_use(token)) }
                td { (parts::time_or(token.expires_at.as_deref(), "no end")) }
                td { (token_actions(visitor, here, token)) }
            }
        }
    };
    parts::table("Tokens", &["Name", "May", "Reaches", "State", "Last used", "Ends", ""], &rows)
}

fn token_actions(visitor: &Visitor, here: &Here, token: &Token) -> Markup {
    let (base, dialog) = (format!("{}/{}", address(here.id), token.id), format!("delete-{}", token.id));
    let told = html! { p { "What uses " bdi { (token.name) } " is refused from now on. This cannot be undone; to stop it for a while, switch it off." } };
    html! {
        div.buttons {
            @if token.active { (parts::action(&format!("{base}/off"), "Switch off", &token.name, &[])) }
            @else { (parts::action(&format!("{base}/on"), "Switch on", &token.name, &[])) }
            (replace::button(visitor, here, token))
            (parts::opens(&dialog, "Delete", &token.name))
            (parts::dialog(&dialog, "Delete this token?", &told, &format!("{base}/delete"), "Delete token", &html! {}))
        }
    }
}

fn permitted(permissions: &[Permission]) -> String {
    permissions.iter().map(|permission| permission.as_str()).collect::<Vec<_>>().join(", ")
}

fn reach(token: &Token, tree: &Tree) -> Markup {
    let (ScopeType::Folders, Some(folders)) = (token.scope.r#type, &token.scope.folder_ids) else {
        return html! { "The whole workspace" };
    };
    let paths: Vec<&str> =
        folders.iter().filter_map(|id| tree.get(id)).map(|folder| folder.path.as_str()).collect();
    let others = folders.len() - paths.len().min(MAX_PATHS);
    html! {
        @for path in paths.iter().take(MAX_PATHS) { bdi { (path) } br; }
        @if paths.is_empty() { (words::count(others as u64, "folder", "folders")) }
        @else if others > 0 { (words::count(others as u64, "other folder", "other folders")) }
    }
}

/// The last use: when, with which client and through which channel. A client's name is self-reported.
fn last_use(token: &Token) -> Markup {
    let client = token.last_client.as_deref().map(own_sessions::agent);
    let door = token.last_channel.as_deref().and_then(channel_name);
    html! {
        (parts::time_or(token.last_used_at.as_deref(), "never"))
        @match (client, door) {
            (Some(client), door) => { span.hint { "by " bdi { (client) } @if let Some(door) = door { ", " (door) } } }
            (None, Some(door)) => { span.hint { "by something that did not name itself, " (door) } }
            (None, None) => {}
        }
    }
}

fn channel_name(channel: &str) -> Option<&'static str> {
    match channel.parse() {
        Ok(Channel::Rest) => Some("over the API"),
        Ok(Channel::Mcp) => Some("over MCP"),
        Ok(Channel::Grpc) => Some("over gRPC"),
        Ok(Channel::Console) => Some("in the console"),
        Err(()) => None,
    }
}

fn status_badge(token: &Token, now: Timestamp) -> Markup {
    match () {
        () if has_ended(token, now) => parts::badge(Tone::Plain, "Ended"),
        () if token.active => parts::badge(Tone::Ok, "Works"),
        () => parts::badge(Tone::Warn, "Switched off"),
    }
}

async fn switch_off(visitor: Visitor, ids: PathIds<WorkspaceId, TokenId>) -> Answer {
    switch(&visitor, ids, false).await
}

async fn switch_on(visitor: Visitor, ids: PathIds<WorkspaceId, TokenId>) -> Answer {
    switch(&visitor, ids, true).await
}

async fn switch(
    visitor: &Visitor,
    PathIds(workspace, token): PathIds<WorkspaceId, TokenId>,
    active: bool,
) -> Answer {
    let input: UpdateToken = form::input(json!({"active": active}))?;
    tokens::update(&visitor.person, workspace, token, input).await?;
    let notice = if active { Notice::SwitchedOn } else { Notice::SwitchedOff };
    Ok(visitor.done(&address(workspace), &notice))
}

async fn delete(visitor: Visitor, PathIds(workspace, token): PathIds<WorkspaceId, TokenId>) -> Answer {
    tokens::delete(&visitor.person, workspace, token).await?;
    Ok(visitor.done(&address(workspace), &Notice::Deleted))
}
