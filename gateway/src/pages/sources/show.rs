//! `GET /w/{id}/sources/{source}`: the state of a source, its current and its last completed run, and documents that
//! could not be read.

use axum::response::Response;
use cairn_chassis::status::Problem;
use cairn_proto::domain::{Permission, SourceMode};
use cairn_proto::ids::{SourceId, WorkspaceId};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::{address, all, budget, mode_told, mode_word, providers, runs, status_badge};
use crate::answers::{ConnectedSource, SourceDocument, SourceRun, optional_time};
use crate::error::Error;
use crate::extract::PathIds;
use crate::operations::sources::{self, DocumentFilter};
use crate::operations::{Page, Paging};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, frame, parts as part, places, words};

/// Failing documents on the page of a source; the list has all.
const FAILING: u32 = 50;

pub(super) async fn show(visitor: Visitor, PathIds(_, id): PathIds<WorkspaceId, SourceId>) -> Answer {
    show_page(&visitor, id, None).await
}

/// The page again, with the outcome of a form.
pub(super) async fn show_page(visitor: &Visitor, id: SourceId, problem: Option<&Problem>) -> Answer {
    let person = &visitor.person;
    let newest = Paging { limit: Some(2), cursor: None };
    let failed = DocumentFilter { source: Some(id), status: Some("failed".to_owned()), title: None };
    let first = Paging { limit: Some(FAILING), cursor: None };
    let (connected, runs, failing) = tokio::try_join!(
        sources::get(person, id),
        sources::runs(person, id, newest),
        sources::documents_of(person, failed, first),
    )?;
    let here = visitor.here()?.id;
    let own = address(here, id);
    let body = html! {
        (part::summary(problem, &[]))
        div #source data-live="run" data-poll=(own) {
            (state(visitor, &own, &connected))
            (facts(here, &connected))
            (under_way_and_over(&own, &runs.items))
            (failures(&own, (here, id), &failing, visitor.may(Permission::Write)))
        }
        (settings(&connected.settings))
        @if !visitor.manages() { (part::not_in_role(visitor.here()?)) }
    };
    page(visitor, &own, &connected, &body, problem)
}

fn page(
    visitor: &Visitor,
    own: &str,
    connected: &ConnectedSource,
    body: &Markup,
    problem: Option<&Problem>,
) -> Result<Response, Error> {
    let name = connected.source.name.as_str();
    let page = frame::Page::new(name)
        .live()
        .heading(html! { bdi { (name) } })
        .crumbs(vec![("Sources".to_owned(), all(visitor.here()?.id))]);
    let page = if visitor.manages() { page.actions(actions(own, connected)) } else { page };
    let page = if problem.is_some() { page.with_error(StatusCode::CONFLICT) } else { page };
    Ok(page.show(visitor, body))
}

fn actions(own: &str, connected: &ConnectedSource) -> Markup {
    let source = &connected.source;
    let has_runs = SourceMode::from_number(source.mode).is_none_or(SourceMode::has_runs);
    let is_idle = !matches!(source.status.as_str(), "queued" | "syncing" | "waiting");
    html! {
        @if has_runs && !connected.paused && is_idle {
            (part::action(&format!("{own}/sync"), "Sync now", "", &[]))
        }
        @if connected.paused {
            (part::action(&format!("{own}/resume"), "Resume", "", &[]))
        } @else if has_runs {
            (part::action(&format!("{own}/pause"), "Pause", "", &[]))
        }
        @if let Some(provider) = providers::named(&source.provider) {
            a.button href={ (own) "/change" } data-key="e" { "Change" }
            @if !provider.credentials.is_empty() { a.button href={ (own) "/credentials" } { "Replace credentials" } }
        }
        (part::opens("disconnect", "Disconnect", ""))
        (part::dialog("disconnect", "Disconnect this source?", &html! {
            p #disconnected data-live="run" { (words::count(source.document_count, "document", "documents")) " of it go from search, scripts and memories at once, for good. What stands at the provider stays as it is." }
        }, &format!("{own}/disconnect"), "Disconnect", &html! {}))
    }
}

