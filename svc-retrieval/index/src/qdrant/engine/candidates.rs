//! Finds the candidates of a search in one round trip: all lists are one batch of queries.
//!
//! A hybrid list takes three queries: the sparse one; the dense one; and the sparse one as a prefetch of an exact dense one, which gives
//! the cosines of the sparse hits. The sparse query comes with one query per word that the proximity bonus needs ([`nearness`]), and
//! one that checks whether a chunk contains the last word as a whole word. A list whose end cuts through equal scores is requested
//! again with a higher limit, and one whose last word is incomplete with its completions ([`super::completions`]).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::vec;

use qdrant_client::qdrant::query::Variant;
use qdrant_client::qdrant::vector_input::Variant as Input;
use qdrant_client::qdrant::{
    DenseVector, Filter, IdfParams, PrefetchQuery, QuantizationSearchParams, Query as Asked,
    QueryBatchPoints, QueryPoints, ScoredPoint, SearchParams, SparseVector, VectorInput,
};
use uuid::Uuid;

use super::points::{self, DOCUMENT, MEANING, ORDINAL, Role, TOKENS, WORDS, chunk_point};
use super::read::{fields, no_fields, vectors_of};
use super::tuning::{MAX_TIES, OVERSAMPLING, SEARCH_CANDIDATES, TIES};
use super::{Error, Inner, filters, nearness, words};
use crate::vectors::UnitVector;
use crate::words::{AnalysedQuery, Languages, Phrase};
use crate::{Candidates, ChunkId, Hit, ListQuery, Query, sort_hits};

/// The part of the points that is searched, and corrections of their idf.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Documents that are excluded from results and statistics.
    pub(super) without: Vec<Uuid>,
    /// The factor by dimension from Qdrant's idf to the correct one; 1 for dimensions that are not listed.
    pub(super) idf_corrections: HashMap<u32, f32>,
}

impl Part {
    /// The filter of a search with these phrases and exclusions.
    fn searched(&self, query: &Query, phrases: &[Phrase], excluded: &[Phrase]) -> Filter {
        let mut filter = filters::search(query.workspace, query.containers.as_ref(), phrases, excluded);
        filter.must_not.extend(filters::not_in_documents(&self.without));
        filter
    }

    /// The corpus for idf: other tenants must not influence a score.
    pub(super) fn corpus(&self, query: &Query) -> Filter {
        let mut corpus = self.searched(query, &[], &[]);
        corpus.must.push(filters::role(Role::Chunk));
        corpus
    }

    /// The idf of the words of a list that were queried individually.
    fn idfs(&self, list: &List, answers: &mut Answers) -> HashMap<u32, f32> {
        let mut idfs = HashMap::new();
        for (dimension, _) in &list.single_words {
            let found = answers.next().unwrap_or_default();
            if let Some(idf) = nearness::idf(*dimension, &found) {
                let correction = self.idf_corrections.get(dimension).copied().unwrap_or(1.0);
                idfs.insert(*dimension, idf * correction);
            }
        }
        idfs
    }
}

/// The queries of one list. Queries that cannot find anything are omitted.
struct List {
    words: Option<QueryPoints>,
    near: Option<QueryPoints>,
    cosines: Option<QueryPoints>,
    /// For each dimension, the query for its best chunk.
    single_words: Vec<(u32, QueryPoints)>,
    /// The query for the last word as a whole word, if it may be a prefix.
    whole_word: Option<QueryPoints>,
}

impl List {
    /// The queries in the order of their results.
    fn requests(&self) -> impl Iterator<Item = &QueryPoints> {
        let lists = [&self.words, &self.near, &self.cosines].into_iter().flatten();
        lists.chain(self.single_words.iter().map(|(_, request)| request)).chain(&self.whole_word)
    }
}

/// The result of one list.
pub(super) struct Found {
    pub(super) candidates: Candidates,
    /// Whether the last word may be a prefix, and no chunk contains it as a whole word.
    needs_completion: bool,
}

/// The hits of a query, in canonical order.
struct WordHits {
    hits: Vec<Hit>,
    /// The tokens of the chunks, if requested.
    tokens: HashMap<ChunkId, String>,
    was_extended: bool,
}

