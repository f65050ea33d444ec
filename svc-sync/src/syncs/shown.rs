//! A run as callers are told of it.

use uuid::Uuid;

use crate::model::{Batch, Details, Kept, Kind, Prunable, Run, Still, SyncAction, Warning};

/// What became of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) path: String,
    pub(crate) action: SyncAction,
    pub(crate) file: Option<Uuid>,
    pub(crate) error: Option<String>,
}

/// A run with all that is told of it.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) run: Run,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) would_prune: Vec<Prunable>,
    /// Of a run that is over, by path.
    pub(crate) results: Vec<Outcome>,
    /// Of a run that was never started, by path.
    pub(crate) changes: Vec<(String, SyncAction)>,
    /// Among the runs of the workspace that wait for their turn, from 1; 0 when it does not wait.
    pub(crate) place: u64,
}

impl Shown {
    /// Of a run and what is known of it at length; `done` is what it wrote, when it is over.
    pub(crate) fn of(run: Run, details: Details, stills: &[Still], kept: &[Kept], done: Vec<Batch>) -> Self {
        let mut warnings = details.notes;
        warnings.extend(
            stills.iter().filter_map(|still| {
                still.why.as_ref().map(|(code, why)| Warning::new(&still.path, code, why))
            }),
        );
        warnings.extend(kept.iter().map(|kept| Warning::new(&kept.path, &kept.code, &kept.why)));
        let is_over = !run.state.is_busy() && run.started_at.is_some();
        let mut results: Vec<Outcome> = Vec::new();
        if is_over {
            results.extend(stills.iter().map(|still| Outcome {
                path: still.path.clone(),
                action: still.action,
                file: still.id,
                error: still.why.as_ref().map(|(_, why)| why.clone()),
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
        // A start plans anew: what the preview found says nothing of a run that went on since.
        let changes = if run.started_at.is_none() { details.changes } else { Vec::new() };
        Self { run, warnings, would_prune: details.would_prune, results, changes, place: 0 }
    }
}
