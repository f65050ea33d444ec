//! Where a file is used: search statistics, memories that contain it, records that reference it, backlinks and
//! similar files. A part that fails does not affect the others.

use cairn_chassis::status::Problem;
use maud::{Markup, html};

use super::at::LocatedFile;
use super::{address, linking};
use crate::answers::{Backlink, File, Freshness as Used, Member, Memory, RelatedFile, RelatedFiles};
use crate::operations::search::Freshness;
use crate::operations::{Context, Page, Paging, analytics, memories, records, related};
use crate::pages::{folders, parts as part, places, words};

const MAX_ITEMS: u32 = 100;
/// The period of the search statistics.
const DAYS: u32 = 30;

pub(super) async fn show(context: &Context, at: &LocatedFile, file: &File, tree: &folders::Tree) -> Markup {
    let paging = Paging { limit: Some(MAX_ITEMS), cursor: None };
    let (used, memories, records, linking, related) = tokio::join!(
        used(at),
        // A service's maximum page; nobody has more.
        memories::list(context, Paging::default()),
        records::backlinks(context, at.id, paging),
        linking::to(context, file),
        related::files(context, file.id.clone(), None, Freshness::default()),
    );
    let above = tree.above(file.folder_id.as_deref());
    html! {
        @if let Some(used) = &used { (of_searches(used, &file.id, &at.visitor.address)) }
        h2 { "Memories that hold it" }
        (of_memories(&memories, &file.id, &above, &at.visitor.address))
        h2 { "Records that name it" }
        (of_records(&records, &at.visitor.address))
        h2 { "Files that link to it" }
        (linking::show(&linking, &file.id, &at.visitor.address))
        h2 { "Files that mean nearly the same" }
        (of_files(&related, &at.visitor.address))
    }
}

/// Search statistics, for owners and admins; not while they look as a token.
async fn used(at: &LocatedFile) -> Option<Result<Used, Problem>> {
    if !at.visitor.manages() || at.visitor.seen_as().is_some() {
        return None;
    }
    Some(analytics::freshness(&at.visitor.person, Some(DAYS)).await)
}

fn of_searches(used: &Result<Used, Problem>, file: &str, again: &str) -> Markup {
    let used = match used {
        Ok(used) => used,
        Err(problem) => return part::failed(problem, again),
    };
    let found = used.documents.iter().find(|document| document.id == file);
    html! {
        p {
            @match found {
                Some(found) => { "Searches returned it " (words::count(found.retrieval_count, "time", "times")) " in the last " (DAYS) " days." }
                None => { "It is not among what searches returned most in the last " (DAYS) " days." }
            }
        }
    }
}

/// Memories that contain the file itself or one of its ancestor folders.
fn of_memories(memories: &Result<Page<Memory>, Problem>, file: &str, above: &[&str], again: &str) -> Markup {
    let memories = match memories {
        Err(problem) => return part::failed(problem, again),
        Ok(page) => &page.items,
    };
    let is_file = |member: &Member| member.file_id.as_deref() == Some(file);
    let is_above = |member: &Member| member.folder_id.as_deref().is_some_and(|id| above.contains(&id));
    let holding: Vec<(&Memory, bool)> = memories
        .iter()
        .filter(|memory| memory.members.iter().any(|member| is_file(member) || is_above(member)))
        .map(|memory| (memory, memory.members.iter().any(is_file)))
        .collect();
    html! {
        @if holding.is_empty() { p.quiet { "No memory holds this file." } }
        @else {
            ul {
                @for (memory, is_itself) in holding {
                    li { a href=(places::memory(&memory.id)) { bdi { (memory.name) } } @if !is_itself { ", with a folder that it is in" } }
                }
            }
        }
    }
}

fn of_records(records: &Result<Page<Backlink>, Problem>, again: &str) -> Markup {
    match records {
        Err(problem) => part::failed(problem, again),
        Ok(page) if page.items.is_empty() => html! { p.quiet { "No record names this file." } },
        Ok(page) => html! {
            ul {
                @for link in &page.items {
                    li {
                        a href=(places::record(&link.database_id, &link.record_id)) { bdi { (link.record_title) } }
                        " in " bdi { (link.database_name) }
                        @match &link.property_name {
                            Some(name) => { ", as " bdi { (name) } }
                            None => { ", as the body of its page" }
                        }
                    }
                }
            }
            @if page.next.is_some() { p.quiet { "The first " (page.items.len()) " of " (words::grouped(page.total)) "." } }
        },
    }
}

fn of_files(related: &Result<RelatedFiles, Problem>, again: &str) -> Markup {
    match related {
        Err(problem) => part::failed(problem, again),
        Ok(answer) => html! {
            @if answer.files.is_empty() { p.quiet { "No other file is near it." } }
            ul { @for file in &answer.files { (near(file)) } }
            @for note in &answer.coverage { p.hint { (words::sentence(&note.message)) } }
        },
    }
}

fn near(file: &RelatedFile) -> Markup {
    let lines = match (file.why.to.start_line, file.why.to.end_line) {
        (Some(start), Some(end)) => format!("?lines={start}-{end}#L{start}"),
        _ => String::new(),
    };
    html! {
        li {
            a href={ (address(&file.id)) (lines) } { bdi { (file.path) } }
            @if !file.why.shared_words.is_empty() {
                span.hint { "Both say: " bdi { (file.why.shared_words.join(", ")) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_part_that_fails_says_so_in_its_place() {
        let down =
            Problem::unavailable("a service that this needs does not answer now", Duration::from_secs(1));
        let html = of_files(&Err(down), "/file/1?view=uses").into_string();
        assert!(html.contains("A service that this needs does not answer now."), "{html}");
        assert!(html.contains("<a href=\"/file/1?view=uses\">Try again</a>"), "{html}");
        let none = Page { items: Vec::new(), next: None, total: 0 };
        assert!(of_records(&Ok(none), "/").into_string().contains("No record"));
    }
}
