//! Searches and lookups.

use std::collections::{HashMap, HashSet};

use qdrant_client::qdrant::query::Variant;
use qdrant_client::qdrant::vector_input::Variant as Input;
use qdrant_client::qdrant::{
    CountPoints, DenseVector, FacetCounts, Filter, GetPoints, IdfParams, PayloadIncludeSelector, PointId,
    QuantizationSearchParams, Query, QueryPoints, RetrievedPoint, ScoredPoint, ScrollPoints, SearchParams,
    SparseVector, VectorInput, VectorsSelector, WithPayloadSelector, WithVectorsSelector, facet_value,
    with_payload_selector, with_vectors_selector,
};
use uuid::Uuid;

use super::points::{
    self, DOCUMENT, HEADINGS, LANGUAGE, MEANING, ORDINAL, Role, STORED_FIELDS, TEXT, TITLE, WORDS,
    chunk_point, point_id,
};
use super::tuning::{MOST_LANGUAGES, MOST_TIES, OVERSAMPLING, PAGE, SEARCH_CANDIDATES, TIES};
use super::{Error, Inner, filters, words};
use crate::vectors::{UnitVector, VectorQuery};
use crate::words::{Language, Languages, Sought};
use crate::{ChunkId, Counts, EmbeddedChunk, Hit, LexicalQuery, ParsedQuery, StoredChunk, sort_hits};

/// A search for words, as it waits for Qdrant.
pub(super) struct WordsQuery {
    workspace: Uuid,
    words: ParsedQuery,
    containers: Option<HashSet<Uuid>>,
    documents: Option<HashSet<Uuid>>,
    limit: usize,
}

impl WordsQuery {
    /// None if nothing can be found.
    pub(super) fn new(query: &LexicalQuery<'_>) -> Option<Self> {
        if query.limit == 0 || query.containers.is_some_and(HashSet::is_empty) {
            return None;
        }
        let LexicalQuery { workspace, words, containers, documents, limit } = query.clone();
        let (containers, documents) = (containers.cloned(), documents.cloned());
        Some(Self { workspace, words: words.clone(), containers, documents, limit })
    }
}

/// A search as it is asked: what is found, and how many.
pub(super) struct Search {
    request: QueryPoints,
    limit: usize,
}

impl Inner {
    /// The search for words; none if it names nothing.
    fn by_words(&self, query: &WordsQuery, sought: &Sought) -> Option<Search> {
        let weights = words::query(sought);
        if weights.is_empty() {
            return None;
        }
        let (indices, values) = weights.into_iter().unzip();
        let containers = query.containers.as_ref();
        let mut filter = filters::searched(query.workspace, containers, &sought.phrases, &sought.excluded);
        filter.must.extend(filters::among(query.documents.as_ref()));
        let vector = Input::Sparse(SparseVector { values, indices });
        // How rare a word is, is counted in what may be found: no other tenant's words move a score.
        let mut corpus = filters::searched(query.workspace, containers, &[], &[]);
        corpus.must.push(filters::role(Role::Chunk));
        let params =
            SearchParams { idf: Some(IdfParams { corpus: Some(corpus) }), ..SearchParams::default() };
        let request = QueryPoints { params: Some(params), ..self.nearest(WORDS, vector, filter) };
        Some(Search { request, limit: query.limit })
    }

    /// The best chunks for words.
    pub(super) async fn search_words(&self, query: WordsQuery) -> Result<Vec<Hit>, Error> {
        self.ready().await?;
        let sought = Sought::new(&query.words, self.languages(query.workspace).await?);
        match self.by_words(&query, &sought) {
            Some(search) => self.search(search).await,
            None => Ok(Vec::new()),
        }
    }

    /// The languages that chunks of the workspace are in, as they were a moment ago.
    async fn languages(&self, workspace: Uuid) -> Result<Languages, Error> {
        if let Some(known) = self.spoken.known(workspace) {
            return Ok(known);
        }
        let request = FacetCounts {
            collection_name: self.collection.clone(),
            key: LANGUAGE.to_owned(),
            filter: Some(Filter::must([filters::workspace(workspace)])),
            limit: Some(MOST_LANGUAGES),
            ..FacetCounts::default()
        };
        let found = self.answered(self.client.api.facet(request).await)?.hits;
        let codes = found.into_iter().filter_map(|hit| match hit.value?.variant? {
            facet_value::Variant::StringValue(code) => Language::from_code(&code),
            facet_value::Variant::IntegerValue(_) | facet_value::Variant::BoolValue(_) => None,
        });
        let languages = codes.fold(Languages::default(), Languages::with);
        self.spoken.learn(workspace, languages);
        Ok(languages)
    }

