//! The report of a workspace's last days.

use std::collections::BTreeMap;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::ids::WorkspaceId;

use super::day::Day;
use super::latency::{Histogram, Latency};
use super::rollup::{Counts, Milestone};
use crate::store;
use crate::store::counts::Share;
use crate::store::documents::Found;
use crate::store::firsts::Reached;
use crate::store::latencies::Answers;

/// The default range.
const DEFAULT_DAYS: u32 = 30;
/// The maximal range (spec 4.11).
pub(super) const MAX_DAYS: u32 = 90;
const TOP_DOCUMENTS: i64 = 20;
/// Documents whose age is reported.
const MAX_CITED: i64 = 500;
const TOP_PRINCIPALS: usize = 100;

/// The report of a range of days.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) days: Vec<DayOfReport>,
    pub(crate) total: Sum,
    pub(crate) top_documents: Vec<Found>,
    pub(crate) first_success: Option<Reached>,
    pub(crate) mcp: Activation,
    pub(crate) by_operation: BTreeMap<String, Sum>,
    pub(crate) by_channel: BTreeMap<String, Counts>,
    pub(crate) by_strategy: BTreeMap<String, Counts>,
    pub(crate) by_plan: BTreeMap<String, Counts>,
    /// The most first.
    pub(crate) by_principal: Vec<((String, String), Counts)>,
    pub(crate) at: Timestamp,
}

/// One day of it.
#[derive(Debug)]
pub(crate) struct DayOfReport {
    pub(crate) day: Day,
    pub(crate) sum: Sum,
}

/// How many, and how fast.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(crate) counts: Counts,
    pub(crate) latency: Option<Latency>,
}

/// When agents first came over MCP, asked, and were answered.
#[derive(Debug, Default)]
pub(crate) struct Activation {
    pub(crate) connection: Option<Timestamp>,
    pub(crate) retrieval: Option<Timestamp>,
    pub(crate) success: Option<Timestamp>,
}

/// How far back to look, as it was asked for; 0 when it was not.
pub(crate) fn days(asked: u32) -> Result<u32, Problem> {
    match asked {
        0 => Ok(DEFAULT_DAYS),
        1..=MAX_DAYS => Ok(asked),
        _ => {
            let message = wording::between(1, MAX_DAYS);
            Err(Problem::validation(vec![Violation::new("days", "out_of_range", message)]))
        }
    }
}

/// The documents that most answers of the days up to and with today held.
pub(super) async fn cited(
    db: &Db,
    workspace: WorkspaceId,
    days: u32,
    now: Timestamp,
) -> Result<Vec<Found>, Error> {
    let today = Day::of(now);
    let range = (today.minus(days.saturating_sub(1)), today);
    let mut tx = db.begin_read().await?;
    let cited = store::documents::list_top(&mut tx, workspace, range, MAX_CITED).await?;
    tx.commit().await?;
    Ok(cited)
}

/// All that one moment's tables hold of the days up to and with today.
pub(super) async fn read(
    db: &Db,
    workspace: WorkspaceId,
    days: u32,
    now: Timestamp,
) -> Result<Report, Error> {
    let today = Day::of(now);
    let range = (today.minus(days.saturating_sub(1)), today);
    let mut tx = db.begin_read().await?;
    let by_day = store::counts::by_day(&mut tx, workspace, range).await?;
    let shares = store::counts::by_dimensions(&mut tx, workspace, range).await?;
    let answers = store::latencies::list(&mut tx, workspace, range).await?;
    let top_documents = store::documents::list_top(&mut tx, workspace, range, TOP_DOCUMENTS).await?;
    let firsts = store::firsts::list(&mut tx, workspace).await?;
    tx.commit().await?;

    let latencies = Latencies::of(&answers);
    let mut total = Counts::default();
    shares.iter().for_each(|share| total.add(&share.counts));
    Ok(Report {
        days: series(range, &by_day, &latencies),
        total: Sum { counts: total, latency: latencies.all.latency() },
        top_documents,
        mcp: activation(&firsts),
        first_success: firsts.into_iter().find(|first| first.is(Milestone::Success)),
        by_operation: by_operation(&shares, &latencies),
        by_channel: grouped(&shares, |share| share.channel.clone()),
        by_strategy: grouped(&shares, |share| share.strategy.clone()),
        by_plan: grouped(&shares, |share| share.plan.clone()),
        by_principal: by_principal(&shares),
        at: now,
    })
}

/// The histograms of the range, put together in three ways.
#[derive(Debug, Default)]
struct Latencies {
    all: Histogram,
    by_day: BTreeMap<Day, Histogram>,
    by_operation: BTreeMap<String, Histogram>,
}

impl Latencies {
    fn of(answers: &[Answers]) -> Self {
        let mut latencies = Self::default();
        for some in answers {
            latencies.all.add(some.bucket, some.count);
            latencies.by_day.entry(some.day).or_default().add(some.bucket, some.count);
            latencies.by_operation.entry(some.operation.clone()).or_default().add(some.bucket, some.count);
        }
        latencies
    }
}

/// Every day of the range, those without retrievals too.
fn series((first, last): (Day, Day), by_day: &[(Day, Counts)], latencies: &Latencies) -> Vec<DayOfReport> {
    let counts: BTreeMap<Day, Counts> = by_day.iter().copied().collect();
    let sum = |day: Day| Sum {
        counts: counts.get(&day).copied().unwrap_or_default(),
        latency: latencies.by_day.get(&day).and_then(Histogram::latency),
    };
    first.to(last).map(|day| DayOfReport { day, sum: sum(day) }).collect()
}

fn by_operation(shares: &[Share], latencies: &Latencies) -> BTreeMap<String, Sum> {
    let counts = grouped(shares, |share| share.operation.clone());
    let sum = |(operation, counts): (String, Counts)| {
        let latency = latencies.by_operation.get(&operation).and_then(Histogram::latency);
        (operation, Sum { counts, latency })
    };
    counts.into_iter().map(sum).collect()
}

fn by_principal(shares: &[Share]) -> Vec<((String, String), Counts)> {
    let mut principals: Vec<_> = grouped(shares, |share| share.principal.clone()).into_iter().collect();
    principals.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.total));
    principals.truncate(TOP_PRINCIPALS);
    principals
}

fn grouped<K: Ord>(shares: &[Share], key: impl Fn(&Share) -> K) -> BTreeMap<K, Counts> {
    let mut groups: BTreeMap<K, Counts> = BTreeMap::new();
    for share in shares {
        groups.entry(key(share)).or_default().add(&share.counts);
    }
    groups
}

fn activation(firsts: &[Reached]) -> Activation {
    let by_mcp = |milestone| {
        firsts.iter().find(|first| first.is_by(Channel::Mcp) && first.is(milestone)).map(|first| first.at)
    };
    Activation {
        connection: by_mcp(Milestone::Connection),
        retrieval: by_mcp(Milestone::Retrieval),
        success: by_mcp(Milestone::Success),
    }
}
