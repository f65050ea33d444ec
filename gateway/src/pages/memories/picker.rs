//! Finds items to add to a memory, by name. A part that fails does not affect the others.

use cairn_chassis::status::Problem;
use cairn_proto::domain::MemberKind;
use maud::{Markup, html};
use serde_json::json;

use super::{address, kind};
use crate::answers::ResolvedMemory;
use crate::error::Error;
use crate::operations::files::{self, SearchFiles};
use crate::operations::{Context, Paging, databases, folders};
use crate::pages::parts as part;
use crate::pages::visitor::Visitor;
use crate::pages::{form, words};

/// Limit per kind.
const MAX_PER_KIND: usize = 20;

/// A candidate member.
struct Candidate {
    kind: MemberKind,
    id: String,
    /// Its path, or its name if it has none.
    name: String,
}

/// The search form with its results; empty without a query.
pub(super) async fn show(
    visitor: &Visitor,
    memory: &ResolvedMemory,
    looked_for: &str,
) -> Result<Markup, Error> {
    let base = address(&memory.id);
    let found =
        if looked_for.is_empty() { None } else { Some(offers(&visitor.context()?, looked_for).await) };
    Ok(html! {
        form.filter role="search" method="get" action=(base) {
            div.field {
                label for="f-q" { "Add files, folders and databases" }
                input #f-q type="search" name="q" value=(looked_for) maxlength="255" autocomplete="off" required placeholder="A part of the name" data-key="/";
            }
            button type="submit" { "Find" }
        }
        @if let Some((offers, problems)) = &found {
            @for problem in problems { (part::failed(problem, &visitor.address)) }
            (results(&base, offers))
        }
    })
}

fn results(base: &str, offers: &[Candidate]) -> Markup {
    let rows = html! {
        @for offer in offers {
            tr {
                td { input type="checkbox" name="item" form="add" value={ (offer.kind.as_str()) ":" (offer.id) } aria-label={ "Select " (offer.name) }; }
                th scope="row" { bdi { (offer.name) } }
                td { (kind(offer.kind)) }
                td { (part::action(&format!("{base}/add"), "Add", &offer.name, &[("item", &format!("{}:{}", offer.kind.as_str(), offer.id))])) }
            }
        }
    };
    html! {
        p role="status" { (words::count(offers.len() as u64, "thing was", "things were")) " found." }
        @if !offers.is_empty() {
            (part::table("Found", &["", "Name", "Kind", ""], &rows))
            form #add .buttons method="post" action={ (base) "/add" } { button.primary type="submit" { "Add selected" } }
        }
    }
}

async fn offers(context: &Context, name: &str) -> (Vec<Candidate>, Vec<Problem>) {
    let (files, folders, databases) =
        tokio::join!(of_files(context, name), of_folders(context, name), of_databases(context, name));
    let (mut offers, mut problems) = (Vec::new(), Vec::new());
    for found in [folders, databases, files] {
        match found {
            Ok(found) => offers.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    // An invalid query fails in every part.
    problems.dedup();
    (offers, problems)
}

async fn of_files(context: &Context, name: &str) -> Result<Vec<Candidate>, Problem> {
    let input = form::input::<SearchFiles>(json!({"query": name, "limit": MAX_PER_KIND}))?;
    let found = files::search(context, input).await?.items;
    Ok(found
        .into_iter()
        .map(|file| Candidate { kind: MemberKind::File, id: file.id, name: file.path })
        .collect())
}

async fn of_folders(context: &Context, name: &str) -> Result<Vec<Candidate>, Problem> {
    let listed = folders::list(context, folders::Selection::default(), Paging::default()).await?.items;
    let fitting = listed.into_iter().filter(|folder| has(&folder.path, name));
    Ok(fitting
        .take(MAX_PER_KIND)
        .map(|folder| Candidate {
            kind: MemberKind::Folder,
            id: folder.id,
            name: format!("{}/", folder.path),
        })
        .collect())
}

async fn of_databases(context: &Context, name: &str) -> Result<Vec<Candidate>, Problem> {
    let listed = databases::list(context, None, Paging::default()).await?.items;
    let fitting = listed.into_iter().filter(|database| has(&database.name, name));
    Ok(fitting
        .take(MAX_PER_KIND)
        .map(|database| Candidate { kind: MemberKind::Database, id: database.id, name: database.name })
        .collect())
}

/// Case-insensitive substring match.
fn has(name: &str, words: &str) -> bool {
    name.to_lowercase().contains(&words.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_offered_with_its_kind() {
        let offer = |kind, name: &str| Candidate { kind, id: "0199c0de".to_owned(), name: name.to_owned() };
        let html =
            results("/memories/m", &[offer(MemberKind::File, "<b>"), offer(MemberKind::Folder, "/a/")])
                .into_string();
        for part in
            ["value=\"file:0199c0de\"", "value=\"folder:0199c0de\"", "&lt;b&gt;", "2 things were found."]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!results("/memories/m", &[]).into_string().contains("Add selected"));
        assert!(has("/Plans/Release", "release") && !has("/Plans", "release"));
    }
}
