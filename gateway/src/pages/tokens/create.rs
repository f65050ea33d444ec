//! Creating a token: the form, a preview of its reach, and the secret, which is shown once.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use http::HeaderMap;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{address, paths, reach};
use crate::answers::{Folder, Token, TokenReach};
use crate::extract::Query;
use crate::operations::tokens::{self, CreateToken};
use crate::operations::views::{ViewTarget, WishedToken};
use crate::operations::{Context, Paging, folders};
use crate::origin::Origins;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::parts::{self, Field};
use crate::pages::visitor::{Here, Visitor};
use crate::pages::{Answer, words};
use crate::schema::inputs;

inputs!(PageQuery);

const DEFAULT_LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// Folders offered in the form.
const MAX_FOLDERS: u32 = 200;
/// The label of the field for further folders.
const BY_PATH: &str = "Folders by their paths";
/// The idempotency field of a form: when it was rendered.
pub(super) const RENDERED_AT: &str = "number";

/// The values of the form.
pub(super) struct FormInput {
    pub(super) name: String,
    permissions: Vec<Permission>,
    folders: Vec<String>,
    /// Further folders by path, one per line.
    paths: String,
    /// Their ids, once resolved.
    named: Vec<String>,
    end: String,
    number: i64,
}

impl FormInput {
    fn new(visitor: &Visitor, name: String) -> Self {
        let end = visitor.now().plus(DEFAULT_LIFETIME).to_rfc3339();
        Self {
            name,
            permissions: [Permission::Read, Permission::Write]
                .into_iter()
                .filter(|one| visitor.may(*one))
                .collect(),
            folders: Vec::new(),
            paths: String::new(),
            named: Vec::new(),
            end: end.get(..10).unwrap_or_default().to_owned(),
            number: visitor.now().as_micros(),
        }
    }

    fn read(form: &Form, visitor: &Visitor) -> Self {
        Self {
            name: form.trimmed("name").to_owned(),
            permissions: form.all("permissions").filter_map(|word| word.parse().ok()).collect(),
            folders: form.all("folders").map(ToOwned::to_owned).collect(),
            paths: form.text(paths::FIELD).trim().to_owned(),
            named: Vec::new(),
            end: form.trimmed("expiresAt").to_owned(),
            number: form.text(RENDERED_AT).parse().unwrap_or_else(|_| visitor.now().as_micros()),
        }
    }

    /// A form that copies a token.
    pub(super) fn like(token: &Token, form: &Form, visitor: &Visitor) -> Self {
        let end = token.expires_at.as_deref().and_then(|end| end.get(..10));
        Self {
            name: token.name.clone(),
            permissions: token.permissions.clone(),
            folders: token.scope.folder_ids.clone().unwrap_or_default(),
            paths: String::new(),
            named: Vec::new(),
            end: end.unwrap_or_default().to_owned(),
            number: form.text(RENDERED_AT).parse().unwrap_or_else(|_| visitor.now().as_micros()),
        }
    }

    /// Resolves the folders given by path.
    async fn find(&mut self, context: &Context) -> Result<(), Problem> {
        self.named = paths::ids(context, &self.paths).await?;
        Ok(())
    }

    /// The ids of all selected folders.
    fn scope(&self) -> Vec<&str> {
        let named = self.named.iter().filter(|id| !self.folders.contains(id));
        self.folders.iter().chain(named).map(String::as_str).collect()
    }

    /// The form as the API's input. A day ends with its last second, UTC.
    pub(super) fn input(&self) -> Result<CreateToken, Problem> {
        let permissions: Vec<_> = self.permissions.iter().map(|one| one.as_str()).collect();
        let mut fields = json!({"name": self.name, "permissions": permissions});
        if let Some(fields) = fields.as_object_mut() {
            let folders = self.scope();
            if !folders.is_empty() {
                fields.insert("scope".to_owned(), json!({"type": "folders", "folderIds": folders}));
            }
            if !self.end.is_empty() {
                fields.insert("expiresAt".to_owned(), json!(format!("{}T23:59:59Z", self.end)));
            }
        }
        form::input(fields)
    }
}

