//! `/w/{id}/sources/new`: choose a provider, fill in its fields, see the costs, and choose a mode.

use axum::response::Response;
use cairn_chassis::status::Problem;
use cairn_proto::domain::SourceMode;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::draft::{self, CREDENTIALS, FieldValues, SETTINGS};
use super::providers::{self, Provider};
use super::{address, all, cost, require_manager};
use crate::answers::CheckedSource;
use crate::error::Error;
use crate::extract::Query;
use crate::operations::sources::{self, CheckSource, ConnectSource};
use crate::operations::workspace;
use crate::pages::form::{self, Form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Field, Tone};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// The provider; all of them without one.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    provider: Option<String>,
}

/// The state of the form beside its input.
#[derive(Debug, Default)]
struct FormState<'a> {
    form: Option<&'a Form>,
    problem: Option<&'a Problem>,
    /// The provider's answer to a check; then the problem is the check's, too.
    checked: Option<&'a CheckedSource>,
    was_check: bool,
}

/// `GET /w/{id}/sources/new?provider=`.
pub(super) async fn ask(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    require_manager(&visitor)?;
    match page_query.provider.as_deref().filter(|name| !name.is_empty()) {
        None => choose(&visitor),
        Some(name) => {
            let provider = providers::named(name).ok_or_else(no_provider)?;
            show(&visitor, provider, FormState::default()).await
        }
    }
}

fn no_provider() -> Problem {
    Problem::not_found("there is no such provider")
}

fn choose(visitor: &Visitor) -> Answer {
    let here = visitor.here()?.id;
    let own = format!("{}/new", all(here));
    let body = html! {
        p { "Where are the documents? What is connected is read and searched here; it is changed there." }
        ul.providers {
            @for provider in providers::ALL {
                li { a href={ (own) "?provider=" (provider.name) } { (provider.title) } span.hint { (provider.told) } }
            }
        }
    };
    let above = vec![("Sources".to_owned(), all(here))];
    Ok(Page::new("Connect a source").crumbs(above).show(visitor, &body))
}

/// `POST /w/{id}/sources/new`: checks the settings, or connects.
pub(super) async fn send(visitor: Visitor, form: Form) -> Answer {
    require_manager(&visitor)?;
    let provider = providers::named(form.trimmed("provider")).ok_or_else(no_provider)?;
    let fields = fields_of(provider, &form);
    if form.trimmed("then") == "check" {
        return check(&visitor, provider, &form, fields).await;
    }
    let connected = match form::input::<ConnectSource>(Value::Object(fields)) {
        Ok(input) => sources::connect(&visitor.person, input).await,
        Err(problem) => Err(problem),
    };
    match connected {
        Ok(connected) => {
            let to = address(visitor.here()?.id, &connected.source.id);
            Ok(visitor.done(&to, &Notice::Connected))
        }
        Err(problem) => {
            let problem = draft::of_form(told_here(problem)?);
            show(
                &visitor,
                provider,
                FormState { form: Some(&form), problem: Some(&problem), ..FormState::default() },
            )
            .await
        }
    }
}

/// Errors that the person can correct stay on the page; others are pages of their own.
pub(super) fn told_here(problem: Problem) -> Result<Problem, Error> {
    let error = Error::from(problem.clone());
    if error.status.is_client_error() && error.status != StatusCode::FORBIDDEN {
        Ok(problem)
    } else {
        Err(error)
    }
}

async fn check(
    visitor: &Visitor,
    provider: &Provider,
    form: &Form,
    mut fields: Map<String, Value>,
) -> Answer {
    // A check needs no name.
    if fields.get("name").and_then(Value::as_str) == Some("") {
        fields.remove("name");
    }
    let checked = match form::input::<CheckSource>(Value::Object(fields)) {
        Ok(input) => sources::check(&visitor.person, input).await,
        Err(problem) => Err(problem),
    };
    let state = FormState { form: Some(form), was_check: true, ..FormState::default() };
    match checked {
        Ok(checked) => show(visitor, provider, FormState { checked: Some(&checked), ..state }).await,
        Err(problem) => {
            let problem = draft::of_form(told_here(problem)?);
            show(visitor, provider, FormState { problem: Some(&problem), ..state }).await
        }
    }
}

