//! Finds what a search ranks, in one round trip: all lists are one batch of queries.
//!
//! A list by both is three of them: the words; the nearest; and the words once more as what an exact search by the vector
//! chooses from, which gives the cosines of what the words find. Where equal scores reach over the end of a list, that
//! one is asked for again.

use std::collections::{HashMap, HashSet};
use std::vec;

use qdrant_client::qdrant::query::Variant;
use qdrant_client::qdrant::vector_input::Variant as Input;
use qdrant_client::qdrant::{
    DenseVector, Filter, IdfParams, PrefetchQuery, QuantizationSearchParams, Query as Asked,
    QueryBatchPoints, QueryPoints, ScoredPoint, SearchParams, SparseVector, VectorInput,
};
use uuid::Uuid;

use super::points::{self, DOCUMENT, MEANING, ORDINAL, Role, WORDS, chunk_point};
use super::read::{fields, no_fields};
use super::tuning::{MOST_TIES, OVERSAMPLING, SEARCH_CANDIDATES, TIES};
use super::{Error, Inner, filters, words};
use crate::vectors::UnitVector;
use crate::words::{Languages, Phrase, Sought};
use crate::{Candidates, ChunkId, Hit, Query, Wanted, sort_hits};

/// What of the points a search is about, and what its words count there.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Documents that are neither found nor counted.
    pub(super) without: Vec<Uuid>,
    /// By how much more or less than Qdrant thinks a dimension of words tells; 1 for those that are not named.
    pub(super) telling: HashMap<u32, f32>,
}

impl Part {
    /// What a search may find with these phrases and without these exclusions.
    fn searched(&self, query: &Query, phrases: &[Phrase], excluded: &[Phrase]) -> Filter {
        let mut filter = filters::searched(query.workspace, query.containers.as_ref(), phrases, excluded);
        filter.must_not.extend(filters::but(&self.without));
        filter
    }

    /// What words are counted in: no other tenant's move a score.
    pub(super) fn corpus(&self, query: &Query) -> Filter {
        let mut corpus = self.searched(query, &[], &[]);
        corpus.must.push(filters::role(Role::Chunk));
        corpus
    }
}

/// One list as it is asked for: what may find nothing is not asked.
struct List {
    words: Option<QueryPoints>,
    near: Option<QueryPoints>,
    cosines: Option<QueryPoints>,
}

/// The words of one list.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) sought: Sought,
    /// None of which a chunk may hold.
    pub(super) excluded: Vec<Phrase>,
}

impl Search {
    /// Those of a list in text of these languages.
    pub(super) fn of(wanted: &Wanted, languages: Languages) -> Self {
        let sought = wanted.words.as_ref().map(|words| Sought::new(words, languages)).unwrap_or_default();
        let others = wanted.without.iter().flat_map(|words| Sought::new(words, languages).excluded);
        let excluded = sought.excluded.iter().cloned().chain(others).collect();
        Self { sought, excluded }
    }
}

/// The answers to a batch, in the order of its queries.
type Answers = vec::IntoIter<Vec<Hit>>;

impl Inner {
    /// One answer for each list that is asked for.
    pub(super) async fn candidates(&self, query: &Query) -> Result<Vec<Candidates>, Error> {
        if finds_nothing(query) {
            return Ok(vec![Candidates::default(); query.lists.len()]);
        }
        self.ready().await?;
        let languages =
            match query.lists.iter().any(|wanted| wanted.words.is_some() || !wanted.without.is_empty()) {
                true => self.languages(query.workspace).await?,
                false => Languages::default(),
            };
        let searches: Vec<Search> = query.lists.iter().map(|wanted| Search::of(wanted, languages)).collect();
        self.candidates_in(&Part::default(), query, &searches).await
    }

