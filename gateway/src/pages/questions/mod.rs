//! `/w/{id}/questions`: the question log of agents and people, if the owner has it on, with the answers.

mod again;
mod format;
mod groups;
mod list;
mod replay;
mod write;

#[cfg(test)]
mod checks;

use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};

use super::MEMBER;
use super::visitor::Here;
use crate::class::FILE_BYTES;
use crate::cost::Cost;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/questions", list::show)
        .get(MEMBER, "/w/{id}/questions/write", write::ask)
        .post(MEMBER.up_to(FILE_BYTES), "/w/{id}/questions/write", write::save)
        .get(MEMBER.patient().costing(Cost::SEARCH), "/w/{id}/questions/{question}", replay::show)
        .post(MEMBER, "/w/{id}/questions/{question}/delete", replay::delete)
}

/// The URL of the log.
pub(super) fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/questions")
}

/// The views of the log as tabs.
fn tabs(here: &Here, current: &str) -> Markup {
    let base = address(here.id);
    html! {
        nav.tabs aria-label="Views" {
            @for (view, label) in [("", "All"), ("groups", "Groups"), ("gaps", "Gaps")] {
                @let query = if view.is_empty() { String::new() } else { format!("?view={view}") };
                a href={ (base) (query) } aria-current=[(view == current).then_some("page")] { (label) }
            }
        }
    }
}
