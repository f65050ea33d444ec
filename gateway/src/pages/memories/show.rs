//! `GET /memories/{id}`: the members of a memory, its contents as agents read them, and their token cost.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{MemberKind, Permission};
use cairn_proto::ids::WorkspaceId;
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::at::{Found, LocatedMemory};
use super::{address, kind, picker};
use crate::answers::{Entry, ResolvedMember, ResolvedMemory, tokens};
use crate::error::Error;
use crate::extract::Query;
use crate::pages::frame::Page;
use crate::pages::parts::{self as part, Tone};
use crate::pages::text::{Language, source_lines};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, file, folders, places, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// Limit per text; the rest is on its own page.
const MAX_BYTES_OF_A_TEXT: usize = 8 * 1024;
/// Limit of all texts.
const MAX_BYTES: usize = 128 * 1024;

/// The search for members to add.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct PageQuery {
    q: Option<String>,
}

pub(super) async fn show(at: LocatedMemory, Query(page_query): Query<PageQuery>) -> Answer {
    show_page(&at, page_query.q.as_deref().unwrap_or_default().trim(), None).await
}

/// The page again, with the error of a form.
pub(super) async fn failed(at: &LocatedMemory, problem: &Problem) -> Answer {
    show_page(at, "", Some(problem)).await
}

