//! `/w/{id}/members`: the members with their roles, and open invitations. An invitation's link is shown once.

use axum::response::Response;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Role;
use cairn_proto::ids::{InvitationId, UserId, WorkspaceId};
use maud::{Markup, html};
use serde_json::json;

use super::form::{self, Form};
use super::frame::Page;
use super::notice::Notice;
use super::parts::{self, Choice, Field, Tone};
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER, words};
use crate::answers::{Invitation, WorkspaceMember};
use crate::extract::PathIds;
use crate::operations::invitations;
use crate::operations::members::{self, AddMember, UpdateMember};
use crate::routes::Routes;

/// The idempotency field of a form: when it was rendered.
const RENDERED_AT: &str = "number";

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/members", show)
        .post(MEMBER.with_secrets(), "/w/{id}/members", invite)
        .post(MEMBER, "/w/{id}/members/{user}/role", change_role)
        .post(MEMBER, "/w/{id}/members/{user}/remove", remove)
        .post(MEMBER, "/w/{id}/members/invitations/{invitation}/withdraw", withdraw)
}

fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/members")
}

/// The values of the invitation form.
struct FormInput {
    email: String,
    role: Role,
    number: i64,
}

async fn show(visitor: Visitor) -> Answer {
    let typed = FormInput { email: String::new(), role: Role::Editor, number: visitor.now().as_micros() };
    page(&visitor, &typed, None).await
}

