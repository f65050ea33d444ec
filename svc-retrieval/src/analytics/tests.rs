//! Counting and telling, on every engine.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::{Call, Channel};
use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::identity::{Identity, Permission, Scope};
use cairn_chassis::sql::{self, plans};
use cairn_chassis::status::Problem;
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::{TestDb, engines};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::report::MAX_DAYS;
use super::*;
use crate::error::Error;

const NOON: &str = "2026-11-21T12:00:00Z";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Bench {
    test: TestDb,
    issuer: Issuer,
    clock: Arc<ManualClock>,
    workspace: WorkspaceId,
}

async fn benches() -> Vec<Bench> {
    let bench = |test| Bench {
        test,
        issuer: Issuer::new().unwrap(),
        clock: Arc::new(ManualClock::new(Timestamp::parse_rfc3339(NOON).unwrap())),
        workspace: WorkspaceId(Uuid::from_u128(1)),
    };
    engines().await.into_iter().map(bench).collect()
}

impl Bench {
    /// As a process opens it; its seed makes it hold leases of its own.
    async fn open(&self, seed: u64) -> Analytics {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let verifier = self.issuer.ambient().verifier;
        let ambient = Ambient::new(clock, Arc::new(SeededEntropy::new(seed)), verifier);
        Analytics::open(&self.test.config, &ambient).await.unwrap()
    }

    fn token(&self, workspace: WorkspaceId) -> Identity {
        self.issuer.token(workspace, &[Permission::Read], Scope::All)
    }

    /// A retrieval that takes so long.
    fn retrieve(&self, analytics: &Analytics, channel: Channel, took: Duration, found: Option<Found>) {
        let call = Call::within(Duration::from_secs(9)).with_channel(channel);
        let token = self.token(self.workspace);
        let measured = analytics.begin(&token, &call, Operation::SearchContext, Strategy::Hybrid);
        self.clock.advance(took);
        measured.end(&found.ok_or(Error::Answer("none")), Clone::clone);
    }

    async fn report(&self, analytics: &Analytics, days: u32) -> Report {
        analytics.report(self.workspace, days).await.unwrap()
    }
}

async fn write(analytics: &Analytics) {
    analytics.writer.lock().await.finish().await;
}

/// What the doctor finds.
async fn findings(bench: &Bench) -> Vec<String> {
    let found = crate::examine(&bench.test.config, &|_: &str| {}).await.unwrap().unwrap();
    found.iter().map(ToString::to_string).collect()
}

async fn run(analytics: &Analytics, statement: &'static str) {
    let sql = || sqlx::raw_sql(AssertSqlSafe(statement));
    match analytics.db.writer().engine() {
        sql::Engine::Sqlite(pool) => drop(sql().execute(pool).await.unwrap()),
        sql::Engine::Postgres(pool) => drop(sql().execute(pool).await.unwrap()),
    }
}

fn document(id: u128) -> (Kind, Uuid) {
    (Kind::File, Uuid::from_u128(id))
}

fn found(documents: &[u128]) -> Found {
    Found {
        documents: documents.iter().copied().map(document).collect(),
        results: u64::try_from(documents.len()).unwrap(),
        content_bytes: 100,
        cached: documents.len() > 1,
        provider_operations: 2,
    }
}

