//! The versions of a file, newest first.

use cairn_proto::ids::FileId;
use maud::{Markup, html};

use super::address;
use super::at::LocatedFile;
use crate::answers::{File, FileVersion};
use crate::error::Error;
use crate::operations::{Context, Paging, file_versions};
use crate::pages::parts as part;
use crate::pages::words;

const PAGE: u32 = 50;

pub(super) async fn list(
    context: &Context,
    at: &LocatedFile,
    file: &File,
    trail: Vec<String>,
) -> Result<Markup, Error> {
    let id: FileId = at.id;
    let paging = Paging { limit: Some(PAGE), cursor: trail.last().cloned() };
    let listed = file_versions::list(context, id, paging).await?;
    let path = address(id);
    let mut query = vec![("view", "changes")];
    query.extend(at.visitor.seen_as().map(|seen| ("as", seen.id.as_str())));
    let pages = part::Pages::of(&path, &query, trail, PAGE, &listed);
    let rows = html! { @for version in &listed.items { (row(at, file, version)) } };
    Ok(html! {
        (part::table("Versions", &["Version", "When", "Who", "Size"], &rows))
        (part::pages(&pages))
    })
}

fn row(at: &LocatedFile, file: &File, version: &FileVersion) -> Markup {
    html! {
        tr {
            th scope="row" {
                a href=(at.visitor.onward(format!("{}/versions/{}", address(&file.id), version.version))) { "Version " (version.version) }
                @if version.content_hash == file.content_hash { " " (part::badge(part::Tone::Plain, "Now")) }
            }
            td { (part::time(&version.created_at)) }
            td { (who(version)) }
            td { (words::bytes(version.size_bytes)) }
        }
    }
}

/// The author of a version.
pub(in crate::pages) fn who(version: &FileVersion) -> Markup {
    html! {
        @match &version.created_by {
            Some(by) => { bdi { (by.name) } @if by.kind == "token" { " (a token)" } @else if by.kind == "sync" { " (a sync)" } }
            None => { "somebody that nobody noted" }
        }
    }
}
