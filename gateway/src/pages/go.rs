//! `/w/{id}/go`: quick navigation: pages and items of a workspace by name. The command palette loads its list.

use cairn_chassis::status::Problem;
use cairn_proto::domain::TrashKind;
use cairn_proto::ids::{DatabaseId, WorkspaceId};
use futures::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::frame::{self, Page};
use super::visitor::Visitor;
use super::{Answer, MEMBER, folders as folder_pages, form, palette, places, words};
use crate::answers::{Database, FoundNames};
use crate::extract::Query;
use crate::operations::files::{self, SearchFiles};
use crate::operations::{Context, Paging, databases, names, records};
use crate::routes::Routes;
use crate::schema::inputs;

inputs!(PageQuery);

/// Limit per kind.
const MAX_PER_KIND: u32 = 8;
/// Limit of databases whose records are searched: each takes a request.
const MAX_DATABASES: u32 = 8;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/go", show)
}

#[derive(Debug, Default, Deserialize, ToSchema)]
struct PageQuery {
    q: Option<String>,
    /// `file` for files only, for the editor's link completion.
    kind: Option<String>,
}

/// A target of the navigation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NavigationTarget {
    kind: &'static str,
    name: String,
    address: String,
}

/// The matches, and the failed parts.
#[derive(Debug, Default)]
struct Found {
    places: Vec<NavigationTarget>,
    problems: Vec<Problem>,
    /// Whether some databases were not searched.
    is_part: bool,
    /// Whether there are more folders, databases or memories than were searched.
    is_part_of_names: bool,
}

impl Found {
    fn take(&mut self, found: Result<Vec<NavigationTarget>, Problem>) {
        match found {
            Ok(found) => self.places.extend(found),
            // An invalid query fails in every part.
            Err(problem) if self.problems.contains(&problem) => {}
            Err(problem) => self.problems.push(problem),
        }
    }
}

/// `GET /w/{id}/go?q=`.
async fn show(visitor: Visitor, Query(asked): Query<PageQuery>) -> Answer {
    // No name contains control characters, and not every database accepts them.
    let typed: String = asked.q.unwrap_or_default().chars().filter(|one| !one.is_control()).collect();
    let typed = typed.trim();
    let found = match asked.kind.as_deref() {
        _ if typed.is_empty() => None,
        Some("file") => Some(find_files(&visitor, typed).await?),
        _ => Some(find(&visitor, typed).await?),
    };
    let body = html! {
        form.filter role="search" method="get" action=(palette::address(visitor.here()?)) {
            div.field {
                label for="f-q" { "Name" }
                input #f-q type="search" name="q" value=(typed) maxlength="255" autocomplete="off" data-key="/";
            }
            button.primary type="submit" { "Find" }
        }
        @match &found {
            None => p.quiet { "Type a part of the name of a page, file, folder, database, record or memory." },
            Some(found) => (list(found)),
        }
    };
    Ok(Page::new("Go to").show(&visitor, &body))
}

fn list(found: &Found) -> Markup {
    html! {
        @for problem in &found.problems { p.notice { (words::describe(problem)) } }
        p role="status" {
            (words::count(found.places.len() as u64, "place", "places")) "."
            @if found.is_part { " Records were looked for in the first " (MAX_DATABASES) " databases." }
            @if found.is_part_of_names { " Not all names were looked through." }
        }
        ul #found {
            @for place in &found.places {
                li { a href=(place.address) { bdi { (place.name) } } " " span.quiet { (place.kind) } }
            }
        }
    }
}

/// Everything whose name contains the words; a part that fails does not affect the others.
async fn find(visitor: &Visitor, typed: &str) -> Result<Found, crate::error::Error> {
    let (here, context) = (visitor.here()?.id, visitor.context()?);
    let first = Paging { limit: Some(MAX_DATABASES), cursor: None };
    let (of_files, named, asked) = tokio::join!(
        found_files(&context, typed),
        names::find(&context.upstreams, &context.call, typed.to_owned(), Some(MAX_PER_KIND)),
        databases::list(&context, None, first),
    );
    let mut found = Found::default();
    found.take(Ok(pages(visitor, here, typed)));
    found.take(of_files);
    let named = match named {
        Ok(named) => named,
        Err(problem) => {
            found.take(Err(problem));
            FoundNames::default()
        }
    };
    found.is_part_of_names = named.is_part;
    found.take(Ok(found_items(here, &named, &[TrashKind::Folder, TrashKind::Database])));
    match asked {
        Ok(asked) => {
            found.is_part = asked.total > asked.items.len() as u64;
            for of_one in
                join_all(asked.items.iter().map(|database| found_records(&context, database, typed))).await
            {
                found.take(of_one);
            }
        }
        Err(problem) => found.take(Err(problem)),
    }
    found.take(Ok(found_items(here, &named, &[TrashKind::Memory])));
    Ok(found)
}

