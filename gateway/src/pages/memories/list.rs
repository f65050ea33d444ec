//! `GET /w/{id}/memories`.

use cairn_proto::domain::Permission;
use http::request::Parts;
use maud::{Markup, html};

use super::address;
use crate::answers::Memory;
use crate::operations::{Paging, memories};
use crate::pages::frame::Page;
use crate::pages::parts::{self as part, Pages, Tone};
use crate::pages::viewer::Viewer;
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, is_stale, marks, words};

const PAGE_SIZE: u32 = 50;

pub(super) async fn show(visitor: Visitor, parts: Parts) -> Answer {
    let viewer = Viewer::by(&visitor, &parts).await?;
    let visitor = &viewer.visitor;
    let here = visitor.here()?.id;
    let path = format!("/w/{here}/memories");
    let trail = marks(&parts);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let listed = match memories::list(&visitor.context()?, paging).await {
        // A stale page token: start over.
        Err(problem) if is_stale(&problem, &trail) => {
            return Ok(see_other(&visitor.onward(path)));
        }
        listed => listed?,
    };
    let kept: Vec<(&str, &str)> = viewer.token().map(|token| ("as", token)).into_iter().collect();
    let pages = Pages::of(&path, &kept, trail, PAGE_SIZE, &listed);
    let body = html! {
        (viewer.form(&path))
        @if listed.items.is_empty() {
            (part::empty("A memory is what agents load whole: files and folders that belong together, and when to use them.", &html! {
                p { a href="/docs/guides" { "How agents use memories" } }
            }))
        } @else {
            (table(visitor, &listed.items))
            (part::pages(&pages))
        }
    };
    let actions = html! {
        @if visitor.may(Permission::Write) { a.button.primary href={ (path) "/new" } data-key="n" { "New memory" } }
    };
    Ok(Page::new("Memories").actions(actions).show(visitor, &body))
}

fn table(visitor: &Visitor, memories: &[Memory]) -> Markup {
    let may_delete = visitor.may(Permission::Delete);
    let rows = html! {
        @for memory in memories {
            tr {
                th scope="row" {
                    a href=(visitor.onward(address(&memory.id))) { bdi { (memory.name) } }
                    @if memory.is_public { " " (part::badge(Tone::Warn, "Public")) }
                }
                td { @if let Some(when) = &memory.use_when { span.when dir="auto" { (when) } } @else { span.quiet { "not said" } } }
                td.number { (words::count(memory.members.len() as u64, "member", "members")) }
                td { (part::time(&memory.updated_at)) }
                td { @if may_delete { (part::action(&format!("{}/delete", address(&memory.id)), "Move to trash", &memory.name, &[])) } }
            }
        }
    };
    part::table("Memories", &["Name", "When to use it", "Holds", "Changed", ""], &rows)
}
