//! Workers that are lost at any moment.

use std::time::Duration;

use super::*;

const ROUNDS: u32 = 4;

/// A number that differs from round to round, without a clock.
fn scattered(round: u32, most: u32) -> u64 {
    u64::from(round.wrapping_mul(2_654_435_761).rotate_left(7) % most)
}

impl Bench {
    /// Works on whatever is due, and loses the worker again and again before it is through.
    pub(super) async fn work_with_kills(&self, seed: u32) -> u32 {
        let context = self.service.context();
        let mut kills = 0;
        for round in seed.. {
            let now = context.clock.now();
            let Some(run) = store::runs::claimable(&context.db, now, 1).await.unwrap().pop() else { break };
            let Some(run) = self.service.runner().claim(run).await.unwrap() else { continue };
            let shutdown = CancellationToken::new();
            // Later and later, so that it ends.
            let moment = Duration::from_micros(scattered(round, 4_000 << (round - seed).min(8)));
            let working = tokio::time::timeout(moment, self.service.runner().perform(run, &shutdown));
            if working.await.is_err() {
                kills += 1;
                store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
                const FRESH: &str = "UPDATE sync_runs SET tries = 0";
                cairn_chassis::execute!(context.db.writer(), FRESH).unwrap();
            }
        }
        kills
    }
}

fn documents(round: u32, content: &str) -> Vec<(String, String)> {
    let kept = (0..24).filter(move |number| !(number + round).is_multiple_of(7));
    kept.map(|number| (format!("d{}/f{number}", number % 5), format!("{content} {number}"))).collect()
}

fn of(documents: &[(String, String)]) -> Draft {
    let sent = |(path, content): &(String, String)| Sent {
        path: path.clone(),
        content: content.clone(),
        ..Sent::default()
    };
    Draft {
        name: "docs".into(),
        documents: documents.iter().map(sent).collect(),
        prune: true,
        ..Draft::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_was_cut_short_ends_as_one_that_was_not() {
    for bench in benches().await {
        let mut kills = 0;
        for round in 0..ROUNDS {
            let documents = documents(round, &format!("round {round}"));
            let expected: BTreeMap<String, Vec<String>> =
                documents.iter().map(|(path, content)| (format!("/{path}"), vec![content.clone()])).collect();
            let before = bench.tree().await;
            let previewed = bench.preview(of(&documents)).await.unwrap();
            bench.start(&previewed).await.unwrap();
            kills += bench.work_with_kills(round * 1_000).await;
            let done = bench.get(&previewed).await;
            assert_eq!(done.run.state, RunStatus::Completed, "{}: {:?}", bench.engine, done.warnings);
            assert_eq!(bench.tree().await, expected, "{} round {round}", bench.engine);
            let counters = done.run.counters;
            assert_eq!(counted(counters), counted(previewed.run.would), "{} round {round}", bench.engine);
            assert_eq!(counters.processed, done.run.total);
            assert_eq!(bench.faults().await, Vec::<String>::new());
            if round % 2 == 1 {
                bench.syncs.roll_back(&bench.caller, &done.run.id.to_string()).await.unwrap();
                kills += bench.work_with_kills(round * 1_000 + 500).await;
                let back = bench.get(&done).await;
                assert_eq!((back.run.state, codes(&back)), (RunStatus::RolledBack, vec![]));
                assert_eq!(bench.tree().await, before, "{} rollback of round {round}", bench.engine);
                assert_eq!(bench.faults().await, Vec::<String>::new());
            }
        }
        assert!(kills > ROUNDS, "{}: the workers were lost only {kills} times", bench.engine);
    }
}
