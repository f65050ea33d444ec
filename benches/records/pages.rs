//! The measured queries, and the measurement of their cost.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;

use crate::api::{Api, accepted};
use crate::mesh::Measured;
use crate::report::Table;
use crate::sample::Sample;
use crate::tasks::WORDS;

pub(crate) const PAGE: u32 = 50;
/// The last offset of the queries that go through consecutive pages.
pub(crate) const LAST_OFFSET: u32 = 950;
pub(crate) const MIN_REQUESTS: u32 = 16;
/// Concurrent clients.
const CLIENTS: u32 = 8;
/// Distinct offsets of the query that is spread over the whole database.
const FAR_PAGES: u32 = 200;

/// A query that is measured.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) name: String,
    pub(crate) is_search: bool,
    pub(crate) path: String,
    /// Suffixes of the path that the requests cycle through; empty if all requests are the same.
    pub(crate) others: Vec<String>,
    /// Offsets that the requests cycle through.
    pub(crate) offsets: Vec<u32>,
}

/// Milliseconds per request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// CPU time of the server with one client.
    pub(crate) alone: f64,
    /// The same with several clients.
    pub(crate) together: f64,
    /// Latency with one client.
    pub(crate) wall: f64,
}

impl Sample {
    /// The queries on the database; `middle` is one of its records.
    pub(crate) fn questions(&self, records: u32, middle: &str) -> Vec<Question> {
        let near: Vec<u32> = (0..=LAST_OFFSET).step_by(PAGE as usize).collect();
        let deep = vec![records / 2, records - 2 * PAGE];
        let by_points = format!("sortFieldId={}", self.field(2));
        let is = |field: usize, operator: &str, value: &str| {
            format!("filterFieldId={}&filterOperator={operator}&filterValue={value}", self.field(field))
        };
        let status = is(5, "equals", "Doing");
        let few = vec![0];
        let ask = |name: &str, is_search: bool, query: String, offsets: &[u32]| Question {
            name: name.to_owned(),
            is_search,
            path: format!("/api/v1/databases/{}/records?limit={PAGE}&{query}", self.database),
            others: Vec::new(),
            offsets: offsets.to_vec(),
        };
        // More distinct queries than any cache has entries, so that each is evaluated.
        let pairs = |query: &dyn Fn(&str, &str) -> String| -> Vec<String> {
            let second = WORDS.iter().cycle().skip(7);
            WORDS.iter().zip(second).map(|(one, other)| format!("&{}", query(one, other))).collect()
        };
        let far = (0..records.saturating_sub(PAGE)).step_by((records / FAR_PAGES).max(1) as usize);
        let far: Vec<u32> = far.collect();
        let texts = pairs(&|one, other| is(1, "contains", &format!("{one}%20{other}")));
        let searches = pairs(&|one, other| format!("search={one}%20{other}"));
        vec![
            ask("filter by a select, sort by a number", false, format!("{status}&{by_points}"), &near),
            ask(
                "filter by a text, sort by a number",
                false,
                format!("{}&{by_points}", is(1, "contains", "quorum%20retry")),
                &few,
            ),
            Question {
                others: texts,
                ..ask("filter by another text each time, sort by a number", false, by_points.clone(), &few)
            },
            ask("all, sort by a number", false, by_points.clone(), &near),
            ask("all, sort by a number, everywhere", false, by_points.clone(), &far),
            ask(
                "all, sort by a text, deep",
                false,
                format!("sortFieldId={}&sortDirection=desc", self.field(0)),
                &deep,
            ),
            ask(
                "filter by a select, sort by a number, deep",
                false,
                format!("{status}&{by_points}"),
                &[records / 5 - 2 * PAGE],
            ),
            ask("the page of a record, sorted", false, format!("recordId={middle}&{by_points}"), &few),
            ask("search of a rare word", true, "search=4711".to_owned(), &few),
            ask("search of two words", true, "search=quorum%20budget".to_owned(), &few),
            Question {
                others: searches,
                ..ask("search of two other words each time", true, by_points.clone(), &few)
            },
            ask("search, sort by a number", true, format!("search=staging&{by_points}"), &near),
        ]
    }
}

/// Runs a query `requests` times with one client, and as often with several.
pub(crate) async fn measure(
    server: &impl Measured,
    api: &Api,
    question: &Question,
    requests: u32,
) -> anyhow::Result<Cost> {
    let requests = requests.max(MIN_REQUESTS);
    let ask = async |number: u32| -> anyhow::Result<()> {
        let place = number as usize % question.offsets.len().max(1);
        let offset = question.offsets.get(place).copied().unwrap_or_default();
        let other = number as usize % question.others.len().max(1);
        let other = question.others.get(other).map(String::as_str).unwrap_or_default();
        let path = format!("{}{other}&offset={offset}", question.path);
        accepted(api.request(Method::GET, &path)).await?.bytes().await?;
        Ok(())
    };
    for number in 0..requests.min(20) {
        ask(number).await?;
    }
    let (before, began) = (server.spent()?, Instant::now());
    for number in 0..requests {
        ask(number).await?;
    }
    let wall = began.elapsed();
    let alone = server.spent()?.since(&before).total();
    let (before, next) = (server.spent()?, AtomicU32::new(0));
    let askers = (0..CLIENTS).map(|_| async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= requests {
                return anyhow::Ok(());
            }
            ask(number).await?;
        }
    });
    futures::future::try_join_all(askers).await?;
    let together = server.spent()?.since(&before).total();
    let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(requests);
    Ok(Cost { alone: each(alone), together: each(together), wall: each(wall) })
}

/// Adds a row to the report.
pub(crate) fn add(table: &mut Table, name: &str, cost: &Cost) {
    let cell = |figure: f64| format!("{figure:.3}");
    table.row(vec![name.to_owned(), cell(cost.alone), cell(cost.together), cell(cost.wall)]);
}
