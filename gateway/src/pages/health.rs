//! `/w/{id}/health`: which parts of the server answer, and how far the index is.

use axum::extract::State;
use maud::{Markup, html};
use std::sync::Arc;

use super::frame::Page;
use super::parts::{self, Tone};
use super::visitor::Visitor;
use super::{Answer, MEMBER, overview, words};
use crate::answers::Indexing;
use crate::health::standing;
use crate::operations;
use crate::routes::Routes;
use crate::upstreams::Upstreams;

/// What each service is for.
const TOUCHES: [(&str, &str); 5] = [
    ("auth", "Signing in, tokens, members. Nothing else works without it."),
    ("content", "Files, databases, memories, trash."),
    ("ingest", "Connected sources and documents from outside."),
    ("retrieval", "Search, scripts, related files, analytics."),
    ("sync", "Directory syncs and imports."),
];

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/health", show)
}

/// What is missing while that service is away.
pub(super) fn touches(service: &str) -> &'static str {
    TOUCHES.iter().find(|(of, _)| *of == service).map(|(_, touches)| *touches).unwrap_or_default()
}

async fn show(State(upstreams): State<Arc<Upstreams>>, visitor: Visitor) -> Answer {
    let context = visitor.context()?;
    let (services, held) = tokio::join!(standing(&upstreams), operations::overview::get(&context));
    let again = html! { a.button href=(visitor.address) { "Try again" } };
    let body = html! {
        h2 { "Services" }
        (table(&services))
        @match &held {
            Ok(held) => (index(&held.indexing)),
            Err(_) => p.notice { "How far the index is cannot be told now." },
        }
    };
    Ok(Page::new("Health").actions(again).show(&visitor, &body))
}

fn table(services: &[(&'static str, bool)]) -> Markup {
    let rows = html! {
        @for (name, answers) in services {
            tr {
                th scope="row" { (name) }
                td { @if *answers { (parts::badge(Tone::Ok, "Answers")) } @else { (parts::badge(Tone::Wrong, "Does not answer")) } }
                td { (touches(name)) }
            }
        }
    };
    parts::table("Services", &["Service", "State", "What it is for"], &rows)
}

fn index(indexing: &Indexing) -> Markup {
    let counted = [
        ("Changes not searchable yet", indexing.changes_behind),
        ("Changes found by words and not yet by meaning", indexing.changes_without_meaning),
        ("Documents", indexing.documents),
        ("Passages", indexing.chunks),
    ];
    html! {
        (overview::index(indexing))
        dl.facts {
            @for (label, number) in counted {
                @if let Some(number) = number { dt { (label) } dd { (words::grouped(number)) } }
            }
            @if let Some(embedder) = &indexing.embedder { dt { "Embedder" } dd { code { (embedder) } } }
            @if let Some(next) = &indexing.next_embedder { dt { "Being built with" } dd { code { (next) } } }
        }
    }
}
