//! Where a file is used: records that name it, and files that mean nearly the same. A part that fails leaves the others.

use cairn_chassis::status::Problem;
use maud::{Markup, html};

use super::address;
use super::at::At;
use crate::answers::{Backlink, File, RelatedFile, RelatedFiles};
use crate::operations::search::Freshness;
use crate::operations::{Context, Page, Paging, records, related};
use crate::pages::words;

const MOST: u32 = 100;

pub(super) async fn show(context: &Context, at: &At, file: &File) -> Markup {
    let paging = Paging { limit: Some(MOST), cursor: None };
    let (records, related) = tokio::join!(
        records::backlinks(context, at.id, paging),
        related::files(context, file.id.clone(), None, Freshness::default()),
    );
    html! {
        h2 { "Records that name it" }
        (of_records(&records))
        h2 { "Files that mean nearly the same" }
        (of_files(&related))
    }
}

fn of_records(records: &Result<Page<Backlink>, Problem>) -> Markup {
    match records {
        Err(problem) => html! { p { (words::told(problem)) } },
        Ok(page) if page.items.is_empty() => html! { p.quiet { "No record names this file." } },
        Ok(page) => html! {
            ul {
                @for link in &page.items {
                    li {
                        bdi { (link.record_title) } " in " bdi { (link.database_name) }
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

fn of_files(related: &Result<RelatedFiles, Problem>) -> Markup {
    match related {
        Err(problem) => html! { p { (words::told(problem)) } },
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
        let html = of_files(&Err(down)).into_string();
        assert!(html.contains("A service that this needs does not answer now."), "{html}");
        let none = Page { items: Vec::new(), next: None, total: 0 };
        assert!(of_records(&Ok(none)).into_string().contains("No record"));
    }
}
