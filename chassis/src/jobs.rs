//! Leases, for work that only one of several processes does.
//!
//! A lease is a row that names its holder until an expiry time. The holder renews it while it works; when the holder dies,
//! the lease expires and another process takes over. The clock skew between processes must be less than the term: a holder
//! is the only one for the term minus the skew, counted from when it sent the claim (`tests/simulation`). A paused process
//! can outlive its lease without noticing, so the work itself must be idempotent, and claim the lease again before each part.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::Clock;
use crate::ids::IdSource;
use crate::sql::{self, Db, Migration};
use crate::{execute, statements};

/// The table, for a service's list of migrations.
pub const MIGRATION: Migration = Migration {
    name: "0001_leases",
    sqlite: include_str!("jobs/migrations/sqlite/0001_leases.sql"),
    postgres: include_str!("jobs/migrations/postgres/0001_leases.sql"),
};

statements! {
    /// All statements of leases, for [`sql::prepare_all`].
    pub fn statements;

    /// $4 is the current time: an expired lease can be taken by anyone.
    const CLAIM: &str = "INSERT INTO leases (name, holder, expires_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE \
         SET holder = excluded.holder, expires_at = excluded.expires_at \
         WHERE leases.holder = excluded.holder OR leases.expires_at <= $4";

    const RELEASE: &str = "DELETE FROM leases WHERE name = $1 AND holder = $2";
}

/// A lease that this process may hold.
#[derive(Debug, Clone)]
pub struct Lease {
    db: Db,
    clock: Arc<dyn Clock>,
    name: &'static str,
    holder: String,
    term: Duration,
}

impl Lease {
    /// The lease of that name in that storage, for a new holder; each claim is valid for `term`.
    pub fn new(db: Db, clock: Arc<dyn Clock>, ids: &IdSource, name: &'static str, term: Duration) -> Self {
        Self { db, clock, name, holder: ids.next::<Uuid>().to_string(), term }
    }

    /// Acquires the lease, or renews it; returns whether this process holds it now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim(&self) -> Result<bool, sql::Error> {
        let now = self.clock.now();
        let taken = execute!(self.db.writer(), CLAIM, self.name, &self.holder, now.plus(self.term), now)?;
        let is_held = taken == 1;
        self.record(is_held);
        Ok(is_held)
    }

    /// Releases the lease, so that no other process has to wait for its expiry.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release(&self) -> Result<(), sql::Error> {
        self.record(false);
        execute!(self.db.writer(), RELEASE, self.name, &self.holder).map(drop)
    }

    /// Sets the metric that shows which process holds the lease.
    fn record(&self, is_held: bool) {
        metrics::gauge!("cairn_lease_held", "lease" => self.name).set(f64::from(is_held));
    }
}

/// The leases of one holder on many names, with one row for each held lease. The row of a holder that died remains until the
/// same name is claimed again.
#[derive(Clone)]
pub struct Leases {
    db: Db,
    clock: Arc<dyn Clock>,
    holder: String,
    term: Duration,
}

crate::debug_fields!(Leases { holder, term });

impl Leases {
    /// Leases in that storage for a new holder; each claim is valid for `term`.
    pub fn new(db: Db, clock: Arc<dyn Clock>, ids: &IdSource, term: Duration) -> Self {
        Self { db, clock, holder: ids.next::<Uuid>().to_string(), term }
    }

    /// How long a claim is valid.
    pub const fn term(&self) -> Duration {
        self.term
    }

    /// Acquires the lease of that name, or renews it; returns whether this holder has it now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn claim(&self, name: &str) -> Result<bool, sql::Error> {
        let (name, now) = (name.to_owned(), self.clock.now());
        let taken = execute!(self.db.writer(), CLAIM, &name, &self.holder, now.plus(self.term), now)?;
        Ok(taken == 1)
    }

    /// Releases the lease of that name, so that no other holder has to wait for its expiry.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release(&self, name: &str) -> Result<(), sql::Error> {
        let name = name.to_owned();
        execute!(self.db.writer(), RELEASE, &name, &self.holder).map(drop)
    }
}

