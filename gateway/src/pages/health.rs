//! `/w/{id}/health`: the services, the index lag, ingested documents, pending runs, and storage.

use cairn_chassis::status::Problem;
use cairn_proto::domain::RunStatus;
use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};

use super::frame::Page;
use super::parts::{self, Tone};
use super::visitor::Visitor;
use super::{Answer, MEMBER, overview, places, runs, sources, words};
use crate::answers::{
    ConnectedSource, DocumentCounts, DocumentsHealth, ImportRun, IndexHealth, IndexState, ServiceHealth,
    StorageHealth, StorageKind, SyncRun,
};
use crate::operations::{Paging, health, imports, sources as connected, syncs};
use crate::routes::Routes;

/// The purpose of each service.
const SERVICE_PURPOSES: [(&str, &str); 5] = [
    ("auth", "Signing in, tokens, members. Nothing else works without it."),
    ("content", "Files, databases, memories, trash."),
    ("ingest", "Connected sources and documents from outside."),
    ("retrieval", "Search, scripts, related files, analytics."),
    ("sync", "Directory syncs and imports."),
];
/// Only the newest runs of syncs and imports are checked: older ones have ended.
const RUNS: u32 = 50;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/health", show)
}

/// What is unavailable while that service is down.
pub(super) fn purpose(service: &str) -> &'static str {
    SERVICE_PURPOSES.iter().find(|(of, _)| *of == service).map(|(_, touches)| *touches).unwrap_or_default()
}

async fn show(visitor: Visitor) -> Answer {
    let (here, person) = (visitor.here()?.id, &visitor.person);
    let newest = || Paging { limit: Some(RUNS), cursor: None };
    let (held, listed, syncs, imports) = tokio::join!(
        health::of_workspace(person, here),
        connected::list_connected(person),
        syncs::list(person, None, newest()),
        imports::list(person, newest()),
    );
    let held = held?;
    let again = html! { a.button href=(visitor.address) { "Try again" } };
    let body = html! {
        h2 { "Services" }
        (services(&held.services))
        section #indexing data-live="index change changes" { (index(held.index.as_ref())) }
        section #outside data-live="index run" { (outside(here, held.documents.as_ref())) }
        section #waiting data-live="run" {
            h2 { "Runs" }
            (of_sources(here, &listed))
            (under_way(here, syncs.map(|page| page.items), imports.map(|page| page.items)))
        }
        section #storage data-live="change changes run" { (storage(&held.storage)) }
    };
    Ok(Page::new("Health").actions(again).live().show(&visitor, &body))
}

/// The placeholder for an unavailable service's report.
fn unavailable(what: &str) -> Markup {
    html! { p.notice { (what) " cannot be told now." } }
}

fn services(services: &[ServiceHealth]) -> Markup {
    let rows = html! {
        @for service in services {
            tr {
                th scope="row" { (service.name) }
                td { @if service.answers { (parts::badge(Tone::Ok, "Answers")) } @else { (parts::badge(Tone::Wrong, "Does not answer")) } }
                td { (purpose(&service.name)) }
            }
        }
    };
    parts::table("Services", &["Service", "State", "What it is for"], &rows)
}

fn index(index: Option<&IndexHealth>) -> Markup {
    let Some(index) = index else { return overview::search(IndexState::Unavailable, 0, 0) };
    let behind: u64 = index.feeds.iter().map(|feed| feed.behind).sum();
    let state = if behind == 0 { IndexState::Current } else { IndexState::Behind };
    let rows = html! {
        @for feed in &index.feeds {
            tr {
                th scope="row" { (feed_word(&feed.feed)) }
                td.number { (words::grouped(feed.position)) }
                td.number { (words::grouped(feed.behind)) }
            }
        }
    };
    html! {
        (overview::search(state, behind, index.changes_without_meaning))
        (parts::table("Feeds that the index follows", &["Changes of", "Applied up to", "Behind"], &rows))
        dl.facts {
            @for (label, number) in [("Documents", index.documents), ("Passages", index.chunks)] {
                @if let Some(number) = number { dt { (label) } dd { (words::grouped(number)) } }
            }
            dt { "Embedder" } dd { code { (index.embedder) } }
            @if let Some(next) = &index.next_embedder { dt { "Being built with" } dd { code { (next) } } }
            @if let Some(percent) = index.next_embedder_percent { dt { "Built so far" } dd { (percent) " %" } }
        }
    }
}

/// What a feed carries.
fn feed_word(feed: &str) -> &str {
    match feed {
        "content" => "Files, databases, memories",
        "ingest" => "Documents from outside",
        other => other,
    }
}

