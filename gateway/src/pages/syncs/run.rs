//! A sync run: its plan per document, its progress, and its outcome.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{ConflictPolicy, Permission, RunStatus, SyncAction};
use cairn_proto::ids::{SyncRunId, WorkspaceId};
use http::request::Parts;
use maud::{Markup, html};

use super::{address, address_of_name};
use crate::answers::SyncRun;
use crate::extract::PathIds;
use crate::operations::syncs;
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Pages};
use crate::pages::runs::{self, RunSummary, Tab};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, folders, marks, places, words};

const PAGE_SIZE: usize = 50;

type Path = PathIds<WorkspaceId, SyncRunId>;

/// One of the lists of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    /// Documents with their planned or actual action; optionally of one action only.
    Documents(Option<SyncAction>),
    /// Files of earlier runs that are missing in the directory.
    Prunable,
    Warnings,
}

impl List {
    fn name(self) -> &'static str {
        match self {
            Self::Documents(None) => "",
            Self::Documents(Some(action)) => action.as_str(),
            Self::Prunable => "prune",
            Self::Warnings => "warnings",
        }
    }

    /// The list in the URL; unknown ones select the default.
    fn of(name: &str) -> Self {
        match name {
            "prune" => Self::Prunable,
            "warnings" => Self::Warnings,
            action => Self::Documents(action.parse().ok()),
        }
    }
}

/// An entry of a list: a path, its link, and a note.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    path: &'a str,
    place: Option<String>,
    what: &'a str,
    why: &'a str,
}

pub(super) async fn show(visitor: Visitor, PathIds(_, id): Path, parts: Parts) -> Answer {
    let list = List::of(&runs::query_param(&parts, "show"));
    page(&visitor, id, list, marks(&parts), None).await
}

pub(super) async fn start(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    let done = syncs::start(&visitor.person.upstreams, &visitor.person.call, id).await;
    answered(&visitor, id, done, &Notice::Started).await
}

pub(super) async fn cancel(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    let done = syncs::cancel(&visitor.person, id).await;
    answered(&visitor, id, done, &Notice::Cancelled).await
}

pub(super) async fn roll_back(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    let done = syncs::roll_back(&visitor.person, id).await;
    answered(&visitor, id, done, &Notice::RollingBack).await
}

pub(super) async fn delete(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    match syncs::delete(&visitor.person.upstreams, &visitor.person.call, id).await {
        Ok(()) => Ok(visitor.done(&address(visitor.here()?.id), &Notice::RunDeleted)),
        Err(problem) => refused(&visitor, id, problem).await,
    }
}

async fn answered(
    visitor: &Visitor,
    id: SyncRunId,
    done: Result<SyncRun, Problem>,
    notice: &Notice,
) -> Answer {
    match done {
        Ok(run) => Ok(visitor.done(&format!("{}/{}", address(visitor.here()?.id), run.id), notice)),
        Err(problem) => refused(visitor, id, problem).await,
    }
}

async fn refused(visitor: &Visitor, id: SyncRunId, problem: Problem) -> Answer {
    if runs::is_told_there(&problem) {
        return page(visitor, id, List::Documents(None), Vec::new(), Some(&problem)).await;
    }
    Err(problem.into())
}

async fn page(
    visitor: &Visitor,
    id: SyncRunId,
    list: List,
    trail: Vec<String>,
    problem: Option<&Problem>,
) -> Answer {
    let here = visitor.here()?.id;
    let path = format!("{}/{id}", address(here));
    let run = syncs::get(&visitor.person.upstreams, &visitor.person.call, id).await?;
    let summary = summary_of(&path, &run);
    let entries = entries(here, &run, list);
    let begin: usize = trail.last().and_then(|mark| mark.parse().ok()).unwrap_or_default();
    let shown: Vec<&Entry<'_>> = entries.iter().skip(begin).take(PAGE_SIZE).collect();
    let end = begin.saturating_add(shown.len());
    let query: Vec<(&str, &str)> =
        Some(("show", list.name())).filter(|(_, name)| !name.is_empty()).into_iter().collect();
    let pages = Pages {
        path: &path,
        query: &query,
        trail,
        next: (!shown.is_empty() && end < entries.len()).then(|| end.to_string()),
        total: entries.len() as u64,
        page_size: PAGE_SIZE as u64,
        shown: shown.len(),
    };
    // The URL of a POST form cannot be polled.
    let poll = if problem.is_some() { path.as_str() } else { visitor.address.as_str() };
    let body = html! {
        div #run data-live="run" data-poll=[summary.is_busy().then_some(poll)] {
            (runs::problem(problem))
            section aria-label="State" { (summary.markup()) (rules(here, &run)) }
            div.buttons.deeds {
                (summary.forms(visitor))
                @if is_revertible(&run) { (summary.rollback(visitor, &rollback_told(&run))) }
                (deletion(visitor, &path, &run, &summary))
            }
            (totals(&run))
            h2 { @if is_planned(&run) { "What will be done" } @else { "What was done" } }
            (runs::tabs("Lists of the run", &tabs(&path, &run, list)))
            (table(&run, list, &shown))
            (part::pages(&pages))
        }
    };
    let page = Page::new(&run.name).live().heading(html! { bdi { (run.name) } }).crumbs(vec![
        ("Sync".to_owned(), address(here)),
        (run.name.clone(), address_of_name(here, &run.name)),
    ]);
    Ok(runs::with_problem(page, problem).show(visitor, &body))
}

