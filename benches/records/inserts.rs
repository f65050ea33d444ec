//! Single-record inserts: CPU time per record until search finds it, and throughput.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{Api, accepted};
use crate::mesh::Measured;
use crate::report::Table;
use crate::sample::Sample;
use crate::tasks::Row;

pub(crate) const WRITERS: u32 = 8;
const WARM_UP: u32 = 20;
const FOUND_TIMEOUT: Duration = Duration::from_secs(120);

/// A server to insert records into.
pub(crate) trait Target {
    /// Identifies an inserted record.
    type Receipt;

    /// Inserts a record with a unique number.
    async fn insert(&self, number: u32) -> anyhow::Result<Self::Receipt>;

    /// Waits until search finds a record, and so all inserted before it.
    async fn until_found(&self, receipt: &Self::Receipt) -> anyhow::Result<()>;
}

/// The cost of inserts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// CPU milliseconds of the server per record until search finds it, with one writer.
    pub(crate) alone: f64,
    /// The same with several writers.
    pub(crate) together: f64,
    /// Latency in milliseconds until a record is acknowledged, with one writer.
    pub(crate) wall: f64,
    /// Records per second that are acknowledged, with several writers.
    pub(crate) per_second: f64,
}

/// Inserts `alone` records with one writer, then `together` with several. Includes the cost of the search that finds the last one.
pub(crate) async fn measure(
    server: &impl Measured,
    target: &impl Target,
    alone: u32,
    together: u32,
) -> anyhow::Result<Cost> {
    let (first, last) = (WARM_UP + alone, WARM_UP + alone + together);
    // Also waits until the initial records are indexed.
    target.until_found(&insert(target, 0..WARM_UP).await?).await?;
    let (before, began) = (server.spent()?, Instant::now());
    let receipt = insert(target, WARM_UP..first).await?;
    let wall = began.elapsed();
    target.until_found(&receipt).await?;
    let by_one = server.spent()?.since(&before).total();

    let (before, began, next) = (server.spent()?, Instant::now(), AtomicU32::new(first));
    let writers = (0..WRITERS).map(|_| async {
        let mut receipt = None;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= last {
                return anyhow::Ok(receipt);
            }
            receipt = Some(target.insert(number).await?);
        }
    });
    let receipts = futures::future::try_join_all(writers).await?;
    let took = began.elapsed();
    for receipt in receipts.iter().flatten() {
        target.until_found(receipt).await?;
    }
    let by_many = server.spent()?.since(&before).total();
    let each = |time: Duration, records: u32| time.as_secs_f64() * 1e3 / f64::from(records);
    Ok(Cost {
        alone: each(by_one, alone),
        together: each(by_many, together),
        wall: each(wall, alone),
        per_second: f64::from(together) / took.as_secs_f64(),
    })
}

/// Inserts records sequentially; returns the receipt of the last.
async fn insert<T: Target>(target: &T, numbers: std::ops::Range<u32>) -> anyhow::Result<T::Receipt> {
    let mut last = None;
    for number in numbers {
        last = Some(target.insert(number).await?);
    }
    last.context("no record to insert")
}

/// Adds a row to the report.
pub(crate) fn add(table: &mut Table, whose: &str, cost: &Cost) {
    let cell = |figure: f64| format!("{figure:.3}");
    let name = format!("{whose}: insert, found ({:.0} a second by {WRITERS})", cost.per_second);
    table.row(vec![name, cell(cost.alone), cell(cost.together), cell(cost.wall)]);
}

/// The database of a running Cairn.
#[derive(Debug)]
pub(crate) struct Cairn<'a> {
    pub(crate) api: &'a Api,
    pub(crate) sample: &'a Sample,
    /// How many records it was filled with.
    pub(crate) records: u32,
}

/// A record of Cairn.
#[derive(Debug)]
pub(crate) struct Inserted {
    id: String,
    /// A word that is unique to the record.
    word: String,
    /// The value of `X-Cairn-Change`.
    change: String,
}

impl Target for Cairn<'_> {
    type Receipt = Inserted;

    async fn insert(&self, number: u32) -> anyhow::Result<Inserted> {
        let word = format!("inserted{number}");
        let mut row = Row::of(number, self.records);
        row.name = format!("{} {word}", row.name);
        let path = format!("/api/v1/databases/{}/records", self.sample.database);
        let body = json!({"values": self.sample.values(&row)});
        let response = accepted(self.api.request(Method::POST, &path).json(&body)).await?;
        let change = response.headers().get("x-cairn-change").and_then(|value| value.to_str().ok());
        let change = change.context("a write answered no X-Cairn-Change")?.to_owned();
        let record: Value = response.json().await?;
        let id = record.get("id").and_then(Value::as_str).context("a record without id")?.to_owned();
        Ok(Inserted { id, word, change })
    }

    async fn until_found(&self, inserted: &Inserted) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let request = self.api.request(Method::POST, "/api/v1/search_context");
            let request =
                request.header("X-Cairn-Change", &inserted.change).header("X-Cairn-Wait-Ms", "10000");
            let body = json!({"query": inserted.word, "limit": 10});
            let answer: Value = accepted(request.json(&body)).await?.json().await?;
            let results = answer.get("results").and_then(Value::as_array).into_iter().flatten();
            let mut records = results.filter_map(|result| result.get("recordId").and_then(Value::as_str));
            if records.any(|id| id == inserted.id) {
                return Ok(());
            }
            ensure!(began.elapsed() < FOUND_TIMEOUT, "a record is not found after {FOUND_TIMEOUT:?}");
        }
    }
}