async fn show_page(at: &LocatedMemory, looked_for: &str, problem: Option<&Problem>) -> Answer {
    let memory = match at.memory().await? {
        Found::Live(memory) => memory,
        Found::Elsewhere(response) => return Ok(response),
    };
    let visitor = &at.visitor;
    let may_write = visitor.may(Permission::Write);
    let picker = if may_write {
        picker::show(visitor, &memory, looked_for).await?
    } else {
        html! {}
    };
    let body = html! {
        (part::summary(problem, &[("members", "Members")]))
        (guidance(&memory))
        (costs(&memory))
        h2 #f-members { "Members" }
        (members(visitor, &memory)?)
        (picker)
        @if !may_write && visitor.seen_as().is_none() { (part::not_in_role(visitor.here()?)) }
        (left_out(&memory))
        (public(visitor, &memory))
        h2 { "What an agent reads" }
        (texts(&memory))
    };
    let list = visitor.onward(format!("/w/{}/memories", visitor.here()?.id));
    let page = Page::new(&memory.name)
        .heading(html! { bdi { (memory.name) } })
        .crumbs(vec![("Memories".to_owned(), list)])
        .actions(actions(visitor, &memory));
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn actions(visitor: &Visitor, memory: &ResolvedMemory) -> Markup {
    let base = address(&memory.id);
    html! {
        @if visitor.may(Permission::Write) { a.button href={ (base) "/edit" } data-key="e" { "Edit" } }
        a.button href=(visitor.onward(format!("{base}/versions"))) { "Versions" }
        @if visitor.may(Permission::Delete) { (part::action(&format!("{base}/delete"), "Move to trash", "", &[])) }
    }
}

fn guidance(memory: &ResolvedMemory) -> Markup {
    html! {
        p.quiet {
            code { (memory.slug) } " · changed " (part::time(&memory.updated_at))
            @if memory.is_public { " " (part::badge(Tone::Warn, "Public")) }
        }
        @if let Some(description) = &memory.description { p.guidance dir="auto" { (description) } }
        h2 { "When to use it" }
        @match &memory.use_when {
            Some(when) => { p.guidance dir="auto" { (when) } }
            None => { p.quiet { "Nothing says so: agents load it only when somebody names it." } }
        }
    }
}

/// The token cost for an agent that loads the memory.
fn costs(memory: &ResolvedMemory) -> Markup {
    html! {
        h2 { "What it costs" }
        p {
            "An agent that loads it reads about " strong { (words::count(memory.tokens, "token", "tokens")) }
            " of text, counted as a " code { "tokenBudget" } " is: four bytes are a token."
        }
    }
}

fn members(visitor: &Visitor, memory: &ResolvedMemory) -> Result<Markup, Error> {
    if memory.members.is_empty() {
        return Ok(html! { p.quiet { "It holds nothing yet." } });
    }
    let workspace = visitor.here()?.id;
    let last = memory.members.len() - 1;
    let rows = html! {
        @for (at, member) in memory.members.iter().enumerate() {
            tr {
                td.number { (at + 1) }
                th scope="row" { (titled(visitor, workspace, member)) }
                td { (kind(member.kind)) }
                td.number { (member.entries.len()) }
                td.number { (words::grouped(member.tokens)) }
                td { (member_actions(visitor, memory, member, at, last)) }
            }
        }
    };
    Ok(part::table("Members", &["", "Member", "Kind", "Texts", "Tokens", ""], &rows))
}

/// The linked name of a member.
fn titled(visitor: &Visitor, workspace: WorkspaceId, member: &ResolvedMember) -> Markup {
    let Some(title) = &member.title else {
        return html! { span.quiet { "gone, or out of reach" } };
    };
    let target = match member.kind {
        MemberKind::File => member.file_id.as_ref().map(file::address),
        MemberKind::Folder => member.folder_id.as_deref().map(|id| folders::address(workspace, Some(id))),
        MemberKind::Database => member.database_id.as_ref().map(places::database),
        // They have no page yet.
        MemberKind::SourceDocument => None,
    };
    html! {
        @match target {
            Some(target) => { a href=(visitor.onward(target)) { bdi { (title) } } }
            None => { bdi { (title) } }
        }
    }
}

fn member_actions(
    visitor: &Visitor,
    memory: &ResolvedMemory,
    member: &ResolvedMember,
    at: usize,
    last: usize,
) -> Markup {
    let base = address(&memory.id);
    let about = member.title.as_deref().unwrap_or("this member");
    let moved = |label: &str, to: usize| {
        let to = to.to_string();
        part::action(&format!("{base}/move"), label, about, &[("member", &member.id), ("position", &to)])
    };
    html! {
        div.buttons {
            @if visitor.may(Permission::Write) {
                @if at > 0 { (moved("Move up", at - 1)) }
                @if at < last { (moved("Move down", at + 1)) }
            }
            @if visitor.may(Permission::Delete) {
                (part::action(&format!("{base}/remove"), "Remove", about, &[("member", &member.id)]))
            }
        }
    }
}

fn left_out(memory: &ResolvedMemory) -> Markup {
    html! {
        @if !memory.coverage.is_empty() {
            h2 { "Left out" }
            ul { @for note in &memory.coverage { li dir="auto" { (words::sentence(&note.message)) } } }
        }
    }
}

/// The public state, with the actions that change it.
fn public(visitor: &Visitor, memory: &ResolvedMemory) -> Markup {
    let (base, path) = (address(&memory.id), format!("/m/{}", memory.id));
    let may_write = visitor.may(Permission::Write);
    let warning = html! {
        p { "Anybody who has the link reads the current text of every file, folder and document in it, without signing in: also what is written to them later. Databases are left out." }
        p { "What somebody has read by then cannot be taken back." }
    };
    html! {
        h2 { "Public link" }
        @if memory.is_public {
            (warning)
            (part::snippet("public-link", &visitor.person.links.to(&path)))
            p.quiet {
                @if memory.is_listed { "Search engines may list this page." } @else { "Search engines are asked not to list this page." }
            }
            div.buttons {
                a.button href=(path) { "See it as others do" }
                @if may_write && memory.is_listed {
                    (part::action(&format!("{base}/unlist"), "Hide from search engines", "", &[]))
                } @else if may_write && visitor.publishes() {
                    (part::action(&format!("{base}/list"), "Let search engines list it", "", &[]))
                }
                @if may_write { (part::action(&format!("{base}/unpublish"), "Make private", "", &[])) }
            }
        } @else {
            p.quiet { "Only members of this workspace, and the tokens that they gave, read it." }
            @if may_write && visitor.publishes() {
                (part::opens("publish", "Make public", ""))
                (part::dialog("publish", "Make this memory public?", &warning, &format!("{base}/publish"), "Make public", &html! {}))
            } @else if may_write {
                p.quiet { "Who may make memories public stands in the settings: ask an owner or admin." }
            }
        }
    }
}

/// The texts as agents read them, truncated.
fn texts(memory: &ResolvedMemory) -> Markup {
    let mut left = MAX_BYTES;
    let mut shown = Vec::new();
    for entry in memory.members.iter().flat_map(|member| &member.entries) {
        let text = beginning(&entry.content, left.min(MAX_BYTES_OF_A_TEXT));
        left -= text.len();
        shown.push((entry, text));
    }
    html! {
        @if shown.is_empty() { p.quiet { "No text." } }
        @for (entry, text) in shown { (one(entry, text)) }
    }
}

fn one(entry: &Entry, text: &str) -> Markup {
    let rest = entry.content.len() - text.len();
    html! {
        details.text {
            summary { bdi { (entry.path) } " " span.quiet { (words::count(tokens(entry.content.len()), "token", "tokens")) } }
            @if let Some(target) = places::of(entry.citation.kind, &entry.citation.id, None) {
                p { a href=(target) { "Open " bdi { (entry.title) } } }
            }
            pre.passage tabindex="0" dir="auto" role="group" aria-label={ "Text of " (entry.title) } {
                @for line in source_lines(Language::Plain, text) { (line) "\n" }
            }
            @if rest > 0 { p.hint { (words::bytes(rest as u64)) " more are not shown here." } }
        }
    }
}

/// A prefix of at most `most` bytes, at a character boundary.
fn beginning(text: &str, most: usize) -> &str {
    let most = most.min(text.len());
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;

    use super::*;
    use crate::answers::Links;

    fn memory(contents: &[&str]) -> ResolvedMemory {
        let entry = |content: &&str| {
            let file = proto::File {
                path: "/<b>".to_owned(),
                name: "<b>".to_owned(),
                content: Some((*content).to_owned()),
                ..Default::default()
            };
            proto::ResolvedEntry { file: Some(file), ..Default::default() }
        };
        let entries = contents.iter().map(entry).collect();
        let member = proto::ResolvedMember { entries, ..Default::default() };
        let resolved = proto::ResolvedMemory { members: vec![member], ..Default::default() };
        ResolvedMemory::read(resolved, &Links::new(None))
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        for (most, text) in [(0, ""), (1, ""), (2, "é"), (3, "é"), (4, "éé"), (9, "éé")] {
            assert_eq!(beginning("éé", most), text, "{most}");
        }
    }

    #[test]
    fn texts_are_shown_as_they_are_and_not_without_end() {
        let html = texts(&memory(&["<script>x</script>\0"])).into_string();
        assert!(html.contains("&lt;script&gt;x&lt;/script&gt;") && !html.contains("<b>"), "{html}");
        assert!(!html.contains("not shown here"), "{html}");
        let long = "x".repeat(MAX_BYTES_OF_A_TEXT + 1);
        let many = vec![long.as_str(); 100];
        let html = texts(&memory(&many)).into_string();
        assert_eq!(html.matches("not shown here").count(), 100);
        assert!(html.len() < 2 * MAX_BYTES, "{}", html.len());
    }
}
