//! Ranks a request: from its texts to fused, explained hits. Calls no owner.

mod trace;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_embed::{self as embed, QueryEmbedder, StaticRows, TextKind};
use cairn_index::embedded::candidates_in_memory;
use cairn_index::words::ContainerNames;
use cairn_index::{
    Candidates, ChunkId, Engine, Hit, IndexedDocument, InspectRequest, Inspection, ListQuery, Query,
};
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::fusion::{RankedList, fuse_apart, fuse_ranks, fuse_scores};
use super::request::{SearchRequest, Strategy, Subquery, SubqueryType};
use super::second_look;
use super::tuning::{
    CANDIDATES_PER_LIST, ORIGINAL_WEIGHT, RRF_K, SECOND_LOOK_CHUNKS, SPARE_CHUNKS, SUB_QUERY_WEIGHT,
};
use crate::error::Error;
use crate::generations::Generation;

/// The vectors of a request's texts. A text without a vector is searched by its words.
#[derive(Debug, Clone, Default)]
pub(super) struct QueryVectors {
    original: Option<Arc<[f32]>>,
    /// One for each sub-query with semantic search, in order.
    searches: Vec<Arc<[f32]>>,
    /// Whether all of them came from the cache of earlier requests.
    pub(super) are_cached: bool,
}

impl QueryVectors {
    /// The vector of the request's own query.
    #[cfg(test)]
    pub(super) fn of(original: Vec<f32>) -> Self {
        Self { original: Some(Arc::from(original)), ..Self::default() }
    }

    /// Whether any list is searched by vector.
    pub(super) fn are_needed(&self) -> bool {
        self.original.is_some() || !self.searches.is_empty()
    }
}

/// Embeds only the texts that are searched by vector: embedding may cost time and money.
pub(super) async fn embed_queries(
    request: &SearchRequest,
    embedder: &QueryEmbedder,
) -> Result<QueryVectors, embed::Error> {
    let needs_original = !request.searches.is_empty() || request.strategy != Strategy::Keyword;
    let original = needs_original.then(|| request.query.parsed.text());
    let searches = request.searches.iter().filter(|search| search.kind.is_meant());
    let searches: Vec<(TextKind, &str)> = searches.map(embedded_text).collect();
    let of_kind = |kind: TextKind| {
        searches.iter().filter(move |(of_search, _)| *of_search == kind).map(|(_, text)| *text)
    };
    let queries: Vec<&str> = original.into_iter().chain(of_kind(TextKind::Query)).collect();
    let passages: Vec<&str> = of_kind(TextKind::Passage).collect();
    let (of_queries, of_passages) = tokio::try_join!(
        embedder.embed(TextKind::Query, &queries),
        embedder.embed(TextKind::Passage, &passages),
    )?;
    let are_cached = (of_queries.is_cached || queries.is_empty())
        && (of_passages.is_cached || passages.is_empty())
        && !(queries.is_empty() && passages.is_empty());
    let mut of_queries = of_queries.vectors.into_iter().map(Arc::from);
    let mut of_passages = of_passages.vectors.into_iter().map(Arc::from);
    let original = if needs_original { of_queries.next() } else { None };
    let in_order = searches.iter().filter_map(|(kind, _)| match kind {
        TextKind::Query => of_queries.next(),
        TextKind::Passage => of_passages.next(),
    });
    let searches = in_order.collect();
    Ok(QueryVectors { original, searches, are_cached })
}

/// The embedded text of a sub-query: a hypothetical passage unchanged, a question without its exclusions.
fn embedded_text(search: &Subquery) -> (TextKind, &str) {
    match search.kind {
        SubqueryType::Hyde => (TextKind::Passage, search.text.given.as_str()),
        SubqueryType::Lex | SubqueryType::Vec => (TextKind::Query, search.text.parsed.text()),
    }
}