/// Whether it was never started, so that the lists are a plan.
const fn is_planned(run: &SyncRun) -> bool {
    run.started_at.is_none()
}

/// A partial sync cannot be rolled back: the next sync repairs it.
const fn is_revertible(run: &SyncRun) -> bool {
    matches!(run.status, RunStatus::Completed | RunStatus::CompletedWithWarnings)
}

fn summary_of<'a>(path: &'a str, run: &'a SyncRun) -> RunSummary<'a> {
    RunSummary {
        address: path,
        status: run.status,
        total: run.total,
        processed: run.processed,
        warnings: run.warnings.len() as u64,
        place: run.place,
        error: run.error.as_deref(),
        by: run.by.as_ref(),
        created_at: &run.created_at,
        started_at: run.started_at.as_deref(),
        finished_at: run.finished_at.as_deref(),
        rollback_until: run.rollback_until.as_deref(),
    }
}

/// The options of the run.
fn rules(here: WorkspaceId, run: &SyncRun) -> Markup {
    let changed = match run.conflict_policy {
        ConflictPolicy::Update => "are updated, unless they were edited here",
        ConflictPolicy::Skip => "stay as they are",
        ConflictPolicy::Duplicate => "get the new version beside them",
    };
    html! {
        p.quiet {
            "The directory goes to "
            a href=(folders::address(here, run.folder_id.as_deref())) { @if run.folder_id.is_some() { "this folder" } @else { "the root" } }
            ". Files that changed in it " (changed) ". What it lacks "
            @if run.prune { "goes to trash, when an earlier run wrote it." } @else { "stays." }
        }
    }
}

fn rollback_told(run: &SyncRun) -> Markup {
    let done = &run.counters;
    html! {
        ul {
            li { (words::count(done.created, "file that it created goes", "files that it created go")) " to trash." }
            li { (words::count(done.updated, "file that it updated gets", "files that it updated get")) " back what was in it before." }
            @if done.pruned > 0 {
                li { (words::count(done.pruned, "file that it moved to trash comes", "files that it moved to trash come")) " back." }
            }
        }
        p { "What was changed since, by a person or a later run, stays as it is." }
    }
}

fn deletion(visitor: &Visitor, path: &str, run: &SyncRun, summary: &RunSummary<'_>) -> Markup {
    if summary.is_busy() || !visitor.may(Permission::Write) {
        return html! {};
    }
    let told = html! {
        p { "The run and what it says of the directory are removed. What it wrote stays." }
        @if is_revertible(run) && run.rollback_until.is_some() {
            p { strong { "It can no longer be rolled back then." } }
        }
    };
    html! {
        (part::opens("delete", "Delete", ""))
        (part::dialog("delete", "Delete this run?", &told, &format!("{path}/delete"), "Delete", &html! {}))
    }
}

fn totals(run: &SyncRun) -> Markup {
    let done = &run.counters;
    let figures: [(u64, &str); 5] = if is_planned(run) {
        [
            (run.would_create, "would be created"),
            (run.would_update, "would be updated"),
            (run.would_skip, "stay as they are"),
            (run.would_conflict, "in conflict"),
            (
                run.would_prune.len() as u64,
                if run.prune { "would go to trash" } else { "are not in the directory" },
            ),
        ]
    } else {
        [
            (done.created, "created"),
            (done.updated, "updated"),
            (done.skipped, "left as they were"),
            (done.conflicts, "in conflict"),
            (done.pruned, "moved to trash"),
        ]
    };
    html! {
        ul.figures.deeds {
            @for (figure, label) in figures { li { strong { (words::grouped(figure)) } (label) } }
        }
    }
}

