//! Reads the features of a few chunks for reranking: texts and vectors, and the frequencies of the question's words and pieces.
//!
//! Each word and piece takes a count call; a limited number runs concurrently with the call that reads the chunks. The counts are
//! exact, and no document that the caller cannot see influences them.

use std::collections::{BTreeSet, HashMap};

use futures::future::{try_join_all, try_join3};
use qdrant_client::qdrant::Filter;
use uuid::Uuid;

use super::drafts::Drafts;
use super::points::{self, STORED_FIELDS, chunk_point};
use super::read::{meaning, no_vectors};
use super::tuning::COUNT_CONCURRENCY;
use super::words::dimension;
use super::{Error, Inner, filters};
use crate::vectors::{Composed, UnitVector};
use crate::words::Languages;
use crate::{ChunkId, InspectRequest, Inspection, PieceCounts, Query, QuestionWords, StoredChunk, idf};

impl Inner {
    /// The texts and vectors of the chunks, and the frequencies of the question's words and pieces, with drafts in place of their
    /// indexed versions. Chunks of drafts are not returned.
    pub(super) async fn inspect(
        &self,
        request: &InspectRequest,
        drafts: &Drafts,
    ) -> Result<Inspection, Error> {
        self.ready().await?;
        let languages = self.languages(request.workspace).await?.union(drafts.languages());
        let words = self.question_words(request, languages, drafts);
        let piece_counts = self.piece_counts(request, drafts);
        let (words, piece_counts, (chunks, composed)) =
            try_join3(words, piece_counts, self.read_chunks(request)).await?;
        Ok(Inspection { chunks, composed, piece_counts, words })
    }

    async fn read_chunks(
        &self,
        request: &InspectRequest,
    ) -> Result<(Vec<StoredChunk>, HashMap<ChunkId, Composed>), Error> {
        let (mut chunks, mut composed) = (Vec::new(), HashMap::new());
        if request.chunks.is_empty() {
            return Ok((chunks, composed));
        }
        let ids: Vec<Uuid> = request.chunks.iter().map(|id| chunk_point(request.workspace, *id)).collect();
        let vectors = if request.pieces.is_some() { meaning() } else { no_vectors() };
        let mut found = self.get_with(ids, STORED_FIELDS, vectors).await?;
        for id in &request.chunks {
            let Some(point) = found.remove(&chunk_point(request.workspace, *id)) else { continue };
            chunks.push(points::read_chunk(*id, &point.payload));
            let vector = points::read_vector(point.vectors).and_then(|vector| UnitVector::new(&vector));
            composed.extend(vector.map(|vector| (*id, vector.into())));
        }
        Ok((chunks, composed))
    }

    /// The words of the question with their idf in the corpus.
    async fn question_words(
        &self,
        request: &InspectRequest,
        languages: Languages,
        drafts: &Drafts,
    ) -> Result<QuestionWords, Error> {
        let uncounted = QuestionWords::uncounted(&request.question, languages);
        if uncounted.words.is_empty() {
            return Ok(uncounted);
        }
        let forms: BTreeSet<&str> =
            uncounted.words.iter().flat_map(|(word, _)| word.forms.iter().map(String::as_str)).collect();
        let query = corpus_query(request);
        let corpus = drafts.part().corpus(&query);
        let counting: Vec<_> = drafts.counting(&query).collect();
        let all = self.count_points(corpus.clone()).await?.saturating_add(size(counting.len()));
        let forms: Vec<&str> = forms.into_iter().collect();
        let filters = forms.iter().map(|form| with(&corpus, filters::has_form(form)));
        let mut frequencies: HashMap<&str, u64> = HashMap::new();
        for (form, held) in forms.iter().copied().zip(self.count_each(filters.collect()).await?) {
            let own = counting.iter().filter(|row| row.words.weights.contains_key(&dimension(form))).count();
            frequencies.insert(form, held.saturating_add(size(own)));
        }
        QuestionWords::of(&request.question, languages, |forms| {
            let most = forms.iter().filter_map(|form| frequencies.get(form.as_str())).max();
            Ok(idf(all, most.copied().unwrap_or_default()))
        })
    }

    /// How many chunks of the workspace contain each piece; `None` if not requested, and for a search restricted to folders.
    async fn piece_counts(
        &self,
        request: &InspectRequest,
        drafts: &Drafts,
    ) -> Result<Option<PieceCounts>, Error> {
        let Some(pieces) = request.pieces.as_ref().filter(|_| request.containers.is_none()) else {
            return Ok(None);
        };
        let corpus = with(&drafts.part().corpus(&corpus_query(request)), filters::has_meaning());
        let of_pieces = pieces.iter().map(|piece| with(&corpus, filters::has_piece(*piece)));
        let filters: Vec<Filter> = std::iter::once(corpus.clone()).chain(of_pieces).collect();
        let mut counts = self.count_each(filters).await?.into_iter();
        let own = drafts.piece_counts(pieces);
        let chunks = small(counts.next().unwrap_or_default()).saturating_add(own.chunks);
        let both = counts.zip(own.counts).map(|(held, own)| small(held).saturating_add(own));
        Ok(Some(PieceCounts { chunks, counts: both.collect() }))
    }

    /// How many points match each filter.
    async fn count_each(&self, filters: Vec<Filter>) -> Result<Vec<u64>, Error> {
        let mut counts = Vec::with_capacity(filters.len());
        for some in filters.chunks(COUNT_CONCURRENCY) {
            let asked: Vec<_> = some.iter().map(|filter| self.count_points(filter.clone())).collect();
            counts.extend(try_join_all(asked).await?);
        }
        Ok(counts)
    }
}

/// The query whose corpus the words are counted in.
fn corpus_query(request: &InspectRequest) -> Query {
    let containers = request.containers.clone();
    Query { workspace: request.workspace, containers, documents: None, limit: 0, lists: Vec::new() }
}

fn with(corpus: &Filter, condition: qdrant_client::qdrant::Condition) -> Filter {
    let mut filter = corpus.clone();
    filter.must.push(condition);
    filter
}

fn size(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