/// Invites a person and shows the link. Resubmitting the same form, as a reload does, creates nothing.
async fn invite(visitor: Visitor, form: Form) -> Answer {
    let here = visitor.here()?;
    let typed = FormInput {
        email: form.trimmed("email").to_owned(),
        role: form.text("role").parse().unwrap_or(Role::Viewer),
        number: form.text(RENDERED_AT).parse().unwrap_or_else(|_| visitor.now().as_micros()),
    };
    let input = match form::input::<AddMember>(json!({"email": typed.email, "role": form.text("role")})) {
        Ok(input) => input,
        Err(problem) => return page(&visitor, &typed, Some(&problem)).await,
    };
    if form.has(RENDERED_AT) && visitor.manages() && is_made(&visitor, here, &typed).await? {
        return Ok(already_created(&visitor, here, &typed.email));
    }
    match members::add(&visitor.person, here.id, input).await {
        Ok(added) => Ok(link_page(&visitor, here, &added.invitation)),
        Err(problem) if matches!(problem.reason, Reason::ValidationError | Reason::LimitExceeded) => {
            page(&visitor, &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

/// Whether that email was invited since the form was rendered.
async fn is_made(visitor: &Visitor, here: &Here, typed: &FormInput) -> Result<bool, Problem> {
    let shown = Timestamp::from_micros(typed.number).as_seconds();
    let open = invitations::list(&visitor.person, here.id).await?;
    Ok(open.iter().any(|invitation| {
        let is_later =
            Timestamp::parse_rfc3339(&invitation.created_at).is_some_and(|made| made.as_seconds() >= shown);
        invitation.email.eq_ignore_ascii_case(&typed.email) && is_later
    }))
}

async fn change_role(
    visitor: Visitor,
    PathIds(workspace, user): PathIds<WorkspaceId, UserId>,
    form: Form,
) -> Answer {
    let input: UpdateMember = form::input(json!({"role": form.text("role")}))?;
    members::update(&visitor.person, workspace, user, input).await?;
    Ok(visitor.done(&address(workspace), &Notice::RoleChanged))
}

/// Ends a membership, possibly one's own.
async fn remove(visitor: Visitor, PathIds(workspace, user): PathIds<WorkspaceId, UserId>) -> Answer {
    members::remove(&visitor.person, workspace, user).await?;
    let is_own = user.to_string() == visitor.user.id;
    let to = if is_own { "/workspaces".to_owned() } else { address(workspace) };
    Ok(visitor.done(&to, &Notice::Removed))
}

async fn withdraw(
    visitor: Visitor,
    PathIds(workspace, invitation): PathIds<WorkspaceId, InvitationId>,
) -> Answer {
    invitations::delete(&visitor.person, workspace, invitation).await?;
    Ok(visitor.done(&address(workspace), &Notice::Withdrawn))
}

async fn page(visitor: &Visitor, typed: &FormInput, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?;
    let people = members::list(&visitor.person, here.id).await?;
    let open =
        if visitor.manages() { invitations::list(&visitor.person, here.id).await? } else { Vec::new() };
    let body = html! {
        (parts::summary(problem, &[("email", "Email"), ("role", "Role")]))
        (table(visitor, here, &people))
        @if !open.is_empty() {
            h2 { "Invited" }
            (invited(here, &open))
        }
        @if visitor.manages() { (form(here, typed, problem)) } @else { (parts::not_in_role(here)) }
    };
    let page = Page::new("Members");
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn table(visitor: &Visitor, here: &Here, people: &[WorkspaceMember]) -> Markup {
    let rows = html! {
        @for member in people {
            @let is_own = member.user_id == visitor.user.id;
            tr {
                th scope="row" { bdi { (member.name) } @if is_own { span.hint { "You" } } }
                td {
                    (member.email)
                    @if !member.email_verified { " " (parts::badge(Tone::Plain, "Not verified")) }
                }
                td { @if visitor.manages() { (role_of(here, member)) } @else { (member.role.map_or("member", Role::as_str)) } }
                td { (parts::time(&member.created_at)) }
                td { @if visitor.manages() || is_own { div.buttons { (leaving(here, member, is_own)) } } }
            }
        }
    };
    parts::table("Members", &["Name", "Email", "Role", "Since", ""], &rows)
}

fn role_of(here: &Here, member: &WorkspaceMember) -> Markup {
    html! {
        form.buttons method="post" action={ (address(here.id)) "/" (member.user_id) "/role" } {
            select name="role" aria-label={ "Role of " (member.name) } {
                @for role in Role::ALL {
                    option value=(role.as_str()) selected[member.role == Some(role)] { (role.as_str()) }
                }
            }
            button type="submit" { "Change" span.sr { " role of " (member.name) } }
        }
    }
}

fn leaving(here: &Here, member: &WorkspaceMember, is_own: bool) -> Markup {
    let dialog = format!("remove-{}", member.user_id);
    let path = format!("{}/{}/remove", address(here.id), member.user_id);
    let (label, title, deed) = if is_own {
        ("Leave", "Leave this workspace?", "Leave workspace")
    } else {
        ("Remove", "Remove this member?", "Remove member")
    };
    let told = html! { p { bdi { (member.name) } " loses access, and the tokens and apps of this member open nothing from then on." } };
    html! {
        (parts::opens(&dialog, label, &member.name))
        (parts::dialog(&dialog, title, &told, &path, deed, &html! {}))
    }
}

fn invited(here: &Here, open: &[Invitation]) -> Markup {
    let rows = html! {
        @for invitation in open {
            tr {
                th scope="row" { (invitation.email) }
                td { (invitation.role.map_or("member", Role::as_str)) }
                td { bdi { (invitation.invited_by.name) } }
                td { (parts::time(&invitation.expires_at)) }
                td {
                    div.buttons {
                        (parts::action(&format!("{}/invitations/{}/withdraw", address(here.id), invitation.id), "Withdraw", &invitation.email, &[]))
                    }
                }
            }
        }
    };
    parts::table("Open invitations", &["Email", "Role", "By", "Ends", ""], &rows)
}

fn form(here: &Here, typed: &FormInput, problem: Option<&Problem>) -> Markup {
    let roles = Role::ALL.into_iter().map(|role| Choice {
        value: role.as_str(),
        label: words::role(role),
        is_chosen: role == typed.role,
    });
    html! {
        section.card aria-labelledby="invite" {
            h2 #invite { "Invite somebody" }
            form.fields method="post" action=(address(here.id)) {
                input type="hidden" name=(RENDERED_AT) value=(typed.number);
                (Field::email("email", "Email").value(&typed.email).problem(problem).render())
                (parts::choices("role", "Role", roles))
                div.buttons { button.primary type="submit" data-key="n" { "Invite" } }
            }
        }
    }
}

fn link_page(visitor: &Visitor, here: &Here, invitation: &Invitation) -> Response {
    let link = invitation.link.as_deref().unwrap_or_default();
    let was_mailed = invitation.mailed == Some(true);
    let body = html! {
        p { (invitation.email) " is invited, until " (parts::time(&invitation.expires_at)) "." }
        @if was_mailed { p { "A link was mailed. This is another one, to hand over yourself." } }
        @else { p { "This server mails nothing: hand the link over yourself. Nobody can see it again." } }
        div.fields { (parts::secret("secret", "Link", link)) }
        div.buttons { a.button href=(address(here.id)) { "Done" } }
    };
    Page::new("Invited").crumbs(vec![("Members".to_owned(), address(here.id))]).show(visitor, &body)
}

fn already_created(visitor: &Visitor, here: &Here, email: &str) -> Response {
    let body = html! {
        p { "This form was sent before: " (email) " is invited, and the link was shown then. Nothing new was made." }
        div.buttons { a.button href=(address(here.id)) { "To the members" } }
    };
    Page::new("Invited before").crumbs(vec![("Members".to_owned(), address(here.id))]).show(visitor, &body)
}
