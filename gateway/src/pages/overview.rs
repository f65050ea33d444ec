//! `/w/{id}`: a workspace at a glance, and until an agent has come, how to connect one.

use cairn_proto::domain::DocumentKind;
use maud::{Markup, html};

use super::connect;
use super::frame::Page;
use super::parts::{self, Tone};
use super::visitor::Visitor;
use super::{Answer, MEMBER, places, words};
use crate::answers::{IndexState, Indexing, RecentChange, WorkspaceOverview};
use crate::operations::overview;
use crate::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}", show)
}

async fn show(visitor: Visitor) -> Answer {
    let here = visitor.here()?;
    let context = visitor.context()?;
    let (held, clients) = tokio::try_join!(
        async { overview::get(&context).await.map_err(crate::error::Error::from) },
        connect::clients(&visitor),
    )?;
    let body = html! {
        @if clients.is_empty() { (connect::card(here)) }
        (counts(&held))
        (index(&held.indexing))
        (changes(&held.recent_changes))
    };
    Ok(Page::new("Overview").show(&visitor, &body))
}

fn counts(held: &WorkspaceOverview) -> Markup {
    let figures = [
        (held.files.total, "file", "files"),
        (held.folders.total, "folder", "folders"),
        (held.databases.total, "database", "databases"),
        (held.memories.total, "memory", "memories"),
        (held.connected_sources.len() as u64, "source", "sources"),
    ];
    html! {
        h2 { "What is here" }
        ul.figures {
            @for (number, one, many) in figures {
                li { strong { (words::grouped(number)) } (if number == 1 { one } else { many }) }
            }
        }
    }
}

/// How far the index is, in words.
pub(super) fn index(indexing: &Indexing) -> Markup {
    let (tone, word, sentence) = match indexing.state {
        IndexState::Current => (Tone::Ok, "Current", "Searches find every change.".to_owned()),
        IndexState::Behind => {
            let behind =
                words::count(indexing.changes_behind.unwrap_or_default(), "change is", "changes are");
            (Tone::Warn, "Behind", format!("{behind} not searchable yet."))
        }
        IndexState::Unavailable => (
            Tone::Wrong,
            "Away",
            "The search service does not answer. Files can be read and written.".to_owned(),
        ),
    };
    let without_meaning = indexing.changes_without_meaning.unwrap_or_default();
    html! {
        h2 { "Search" }
        p #index data-poll=[(indexing.state == IndexState::Behind).then_some("")] {
            (parts::badge(tone, word)) " " (sentence)
            @if without_meaning > 0 {
                " " (words::count(without_meaning, "change is", "changes are")) " found by words and not yet by meaning."
            }
        }
    }
}

fn changes(changes: &[RecentChange]) -> Markup {
    html! {
        h2 { "Changed last" }
        @if changes.is_empty() {
            (parts::empty("Nothing was written here yet.", &html! { a href="/docs/guides" { "What agents are told to do here" } }))
        } @else {
            @let rows = html! {
                @for change in changes {
                    tr {
                        th scope="row" { (titled(change.kind, &change.id, &change.title)) }
                        td { bdi { (change.path) } }
                        td {
                            @match &change.changed_by {
                                Some(by) => bdi { (by.name) },
                                None => span.quiet { "not known" },
                            }
                        }
                        td { (parts::time(&change.changed_at)) }
                    }
                }
            };
            (parts::table("Changed last", &["What", "Where", "By", "When"], &rows))
        }
    }
}

fn titled(kind: DocumentKind, id: &str, title: &str) -> Markup {
    html! {
        @match places::of(kind, id) {
            Some(address) => a href=(address) { bdi { (title) } },
            None => bdi { (title) },
        }
    }
}