    /// One answer for each list, in a part of the points.
    pub(super) async fn candidates_in(
        &self,
        part: &Part,
        query: &Query,
        searches: &[Search],
    ) -> Result<Vec<Candidates>, Error> {
        let asked = query.lists.iter().zip(searches);
        let lists: Vec<List> = asked.map(|(wanted, search)| self.list(part, query, wanted, search)).collect();
        let requests = lists.iter().flat_map(|list| [&list.words, &list.near, &list.cosines]).flatten();
        let mut answers = self.batch(requests.cloned().collect()).await?.into_iter();
        let mut found = Vec::with_capacity(lists.len());
        for (wanted, list) in query.lists.iter().zip(&lists) {
            found.push(self.found(query, wanted, list, &mut answers).await?);
        }
        Ok(found)
    }

    fn list(&self, part: &Part, query: &Query, wanted: &Wanted, search: &Search) -> List {
        let words = self.by_words(part, query, search);
        let vector = wanted.vector.as_ref().filter(|vector| UnitVector::new(vector).is_some());
        let near = vector.map(|vector| self.by_meaning(part, query, vector, &search.excluded));
        let cosines = words.as_ref().zip(vector).map(|(words, vector)| self.cosines_of(words, vector));
        List { words, near, cosines }
    }

    /// The search for words; none if it names nothing.
    fn by_words(&self, part: &Part, query: &Query, search: &Search) -> Option<QueryPoints> {
        let weights = words::query(&search.sought);
        if weights.is_empty() {
            return None;
        }
        let told = |(dimension, weight): (u32, f32)| {
            (dimension, weight * part.telling.get(&dimension).copied().unwrap_or(1.0))
        };
        let (indices, values) = weights.into_iter().map(told).unzip();
        let mut filter = part.searched(query, &search.sought.phrases, &search.excluded);
        filter.must.extend(filters::among(query.documents.as_ref()));
        let idf = IdfParams { corpus: Some(part.corpus(query)) };
        let params = SearchParams { idf: Some(idf), ..SearchParams::default() };
        let vector = Input::Sparse(SparseVector { values, indices });
        Some(QueryPoints {
            params: Some(params),
            limit: Some(asked_for(query.limit)),
            ..self.nearest(WORDS, vector, filter)
        })
    }

    /// The search by meaning, for a vector that has a direction.
    fn by_meaning(&self, part: &Part, query: &Query, vector: &[f32], excluded: &[Phrase]) -> QueryPoints {
        let mut filter = part.searched(query, &[], excluded);
        filter.must.extend(filters::among(query.documents.as_ref()));
        let quantization =
            QuantizationSearchParams { ignore: None, rescore: Some(true), oversampling: Some(OVERSAMPLING) };
        let params = SearchParams {
            hnsw_ef: Some(SEARCH_CANDIDATES),
            quantization: Some(quantization),
            ..SearchParams::default()
        };
        let limit = Some(asked_for(query.limit));
        QueryPoints { params: Some(params), limit, ..self.nearest(MEANING, dense(vector), filter) }
    }

    /// The exact cosines of what a search for words finds.
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

    /// What each of the queries found.
    async fn batch(&self, query_points: Vec<QueryPoints>) -> Result<Vec<Vec<Hit>>, Error> {
        if query_points.is_empty() {
            return Ok(Vec::new());
        }
        let asked = query_points.len();
        let collection_name = self.collection.clone();
        let request = QueryBatchPoints { collection_name, query_points, ..QueryBatchPoints::default() };
        let answers = self.answered(self.client.api.query_batch(request).await)?.result;
        if answers.len() != asked {
            return Err(Error::Answer("a batch of queries has another number of answers"));
        }
        answers.iter().map(|answer| hits(&answer.result)).collect()
    }

