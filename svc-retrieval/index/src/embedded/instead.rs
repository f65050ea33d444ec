//! What a search would find if some documents stood in place of what the index holds of them. Nothing is stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::Index;
use super::query::LexicalQuery;
use super::read::Snapshot;
use super::recent;
use crate::tuning::MOST_CANDIDATES;
use crate::vectors::{UnitVector, VectorQuery};
use crate::words::Stems;
use crate::{Candidates, ChunkId, Error, Hit, IndexedDocument, ParsedQuery, Query, Wanted, sort_hits};

impl Index {
    /// As [`Index::candidates`], with these documents in place of what is held of them: words are as rare as they would be
    /// then. Computes: runs off the async threads.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub(super) fn candidates_instead(
        &self,
        query: &Query,
        documents: &[IndexedDocument],
    ) -> Result<Vec<Candidates>, Error> {
        let instead = Instead::new(self, documents)?;
        query.lists.iter().map(|wanted| instead.list(query, wanted)).collect()
    }
}

/// A state of the index that nobody else sees.
struct Instead<'a> {
    index: &'a Index,
    snapshot: Snapshot<'a>,
    /// Where each of the documents stands that are not as they are held.
    replaced: HashMap<Uuid, Option<Uuid>>,
    vectors: Vec<(ChunkId, Vec<f32>)>,
}

impl<'a> Instead<'a> {
    fn new(index: &'a Index, documents: &[IndexedDocument]) -> Result<Self, Error> {
        let fields = &index.fields;
        let (mut rows, mut vectors, mut stems) = (Vec::new(), Vec::new(), Stems::default());
        for document in documents {
            for (ordinal, chunk) in (0..).zip(&document.chunks) {
                let id = ChunkId { document: document.document, ordinal };
                let vector = UnitVector::new(&chunk.embedding);
                rows.push(fields.encode(document, id, chunk, vector.as_ref(), &mut stems));
                vectors.extend(vector.map(|vector| (id, vector.to_f32())));
            }
        }
        let gone: Vec<_> = documents
            .iter()
            .map(|document| fields.document_term(document.workspace, document.document))
            .collect();
        let segment = match rows.as_slice() {
            [] => None,
            rows => Some(recent::segment(&fields.schema, index.engine.tokenizers(), rows)?),
        };
        let view = index.views.now().with(&gone, segment)?;
        let replaced = documents.iter().map(|document| (document.document, document.container)).collect();
        Ok(Self { index, snapshot: Snapshot { fields, view: Arc::new(view) }, replaced, vectors })
    }

    fn list(&self, query: &Query, wanted: &Wanted) -> Result<Candidates, Error> {
        let words = match &wanted.words {
            Some(words) => self.by_words(query, words, &wanted.without)?,
            None => Vec::new(),
        };
        let Some(vector) = &wanted.vector else { return Ok(Candidates { words, cosines: Vec::new() }) };
        let exclusions: Vec<&ParsedQuery> =
            wanted.words.iter().chain(&wanted.without).map(Arc::as_ref).collect();
        let own = self.cosines(query, vector);
        let near =
            if wanted.is_met_by(&words) { Vec::new() } else { self.near(query, vector, &own, &exclusions)? };
        if words.is_empty() {
            return Ok(Candidates { words, cosines: near });
        }
        let all: HashSet<ChunkId> = words.iter().chain(&near).map(|hit| hit.chunk).collect();
        let (new, held): (Vec<ChunkId>, Vec<ChunkId>) =
            all.into_iter().partition(|chunk| self.replaced.contains_key(&chunk.document));
        let mut cosines = self.index.vectors().scores(query.workspace, vector, &held)?;
        let score_of =
            |chunk: &ChunkId| own.iter().find(|hit| hit.chunk == *chunk).map_or(0.0, |hit| hit.score);
        cosines.extend(new.iter().map(|chunk| Hit { chunk: *chunk, score: score_of(chunk) }));
        sort_hits(&mut cosines);
        Ok(Candidates { words, cosines })
    }

    fn by_words(
        &self,
        query: &Query,
        words: &ParsedQuery,
        without: &[Arc<ParsedQuery>],
    ) -> Result<Vec<Hit>, Error> {
        let hits = self.snapshot.search(&LexicalQuery {
            workspace: query.workspace,
            words,
            containers: query.containers.as_ref(),
            documents: query.documents.as_ref(),
            limit: query.limit,
        })?;
        let without: Vec<&ParsedQuery> = without.iter().map(Arc::as_ref).collect();
        self.without_excluded(query, hits, &without)
    }

