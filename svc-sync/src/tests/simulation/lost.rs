//! Workers that are lost with an open batch: one that is logged and not settled.

use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::domain::ImportProvider;
use cairn_proto::ids::SyncRunId;

use super::super::imports::{archive, draft_of};
use super::super::*;
use super::gate::Gate;
use super::{Working, stop};
use crate::model::{Kind, Phase};
use crate::runs::MOST_TRIES;

/// Passes through the gate before the first worker of a sync sends its batch: an identity for planning, and one for writing.
const BEFORE_FIRST_WRITE: u64 = 2;
/// The same of a later worker, which reads the states of the open batch in between: a call passes before its effect and after it.
const BEFORE_LATER_WRITE: u64 = 4;

#[tokio::test]
async fn a_run_whose_workers_are_all_lost_before_they_write_fails() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        bench.lose_worker(BEFORE_FIRST_WRITE).await;
        for tries in 1..=MOST_TRIES {
            bench.lose_worker(BEFORE_LATER_WRITE).await;
            let run = bench.find(previewed.run.id).await;
            assert_eq!((run.state, run.tries), (RunStatus::Running, tries), "{}", bench.engine);
        }
        bench.work().await;
        let failed = bench.get(&previewed).await;
        assert_eq!(failed.run.state, RunStatus::Failed, "{}", bench.engine);
        assert!(failed.run.error.unwrap().contains("several tries"));
        assert_eq!(bench.tree().await, tree(&[]), "{}", bench.engine);
        // Whoever starts it again gets as many tries anew.
        bench.start(&previewed).await.unwrap();
        bench.work().await;
        assert_eq!(bench.get(&previewed).await.run.state, RunStatus::Completed, "{}", bench.engine);
        assert_eq!(bench.tree().await, tree(&[("/a", "1")]), "{}", bench.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_step_that_is_done_ends_the_count_of_tries() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        bench.lose_worker(BEFORE_FIRST_WRITE).await;
        bench.lose_worker(BEFORE_LATER_WRITE).await;
        // Its batch is written, and it never hears of it.
        bench.lose_worker(BEFORE_LATER_WRITE + 1).await;
        assert_eq!(bench.tree().await, tree(&[("/a", "1")]), "{}", bench.engine);
        assert_eq!(bench.find(previewed.run.id).await.tries, 2, "{}", bench.engine);
        // The next one finds the effect of the step, and is lost before it has planned the rest.
        bench.lose_worker(3).await;
        assert_eq!(bench.find(previewed.run.id).await.tries, 0, "{}", bench.engine);
        bench.work().await;
        let done = bench.get(&previewed).await;
        assert_eq!((done.run.state, counted(done.run.counters)), (RunStatus::Completed, [1, 0, 0, 0, 0]));
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

/// An export with one database, in which one record has that many points.
fn scores(points: u32) -> Vec<u8> {
    const ID: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    let table = format!("Name,Points\nAda,{points}\nBob,5\n");
    archive(&[(&format!("Scores {ID}_all.csv"), table.as_bytes())])
}

#[tokio::test]
async fn an_edit_of_a_record_is_not_taken_for_the_write_of_a_lost_worker() {
    for bench in benches().await {
        let draft = || draft_of(ImportProvider::NotionZip);
        bench.import(draft(), &scores(1)).await;
        let database = bench.databases().await.pop().unwrap();
        let previewed = bench.preview_import(draft(), &scores(2)).await.unwrap();
        let id = previewed.run.id;
        bench.imports.start(&bench.caller, &id.to_string()).await.unwrap();
        // Logged, and never sent.
        let (mut lost, gate) = bench.worker().await;
        while !bench.has_open_record(id).await {
            go_on(&mut lost, &gate, 1).await;
        }
        drop(lost);
        bench.expire_leases().await;
        // It resumes from the open batch, and is cancelled before it plans the rest: an identity, and the states of that batch.
        let (mut next, gate) = bench.worker().await;
        go_on(&mut next, &gate, 2).await;
        bench.imports.cancel(&bench.caller, &id.to_string()).await.unwrap();
        gate.open_for(u64::MAX, false);
        next.await;
        let cancelled = bench.imports.get(&bench.caller, &id.to_string()).await.unwrap();
        assert_eq!(cancelled.run.state, RunStatus::Cancelled, "{}", bench.engine);
        assert_eq!(bench.values(&database, "Ada").await["Points"], serde_json::json!(1));

        bench.set_points(&database, "Ada", 7).await;
        let back = bench.take_back(&cancelled).await;
        assert_eq!(back.run.state, RunStatus::RolledBack, "{}: {:?}", bench.engine, back.run.error);
        let points = bench.values(&database, "Ada").await["Points"].clone();
        assert_eq!(points, serde_json::json!(7), "{}: the rollback took an edit back", bench.engine);
        // Nor does the next run take it for its own.
        let again = bench.import(draft(), &scores(2)).await;
        assert_eq!((again.run.counters.updated, again.run.counters.conflicts), (0, 1), "{}", bench.engine);
        let points = bench.values(&database, "Ada").await["Points"].clone();
        assert_eq!(points, serde_json::json!(7), "{}: an import overwrote an edit", bench.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

/// Has a worker make that many passes through its gate, and wait there for the next.
async fn go_on(worker: &mut Working, gate: &Gate, passes: u64) {
    gate.open_for(passes, false);
    stop(worker, gate).await;
}

impl Bench {
    /// Has a worker claim the run that is due, and loses it after that many passes through its gate.
    async fn lose_worker(&self, passes: u64) {
        let (mut worker, gate) = self.worker().await;
        go_on(&mut worker, &gate, passes).await;
        drop(worker);
        self.expire_leases().await;
    }

    async fn expire_leases(&self) {
        let context = self.service.context();
        store::runs::expire_all_leases(&context.db, context.clock.now()).await.unwrap();
    }

    /// Whether a run has an open batch with a write of a record.
    async fn has_open_record(&self, run: SyncRunId) -> bool {
        let db = &self.service.context().db;
        let batches = store::batches::list(db, workspace(), run, Phase::Sync).await.unwrap();
        let mut open = batches.iter().filter(|batch| !batch.is_settled).flat_map(|batch| &batch.steps);
        open.any(|step| step.kind == Kind::Record)
    }

    /// Somebody edits a record.
    async fn set_points(&self, database: &content::Database, title: &str, points: u32) {
        let records = self.records_of(database).await;
        let record = records.into_iter().find(|record| record.title == title).unwrap();
        let update = content::UpdateRecordRequest {
            database_id: database.id.clone(),
            record_id: record.id,
            values_json: format!(r#"{{"Points":{points}}}"#),
            update_mask: Some(FieldMask { paths: vec!["values".into()] }),
            allow_names: true,
            ..Default::default()
        };
        let mut records = RecordServiceClient::new(self.content.clone());
        records.update_record(self.request(update)).await.unwrap();
    }
}