    async fn found(
        &self,
        query: &Query,
        wanted: &Wanted,
        list: &List,
        answers: &mut Answers,
    ) -> Result<Candidates, Error> {
        let (words, asked_again) = self.settled(query.limit, list.words.as_ref(), answers).await?;
        let (mut near, _) = self.settled(query.limit, list.near.as_ref(), answers).await?;
        // What points away from the question is no evidence.
        near.retain(|hit| hit.score > 0.0);
        if wanted.is_met_by(&words) {
            near.clear();
        }
        let exact = if list.cosines.is_some() { answers.next().unwrap_or_default() } else { Vec::new() };
        let Some(vector) = wanted.vector.as_ref().filter(|_| !words.is_empty()) else {
            return Ok(Candidates { words, cosines: near });
        };
        let mut known: HashMap<ChunkId, f32> = exact.iter().map(|hit| (hit.chunk, hit.score)).collect();
        if asked_again {
            let missing = words.iter().map(|hit| hit.chunk).filter(|chunk| !known.contains_key(chunk));
            let missing = missing.collect();
            known.extend(self.cosines(query.workspace, vector, missing).await?);
        }
        // A chunk that has none has no vector.
        let of_words =
            words.iter().map(|hit| (hit.chunk, known.get(&hit.chunk).copied().unwrap_or_default()));
        let mut scores: HashMap<ChunkId, f32> = near.iter().map(|hit| (hit.chunk, hit.score)).collect();
        scores.extend(of_words);
        let mut cosines: Vec<Hit> = scores.into_iter().map(|(chunk, score)| Hit { chunk, score }).collect();
        sort_hits(&mut cosines);
        Ok(Candidates { words, cosines })
    }

    /// The best hits of a query in the one order that ties have, and whether it was asked again: where equal scores reach
    /// over the end of what was asked for, more is asked for.
    async fn settled(
        &self,
        limit: usize,
        request: Option<&QueryPoints>,
        answers: &mut Answers,
    ) -> Result<(Vec<Hit>, bool), Error> {
        let Some(request) = request else { return Ok((Vec::new(), false)) };
        let mut hits = answers.next().unwrap_or_default();
        let mut asked = limit.saturating_add(TIES);
        let mut asked_again = false;
        loop {
            sort_hits(&mut hits);
            let last_wanted = limit.checked_sub(1).and_then(|last| hits.get(last)).map(|hit| hit.score);
            let reaches_over = last_wanted.is_some() && last_wanted == hits.last().map(|hit| hit.score);
            if hits.len() < asked || !reaches_over || asked >= MOST_TIES {
                hits.truncate(limit);
                return Ok((hits, asked_again));
            }
            asked = asked.saturating_mul(4);
            asked_again = true;
            let limit = u64::try_from(asked).unwrap_or(u64::MAX);
            let more = vec![QueryPoints { limit: Some(limit), ..request.clone() }];
            hits = self.batch(more).await?.pop().unwrap_or_default();
        }
    }

    /// The exact cosines of those of the chunks that have a vector.
    async fn cosines(
        &self,
        workspace: Uuid,
        vector: &[f32],
        chunks: Vec<ChunkId>,
    ) -> Result<HashMap<ChunkId, f32>, Error> {
        let filter = Filter::must([filters::these(workspace, &chunks)]);
        let request = QueryPoints {
            params: Some(exact()),
            limit: u64::try_from(chunks.len()).ok(),
            with_payload: Some(no_fields()),
            ..self.nearest(MEANING, dense(vector), filter)
        };
        let found = self.answered(self.client.api.query(request).await)?.result;
        let by_point: HashMap<Uuid, ChunkId> =
            chunks.into_iter().map(|chunk| (chunk_point(workspace, chunk), chunk)).collect();
        let cosine =
            |point: &ScoredPoint| Some((*by_point.get(&points::uuid_of(point.id.as_ref())?)?, point.score));
        Ok(found.iter().filter_map(cosine).collect())
    }
}

/// Whether no chunk can be found.
pub(super) fn finds_nothing(query: &Query) -> bool {
    query.limit == 0 || query.containers.as_ref().is_some_and(HashSet::is_empty)
}

/// What is asked for to give so many, and to see whether equal scores reach over the end.
fn asked_for(limit: usize) -> u64 {
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

fn hits(points: &[ScoredPoint]) -> Result<Vec<Hit>, Error> {
    let hit =
        |point: &ScoredPoint| Ok(Hit { chunk: points::read_chunk_id(&point.payload)?, score: point.score });
    points.iter().map(hit).collect()
}
