//! Searches the index as if some documents were replaced with drafts. Nothing is stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::Index;
use super::candidates::{Nearest, Searchable};
use super::query::LexicalQuery;
use super::read::Snapshot;
use super::recent;
use crate::vectors::{DraftVectors, RowFilter, VectorQuery};
use crate::{Candidates, ChunkId, Error, Hit, IndexedDocument, ParsedQuery, Query, sort_hits};

impl Index {
    /// As [`Index::candidates`], with these documents in place of their indexed versions; statistics include them. CPU-bound: runs
    /// on blocking threads.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub(super) fn candidates_with_drafts(
        &self,
        query: &Query,
        documents: &[IndexedDocument],
    ) -> Result<Vec<Candidates>, Error> {
        Overlay::new(self, documents)?.lists(query)
    }
}

/// A private view of the index with drafts in place of the indexed documents.
pub(super) struct Overlay<'a> {
    index: &'a Index,
    snapshot: Snapshot<'a>,
    /// The vectors of the drafts.
    vectors: DraftVectors,
}

impl<'a> Overlay<'a> {
    pub(super) fn new(index: &'a Index, documents: &[IndexedDocument]) -> Result<Self, Error> {
        let fields = &index.fields;
        let rows = fields.encode_all(documents);
        let gone: Vec<_> = documents
            .iter()
            .map(|document| fields.document_term(document.workspace, document.document))
            .collect();
        let segment = match rows.as_slice() {
            [] => None,
            rows => Some(recent::segment(&fields.schema, index.engine.tokenizers(), rows)?),
        };
        let view = index.current_view.load().with(&gone, segment)?;
        let vectors = DraftVectors::of(documents);
        Ok(Self { index, snapshot: Snapshot { fields, view: Arc::new(view) }, vectors })
    }

    pub(super) fn index(&self) -> &'a Index {
        self.index
    }

    pub(super) fn snapshot(&self) -> &Snapshot<'a> {
        &self.snapshot
    }

    /// The vectors of the drafts.
    pub(super) fn vectors(&self) -> &DraftVectors {
        &self.vectors
    }
}

impl Searchable for Overlay<'_> {
    fn find_words(&self, query: &LexicalQuery<'_>) -> Result<Vec<Hit>, Error> {
        Ok(self.snapshot.search(query)?)
    }

    fn find_excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> Result<HashSet<ChunkId>, Error> {
        Ok(self.snapshot.excluded(workspace, words, chunks)?)
    }

    /// May return fewer hits than the limit although there are more: indexed versions of drafts count towards the limit before they
    /// are dropped.
    fn find_nearest(&self, query: &VectorQuery<'_>) -> Result<Nearest, Error> {
        let mut hits = self.index.vectors().search(query)?;
        let is_exhaustive = hits.len() < query.limit;
        hits.retain(|hit| !self.vectors.has(hit.chunk.document));
        let within = RowFilter { containers: query.containers, documents: query.documents };
        hits.extend(self.vectors.cosines(query.vector, within));
        sort_hits(&mut hits);
        Ok(Nearest { hits, is_exhaustive })
    }

    fn cosines(&self, workspace: Uuid, vector: &[f32], chunks: Vec<ChunkId>) -> Result<Vec<Hit>, Error> {
        let (new, held): (Vec<ChunkId>, Vec<ChunkId>) =
            chunks.into_iter().partition(|chunk| self.vectors.has(chunk.document));
        let mut cosines = self.index.vectors().scores(workspace, vector, &held)?;
        let own = self.vectors.cosines(vector, RowFilter::default());
        let own: HashMap<ChunkId, f32> = own.iter().map(|hit| (hit.chunk, hit.score)).collect();
        let cosine = |chunk: ChunkId| Hit { chunk, score: own.get(&chunk).copied().unwrap_or_default() };
        cosines.extend(new.into_iter().map(cosine));
        Ok(cosines)
    }
}
