//! An import: its preview, its progress, and its outcome.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::ReportPart;
use cairn_proto::ids::{SyncRunId, WorkspaceId};
use cairn_proto::sync::v1::{ReportCounts, ReportEntry};
use http::request::Parts;
use maud::{Markup, html};

use super::{address, words as said};
use crate::answers::{ImportReport, ImportRun};
use crate::extract::PathIds;
use crate::operations::imports::{self, AskedReport};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Pages};
use crate::pages::runs::{self, RunSummary, Tab};
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, folders, marks, places, words};

const PAGE_SIZE: u32 = 50;

/// The selected list of the report.
#[derive(Debug, Default)]
struct PageQuery {
    part: ReportPart,
    /// The action filter of the items.
    action: String,
    trail: Vec<String>,
}

impl PageQuery {
    /// The list in the URL; unknown ones select the default.
    fn of(parts: &Parts) -> Self {
        let part = runs::query_param(parts, "part").parse().unwrap_or_default();
        Self { part, action: runs::query_param(parts, "action"), trail: marks(parts) }
    }

    fn asked(&self) -> AskedReport {
        AskedReport {
            part: Some(self.part),
            action: Some(self.action.clone()).filter(|action| !action.is_empty()),
            limit: Some(PAGE_SIZE),
            cursor: self.trail.last().cloned(),
        }
    }

    /// The query of the list, without the page token.
    fn query(&self) -> Vec<(&str, &str)> {
        let part = Some(("part", self.part.as_str())).filter(|_| self.part != ReportPart::Items);
        let action = Some(("action", self.action.as_str())).filter(|(_, action)| !action.is_empty());
        part.into_iter().chain(action).collect()
    }
}

type Path = PathIds<WorkspaceId, SyncRunId>;

pub(super) async fn show(visitor: Visitor, PathIds(_, id): Path, parts: Parts) -> Answer {
    page(&visitor, id, PageQuery::of(&parts), None).await
}

pub(super) async fn start(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    let done = imports::start(&visitor.person, id).await;
    answered(&visitor, id, done, &Notice::Started).await
}

pub(super) async fn cancel(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    let done = imports::cancel(&visitor.person, id).await;
    answered(&visitor, id, done, &Notice::Cancelled).await
}

pub(super) async fn roll_back(visitor: Visitor, PathIds(_, id): Path) -> Answer {
    let done = imports::roll_back(&visitor.person, id).await;
    answered(&visitor, id, done, &Notice::RollingBack).await
}

