//! Workers that are lost with an open batch: one that is logged and not settled.

use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::domain::ImportProvider;
use cairn_proto::ids::SyncRunId;

use super::super::imports::{archive, draft_of};
use super::super::*;
use super::gate::Gate;
use super::{Working, stop};
use crate::content::{BatchOutcome, Payload};
use crate::imports::RunView as Import;
use crate::model::{Kind, Phase, Step};
use crate::runs::MAX_TRIES;

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
        for tries in 1..=MAX_TRIES {
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

/// How far a worker came with a write of a record before it was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Logged, and never sent.
    Logged,
    /// Sent and applied; the worker never received the response.
    Applied,
}

/// An import of the scores that has lost its worker while that changed Ada's points from 1 to 2.
struct Interrupted {
    bench: Bench,
    database: content::Database,
    id: String,
}

#[tokio::test]
async fn an_edit_of_a_record_is_not_taken_for_the_write_of_a_lost_worker() {
    for bench in benches().await {
        let run = Box::pin(Interrupted::start(bench, Progress::Logged)).await;
        let bench = &run.bench;
        // The next worker resumes from the open batch, and is cancelled before it plans the rest: an identity, and the states of that
        // batch.
        let (mut next, gate) = bench.worker().await;
        go_on(&mut next, &gate, 2).await;
        bench.imports.cancel(&bench.caller, &run.id).await.unwrap();
        gate.open_for(u64::MAX, false);
        next.await;
        assert_eq!(run.find().await.run.state, RunStatus::Cancelled, "{}", bench.engine);
        assert_eq!(run.points().await, 1, "{}", bench.engine);

        bench.set_points(&run.database, "Ada", 7).await;
        run.roll_back().await;
        assert_eq!(run.points().await, 7, "{}: the rollback took an edit back", bench.engine);
        run.check_that_the_edit_is_a_conflict().await;
    }
}

#[tokio::test]
async fn an_edit_after_a_cancellation_is_not_taken_for_the_write_of_a_lost_worker() {
    for is_rolled_back in [true, false] {
        for bench in benches().await {
            let run = Box::pin(Interrupted::start(bench, Progress::Logged)).await;
            run.cancel().await;
            run.bench.set_points(&run.database, "Ada", 7).await;
            if is_rolled_back {
                run.roll_back().await;
                assert_eq!(run.points().await, 7, "{}: the rollback took an edit back", run.bench.engine);
            }
            run.check_that_the_edit_is_a_conflict().await;
        }
    }
}

