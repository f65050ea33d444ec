//! `/w/{id}/freshness`: which folders are outdated but much used, for owners and admins.

use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::frame::Page;
use super::parts as part;
use super::visitor::Visitor;
use super::{Answer, MEMBER, words};
use crate::answers::{CitedDocument, Freshness, FreshnessOfFolder};
use crate::extract::Query;
use crate::operations::analytics;
use crate::routes::Routes;
use crate::schema::inputs;

inputs!(PageQuery);

/// The periods offered, in days.
const DAYS: [u32; 3] = [7, 30, 90];
const DEFAULT_DAYS: u32 = 30;
/// Limit of folders and documents on the page; the API has all.
const MAX_ROWS: usize = 30;
const AGES: [&str; 5] = ["A week", "A month", "Three months", "A year", "Older"];

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/freshness", show)
}

/// The period.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct PageQuery {
    days: Option<String>,
}

async fn show(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    let asked = page_query.days.as_deref().and_then(|days| days.parse().ok());
    let days = asked.filter(|days| DAYS.contains(days)).unwrap_or(DEFAULT_DAYS);
    let report = analytics::freshness(&visitor.person, Some(days)).await?;
    let base = format!("/w/{}", visitor.here()?.id);
    let page = Page::new("Freshness").crumbs(vec![("Analytics".to_owned(), format!("{base}/analytics"))]);
    Ok(page.show(&visitor, &body(&base, days, &report)))
}

/// The page without its frame; `base` is the workspace's URL.
pub(super) fn body(base: &str, days: u32, report: &Freshness) -> Markup {
    html! {
        nav.tabs aria-label="How far back" {
            @for choice in DAYS {
                a href={ (base) "/freshness?days=" (choice) } aria-current=[(choice == days).then_some("page")] { (choice) " days" }
            }
        }
        p { "What was found in these days, by how long ago it was changed. What is old and much used comes first: look whether it still holds." }
        @if report.folders.is_empty() {
            (part::empty("Nothing was found in these days.", &html! { p { a href={ (base) "/search" } { "Ask something" } } }))
        } @else {
            (map(&report.folders))
            (documents(&report.documents))
        }
    }
}

fn map(folders: &[FreshnessOfFolder]) -> Markup {
    let shown = folders.iter().take(MAX_ROWS);
    let most = shown.clone().flat_map(|folder| folder.retrievals_by_age).max().unwrap_or_default();
    let columns = [
        "Folder",
        "How old what was found was: a week, a month, three months, a year, older",
        "Found",
        "Age",
    ];
    let rows = html! {
        @for folder in shown.clone() {
            tr {
                th scope="row" { bdi { (folder.path) } }
                td { (strip(folder, most)) }
                td.number { (words::grouped(folder.retrieval_count)) }
                td.number { (words::count(folder.age_days, "day", "days")) }
            }
        }
    };
    let numbers = html! {
        @for folder in shown {
            tr {
                th scope="row" { bdi { (folder.path) } }
                td.number { (words::grouped(folder.document_count)) }
                @for count in folder.retrievals_by_age { td.number { (words::grouped(count)) } }
                td { (part::time(&folder.oldest_updated_at)) }
            }
        }
    };
    let headings = [&["Folder", "Documents"][..], &AGES, &["Oldest"]].concat();
    html! {
        h2 { "Folders" }
        (part::table("Folders by age and use", &columns, &rows))
        details {
            summary { "The numbers" }
            (part::table("Retrievals by the age of what they returned", &headings, &numbers))
        }
        @if folders.len() > MAX_ROWS { p.quiet { "The first " (MAX_ROWS) " of " (words::grouped(folders.len() as u64)) " folders." } }
    }
}

/// A heat strip: a cell for each age class, by the share of retrievals.
fn strip(folder: &FreshnessOfFolder, most: u64) -> Markup {
    let told: Vec<String> = AGES
        .iter()
        .zip(folder.retrievals_by_age)
        .map(|(age, count)| format!("{}: {}", age.to_lowercase(), words::grouped(count)))
        .collect();
    html! {
        svg.strip role="img" aria-label=(told.join(", ")) viewBox="0 0 100 12" preserveAspectRatio="none" {
            @for (at, count) in folder.retrievals_by_age.into_iter().enumerate() {
                rect.ground x=(at * 20) y="0" width="19" height="12" {}
                @if count > 0 { rect.value x=(at * 20) y="0" width="19" height="12" fill-opacity=(strength(count, most)) {} }
            }
        }
    }
}

/// An opacity from a quarter to one.
fn strength(count: u64, most: u64) -> String {
    let percent = 25 + u128::from(count) * 75 / u128::from(most.max(1));
    format!("{:.2}", f64::from(u32::try_from(percent).unwrap_or(100).min(100)) / 100.0)
}

fn documents(cited: &[CitedDocument]) -> Markup {
    let mut oldest: Vec<&CitedDocument> =
        cited.iter().filter(|document| document.updated_at.is_some()).collect();
    // The oldest of the hundred most retrieved.
    oldest.truncate(100);
    oldest.sort_by(|one, other| one.updated_at.cmp(&other.updated_at));
    let rows = html! {
        @for document in oldest.into_iter().take(MAX_ROWS) {
            tr {
                th scope="row" {
                    a href=(own(&document.url)) { bdi { (document.title) } }
                }
                td { bdi { (document.path) } }
                td.number { (words::grouped(document.retrieval_count)) }
                td { (part::time_or(document.updated_at.as_deref(), "not known")) }
            }
        }
    };
    html! {
        h2 { "Documents that are found much and are old" }
        (part::table("Old and found much", &["What", "Where", "Found", "Changed"], &rows))
    }
}

/// The path of one of our URLs.
fn own(url: &str) -> &str {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    host.find('/').and_then(|at| host.get(at..)).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_shown_here() {
        let page = "/databases/1?record=2";
        assert_eq!(own(&format!("https://cairn.example{page}")), page);
        assert_eq!((own(page), own("")), (page, "/"));
    }

    #[test]
    fn a_folder_is_drawn_and_told() {
        let folder = FreshnessOfFolder {
            path: "/<b>".to_owned(),
            document_count: 2,
            retrieval_count: 40,
            age_days: 115,
            oldest_updated_at: "2026-11-23T14:05:09Z".to_owned(),
            retrievals_by_age: [0, 30, 0, 0, 10],
        };
        let html = map(&[folder]).into_string();
        for part in [
            "/&lt;b&gt;",
            "a month: 30",
            "older: 10",
            "115 days",
            "fill-opacity=\"1.00\"",
            "fill-opacity=\"0.50\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(html.matches("rect class=\"value\"").count(), 2, "{html}");
        assert_eq!((strength(0, 0), strength(u64::MAX, 1)), ("0.25".to_owned(), "1.00".to_owned()));
    }
}