/// The analysed words of one list.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) analysed: AnalysedQuery,
    /// A chunk must contain none of these.
    pub(super) excluded: Vec<Phrase>,
}

impl Search {
    /// Analyses the words of a list for these languages.
    pub(super) fn of(list_query: &ListQuery, languages: Languages) -> Self {
        let analysed =
            list_query.words.as_ref().map(|words| AnalysedQuery::new(words, languages)).unwrap_or_default();
        let others =
            list_query.without.iter().flat_map(|words| AnalysedQuery::new(words, languages).excluded);
        let excluded = analysed.excluded.iter().cloned().chain(others).collect();
        Self { analysed, excluded }
    }
}

/// The results of a batch, in the order of its queries.
type Answers = vec::IntoIter<Vec<ScoredPoint>>;

impl Inner {
    /// The candidates of each requested list.
    pub(super) async fn candidates(&self, query: &Query) -> Result<Vec<Candidates>, Error> {
        if finds_nothing(query) {
            return Ok(vec![Candidates::default(); query.lists.len()]);
        }
        self.ready().await?;
        let languages = match query
            .lists
            .iter()
            .any(|list_query| list_query.words.is_some() || !list_query.without.is_empty())
        {
            true => self.languages(query.workspace).await?,
            false => Languages::default(),
        };
        let mut searches: Vec<Search> =
            query.lists.iter().map(|list_query| Search::of(list_query, languages)).collect();
        let part = Part::default();
        let mut found = self.candidates_in(&part, query, &searches).await?;
        for ((list_query, search), found) in query.lists.iter().zip(&mut searches).zip(&mut found) {
            if found.needs_completion && self.complete(&part, query, search, &[]).await? {
                let again = Query { lists: vec![list_query.clone()], ..query.clone() };
                let search = std::slice::from_ref(&*search);
                let completed = self.candidates_in(&part, &again, search).await?.pop();
                found.candidates = completed.map(|completed| completed.candidates).unwrap_or_default();
            }
        }
        Ok(found.into_iter().map(|found| found.candidates).collect())
    }

    /// Adds the completions of the last word to a search; returns whether there are any.
    pub(super) async fn complete(
        &self,
        part: &Part,
        query: &Query,
        search: &mut Search,
        drafts: &[&words::Words],
    ) -> Result<bool, Error> {
        let Some(prefix) = &search.analysed.prefix else { return Ok(false) };
        let completions = self.completions(part, query, prefix, drafts).await?;
        let is_any = !completions.is_empty();
        search.analysed.words.extend(completions.into_iter().map(|word| (word, 1.0)));
        Ok(is_any)
    }

    /// The results of each list in a part of the points.
    pub(super) async fn candidates_in(
        &self,
        part: &Part,
        query: &Query,
        searches: &[Search],
    ) -> Result<Vec<Found>, Error> {
        let asked = query.lists.iter().zip(searches);
        let lists: Vec<List> =
            asked.map(|(list_query, search)| self.list(part, query, list_query, search)).collect();
        let requests = lists.iter().flat_map(List::requests);
        let mut answers = self.batch(requests.cloned().collect()).await?.into_iter();
        let mut found = Vec::with_capacity(lists.len());
        for ((list_query, list), search) in query.lists.iter().zip(&lists).zip(searches) {
            found.push(self.found(part, (query, list_query), (list, search), &mut answers).await?);
        }
        Ok(found)
    }

    fn list(&self, part: &Part, query: &Query, list_query: &ListQuery, search: &Search) -> List {
        let words = self.by_words(part, query, search);
        let vector = list_query.vector.as_ref().filter(|vector| UnitVector::new(vector).is_some());
        let near = vector.map(|vector| self.by_meaning(part, query, vector, &search.excluded));
        let cosines = words.as_ref().zip(vector).map(|(words, vector)| self.cosines_of(words, vector));
        let (mut single_words, mut whole_word) = (Vec::new(), None);
        if words.is_some() {
            let dimensions = nearness::paired(&search.analysed).into_iter().map(words::dimension);
            single_words
                .extend(dimensions.map(|dimension| (dimension, self.best_for(part, query, &[dimension]))));
            whole_word = search.analysed.prefix.as_ref().map(|prefix| {
                let whole: BTreeSet<u32> = prefix.whole.iter().map(|word| words::dimension(word)).collect();
                self.best_for(part, query, &whole.into_iter().collect::<Vec<u32>>())
            });
        }
        List { words, near, cosines, single_words, whole_word }
    }

