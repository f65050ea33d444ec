//! Lists, starts and cancels runs.

use cairn_proto::ids::SourceRunId;

use super::Sources;
use crate::model::{Page, PageRequest, Run};
use crate::scope::Caller;
use crate::work::Work;
use crate::{Error, store};

/// Greater than every id.
const AFTER_ALL: &str = "~";

impl Sources {
    /// Queues a run; a full listing when `full`.
    pub(crate) async fn sync(&self, caller: &Caller, id: &str, full: bool) -> Result<Run, Error> {
        let source = self.find(caller, id).await?;
        if !source.mode.has_runs() {
            let message = "a live source is asked each time and has no runs: change its mode to index it";
            return Err(Error::RunNotStartable(message));
        }
        if source.paused {
            return Err(Error::RunNotStartable("the source is paused: resume it, which queues a run"));
        }
        self.learn_plan(caller).await?;
        let queued = self.runner.queue_now(&source, full).await?;
        self.runner.wake();
        queued.ok_or(Error::RunBusy)
    }

    /// Runs of a source, newest first.
    pub(crate) async fn list_runs(
        &self,
        caller: &Caller,
        id: &str,
        request: PageRequest,
    ) -> Result<Page<Run>, Error> {
        let source = self.find(caller, id).await?;
        let before = request.after.as_ref().map_or(AFTER_ALL, |after| &after.id);
        let (runs, total) =
            store::source_runs::page(self.db(), source.workspace, source.id, before, request.fetch()).await?;
        Ok(request.page(runs, total, |run| (String::new(), run.id.to_string())))
    }

    /// A run.
    pub(crate) async fn get_run(&self, caller: &Caller, id: &str, run: &str) -> Result<Run, Error> {
        let source = self.find(caller, id).await?;
        let no_run = || Error::NoRun(run.to_owned());
        let run_id: SourceRunId = run.parse().map_err(|_| no_run())?;
        let found = store::source_runs::get(self.db(), source.workspace, source.id, run_id).await?;
        found.ok_or_else(no_run)
    }

    /// Cancels a run: at once when no worker holds it, else when the worker sees the request.
    pub(crate) async fn cancel_run(&self, caller: &Caller, id: &str, run: &str) -> Result<Run, Error> {
        let found = self.get_run(caller, id, run).await?;
        let mut work = Work::without_limits(&self.runner.context, caller.workspace).await?;
        let source = store::sources::get_for_update(work.tx(), found.workspace, found.source).await?;
        source.ok_or_else(|| Error::NoSource(id.to_owned()))?;
        let open = store::source_runs::open(work.tx(), found.workspace, found.source).await?;
        let open = open.filter(|open| open.id == found.id);
        let open = open.ok_or(Error::RunNotStartable("the run is over: there is nothing to cancel"))?;
        let now = work.now();
        store::source_runs::cancel(work.tx(), &open, now).await?;
        work.commit().await?;
        self.get_run(caller, id, run).await
    }
}
