//! Runs of a source: the list, and one with its counters and warnings.

use axum::extract::{FromRequestParts, RawPathParams};
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::{SourceRunKind, SourceRunStatus};
use cairn_proto::ids::{SourceId, SourceRunId, WorkspaceId};
use http::StatusCode;
use http::request::Parts;
use maud::{Markup, html};

use super::{address, crumbs};
use crate::answers::SourceRun;
use crate::error::Error;
use crate::extract::PathIds;
use crate::operations::{Paging, sources};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Pages, Tone};
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, is_stale, marks, words};

const PAGE_SIZE: u32 = 50;

/// A run in the path `/w/{id}/sources/{source}/runs/{run}…`.
#[derive(Debug)]
pub(super) struct Named {
    source: SourceId,
    run: SourceRunId,
}

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let no_run = || Problem::not_found("there is no such run");
        let path = RawPathParams::from_request_parts(parts, state).await.map_err(|_| no_run())?;
        let named = |wanted: &str| path.iter().find(|(name, _)| *name == wanted).map(|(_, id)| id);
        let source = named("source").and_then(|id| id.parse().ok()).ok_or_else(no_run)?;
        let run = named("run").and_then(|id| id.parse().ok()).ok_or_else(no_run)?;
        Ok(Self { source, run })
    }
}

/// `GET /w/{id}/sources/{source}/runs`.
pub(super) async fn list(
    visitor: Visitor,
    PathIds(_, id): PathIds<WorkspaceId, SourceId>,
    parts: Parts,
) -> Answer {
    let here = visitor.here()?.id;
    let own = address(here, id);
    let path = format!("{own}/runs");
    let trail = marks(&parts);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let found =
        tokio::try_join!(sources::get(&visitor.person, id), sources::runs(&visitor.person, id, paging),);
    let (connected, listed) = match found {
        // A stale page token: start over.
        Err(problem) if is_stale(&problem, &trail) => {
            return Ok(see_other(&path));
        }
        found => found?,
    };
    let pages = Pages::of(&path, &[], trail, PAGE_SIZE, &listed);
    let body = html! {
        @if listed.items.is_empty() { p.quiet { "Nothing has been read yet." } } @else {
            div #runs data-live="run" data-poll=[listed.items.iter().any(|run| !run.status.is_over()).then_some("")] { (table(&own, &listed.items)) }
            (part::pages(&pages))
        }
    };
    Ok(Page::new("Runs").live().crumbs(crumbs(here, id, &connected.source.name)).show(&visitor, &body))
}

fn table(own: &str, runs: &[SourceRun]) -> Markup {
    let rows = html! {
        @for run in runs {
            tr {
                th scope="row" { a href={ (own) "/runs/" (run.id) } { (part::time_or(run.started_at.as_deref(), "not begun")) } }
                td {
                    (status_badge(run.status))
                    @if let Some(error) = &run.error { span.hint { bdi { (words::sentence(error)) } } }
                    @else if !run.warnings.is_empty() { span.hint { (words::count(run.warnings.len() as u64, "warning", "warnings")) } }
                }
                td { (kind(run.kind)) }
                td.number { (words::grouped(run.counters.listed)) }
                td.number { (words::grouped(run.counters.created)) }
                td.number { (words::grouped(run.counters.updated)) }
                td.number { (words::grouped(run.counters.removed)) }
                td.number { (words::grouped(run.counters.failed)) }
                td.number { (words::grouped(run.counters.operations)) }
            }
        }
    };
    let columns = ["Began", "Status", "Reads", "Seen", "New", "Changed", "Removed", "Failed", "Requests"];
    part::table("Runs", &columns, &rows)
}

/// `GET /w/{id}/sources/{source}/runs/{run}`.
pub(super) async fn one(visitor: Visitor, named: Named) -> Answer {
    show_page(&visitor, &named, None).await
}