    /// The query for the best chunk of the corpus for these dimensions, with their weights in it.
    fn best_for(&self, part: &Part, query: &Query, dimensions: &[u32]) -> QueryPoints {
        let corpus = part.corpus(query);
        let idf = IdfParams { corpus: Some(corpus.clone()) };
        let vector = SparseVector { values: vec![1.0; dimensions.len()], indices: dimensions.to_vec() };
        QueryPoints {
            params: Some(SearchParams { idf: Some(idf), ..SearchParams::default() }),
            limit: Some(1),
            with_payload: Some(no_fields()),
            with_vectors: Some(vectors_of(WORDS)),
            ..self.nearest(WORDS, Input::Sparse(vector), corpus)
        }
    }

    /// The sparse query; `None` if there are no words.
    fn by_words(&self, part: &Part, query: &Query, search: &Search) -> Option<QueryPoints> {
        let weights = words::query(&search.analysed);
        if weights.is_empty() {
            return None;
        }
        let corrected = |(dimension, weight): (u32, f32)| {
            (dimension, weight * part.idf_corrections.get(&dimension).copied().unwrap_or(1.0))
        };
        let (indices, values) = weights.into_iter().map(corrected).unzip();
        let mut filter = part.searched(query, &search.analysed.phrases, &search.excluded);
        filter.must.extend(filters::in_documents(query.documents.as_ref()));
        let idf = IdfParams { corpus: Some(part.corpus(query)) };
        let params = SearchParams { idf: Some(idf), ..SearchParams::default() };
        let vector = Input::Sparse(SparseVector { values, indices });
        let has_pairs = !search.analysed.pairs.is_empty();
        let shown: &[&str] = if has_pairs { &[DOCUMENT, ORDINAL, TOKENS] } else { &[DOCUMENT, ORDINAL] };
        Some(QueryPoints {
            params: Some(params),
            limit: Some(request_limit(query.limit)),
            with_payload: Some(fields(shown)),
            ..self.nearest(WORDS, vector, filter)
        })
    }

    /// The dense query, for a non-zero vector.
    fn by_meaning(&self, part: &Part, query: &Query, vector: &[f32], excluded: &[Phrase]) -> QueryPoints {
        let mut filter = part.searched(query, &[], excluded);
        filter.must.extend(filters::in_documents(query.documents.as_ref()));
        let quantization =
            QuantizationSearchParams { ignore: None, rescore: Some(true), oversampling: Some(OVERSAMPLING) };
        let params = SearchParams {
            hnsw_ef: Some(SEARCH_CANDIDATES),
            quantization: Some(quantization),
            ..SearchParams::default()
        };
        let limit = Some(request_limit(query.limit));
        QueryPoints { params: Some(params), limit, ..self.nearest(MEANING, dense(vector), filter) }
    }

    /// The query for the exact cosines of the hits of a sparse query.
    fn cosines_of(&self, words: &QueryPoints, vector: &[f32]) -> QueryPoints {
        let chosen = words.clone();
        let prefetch = PrefetchQuery {
            query: chosen.query,
            using: chosen.using,
            filter: chosen.filter,
            params: chosen.params,
            limit: chosen.limit,
            ..PrefetchQuery::default()
        };
        QueryPoints {
            prefetch: vec![prefetch],
            params: Some(exact()),
            limit: words.limit,
            filter: None,
            ..self.nearest(MEANING, dense(vector), Filter::default())
        }
    }

