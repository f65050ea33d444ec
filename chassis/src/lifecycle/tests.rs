use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::clock::ManualClock;
use crate::testing::{TestDb, engines};

struct Bench {
    clock: Arc<ManualClock>,
    suspensions: Suspensions,
    test: Option<TestDb>,
}

impl Bench {
    fn engine(&self) -> &'static str {
        self.test.as_ref().map_or("memory", |test| test.engine)
    }

    async fn again(&self) -> Option<Suspensions> {
        let db = self.test.as_ref()?.open("lifecycle", &[MIGRATION]).await.unwrap();
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        Some(Suspensions::open(db, clock).await.unwrap())
    }
}

async fn benches() -> Vec<Bench> {
    let clock = || Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
    let (now, mut benches) = (clock(), Vec::new());
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&now);
    benches.push(Bench { clock: now, suspensions: Suspensions::in_memory(shared), test: None });
    for test in engines().await {
        let db = test.open("lifecycle", &[MIGRATION]).await.unwrap();
        sql::prepare_all(&db, &statements()).await.unwrap();
        let now = clock();
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&now);
        let suspensions = Suspensions::open(db, shared).await.unwrap();
        benches.push(Bench { clock: now, suspensions, test: Some(test) });
    }
    benches
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(number))
}

#[tokio::test]
async fn the_newest_word_counts_in_whatever_order_words_come() {
    for bench in benches().await {
        let (one, other) = (workspace(1), workspace(2));
        bench.suspensions.set(one, true, 1).await.unwrap();
        assert!(bench.suspensions.is_suspended(one), "{}", bench.engine());
        assert!(bench.suspensions.is_suspended_now(one).await.unwrap());
        assert!(bench.suspensions.check(one).is_err() && bench.suspensions.check(other).is_ok());
        bench.suspensions.set(one, false, 2).await.unwrap();
        bench.suspensions.set(one, true, 1).await.unwrap();
        assert!(!bench.suspensions.is_suspended(one), "{}: an old word came again", bench.engine());
        bench.suspensions.set(one, true, 3).await.unwrap();
        bench.suspensions.set(one, true, 3).await.unwrap();
        assert!(bench.suspensions.is_suspended(one) && !bench.suspensions.is_suspended(other));
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing_and_what_is_over_is_forgotten_later() {
    for bench in benches().await {
        let (purged, restored, kept) = (workspace(1), workspace(2), workspace(3));
        for suspended in [purged, restored, kept] {
            bench.suspensions.set(suspended, true, 1).await.unwrap();
        }
        bench.suspensions.set(restored, false, 2).await.unwrap();
        bench.suspensions.mark_purged(purged).await.unwrap();
        let Some(again) = bench.again().await else { continue };
        assert!(again.is_suspended(purged) && again.is_suspended(kept) && !again.is_suspended(restored));
        let Some(db) = again.0.db.clone() else { panic!("no storage") };
        again.delete_expired(&db).await.unwrap();
        assert!(again.is_suspended(purged), "{}: an identity of it may live", bench.engine());
        bench.clock.advance(RETENTION + Duration::from_secs(1));
        again.delete_expired(&db).await.unwrap();
        assert!(!again.is_suspended(purged) && again.is_suspended(kept), "{}", bench.engine());
        let rows: i64 = fetch!(scalar, db, "SELECT COUNT(*) FROM workspace_states").unwrap();
        assert_eq!(rows, 1, "{}", bench.engine());
    }
}