/// A list and how its hits contribute to the final score.
#[derive(Debug)]
struct List {
    text: String,
    kind: &'static str,
    weight: f32,
    hits: Vec<Hit>,
    contributions: Contributions,
}

#[derive(Debug, Clone, Copy)]
enum Contributions {
    /// `weight · score / greatest`.
    Scores { greatest: f32 },
    /// `weight / (k + rank) / greatest`.
    Ranks { greatest: f32 },
}

/// Fused hits, best first, and the lists that they came from.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    pub(super) hits: Vec<Hit>,
    /// The features of the chunks that were already read, and the words of the question.
    pub(super) inspection: Inspection,
    lists: Vec<List>,
    /// Set if a second look has reranked the best hits.
    second: Option<SecondLook>,
}

/// The outcome of a second look.
#[derive(Debug)]
struct SecondLook {
    /// The reranked chunks.
    chunks: HashSet<ChunkId>,
    /// The components of their scores.
    lists: Vec<List>,
    /// The factor that scales the scores of the other chunks, which stay behind the reranked ones.
    scale: f32,
}

/// The engine, the static rows of its embedder if it has them, and the configured weight of words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranker<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) rows: Option<&'a StaticRows>,
    pub(super) word_weight: f32,
}

impl<'a> Ranker<'a> {
    pub(super) fn of(generation: &'a Generation, word_weight: f32) -> Self {
        Self { engine: generation.engine.as_ref(), rows: generation.queries.rows(), word_weight }
    }
}

/// The filter of a search by folders or sources and by documents, and the depth of each list.
#[derive(Debug, Clone)]
pub(super) struct Within {
    pub(super) containers: Option<HashSet<Uuid>>,
    pub(super) documents: Option<HashSet<Uuid>>,
    /// The names of folders and databases, which are searched, too.
    pub(super) names: Option<Arc<ContainerNames>>,
    pub(super) depth: usize,
}

impl Default for Within {
    fn default() -> Self {
        Self { containers: None, documents: None, names: None, depth: CANDIDATES_PER_LIST }
    }
}

/// Ranks the chunks of a workspace within the filter.
pub(super) async fn rank(
    ranker: Ranker<'_>,
    workspace: WorkspaceId,
    within: Within,
    request: &SearchRequest,
    vectors: QueryVectors,
) -> Result<Ranking, Error> {
    let query = query(workspace, within, request, vectors);
    let run = RankingRun { ranker, request, how: ListKind::of(&query.lists), instead: None };
    let inspect_request = run.inspect_request(&query);
    run.ranking(inspect_request, ranker.engine.candidates(query).await?).await
}

/// As [`rank`], with these documents in place of their indexed versions.
pub(super) async fn rank_instead(
    ranker: Ranker<'_>,
    workspace: WorkspaceId,
    (within, documents): (Within, Arc<Vec<IndexedDocument>>),
    request: &SearchRequest,
    vectors: QueryVectors,
) -> Result<Ranking, Error> {
    let query = query(workspace, within, request, vectors);
    let how = ListKind::of(&query.lists);
    let run = RankingRun { ranker, request, how, instead: Some(Arc::clone(&documents)) };
    let inspect_request = run.inspect_request(&query);
    run.ranking(inspect_request, ranker.engine.candidates_with_drafts(query, documents).await?).await
}

/// One ranking of a request.
struct RankingRun<'a> {
    ranker: Ranker<'a>,
    request: &'a SearchRequest,
    how: ListKind,
    /// Documents in place of their indexed versions.
    instead: Option<Arc<Vec<IndexedDocument>>>,
}