async fn show_page(visitor: &Visitor, named: &Named, problem: Option<&Problem>) -> Answer {
    let (person, here) = (&visitor.person, visitor.here()?.id);
    let (connected, run) =
        tokio::try_join!(sources::get(person, named.source), sources::run(person, named.source, named.run))?;
    let own = address(here, named.source);
    let is_open = !run.status.is_over();
    let body = html! {
        (part::summary(problem, &[]))
        div #run data-live="run" data-poll=[is_open.then(|| format!("{own}/runs/{}", named.run))] {
            (details(&own, &run))
            @if !run.complete && !is_open { p.hint { "Not the whole listing was read, so nothing was removed for being absent from it." } }
            (warnings(&run))
        }
    };
    let actions = html! {
        @if is_open && visitor.manages() {
            (part::action(&format!("{own}/runs/{}/cancel", named.run), "Cancel this run", "", &[]))
        }
    };
    let mut above = crumbs(here, named.source, &connected.source.name);
    above.push(("Runs".to_owned(), format!("{own}/runs")));
    let page = Page::new("Run").live().crumbs(above).actions(actions);
    let page = if problem.is_some() { page.with_error(StatusCode::CONFLICT) } else { page };
    Ok(page.show(visitor, &body))
}

/// `POST /w/{id}/sources/{source}/runs/{run}/cancel`: the run ends soon, and the next one continues where it
/// stopped.
pub(super) async fn cancel(visitor: Visitor, named: Named) -> Answer {
    match sources::cancel(&visitor.person, named.source, named.run).await {
        Ok(_) => {
            let to = format!("{}/runs/{}", address(visitor.here()?.id, named.source), named.run);
            Ok(visitor.done(&to, &Notice::Cancelled))
        }
        Err(problem) if is_of_its_state(&problem) => show_page(&visitor, &named, Some(&problem)).await,
        Err(problem) => Err(problem.into()),
    }
}

/// Whether the source's current state does not allow the action.
pub(super) fn is_of_its_state(problem: &Problem) -> bool {
    matches!(problem.reason, Reason::RunBusy | Reason::RunNotStartable | Reason::RunNotCancellable)
}

/// A run in sentences and numbers.
pub(super) fn details(own: &str, run: &SourceRun) -> Markup {
    let counted = &run.counters;
    let figures = [
        (counted.listed, "seen"),
        (counted.created, "new"),
        (counted.updated, "changed"),
        (counted.unchanged, "unchanged"),
        (counted.removed, "removed"),
        (counted.failed, "failed"),
        (counted.operations, "requests"),
    ];
    html! {
        p {
            (status_badge(run.status)) " "
            a href={ (own) "/runs/" (run.id) } { (kind(run.kind)) }
            @if let Some(at) = &run.started_at { ", begun " (part::time(at)) }
            @if let Some(at) = &run.finished_at { ", ended " (part::time(at)) }
            @if let Some(until) = &run.waiting_until { ". The provider asked to wait until " (part::time(until)) "; it goes on by itself" }
            "."
        }
        @if let Some(error) = &run.error { div.notice { p { strong { "Why: " } bdi { (words::sentence(error)) } } } }
        ul.figures.counters { @for (number, word) in figures { li { strong { (words::grouped(number)) } (word) } } }
        @if !run.warnings.is_empty() {
            p { a href={ (own) "/runs/" (run.id) } { (words::count(run.warnings.len() as u64, "warning", "warnings")) } }
        }
    }
}

fn warnings(run: &SourceRun) -> Markup {
    html! {
        @if !run.warnings.is_empty() {
            h2 { "Warnings" }
            ul { @for warning in &run.warnings { li { bdi { (words::sentence(&warning.message)) } } } }
        }
    }
}

fn status_badge(status: SourceRunStatus) -> Markup {
    let (tone, word) = match status {
        SourceRunStatus::Queued => (Tone::Warn, "Queued"),
        SourceRunStatus::Running => (Tone::Warn, "Running"),
        SourceRunStatus::Waiting => (Tone::Warn, "Waiting"),
        SourceRunStatus::Completed => (Tone::Ok, "Completed"),
        SourceRunStatus::CompletedWithWarnings => (Tone::Warn, "Completed with warnings"),
        SourceRunStatus::Failed => (Tone::Wrong, "Failed"),
        SourceRunStatus::Cancelled => (Tone::Plain, "Cancelled"),
    };
    part::badge(tone, word)
}

/// The kind of a run.
const fn kind(kind: SourceRunKind) -> &'static str {
    match kind {
        SourceRunKind::Full => "Reads everything",
        SourceRunKind::Changes => "Reads what has changed",
        SourceRunKind::Verify => "Compares everything",
    }
}
