//! Imports whose reader is lost or silent, and those that are cancelled.

use std::time::Duration;

use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::domain::ImportProvider;
use cairn_proto::ids::SyncRunId;

use super::imports::{archive, draft_of};
use super::*;
use crate::context::Context;
use crate::reading::tests::scripted;
use crate::runs::Runner;

const LONG: Duration = Duration::from_secs(600);
/// Long enough on a machine that is busy with something else, and shorter than what must not be waited for.
const LIMIT: Duration = Duration::from_secs(60);
const PICTURES: usize = 60;

fn vault() -> Vec<u8> {
    let pictures: Vec<(String, Vec<u8>)> = (0..PICTURES)
        .map(|number| (format!("V/p{number}.png"), vec![u8::try_from(number).unwrap(); 40_000]))
        .collect();
    let mut entries: Vec<(&str, &[u8])> = vec![("V/Note.md", b"![[p7.png]]")];
    entries.extend(pictures.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    archive(&entries)
}

impl Bench {
    /// The id of an import that is queued.
    async fn queued(&self) -> String {
        let draft = draft_of(ImportProvider::ObsidianZip);
        let id = self.preview_import(draft, &vault()).await.unwrap().run.id.to_string();
        self.imports.start(&self.caller, &id).await.unwrap();
        id
    }

    /// Takes the run, and carries it out by a machine whose archives a shell reads.
    async fn work_with(&self, runner: &Runner, id: &str) {
        let id: SyncRunId = id.parse().unwrap();
        let run = store::runs::get(&self.service.context().db, workspace(), id).await.unwrap().unwrap();
        let run = runner.claim(run).await.unwrap().unwrap();
        runner.perform(run, &CancellationToken::new()).await;
    }

    fn runner_with(&self, script: &str) -> Runner {
        Runner::new(Context { reader: scripted(script, LONG), ..self.service.context().clone() })
    }

    async fn assets(&self) -> usize {
        let mut assets = AssetServiceClient::new(self.content.clone());
        let request = self.request(content::ListAssetsRequest::default());
        assets.list_assets(request).await.unwrap().into_inner().assets.len()
    }

    async fn state(&self, id: &str) -> (RunStatus, Option<String>) {
        let run = self.imports.get(&self.caller, id).await.unwrap().run;
        (run.state, run.error)
    }

    /// Starts a run again, and sees it through and back.
    async fn finish(&self, id: &str) {
        self.imports.start(&self.caller, id).await.unwrap();
        self.work().await;
        let done = self.imports.get(&self.caller, id).await.unwrap();
        assert_eq!((done.run.state, done.run.error), (RunStatus::Completed, None), "{}", self.engine);
        assert_eq!(done.run.counters.created, PICTURES as u64 + 1);
        assert_eq!((self.assets().await, self.tree().await.len()), (PICTURES, 1));
        self.imports.roll_back(&self.caller, id).await.unwrap();
        self.work().await;
        assert_eq!(self.state(id).await, (RunStatus::RolledBack, None));
        assert_eq!((self.assets().await, self.tree().await.len()), (0, 0));
        assert_eq!(self.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_run_whose_reader_is_killed_fails_and_can_be_started_again() {
    for bench in benches().await {
        let id = bench.queued().await;
        bench.work_with(&bench.runner_with("kill -9 $$"), &id).await;
        let (state, error) = bench.state(&id).await;
        assert_eq!(state, RunStatus::Failed, "{}", bench.engine);
        assert!(error.unwrap().contains("could not be read"));
        bench.finish(&id).await;
    }
}

#[tokio::test]
async fn a_run_is_cancelled_while_its_reader_is_silent() {
    for bench in benches().await {
        let id = bench.queued().await;
        let runner = bench.runner_with("exec sleep 600");
        let working = tokio::time::timeout(LIMIT, bench.work_with(&runner, &id));
        let cancelling = async {
            while bench.state(&id).await.0 != RunStatus::Running {
                tokio::task::yield_now().await;
            }
            bench.imports.cancel(&bench.caller, &id).await.unwrap();
        };
        let (worked, ()) = tokio::join!(working, cancelling);
        assert!(worked.is_ok(), "{}: the run waits for its reader", bench.engine);
        assert_eq!(bench.state(&id).await, (RunStatus::Cancelled, None));
        bench.finish(&id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_cancelled_among_its_attachments_goes_on_where_it_stopped() {
    for bench in benches().await {
        let id = bench.queued().await;
        let runner = Runner::new(bench.service.context().clone());
        let cancelling = async {
            while bench.assets().await == 0 {
                tokio::task::yield_now().await;
            }
            bench.imports.cancel(&bench.caller, &id).await
        };
        let ((), cancelled) = tokio::join!(bench.work_with(&runner, &id), cancelling);
        // On a fast machine, it may have been over by then.
        if cancelled.is_ok() && bench.state(&id).await.0 == RunStatus::Cancelled {
            let report = bench.imports.report(&bench.caller, &id).await.unwrap();
            let told = report.items.iter().filter(|item| item.path.ends_with(".png") && item.id.is_some());
            assert_eq!(
                told.count(),
                bench.assets().await,
                "{}: the report and the workspace differ",
                bench.engine
            );
            bench.finish(&id).await;
        }
    }
}
