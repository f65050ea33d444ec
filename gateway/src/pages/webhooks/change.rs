//! `/w/{id}/webhooks/{webhook}/change`: its name, URL and event filters.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::ChangeKind;
use cairn_proto::ids::{WebhookId, WorkspaceId};
use maud::html;
use serde_json::json;

use super::{LABELS, address, crumbs, kinds, kinds_of, require_manager};
use crate::extract::PathIds;
use crate::operations::webhooks::{self, UpdateWebhook};
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Field};
use crate::pages::visitor::Visitor;

/// The values of the form.
struct FormInput {
    name: String,
    url: String,
    kinds: Vec<ChangeKind>,
}

pub(super) async fn ask(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, WebhookId>) -> Answer {
    require_manager(&visitor)?;
    let webhook = webhooks::get(&visitor.person, id).await?;
    let typed = FormInput { name: webhook.name, url: webhook.url, kinds: webhook.kinds };
    form_page(&visitor, id, &typed, None).await
}

pub(super) async fn save(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, WebhookId>,
    form: Form,
) -> Answer {
    require_manager(&visitor)?;
    let typed = FormInput {
        name: form.trimmed("name").to_owned(),
        url: form.trimmed("url").to_owned(),
        kinds: kinds_of(&form),
    };
    let words: Vec<_> = typed.kinds.iter().map(|kind| kind.as_str()).collect();
    let fields = json!({"name": typed.name, "url": typed.url, "kinds": words});
    let changed = match form::input::<UpdateWebhook>(fields) {
        Ok(input) => webhooks::update(&visitor.person, id, input).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(visitor.done(&address(visitor.here()?.id, id), &Notice::Saved)),
        Err(problem) if problem.reason == Reason::ValidationError => {
            form_page(&visitor, id, &typed, Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn form_page(visitor: &Visitor, id: WebhookId, typed: &FormInput, problem: Option<&Problem>) -> Answer {
    let webhook = webhooks::get(&visitor.person, id).await?;
    let here = visitor.here()?.id;
    let own = address(here, id);
    let body = html! {
        (part::summary(problem, &LABELS))
        form.fields method="post" action={ (own) "/change" } {
            (Field::text("name", "Name").value(&typed.name).problem(problem).render())
            (Field::text("url", "Address").value(&typed.url).hint("An https address that takes POST requests.").problem(problem).render())
            (kinds(&typed.kinds))
            p.hint { "It keeps its folders. What is under way is tried at once." }
            div.buttons {
                button.primary type="submit" { "Save" }
                a href=(own) { "Cancel" }
            }
        }
    };
    let page = Page::new("Change webhook").crumbs(crumbs(here, &webhook.id, &webhook.name));
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}