/// The files whose names contain the words.
async fn find_files(visitor: &Visitor, typed: &str) -> Result<Found, crate::error::Error> {
    let mut found = Found::default();
    found.take(found_files(&visitor.context()?, typed).await);
    Ok(found)
}

fn pages(visitor: &Visitor, here: impl std::fmt::Display, typed: &str) -> Vec<NavigationTarget> {
    let fitting = frame::entries(visitor).filter(|entry| has(entry.title(), typed));
    fitting
        .map(|entry| NavigationTarget {
            kind: "page",
            name: entry.title().to_owned(),
            address: format!("/w/{here}{}", entry.path),
        })
        .collect()
}

async fn found_files(context: &Context, typed: &str) -> Result<Vec<NavigationTarget>, Problem> {
    let input = form::input::<SearchFiles>(json!({"query": typed, "limit": MAX_PER_KIND}))?;
    let found = files::search(context, input).await?.items;
    Ok(found
        .into_iter()
        .map(|one| NavigationTarget { kind: "file", address: places::file(&one.id), name: one.path })
        .collect())
}

/// The items of some kinds.
fn found_items(here: WorkspaceId, found: &FoundNames, kinds: &[TrashKind]) -> Vec<NavigationTarget> {
    let place = |kind: TrashKind, id: &str, name: &str, path: Option<&str>| {
        let address = match kind {
            TrashKind::Folder => folder_pages::address(here, Some(id)),
            TrashKind::Database => places::database(id),
            TrashKind::Memory => places::memory(id),
            TrashKind::File | TrashKind::Record => return None,
        };
        let name = path.map_or_else(|| name.to_owned(), |path| format!("{path}/"));
        Some(NavigationTarget { kind: kind.as_str(), name, address })
    };
    let of_kinds = found.items.iter().filter_map(|item| {
        let kind = TrashKind::from_number(item.kind).filter(|kind| kinds.contains(kind))?;
        place(kind, &item.id, &item.name, item.path.as_deref())
    });
    of_kinds.collect()
}

/// The records of a database that match the words, title matches first.
async fn found_records(
    context: &Context,
    database: &Database,
    typed: &str,
) -> Result<Vec<NavigationTarget>, Problem> {
    let Ok(id) = database.id.parse::<DatabaseId>() else { return Ok(Vec::new()) };
    let selection = records::Selection {
        search: Some(typed.to_owned()),
        limit: Some(MAX_PER_KIND),
        ..records::Selection::default()
    };
    let mut found = records::list(context, id, selection).await?.records;
    found.sort_by_key(|record| !has(&record.title, typed));
    Ok(found
        .into_iter()
        .map(|record| NavigationTarget {
            kind: "record",
            address: places::record(&database.id, &record.id),
            name: format!("{} · {}", record.title, database.name),
        })
        .collect())
}

/// Case-insensitive substring match.
fn has(name: &str, typed: &str) -> bool {
    name.to_lowercase().contains(&typed.to_lowercase())
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;

    use super::*;

    #[test]
    fn names_are_shown_as_text_and_a_problem_is_told_once() {
        let wrong = || Err(Problem::validation(vec![Violation::new("query", "too_long", "is too long")]));
        let mut found = Found::default();
        found.take(wrong());
        found.take(wrong());
        let place = NavigationTarget { kind: "file", name: "<b>".to_owned(), address: "/file/x".to_owned() };
        found.take(Ok(vec![place]));
        let html = list(&found).into_string();
        assert_eq!(html.matches("is too long").count(), 1, "{html}");
        assert!(
            html.contains("<a href=\"/file/x\"><bdi>&lt;b&gt;</bdi></a>") && html.contains("1 place."),
            "{html}"
        );
        assert!(!html.contains("Records were looked for"), "{html}");
        assert!(has("Release plans", "PLAN") && !has("Release", "plan"));
    }
}
