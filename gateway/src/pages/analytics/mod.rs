//! `/w/{id}/analytics`: retrieval analytics, for owners and admins. Each chart has its numbers as a table.

mod daily;
mod used;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::frame::Page;
use super::parts as part;
use super::visitor::Visitor;
use super::{Answer, MEMBER, places, words};
use cairn_proto::domain::DocumentKind;

use crate::answers::{Figures, RetrievalAnalytics, TopDocument};
use crate::error::Error;
use crate::extract::Query;
use crate::operations::analytics;
use crate::routes::Routes;
use crate::schema::inputs;

inputs!(PageQuery);

/// The periods offered, in days.
const DAYS: [u32; 3] = [7, 30, 90];
const DEFAULT_DAYS: u32 = 30;

pub(super) fn routes() -> Routes {
    Routes::default().get(MEMBER, "/w/{id}/analytics", show).get(MEMBER, "/w/{id}/analytics/csv", export)
}

/// The period.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct PageQuery {
    days: Option<String>,
}

impl PageQuery {
    /// The period, if it is one of those offered.
    fn days(&self) -> u32 {
        let asked = self.days.as_deref().and_then(|days| days.parse().ok());
        asked.filter(|days| DAYS.contains(days)).unwrap_or(DEFAULT_DAYS)
    }
}

async fn read(visitor: &Visitor, page_query: &PageQuery) -> Result<RetrievalAnalytics, Error> {
    Ok(analytics::retrieval(&visitor.person, visitor.here()?.id, Some(page_query.days())).await?)
}

async fn show(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    let report = read(&visitor, &page_query).await?;
    let base = format!("/w/{}", visitor.here()?.id);
    Ok(Page::new("Analytics").show(&visitor, &body(&base, page_query.days(), &report)))
}

/// The daily figures as CSV.
async fn export(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    let report = read(&visitor, &page_query).await?;
    let mut response: Response = daily::csv(&report.daily).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"retrievals.csv\""),
    );
    Ok(response)
}

/// The page without its frame; `base` is the workspace's URL.
pub(super) fn body(base: &str, days: u32, report: &RetrievalAnalytics) -> Markup {
    html! {
        nav.tabs aria-label="How far back" {
            @for choice in DAYS {
                a href={ (base) "/analytics?days=" (choice) } aria-current=[(choice == days).then_some("page")] { (choice) " days" }
            }
        }
        p.quiet { (report.from) " to " (report.to) ", days of UTC · counted until " (part::time(&report.generated_at)) }
        (answers(base, days, &report.total))
        @if report.total.query_volume == 0 {
            (part::empty("Nothing was asked in these days.", &html! { p { a href={ (base) "/connect" } { "Connect an agent" } } }))
        } @else {
            (figures(&report.total))
            (daily::charts(&report.daily))
            (used::show(&report.billing_dimensions))
            (documents(&report.top_documents))
        }
        (activation(report))
        p {
            a.button href={ (base) "/analytics/csv?days=" (days) } { "Export CSV" }
            " " a.button href={ (base) "/freshness?days=" (days) } { "Freshness: what is old and much used" }
            " " a href={ (base) "/settings" } { "What the plan allows, and what is used of it" }
        }
    }
}

/// The share of successful retrievals in one line, also shown on the overview.
fn answers(base: &str, days: u32, total: &Figures) -> Markup {
    html! {
        p #answers {
            @if total.query_volume == 0 { "Nothing was asked in the last " (days) " days. " }
            @else {
                (words::grouped(total.no_result_count)) " of " (words::count(total.query_volume, "question", "questions"))
                " in the last " (days) " days found nothing. "
            }
            a href={ (base) "/analytics?days=" (days) } { "Analytics" }
        }
    }
}

fn figures(total: &Figures) -> Markup {
    html! {
        dl.facts {
            dt { "Retrievals" } dd { (words::grouped(total.query_volume)) }
            dt { "Without a result" } dd { (words::grouped(total.no_result_count)) (percent(total.no_result_rate)) }
            dt { "Failed" } dd { (words::grouped(total.failed_count)) }
            dt { "Query vectors remembered" } dd { (words::grouped(total.cache_hit_count)) (percent(total.cache_rate)) }
            dt { "Time, half of them" } dd { (milliseconds(total.latency.as_ref().map(|latency| latency.p50_ms))) }
            dt { "Time, 95 of 100" } dd { (milliseconds(total.latency.as_ref().map(|latency| latency.p95_ms))) }
        }
    }
}

fn percent(rate: Option<f64>) -> String {
    rate.map(|rate| format!(" ({:.1} %)", rate * 100.0)).unwrap_or_default()
}

/// A duration for people.
fn milliseconds(time: Option<f64>) -> String {
    time.map_or_else(|| "none".to_owned(), |time| format!("{time:.1} ms"))
}

fn documents(top: &[TopDocument]) -> Markup {
    let rows = html! {
        @for document in top {
            tr {
                th scope="row" { (titled(document)) }
                td { bdi { (document.path.as_deref().unwrap_or_default()) } }
                td.number { (words::grouped(document.retrieval_count)) }
                td.number { (words::grouped(document.best_count)) }
            }
        }
    };
    html! {
        h2 { "Found most" }
        @if top.is_empty() { p.quiet { "Nothing was found." } }
        @else { (part::table("Found most", &["What", "Where", "Found", "Found first"], &rows)) }
    }
}

fn titled(document: &TopDocument) -> Markup {
    let Some(title) = &document.title else {
        return html! { span.quiet { "no longer there" } };
    };
    // The URL of a record requires its database.
    let of_record = document.url.clone().filter(|_| document.kind == DocumentKind::Record);
    html! {
        @match places::of(document.kind, &document.id, None).or(of_record) {
            Some(address) => { a href=(address) { bdi { (title) } } }
            None => { bdi { (title) } }
        }
    }
}

/// The activation milestones of agents.
fn activation(report: &RetrievalAnalytics) -> Markup {
    let agents = &report.mcp_activation;
    html! {
        h2 { "Agents" }
        p {
            @if agents.activated { (part::badge(part::Tone::Ok, "Active")) " An agent has found something over MCP." }
            @else { (part::badge(part::Tone::Plain, "Not yet")) " No agent has found anything over MCP." }
        }
        dl.facts {
            dt { "First connection" } dd { (part::time_or(agents.first_connection_at.as_deref(), "none yet")) }
            dt { "First question" } dd { (part::time_or(agents.first_retrieval_at.as_deref(), "none yet")) }
            dt { "First answer" } dd { (part::time_or(agents.first_successful_retrieval_at.as_deref(), "none yet")) }
            @if let Some(first) = &report.first_successful_retrieval {
                dt { "First answer of all" } dd { (part::time(&first.at)) " · " (first.operation) " · " (first.channel) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_is_looked_at() {
        for (asked, days) in [(None, 30), (Some("7"), 7), (Some("90"), 90), (Some("91"), 30), (Some("x"), 30)]
        {
            assert_eq!(PageQuery { days: asked.map(ToOwned::to_owned) }.days(), days, "{asked:?}");
        }
    }

    #[test]
    fn rates_of_nothing_are_left_out() {
        assert_eq!((percent(None), percent(Some(0.125))), (String::new(), " (12.5 %)".to_owned()));
        assert_eq!((milliseconds(None), milliseconds(Some(1.5))), ("none".to_owned(), "1.5 ms".to_owned()));
    }
}
