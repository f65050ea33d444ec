//! Reports in pages: the totals, and one of the lists at a time.

use std::collections::HashMap;

use cairn_import::Counts;
use cairn_proto::domain::ReportPart;
use uuid::Uuid;

use super::Imports;
use crate::model::{Report, ReportAction, ReportIgnored, ReportItem, ReportLink, ReportPhase, Run, Warning};
use crate::scope::Caller;
use crate::{Error, run_state, store};

const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 1_000;

/// The request of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportQuery {
    pub(crate) part: ReportPart,
    /// Only items with this action.
    pub(crate) action: Option<ReportAction>,
    /// 0 for the default.
    pub(crate) size: u32,
    /// Of the page before; empty for the first.
    pub(crate) token: String,
}

/// An entry of one of the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReportEntry {
    Item(ReportItem),
    Warning(Warning),
    Link(ReportLink),
    Ignored(ReportIgnored),
}

/// How often a warning code occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WarningTally {
    pub(crate) code: String,
    pub(crate) count: u64,
    /// The message of the first of them.
    pub(crate) message: String,
}

/// A page of entries, with the totals of the report.
#[derive(Debug)]
pub(crate) struct ReportPage {
    pub(crate) run: Run,
    /// The position in the queue, as in [`super::RunView`].
    pub(crate) place: u64,
    pub(crate) phase: ReportPhase,
    pub(crate) root: Option<Uuid>,
    pub(crate) counts: Counts,
    /// Actions that occur.
    pub(crate) actions: Vec<(ReportAction, u64)>,
    /// The most frequent first.
    pub(crate) warnings: Vec<WarningTally>,
    /// Links that are listed.
    pub(crate) links: u64,
    pub(crate) entries: Vec<ReportEntry>,
    /// Empty after the last page.
    pub(crate) next: String,
    pub(crate) total: u64,
}

impl Imports {
    /// A page of one list of a report.
    pub(crate) async fn entries(
        &self,
        caller: &Caller,
        id: &str,
        asked: &ReportQuery,
    ) -> Result<ReportPage, Error> {
        let begin = if asked.token.is_empty() { Some(0) } else { asked.token.parse().ok() };
        let begin: usize = begin.ok_or_else(run_state::bad_token)?;
        let run = self.find(caller, id).await?;
        let found = store::details::get(&self.context.db, run.workspace, run.id).await?;
        let report: Report = found.ok_or_else(|| Error::NoRun(id.to_owned()))?;
        let place = run_state::place(&self.context, &run).await?;
        let (actions, warnings) = (actions(&report), warnings(&report));
        let (phase, counts) = (report.phase, report.counts);
        let links = report.unresolved_links.len() as u64;
        let root = report.root.as_ref().map(|root| root.folder_id);
        let size = if asked.size == 0 { DEFAULT_PAGE } else { asked.size.min(MAX_PAGE) };
        let (entries, total) = page(report, asked, begin, size as usize);
        let end = begin.saturating_add(entries.len());
        let next = if !entries.is_empty() && end < total { end.to_string() } else { String::new() };
        let total = total as u64;
        Ok(ReportPage { run, place, phase, root, counts, actions, warnings, links, entries, next, total })
    }
}

/// The entries of a page, and how many the list has.
fn page(report: Report, asked: &ReportQuery, begin: usize, size: usize) -> (Vec<ReportEntry>, usize) {
    match asked.part {
        ReportPart::Items => {
            let is_asked = |item: &ReportItem| asked.action.is_none_or(|action| item.action == action);
            let items: Vec<ReportItem> = report.items.into_iter().filter(is_asked).collect();
            cut(items, ReportEntry::Item, begin, size)
        }
        ReportPart::Warnings => cut(report.warnings, ReportEntry::Warning, begin, size),
        ReportPart::Links => cut(report.unresolved_links, ReportEntry::Link, begin, size),
        ReportPart::Ignored => cut(report.ignored, ReportEntry::Ignored, begin, size),
    }
}

fn cut<T>(
    all: Vec<T>,
    entry: impl Fn(T) -> ReportEntry,
    begin: usize,
    size: usize,
) -> (Vec<ReportEntry>, usize) {
    let total = all.len();
    (all.into_iter().skip(begin).take(size).map(entry).collect(), total)
}

fn actions(report: &Report) -> Vec<(ReportAction, u64)> {
    let count = |action| report.items.iter().filter(|item| item.action == action).count() as u64;
    let counted = ReportAction::ALL.into_iter().map(|action| (action, count(action)));
    counted.filter(|(_, count)| *count > 0).collect()
}

fn warnings(report: &Report) -> Vec<WarningTally> {
    let mut tallies: Vec<WarningTally> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for warning in &report.warnings {
        let place = *places.entry(&warning.code).or_insert(tallies.len());
        match tallies.get_mut(place) {
            Some(tally) => tally.count += 1,
            None => tallies.push(WarningTally {
                code: warning.code.clone(),
                count: 1,
                message: warning.message.clone(),
            }),
        }
    }
    tallies.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.code.cmp(&other.code)));
    tallies
}