const fn word(action: SyncAction, is_planned: bool) -> &'static str {
    match (action, is_planned) {
        (SyncAction::Created, true) => "Would create",
        (SyncAction::Created, false) => "Created",
        (SyncAction::Updated, true) => "Would update",
        (SyncAction::Updated, false) => "Updated",
        (SyncAction::Skipped, _) => "Left as it was",
        (SyncAction::Conflict, _) => "In conflict",
        (SyncAction::Pruned, _) => "Moved to trash",
        (SyncAction::Failed, _) => "Failed",
    }
}

fn tabs(path: &str, run: &SyncRun, shown: List) -> Vec<Tab> {
    let is_planned = is_planned(run);
    let count = |action: SyncAction| {
        let planned = run.changes.iter().filter(|change| change.action == action).count();
        let done = run.results.iter().filter(|result| result.action == action).count();
        (planned + done) as u64
    };
    let tab = |list: List, label: &str, count: u64| {
        let query = if list.name().is_empty() { String::new() } else { format!("?show={}", list.name()) };
        Tab { address: format!("{path}{query}"), label: label.to_owned(), count, is_shown: shown == list }
    };
    let all = (run.changes.len() + run.results.len()) as u64;
    let mut tabs = vec![tab(List::Documents(None), "Everything", all)];
    for action in SyncAction::ALL {
        // A plan shows these lists even if empty: that there are no conflicts is worth knowing.
        let is_of_plans = matches!(action, SyncAction::Created | SyncAction::Updated | SyncAction::Conflict);
        let is_shown = shown == List::Documents(Some(action));
        if count(action) > 0 || (is_planned && is_of_plans) || is_shown {
            tabs.push(tab(List::Documents(Some(action)), word(action, is_planned), count(action)));
        }
    }
    let prunable = if run.prune && is_planned { "Would prune" } else { "Not in the directory" };
    tabs.push(tab(List::Prunable, prunable, run.would_prune.len() as u64));
    tabs.push(tab(List::Warnings, "Warnings", run.warnings.len() as u64));
    tabs
}

fn entries(here: WorkspaceId, run: &SyncRun, list: List) -> Vec<Entry<'_>> {
    match list {
        List::Documents(wanted) => {
            let is_wanted = |action: SyncAction| wanted.is_none_or(|wanted| wanted == action);
            let planned = run.changes.iter().filter(|change| is_wanted(change.action));
            let planned = planned.map(|change| Entry {
                path: &change.path,
                place: None,
                what: word(change.action, true),
                why: "",
            });
            let done = run.results.iter().filter(|result| is_wanted(result.action));
            let done = done.map(|result| Entry {
                path: &result.path,
                place: result.file_id.as_deref().map(places::file),
                what: word(result.action, false),
                why: result.error.as_deref().unwrap_or_default(),
            });
            planned.chain(done).collect()
        }
        List::Prunable => {
            let place = |kind: &str, id: &str| match kind {
                "folder" => folders::address(here, Some(id)),
                _ => places::file(id),
            };
            let entry = run.would_prune.iter().map(|item| Entry {
                path: &item.path,
                place: Some(place(item.kind, &item.id)),
                what: if item.kind == "folder" { "Folder" } else { "File" },
                why: "",
            });
            entry.collect()
        }
        List::Warnings => {
            let entry = run.warnings.iter().map(|warning| Entry {
                path: &warning.path,
                place: None,
                what: "",
                why: &warning.message,
            });
            entry.collect()
        }
    }
}

fn table(run: &SyncRun, list: List, shown: &[&Entry<'_>]) -> Markup {
    if shown.is_empty() {
        let busy = matches!(run.status, RunStatus::Queued | RunStatus::Running);
        return html! {
            p.quiet { @if busy { "The list is there when the run is over." } @else { "Nothing is in this list." } }
        };
    }
    let (caption, columns): (_, &[&str]) = match list {
        List::Documents(_) => ("Documents", &["In the directory", "What", "Why"]),
        List::Prunable => ("What the directory lacks", &["In the directory", "Kind"]),
        List::Warnings => ("Warnings", &["In the directory", "What"]),
    };
    let rows = html! {
        @for entry in shown {
            tr {
                th scope="row" {
                    @match &entry.place {
                        Some(place) => a href=(place) { bdi { (entry.path) } },
                        None => bdi { (entry.path) },
                    }
                }
                @if list != List::Warnings { td { (entry.what) } }
                @if list != List::Prunable { td { @if !entry.why.is_empty() { (words::sentence(entry.why)) } } }
            }
        }
    };
    part::table(caption, columns, &rows)
}
