//! `/w/{id}/trash`: deleted items, to restore or delete permanently.

use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::domain::{Permission, TrashKind};
use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use maud::{Markup, html};
use uuid::Uuid;

use super::activity::row::named;
use super::form::Form;
use super::frame::Page;
use super::notice::Notice;
use super::parts::{self, Choice, Field, Pages};
use super::sign_in::is_own_path;
use super::visitor::{Here, Visitor};
use super::{Answer, MEMBER, words};
use crate::answers::{Author, TrashItem, optional_time, time};
use crate::error::Error;
use crate::operations::bulk::{self, BulkAction, Chosen, ChosenItem};
use crate::operations::{Paging, trash};
use crate::routes::Routes;

const PAGE_SIZE: u32 = 50;
/// The page size of a list, and what a notice can undo.
const MAX_AT_ONCE: usize = 100;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/trash", show).post(MEMBER, "/w/{id}/trash/restore", restore).post(
        MEMBER,
        "/w/{id}/trash/delete",
        remove,
    )
}

fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/trash")
}

async fn show(visitor: Visitor, parts: Parts) -> Answer {
    list(&visitor, &parts, None).await
}

/// Restores the items of the form.
async fn restore(visitor: Visitor, parts: Parts, form: Form) -> Answer {
    let items = match items(&form) {
        Ok(items) => items,
        Err(problem) => return list(&visitor, &parts, Some(&problem)).await,
    };
    if let [(kind, id)] = items.as_slice() {
        trash::restore(&visitor.person.upstreams, &visitor.person.call, *kind, id.to_string()).await?;
    } else if let Some(problem) = restore_many(&visitor, items).await? {
        return list(&visitor, &parts, Some(&problem)).await;
    }
    // Returns to the page of the button: the restored item or the list.
    let back = form.text("back");
    let to = if is_own_path(back) { back.to_owned() } else { address(visitor.here()?.id) };
    Ok(visitor.done(&to, &Notice::Restored))
}

/// Restores in one write; returns the problem of items that cannot be restored.
async fn restore_many(visitor: &Visitor, items: Vec<(TrashKind, Uuid)>) -> Result<Option<Problem>, Error> {
    let chosen = items.into_iter().map(|(kind, id)| ChosenItem { kind, id: id.to_string() }).collect();
    let restored =
        bulk::change(&visitor.context()?, Chosen::Items(chosen), BulkAction::Restore, false).await?.value;
    if restored.skipped.is_empty() {
        return Ok(None);
    }
    let mut why: Vec<String> = restored.skipped.iter().map(|one| words::sentence(&one.message)).collect();
    why.dedup();
    let came = words::count(restored.changed_count, "item came back", "items came back");
    Ok(Some(Problem::new(Reason::ValidationError, format!("{came}, the rest did not. {}", why.join(" ")))))
}

/// Permanently deletes an item, after confirmation if it contains others.
async fn remove(visitor: Visitor, parts: Parts, form: Form) -> Answer {
    let items = items(&form);
    let (kind, id) = match items.as_deref() {
        Ok([one]) => *one,
        Ok(_) => return list(&visitor, &parts, Some(&nothing_chosen())).await,
        Err(problem) => return list(&visitor, &parts, Some(problem)).await,
    };
    if holds_others(kind) {
        let name = name_of(&visitor, kind, id).await?;
        if form.text("name") != name {
            let message = "must be typed as it stands here, so that nothing is lost by mistake";
            let wrong = Problem::validation(vec![Violation::new("name", "mismatch", message)]);
            return list(&visitor, &parts, Some(&wrong)).await;
        }
    }
    trash::remove(&visitor.person.upstreams, &visitor.person.call, kind, id.to_string()).await?;
    Ok(visitor.done(&address(visitor.here()?.id), &Notice::Deleted))
}

/// The permission to restore such an item; svc-content checks it again.
pub(super) const fn to_restore(kind: TrashKind) -> Permission {
    match kind {
        TrashKind::Record => Permission::Write,
        TrashKind::File | TrashKind::Folder | TrashKind::Database | TrashKind::Memory => Permission::Delete,
    }
}

const fn holds_others(kind: TrashKind) -> bool {
    matches!(kind, TrashKind::Folder | TrashKind::Database)
}

/// The name of an item in trash.
async fn name_of(visitor: &Visitor, kind: TrashKind, id: Uuid) -> Result<String, Problem> {
    let id = id.to_string();
    let item = trash::get(&visitor.person.upstreams, &visitor.person.call, kind, id.clone()).await?;
    // An item deleted along with a parent is not listed by itself.
    if item.id == id { Ok(item.name) } else { Err(Problem::not_found("there is no such item in trash")) }
}

fn items(form: &Form) -> Result<Vec<(TrashKind, Uuid)>, Problem> {
    let read = |text: &str| {
        let (kind, id) = text.split_once(':')?;
        Some((kind.parse().ok()?, Uuid::try_parse(id).ok()?))
    };
    let items: Option<Vec<_>> = form.all("item").map(read).collect();
    items.filter(|items| (1..=MAX_AT_ONCE).contains(&items.len())).ok_or_else(nothing_chosen)
}

fn nothing_chosen() -> Problem {
    let message = format!("must name what is in trash: 1 to {MAX_AT_ONCE} at once");
    Problem::validation(vec![Violation::new("item", "invalid", message)])
}

fn kind_of(item: &TrashItem) -> TrashKind {
    TrashKind::from_number(item.kind).unwrap_or_default()
}