async fn answered(
    visitor: &Visitor,
    id: SyncRunId,
    done: Result<ImportRun, Problem>,
    notice: &Notice,
) -> Answer {
    match done {
        Ok(run) => Ok(visitor.done(&format!("{}/{}", address(visitor.here()?.id), run.id), notice)),
        Err(problem) if runs::is_told_there(&problem) => {
            page(visitor, id, PageQuery::default(), Some(&problem)).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn page(visitor: &Visitor, id: SyncRunId, page_query: PageQuery, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?.id;
    let path = format!("{}/{id}", address(here));
    let report = match imports::entries(&visitor.person, id, page_query.asked()).await {
        // An unknown list, or a stale page token.
        Err(problem) if problem.reason == Reason::ValidationError => return Ok(see_other(&path)),
        report => report?,
    };
    let run = &report.run;
    let summary = summary_of(&path, &report);
    // The URL of a POST form cannot be polled.
    let poll = if problem.is_some() { path.as_str() } else { visitor.address.as_str() };
    let pages = Pages {
        path: &path,
        query: &page_query.query(),
        trail: page_query.trail.clone(),
        next: report.next_cursor.clone(),
        total: report.total,
        page_size: u64::from(PAGE_SIZE),
        shown: report.entries.len(),
    };
    let body = html! {
        div #run data-live="run" data-poll=[summary.is_busy().then_some(poll)] {
            (runs::problem(problem))
            section aria-label="State" { (summary.markup()) }
            div.buttons.deeds {
                (summary.forms(visitor))
                (summary.rollback(visitor, &rollback_told(&report)))
                a.button href={ "/api/import/" (run.id) "/report" } { "Download report" }
                @if let Some(folder) = &report.root_folder_id {
                    a.button href=(folders::address(here, Some(folder))) { "Open the folder" }
                }
            }
            h2 { "What is in the archive" }
            (counts(&report.counts))
            (totals(&report))
            (losses(&report))
            h2 { @if is_planned(&report) { "What will become of it" } @else { "What became of it" } }
            (runs::tabs("Lists of the report", &tabs(&path, &report, &page_query)))
            (entries(here, &report, page_query.part))
            (part::pages(&pages))
        }
    };
    let title = if run.file_name.is_empty() { "Import" } else { run.file_name.as_str() };
    let page = Page::new(title)
        .live()
        .heading(html! { bdi { (title) } })
        .crumbs(vec![("Import".to_owned(), address(here))]);
    Ok(runs::with_problem(page, problem).show(visitor, &body))
}

/// Whether the report is a plan.
fn is_planned(report: &ImportReport) -> bool {
    report.phase == "dry_run"
}

fn summary_of<'a>(path: &'a str, report: &'a ImportReport) -> RunSummary<'a> {
    let run = &report.run;
    RunSummary {
        address: path,
        status: run.status,
        total: run.total,
        processed: run.processed,
        warnings: report.warnings.iter().map(|tally| tally.count).sum(),
        place: run.place,
        error: run.error.as_deref(),
        by: run.by.as_ref(),
        created_at: &run.created_at,
        started_at: run.started_at.as_deref(),
        finished_at: run.finished_at.as_deref(),
        rollback_until: run.rollback_until.as_deref(),
    }
}

fn rollback_told(report: &ImportReport) -> Markup {
    let done = &report.run.counters;
    html! {
        p {
            "What it created and nobody touched goes to trash ("
            (words::count(done.created, "object", "objects"))
            "; attachments are deleted), and what it updated gets back what it held before ("
            (words::count(done.updated, "object", "objects")) ")."
        }
        p { "What was edited since stays as it is, and the report lists it." }
    }
}

/// The contents of the archive.
fn counts(counts: &ReportCounts) -> Markup {
    html! {
        dl.facts {
            dt { "Pages and texts" } dd { (words::grouped(counts.files)) }
            dt { "Folders" } dd { (words::grouped(counts.folders)) }
            dt { "Attachments" } dd { (words::grouped(counts.assets)) }
            @if counts.databases > 0 {
                dt { "Databases" }
                dd {
                    (words::grouped(counts.databases)) ", with "
                    (words::count(counts.properties, "field", "fields")) " and "
                    (words::count(counts.records, "record", "records"))
                }
            }
            dt { "Links" }
            dd {
                (words::grouped(counts.links_resolved)) " of " (words::grouped(counts.links))
                " lead to something in the archive"
                @if counts.links_unresolved > 0 { "; the others stay as they were written" }
            }
            @if counts.ignored > 0 { dt { "Not content" } dd { (words::count(counts.ignored, "entry", "entries")) } }
        }
    }
}

/// The planned or actual totals.
fn totals(report: &ImportReport) -> Markup {
    let run = &report.run;
    let is_planned = is_planned(report);
    let figures = if is_planned {
        [run.would_create, run.would_update, run.would_skip, run.would_conflict]
    } else {
        let done = &run.counters;
        [done.created, done.updated, done.skipped, done.conflicts]
    };
    let labels = if is_planned {
        ["will be created", "will be updated", "stay as they are", "in conflict"]
    } else {
        ["created", "updated", "left as they were", "in conflict"]
    };
    html! {
        ul.figures.deeds {
            @for (figure, label) in figures.into_iter().zip(labels) {
                li { strong { (words::grouped(figure)) } (label) }
            }
        }
        @if run.would_conflict > 0 && is_planned {
            p { "What is in conflict was edited here since the last import: it is not overwritten." }
        }
    }
}

/// What is imported with losses or not at all: each reason once, with its count.
fn losses(report: &ImportReport) -> Markup {
    html! {
        @if !report.warnings.is_empty() {
            h2 { "What is lost or changed" }
            ul {
                @for tally in &report.warnings {
                    li { (words::grouped(tally.count)) " × " (words::sentence(tally.message.as_deref().unwrap_or(&tally.of))) }
                }
            }
        }
    }
}

fn tabs(path: &str, report: &ImportReport, page_query: &PageQuery) -> Vec<Tab> {
    let sum = |tallies: &[cairn_proto::sync::v1::ReportTally]| tallies.iter().map(|tally| tally.count).sum();
    let is_items = page_query.part == ReportPart::Items;
    let mut tabs = vec![Tab {
        address: path.to_owned(),
        label: "Everything".to_owned(),
        count: sum(&report.actions),
        is_shown: is_items && page_query.action.is_empty(),
    }];
    let of_action = report.actions.iter().filter(|_| report.actions.len() > 1);
    tabs.extend(of_action.map(|tally| Tab {
        address: format!("{path}?action={}", tally.of),
        label: said::action(&tally.of, is_planned(report)).to_owned(),
        count: tally.count,
        is_shown: is_items && page_query.action == tally.of,
    }));
    let lists = [
        (ReportPart::Warnings, "Warnings", sum(&report.warnings)),
        (ReportPart::Links, "Links", report.links),
        (ReportPart::Ignored, "Not content", report.counts.ignored),
    ];
    tabs.extend(lists.into_iter().map(|(part, label, count)| Tab {
        address: format!("{path}?part={}", part.as_str()),
        label: label.to_owned(),
        count,
        is_shown: page_query.part == part,
    }));
    tabs
}

fn entries(here: WorkspaceId, report: &ImportReport, which: ReportPart) -> Markup {
    if report.entries.is_empty() {
        return html! { p.quiet { "Nothing is in this list." } };
    }
    let (caption, columns): (_, &[&str]) = match which {
        ReportPart::Items => ("Objects of the archive", &["In the archive", "Kind", "What", "Why"]),
        ReportPart::Warnings => ("Warnings", &["In the archive", "What"]),
        ReportPart::Links => ("Links", &["In the archive", "Line", "Leads to", "What"]),
        ReportPart::Ignored => ("Not content", &["In the archive", "Why"]),
    };
    let rows = html! { @for entry in &report.entries { (row(here, report, which, entry)) } };
    part::table(caption, columns, &rows)
}

fn row(here: WorkspaceId, report: &ImportReport, which: ReportPart, entry: &ReportEntry) -> Markup {
    let message = entry.message.as_deref();
    let code = said::reason(entry.code.as_deref().unwrap_or_default());
    html! {
        tr {
            th scope="row" {
                @match place(here, entry) {
                    Some(address) => a href=(address) { bdi { (entry.path) } },
                    None => bdi { (entry.path) },
                }
            }
            @match which {
                ReportPart::Items => {
                    td { (said::kind(entry.kind.as_deref().unwrap_or_default())) }
                    td { (said::action(entry.action.as_deref().unwrap_or_default(), is_planned(report))) }
                    td { @if let Some(message) = message { (words::sentence(message)) } }
                }
                ReportPart::Warnings => td { (words::sentence(message.unwrap_or(code))) },
                ReportPart::Links => {
                    td.number { (entry.line.unwrap_or_default()) }
                    td { bdi { (entry.target.as_deref().unwrap_or_default()) } }
                    td { (code) }
                }
                ReportPart::Ignored => td { (code) },
            }
        }
    }
}

/// The page of the object, if it exists.
fn place(here: WorkspaceId, entry: &ReportEntry) -> Option<String> {
    let id = entry.id.as_deref()?;
    if entry.action.as_deref() == Some("removed") {
        return None;
    }
    match entry.kind.as_deref()? {
        "file" => Some(places::file(id)),
        "folder" => Some(folders::address(here, Some(id))),
        "database" => Some(places::database(id)),
        "asset" => Some(format!("/api/assets/{id}/content")),
        _ => None,
    }
}
