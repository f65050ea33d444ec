//! Creating a webhook: the form, and the secret, which is shown once.

use axum::response::Response;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::ChangeKind;
use maud::{Markup, html};
use serde_json::json;

use super::{LABELS, RENDERED_AT, address, all, kinds, kinds_of, require_manager};
use crate::answers::{Folder, WebhookWithSecret};
use crate::operations::webhooks::{self, CreateWebhook};
use crate::operations::{Paging, folders};
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::parts::{self as part, Field};
use crate::pages::visitor::Visitor;

/// Folders offered in the form.
const MAX_FOLDERS: u32 = 200;

/// The values of the form.
#[derive(Default)]
struct FormInput {
    name: String,
    url: String,
    kinds: Vec<ChangeKind>,
    folders: Vec<String>,
    number: i64,
}

impl FormInput {
    fn read(form: &Form) -> Self {
        Self {
            name: form.trimmed("name").to_owned(),
            url: form.trimmed("url").to_owned(),
            kinds: kinds_of(form),
            folders: form.all("folders").map(ToOwned::to_owned).collect(),
            number: form.text(RENDERED_AT).parse().unwrap_or_default(),
        }
    }

    /// The form as the API's input.
    fn input(&self) -> Result<CreateWebhook, Problem> {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let fields = json!({"name": self.name, "url": self.url, "kinds": kinds, "folderIds": self.folders});
        form::input(fields)
    }
}

/// `GET /w/{id}/webhooks/new`.
pub(super) async fn ask(visitor: Visitor) -> Answer {
    require_manager(&visitor)?;
    let typed = FormInput { number: visitor.now().as_micros(), ..FormInput::default() };
    form_page(&visitor, &typed, None).await
}

/// `POST /w/{id}/webhooks/new`: creates it and shows its secret. Resubmitting the same form, as a reload does,
/// creates nothing.
pub(super) async fn send(visitor: Visitor, form: Form) -> Answer {
    require_manager(&visitor)?;
    let typed = FormInput::read(&form);
    let input = match typed.input() {
        Ok(input) => input,
        Err(problem) => return form_page(&visitor, &typed, Some(&problem)).await,
    };
    if form.has(RENDERED_AT) && is_made(&visitor, &typed).await? {
        return already_created(&visitor, &typed.name);
    }
    match webhooks::create(&visitor.person, input).await {
        Ok(made) => {
            let body =
                html! { p { bdi { (made.webhook.name) } " is made, and told what changes from now on." } };
            secret_page(&visitor, "Webhook made", &body, &made)
        }
        Err(problem) if matches!(problem.reason, Reason::ValidationError | Reason::LimitExceeded) => {
            form_page(&visitor, &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

/// The page with the secret, shown once.
pub(super) fn secret_page(
    visitor: &Visitor,
    title: &str,
    told: &Markup,
    made: &WebhookWithSecret,
) -> Result<Response, crate::error::Error> {
    let here = visitor.here()?.id;
    let body = html! {
        (told)
        p { "Copy the secret now: nobody can see it again. The receiver checks each message with it, as Standard Webhooks has it." }
        div.fields { (part::secret("secret", "Secret", &made.secret)) }
        div.buttons { a.button href=(address(here, &made.webhook.id)) { "Done" } }
    };
    Ok(Page::new(title).crumbs(vec![("Webhooks".to_owned(), all(here))]).show(visitor, &body))
}

/// Whether a webhook of that name was created since the form was rendered.
async fn is_made(visitor: &Visitor, typed: &FormInput) -> Result<bool, Problem> {
    let shown = Timestamp::from_micros(typed.number).as_seconds();
    let listed = webhooks::list(&visitor.person).await?;
    Ok(listed.iter().any(|webhook| {
        let made = Timestamp::parse_rfc3339(&webhook.created_at);
        webhook.name == typed.name && made.is_some_and(|made| made.as_seconds() >= shown)
    }))
}

fn already_created(visitor: &Visitor, name: &str) -> Answer {
    let here = visitor.here()?.id;
    let body = html! {
        p { "This form was sent before: " bdi { (name) } " is made, and its secret was shown then. Nothing new was made." }
        p { "Whoever did not copy it gives the webhook another secret." }
        div.buttons { a.button href=(all(here)) { "To the webhooks" } }
    };
    Ok(Page::new("Webhook made before").crumbs(vec![("Webhooks".to_owned(), all(here))]).show(visitor, &body))
}

async fn form_page(visitor: &Visitor, typed: &FormInput, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?.id;
    let paging = Paging { limit: Some(MAX_FOLDERS), cursor: None };
    let mut folders = folders::list(&visitor.context()?, folders::Selection::default(), paging).await?;
    folders.items.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
    let body = html! {
        (part::summary(problem, &LABELS))
        form.fields method="post" action={ (all(here)) "/new" } {
            input type="hidden" name=(RENDERED_AT) value=(typed.number);
            (Field::text("name", "Name").value(&typed.name).hint("Of what listens there, such as Search mirror.").problem(problem).render())
            (Field::text("url", "Address").value(&typed.url).hint("An https address that takes POST requests.").problem(problem).render())
            (kinds(&typed.kinds))
            @if !folders.items.is_empty() { (scope(&folders.items, folders.next.is_some(), typed)) }
            p.hint { "It acts for you: it ends when you are no longer owner or admin here." }
            div.buttons {
                button.primary type="submit" { "Make webhook" }
                a href=(all(here)) { "Cancel" }
            }
        }
    };
    let page = Page::new("New webhook").crumbs(vec![("Webhooks".to_owned(), all(here))]);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn scope(folders: &[Folder], are_more: bool, typed: &FormInput) -> Markup {
    html! {
        fieldset #f-folderIds {
            legend { "Folders" }
            p.hint { "With everything below them. None chosen: the whole workspace. They cannot be changed later." @if are_more { " These are the first " (MAX_FOLDERS) "." } }
            @for (at, folder) in folders.iter().enumerate() {
                div.option {
                    input id={ "in-" (at) } type="checkbox" name="folders" value=(folder.id) checked[typed.folders.contains(&folder.id)];
                    label for={ "in-" (at) } { bdi { (folder.path) } }
                }
            }
        }
    }
}
