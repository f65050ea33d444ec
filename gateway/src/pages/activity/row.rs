//! One entry of the activity log, in words.

use cairn_proto::domain::{ActivityAction, TrashKind};
use cairn_proto::ids::{FileId, WorkspaceId};
use maud::{Markup, html};

use crate::answers::{ActivityEntry, Author};
use crate::error::Error;
use crate::operations::{Context, Paging, file_versions};
use crate::pages::parts::Pages;
use crate::pages::text::compare;
use crate::pages::{folders, places, words};

/// The display name of an author.
pub(in crate::pages) fn named(author: &Author) -> String {
    let name = if author.name.is_empty() { "Without a name" } else { author.name.as_str() };
    match author.kind.as_str() {
        "token" => format!("{name} (token)"),
        "grant" => format!("{name} (app)"),
        "service" => format!("{name} (by itself)"),
        _ => name.to_owned(),
    }
}

pub(in crate::pages) fn who(entry: &ActivityEntry) -> Markup {
    let author = entry.author.clone().unwrap_or_default();
    let door = match entry.channel.as_deref() {
        Some("mcp") => " by MCP",
        Some("rest") => " by the API",
        Some("grpc") => " by gRPC",
        _ => "",
    };
    html! { bdi { (named(&author)) } span.quiet { (door) } }
}

pub(super) fn kind_of(entry: &ActivityEntry) -> TrashKind {
    TrashKind::from_number(entry.kind).unwrap_or_default()
}

pub(super) const fn many(kind: TrashKind) -> &'static str {
    match kind {
        TrashKind::File => "Files",
        TrashKind::Folder => "Folders",
        TrashKind::Database => "Databases",
        TrashKind::Record => "Records",
        TrashKind::Memory => "Memories",
    }
}

/// The changed part of an item.
fn part(changed: &str) -> &str {
    match changed {
        "folder" => "its folder",
        "useWhen" => "when to use it",
        "public" => "who may read it",
        "slug" => "its address",
        "listed" => "whether search engines list it",
        other => other,
    }
}

pub(in crate::pages) fn did(entry: &ActivityEntry) -> Markup {
    let action = ActivityAction::from_number(entry.action).unwrap_or(ActivityAction::Updated);
    let parts: Vec<&str> = entry.changed.iter().map(|changed| part(changed)).collect();
    let kind = kind_of(entry).as_str();
    html! {
        @if entry.undoes.is_some() { "undid a change: " }
        @match action {
            ActivityAction::Created => { "created the " (kind) }
            ActivityAction::Renamed => {
                "renamed the " (kind) " from " bdi { (entry.former_name.as_deref().unwrap_or_default()) }
            }
            ActivityAction::Moved => { "moved the " (kind) " to another folder" }
            ActivityAction::Tagged => { "tagged the " (kind) }
            ActivityAction::Deleted => { "moved the " (kind) " to trash" }
            ActivityAction::Restored => { "restored the " (kind) " from trash" }
            ActivityAction::DeletedPermanently => { "deleted the " (kind) " for good" }
            ActivityAction::Updated => {
                @if parts.is_empty() { "changed the " (kind) }
                @else { "changed " (cairn_chassis::wording::and(&parts)) " of the " (kind) }
            }
        }
        @if entry.item_count > 1 { span.quiet { ", " (words::count(entry.item_count, "item", "items")) " in all" } }
    }
}

/// The item's page, which also handles trashed items.
pub(super) fn address(
    workspace: WorkspaceId,
    kind: TrashKind,
    id: &str,
    database: Option<&str>,
) -> Option<String> {
    match kind {
        TrashKind::File => Some(places::file(id)),
        TrashKind::Folder => Some(folders::address(workspace, Some(id))),
        TrashKind::Database => Some(places::database(id)),
        TrashKind::Record => Some(places::record(database?, id)),
        TrashKind::Memory => Some(places::memory(id)),
    }
}

/// The name, linked if the item may still exist.
pub(in crate::pages) fn titled(workspace: WorkspaceId, entry: &ActivityEntry) -> Markup {
    let is_gone = ActivityAction::from_number(entry.action) == Some(ActivityAction::DeletedPermanently);
    let address = address(workspace, kind_of(entry), &entry.item_id, entry.database_id.as_deref());
    html! {
        @match address.filter(|_| !is_gone) {
            Some(address) => a href=(address) { bdi { (entry.name) } },
            None => bdi { (entry.name) },
        }
    }
}

/// Whether the entry is about a file's text, which has versions.
pub(super) fn has_texts(entry: &ActivityEntry) -> bool {
    let is_content = entry.changed.iter().any(|changed| changed == "content");
    let is_new = ActivityAction::from_number(entry.action) == Some(ActivityAction::Created);
    kind_of(entry) == TrashKind::File && (is_content || is_new) && entry.version_after.is_some()
}

/// The link to the diff.
pub(super) fn look(entry: &ActivityEntry, pages: &Pages<'_>) -> Markup {
    if has_texts(entry) {
        let open = pages.with("open", &entry.id);
        return html! {
            a href={ (open) "#e-" (entry.id) } data-swap="#activity" { "What it changed" span.sr { " in " (entry.name) } }
        };
    }
    let versions = match kind_of(entry) {
        TrashKind::Record => entry
            .database_id
            .as_deref()
            .map(|database| format!("{}&show=versions", places::record(database, &entry.item_id))),
        TrashKind::Memory => Some(format!("{}/versions", places::memory(&entry.item_id))),
        TrashKind::File | TrashKind::Folder | TrashKind::Database => None,
    };
    html! {
        @if let Some(versions) = versions.filter(|_| entry.version_after.is_some()) {
            a href=(versions) { "Versions" span.sr { " of " (entry.name) } }
        }
    }
}

/// The diff of a write to a file's text.
pub(super) async fn difference(context: &Context, entry: &ActivityEntry) -> Result<Markup, Error> {
    let gone =
        html! { p.quiet { "The versions of this file are not there any more, or the file is in trash." } };
    let (Ok(id), Some(after)) = (entry.item_id.parse::<FileId>(), entry.version_after) else {
        return Ok(gone);
    };
    let Ok(now) = file_versions::get(context, id, after).await else { return Ok(gone) };
    let before = match entry.version_before {
        None => None,
        Some(_) => older(context, id, after).await?,
    };
    let before = match before {
        None => String::new(),
        Some(version) => file_versions::get(context, id, version).await?.content.unwrap_or_default(),
    };
    let now = now.content.unwrap_or_default();
    Ok(html! {
        (compare(&before, &now).markup())
        p { a href={ (places::file(id)) "/versions/" (after) } { "Version " (after) } }
    })
}

/// The preceding version with a text.
async fn older(context: &Context, id: FileId, than: u64) -> Result<Option<u64>, Error> {
    let mut paging = Paging::default();
    loop {
        let listed = file_versions::list(context, id, paging).await?;
        if let Some(found) = listed.items.iter().find(|version| version.version < than) {
            return Ok(Some(found.version));
        }
        match listed.next {
            Some(next) => paging = Paging { cursor: Some(next), ..Paging::default() },
            None => return Ok(None),
        }
    }
}
