//! From a request to fused, explained hits. Nothing here asks an owner.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_embed::{self as embed, QueryEmbedder};
use cairn_index::embedded::candidates_among;
use cairn_index::{Candidates, ChunkId, Engine, Hit, IndexedDocument, Query, Wanted};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{ListRank, SubqueryTrace, Trace};
use uuid::Uuid;

use super::fusion::{RankedList, fuse_apart, fuse_ranks, fuse_scores};
use super::request::{SearchRequest, Strategy, Subquery, SubqueryType};
use super::tuning::{CANDIDATES_PER_LIST, ORIGINAL_WEIGHT, RRF_K, SUB_QUERY_WEIGHT};
use crate::error::Error;

/// The vectors of a request's texts. Where one is missing, the text is looked for by its words.
#[derive(Debug, Clone, Default)]
pub(super) struct QueryVectors {
    original: Option<Arc<[f32]>>,
    /// One for each sub-query that goes to the vectors, in their order.
    searches: Vec<Arc<[f32]>>,
    /// Whether all of them were remembered from earlier requests.
    pub(super) are_remembered: bool,
}

impl QueryVectors {
    /// Whether anything is looked for by its meaning.
    pub(super) fn are_needed(&self) -> bool {
        self.original.is_some() || !self.searches.is_empty()
    }
}

/// Embeds what the request sends to the vectors, and nothing else: it may cost time and money.
pub(super) async fn embed_queries(
    request: &SearchRequest,
    embedder: &QueryEmbedder,
) -> Result<QueryVectors, embed::Error> {
    let needs_original = !request.searches.is_empty() || request.strategy != Strategy::Keyword;
    let original = needs_original.then(|| request.query.parsed.text());
    let meant = request.searches.iter().filter(|search| search.kind.is_meant()).map(meant_text);
    let texts: Vec<&str> = original.into_iter().chain(meant).collect();
    let embedded = embedder.embed(&texts).await?;
    let mut vectors = embedded.vectors.into_iter().map(Arc::from);
    let original = if needs_original { vectors.next() } else { None };
    Ok(QueryVectors { original, searches: vectors.collect(), are_remembered: embedded.is_remembered })
}

/// What is embedded of a sub-query: a passage as it is, a question without what it excludes.
fn meant_text(search: &Subquery) -> &str {
    match search.kind {
        SubqueryType::Hyde => &search.text.given,
        SubqueryType::Lex | SubqueryType::Vec => search.text.parsed.text(),
    }
}

/// One list and what each of its hits contributes to a final score.
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
    lists: Vec<List>,
}

/// Which of a workspace's chunks a search may find: those of these folders or sources, and of these documents; and how many
/// each of its lists takes.
#[derive(Debug, Clone)]
pub(super) struct Within {
    pub(super) containers: Option<HashSet<Uuid>>,
    pub(super) documents: Option<HashSet<Uuid>>,
    pub(super) depth: usize,
}

impl Default for Within {
    fn default() -> Self {
        Self { containers: None, documents: None, depth: CANDIDATES_PER_LIST }
    }
}

/// Ranks the chunks of a workspace that may be found for the request.
pub(super) async fn rank(
    engine: &dyn Engine,
    workspace: WorkspaceId,
    within: Within,
    request: &SearchRequest,
    vectors: QueryVectors,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let query = query(workspace, within, request, vectors);
    let how = How::of(&query.lists);
    ranking(request, how, engine.candidates(query).await?, word_weight)
}

/// The same if these documents stood in place of what the index holds of them.
pub(super) async fn rank_instead(
    engine: &dyn Engine,
    workspace: WorkspaceId,
    (within, documents): (Within, Arc<Vec<IndexedDocument>>),
    request: &SearchRequest,
    vectors: QueryVectors,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let query = query(workspace, within, request, vectors);
    let how = How::of(&query.lists);
    ranking(request, how, engine.candidates_instead(query, documents).await?, word_weight)
}

/// Ranks the chunks of documents that no index holds.
pub(super) async fn rank_among(
    documents: Arc<Vec<IndexedDocument>>,
    workspace: WorkspaceId,
    request: &SearchRequest,
    vectors: QueryVectors,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let query = query(workspace, Within::default(), request, vectors);
    let how = How::of(&query.lists);
    let found = tokio::task::spawn_blocking(move || candidates_among(&documents, &query)).await??;
    ranking(request, how, found, word_weight)
}