impl FormInput {
    /// The part that determines the reach. Without a permission yet: that of reading.
    fn proposed(&self) -> Result<WishedToken, Problem> {
        let mut permissions: Vec<_> = self.permissions.iter().map(|one| one.as_str()).collect();
        if permissions.is_empty() {
            permissions.push(Permission::Read.as_str());
        }
        let mut fields = json!({"permissions": permissions});
        let folders = self.scope();
        if let Some(fields) = fields.as_object_mut().filter(|_| !folders.is_empty()) {
            fields.insert("scope".to_owned(), json!({"type": "folders", "folderIds": folders}));
        }
        form::input(fields)
    }
}

/// The client the token is for, when its setup page led here.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct PageQuery {
    name: Option<String>,
}

pub(super) async fn ask(visitor: Visitor, Query(wanted): Query<PageQuery>) -> Answer {
    let typed = FormInput::new(&visitor, wanted.name.unwrap_or_default());
    form_page(&visitor, &typed, None, None).await
}

/// Creates a token and shows it. Resubmitting the same form, as a reload does, creates nothing.
pub(super) async fn create(
    State(origins): State<Arc<Origins>>,
    headers: HeaderMap,
    visitor: Visitor,
    form: Form,
) -> Answer {
    let here = visitor.here()?;
    let base = origins.base_url(&headers);
    let mut typed = FormInput::read(&form, &visitor);
    let found = typed.find(&visitor.context()?).await;
    let input = match found.and_then(|()| typed.input()) {
        Ok(input) => input,
        Err(problem) if problem.violations.is_empty() => return Err(problem.into()),
        Err(problem) => return form_page(&visitor, &typed, Some(&problem), None).await,
    };
    if form.has(RENDERED_AT) && is_made(&visitor, here, &typed, None).await? {
        return Ok(already_created(&visitor, here, &typed.name));
    }
    match tokens::create(&visitor.person, here.id, input).await {
        Ok(token) => Ok(secret_page(&visitor, here, &token, base.as_deref())),
        Err(problem) if matches!(problem.reason, Reason::ValidationError | Reason::LimitExceeded) => {
            form_page(&visitor, &typed, Some(&problem), None).await
        }
        Err(problem) => Err(problem.into()),
    }
}

/// Whether the visitor has created a token of that name since the form was rendered, besides the given one.
pub(super) async fn is_made(
    visitor: &Visitor,
    here: &Here,
    typed: &FormInput,
    besides: Option<&str>,
) -> Result<bool, Problem> {
    let shown = Timestamp::from_micros(typed.number).as_seconds();
    let listed = tokens::list(&visitor.person, here.id).await?;
    Ok(listed.iter().any(|token| {
        let is_later =
            Timestamp::parse_rfc3339(&token.created_at).is_some_and(|made| made.as_seconds() >= shown);
        let is_other = besides != Some(token.id.as_str());
        is_other && token.owner_id == visitor.user.id && token.name == typed.name && is_later
    }))
}

/// Previews the reach of the token.
pub(super) async fn preview(visitor: Visitor, form: Form) -> Answer {
    let context = visitor.context()?;
    let mut typed = FormInput::read(&form, &visitor);
    let reach = match typed.find(&context).await {
        Ok(()) => {
            let view = visitor.see(ViewTarget::Proposed(typed.proposed()?)).await?;
            Ok(view.reach(&context).await?)
        }
        Err(problem) if problem.violations.is_empty() => return Err(problem.into()),
        Err(problem) => Err(problem),
    };
    form_page(&visitor, &typed, None, Some(&reach)).await
}