    fn nearest(&self, using: &str, vector: Input, filter: Filter) -> QueryPoints {
        QueryPoints {
            collection_name: self.collection.clone(),
            query: Some(Asked { variant: Some(Variant::Nearest(VectorInput { variant: Some(vector) })) }),
            using: Some(using.to_owned()),
            filter: Some(filter),
            with_payload: Some(fields(&[DOCUMENT, ORDINAL])),
            ..QueryPoints::default()
        }
    }

    /// Sends a batch of queries.
    async fn batch(&self, mut query_points: Vec<QueryPoints>) -> Result<Vec<Vec<ScoredPoint>>, Error> {
        if query_points.is_empty() {
            return Ok(Vec::new());
        }
        let mark = self.mark();
        query_points.push(self.mark_query());
        let asked = query_points.len();
        let collection_name = self.collection.clone();
        let request = QueryBatchPoints { collection_name, query_points, ..QueryBatchPoints::default() };
        let mut answers = self.detect_loss(self.client.api.query_batch(request).await)?.result;
        if answers.len() != asked {
            return Err(Error::Answer("a batch of queries has another number of answers"));
        }
        let current = answers.pop().and_then(|answer| Self::parse_mark(&answer.result));
        self.check_mark(mark, current)?;
        Ok(answers.into_iter().map(|answer| answer.result).collect())
    }

    async fn found(
        &self,
        part: &Part,
        (query, list_query): (&Query, &ListQuery),
        (list, search): (&List, &Search),
        answers: &mut Answers,
    ) -> Result<Found, Error> {
        let by_words = self.resolve_ties(query.limit, list.words.as_ref(), answers).await?;
        let mut near = self.resolve_ties(query.limit, list.near.as_ref(), answers).await?.hits;
        // A negative cosine is no evidence.
        near.retain(|hit| hit.score > 0.0);
        let exact = if list.cosines.is_some() { answers.next().unwrap_or_default() } else { Vec::new() };
        let idfs = part.idfs(list, answers);
        let needs_completion = list.whole_word.is_some() && answers.next().unwrap_or_default().is_empty();
        if list_query.requires_phrase_match(&by_words.hits) {
            near.clear();
        }
        let by_words = by_words.with_nearness(&search.analysed, &idfs);
        let candidates = self.merge(query, list_query, by_words, (near, hits(&exact)?)).await?;
        Ok(Found { candidates, needs_completion })
    }

    /// Merges the hits by words and by vector, with the cosines of both.
    async fn merge(
        &self,
        query: &Query,
        list_query: &ListQuery,
        by_words: WordHits,
        (near, exact): (Vec<Hit>, Vec<Hit>),
    ) -> Result<Candidates, Error> {
        let WordHits { hits: words, was_extended, .. } = by_words;
        let Some(vector) = list_query.vector.as_ref().filter(|_| !words.is_empty()) else {
            return Ok(Candidates { words, cosines: near });
        };
        let mut known: HashMap<ChunkId, f32> = exact.iter().map(|hit| (hit.chunk, hit.score)).collect();
        if was_extended {
            let missing = words.iter().map(|hit| hit.chunk).filter(|chunk| !known.contains_key(chunk));
            let missing = missing.collect();
            known.extend(self.cosines(query.workspace, vector, missing).await?);
        }
        // A chunk without a cosine has no vector.
        let of_words =
            words.iter().map(|hit| (hit.chunk, known.get(&hit.chunk).copied().unwrap_or_default()));
        let mut scores: HashMap<ChunkId, f32> = near.iter().map(|hit| (hit.chunk, hit.score)).collect();
        scores.extend(of_words);
        let mut cosines: Vec<Hit> = scores.into_iter().map(|(chunk, score)| Hit { chunk, score }).collect();
        sort_hits(&mut cosines);
        Ok(Candidates { words, cosines })
    }

