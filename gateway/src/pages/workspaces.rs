//! `/workspaces`: the person's workspaces, pending invitations, and deleted workspaces.

use axum::extract::State;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Role;
use cairn_proto::ids::{InvitationId, WorkspaceId};
use maud::{Markup, html};
use serde_json::json;

use super::form::{self, Form};
use super::frame::Page;
use super::notice::Notice;
use super::parts::{self, Field};
use super::visitor::Visitor;
use super::{Answer, PERSON};
use crate::answers::Workspace;
use crate::extract::PathId;
use crate::operations::sessions::Sessions;
use crate::operations::workspaces::CreateWorkspace;
use crate::operations::{invitations, workspaces};
use crate::routes::Routes;

const PAGE: &str = "/workspaces";

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(PERSON, PAGE, show)
        .post(PERSON, PAGE, create)
        .post(PERSON, "/workspaces/{id}/restore", restore)
        .post(PERSON, "/workspaces/invitations/{id}/accept", accept)
        .post(PERSON, "/workspaces/invitations/{id}/decline", decline)
}

async fn show(visitor: Visitor) -> Answer {
    page(&visitor, "", None).await
}

async fn create(visitor: Visitor, form: Form) -> Answer {
    let name = form.trimmed("name");
    let made = match form::input::<CreateWorkspace>(json!({"name": name})) {
        Ok(input) => workspaces::create(&visitor.person, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => Ok(visitor.done(&format!("/w/{}", made.id), &Notice::Created)),
        Err(problem) if matches!(problem.reason, Reason::ValidationError | Reason::LimitExceeded) => {
            page(&visitor, name, Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn restore(visitor: Visitor, PathId(id): PathId<WorkspaceId>) -> Answer {
    let restored = workspaces::restore(&visitor.person, id).await?;
    Ok(visitor.done(&format!("/w/{}", restored.id), &Notice::Restored))
}

async fn accept(
    State(sessions): State<Sessions>,
    visitor: Visitor,
    PathId(id): PathId<InvitationId>,
) -> Answer {
    let text = id.to_string();
    let waiting = visitor.invitations.iter().find(|one| one.id == text);
    let to = waiting.map_or_else(|| PAGE.to_owned(), |one| format!("/w/{}", one.workspace_id));
    invitations::accept_pending(&visitor.person, id).await?;
    let belongs = sessions.read(&visitor.person.call).await?;
    let is_in = belongs.workspaces.iter().any(|one| to.ends_with(&one.id));
    Ok(visitor.done(if is_in { &to } else { PAGE }, &Notice::Joined))
}

async fn decline(visitor: Visitor, PathId(id): PathId<InvitationId>) -> Answer {
    invitations::decline_pending(&visitor.person, id).await?;
    Ok(visitor.done(PAGE, &Notice::Declined))
}

async fn page(visitor: &Visitor, name: &str, problem: Option<&Problem>) -> Answer {
    let deleted = workspaces::list(&visitor.person, true).await?;
    let body = html! {
        (parts::summary(problem, &[("name", "Name")]))
        (waiting(visitor))
        @if visitor.workspaces.is_empty() {
            (parts::empty("You belong to no workspace: make one, or open an invitation.", &html! {}))
        } @else {
            (parts::table("Workspaces", &["Name", "Your role", "Plan", "Made"], &rows(&visitor.workspaces)))
        }
        section.card aria-labelledby="new" {
            h2 #new { "New workspace" }
            form.fields method="post" action=(PAGE) {
                (Field::text("name", "Name").value(name).problem(problem).render())
                div.buttons { button.primary type="submit" data-key="n" { "Create workspace" } }
            }
        }
        (gone(&deleted))
    };
    let page = Page::new("Workspaces");
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn rows(workspaces: &[Workspace]) -> Markup {
    html! {
        @for workspace in workspaces {
            tr {
                th scope="row" { a href={ "/w/" (workspace.id) } { bdi { (workspace.name) } } }
                td { (workspace.role.map_or("member", Role::as_str)) }
                td { (workspace.plan) }
                td { (parts::time(&workspace.created_at)) }
            }
        }
    }
}

/// Pending invitations.
fn waiting(visitor: &Visitor) -> Markup {
    html! {
        @for invitation in visitor.invitations.iter() {
            @let address = format!("/workspaces/invitations/{}", invitation.id);
            section.card aria-label="Invitation" {
                p {
                    bdi { (invitation.invited_by.name) } " (" (invitation.invited_by.email) ") invites you to "
                    strong { bdi { (invitation.workspace_name) } }
                    @if let Some(role) = invitation.role { " as " (role.as_str()) } "."
                }
                div.buttons {
                    (parts::action(&format!("{address}/accept"), "Accept", &invitation.workspace_name, &[]))
                    (parts::action(&format!("{address}/decline"), "Decline", &invitation.workspace_name, &[]))
                }
            }
        }
    }
}

fn gone(deleted: &[Workspace]) -> Markup {
    html! {
        @if !deleted.is_empty() {
            h2 { "Deleted workspaces" }
            @let rows = html! {
                @for workspace in deleted {
                    tr {
                        th scope="row" { bdi { (workspace.name) } }
                        td { (parts::time_or(workspace.purge_at.as_deref(), "kept")) }
                        td {
                            div.buttons {
                                (parts::action(&format!("/workspaces/{}/restore", workspace.id), "Restore", &workspace.name, &[]))
                            }
                        }
                    }
                }
            };
            (parts::table("Deleted workspaces", &["Name", "Gone for good", ""], &rows))
        }
    }
}