#[tokio::test]
async fn an_edit_before_the_next_worker_resumes_is_not_taken_for_the_write_of_a_lost_worker() {
    for bench in benches().await {
        let run = Box::pin(Interrupted::start(bench, Progress::Logged)).await;
        run.bench.set_points(&run.database, "Ada", 7).await;
        run.bench.work().await;
        let done = run.find().await;
        assert_eq!(done.run.state, RunStatus::CompletedWithWarnings, "{}", run.bench.engine);
        assert_eq!((done.run.counters.updated, done.run.counters.conflicts), (0, 1), "{}", run.bench.engine);
        assert_eq!(run.points().await, 7, "{}", run.bench.engine);
        run.roll_back().await;
        assert_eq!(run.points().await, 7, "{}: the rollback took an edit back", run.bench.engine);
        assert_eq!(run.bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_record_that_a_lost_worker_wrote_is_known_by_its_author() {
    for is_cancelled in [true, false] {
        for bench in benches().await {
            let run = Box::pin(Interrupted::start(bench, Progress::Applied)).await;
            if is_cancelled {
                run.cancel().await;
            } else {
                run.bench.work().await;
                let counters = run.find().await.run.counters;
                assert_eq!((counters.updated, counters.conflicts), (1, 0), "{}", run.bench.engine);
            }
            assert_eq!(run.points().await, 2, "{}", run.bench.engine);
            run.roll_back().await;
            assert_eq!(run.points().await, 1, "{}: the rollback left a write", run.bench.engine);
            assert_eq!(run.bench.faults().await, Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn an_edit_of_what_a_lost_worker_wrote_survives_the_rollback() {
    for is_cancelled in [true, false] {
        for bench in benches().await {
            let run = Box::pin(Interrupted::start(bench, Progress::Applied)).await;
            run.bench.set_points(&run.database, "Ada", 7).await;
            if is_cancelled {
                run.cancel().await;
            } else {
                run.bench.work().await;
            }
            let back = run.roll_back().await;
            assert_eq!(run.points().await, 7, "{}: the rollback took an edit back", run.bench.engine);
            let codes: Vec<&str> = back.warnings.iter().map(|warning| warning.code.as_str()).collect();
            assert!(codes.contains(&"edited_since_import"), "{}: {codes:?}", run.bench.engine);
            assert_eq!(run.bench.faults().await, Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn a_late_write_of_a_cancelled_import_is_not_taken_for_that_of_the_next() {
    for bench in benches().await {
        let run = Box::pin(Interrupted::start(bench, Progress::Logged)).await;
        let bench = &run.bench;
        let cancelled: SyncRunId = run.id.parse().unwrap();
        let late = bench.open_record(cancelled).await.unwrap();
        run.cancel().await;
        let archive = scores(3);
        let preview = bench.preview_import(draft_of(ImportProvider::NotionZip), &archive);
        let next = Box::pin(preview).await.unwrap().run.id;
        bench.imports.start(&bench.caller, &next.to_string()).await.unwrap();
        let (mut worker, gate) = bench.worker().await;
        while bench.open_record(next).await.is_none() {
            go_on(&mut worker, &gate, 1).await;
        }
        bench.send_late(cancelled, late, 2).await;
        gate.open_for(u64::MAX, false);
        worker.await;
        let done = bench.imports.get(&bench.caller, &next.to_string()).await.unwrap();
        assert_eq!((done.run.counters.updated, done.run.counters.conflicts), (0, 1), "{}", bench.engine);
        assert_eq!(run.points().await, 2, "{}", bench.engine);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

impl Interrupted {
    async fn start(bench: Bench, progress: Progress) -> Self {
        Box::pin(bench.import(draft_of(ImportProvider::NotionZip), &scores(1))).await;
        let database = bench.databases().await.pop().unwrap();
        let previewed = bench.preview_import(draft_of(ImportProvider::NotionZip), &scores(2)).await.unwrap();
        let id = previewed.run.id.to_string();
        bench.imports.start(&bench.caller, &id).await.unwrap();
        let run = Self { bench, database, id };
        let (mut lost, gate) = run.bench.worker().await;
        loop {
            let is_there = match progress {
                Progress::Logged => run.bench.open_record(previewed.run.id).await.is_some(),
                Progress::Applied => run.points().await == 2,
            };
            if is_there {
                break;
            }
            go_on(&mut lost, &gate, 1).await;
        }
        drop(lost);
        run.bench.expire_leases().await;
        run
    }

    /// Cancels the run before another worker resumes it.
    async fn cancel(&self) {
        let bench = &self.bench;
        bench.imports.cancel(&bench.caller, &self.id).await.unwrap();
        Box::pin(bench.work()).await;
        assert_eq!(self.find().await.run.state, RunStatus::Cancelled, "{}", bench.engine);
    }

    async fn find(&self) -> Import {
        self.bench.imports.get(&self.bench.caller, &self.id).await.unwrap()
    }

    async fn roll_back(&self) -> Import {
        let back = Box::pin(self.bench.take_back(&self.find().await)).await;
        assert_eq!(back.run.state, RunStatus::RolledBack, "{}: {:?}", self.bench.engine, back.run.error);
        back
    }

    /// Ada's.
    async fn points(&self) -> serde_json::Value {
        self.bench.values(&self.database, "Ada").await["Points"].clone()
    }

    /// The next run does not take an edit for its own either.
    async fn check_that_the_edit_is_a_conflict(&self) {
        let bench = &self.bench;
        let again = Box::pin(bench.import(draft_of(ImportProvider::NotionZip), &scores(2))).await;
        assert_eq!((again.run.counters.updated, again.run.counters.conflicts), (0, 1), "{}", bench.engine);
        assert_eq!(self.points().await, 7, "{}: an import overwrote an edit", bench.engine);
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

    /// The write of a record in an open batch of a run, if there is one.
    async fn open_record(&self, run: SyncRunId) -> Option<Step> {
        let db = &self.service.context().db;
        let batches = store::batches::list(db, workspace(), run, Phase::Sync).await.unwrap();
        let mut open = batches.iter().filter(|batch| !batch.is_settled).flat_map(|batch| &batch.steps);
        open.find(|step| step.kind == Kind::Record).cloned()
    }

    /// Sends what a lost worker of a run had logged: an update of a record to that many points.
    async fn send_late(&self, run: SyncRunId, step: Step, points: u32) {
        let requester = self.find(run).await.requester;
        let content = &self.service.context().content;
        let session = content.open(workspace(), &requester, Permission::Write).await.unwrap();
        let values = format!(r#"{{"Points":{points}}}"#);
        let mut work = [(step, Payload::Record { values, body: None })];
        assert_eq!(session.write(&mut work).await.unwrap(), BatchOutcome::Done);
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
