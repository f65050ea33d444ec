//! The runs of directory syncs, newest first; optionally of one sync only.

use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use maud::{Markup, html};

use super::{address, address_of_name};
use crate::answers::SyncRun;
use crate::operations::{Paging, syncs};
use crate::pages::frame::Page;
use crate::pages::parts::{self as part, Pages};
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, is_stale, marks, runs, words};

const PAGE_SIZE: u32 = 50;

pub(super) async fn show(visitor: Visitor, parts: Parts) -> Answer {
    let here = visitor.here()?.id;
    let path = address(here);
    let name = runs::query_param(&parts, "name");
    let trail = marks(&parts);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let of_name = Some(name.clone()).filter(|name| !name.is_empty());
    let listed = match syncs::list(&visitor.person, of_name, paging).await {
        // A stale page token: start over.
        Err(problem) if is_stale(&problem, &trail) => {
            return Ok(see_other(&path));
        }
        listed => listed?,
    };
    let query: Vec<(&str, &str)> =
        Some(("name", name.as_str())).filter(|_| !name.is_empty()).into_iter().collect();
    let pages = Pages::of(&path, &query, trail, PAGE_SIZE, &listed);
    let body = html! {
        @if !name.is_empty() {
            p { "Runs of " bdi { strong { (name) } } ". " a href=(path) { "Show the runs of all syncs" } }
        }
        @if listed.items.is_empty() && name.is_empty() {
            (part::empty("A sync keeps a directory of yours and this workspace alike.", &html! {
                p { "Preview one from a terminal: " code { "cairn sync DIR --name docs --dry-run" } }
                p { a href="/docs/guides" { "How directories are synced" } }
            }))
        } @else if listed.items.is_empty() {
            p.quiet { "There are no such runs." }
        } @else {
            div #runs data-live="run" { (table(here, &listed.items)) }
            (part::pages(&pages))
        }
    };
    Ok(Page::new("Sync").live().show(&visitor, &body))
}

fn table(here: WorkspaceId, runs: &[SyncRun]) -> Markup {
    let rows = html! {
        @for run in runs {
            tr {
                th scope="row" { a href={ (address(here)) "/" (run.id) } { bdi { (run.name) } } }
                td { (runs::badge(run.status)) }
                td { (done(run)) }
                td { (runs::by(run.by.as_ref())) }
                td { (part::time(&run.created_at)) }
                td { a href=(address_of_name(here, &run.name)) { "All runs" span.sr { " of " bdi { (run.name) } } } }
            }
        }
    };
    part::table("Runs", &["Sync", "State", "What", "By", "When", ""], &rows)
}

/// The non-zero counts of a run, done or planned.
fn done(run: &SyncRun) -> String {
    let done = &run.counters;
    let figures = if run.started_at.is_some() {
        [
            (done.created, "created"),
            (done.updated, "updated"),
            (done.conflicts, "in conflict"),
            (done.pruned, "pruned"),
        ]
    } else {
        [
            (run.would_create, "to create"),
            (run.would_update, "to update"),
            (run.would_conflict, "in conflict"),
            (0, ""),
        ]
    };
    let told: Vec<String> = figures
        .into_iter()
        .filter(|(figure, _)| *figure > 0)
        .map(|(figure, what)| format!("{} {what}", words::grouped(figure)))
        .collect();
    if told.is_empty() { "nothing to do".to_owned() } else { told.join(", ") }
}