/// The form as the API's input.
fn fields_of(provider: &Provider, form: &Form) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("name", json!(form.trimmed("name")));
    put("provider", json!(provider.name));
    put("settings", Value::Object(draft::read(SETTINGS, provider.settings, form)));
    let credentials = draft::read(CREDENTIALS, provider.credentials, form);
    if !credentials.is_empty() {
        put("credentials", Value::Object(credentials));
    }
    for name in ["mode", "every"] {
        if !form.trimmed(name).is_empty() {
            put(name, json!(form.trimmed(name)));
        }
    }
    if !form.trimmed("dailyBudget").is_empty() {
        put("dailyBudget", draft::number(form.trimmed("dailyBudget")));
    }
    if form.has("paused") {
        put("paused", json!(true));
    }
    fields
}

async fn show(visitor: &Visitor, provider: &Provider, state: FormState<'_>) -> Result<Response, Error> {
    let here = visitor.here()?.id;
    let usage = workspace::of_member(&visitor.person, here).await?;
    let own = format!("{}/new", all(here));
    let typed = FieldValues { form: state.form, settings: None };
    let text = |name: &str| state.form.map(|form| form.trimmed(name)).unwrap_or_default();
    let problem = state.problem;
    let of_connecting = problem.filter(|_| !state.was_check);
    let (name, every, budget) = (text("name"), text("every"), text("dailyBudget"));
    let chosen = text("mode").parse::<SourceMode>().ok().filter(|mode| provider.modes.contains(mode));
    let chosen = chosen.or(provider.modes.first().copied()).unwrap_or_default();
    let body = html! {
        (draft::summary(provider, of_connecting))
        form.connecting method="post" action=(own) {
            input type="hidden" name="provider" value=(provider.name);
            div.fields {
                (Field::text("name", "Name").value(name).hint("It is a folder below /sources in scripts, too.").problem(problem).render())
                (draft::fields(SETTINGS, provider.settings, typed, problem))
            }
            (credentials(provider, &state))
            (cost::show(provider, &usage))
            (draft::modes(provider, chosen.as_str()))
            details open[!every.is_empty() || !budget.is_empty()] {
                summary { "How often, and how much" }
                div.fields {
                    (Field::text("every", "Read every").optional().value(every).hint("Such as 15m, 6h or 1d; what is usual for the provider when left empty.").problem(problem).render())
                    (Field::text("dailyBudget", "Requests a day").optional().value(budget).hint("Of questions; 500 when left empty. Runs are not counted in it.").problem(problem).render())
                    div.option {
                        input #f-paused type="checkbox" name="paused" value="yes" checked[state.form.is_some_and(|form| form.has("paused"))];
                        label for="f-paused" { "Connect it paused: nothing is read before somebody resumes it" }
                    }
                }
            }
            (tested(provider, &state))
            div.buttons {
                button type="submit" name="then" value="check" formnovalidate data-swap="#tested" { "Test" }
                button.primary type="submit" name="then" value="connect" { "Connect" }
            }
        }
    };
    let title = format!("Connect {}", provider.title);
    let above = vec![("Sources".to_owned(), all(here)), ("Connect a source".to_owned(), own)];
    let page = Page::new(&title).crumbs(above);
    let page = match problem {
        None => page,
        // A completed check is 200: browsers log any other status of a script's fetch as an error.
        Some(_) if state.was_check => page.with_error(StatusCode::OK),
        Some(_) => page.failed(),
    };
    Ok(page.show(visitor, &body))
}

fn credentials(provider: &Provider, state: &FormState<'_>) -> Markup {
    let typed = FieldValues { form: state.form, settings: None };
    html! {
        @if !provider.credentials.is_empty() {
            h2 { "Credentials" }
            @if let Some(rights) = provider.row("Rights") {
                div.prose.hint { (cost::markdown(rights)) }
            }
            @if state.form.is_some() { p.notice { "Secrets are never written back: type them again." } }
            div.fields { (draft::fields(CREDENTIALS, provider.credentials, typed, state.problem)) }
        }
    }
}

/// The result of the check, at its button.
fn tested(provider: &Provider, state: &FormState<'_>) -> Markup {
    html! {
        div #tested role="status" {
            @if state.was_check { (draft::summary(provider, state.problem)) }
            @if let Some(checked) = state.checked {
                p {
                    @if checked.ok { (part::badge(Tone::Ok, "It works")) } @else { (part::badge(Tone::Wrong, "It does not work")) }
                    " " bdi { (words::sentence(&checked.message)) }
                    @if let Some(account) = &checked.account { " The credentials are of " bdi { (account) } "." }
                }
            }
        }
    }
}
