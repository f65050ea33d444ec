//! `/w/{id}/sources/{source}/change` and `…/credentials`: the forms that change a source.

use cairn_chassis::status::Problem;
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{SourceId, WorkspaceId};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::connect::told_here;
use super::draft::{self, CREDENTIALS, FieldValues, SETTINGS};
use super::providers::{self, Provider};
use super::{address, cost, crumbs, require_manager};
use crate::answers::ConnectedSource;
use crate::error::Error;
use crate::extract::PathIds;
use crate::operations::sources::{self, UpdateSource};
use crate::operations::workspace;
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::Field;
use crate::pages::visitor::Visitor;

/// A source whose provider has a form.
#[derive(Debug)]
struct EditedSource {
    connected: ConnectedSource,
    provider: &'static Provider,
    mode: SourceMode,
}

impl EditedSource {
    async fn of(visitor: &Visitor, id: SourceId) -> Result<Self, Error> {
        require_manager(visitor)?;
        let connected = sources::get(&visitor.person, id).await?;
        let provider = providers::named(&connected.source.provider);
        let provider = provider.ok_or_else(|| Problem::not_found("there is no form for this provider"))?;
        let mode = SourceMode::from_number(connected.source.mode).unwrap_or_default();
        Ok(Self { connected, provider, mode })
    }
}

/// `GET /w/{id}/sources/{source}/change`.
pub(super) async fn ask(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    let at = EditedSource::of(&visitor, id).await?;
    show(&visitor, id, &at, None, None).await
}

/// `POST /w/{id}/sources/{source}/change`: only changed fields are sent to the service.
pub(super) async fn save(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    form: Form,
) -> Answer {
    let at = EditedSource::of(&visitor, id).await?;
    let fields = changes(&at, &form);
    if !fields.is_empty() {
        let changed = match form::input::<UpdateSource>(Value::Object(fields)) {
            Ok(input) => sources::update(&visitor.person, id, input).await.map(drop),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = changed {
            let problem = draft::of_form(told_here(problem)?);
            return show(&visitor, id, &at, Some(&form), Some(&problem)).await;
        }
    }
    Ok(visitor.done(&address(visitor.here()?.id, id), &Notice::Saved))
}

/// The fields of the form that differ from the current values.
fn changes(at: &EditedSource, form: &Form) -> Map<String, Value> {
    let was = &at.connected;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value, is_other: bool| {
        if is_other {
            fields.insert(name.to_owned(), value);
        }
    };
    let name = form.trimmed("name");
    put("name", json!(name), name != was.source.name);
    let settings = Value::Object(draft::read(SETTINGS, at.provider.settings, form));
    let is_other = settings != was.settings;
    put("settings", settings, is_other);
    let mode = form.trimmed("mode");
    put("mode", json!(mode), !mode.is_empty() && mode != at.mode.as_str());
    let every = form.trimmed("every");
    // Null restores the default.
    let wanted = if every.is_empty() { Value::Null } else { json!(every) };
    put("every", wanted, every != was.every);
    let budget = form.trimmed("dailyBudget");
    let wanted = if budget.is_empty() { Value::Null } else { draft::number(budget) };
    put("dailyBudget", wanted, budget != was.budget.limit.to_string());
    fields
}

async fn show(
    visitor: &Visitor,
    id: SourceId,
    at: &EditedSource,
    form: Option<&Form>,
    problem: Option<&Problem>,
) -> Answer {
    let here = visitor.here()?.id;
    let usage = workspace::of_member(&visitor.person, here).await?;
    let (source, provider) = (&at.connected.source, at.provider);
    let typed = FieldValues { form, settings: Some(&at.connected.settings) };
    let limit = at.connected.budget.limit.to_string();
    let text =
        |name: &str, was: &str| form.map_or_else(|| was.to_owned(), |form| form.trimmed(name).to_owned());
    let (name, every, budget) =
        (text("name", &source.name), text("every", &at.connected.every), text("dailyBudget", &limit));
    let mode = text("mode", at.mode.as_str());
    let own = address(here, id);
    let body = html! {
        (draft::summary(provider, problem))
        form.connecting method="post" action={ (own) "/change" } {
            div.fields {
                (Field::text("name", "Name").value(&name).problem(problem).render())
                (draft::fields(SETTINGS, provider.settings, typed, problem))
                (Field::text("every", "Read every").optional().value(&every).hint("Such as 15m, 6h or 1d; empty for what is usual.").problem(problem).render())
                (Field::text("dailyBudget", "Requests a day").optional().value(&budget).hint("Of questions; empty for 500.").problem(problem).render())
            }
            (cost::show(provider, &usage))
            (draft::modes(provider, &mode))
            p.notice { "With other settings, or another mode, everything is read anew. From Indexed to Catalog, the texts that are kept go at once." }
            div.buttons {
                button.primary type="submit" { "Save" }
                a.button href=(own) { "Cancel" }
            }
        }
    };
    page(visitor, id, at, "Change", problem, &body)
}

fn page(
    visitor: &Visitor,
    id: SourceId,
    at: &EditedSource,
    title: &str,
    problem: Option<&Problem>,
    body: &Markup,
) -> Answer {
    let above = crumbs(visitor.here()?.id, id, &at.connected.source.name);
    let page = Page::new(title).crumbs(above);
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, body))
}

/// `GET /w/{id}/sources/{source}/credentials`.
pub(super) async fn ask_credentials(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
) -> Answer {
    let at = with_credentials(&visitor, id).await?;
    show_credentials(&visitor, id, &at, None, None)
}

/// `POST /w/{id}/sources/{source}/credentials`: the next run verifies them.
pub(super) async fn replace_credentials(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    form: Form,
) -> Answer {
    let at = with_credentials(&visitor, id).await?;
    let credentials = draft::read(CREDENTIALS, at.provider.credentials, &form);
    let replaced = match form::input::<UpdateSource>(json!({"credentials": credentials})) {
        Ok(input) => sources::update(&visitor.person, id, input).await.map(drop),
        Err(problem) => Err(problem),
    };
    match replaced {
        Ok(()) => Ok(visitor.done(&address(visitor.here()?.id, id), &Notice::CredentialsReplaced)),
        Err(problem) => {
            let problem = draft::of_form(told_here(problem)?);
            show_credentials(&visitor, id, &at, Some(&form), Some(&problem))
        }
    }
}

async fn with_credentials(visitor: &Visitor, id: SourceId) -> Result<EditedSource, Error> {
    let at = EditedSource::of(visitor, id).await?;
    if at.provider.credentials.is_empty() {
        return Err(Problem::not_found("this provider takes no credentials").into());
    }
    Ok(at)
}

fn show_credentials(
    visitor: &Visitor,
    id: SourceId,
    at: &EditedSource,
    form: Option<&Form>,
    problem: Option<&Problem>,
) -> Answer {
    let own = address(visitor.here()?.id, id);
    let typed = FieldValues { form, settings: None };
    let body = html! {
        (draft::summary(at.provider, problem))
        @if let Some(hint) = &at.connected.credential_hint { p { "Those that it has end with " code { "…" bdi { (hint) } } ". New ones take their place, and a run tries them." } }
        @if let Some(rights) = at.provider.row("Rights") { div.prose.hint { (cost::markdown(rights)) } }
        form.fields method="post" action={ (own) "/credentials" } {
            (draft::fields(CREDENTIALS, at.provider.credentials, typed, problem))
            div.buttons {
                button.primary type="submit" { "Replace credentials" }
                a.button href=(own) { "Cancel" }
            }
        }
    };
    page(visitor, id, at, "Replace credentials", problem, &body)
}