    /// The nearest chunks that none of the queries excludes. Where what is replaced, or exclusions, take many, it looks
    /// farther.
    fn near(
        &self,
        query: &Query,
        vector: &[f32],
        own: &[Hit],
        exclusions: &[&ParsedQuery],
    ) -> Result<Vec<Hit>, Error> {
        let mut limit = query.limit;
        loop {
            let mut hits = self.index.vectors().search(&VectorQuery {
                workspace: query.workspace,
                vector,
                containers: query.containers.as_ref(),
                documents: query.documents.as_ref(),
                limit,
            })?;
            let is_all = hits.len() < limit;
            hits.retain(|hit| hit.score > 0.0 && !self.replaced.contains_key(&hit.chunk.document));
            hits.extend(own.iter().filter(|hit| hit.score > 0.0));
            sort_hits(&mut hits);
            let mut kept = self.without_excluded(query, hits, exclusions)?;
            if is_all || kept.len() >= query.limit || limit >= MOST_CANDIDATES {
                kept.truncate(query.limit);
                return Ok(kept);
            }
            limit = limit.saturating_mul(4).min(MOST_CANDIDATES);
        }
    }

    /// The cosines of the new chunks that the query may find.
    fn cosines(&self, query: &Query, vector: &[f32]) -> Vec<Hit> {
        let Some(vector) = UnitVector::new(vector).map(|vector| vector.to_f32()) else { return Vec::new() };
        let may_be_found = |document: &Uuid| {
            let container = self.replaced.get(document).copied().flatten();
            query.documents.as_ref().is_none_or(|documents| documents.contains(document))
                && query.containers.as_ref().is_none_or(|containers| {
                    container.is_some_and(|container| containers.contains(&container))
                })
        };
        let found = self.vectors.iter().filter(|(chunk, _)| may_be_found(&chunk.document));
        let cosine = |(chunk, other): &(ChunkId, Vec<f32>)| {
            let score = vector.iter().zip(other).map(|(one, other)| one * other).sum();
            Hit { chunk: *chunk, score }
        };
        found.map(cosine).collect()
    }

    fn without_excluded(
        &self,
        query: &Query,
        mut hits: Vec<Hit>,
        exclusions: &[&ParsedQuery],
    ) -> Result<Vec<Hit>, Error> {
        for words in exclusions.iter().filter(|words| !words.excluded().is_empty()) {
            let chunks: Vec<ChunkId> = hits.iter().map(|hit| hit.chunk).collect();
            let excluded = self.snapshot.excluded(query.workspace, words, &chunks)?;
            hits.retain(|hit| !excluded.contains(&hit.chunk));
        }
        Ok(hits)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::add;
    use super::*;
    use crate::contract::{WORKSPACE, document};

    fn query(text: &str) -> Query {
        let (words, vector) = (Arc::new(ParsedQuery::parse(text)), Arc::from([0.6, 0.8]));
        let by_words = Wanted { words: Some(Arc::clone(&words)), ..Wanted::default() };
        let by_meaning =
            Wanted { words: None, vector: Some(Arc::clone(&vector)), without: vec![Arc::clone(&words)] };
        let by_both = Wanted { words: Some(words), vector: Some(vector), without: Vec::new() };
        Query {
            workspace: WORKSPACE,
            containers: None,
            documents: None,
            limit: 50,
            lists: vec![by_words, by_meaning, by_both],
        }
    }

    /// Whether both have the same chunks with the same scores, up to the half precision of stored vectors.
    #[track_caller]
    fn check(found: &[Hit], expected: &[Hit], text: &str) {
        let positive = |hits: &[Hit]| -> HashMap<ChunkId, f32> {
            hits.iter().filter(|hit| hit.score > 0.0).map(|hit| (hit.chunk, hit.score)).collect()
        };
        let (found, expected) = (positive(found), positive(expected));
        let is_near = |(chunk, score): (&ChunkId, &f32)| {
            expected.get(chunk).is_some_and(|expected| (expected - score).abs() < 0.002)
        };
        let is_same = found.len() == expected.len() && found.iter().all(is_near);
        assert!(is_same, "{text}: {found:?} is not {expected:?}");
    }

    #[test]
    fn finds_what_would_be_found_after_the_change() {
        let before = vec![
            document(1, &["The signing key is rotated every month", "Who rotates it is on call"]),
            document(2, &["Keys of the pianos are tuned", "getUserName reads a signing key"]),
            document(3, &["Nothing of the kind"]),
        ];
        let mut new = document(2, &["The pianos are sold", "Nobody reads a key", "A rotated key signs"]);
        new.chunks[1].embedding = vec![0.0, 1.0];
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let index = Index::open(folder.path(), "test", 2).unwrap();
        add(&index, before.clone());
        let after = Index::open(other.path(), "test", 2).unwrap();
        add(&after, before);
        add(&after, vec![new.clone()]);
        for text in ["signing key", "rotate -piano", "\"signing key\"", "key", "-kind", "", "sold", "zebra"] {
            let expected = after.candidates(&query(text)).unwrap();
            let found = index.candidates_instead(&query(text), std::slice::from_ref(&new)).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                check(&found.words, &expected.words, text);
                check(&found.cosines, &expected.cosines, text);
            }
        }
        // The index is as it was.
        let held = index.chunks(WORKSPACE, &[ChunkId { document: Uuid::from_u128(2), ordinal: 2 }]).unwrap();
        assert!(held.is_empty());
        let gone = index.candidates_instead(&query("piano"), &[document(2, &[])]).unwrap();
        assert!(gone[0].words.is_empty(), "{gone:?}");
    }
}