async fn list(visitor: &Visitor, parts: &Parts, problem: Option<&Problem>) -> Answer {
    let here = visitor.here()?;
    let trail = super::marks(parts);
    let who = who(parts);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let listed = trash::list(&visitor.person, who.clone(), paging);
    let (listed, deleters) = tokio::join!(listed, trash::deleters(&visitor.person));
    let path = address(here.id);
    let listed = match listed {
        // A stale page token: start over.
        Err(problem) if super::is_stale(&problem, &trail) => {
            return Ok(super::see_other(&narrowed(&path, who.as_deref())));
        }
        listed => listed?,
    };
    let query: Vec<(&str, &str)> = who.as_deref().map(|who| ("who", who)).into_iter().collect();
    let pages = Pages::of(&path, &query, trail, PAGE_SIZE, &listed);
    let body = html! {
        (parts::summary(problem, &[]))
        (choices(&path, &deleters?, who.as_deref()))
        @if listed.items.is_empty() {
            (nothing(who.is_some()))
        } @else {
            (table(visitor, here, &listed.items, &narrowed(&path, who.as_deref())))
            (parts::pages(&pages))
        }
        @if !visitor.may(Permission::Write) { (parts::not_in_role(here)) }
    };
    let page = Page::new("Trash");
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

/// The principal filter of a URL or its form: a person, a token or a grant, by id.
fn who(parts: &Parts) -> Option<String> {
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let mut chosen = query.filter(|(name, value)| name == "who" && !value.trim().is_empty());
    chosen.next().map(|(_, value)| value.into_owned())
}

/// The list's URL, filtered by principal or whole.
fn narrowed(path: &str, who: Option<&str>) -> String {
    let Some(who) = who else { return path.to_owned() };
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("who", who).finish();
    format!("{path}?{query}")
}

/// The principal filter, as a GET form; nothing if there is no choice.
fn choices(path: &str, deleters: &[Author], who: Option<&str>) -> Markup {
    if deleters.is_empty() && who.is_none() {
        return html! {};
    }
    let anybody = Choice { value: "", label: "Everybody", is_chosen: who.is_none() };
    let labels: Vec<String> = deleters.iter().map(named).collect();
    let known = deleters.iter().zip(&labels).map(|(deleter, label)| Choice {
        value: &deleter.id,
        label,
        is_chosen: who == Some(&deleter.id),
    });
    html! {
        form.filter method="get" action=(path) {
            (parts::choices("who", "Deleted by", std::iter::once(anybody).chain(known)))
            div.buttons {
                button type="submit" { "Show" }
                @if who.is_some() { a.button href=(path) { "Show everything" } }
            }
        }
    }
}

fn nothing(is_narrowed: bool) -> Markup {
    let sentence = if is_narrowed { "Nothing of theirs is in trash." } else { "Nothing is in trash." };
    parts::empty(sentence, &html! { p.quiet { "What people and agents delete waits here." } })
}

fn table(visitor: &Visitor, here: &Here, items: &[TrashItem], back: &str) -> Markup {
    let (writes, deletes) = (visitor.may(Permission::Write), visitor.may(Permission::Delete));
    let restores = |kind: TrashKind| visitor.may(to_restore(kind));
    let rows = html! {
        @for (at, item) in items.iter().enumerate() {
            @let kind = kind_of(item);
            @let value = format!("{}:{}", kind.as_str(), item.id);
            tr {
                td { @if restores(kind) { input type="checkbox" name="item" value=(value) form="many" aria-label={ "Select " (item.name) }; } }
                th scope="row" { bdi { (item.name) } }
                td { (kind.as_str()) @if item.item_count > 1 { span.quiet { ", " (words::count(item.item_count, "item", "items")) } } }
                td { bdi { (item.path) } }
                td {
                    @match &item.deleted_by {
                        Some(by) => bdi { (named(by)) },
                        None => span.quiet { "not known" },
                    }
                }
                td { (parts::time(&time(item.deleted_at.as_ref()))) }
                td { (parts::time_or(optional_time(item.expires_at.as_ref()).as_deref(), "kept")) }
                td {
                    div.buttons {
                        @if restores(kind) {
                            (parts::action(&format!("{}/restore", address(here.id)), "Restore", &item.name, &[("item", &value), ("back", back)]))
                        }
                        @if deletes {
                            (parts::opens(&format!("gone-{at}"), "Delete", &item.name))
                            (forever(here, &format!("gone-{at}"), kind, item, &value))
                        }
                    }
                }
            }
        }
    };
    let path = format!("{}/restore", address(here.id));
    html! {
        (parts::table("In trash", &["", "Name", "Kind", "Where from", "By", "Deleted", "Gone for good", ""], &rows))
        @if writes {
            form #many.buttons method="post" action=(path) {
                input type="hidden" name="back" value=(back);
                button type="submit" data-key="r" { "Restore selected" }
            }
        }
    }
}

fn forever(here: &Here, id: &str, kind: TrashKind, item: &TrashItem, value: &str) -> Markup {
    let told = html! {
        p { bdi { (item.name) } " and all of its versions are removed. Nobody can bring it back." }
        @if item.item_count > 1 { p { "That is " (words::count(item.item_count, "item", "items")) " in all." } }
    };
    let fields = html! {
        input type="hidden" name="item" value=(value);
        @if holds_others(kind) {
            (Field::text("name", "Name").id(&format!("{id}-name")).hint("Type the name, to be sure.").render())
        }
    };
    parts::dialog(
        id,
        "Delete for good?",
        &told,
        &format!("{}/delete", address(here.id)),
        "Delete for good",
        &fields,
    )
}
