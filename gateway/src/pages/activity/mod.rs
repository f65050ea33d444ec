//! `/w/{id}/activity`: the activity log, newest first. Filters are part of the URL.

mod query;
pub(super) mod row;
mod undo;

use cairn_proto::domain::TrashKind;
use http::request::Parts;
use maud::{Markup, html};

use self::query::PageQuery;
use super::frame::Page;
use super::parts::{self, Choice, Field, Pages};
use super::visitor::Visitor;
use super::{Answer, MEMBER, folders, words};
use crate::answers::{ActivityEntry, Author};
use crate::cost::Cost;
use crate::extract::Query;
use crate::operations::{Paging, activity};
use crate::routes::Routes;

const PAGE_SIZE: u32 = 50;

pub(super) fn routes() -> Routes {
    Routes::default()
        .get(MEMBER, "/w/{id}/activity", show)
        .get(MEMBER, "/w/{id}/activity/undo", undo::show)
        .post(MEMBER.costing(Cost::BULK), "/w/{id}/activity/undo", undo::carry_out)
}

async fn show(visitor: Visitor, parts: Parts, Query(page_query): Query<PageQuery>) -> Answer {
    let context = visitor.context()?;
    let path = format!("/w/{}/activity", visitor.here()?.id);
    let trail = super::marks(&parts);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let (actors, tree) = tokio::try_join!(activity::actors(&visitor.person), folders::Tree::of(&context))?;
    let asked = page_query.asked(&tree);
    let listed = match activity::list(&visitor.person, asked, paging).await {
        // A stale page token: start over.
        Err(problem) if super::is_stale(&problem, &trail) => {
            return Ok(super::see_other(&path));
        }
        listed => listed?,
    };
    let query = page_query.query();
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let pages = Pages {
        path: &path,
        query: &query,
        trail,
        next: listed.next,
        total: 0,
        page_size: u64::from(PAGE_SIZE),
        shown: listed.entries.len(),
    };
    let opened = match page_query.opened(&listed.entries) {
        Some(entry) => Some((entry.id.clone(), row::difference(&context, entry).await?)),
        None => None,
    };
    let body = html! {
        (choices(&path, &page_query, &actors, &tree))
        (undo::of_all(&visitor, &path, &page_query, &actors))
        @if listed.entries.is_empty() {
            (nothing(!query.is_empty()))
        } @else {
            (table(&visitor, &listed.entries, &pages, opened.as_ref())?)
        }
        (parts::pages(&pages))
    };
    Ok(Page::new("Activity").show(&visitor, &body))
}

fn nothing(is_narrowed: bool) -> Markup {
    let sentence =
        if is_narrowed { "Nothing like that was done here." } else { "Nothing was done here yet." };
    let more =
        html! { p.quiet { "What people and agents create, change and delete is listed here for 180 days." } };
    parts::empty(sentence, &more)
}

/// The filters, as a GET form.
fn choices(path: &str, page_query: &PageQuery, actors: &[Author], tree: &folders::Tree) -> Markup {
    let anybody = Choice { value: "", label: "Everybody", is_chosen: page_query.who.is_none() };
    let labels: Vec<String> = actors.iter().map(row::named).collect();
    let known = actors.iter().zip(&labels).map(|(actor, label)| Choice {
        value: &actor.id,
        label,
        is_chosen: page_query.who.as_deref() == Some(&actor.id),
    });
    let everything = Choice { value: "", label: "Everything", is_chosen: page_query.kind().is_none() };
    let kinds = TrashKind::ALL.into_iter().map(|kind| Choice {
        value: kind.as_str(),
        label: row::many(kind),
        is_chosen: page_query.kind() == Some(kind),
    });
    html! {
        form.filter method="get" action=(path) {
            (parts::choices("who", "Who", std::iter::once(anybody).chain(known)))
            (parts::choices("kind", "What", std::iter::once(everything).chain(kinds)))
            (tree.choice("folder", page_query.folder.as_deref(), None))
            (Field::date("day", "Day (UTC)").optional().value(page_query.day().unwrap_or_default()).render())
            div.buttons {
                button type="submit" { "Show" }
                @if !page_query.query().is_empty() { a.button href=(path) { "Show everything" } }
            }
        }
    }
}

fn table(
    visitor: &Visitor,
    entries: &[ActivityEntry],
    pages: &Pages<'_>,
    opened: Option<&(String, Markup)>,
) -> Result<Markup, crate::error::Error> {
    let here = visitor.here()?;
    let rows = html! {
        @for run in entries.chunk_by(|one, next| !one.write_id.is_empty() && one.write_id == next.write_id) {
            @if let [first, _, ..] = run { (together(visitor, pages.path, first, run.len())) }
            @for entry in run {
                tr id={ "e-" (entry.id) } {
                    td { (row::who(entry)) }
                    td { (row::did(entry)) }
                    th scope="row" { (row::titled(here.id, entry)) }
                    td { bdi { (entry.path) } }
                    td { (parts::time(&crate::answers::time(entry.happened_at.as_ref()))) }
                    td { div.buttons { (row::look(entry, pages)) (undo::of_one(visitor, pages.path, entry)) } }
                }
                @if let Some((_, difference)) = opened.filter(|(id, _)| *id == entry.id) {
                    tr { td colspan="6" { details open { summary { "What it changed" } (difference) } } }
                }
            }
        }
    };
    Ok(html! {
        div #activity {
            h2 { "What was done" }
            (parts::table("Activity", &["Who", "Did", "What", "Where", "When", ""], &rows))
        }
        p.quiet { (words::count(entries.len() as u64, "entry", "entries")) " on this page. Entries are kept for 180 days." }
    })
}

/// The header of a group of entries of one write, with its undo.
fn together(visitor: &Visitor, path: &str, first: &ActivityEntry, shown: usize) -> Markup {
    html! {
        tr {
            td colspan="6" {
                div.buttons {
                    span { strong { "At once:" } " the next " (words::grouped(shown as u64)) " entries are one change" }
                    (undo::of_write(visitor, path, &first.write_id))
                }
            }
        }
    }
}

#[cfg(test)]
mod checks;