impl RankingRun<'_> {
    /// The features of chunks that reranking needs; the chunks are filled in later.
    fn inspect_request(&self, query: &Query) -> InspectRequest {
        InspectRequest {
            workspace: query.workspace,
            containers: query.containers.clone(),
            question: asked(self.request),
            ..InspectRequest::default()
        }
    }

    /// Ranks the candidates of each list of the request. The best chunks of a hybrid query are reranked by a second look if the embedder has
    /// static rows.
    async fn ranking(
        &self,
        mut inspect_request: InspectRequest,
        found: Vec<Candidates>,
    ) -> Result<Ranking, Error> {
        let (request, word_weight) = (self.request, self.ranker.word_weight);
        let rows = self.ranker.rows.filter(|_| matches!(self.how, ListKind::Both));
        let Some(rows) = rows else {
            let mut ranking = ranking(request, self.how, found, word_weight)?;
            inspect_request.chunks = best(&ranking.hits, request.limit.saturating_add(SPARE_CHUNKS));
            ranking.inspection = self.inspect(inspect_request).await?;
            return Ok(ranking);
        };
        let question = second_look::Question::new(rows, request.query.parsed.text(), word_weight);
        let mut found = found.into_iter();
        let first = found.next().ok_or(NOTHING_FOUND)?;
        let mut ranking = fused(&request.query.given, self.how, first, question.first_word_weight());
        inspect_request.chunks = best(&ranking.hits, SECOND_LOOK_CHUNKS);
        inspect_request.pieces = Some(question.distinct_pieces());
        let inspection = self.inspect(inspect_request).await?;
        ranking.look_again(&request.query.given, &question, &inspection);
        if !request.searches.is_empty() {
            ranking = with_subqueries(request, ranking, found);
        }
        Ok(Ranking { inspection, ..ranking })
    }

    async fn inspect(&self, request: InspectRequest) -> Result<Inspection, Error> {
        if request.chunks.is_empty() {
            return Ok(Inspection::default());
        }
        Ok(match &self.instead {
            None => self.ranker.engine.inspect(request).await?,
            Some(documents) => self.ranker.engine.inspect_with_drafts(request, Arc::clone(documents)).await?,
        })
    }
}

/// The words of the question: those of the query and of its sub-queries, except for hypothetical passages.
fn asked(request: &SearchRequest) -> String {
    let mut text = request.query.parsed.text().to_owned();
    for search in request.searches.iter().filter(|search| search.kind != SubqueryType::Hyde) {
        text.push(' ');
        text.push_str(search.text.parsed.text());
    }
    text
}

fn best(hits: &[Hit], count: usize) -> Vec<ChunkId> {
    hits.iter().take(count).map(|hit| hit.chunk).collect()
}

const NOTHING_FOUND: Error = Error::Answer("an engine found nothing for a list");

/// Ranks the chunks of documents that are not in the index, with the names of their folders if there are any.
pub(super) async fn rank_among(
    (documents, names): (Arc<Vec<IndexedDocument>>, Option<Arc<ContainerNames>>),
    workspace: WorkspaceId,
    request: &SearchRequest,
    vectors: QueryVectors,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let query = query(workspace, Within { names, ..Within::default() }, request, vectors);
    let how = ListKind::of(&query.lists);
    let found = tokio::task::spawn_blocking(move || candidates_in_memory(&documents, &query)).await??;
    ranking(request, how, found, word_weight)
}

fn query(workspace: WorkspaceId, within: Within, request: &SearchRequest, vectors: QueryVectors) -> Query {
    let Within { containers, documents, names, depth } = within;
    let QueryVectors { original: vector, searches: meant, .. } = vectors;
    let mut lists = vec![original(request, vector)];
    lists.extend(subqueries(request, meant));
    if let Some(names) = names {
        let searched = containers.clone().map(Arc::new);
        lists.iter_mut().for_each(|list_query| name_containers(list_query, &names, searched.as_ref()));
    }
    Query { workspace: workspace.0, containers, documents, limit: depth, lists }
}

/// Ranks the candidates of each list of the request.
fn ranking(
    request: &SearchRequest,
    how: ListKind,
    found: Vec<Candidates>,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let mut found = found.into_iter();
    let first = found.next().ok_or(NOTHING_FOUND)?;
    let ranking = fused(&request.query.given, how, first, word_weight);
    if request.searches.is_empty() {
        return Ok(ranking);
    }
    Ok(with_subqueries(request, ranking, found))
}

