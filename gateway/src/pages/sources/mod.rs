//! Connected sources: their settings, state and actions.

mod actions;
mod change;
#[cfg(test)]
mod checks;
mod connect;
mod cost;
mod draft;
mod list;
mod providers;
mod runs;
mod show;

use cairn_chassis::status::Problem;
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{SourceId, WorkspaceId};
use maud::{Markup, html};

use super::MEMBER;
use super::parts::{self as part, Tone};
use super::places::source as address;
use super::visitor::Visitor;
use super::words;
use crate::answers::SourceBudget;
use crate::error::Error;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/sources", list::show)
        .get(MEMBER, "/w/{id}/sources/new", connect::ask)
        .post(MEMBER.with_secrets(), "/w/{id}/sources/new", connect::send)
        .get(MEMBER, "/w/{id}/sources/{source}", show::show)
        .get(MEMBER, "/w/{id}/sources/{source}/change", change::ask)
        .post(MEMBER, "/w/{id}/sources/{source}/change", change::save)
        .get(MEMBER, "/w/{id}/sources/{source}/credentials", change::ask_credentials)
        .post(MEMBER.with_secrets(), "/w/{id}/sources/{source}/credentials", change::replace_credentials)
        .post(MEMBER, "/w/{id}/sources/{source}/sync", actions::sync)
        .post(MEMBER, "/w/{id}/sources/{source}/retry", actions::retry)
        .post(MEMBER, "/w/{id}/sources/{source}/pause", actions::pause)
        .post(MEMBER, "/w/{id}/sources/{source}/resume", actions::resume)
        .post(MEMBER, "/w/{id}/sources/{source}/disconnect", actions::disconnect)
        .get(MEMBER, "/w/{id}/sources/{source}/runs", runs::list)
        .get(MEMBER, "/w/{id}/sources/{source}/runs/{run}", runs::one)
        .post(MEMBER, "/w/{id}/sources/{source}/runs/{run}/cancel", runs::cancel)
}

/// The URL of a workspace's sources.
fn all(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/sources")
}

/// The breadcrumbs of a page below a source.
fn crumbs(workspace: WorkspaceId, id: SourceId, name: &str) -> Vec<(String, String)> {
    vec![("Sources".to_owned(), all(workspace)), (name.to_owned(), address(workspace, id))]
}

/// Checks that the visitor manages the workspace, before anything is typed that would be refused at the end.
fn require_manager(visitor: &Visitor) -> Result<(), Error> {
    if visitor.manages() {
        return Ok(());
    }
    let role = visitor.here()?.role;
    let message =
        format!("sources are for owners and admins, and your role here is {}: ask an owner", role.as_str());
    Err(Problem::forbidden(message).into())
}

/// The badge of a source's status.
pub(super) fn status_badge(status: &str) -> Markup {
    let (tone, word) = match status {
        "never_synced" => (Tone::Plain, "Never synced"),
        "queued" => (Tone::Warn, "Queued"),
        "syncing" => (Tone::Warn, "Syncing"),
        "ready" => (Tone::Ok, "Ready"),
        "waiting" => (Tone::Warn, "Waiting"),
        "failed" => (Tone::Wrong, "Failed"),
        "needs_credentials" => (Tone::Wrong, "Needs credentials"),
        "paused" => (Tone::Plain, "Paused"),
        other => (Tone::Plain, other),
    };
    part::badge(tone, word)
}

/// The name of a mode.
const fn mode_word(mode: SourceMode) -> &'static str {
    match mode {
        SourceMode::Indexed => "Indexed",
        SourceMode::Catalog => "Catalog",
        SourceMode::Live => "Live",
    }
}

/// The description of a mode.
const fn mode_told(mode: SourceMode) -> &'static str {
    match mode {
        SourceMode::Indexed => "Texts are kept here and searched by their words and their meaning.",
        SourceMode::Catalog => {
            "Titles and places are kept here. A text is read from the provider when somebody asks for it."
        }
        SourceMode::Live => "Nothing is kept here. The provider is asked when somebody asks.",
    }
}

/// Today's requests against the daily budget.
fn budget(budget: &SourceBudget) -> Markup {
    html! {
        @if budget.limit == 0 {
            "Questions may make no requests."
        } @else {
            (part::meter("Requests of questions today", u64::from(budget.used), Some(u64::from(budget.limit)), words::grouped))
            " requests today"
            @if budget.remaining == 0 { span.hint { "Used up: questions are answered from what is kept until 00:00 UTC." } }
        }
    }
}
