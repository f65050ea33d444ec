//! `/w/{id}/webhooks`: webhooks with their deliveries and actions. A secret is only shown when it is created. All of
//! it is for owners and admins.

mod actions;
mod change;
#[cfg(test)]
mod checks;
mod create;
mod list;
mod show;

use cairn_chassis::status::Problem;
use cairn_proto::domain::{ChangeKind, WebhookStatus};
use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};

use super::MEMBER;
use super::form::Form;
use super::parts::{self as part, Tone};
use super::visitor::Visitor;
use crate::error::Error;
use crate::routes::Routes;

/// The labels of form fields.
const LABELS: [(&str, &str); 4] =
    [("name", "Name"), ("url", "Address"), ("kinds", "Changes of"), ("folderIds", "Folders")];
/// The idempotency field of a form: when it was rendered.
const RENDERED_AT: &str = "number";

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/webhooks", list::show)
        .get(MEMBER, "/w/{id}/webhooks/new", create::ask)
        .post(MEMBER.with_secrets(), "/w/{id}/webhooks/new", create::send)
        .get(MEMBER, "/w/{id}/webhooks/{webhook}", show::show)
        .get(MEMBER, "/w/{id}/webhooks/{webhook}/change", change::ask)
        .post(MEMBER, "/w/{id}/webhooks/{webhook}/change", change::save)
        .post(MEMBER, "/w/{id}/webhooks/{webhook}/test", actions::test)
        .post(MEMBER, "/w/{id}/webhooks/{webhook}/replay", actions::replay)
        .post(MEMBER, "/w/{id}/webhooks/{webhook}/enable", actions::enable)
        .post(MEMBER, "/w/{id}/webhooks/{webhook}/disable", actions::disable)
        .post(MEMBER.with_secrets(), "/w/{id}/webhooks/{webhook}/rotate", actions::rotate)
        .post(MEMBER, "/w/{id}/webhooks/{webhook}/delete", actions::delete)
}

/// The URL of a workspace's webhooks.
fn all(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/webhooks")
}

/// The URL of a webhook.
fn address(workspace: WorkspaceId, webhook: impl std::fmt::Display) -> String {
    format!("{}/{webhook}", all(workspace))
}

/// The breadcrumbs of a page below a webhook.
fn crumbs(workspace: WorkspaceId, id: &str, name: &str) -> Vec<(String, String)> {
    vec![("Webhooks".to_owned(), all(workspace)), (name.to_owned(), address(workspace, id))]
}

/// Checks that the visitor manages the workspace, before anything is typed that would be refused at the end.
fn require_manager(visitor: &Visitor) -> Result<(), Error> {
    if visitor.manages() {
        return Ok(());
    }
    let role = visitor.here()?.role;
    let message =
        format!("webhooks are for owners and admins, and your role here is {}: ask an owner", role.as_str());
    Err(Problem::forbidden(message).into())
}

/// The badge of a webhook's status.
fn status_badge(status: WebhookStatus) -> Markup {
    match status {
        WebhookStatus::Active => part::badge(Tone::Ok, "Active"),
        WebhookStatus::Failing => part::badge(Tone::Wrong, "Failing"),
        WebhookStatus::Disabled => part::badge(Tone::Plain, "Disabled"),
    }
}

const fn kind_word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::File => "Files",
        ChangeKind::Folder => "Folders",
        ChangeKind::Memory => "Memories",
        ChangeKind::Database => "Databases",
        ChangeKind::Record => "Records",
        ChangeKind::SourceDocument => "Documents of sources",
        ChangeKind::Ingested => "Documents that were sent",
    }
}

/// The event kinds as check boxes.
fn kinds(chosen: &[ChangeKind]) -> Markup {
    html! {
        fieldset #f-kinds {
            legend { "Changes of" }
            p.hint { "None chosen: of everything." }
            @for kind in ChangeKind::ALL {
                @let id = format!("of-{}", kind.as_str());
                div.option {
                    input id=(id) type="checkbox" name="kinds" value=(kind.as_str()) checked[chosen.contains(&kind)];
                    label for=(id) { (kind_word(kind)) }
                }
            }
        }
    }
}

fn kinds_of(form: &Form) -> Vec<ChangeKind> {
    form.all("kinds").filter_map(|word| word.parse().ok()).collect()
}
