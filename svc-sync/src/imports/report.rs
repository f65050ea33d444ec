//! Builds the report of each phase of an import, and the excerpt that is shown with the run.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{Planned, RunView};
use crate::decision::{Decision, Decisions, Verdict};
use crate::model::{
    Kept, Kind, Origin, Report, ReportAction, ReportIgnored, ReportItem, ReportLink, ReportPhase, ReportRoot,
    Run, Step, Unwritten, Warning, Write,
};
use crate::reading::Finding;

/// Results and warnings that are shown with a run.
const MAX_SHOWN: usize = 1_000;

/// The first results of a run.
pub(crate) type Results = Vec<ReportItem>;

impl RunView {
    /// The view of a run, from its report.
    pub(super) fn of(run: Run, report: Report) -> Self {
        let is_over = !run.state.is_busy() && run.started_at.is_some() && report.phase != ReportPhase::DryRun;
        let mut results = report.items;
        if !is_over {
            results.clear();
        }
        results.truncate(MAX_SHOWN);
        let mut warnings = report.warnings;
        warnings.truncate(MAX_SHOWN);
        Self { run, warnings, results, place: 0 }
    }
}

fn plain(run: &Run, planned: &Planned, phase: ReportPhase) -> Report {
    let mut report = Report {
        run_id: run.id.to_string(),
        provider: match run.origin {
            Origin::Archive(provider) => provider,
            Origin::Directory => crate::model::ImportProvider::ObsidianZip,
        },
        file_name: run.file_name.clone().unwrap_or_default(),
        phase,
        root: None,
        counts: planned.counts,
        items: Vec::with_capacity(planned.items.len()),
        unresolved_links: Vec::new(),
        ignored: Vec::new(),
        warnings: Vec::new(),
    };
    for finding in planned.findings.iter().cloned() {
        match finding {
            Finding::Ignored { path, reason } => report.ignored.push(ReportIgnored { path, reason }),
            Finding::Warning { path, code, message } => {
                report.warnings.push(Warning { path, code, message });
            }
            Finding::Link { path, line, target, reason } => {
                report.unresolved_links.push(ReportLink { path, line, target, reason });
            }
        }
    }
    report
}

fn root_of(planned: &Planned, root: &Decision) -> Option<ReportRoot> {
    root.is_live.then(|| ReportRoot { folder_id: root.id, path: planned.root.clone() })
}

/// The report of a preview.
pub(super) fn dry_run(run: &Run, planned: &Planned, decisions: &Decisions) -> Report {
    let mut report = plain(run, planned, ReportPhase::DryRun);
    let is_there = decisions.root.verdict != Verdict::Create;
    report.root = root_of(planned, &decisions.root).filter(|_| is_there);
    for (item, decision) in planned.items.iter().zip(&decisions.items) {
        let (action, message) = match decision.verdict {
            Verdict::Create | Verdict::Beside => (ReportAction::Created, None),
            Verdict::Update => (ReportAction::Updated, None),
            Verdict::Skip | Verdict::Done => (ReportAction::Skipped, None),
            Verdict::Conflict(code, why) => {
                report.warnings.push(Warning::new(&item.source, code, why));
                (ReportAction::Conflict, Some(why.to_owned()))
            }
        };
        let is_there = decision.entry.as_ref().is_some_and(|entry| entry.id == decision.id);
        let id = is_there.then_some(decision.id);
        report.items.push(ReportItem { path: item.source.clone(), kind: item.kind, action, id, message });
    }
    report
}

/// The report of an execution so far: `done` are the steps of all workers of the run.
pub(crate) fn executed(
    run: &Run,
    planned: &Planned,
    decisions: &Decisions,
    done: &[Step],
    unwritten: &[Unwritten],
) -> Report {
    let mut report = plain(run, planned, ReportPhase::Execution);
    let is_there = done.iter().any(|step| step.id == decisions.root.id) || decisions.root.entry.is_some();
    report.root = root_of(planned, &decisions.root).filter(|_| is_there);
    let done: HashMap<(Kind, &str), &Step> = done
        .iter()
        .filter(|step| step.write != Write::Relate)
        .map(|step| ((step.kind, step.path.as_str()), step))
        .collect();
    let unwritten: HashMap<(Kind, &str), &Unwritten> =
        unwritten.iter().map(|unwritten| ((unwritten.kind, unwritten.path.as_str()), unwritten)).collect();
    for (item, decision) in planned.items.iter().zip(&decisions.items) {
        let key = (item.kind, item.identity.as_str());
        let (action, id, message) = if let Some(step) = done.get(&key) {
            (step.action().into(), Some(step.id), None)
        } else if let Some(unwritten) = unwritten.get(&key) {
            if let Some((code, why)) = &unwritten.why {
                report.warnings.push(Warning::new(&item.source, code, why));
            }
            (unwritten.action.into(), unwritten.id, unwritten.why.as_ref().map(|(_, why)| why.clone()))
        } else if item.kind == Kind::Folder && decision.verdict == Verdict::Skip {
            (ReportAction::Skipped, Some(decision.id), None)
        } else {
            // The run has not come to it.
            continue;
        };
        report.items.push(ReportItem { path: item.source.clone(), kind: item.kind, action, id, message });
    }
    report
}

/// What a rollback took back of what the report before it tells.
pub(crate) fn rolled_back(mut report: Report, done: &[Step], kept: &[Kept]) -> Report {
    report.phase = ReportPhase::Rollback;
    let back: HashMap<Uuid, &Step> = done.iter().map(|step| (step.id, step)).collect();
    let kept: HashMap<Uuid, &Kept> = kept.iter().map(|kept| (kept.id, kept)).collect();
    let mut told: HashSet<Uuid> = HashSet::new();
    for item in &mut report.items {
        let Some(id) = item.id else { continue };
        let (action, message) = match (back.get(&id).map(|step| &step.write), kept.get(&id)) {
            (Some(Write::Trash), _) => (ReportAction::Removed, None),
            (Some(_), _) => (ReportAction::Updated, Some("it has its earlier content again".to_owned())),
            (None, Some(kept)) => {
                if told.insert(id) {
                    report.warnings.push(Warning::new(&item.path, &kept.code, &kept.why));
                }
                (ReportAction::Kept, Some(kept.why.clone()))
            }
            // In trash already, or never touched.
            (None, None) if item.action == ReportAction::Created => (ReportAction::Removed, None),
            (None, None) => (ReportAction::Skipped, None),
        };
        (item.action, item.message) = (action, message);
    }
    // What a run that was cut short had not told of.
    let listed: HashSet<Uuid> = report.items.iter().filter_map(|item| item.id).collect();
    let unlisted = done.iter().filter(|step| step.write == Write::Trash && !listed.contains(&step.id));
    report.items.extend(unlisted.filter_map(|step| {
        let path = step.source.clone()?;
        let (kind, action) = (step.kind, ReportAction::Removed);
        Some(ReportItem { path, kind, action, id: Some(step.id), message: None })
    }));
    let is_root_gone = report
        .root
        .as_ref()
        .is_some_and(|root| matches!(back.get(&root.folder_id).map(|step| &step.write), Some(Write::Trash)));
    if is_root_gone {
        report.root = None;
    }
    report
}