/// The state in sentences.
fn state(visitor: &Visitor, own: &str, connected: &ConnectedSource) -> Markup {
    let source = &connected.source;
    html! {
        p {
            (status_badge(&source.status)) " "
            @match (source.status.as_str(), connected.waiting_until.as_deref()) {
                ("waiting", Some(until)) => { "The provider asked to wait until " (part::time(until)) ". It goes on by itself." }
                ("waiting", None) => { "The provider asked to wait. It goes on by itself." }
                ("never_synced", _) => { "Nothing has been read yet." }
                ("queued", _) => { "A run waits for its turn." }
                ("syncing", _) => { "A run is under way." }
                ("paused", _) => { "Nothing is read. What is kept stays searchable." }
                ("needs_credentials", _) => { "The provider does not take the credentials any more. What is kept stays searchable." }
                ("failed", _) => { "The last run failed. What was kept before stays searchable." }
                _ => {}
            }
        }
        @if let Some(error) = &source.error {
            div.notice { p { strong { "Why: " } bdi { (words::sentence(error)) } } }
        }
        @if source.status == "needs_credentials" && visitor.manages() {
            p { "Make new ones as " a href={ "/docs/guides/connecting-a-source/references/" (source.provider) ".md" } { "the guide" } " says, and " a href={ (own) "/credentials" } { "replace them" } "." }
        }
        @if source.status == "failed" && visitor.manages() && !connected.paused {
            (part::action(&format!("{own}/sync"), "Try again", "", &[]))
        }
    }
}

fn facts(workspace: WorkspaceId, connected: &ConnectedSource) -> Markup {
    let source = &connected.source;
    let mode = SourceMode::from_number(source.mode).unwrap_or_default();
    let documents = format!("/w/{workspace}/documents?source={}", source.id);
    html! {
        dl.facts {
            dt { "Provider" } dd { (source.provider) }
            dt { "Mode" } dd { (mode_word(mode)) span.hint { (mode_told(mode)) } }
            @if mode.has_runs() {
                dt { "Documents" }
                dd { a href=(documents) { (words::count(source.document_count, "document", "documents")) } }
                dt { "Last synced" } dd { (part::time_or(optional_time(source.last_synced_at.as_ref()).as_deref(), "never")) }
                dt { "Read" } dd { "every " (connected.every) }
                dt { "Next sync" } dd { (part::time_or(connected.next_sync_at.as_deref(), "none is planned")) }
            }
            dt { "Questions" } dd { (budget(&connected.budget)) }
            @if connected.account.is_some() || connected.credential_hint.is_some() {
                dt { "Credentials" }
                dd {
                    @if let Some(account) = &connected.account { bdi { (account) } }
                    @if let Some(hint) = &connected.credential_hint { " " code { "…" bdi { (hint) } } }
                }
            }
        }
    }
}

/// The current run and the last completed one, separately, so that the former does not hide how the latter ended.
fn under_way_and_over(own: &str, newest: &[SourceRun]) -> Markup {
    let open = newest.iter().find(|run| !run.status.is_over());
    let over = newest.iter().find(|run| run.status.is_over());
    html! {
        @if let Some(run) = open {
            h2 { "Run under way" }
            (runs::details(own, run))
        }
        h2 { "Last finished run" }
        @match over {
            Some(run) => { (runs::details(own, run)) }
            None => { p.quiet { "No run has ended yet." } }
        }
        @if !newest.is_empty() { p { a href={ (own) "/runs" } { "All runs" } } }
    }
}

fn failures(
    own: &str,
    (workspace, id): (WorkspaceId, SourceId),
    failing: &Page<SourceDocument>,
    may_retry: bool,
) -> Markup {
    let rows = html! {
        @for document in &failing.items {
            tr {
                th scope="row" { a href=(places::document(&document.id)) { bdi { (document.title) } } }
                td { bdi { (words::sentence(document.error.as_deref().unwrap_or("nobody noted a reason"))) } }
                td { (part::time_or(document.last_synced_at.as_deref(), "never")) }
                td { @if may_retry { (part::action(&format!("{own}/retry"), "Try again", &document.title, &[("document", &document.id)])) } }
            }
        }
    };
    html! {
        @if !failing.items.is_empty() {
            h2 { "Documents that could not be read" }
            (part::table("Documents that could not be read", &["Title", "Why", "Last seen there", ""], &rows))
            @if failing.next.is_some() {
                p { a href={ "/w/" (workspace) "/documents?source=" (id) "&status=failed" } { "All " (words::count(failing.total, "document", "documents")) } }
            }
        }
    }
}

fn settings(settings: &Value) -> Markup {
    let Some(fields) = settings.as_object().filter(|fields| !fields.is_empty()) else {
        return html! {};
    };
    html! {
        h2 { "Settings" }
        dl.facts {
            @for (name, value) in fields {
                dt { (name) }
                dd { bdi { @match value { Value::String(text) => { (text) } Value::Array(all) => { (listed(all)) } other => { (other.to_string()) } } } }
            }
        }
    }
}

fn listed(values: &[Value]) -> String {
    let texts =
        values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned));
    texts.collect::<Vec<_>>().join(", ")
}
