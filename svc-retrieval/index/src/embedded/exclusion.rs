//! Makes any query fit to exclude what it finds.
//!
//! tantivy 0.27 asks excluded scorers whether they hold a row before the one that they are on, against the
//! rule of `seek_danger`; a phrase then fails a debug assertion. A scorer without `seek_danger` of its own
//! takes tantivy's general one, which answers such questions rightly.

use std::fmt;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

/// Finds what the wrapped query finds.
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
