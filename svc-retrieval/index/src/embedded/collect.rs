//! Collects the best rows of a view.
//!
//! Where most rows of a segment pass the filters, they are applied after scoring, so that tantivy can skip whole blocks with
//! block-max WAND, which it uses for a plain union of words only. Where few rows pass, the filters are part of the query.

use tantivy::query::{BooleanQuery, ConstScoreQuery, EnableScoring, Occur, Query, Scorer, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Score};

use super::exclusion::Exclusion;
use super::query_builder::CompiledQuery;
use super::statistics::LiveStatistics;
use super::view::{Address, Part, View};
use crate::top_k::TopK;
use crate::tuning::TESTED_SHARE;

/// The best rows with their scores, unordered.
pub(super) fn best(
    view: &View,
    statistics: &LiveStatistics<'_>,
    query: &CompiledQuery,
    limit: usize,
) -> tantivy::Result<Vec<(Score, Address)>> {
    let mut top = TopK::new(limit);
    if limit == 0 || statistics.is_empty() {
        return Ok(top.into_items().collect());
    }
    let scoring = EnableScoring::enabled_from_statistics_provider(statistics, view.searcher());
    let mut search = Search { query, scoring, scored: query.scored.weight(scoring)?, filtered: None };
    for (place, part) in view.largest_first() {
        search.visit(part, place, &mut top)?;
    }
    Ok(top.into_items().collect())
}

struct Search<'a> {
    query: &'a CompiledQuery,
    scoring: EnableScoring<'a>,
    scored: Box<dyn Weight>,
    /// The query with its filters, built when a part first needs it.
    filtered: Option<Box<dyn Weight>>,
}

impl Search<'_> {
    fn visit(&mut self, part: &Part, place: usize, top: &mut TopK<Address>) -> tantivy::Result<()> {
        let of_workspace = part.rows_with(&self.query.workspace)?;
        if of_workspace == 0 {
            return Ok(());
        }
        let passes_most = of_workspace >= part.rows() / TESTED_SHARE
            && self.query.containers.is_none()
            && self.query.documents.is_none();
        if !passes_most {
            let filtered = match self.filtered.take() {
                Some(filtered) => filtered,
                None => self.query.with_filters().weight(self.scoring)?,
            };
            collect(filtered.as_ref(), &mut [], part, place, top)?;
            self.filtered = Some(filtered);
            return Ok(());
        }
        let mut tests = self.exclusion_tests(part)?;
        if of_workspace < part.rows() {
            let workspace = TermQuery::new(self.query.workspace.clone(), IndexRecordOption::Basic);
            tests.push(Test { rows: self.unscored(&workspace, part)?, is_required: true });
        }
        collect(self.scored.as_ref(), &mut tests, part, place, top)
    }

    fn exclusion_tests(&self, part: &Part) -> tantivy::Result<Vec<Test>> {
        let tests =
            self.query.exclusions.iter().map(|exclusion| {
                Ok(Test { rows: self.unscored(exclusion.as_ref(), part)?, is_required: false })
            });
        tests.collect()
    }

    fn unscored(&self, query: &dyn Query, part: &Part) -> tantivy::Result<Box<dyn Scorer>> {
        query.weight(EnableScoring::disabled_from_schema(self.scoring.schema()))?.scorer(&part.segment, 1.0)
    }
}

fn collect(
    weight: &dyn Weight,
    tests: &mut [Test],
    part: &Part,
    place: usize,
    top: &mut TopK<Address>,
) -> tantivy::Result<()> {
    weight.for_each_pruning(top.threshold(), &part.segment, &mut |row, score| {
        if part.is_live(row) && tests.iter_mut().all(|test| test.passes(row)) {
            top.push(score, Address { part: place, row });
        }
        top.threshold()
    })
}

/// A filter, which is tested with rows in ascending order.
struct Test {
    rows: Box<dyn Scorer>,
    /// Whether a row must be in `rows`, or must not be.
    is_required: bool,
}

impl Test {
    fn passes(&mut self, row: DocId) -> bool {
        let reached = if self.rows.doc() < row { self.rows.seek(row) } else { self.rows.doc() };
        (reached == row) == self.is_required
    }
}

impl CompiledQuery {
    /// One query with all filters.
    fn with_filters(&self) -> BooleanQuery {
        let workspace = TermQuery::new(self.workspace.clone(), IndexRecordOption::Basic);
        let mut clauses = vec![(Occur::Must, self.scored.box_clone()), filter(Box::new(workspace))];
        let sets = self.containers.iter().chain(&self.documents);
        clauses.extend(sets.map(|set| filter(Box::new(set.clone()))));
        let exclusions = self.exclusions.iter().map(|exclusion| Exclusion(exclusion.box_clone()));
        clauses.extend(exclusions.map(|exclusion| (Occur::MustNot, Box::new(exclusion) as Box<dyn Query>)));
        BooleanQuery::new(clauses)
    }
}

/// A clause that does not change the score.
fn filter(query: Box<dyn Query>) -> (Occur, Box<dyn Query>) {
    (Occur::Must, Box::new(ConstScoreQuery::new(query, 0.0)))
}