    /// The search by meaning; none if it can find nothing.
    pub(super) fn by_meaning(&self, query: &VectorQuery<'_>) -> Option<Search> {
        UnitVector::new(query.vector)?;
        if query.limit == 0 || query.containers.is_some_and(HashSet::is_empty) {
            return None;
        }
        let mut filter = filters::searched(query.workspace, query.containers, &[], &[]);
        filter.must.extend(filters::among(query.documents));
        let vector = Input::Dense(DenseVector { data: query.vector.to_vec() });
        let quantization =
            QuantizationSearchParams { ignore: None, rescore: Some(true), oversampling: Some(OVERSAMPLING) };
        let params = SearchParams {
            hnsw_ef: Some(SEARCH_CANDIDATES),
            quantization: Some(quantization),
            ..SearchParams::default()
        };
        let request = QueryPoints { params: Some(params), ..self.nearest(MEANING, vector, filter) };
        Some(Search { request, limit: query.limit })
    }

    fn nearest(&self, using: &str, vector: Input, filter: Filter) -> QueryPoints {
        QueryPoints {
            collection_name: self.collection.clone(),
            query: Some(Query { variant: Some(Variant::Nearest(VectorInput { variant: Some(vector) })) }),
            using: Some(using.to_owned()),
            filter: Some(filter),
            with_payload: Some(fields(&[DOCUMENT, ORDINAL])),
            ..QueryPoints::default()
        }
    }

    /// The best hits in the one order that ties have. Where equal scores reach over the end of what was asked for, more
    /// is asked for.
    pub(super) async fn search(&self, search: Search) -> Result<Vec<Hit>, Error> {
        self.ready().await?;
        let mut asked = search.limit.saturating_add(TIES);
        loop {
            let limit = u64::try_from(asked).unwrap_or(u64::MAX);
            let request = QueryPoints { limit: Some(limit), ..search.request.clone() };
            let found = self.answered(self.client.api.query(request).await)?.result;
            let all = found.len() < asked;
            let mut hits = found.iter().map(hit).collect::<Result<Vec<Hit>, Error>>()?;
            sort_hits(&mut hits);
            let last_wanted =
                search.limit.checked_sub(1).and_then(|last| hits.get(last)).map(|hit| hit.score);
            let reaches_over = last_wanted.is_some() && last_wanted == hits.last().map(|hit| hit.score);
            if all || !reaches_over || asked >= MOST_TIES {
                hits.truncate(search.limit);
                return Ok(hits);
            }
            asked = asked.saturating_mul(4);
        }
    }

    /// The exact cosines of given chunks, in the given order.
    pub(super) async fn scores(
        &self,
        workspace: Uuid,
        vector: Vec<f32>,
        chunks: Vec<ChunkId>,
    ) -> Result<Vec<Hit>, Error> {
        self.ready().await?;
        let filter = Filter::must([filters::these(workspace, &chunks)]);
        let exact = SearchParams {
            exact: Some(true),
            quantization: Some(QuantizationSearchParams {
                ignore: Some(true),
                rescore: None,
                oversampling: None,
            }),
            ..SearchParams::default()
        };
        let request = QueryPoints {
            params: Some(exact),
            limit: u64::try_from(chunks.len()).ok(),
            with_payload: Some(no_fields()),
            ..self.nearest(MEANING, Input::Dense(DenseVector { data: vector }), filter)
        };
        let found = self.answered(self.client.api.query(request).await)?.result;
        let scores: HashMap<Uuid, f32> = found
            .iter()
            .filter_map(|point| Some((points::uuid_of(point.id.as_ref())?, point.score)))
            .collect();
        let score =
            |chunk: &ChunkId| scores.get(&chunk_point(workspace, *chunk)).copied().unwrap_or_default();
        Ok(chunks.iter().map(|chunk| Hit { chunk: *chunk, score: score(chunk) }).collect())
    }

    /// Those of the chunks that hold an exclusion.
    pub(super) async fn excluded(
        &self,
        workspace: Uuid,
        words: ParsedQuery,
        chunks: Vec<ChunkId>,
    ) -> Result<HashSet<ChunkId>, Error> {
        self.ready().await?;
        let excluded = Sought::new(&words, self.languages(workspace).await?).excluded;
        if excluded.is_empty() {
            return Ok(HashSet::new());
        }
        let by_point: HashMap<Uuid, ChunkId> =
            chunks.iter().map(|chunk| (chunk_point(workspace, *chunk), *chunk)).collect();
        let filter = filters::holding_any(workspace, &chunks, &excluded);
        let found = self.scroll(filter, no_fields(), None).await?;
        let ids = found.iter().filter_map(|point| points::uuid_of(point.id.as_ref()));
        Ok(ids.filter_map(|id| by_point.get(&id).copied()).collect())
    }