fn outside(here: WorkspaceId, documents: Option<&DocumentsHealth>) -> Markup {
    let Some(documents) = documents else {
        return html! { h2 { "Documents from outside" } (unavailable("How they stand")) };
    };
    let row = |label: &str, source: &str, counts: DocumentCounts| {
        let failed = format!("/w/{here}/documents?source={source}&status=failed");
        html! {
            tr {
                th scope="row" { (label) }
                td.number { (words::grouped(counts.pending)) }
                td.number { (words::grouped(counts.indexing)) }
                td.number { @if counts.failed == 0 { "0" } @else { a href=(failed) { (words::grouped(counts.failed)) } } }
                td.number { (words::grouped(counts.indexed)) }
                td.number { (words::grouped(counts.catalog)) }
            }
        }
    };
    let rows = html! {
        (row("Sent by programs", "ingested", documents.ingested))
        (row("Of sources", "all", documents.of_sources))
    };
    let columns = ["", "Waiting to be read", "Not searchable yet", "Failed", "Searchable", "Catalog only"];
    html! {
        h2 { "Documents from outside" }
        (parts::table("Documents from outside by how they stand", &columns, &rows))
    }
}

/// Sources with a run in progress, and failing ones.
fn of_sources(here: WorkspaceId, listed: &Result<Vec<ConnectedSource>, Problem>) -> Markup {
    let Ok(listed) = listed else { return unavailable("How the sources stand") };
    let stands_out = |one: &&ConnectedSource| {
        matches!(
            one.source.status.as_str(),
            "queued" | "syncing" | "waiting" | "failed" | "needs_credentials"
        )
    };
    let rows: Vec<&ConnectedSource> = listed.iter().filter(stands_out).collect();
    html! {
        @if rows.is_empty() {
            p.quiet { "No source is being read, and none fails." }
        } @else {
            (parts::table("Sources that are read or fail", &["Source", "State", "Why"], &html! {
                @for one in rows {
                    tr {
                        th scope="row" { a href=(places::source(here, &one.source.id)) { bdi { (one.source.name) } } }
                        td { (sources::status_badge(&one.source.status)) }
                        td {
                            @if let Some(until) = &one.waiting_until { "until " (parts::time(until)) }
                            @if let Some(error) = &one.source.error { bdi { (words::sentence(error)) } }
                        }
                    }
                }
            }))
        }
    }
}

/// Runs of syncs and imports in progress.
fn under_way(
    here: WorkspaceId,
    syncs: Result<Vec<SyncRun>, Problem>,
    imports: Result<Vec<ImportRun>, Problem>,
) -> Markup {
    let (Ok(syncs), Ok(imports)) = (syncs, imports) else {
        return unavailable("How syncs and imports stand");
    };
    let is_open = |status: RunStatus| matches!(status, RunStatus::Queued | RunStatus::Running);
    let of_syncs = syncs.into_iter().map(|run| (format!("/w/{here}/sync/{}", run.id), run.name, run.status));
    let of_imports =
        imports.into_iter().map(|run| (format!("/w/{here}/import/{}", run.id), run.file_name, run.status));
    let open: Vec<(String, String, RunStatus)> =
        of_syncs.chain(of_imports).filter(|(_, _, status)| is_open(*status)).collect();
    html! {
        @if open.is_empty() {
            p.quiet { "No sync and no import is under way." }
        } @else {
            (parts::table("Syncs and imports under way", &["Run", "State"], &html! {
                @for (address, name, status) in &open {
                    tr {
                        th scope="row" { a href=(address) { bdi { @if name.is_empty() { "An archive" } @else { (name) } } } }
                        td { (runs::badge(*status)) }
                    }
                }
            }))
        }
    }
}

fn storage(storage: &StorageHealth) -> Markup {
    html! {
        h2 { "Storage" }
        @match storage.bytes {
            Some(bytes) => { p { (parts::meter("Storage of the plan", bytes.used, bytes.limit, words::bytes)) } }
            None => { (unavailable("How much is kept in all")) }
        }
        @if !storage.kinds.is_empty() {
            dl.facts {
                @for stored in &storage.kinds { dt { (kind_word(stored.kind)) } dd { (words::bytes(stored.bytes)) } }
            }
        }
    }
}

const fn kind_word(kind: StorageKind) -> &'static str {
    match kind {
        StorageKind::Files => "Files, with versions and trash",
        StorageKind::Assets => "Assets",
        StorageKind::Records => "Records, with versions",
        StorageKind::Outside => "Documents from outside",
    }
}