async fn form_page(
    visitor: &Visitor,
    typed: &FormInput,
    problem: Option<&Problem>,
    reach: Option<&Result<TokenReach, Problem>>,
) -> Answer {
    let here = visitor.here()?;
    let paging = Paging { limit: Some(MAX_FOLDERS), cursor: None };
    let mut folders = folders::list(&visitor.context()?, folders::Selection::default(), paging).await?;
    folders.items.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
    let allowed: Vec<_> = Permission::ALL.into_iter().filter(|one| visitor.may(*one)).collect();
    let labels = [
        ("name", "Name"),
        ("permissions", "Permissions"),
        ("scope", "Folders"),
        (paths::FIELD, BY_PATH),
        ("expiresAt", "Last day"),
    ];
    let body = html! {
        (parts::summary(problem, &labels))
        form.fields method="post" action=(address(here.id)) {
            input type="hidden" name=(RENDERED_AT) value=(typed.number);
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
                (scope(&folders.items, folders.next.is_some(), typed))
                (Field::text(paths::FIELD, BY_PATH).optional().value(&typed.paths).hint("One a line, such as /Plans/2027: besides those above.").problem(problem).area(2))
            }
            div #reach role="status" {
                @match reach {
                    Some(Ok(reach)) => { p { (reach::sentences(reach)) } (reach::folders(reach)) }
                    Some(Err(problem)) => { p.said { (words::describe(problem)) } }
                    None => {}
                }
            }
            (Field::date("expiresAt", "Last day").optional().value(&typed.end).hint("UTC. Empty: it never ends.").problem(problem).render())
            div.buttons {
                button.primary type="submit" { "Create token" }
                button type="submit" formaction={ (address(here.id)) "/preview" } formnovalidate data-swap="#reach" { "What it reaches" }
                a href=(address(here.id)) { "Cancel" }
            }
        }
    };
    let page = Page::new("New token").crumbs(vec![("Tokens".to_owned(), address(here.id))]);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn scope(folders: &[Folder], are_more: bool, typed: &FormInput) -> Markup {
    html! {
        fieldset #f-scope {
            legend { "Folders" }
            p.hint { "With everything below them. None chosen: the whole workspace." @if are_more { " These are the first " (MAX_FOLDERS) "." } }
            @for (at, folder) in folders.iter().enumerate() {
                div.option {
                    input id={ "in-" (at) } type="checkbox" name="folders" value=(folder.id) checked[typed.folders.contains(&folder.id)];
                    label for={ "in-" (at) } { bdi { (folder.path) } }
                }
            }
        }
    }
}

/// The secret of a new token with setup instructions for that base URL.
pub(super) fn secret(here: &Here, token: &Token, base: Option<&str>) -> Markup {
    let secret = token.token.as_deref().unwrap_or_default();
    html! {
        p { bdi { (token.name) } " is made. Copy it now: nobody can see it again." }
        div.fields { (parts::secret("secret", "Token", secret)) }
        p { "It is sent as " code { "Authorization: Bearer <token>" } ". " a href={ "/w/" (here.id) "/connect" } { "How clients sign in without one" } }
        @if let Some(base) = base { (in_clients(base, secret)) }
    }
}

/// The token in the configuration of clients.
fn in_clients(base: &str, secret: &str) -> Markup {
    let header = format!("Bearer {secret}");
    let command =
        format!("claude mcp add --transport http cairn {base}/mcp --header \"Authorization: {header}\"");
    let server = json!({"url": format!("{base}/mcp"), "headers": {"Authorization": header}});
    let file = serde_json::to_string_pretty(&json!({"mcpServers": {"cairn": server}})).unwrap_or_default();
    html! {
        details {
            summary { "As clients take it" }
            p { "Claude Code, in a terminal." }
            (parts::snippet("in-claude-code", &command))
            p { "Clients that read a file, such as .cursor/mcp.json. The token stands in it: keep it out of repositories." }
            (parts::snippet("in-a-file", &file))
        }
    }
}

fn secret_page(visitor: &Visitor, here: &Here, token: &Token, base: Option<&str>) -> Response {
    let body = html! {
        (secret(here, token, base))
        div.buttons { a.button href=(address(here.id)) { "Done" } }
    };
    Page::new("Token made").crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(visitor, &body)
}

pub(super) fn already_created(visitor: &Visitor, here: &Here, name: &str) -> Response {
    let body = html! {
        p { "This form was sent before: " bdi { (name) } " is made, and its secret was shown then. Nothing new was made." }
        p { "Whoever did not copy it deletes the token and makes another." }
        div.buttons { a.button href=(address(here.id)) { "To the tokens" } }
    };
    Page::new("Token made before").crumbs(vec![("Tokens".to_owned(), address(here.id))]).show(visitor, &body)
}