/// Extends a list to match the names of folders and databases, too.
fn name_containers(
    list_query: &mut ListQuery,
    names: &Arc<ContainerNames>,
    searched: Option<&Arc<HashSet<Uuid>>>,
) {
    for parsed in list_query.words.iter_mut().chain(&mut list_query.without) {
        *parsed = Arc::new(parsed.with_container_names(Arc::clone(names), searched.cloned()));
    }
}

/// How the list of the request's own query is searched.
#[derive(Clone, Copy)]
enum ListKind {
    Words,
    Meaning,
    Both,
}

impl ListKind {
    fn of(lists: &[ListQuery]) -> Self {
        match lists.first() {
            Some(ListQuery { words: None, .. }) => Self::Meaning,
            Some(ListQuery { vector: Some(_), .. }) => Self::Both,
            Some(_) | None => Self::Words,
        }
    }
}

/// The list of the request's own query.
fn original(request: &SearchRequest, vector: Option<Arc<[f32]>>) -> ListQuery {
    let query = Arc::clone(&request.query.parsed);
    let strategy = if request.searches.is_empty() { request.strategy } else { Strategy::Hybrid };
    match (strategy, vector) {
        (Strategy::Keyword, _) | (_, None) => ListQuery { words: Some(query), ..ListQuery::default() },
        (Strategy::Semantic, vector) => ListQuery { words: None, vector, without: vec![query] },
        (Strategy::Hybrid, vector) => ListQuery { words: Some(query), vector, without: Vec::new() },
    }
}

/// The list of each sub-query. The exclusions of the request's own query apply to all of them.
fn subqueries(request: &SearchRequest, meant: Vec<Arc<[f32]>>) -> Vec<ListQuery> {
    let mut meant = meant.into_iter();
    let list_query = |search: &Subquery| {
        let vector = if search.kind.is_meant() { meant.next() } else { None };
        let (query, own) = (Arc::clone(&request.query.parsed), Arc::clone(&search.text.parsed));
        match (search.kind, vector) {
            (SubqueryType::Vec, Some(vector)) => {
                ListQuery { words: None, vector: Some(vector), without: vec![query, own] }
            }
            // A passage is prose: a dash in it excludes nothing.
            (SubqueryType::Hyde, Some(vector)) => {
                ListQuery { words: None, vector: Some(vector), without: vec![query] }
            }
            (SubqueryType::Lex, _) | (SubqueryType::Vec | SubqueryType::Hyde, None) => {
                ListQuery { words: Some(own), vector: None, without: vec![query] }
            }
        }
    };
    request.searches.iter().map(list_query).collect()
}

/// The ranking of one query by its own list.
fn fused(text: &str, how: ListKind, found: Candidates, word_weight: f32) -> Ranking {
    let Candidates { words, cosines } = found;
    match how {
        ListKind::Words => {
            let hits = fuse_scores(&words, &[], 1.0);
            Ranking { hits, lists: vec![score_list(text, "keyword", 1.0, words)], ..Ranking::default() }
        }
        ListKind::Meaning => {
            // A cosine is already normalised: dividing by the best one would make a poor result look perfect.
            let list = List {
                contributions: Contributions::Scores { greatest: 1.0 },
                ..score_list(text, "semantic", 1.0, cosines.clone())
            };
            Ranking { hits: cosines, lists: vec![list], ..Ranking::default() }
        }
        ListKind::Both => {
            let hits = fuse_scores(&words, &cosines, word_weight);
            let lists = vec![
                score_list(text, "keyword", word_weight, words),
                score_list(text, "semantic", 1.0 - word_weight, cosines),
            ];
            Ranking { hits, lists, ..Ranking::default() }
        }
    }
}