/// The schedule of periodic work: the first round at once, then one every period, or a period after the last one when that was
/// late.
#[derive(Debug)]
pub struct Schedule(Interval);

impl Schedule {
    /// A schedule with the given period.
    pub fn every(period: Duration) -> Self {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(ticks)
    }

    /// Waits until a round is due; `false` on shutdown.
    pub async fn next(&mut self, shutdown: &CancellationToken) -> bool {
        tokio::select! {
            () = shutdown.cancelled() => false,
            _ = self.0.tick() => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Timestamp};
    use crate::entropy::SeededEntropy;
    use crate::testing::engines;

    const TERM: Duration = Duration::from_secs(60);

    struct Bench {
        engine: &'static str,
        clock: Arc<ManualClock>,
        one: Lease,
        other: Lease,
        _test: crate::testing::TestDb,
    }

    async fn benches() -> Vec<Bench> {
        let mut benches = Vec::new();
        for test in engines().await {
            let db = test.open("jobs", &[MIGRATION]).await.unwrap();
            sql::prepare_all(&db, &statements()).await.unwrap();
            let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
            let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
            let ids = IdSource::new(Arc::clone(&shared), Arc::new(SeededEntropy::new(1)));
            let lease = || Lease::new(db.clone(), Arc::clone(&shared), &ids, "sweep", TERM);
            let (one, other) = (lease(), lease());
            benches.push(Bench { engine: test.engine, clock, one, other, _test: test });
        }
        benches
    }

    #[tokio::test]
    async fn a_lease_has_one_holder_until_it_ends() {
        for bench in benches().await {
            assert!(bench.one.claim().await.unwrap());
            assert!(!bench.other.claim().await.unwrap(), "{}", bench.engine);
            bench.clock.advance(TERM - Duration::from_micros(1));
            assert!(!bench.other.claim().await.unwrap());
            assert!(bench.one.claim().await.unwrap(), "its holder renews it");
            bench.clock.advance(TERM - Duration::from_micros(1));
            assert!(
                !bench.other.claim().await.unwrap(),
                "{}: a renewal counts from its own time",
                bench.engine
            );
            bench.clock.advance(Duration::from_micros(1));
            assert!(bench.other.claim().await.unwrap(), "{}: what has ended is taken over", bench.engine);
            assert!(!bench.one.claim().await.unwrap(), "its old holder learns that it is gone");
            bench.one.release().await.unwrap();
            assert!(!bench.one.claim().await.unwrap(), "nobody gives back what another holds");
            bench.other.release().await.unwrap();
            assert!(bench.one.claim().await.unwrap());
        }
    }

    #[tokio::test]
    async fn leases_of_other_names_are_others() {
        for bench in benches().await {
            let ids = IdSource::new(Arc::clone(&bench.one.clock), Arc::new(SeededEntropy::new(2)));
            let leases = || Leases::new(bench.one.db.clone(), Arc::clone(&bench.one.clock), &ids, TERM);
            let (one, other) = (leases(), leases());
            assert!(one.claim("a").await.unwrap() && one.claim("a").await.unwrap());
            assert!(!other.claim("a").await.unwrap(), "{}", bench.engine);
            assert!(other.claim("b").await.unwrap());
            other.release("a").await.unwrap();
            assert!(!other.claim("a").await.unwrap(), "nobody gives back what another holds");
            bench.clock.advance(TERM);
            assert!(other.claim("a").await.unwrap(), "{}: what has ended is taken over", bench.engine);
            other.release("b").await.unwrap();
            assert!(one.claim("b").await.unwrap());
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_many_that_claim_at_once_one_holds() {
        for bench in benches().await {
            let lease = &bench.one;
            let mut claims = tokio::task::JoinSet::new();
            for number in 0..8 {
                let claimed = Lease { holder: format!("holder {number}"), ..lease.clone() };
                claims.spawn(async move { claimed.claim().await.unwrap() });
            }
            let held = claims.join_all().await.into_iter().filter(|held| *held).count();
            assert_eq!(held, 1, "{}", bench.engine);
        }
    }
}
