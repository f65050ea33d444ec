//! Finds the candidates of a search. CPU-bound: runs on blocking threads.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use uuid::Uuid;

use super::Index;
use super::query::LexicalQuery;
use crate::tuning::MAX_CANDIDATES;
use crate::vectors::VectorQuery;
use crate::{Candidates, ChunkId, Error, Hit, ListQuery, ParsedQuery, Query, sort_hits};

/// Words and vectors that can be searched for candidates.
pub(super) trait Searchable {
    /// The best chunks by BM25.
    fn find_words(&self, query: &LexicalQuery<'_>) -> Result<Vec<Hit>, Error>;

    /// Those of the chunks that contain an exclusion of the query.
    fn find_excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> Result<HashSet<ChunkId>, Error>;

    /// The nearest chunks, best first.
    fn find_nearest(&self, query: &VectorQuery<'_>) -> Result<Nearest, Error>;

    /// The exact cosine of each chunk, 0 for one without a vector; unordered.
    fn cosines(&self, workspace: Uuid, vector: &[f32], chunks: Vec<ChunkId>) -> Result<Vec<Hit>, Error>;

    /// The candidates of each requested list.
    fn lists(&self, query: &Query) -> Result<Vec<Candidates>, Error> {
        query.lists.iter().map(|list_query| self.list(query, list_query)).collect()
    }

    /// The candidates of one list.
    fn list(&self, query: &Query, list_query: &ListQuery) -> Result<Candidates, Error> {
        let words = match &list_query.words {
            Some(words) => self.by_words(query, words, &list_query.without)?,
            None => Vec::new(),
        };
        let Some(vector) = &list_query.vector else { return Ok(Candidates { words, cosines: Vec::new() }) };
        let exclusions: Vec<&ParsedQuery> =
            list_query.words.iter().chain(&list_query.without).map(Arc::as_ref).collect();
        let near = if list_query.requires_phrase_match(&words) {
            Vec::new()
        } else {
            self.near(query, vector, &exclusions)?
        };
        if words.is_empty() {
            return Ok(Candidates { words, cosines: near });
        }
        // The nearest chunks already have their cosines.
        let mut cosines = self.cosines(query.workspace, vector, beside(&words, &near))?;
        cosines.extend(near);
        sort_hits(&mut cosines);
        Ok(Candidates { words, cosines })
    }

    /// The hits by words.
    fn by_words(
        &self,
        query: &Query,
        words: &ParsedQuery,
        without: &[Arc<ParsedQuery>],
    ) -> Result<Vec<Hit>, Error> {
        let hits = self.find_words(&LexicalQuery {
            workspace: query.workspace,
            words,
            containers: query.containers.as_ref(),
            documents: query.documents.as_ref(),
            limit: query.limit,
        })?;
        // The search itself applied the exclusions of `words`.
        let without: Vec<&ParsedQuery> = without.iter().map(Arc::as_ref).collect();
        self.without_excluded(query, hits, &without)
    }

    /// The nearest chunks that none of the queries excludes. The limit grows while exclusions remove too many.
    fn near(&self, query: &Query, vector: &[f32], exclusions: &[&ParsedQuery]) -> Result<Vec<Hit>, Error> {
        let mut limit = query.limit;
        loop {
            let Nearest { mut hits, is_exhaustive } = self.find_nearest(&VectorQuery {
                workspace: query.workspace,
                vector,
                containers: query.containers.as_ref(),
                documents: query.documents.as_ref(),
                limit,
            })?;
            hits.retain(|hit| hit.score > 0.0);
            let mut kept = self.without_excluded(query, hits, exclusions)?;
            if is_exhaustive || kept.len() >= query.limit || limit >= MAX_CANDIDATES {
                kept.truncate(query.limit);
                return Ok(kept);
            }
            limit = limit.saturating_mul(4).min(MAX_CANDIDATES);
        }
    }

    /// The hits that none of the queries excludes.
    fn without_excluded(
        &self,
        query: &Query,
        mut hits: Vec<Hit>,
        exclusions: &[&ParsedQuery],
    ) -> Result<Vec<Hit>, Error> {
        for words in exclusions.iter().filter(|words| !words.excluded().is_empty()) {
            let chunks: Vec<ChunkId> = hits.iter().map(|hit| hit.chunk).collect();
            let excluded = self.find_excluded(query.workspace, words, &chunks)?;
            hits.retain(|hit| !excluded.contains(&hit.chunk));
        }
        Ok(hits)
    }
}

/// The nearest chunks.
pub(super) struct Nearest {
    pub(super) hits: Vec<Hit>,
    /// Whether there are no further chunks.
    pub(super) is_exhaustive: bool,
}

impl Index {
    /// The candidates of each requested list.
    pub(super) fn candidates(&self, query: &Query) -> Result<Vec<Candidates>, Error> {
        self.lists(query)
    }
}

impl Searchable for Index {
    fn find_words(&self, query: &LexicalQuery<'_>) -> Result<Vec<Hit>, Error> {
        self.search(query)
    }

    fn find_excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> Result<HashSet<ChunkId>, Error> {
        self.excluded(workspace, words, chunks)
    }

    fn find_nearest(&self, query: &VectorQuery<'_>) -> Result<Nearest, Error> {
        let hits = self.vectors().search(query)?;
        Ok(Nearest { is_exhaustive: hits.len() < query.limit, hits })
    }

    fn cosines(&self, workspace: Uuid, vector: &[f32], chunks: Vec<ChunkId>) -> Result<Vec<Hit>, Error> {
        self.vectors().scores(workspace, vector, &chunks)
    }
}

/// The chunks found by words that are not among the nearest ones.
fn beside(words: &[Hit], near: &[Hit]) -> Vec<ChunkId> {
    let near: HashSet<ChunkId, RandomState> = near.iter().map(|hit| hit.chunk).collect();
    words.iter().map(|hit| hit.chunk).filter(|chunk| !near.contains(chunk)).collect()
}
