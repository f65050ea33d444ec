//! `/w/{id}/tokens`: the keys that programs bring. A secret is shown once, by the answer that made it.

use std::time::Duration;

use axum::response::Response;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use cairn_proto::ids::{TokenId, WorkspaceId};
use maud::{Markup, html};
use serde_json::json;

use super::form::{self, Form};
use super::frame::Page;
use super::notice::Notice;
use super::parts::{self, Field, Tone};
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER, words};
use crate::answers::{ScopeType, Token};
use crate::extract::PathIds;
use crate::operations::tokens::{self, CreateToken, UpdateToken};
use crate::operations::{Paging, folders};
use crate::routes::Routes;

const USUAL_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// What a scope may name.
const MOST_FOLDERS: u32 = 200;
/// The number of a form: when it was shown.
const NUMBER: &str = "number";

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/tokens", show)
        .get(MEMBER, "/w/{id}/tokens/new", ask)
        .post(MEMBER.with_secrets(), "/w/{id}/tokens", create)
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
    // Those that live first; within both the newest, as they come.
    listed.sort_by_key(|token| !lives(token, now));
    let new = html! { a.button.primary href={ (address(here.id)) "/new" } data-key="n" { "New token" } };
    let body = html! {
        @if listed.is_empty() {
            (parts::empty("A token lets a program in, with what you allow it.", &html! { p { a href={ "/w/" (here.id) "/connect" } { "Connect an agent without one" } } }))
        } @else {
            (table(&visitor, here, &listed, now))
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

fn table(visitor: &Visitor, here: &Here, listed: &[Token], now: Timestamp) -> Markup {
    let rows = html! {
        @for token in listed {
            tr {
                th scope="row" { bdi { (token.name) } span.hint { "…" (token.last_four) @if token.owner_id != visitor.user.id { ", another member's" } } }
                td { (permitted(&token.permissions)) }
                td { (reach(token)) }
                td { (standing(token, now)) }
                td { (parts::time_or(token.last_used_at.as_deref(), "never")) }
                td { (parts::time_or(token.expires_at.as_deref(), "no end")) }
                td { (deeds(here, token)) }
            }
        }
    };
    parts::table("Tokens", &["Name", "May", "Reaches", "State", "Last used", "Ends", ""], &rows)
}

fn deeds(here: &Here, token: &Token) -> Markup {
    let (base, dialog) = (format!("{}/{}", address(here.id), token.id), format!("delete-{}", token.id));
    let told = html! { p { "What uses " bdi { (token.name) } " is refused from now on. This cannot be undone; to stop it for a while, switch it off." } };
    html! {
        div.buttons {
            @if token.active { (parts::action(&format!("{base}/off"), "Switch off", &token.name, &[])) }
            @else { (parts::action(&format!("{base}/on"), "Switch on", &token.name, &[])) }
            (parts::opens(&dialog, "Delete", &token.name))
            (parts::dialog(&dialog, "Delete this token?", &told, &format!("{base}/delete"), "Delete token", &html! {}))
        }
    }
}

fn permitted(permissions: &[Permission]) -> String {
    permissions.iter().map(|permission| permission.as_str()).collect::<Vec<_>>().join(", ")
}

fn reach(token: &Token) -> String {
    match (token.scope.r#type, &token.scope.folder_ids) {
        (ScopeType::Folders, Some(folders)) => words::count(folders.len() as u64, "folder", "folders"),
        (ScopeType::Folders | ScopeType::All, _) => "The whole workspace".to_owned(),
    }
}

fn standing(token: &Token, now: Timestamp) -> Markup {
    match () {
        () if has_ended(token, now) => parts::badge(Tone::Plain, "Ended"),
        () if token.active => parts::badge(Tone::Ok, "Works"),
        () => parts::badge(Tone::Warn, "Switched off"),
    }
}

/// What was typed into the form, or stands in a new one.
struct Typed {
    name: String,
    permissions: Vec<Permission>,
    folders: Vec<String>,
    end: String,
    number: i64,
}

impl Typed {
    fn new(visitor: &Visitor) -> Self {
        let end = visitor.now().plus(USUAL_LIFE).to_rfc3339();
        Self {
            name: String::new(),
            permissions: [Permission::Read, Permission::Write]
                .into_iter()
                .filter(|one| visitor.may(*one))
                .collect(),
            folders: Vec::new(),
            end: end.get(..10).unwrap_or_default().to_owned(),
            number: visitor.now().as_micros(),
        }
    }

    fn read(form: &Form, visitor: &Visitor) -> Self {
        Self {
            name: form.trimmed("name").to_owned(),
            permissions: form.all("permissions").filter_map(|word| word.parse().ok()).collect(),
            folders: form.all("folders").map(ToOwned::to_owned).collect(),
            end: form.trimmed("expiresAt").to_owned(),
            number: form.text(NUMBER).parse().unwrap_or_else(|_| visitor.now().as_micros()),
        }
    }

    /// The same input as the API takes. A day ends with its last second, UTC.
    fn input(&self) -> Result<CreateToken, Problem> {
        let permissions: Vec<_> = self.permissions.iter().map(|one| one.as_str()).collect();
        let mut fields = json!({"name": self.name, "permissions": permissions});
        if let Some(fields) = fields.as_object_mut() {
            if !self.folders.is_empty() {
                fields.insert("scope".to_owned(), json!({"type": "folders", "folderIds": self.folders}));
            }
            if !self.end.is_empty() {
                fields.insert("expiresAt".to_owned(), json!(format!("{}T23:59:59Z", self.end)));
            }
        }
        form::input(fields)
    }
}

async fn ask(visitor: Visitor) -> Answer {
    let typed = Typed::new(&visitor);
    form_page(&visitor, &typed, None).await
}

/// Makes a token and shows it. The same form sent again makes nothing: a reload of the page with the secret sends it.
async fn create(visitor: Visitor, form: Form) -> Answer {
    let here = visitor.here()?;
    let typed = Typed::read(&form, &visitor);
    let input = match typed.input() {
        Ok(input) => input,
        Err(problem) => return form_page(&visitor, &typed, Some(&problem)).await,
    };
    if form.has(NUMBER) && is_made(&visitor, here, &typed).await? {
        return Ok(made_before(&visitor, here, &typed.name));
    }
    match tokens::create(&visitor.person, here.id, input).await {
        Ok(token) => Ok(made(&visitor, here, &token)),
        Err(problem) if matches!(problem.reason, Reason::ValidationError | Reason::LimitExceeded) => {
            form_page(&visitor, &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

/// Whether the visitor has made a token of that name since the form was shown.
async fn is_made(visitor: &Visitor, here: &Here, typed: &Typed) -> Result<bool, Problem> {
    let shown = Timestamp::from_micros(typed.number);
    let listed = tokens::list(&visitor.person, here.id).await?;
    Ok(listed.iter().any(|token| {
        let is_later = Timestamp::parse_rfc3339(&token.created_at).is_some_and(|made| made >= shown);
        token.owner_id == visitor.user.id && token.name == typed.name && is_later
    }))
}

async fn form_page(visitor: &Visitor, typed: &Typed, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?;
    let paging = Paging { limit: Some(MOST_FOLDERS), cursor: None };
    let folders = folders::list(&visitor.context()?, folders::Selection::default(), paging).await?;
    let allowed: Vec<_> = Permission::ALL.into_iter().filter(|one| visitor.may(*one)).collect();
    let labels =
        [("name", "Name"), ("permissions", "Permissions"), ("scope", "Folders"), ("expiresAt", "Last day")];
    let body = html! {
        (parts::summary(problem, &labels))
        form.fields method="post" action=(address(here.id)) {
            input type="hidden" name=(NUMBER) value=(typed.number);
            (Field::text("name", "Name").value(&typed.name).hint("Of what uses it, such as Claude Code on a laptop.").problem(problem).render())
            fieldset #f-permissions {
                legend { "Permissions" }
                @for permission in &allowed {
                    @let id = format!("may-{}", permission.as_str());
                    div.option {
                        input id=(id) type="checkbox" name="permissions" value=(permission.as_str()) checked[typed.permissions.contains(permission)];
                        label for=(id) { (words::permission(*permission)) }
                    }
                }
                p.hint { "It can never do more than your own role here, " (here.role.as_str()) ", now or later." }
            }
            @if !folders.items.is_empty() {
                fieldset #f-scope {
                    legend { "Folders" }
                    p.hint { "With everything below them. None chosen: the whole workspace." }
                    @for (at, folder) in folders.items.iter().enumerate() {
                        div.option {
                            input id={ "in-" (at) } type="checkbox" name="folders" value=(folder.id) checked[typed.folders.contains(&folder.id)];
                            label for={ "in-" (at) } { bdi { (folder.path) } }
                        }
                    }
                }
            }
            (Field::date("expiresAt", "Last day").optional().value(&typed.end).hint("UTC. Empty: it never ends.").problem(problem).render())
            div.buttons {
                button.primary type="submit" { "Create token" }
                a href=(address(here.id)) { "Cancel" }
            }
        }
    };
    let page = Page::new("New token").crumbs(vec![("Tokens".to_owned(), address(here.id))]);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn made(visitor: &Visitor, here: &Here, token: &Token) -> Response {
    let secret = token.token.as_deref().unwrap_or_default();
    let body = html! {
        p { bdi { (token.name) } " is made. Copy it now: nobody can see it again." }
        div.fields { (parts::secret("secret", "Token", secret)) }
        p { "It is sent as " code { "Authorization: Bearer <token>" } ". " a href={ "/w/" (here.id) "/connect" } { "How clients take it" } }
        div.buttons { a.button href=(address(here.id)) { "Done" } }
    };
    Page::new("Token made").crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(visitor, &body)
}

fn made_before(visitor: &Visitor, here: &Here, name: &str) -> Response {
    let body = html! {
        p { "This form was sent before: " bdi { (name) } " is made, and its secret was shown then. Nothing new was made." }
        p { "Whoever did not copy it deletes the token and makes another." }
        div.buttons { a.button href=(address(here.id)) { "To the tokens" } }
    };
    Page::new("Token made before").crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(visitor, &body)
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