    /// The best hits of a query with deterministic tie-breaking: if the end of the response cuts through equal scores, more is requested.
    async fn resolve_ties(
        &self,
        limit: usize,
        request: Option<&QueryPoints>,
        answers: &mut Answers,
    ) -> Result<WordHits, Error> {
        let Some(request) = request else { return Ok(WordHits::nothing()) };
        let mut points = answers.next().unwrap_or_default();
        let mut asked = limit.saturating_add(TIES);
        let mut was_extended = false;
        loop {
            let mut hits = hits(&points)?;
            sort_hits(&mut hits);
            let last_wanted = limit.checked_sub(1).and_then(|last| hits.get(last)).map(|hit| hit.score);
            let reaches_over = last_wanted.is_some() && last_wanted == hits.last().map(|hit| hit.score);
            if hits.len() < asked || !reaches_over || asked >= MAX_TIES {
                hits.truncate(limit);
                return Ok(WordHits { tokens: tokens(&points)?, hits, was_extended });
            }
            asked = asked.saturating_mul(4);
            was_extended = true;
            let limit = u64::try_from(asked).unwrap_or(u64::MAX);
            let more = vec![QueryPoints { limit: Some(limit), ..request.clone() }];
            points = self.batch(more).await?.pop().unwrap_or_default();
        }
    }

    /// The exact cosines of the chunks that have a vector.
    async fn cosines(
        &self,
        workspace: Uuid,
        vector: &[f32],
        chunks: Vec<ChunkId>,
    ) -> Result<HashMap<ChunkId, f32>, Error> {
        let filter = Filter::must([filters::chunks(workspace, &chunks)]);
        let request = QueryPoints {
            params: Some(exact()),
            limit: u64::try_from(chunks.len()).ok(),
            with_payload: Some(no_fields()),
            ..self.nearest(MEANING, dense(vector), filter)
        };
        let found = self.detect_loss(self.client.api.query(request).await)?.result;
        let by_point: HashMap<Uuid, ChunkId> =
            chunks.into_iter().map(|chunk| (chunk_point(workspace, chunk), chunk)).collect();
        let cosine =
            |point: &ScoredPoint| Some((*by_point.get(&points::uuid_of(point.id.as_ref())?)?, point.score));
        Ok(found.iter().filter_map(cosine).collect())
    }
}

impl WordHits {
    fn nothing() -> Self {
        Self { hits: Vec::new(), tokens: HashMap::new(), was_extended: false }
    }

    /// Adds the proximity bonus and sorts again.
    fn with_nearness(mut self, analysed: &AnalysedQuery, idfs: &HashMap<u32, f32>) -> Self {
        for hit in &mut self.hits {
            let tokens = self.tokens.get(&hit.chunk).map(String::as_str).unwrap_or_default();
            hit.score += nearness::bonus(&analysed.pairs, tokens, idfs);
        }
        sort_hits(&mut self.hits);
        self
    }
}

/// Whether no chunk can be found.
pub(super) fn finds_nothing(query: &Query) -> bool {
    query.limit == 0 || query.containers.as_ref().is_some_and(HashSet::is_empty)
}

/// The requested limit: enough to see whether ties reach beyond `limit`.
fn request_limit(limit: usize) -> u64 {
    u64::try_from(limit.saturating_add(TIES)).unwrap_or(u64::MAX)
}

fn dense(vector: &[f32]) -> Input {
    Input::Dense(DenseVector { data: vector.to_vec() })
}

fn exact() -> SearchParams {
    SearchParams {
        exact: Some(true),
        quantization: Some(QuantizationSearchParams {
            ignore: Some(true),
            rescore: None,
            oversampling: None,
        }),
        ..SearchParams::default()
    }
}

/// The tokens of the chunks that have some in their payload.
fn tokens(points: &[ScoredPoint]) -> Result<HashMap<ChunkId, String>, Error> {
    let with_tokens = points.iter().filter(|point| point.payload.contains_key(TOKENS));
    let tokens = |point: &ScoredPoint| {
        Ok((points::read_chunk_id(&point.payload)?, points::text(&point.payload, TOKENS)))
    };
    with_tokens.map(tokens).collect()
}

fn hits(points: &[ScoredPoint]) -> Result<Vec<Hit>, Error> {
    let hit =
        |point: &ScoredPoint| Ok(Hit { chunk: points::read_chunk_id(&point.payload)?, score: point.score });
    points.iter().map(hit).collect()
}
