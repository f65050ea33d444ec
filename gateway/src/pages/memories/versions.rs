//! `/memories/{id}/versions`: the versions of a memory with their diffs, and restoring them.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::content::v1::Author;
use cairn_proto::domain::Permission;
use cairn_proto::ids::MemoryId;
use http::request::Parts;
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::at::{Found, LocatedMemory};
use super::{address, kind, show};
use crate::answers::{Member, Memory, MemoryVersion, ResolvedMemory};
use crate::error::Error;
use crate::extract::{PathIds, Query};
use crate::operations::{Context, Paging, memory_versions};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Pages, Tone};
use crate::pages::reading;
use crate::pages::text::{Language, compare};
use crate::pages::visitor::see_other;
use crate::pages::{Answer, marks, words};
use crate::schema::inputs;

inputs!(PageQuery);

const PAGE_SIZE: u32 = 50;

/// The view of a version.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct PageQuery {
    /// Nothing: its diff; `now`: the diff to the current state; `text`: its contents.
    show: Option<String>,
}

/// `GET /memories/{id}/versions`, newest first.
pub(super) async fn list(at: LocatedMemory, parts: Parts) -> Answer {
    let memory = match at.memory().await? {
        Found::Live(memory) => memory,
        Found::Elsewhere(response) => return Ok(response),
    };
    let visitor = &at.visitor;
    let (path, trail) = (format!("{}/versions", address(at.id)), marks(&parts));
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let listed = match memory_versions::list(&visitor.context()?, at.id, paging).await {
        // A stale page token: start over.
        Err(problem) if problem.reason == Reason::ValidationError && !trail.is_empty() => {
            return Ok(see_other(&visitor.onward(path)));
        }
        listed => listed?,
    };
    let kept: Vec<(&str, &str)> =
        visitor.seen_as().map(|seen| ("as", seen.id.as_str())).into_iter().collect();
    let is_first = trail.is_empty();
    let pages = Pages {
        path: &path,
        query: &kept,
        trail,
        next: listed.next,
        total: listed.total,
        page_size: u64::from(PAGE_SIZE),
        shown: listed.items.len(),
    };
    let rows = html! {
        @for (place, version) in listed.items.iter().enumerate() {
            tr {
                th scope="row" {
                    a href=(visitor.onward(format!("{path}/{}", version.version))) { "Version " (version.version) }
                    @if is_first && place == 0 { " " (part::badge(Tone::Plain, "Now")) }
                }
                td { bdi { (version.name) } }
                td.number { (words::count(version.member_count, "member", "members")) }
                td { (part::time(&version.created_at)) }
                td { (who(version.created_by.as_ref())) }
            }
        }
    };
    let body = html! {
        p.quiet { "The newest hundred are kept." }
        (part::table("Versions", &["Version", "Name", "Holds", "When", "Who"], &rows))
        (part::pages(&pages))
    };
    Ok(page(&at, &memory, "Versions")?.show(visitor, &body))
}

/// `GET /memories/{id}/versions/{version}`.
pub(super) async fn one(
    at: LocatedMemory,
    PathIds(_, number): PathIds<MemoryId, u64>,
    Query(page_query): Query<PageQuery>,
) -> Answer {
    let memory = match at.memory().await? {
        Found::Live(memory) => memory,
        Found::Elsewhere(response) => return Ok(response),
    };
    let context = at.visitor.context()?;
    let version = memory_versions::get(&context, at.id, number).await?;
    let newest = newest(&context, at.id).await?.unwrap_or(number);
    let older = find_version(&context, at.id, number.saturating_sub(1)).await?;
    let wanted = page_query.show.as_deref().unwrap_or_default();
    let text = written(&version);
    let shown = match wanted {
        "text" => reading::numbered(Language::Plain, &text, None, 1, None),
        "now" => {
            let now = memory_versions::get(&context, at.id, newest).await?;
            compare(&text, &written(&now)).markup()
        }
        _ => compare(&older.as_ref().map(written).unwrap_or_default(), &text).markup(),
    };
    let (base, is_now) = (format!("{}/versions", address(at.id)), number == newest);
    let to = |number: u64| at.visitor.onward(format!("{base}/{number}"));
    let kinds = [("", "What it changed"), ("now", "What has changed since"), ("text", "Text")];
    let body = html! {
        h2 { "Version " (number) @if is_now { " " (part::badge(Tone::Plain, "Now")) } }
        p.quiet { (part::time(&version.created_at)) " by " (who(version.created_by.as_ref())) }
        @if !is_now && at.visitor.may(Permission::Write) {
            p.hint { "Restored are its name, when to use it, its members and their order. Its slug stays, and who else reads it." }
        }
        div.buttons {
            @if !is_now && at.visitor.may(Permission::Write) {
                (part::action(&format!("{base}/{number}/restore"), "Restore this version", "", &[]))
            }
            @if let Some(older) = &older { a.button rel="prev" href=(to(older.version)) { "Older" } }
            @if number < newest { a.button rel="next" href=(to(number + 1)) { "Newer" } }
        }
        nav.tabs aria-label="Of this version" {
            @for (name, label) in kinds {
                @let query = if name.is_empty() { String::new() } else { format!("?show={name}") };
                a href=(at.visitor.onward(format!("{base}/{number}{query}"))) aria-current=[(name == wanted).then_some("page")] { (label) }
            }
        }
        (shown)
    };
    let title = format!("Version {number}");
    let versions = ("Versions".to_owned(), at.visitor.onward(base.as_str()));
    Ok(page(&at, &memory, &title)?.crumbs(above(&at, &memory, Some(versions))?).show(&at.visitor, &body))
}

