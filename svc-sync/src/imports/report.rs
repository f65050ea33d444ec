//! What is told of an import: the report of each of its phases, and the first of it beside the run.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{Planned, Shown};
use crate::decision::{Decided, Decisions, Verdict};
use crate::model::{
    Kept, Kind, Origin, Report, ReportAction, ReportIgnored, ReportItem, ReportLink, ReportPhase, ReportRoot,
    Run, Step, Still, Warning, Write,
};
use crate::reading::Finding;

/// What is told beside a run.
const SHOWN: usize = 1_000;

/// The first results of a run.
pub(crate) type Results = Vec<ReportItem>;

impl Shown {
    /// Of a run and its report.
    pub(super) fn of(run: Run, report: Report) -> Self {
        let is_over = !run.state.is_busy() && run.started_at.is_some() && report.phase != ReportPhase::DryRun;
        let mut results = report.items;
        if !is_over {
            results.clear();
        }
        results.truncate(SHOWN);
        let mut warnings = report.warnings;
        warnings.truncate(SHOWN);
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

fn root_of(planned: &Planned, root: &Decided) -> Option<ReportRoot> {
    root.is_live.then(|| ReportRoot { folder_id: root.id, path: planned.root.clone() })
}

/// What would be done.
pub(super) fn dry_run(run: &Run, planned: &Planned, decisions: &Decisions) -> Report {
    let mut report = plain(run, planned, ReportPhase::DryRun);
    let is_there = decisions.root.verdict != Verdict::Create;
    report.root = root_of(planned, &decisions.root).filter(|_| is_there);
    for (item, decided) in planned.items.iter().zip(&decisions.items) {
        let (action, message) = match decided.verdict {
            Verdict::Create | Verdict::Beside => (ReportAction::Created, None),
            Verdict::Update => (ReportAction::Updated, None),
            Verdict::Skip | Verdict::Done => (ReportAction::Skipped, None),
            Verdict::Conflict(code, why) => {
                report.warnings.push(Warning::new(&item.source, code, why));
                (ReportAction::Conflict, Some(why.to_owned()))
            }
        };
        let is_there = decided.entry.as_ref().is_some_and(|entry| entry.id == decided.id);
        let id = is_there.then_some(decided.id);
        report.items.push(ReportItem { path: item.source.clone(), kind: item.kind, action, id, message });
    }
    report
}

/// What was done so far: `done` by this run, also before it was cut short, and what was left alone.
pub(crate) fn executed(
    run: &Run,
    planned: &Planned,
    decisions: &Decisions,
    done: &[Step],
    stills: &[Still],
) -> Report {
    let mut report = plain(run, planned, ReportPhase::Execution);
    let is_there = done.iter().any(|step| step.id == decisions.root.id) || decisions.root.entry.is_some();
    report.root = root_of(planned, &decisions.root).filter(|_| is_there);
    let done: HashMap<(Kind, &str), &Step> = done
        .iter()
        .filter(|step| step.write != Write::Relate)
        .map(|step| ((step.kind, step.path.as_str()), step))
        .collect();
    let stills: HashMap<(Kind, &str), &Still> =
        stills.iter().map(|still| ((still.kind, still.path.as_str()), still)).collect();
    for (item, decided) in planned.items.iter().zip(&decisions.items) {
        let key = (item.kind, item.identity.as_str());
        let (action, id, message) = if let Some(step) = done.get(&key) {
            (step.action().into(), Some(step.id), None)
        } else if let Some(still) = stills.get(&key) {
            if let Some((code, why)) = &still.why {
                report.warnings.push(Warning::new(&item.source, code, why));
            }
            (still.action.into(), still.id, still.why.as_ref().map(|(_, why)| why.clone()))
        } else if item.kind == Kind::Folder && decided.verdict == Verdict::Skip {
            (ReportAction::Skipped, Some(decided.id), None)
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