fn query(workspace: WorkspaceId, within: Within, request: &SearchRequest, vectors: QueryVectors) -> Query {
    let Within { containers, documents, depth } = within;
    let QueryVectors { original: vector, searches: meant, .. } = vectors;
    let mut lists = vec![original(request, vector)];
    lists.extend(subqueries(request, meant));
    Query { workspace: workspace.0, containers, documents, limit: depth, lists }
}

/// The ranking of what was found, one answer for each list of the request.
fn ranking(
    request: &SearchRequest,
    how: How,
    found: Vec<Candidates>,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let mut found = found.into_iter();
    let first = found.next().ok_or(Error::Answer("an engine found nothing for a list"))?;
    let ranking = fused(&request.query.given, how, first, word_weight);
    if request.searches.is_empty() {
        return Ok(ranking);
    }
    Ok(with_subqueries(request, ranking, found))
}

/// How the list of the request's own query was made.
#[derive(Clone, Copy)]
enum How {
    Words,
    Meaning,
    Both,
}

impl How {
    fn of(lists: &[Wanted]) -> Self {
        match lists.first() {
            Some(Wanted { words: None, .. }) => Self::Meaning,
            Some(Wanted { vector: Some(_), .. }) => Self::Both,
            Some(_) | None => Self::Words,
        }
    }
}

/// What is looked for with the request's own query.
fn original(request: &SearchRequest, vector: Option<Arc<[f32]>>) -> Wanted {
    let query = Arc::clone(&request.query.parsed);
    let strategy = if request.searches.is_empty() { request.strategy } else { Strategy::Hybrid };
    match (strategy, vector) {
        (Strategy::Keyword, _) | (_, None) => Wanted { words: Some(query), ..Wanted::default() },
        (Strategy::Semantic, vector) => Wanted { words: None, vector, without: vec![query] },
        (Strategy::Hybrid, vector) => Wanted { words: Some(query), vector, without: Vec::new() },
    }
}

/// What is looked for with each sub-query. Whatever the request's own query excludes, none of them finds.
fn subqueries(request: &SearchRequest, meant: Vec<Arc<[f32]>>) -> Vec<Wanted> {
    let mut meant = meant.into_iter();
    let wanted = |search: &Subquery| {
        let vector = if search.kind.is_meant() { meant.next() } else { None };
        let (query, own) = (Arc::clone(&request.query.parsed), Arc::clone(&search.text.parsed));
        match (search.kind, vector) {
            (SubqueryType::Vec, Some(vector)) => {
                Wanted { words: None, vector: Some(vector), without: vec![query, own] }
            }
            // A passage is prose: a dash in it excludes nothing.
            (SubqueryType::Hyde, Some(vector)) => {
                Wanted { words: None, vector: Some(vector), without: vec![query] }
            }
            (SubqueryType::Lex, _) | (SubqueryType::Vec | SubqueryType::Hyde, None) => {
                Wanted { words: Some(own), vector: None, without: vec![query] }
            }
        }
    };
    request.searches.iter().map(wanted).collect()
}

