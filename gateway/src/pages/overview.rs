//! `/w/{id}`: the overview of a workspace, with setup steps until an agent has connected. It is updated live.

use std::sync::Arc;

use axum::extract::State;
use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};

use super::activity::row;
use super::connect;
use super::frame::Page;
use super::live_calls::{self, LiveListQuery};
use super::parts::{self, Tone};
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER, places, words};
use crate::answers::{ActivityEntry, IndexState, Indexing, WorkspaceOverview, time};
use crate::error::Error;
use crate::events::Events;
use crate::extract::Query;
use crate::operations::activity::{self, ActivityFilter};
use crate::operations::{Paging, overview};
use crate::routes::Routes;

/// Recent changes shown.
const LATEST: u32 = 10;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}", show)
}

async fn show(
    State(events): State<Arc<Events>>,
    visitor: Visitor,
    Query(shown): Query<LiveListQuery>,
) -> Answer {
    let here = visitor.here()?;
    let context = visitor.context()?;
    let latest = Paging { limit: Some(LATEST), cursor: None };
    let (held, clients, done) = tokio::try_join!(
        async { overview::counts(&context).await.map_err(Error::from) },
        connect::clients(&visitor),
        async {
            activity::list(&visitor.person, ActivityFilter::default(), latest).await.map_err(Error::from)
        },
    )?;
    let base = format!("/w/{}", here.id);
    let body = html! {
        section #connected data-live="token call change" {
            @if clients.is_empty() { (steps(&base, held.files.total > 0)) }
        }
        section #held data-live="change changes" { (counts(&base, &held)) }
        (failing(here.id, &held))
        section #indexing data-live="index" { (index(&held.indexing)) }
        (live_calls::section(here.id, &events.recent(here.id), &shown))
        @if visitor.manages() && held.indexing.state != IndexState::Unavailable { (answers(&base)) }
        (parts::question_log(visitor.question_log_days()))
        section #changed data-live="change changes" { (changes(here, &done.entries)) }
    };
    Ok(Page::new("Overview").live().show(&visitor, &body))
}

/// The setup steps of a new workspace, until an agent has connected.
fn steps(base: &str, has_files: bool) -> Markup {
    html! {
        section.card aria-labelledby="steps" {
            h2 #steps { "Three steps to begin with" }
            ol.steps {
                li { a href={ (base) "/connect" } { "Connect an agent" } span.hint { "Choose your client and copy one line. No agent has come yet." } }
                li {
                    a href={ (base) "/files" } { "Put in a file" } @if has_files { " " (parts::badge(Tone::Ok, "Done")) }
                    span.hint { "What agents are to know: notes, guides, tables." }
                }
                li { a href={ (base) "/search" } { "Ask as an agent would" } span.hint { "See what it finds, and why." } }
            }
            p { a href="/docs/guides" { "What agents are told to do here" } }
        }
    }
}

fn counts(base: &str, held: &WorkspaceOverview) -> Markup {
    let figures = [
        (held.files.total, "file", "files", "/files"),
        (held.folders.total, "folder", "folders", "/files"),
        (held.databases.total, "database", "databases", "/databases"),
        (held.memories.total, "memory", "memories", "/memories"),
        (held.connected_sources.len() as u64, "source", "sources", "/sources"),
    ];
    html! {
        h2 { "What is here" }
        ul.figures {
            @for (number, one, many, below) in figures {
                li { a href={ (base) (below) } { strong { (words::grouped(number)) } (if number == 1 { one } else { many }) } }
            }
        }
    }
}

/// Sources that need attention before they bring anything new.
fn failing(workspace: WorkspaceId, held: &WorkspaceOverview) -> Markup {
    let words = [("failed", "Failed"), ("needs_credentials", "Needs credentials")];
    let word = |status: &str| words.into_iter().find(|(known, _)| *known == status).map(|(_, word)| word);
    let failing: Vec<_> =
        held.connected_sources.iter().filter_map(|source| Some((source, word(&source.status)?))).collect();
    html! {
        @if !failing.is_empty() {
            section.card aria-labelledby="failing" {
                h2 #failing { "Sources that do not work" }
                ul {
                    @for (source, word) in failing {
                        li { a href=(places::source(workspace, &source.id)) { bdi { (source.name) } } " " (parts::badge(Tone::Wrong, word)) }
                    }
                }
            }
        }
    }
}

/// The analytics page tells what agents found nothing for; that takes longer.
fn answers(base: &str) -> Markup {
    let page = format!("{base}/analytics?days=7");
    html! { p #answers data-load=(page) { a href=(page) { "How questions were answered in the last 7 days" } } }
}

/// The state of the index, in words.
fn index(indexing: &Indexing) -> Markup {
    let behind = indexing.changes_behind.unwrap_or_default();
    search(indexing.state, behind, indexing.changes_without_meaning.unwrap_or_default())
}

/// The same from these numbers of pending changes.
pub(super) fn search(state: IndexState, behind: u64, without_meaning: u64) -> Markup {
    let (tone, word, sentence) = match state {
        IndexState::Current => (Tone::Ok, "Current", "Searches find every change.".to_owned()),
        IndexState::Behind => {
            let behind = words::count(behind, "change is", "changes are");
            (Tone::Warn, "Behind", format!("{behind} not searchable yet."))
        }
        IndexState::Unavailable => (
            Tone::Wrong,
            "Away",
            "The search service does not answer. Files can be read and written.".to_owned(),
        ),
    };
    html! {
        h2 { "Search" }
        p #index data-poll=[(state == IndexState::Behind).then_some("")] {
            (parts::badge(tone, word)) " " (sentence)
            @if without_meaning > 0 {
                " " (words::count(without_meaning, "change is", "changes are")) " found by words and not yet by meaning."
            }
        }
    }
}

/// Recent activity, including deletions.
fn changes(here: &Here, entries: &[ActivityEntry]) -> Markup {
    html! {
        h2 { "Changed last" }
        @if entries.is_empty() {
            (parts::empty("Nothing was written here yet.", &html! { a href="/docs/guides" { "What agents are told to do here" } }))
        } @else {
            @let rows = html! {
                @for entry in entries {
                    tr {
                        th scope="row" { (row::titled(here.id, entry)) }
                        td { (row::did(entry)) }
                        td { (row::who(entry)) }
                        td { (parts::time(&time(entry.happened_at.as_ref()))) }
                    }
                }
            };
            (parts::table("Changed last", &["What", "Did", "By", "When"], &rows))
            p { a href={ "/w/" (here.id) "/activity" } { "All activity" } }
        }
    }
}
