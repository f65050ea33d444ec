//! A run as callers see it.

use uuid::Uuid;

use crate::model::{Batch, Details, Kept, Kind, Prunable, Run, SyncAction, Unwritten, Warning};

/// The outcome of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) path: String,
    pub(crate) action: SyncAction,
    pub(crate) file: Option<Uuid>,
    pub(crate) error: Option<String>,
}

/// A run with its warnings, results and planned changes.
#[derive(Debug, Clone)]
pub(crate) struct RunView {
    pub(crate) run: Run,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) would_prune: Vec<Prunable>,
    /// Of a run that has ended, by path.
    pub(crate) results: Vec<Outcome>,
    /// Of a run that was never started, by path.
    pub(crate) changes: Vec<(String, SyncAction)>,
    /// The position in the queue of the workspace, from 1; 0 when it is not queued.
    pub(crate) place: u64,
}

impl RunView {
    /// Assembles the view; `done` are the batches of a run that has ended.
    pub(crate) fn of(
        run: Run,
        details: Details,
        unwritten: &[Unwritten],
        kept: &[Kept],
        done: Vec<Batch>,
    ) -> Self {
        let mut warnings = details.notes;
        warnings.extend(unwritten.iter().filter_map(|unwritten| {
            unwritten.why.as_ref().map(|(code, why)| Warning::new(&unwritten.path, code, why))
        }));
        warnings.extend(kept.iter().map(|kept| Warning::new(&kept.path, &kept.code, &kept.why)));
        let is_over = !run.state.is_busy() && run.started_at.is_some();
        let mut results: Vec<Outcome> = Vec::new();
        if is_over {
            results.extend(unwritten.iter().map(|unwritten| Outcome {
                path: unwritten.path.clone(),
                action: unwritten.action,
                file: unwritten.id,
                error: unwritten.why.as_ref().map(|(_, why)| why.clone()),
            }));
        }
        let steps = done.into_iter().filter(|batch| batch.is_settled).flat_map(|batch| batch.steps);
        results.extend(steps.filter(|step| step.kind == Kind::File).map(|step| Outcome {
            action: step.action(),
            path: step.path,
            file: Some(step.id),
            error: None,
        }));
        results.sort_by(|one, other| one.path.cmp(&other.path));
        // A start plans anew, which outdates the changes of the preview.
        let changes = if run.started_at.is_none() { details.changes } else { Vec::new() };
        Self { run, warnings, would_prune: details.would_prune, results, changes, place: 0 }
    }
}