/// The ranking of one query by its own list.
fn fused(text: &str, how: How, found: Candidates, word_weight: f32) -> Ranking {
    let Candidates { words, cosines } = found;
    match how {
        How::Words => {
            let hits = fuse_scores(&words, &[], 1.0);
            Ranking { hits, lists: vec![score_list(text, "keyword", 1.0, words)] }
        }
        How::Meaning => {
            // A cosine is normalised already: dividing by the best would make a poor answer look perfect.
            let list = List {
                contributions: Contributions::Scores { greatest: 1.0 },
                ..score_list(text, "semantic", 1.0, cosines.clone())
            };
            Ranking { hits: cosines, lists: vec![list] }
        }
        How::Both => {
            let hits = fuse_scores(&words, &cosines, word_weight);
            let lists = vec![
                score_list(text, "keyword", word_weight, words),
                score_list(text, "semantic", 1.0 - word_weight, cosines),
            ];
            Ranking { hits, lists }
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
    Ranking { hits, lists }
}

fn score_list(text: &str, kind: &'static str, weight: f32, hits: Vec<Hit>) -> List {
    let greatest = hits.iter().fold(0.0_f32, |greatest, hit| greatest.max(hit.score));
    List { text: text.to_owned(), kind, weight, hits, contributions: Contributions::Scores { greatest } }
}

fn rank_list(text: &str, kind: &'static str, weight: f32, hits: Vec<Hit>) -> List {
    List { text: text.to_owned(), kind, weight, hits, contributions: Contributions::Ranks { greatest: 1.0 } }
}

fn place_in(list: &str, query: &str, hits: &[Hit], document: Uuid) -> ListRank {
    // What the words found is in the list of meaning, too, with nothing where it has no vector.
    let place = hits.iter().position(|hit| hit.chunk.document == document && hit.score > 0.0);
    let score = place.and_then(|place| hits.get(place)).map_or(0.0, |hit| hit.score);
    ListRank {
        list: list.to_owned(),
        query: query.to_owned(),
        rank: place.map_or(0, |place| u32::try_from(place + 1).unwrap_or(u32::MAX)),
        of: u32::try_from(hits.len()).unwrap_or(u32::MAX),
        score: f64::from(score),
    }
}

impl List {
    fn trace(&self, chunk: ChunkId) -> SubqueryTrace {
        let found = self.hits.iter().enumerate().find(|(_, hit)| hit.chunk == chunk);
        let (rank, raw_score, contribution) = match found {
            Some((place, hit)) => (place + 1, hit.score, self.contribution(place, hit.score)),
            None => (0, 0.0, 0.0),
        };
        SubqueryTrace {
            subquery: self.text.clone(),
            r#type: self.kind.to_owned(),
            weight: f64::from(self.weight),
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            raw_score: f64::from(raw_score),
            contribution: f64::from(contribution),
        }
    }

    fn contribution(&self, place: usize, score: f32) -> f32 {
        match self.contributions {
            Contributions::Scores { greatest } if greatest > 0.0 => self.weight * score.max(0.0) / greatest,
            Contributions::Ranks { greatest } if greatest > 0.0 => {
                self.weight / (RRF_K + place as f32 + 1.0) / greatest
            }
            Contributions::Scores { .. } | Contributions::Ranks { .. } => 0.0,
        }
    }

    fn fuses_ranks(&self) -> bool {
        matches!(self.contributions, Contributions::Ranks { .. })
    }
}

impl Ranking {
    /// This ranking of what is retained, and beside it one of what providers gave just now. Scores of both are not
    /// comparable, since a word that is rare in the one is common in the other: they take turns. What scores below the
    /// least score in its own ranking is left out.
    pub(super) fn beside(mut self, mut live: Self, text: &str, min_score: f64) -> Self {
        for hits in [&mut self.hits, &mut live.hits] {
            hits.retain(|hit| f64::from(hit.score) >= min_score);
        }
        let hits = fuse_apart(&[&self.hits, &live.hits]);
        let list = |kind, hits| List {
            contributions: Contributions::Ranks { greatest: 1.0 / (RRF_K + 1.0) },
            ..rank_list(text, kind, 1.0, hits)
        };
        Self { hits, lists: vec![list("indexed", self.hits), list("live", live.hits)] }
    }

    /// With so many chunks of each document at most.
    pub(super) fn with_at_most(mut self, passages: usize) -> Self {
        let mut seen: HashMap<Uuid, usize> = HashMap::new();
        self.hits.retain(|hit| {
            let seen = seen.entry(hit.chunk.document).or_default();
            *seen += 1;
            *seen <= passages
        });
        self
    }

    /// Where the best passage of a document stands in each list, and in all of them together.
    pub(super) fn places(&self, document: Uuid) -> Vec<ListRank> {
        let lists = self.lists.iter().map(|list| place_in(list.kind, &list.text, &list.hits, document));
        lists.chain([place_in("fused", "", &self.hits, document)]).collect()
    }

    /// How a hit's score came about; its contributions add up to `final`.
    pub(super) fn trace(&self, hit: &Hit) -> Trace {
        let subqueries: Vec<SubqueryTrace> = self.lists.iter().map(|list| list.trace(hit.chunk)).collect();
        let rank_lists = self.lists.iter().zip(&subqueries).filter(|(list, _)| list.fuses_ranks());
        Trace {
            rrf: rank_lists.map(|(_, trace)| trace.contribution).sum(),
            subqueries,
            bonuses: 0.0,
            rerank: None,
            r#final: f64::from(hit.score),
        }
    }
}
