//! Wraps a query so that it can be used as an exclusion.
//!
//! tantivy 0.27 calls `seek_danger` of excluded scorers with rows before their current one, which violates its contract; a phrase
//! scorer then fails a debug assertion. This wrapper does not forward `seek_danger`, so that tantivy's default implementation is
//! used, which handles such calls correctly.

use std::fmt;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

/// Matches what the wrapped query matches.
pub(super) struct Exclusion(pub(super) Box<dyn Query>);

impl Clone for Exclusion {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl fmt::Debug for Exclusion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Query for Exclusion {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ExclusionWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct ExclusionWeight(Box<dyn Weight>);

impl Weight for ExclusionWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(ExclusionScorer(self.0.scorer(segment, boost)?)))
    }

    fn explain(&self, segment: &SegmentReader, row: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(segment, row)
    }
}

struct ExclusionScorer(Box<dyn Scorer>);

impl DocSet for ExclusionScorer {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }
}

impl Scorer for ExclusionScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