/// The ranking of a query together with its sub-queries.
fn with_subqueries(
    request: &SearchRequest,
    original: Ranking,
    found: impl Iterator<Item = Candidates>,
) -> Ranking {
    let mut lists = vec![rank_list(&request.query.given, "original", ORIGINAL_WEIGHT, original.hits)];
    for (search, Candidates { words, cosines }) in request.searches.iter().zip(found) {
        let hits = if words.is_empty() { cosines } else { words };
        lists.push(rank_list(&search.text.given, search.kind.as_str(), SUB_QUERY_WEIGHT, hits));
    }
    let ranked: Vec<_> =
        lists.iter().map(|list| RankedList { weight: list.weight, hits: &list.hits }).collect();
    let hits = fuse_ranks(&ranked);
    let greatest = lists.iter().map(|list| list.weight / (RRF_K + 1.0)).sum();
    for list in &mut lists {
        list.contributions = Contributions::Ranks { greatest };
    }
    Ranking { hits, lists, ..Ranking::default() }
}

fn score_list(text: &str, kind: &'static str, weight: f32, hits: Vec<Hit>) -> List {
    let greatest = hits.iter().fold(0.0_f32, |greatest, hit| greatest.max(hit.score));
    List { text: text.to_owned(), kind, weight, hits, contributions: Contributions::Scores { greatest } }
}

fn rank_list(text: &str, kind: &'static str, weight: f32, hits: Vec<Hit>) -> List {
    List { text: text.to_owned(), kind, weight, hits, contributions: Contributions::Ranks { greatest: 1.0 } }
}

impl Ranking {
    /// Merges this ranking of the index with one of texts that are not in the index. Their scores are not comparable, since a word
    /// that is rare in one is common in the other: the results are interleaved. Hits below `min_score` in their own ranking are dropped.
    pub(super) fn beside(
        mut self,
        (kind, mut live): (&'static str, Self),
        text: &str,
        min_score: f64,
    ) -> Self {
        for hits in [&mut self.hits, &mut live.hits] {
            hits.retain(|hit| f64::from(hit.score) >= min_score);
        }
        let hits = fuse_apart(&[&self.hits, &live.hits]);
        let list = |kind, hits| List {
            contributions: Contributions::Ranks { greatest: 1.0 / (RRF_K + 1.0) },
            ..rank_list(text, kind, 1.0, hits)
        };
        let lists = vec![list("indexed", self.hits), list(kind, live.hits)];
        Self { hits, lists, inspection: self.inspection, second: None }
    }

    /// Reorders the best chunks; the others keep their order behind them.
    fn look_again(&mut self, text: &str, question: &second_look::Question<'_>, inspection: &Inspection) {
        let words = self.lists.first().map(|list| list.hits.as_slice()).unwrap_or_default();
        let second = question.look(&self.hits, words, inspection);
        let scale = second_look::scale_behind(&self.hits, &second.hits);
        let behind = self.hits.split_off(second.hits.len().min(self.hits.len()));
        let list = |part: second_look::Part| List {
            text: text.to_owned(),
            kind: part.kind,
            weight: part.weight,
            hits: part.hits,
            contributions: Contributions::Scores { greatest: part.greatest },
        };
        let chunks = second.hits.iter().map(|hit| hit.chunk).collect();
        self.second = Some(SecondLook { chunks, lists: second.parts.into_iter().map(list).collect(), scale });
        self.hits = second.hits;
        self.hits.extend(behind.into_iter().map(|hit| Hit { score: hit.score * scale, ..hit }));
    }

    /// Keeps at most `passages` chunks of each document.
    pub(super) fn with_at_most(mut self, passages: usize) -> Self {
        let mut seen: HashMap<Uuid, usize> = HashMap::new();
        self.hits.retain(|hit| {
            let seen = seen.entry(hit.chunk.document).or_default();
            *seen += 1;
            *seen <= passages
        });
        self
    }
}