    /// The chunks that are there, in the given order.
    pub(super) async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        self.ready().await?;
        let points = ids.iter().map(|id| chunk_point(workspace, *id)).collect();
        let found = self.get(points, fields(STORED_FIELDS)).await?;
        let chunk = |id: &ChunkId| {
            let point = found.get(&chunk_point(workspace, *id))?;
            Some(points::read_chunk(*id, &point.payload))
        };
        Ok(ids.iter().filter_map(chunk).collect())
    }

    /// The vectors of a document with what was embedded.
    pub(super) async fn embedded(
        &self,
        workspace: Uuid,
        document: Uuid,
        with: &[&str],
    ) -> Result<Vec<(u32, EmbeddedChunk)>, Error> {
        self.ready().await?;
        let filter = Filter::must([
            filters::workspace(workspace),
            filters::role(Role::Chunk),
            filters::document(document),
        ]);
        let mut embedded = Vec::new();
        for point in self.scroll(filter, fields(with), Some(meaning())).await? {
            let Some(embedding) = points::read_vector(point.vectors) else { continue };
            let chunk = EmbeddedChunk {
                title: points::text(&point.payload, TITLE),
                heading_path: points::texts(&point.payload, HEADINGS),
                text: points::text(&point.payload, TEXT),
                embedding,
            };
            embedded.push((points::ordinal(&point.payload), chunk));
        }
        embedded.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        Ok(embedded)
    }

    pub(super) async fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        self.ready().await?;
        let documents = self.count(workspace, Role::Document).await?;
        Ok(Counts { documents, chunks: self.count(workspace, Role::Chunk).await? })
    }

    async fn count(&self, workspace: Uuid, role: Role) -> Result<u64, Error> {
        let request = CountPoints {
            collection_name: self.collection.clone(),
            filter: Some(Filter::must([filters::workspace(workspace), filters::role(role)])),
            exact: Some(true),
            ..CountPoints::default()
        };
        let answer = self.answered(self.client.api.count(request).await)?;
        Ok(answer.result.map(|result| result.count).unwrap_or_default())
    }

    /// The points of these ids that are there.
    pub(super) async fn get(
        &self,
        ids: Vec<Uuid>,
        with: WithPayloadSelector,
    ) -> Result<HashMap<Uuid, RetrievedPoint>, Error> {
        let request = GetPoints {
            collection_name: self.collection.clone(),
            ids: ids.into_iter().map(point_id).collect(),
            with_payload: Some(with),
            with_vectors: Some(no_vectors()),
            ..GetPoints::default()
        };
        let found = self.answered(self.client.api.get_points(request).await)?.result;
        Ok(found.into_iter().filter_map(|point| Some((points::uuid_of(point.id.as_ref())?, point))).collect())
    }

    /// All points that a filter lets through.
    pub(super) async fn scroll(
        &self,
        filter: Filter,
        with: WithPayloadSelector,
        vectors: Option<WithVectorsSelector>,
    ) -> Result<Vec<RetrievedPoint>, Error> {
        let mut found = Vec::new();
        let mut offset: Option<PointId> = None;
        loop {
            let request = ScrollPoints {
                collection_name: self.collection.clone(),
                filter: Some(filter.clone()),
                offset,
                limit: Some(PAGE),
                with_payload: Some(with.clone()),
                with_vectors: Some(vectors.clone().unwrap_or_else(no_vectors)),
                ..ScrollPoints::default()
            };
            let page = self.answered(self.client.api.scroll(request).await)?;
            found.extend(page.result);
            offset = page.next_page_offset;
            if offset.is_none() {
                return Ok(found);
            }
        }
    }
}

fn hit(point: &ScoredPoint) -> Result<Hit, Error> {
    Ok(Hit { chunk: points::read_chunk_id(&point.payload)?, score: point.score })
}

pub(super) fn fields(names: &[&str]) -> WithPayloadSelector {
    let fields = names.iter().map(|name| (*name).to_owned()).collect();
    WithPayloadSelector {
        selector_options: Some(with_payload_selector::SelectorOptions::Include(PayloadIncludeSelector {
            fields,
        })),
    }
}

fn no_fields() -> WithPayloadSelector {
    WithPayloadSelector { selector_options: Some(with_payload_selector::SelectorOptions::Enable(false)) }
}

fn meaning() -> WithVectorsSelector {
    let names = VectorsSelector { names: vec![MEANING.to_owned()] };
    WithVectorsSelector { selector_options: Some(with_vectors_selector::SelectorOptions::Include(names)) }
}

fn no_vectors() -> WithVectorsSelector {
    WithVectorsSelector { selector_options: Some(with_vectors_selector::SelectorOptions::Enable(false)) }
}