#[tokio::test]
async fn every_statement_is_one() {
    for bench in benches().await {
        let analytics = bench.open(1).await;
        sql::prepare_all(&analytics.db, &store::statements()).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_counted_is_told_by_day_and_in_all() {
    for bench in benches().await {
        let engine = bench.test.engine;
        let analytics = bench.open(1).await;
        let ms = Duration::from_millis;
        bench.retrieve(&analytics, Channel::Rest, ms(10), Some(Found::default()));
        bench.retrieve(&analytics, Channel::Rest, ms(10), Some(found(&[7, 8, 7])));
        bench.retrieve(&analytics, Channel::Mcp, ms(10), None);
        // Into the next day: it counts where it began.
        let until_midnight = Timestamp::parse_rfc3339("2026-11-21T23:59:59.999Z").unwrap();
        bench.clock.advance(until_midnight.since(bench.clock.now()));
        bench.retrieve(&analytics, Channel::Mcp, ms(1_000), Some(found(&[8])));
        bench.retrieve(&analytics, Channel::Mcp, ms(10), Some(found(&[8, 9])));
        write(&analytics).await;

        let report = bench.report(&analytics, 3).await;
        let days: Vec<_> = report.days.iter().map(|day| (day.day.date(), day.sum.counts.total)).collect();
        let expected = [("2026-11-20", 0), ("2026-11-21", 4), ("2026-11-22", 1)];
        assert_eq!(days, expected.map(|(date, total)| (date.to_owned(), total)), "{engine}");
        let total = Counts {
            total: 5,
            failed: 1,
            empty: 1,
            cached: 2,
            results: 6,
            content_bytes: 300,
            provider_operations: 6,
        };
        assert_eq!(report.total.counts, total, "{engine}");
        let latency = report.total.latency.unwrap();
        assert!((9_500..=10_501).contains(&latency.p50_micros), "{engine}: {latency:?}");
        assert!((950_000..=1_050_001).contains(&latency.p95_micros), "{engine}: {latency:?}");
        assert_eq!(report.days[0].sum.latency, None);
        assert_eq!(report.by_operation["search_context"].latency, report.total.latency);
        assert_eq!((report.by_channel["rest"].total, report.by_channel["mcp"].total), (2, 3), "{engine}");
        assert_eq!(report.by_strategy["hybrid"], total);
        assert_eq!(report.by_plan["selfhosted"], total);
        assert_eq!(report.by_principal, [(("token".to_owned(), "test-token".to_owned()), total)]);

        let top: Vec<_> = report.top_documents.iter().map(|one| (one.id.as_u128(), one.counts)).collect();
        let counts = |retrievals, best| DocumentCounts { retrievals, best };
        assert_eq!(top, [(8, counts(3, 2)), (7, counts(1, 1)), (9, counts(1, 0))], "{engine}");

        assert_eq!(bench.report(&analytics, 1).await.total.counts.total, 1, "{engine}: today alone");
        assert_eq!(findings(&bench).await, [""; 0], "{engine}");
        run(&analytics, "DELETE FROM retrieval_latencies").await;
        assert!(findings(&bench).await[0].contains("has a latency"), "{engine}");
        let other = analytics.report(WorkspaceId(Uuid::from_u128(2)), 90).await.unwrap();
        assert_eq!((other.total.counts, other.top_documents.len()), (Counts::default(), 0), "{engine}");
    }
}

#[tokio::test]
async fn the_first_time_is_the_earliest_that_anybody_told() {
    for bench in benches().await {
        let (one, other) = (bench.open(1).await, bench.open(2).await);
        let hour = Duration::from_secs(3_600);
        bench.retrieve(&one, Channel::Rest, hour, Some(Found::default()));
        one.note_connection(bench.workspace, Channel::Mcp);
        let connected = bench.clock.now();
        bench.clock.advance(hour);
        let asked = bench.clock.now();
        bench.retrieve(&other, Channel::Mcp, hour, Some(found(&[1])));
        bench.retrieve(&one, Channel::Mcp, hour, Some(found(&[1])));
        bench.retrieve(&one, Channel::Rest, hour, Some(found(&[1])));
        // The later one is written first.
        write(&one).await;
        write(&other).await;
        for analytics in [&one, &other] {
            let report = bench.report(analytics, 1).await;
            let first = report.first_success.unwrap();
            assert_eq!((first.at, first.channel.as_str()), (asked, "mcp"), "{}", bench.test.engine);
            assert_eq!(first.operation, "search_context");
            let mcp = report.mcp;
            assert_eq!(
                (mcp.connection, mcp.retrieval, mcp.success),
                (Some(connected), Some(asked), Some(asked))
            );
        }
        // A slow one ends after others that began later.
        let call = Call::within(Duration::from_secs(9)).with_channel(Channel::Console);
        let token = bench.token(bench.workspace);
        let slow = one.begin(&token, &call, Operation::SearchContext, Strategy::Hybrid);
        bench.clock.advance(hour);
        bench.retrieve(&one, Channel::Console, hour, Some(Found::default()));
        write(&one).await;
        slow.end(&Ok(found(&[1])), Clone::clone);
        write(&one).await;
        assert_eq!(findings(&bench).await, [""; 0], "{}", bench.test.engine);
        let nobody = one.report(WorkspaceId(Uuid::from_u128(2)), 1).await.unwrap();
        assert!(nobody.first_success.is_none() && nobody.mcp.connection.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_add_to_the_same_rows_at_once() {
    const ROUNDS: usize = 10;
    for bench in benches().await {
        let mut writers = tokio::task::JoinSet::new();
        for seed in 1..=4 {
            let analytics = bench.open(seed).await;
            let tokens: Vec<_> = (1..=5).map(|id| bench.token(WorkspaceId(Uuid::from_u128(id)))).collect();
            writers.spawn(async move {
                for _ in 0..ROUNDS {
                    for token in tokens.iter().rev() {
                        let call = Call::within(Duration::from_secs(9));
                        let operation = Operation::SearchContext;
                        analytics
                            .begin(token, &call, operation, Strategy::Keyword)
                            .end(&Ok(found(&[1, 2, 3])), Clone::clone);
                    }
                    // A deadlock would be told as an error, and its sums written with the next.
                    write(&analytics).await;
                    assert_eq!(analytics.writer.lock().await.waiting(), 0);
                }
            });
        }
        writers.join_all().await;
        let analytics = bench.open(9).await;
        for workspace in 1..=5 {
            let report = analytics.report(WorkspaceId(Uuid::from_u128(workspace)), 1).await.unwrap();
            assert_eq!(report.total.counts.total, 4 * 10, "{}", bench.test.engine);
            assert!(report.top_documents.iter().all(|one| one.counts.retrievals == 4 * 10));
        }
    }
}

#[tokio::test]
async fn a_write_that_fails_is_made_up_for_and_counts_once() {
    for bench in benches().await {
        let analytics = bench.open(1).await;
        bench.retrieve(&analytics, Channel::Rest, Duration::ZERO, Some(found(&[1])));
        run(&analytics, "ALTER TABLE retrieval_firsts RENAME TO elsewhere").await;
        write(&analytics).await;
        run(&analytics, "ALTER TABLE elsewhere RENAME TO retrieval_firsts").await;
        assert_eq!(bench.report(&analytics, 1).await.total.counts.total, 0, "{}", bench.test.engine);
        bench.retrieve(&analytics, Channel::Rest, Duration::ZERO, Some(found(&[1])));
        write(&analytics).await;
        write(&analytics).await;
        assert_eq!(bench.report(&analytics, 1).await.total.counts.total, 2, "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn a_full_queue_drops_and_never_waits() {
    let bench = benches().await.remove(0);
    let analytics = bench.open(1).await;
    for _ in 0..QUEUE + 10 {
        bench.retrieve(&analytics, Channel::Rest, Duration::ZERO, Some(Found::default()));
    }
    write(&analytics).await;
    let counted = bench.report(&analytics, 1).await.total.counts.total;
    assert_eq!(counted, u64::try_from(QUEUE).unwrap());
}

#[tokio::test]
async fn what_is_dropped_on_its_way_has_failed() {
    let bench = benches().await.remove(0);
    let analytics = bench.open(1).await;
    let call = Call::within(Duration::from_secs(9));
    let token = bench.token(bench.workspace);
    drop(analytics.begin(&token, &call, Operation::SearchContext, Strategy::Keyword));
    // Who asks for what is not there is told so: that is no retrieval.
    let refused: Result<Found, _> = Err(Error::from(Problem::not_found("no such file")));
    analytics.begin(&token, &call, Operation::RelatedFiles, Strategy::None).end(&refused, Clone::clone);
    // A service of the mesh belongs to no workspace.
    let service = bench.issuer.service("gateway");
    drop(analytics.begin(&service, &call, Operation::SearchContext, Strategy::Keyword));
    write(&analytics).await;
    let counts = bench.report(&analytics, 1).await.total.counts;
    assert_eq!((counts.total, counts.failed), (1, 1));
}

#[tokio::test]
async fn the_shutdown_writes_what_waits_and_the_next_start_has_it() {
    for bench in benches().await {
        let analytics = bench.open(1).await;
        let shutdown = CancellationToken::new();
        let running = tokio::spawn({
            let (analytics, shutdown) = (analytics.clone(), shutdown.clone());
            async move { analytics.run(shutdown).await }
        });
        bench.retrieve(&analytics, Channel::Rest, Duration::ZERO, Some(found(&[1])));
        shutdown.cancel();
        running.await.unwrap();
        // What is served while the server drains.
        bench.retrieve(&analytics, Channel::Rest, Duration::ZERO, Some(found(&[1])));
        analytics.close().await;
        let next = bench.open(2).await;
        assert_eq!(bench.report(&next, 1).await.total.counts.total, 2, "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn old_days_and_seldom_documents_are_forgotten_by_who_holds_the_lease() {
    for bench in benches().await {
        let (one, other) = (bench.open(1).await, bench.open(2).await);
        for document in 1..=300 {
            bench.retrieve(&one, Channel::Rest, Duration::ZERO, Some(found(&[document])));
        }
        bench.retrieve(&one, Channel::Rest, Duration::ZERO, Some(found(&[250])));
        write(&one).await;
        let engine = bench.test.engine;
        let today = Day::of(bench.clock.now());
        assert_eq!(sweep::sweep(&one.db, &one.lease, today).await.unwrap(), 0, "{engine}: the day goes on");

        bench.clock.advance(DAY);
        assert!(other.lease.claim().await.unwrap());
        assert_eq!(
            sweep::sweep(&one.db, &one.lease, today.minus(0)).await.unwrap(),
            0,
            "{engine}: not the holder"
        );
        other.lease.release().await.unwrap();
        let tomorrow = Day::of(bench.clock.now());
        assert_eq!(sweep::sweep(&one.db, &one.lease, tomorrow).await.unwrap(), 100, "{engine}");
        let report = bench.report(&one, MAX_DAYS).await;
        assert_eq!(report.top_documents[0].id.as_u128(), 250, "{engine}");

        for _ in 1..MAX_DAYS - 1 {
            bench.clock.advance(DAY);
        }
        let last = Day::of(bench.clock.now());
        assert_eq!(sweep::sweep(&one.db, &one.lease, last).await.unwrap(), 0, "{engine}");
        assert_eq!(bench.report(&one, MAX_DAYS).await.total.counts.total, 301, "{engine}");
        bench.clock.advance(4 * DAY);
        let after = Day::of(bench.clock.now());
        assert!(sweep::sweep(&one.db, &one.lease, after).await.unwrap() > 200, "{engine}");
        let report = bench.report(&one, MAX_DAYS).await;
        assert_eq!(report.total.counts, Counts::default());
        assert!(report.first_success.is_some(), "{engine}: first times are for good");
    }
}

/// Parts of statements that are to read all rows of a table or of a workspace.
const READ_ALL: &[&str] = &[
    // Few rows, looked at now and then.
    "FROM workspace_states WHERE suspended",
    "FROM workspace_states WHERE changed_at < $1",
    // A workspace is removed in parts, whichever rows come first.
    " WHERE workspace_id = $1 LIMIT $2",
    // The doctor looks at all.
    "SELECT 'workspace ' ||",
    // One row for each channel and step; at most some hundred questions.
    "FROM retrieval_firsts",
    "FROM golden_questions WHERE workspace_id = $1 ORDER BY id",
    // Questions by their ids, which are by time; up to a number.
    "FROM questions WHERE workspace_id = $1 AND asked_at >= $2",
    "(SELECT id FROM questions",
    "(SELECT 1 FROM questions",
];

#[tokio::test]
async fn no_statement_reads_all_to_find_some() {
    let found =
        plans::findings(store::SCHEMA, store::MIGRATIONS, &store::statements(), READ_ALL).await.unwrap();
    assert!(found.is_empty(), "{found:#?}");
}