/// `POST /memories/{id}/versions/{version}/restore`.
pub(super) async fn restore(at: LocatedMemory, PathIds(_, number): PathIds<MemoryId, u64>) -> Answer {
    match memory_versions::restore(&at.visitor.context()?, at.id, number).await {
        Ok(_) => Ok(at.visitor.done(&address(at.id), &Notice::Restored)),
        Err(problem) if problem.violations.is_empty() => Err(problem.into()),
        Err(problem) => show::failed(&at, &problem).await,
    }
}

fn page<'a>(at: &LocatedMemory, memory: &ResolvedMemory, title: &'a str) -> Result<Page<'a>, Error> {
    Ok(Page::new(title).crumbs(above(at, memory, None)?))
}

fn above(
    at: &LocatedMemory,
    memory: &ResolvedMemory,
    more: Option<(String, String)>,
) -> Result<Vec<(String, String)>, Error> {
    let list = at.visitor.onward(format!("/w/{}/memories", at.visitor.here()?.id));
    let own = (memory.name.clone(), at.visitor.onward(address(at.id)));
    Ok([("Memories".to_owned(), list), own].into_iter().chain(more).collect())
}

/// The number of the newest version.
async fn newest(context: &Context, id: MemoryId) -> Result<Option<u64>, Problem> {
    let paging = Paging { limit: Some(1), cursor: None };
    let listed = memory_versions::list(context, id, paging).await?;
    Ok(listed.items.first().map(|version| version.version))
}

/// A version; `None` if it does not exist or is no longer kept.
async fn find_version(
    context: &Context,
    id: MemoryId,
    number: u64,
) -> Result<Option<MemoryVersion>, Problem> {
    match memory_versions::get(context, id, number).await {
        Ok(version) => Ok(Some(version)),
        Err(problem) if problem.reason == Reason::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

fn who(author: Option<&Author>) -> Markup {
    html! {
        @match author {
            Some(by) => { bdi { (by.name) } @if by.kind == "token" { " (a token)" } @else if by.kind == "sync" { " (a sync)" } }
            None => { "somebody that nobody noted" }
        }
    }
}

/// A memory as text lines, for the diff.
fn written(version: &MemoryVersion) -> String {
    version.memory.as_ref().map(lines).unwrap_or_default()
}

fn lines(memory: &Memory) -> String {
    let said = |is: bool| if is { "yes" } else { "no" };
    let mut lines = vec![
        format!("Name: {}", memory.name),
        format!("Slug: {}", memory.slug),
        format!("Public: {}", said(memory.is_public)),
        format!("Listed by search engines: {}", said(memory.is_listed)),
        "Description:".to_owned(),
    ];
    let guidance = |text: Option<&str>| -> Vec<String> {
        text.unwrap_or_default().lines().map(|line| format!("  {line}")).collect()
    };
    lines.extend(guidance(memory.description.as_deref()));
    lines.push("When to use it:".to_owned());
    lines.extend(guidance(memory.use_when.as_deref()));
    lines.push("Members:".to_owned());
    lines.extend(memory.members.iter().map(line_of));
    lines.push(String::new());
    lines.join("\n")
}

fn line_of(member: &Member) -> String {
    let references = [&member.file_id, &member.folder_id, &member.source_document_id, &member.database_id];
    let id = references.into_iter().flatten().next().map(String::as_str).unwrap_or_default();
    let title = match &member.title {
        Some(title) => title.clone(),
        None => format!("gone, or out of reach ({id})"),
    };
    let query = member.database_query.as_ref().and_then(|query| serde_json::to_string(query).ok());
    let query = query.map(|query| format!(", {query}")).unwrap_or_default();
    format!("  {}: {title}{query}", kind(member.kind))
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;

    use super::*;

    #[test]
    fn a_memory_is_written_in_lines() {
        let member = |title: Option<&str>| proto::Member {
            kind: proto::MemberKind::File.into(),
            target_id: "1".to_owned(),
            title: title.map(ToOwned::to_owned),
            ..Default::default()
        };
        let memory = proto::Memory {
            name: "Guide".to_owned(),
            slug: "guide".to_owned(),
            use_when: Some("always\nand ever".to_owned()),
            members: vec![member(Some("a.md")), member(None)],
            ..Default::default()
        };
        assert_eq!(
            lines(&Memory::from(memory)),
            "Name: Guide\nSlug: guide\nPublic: no\nListed by search engines: no\nDescription:\nWhen to use it:\n  always\n  \
             and ever\nMembers:\n  file: a.md\n  file: gone, or out of reach (1)\n"
        );
    }
}
