//! From a request to fused, explained hits. Nothing here asks an owner.

use std::collections::HashSet;

use cairn_embed::{self as embed, QueryEmbedder};
use cairn_index::vectors::VectorQuery;
use cairn_index::{ChunkId, Engine, Hit, LexicalQuery, ParsedQuery, sort_hits};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{SubqueryTrace, Trace};
use uuid::Uuid;

use super::fusion::{RankedList, candidates, fuse_ranks, fuse_scores};
use super::request::{SearchRequest, Strategy, Subquery, SubqueryType};
use super::tuning::{CANDIDATES_PER_LIST, MOST_CANDIDATES, ORIGINAL_WEIGHT, RRF_K, SUB_QUERY_WEIGHT};
use crate::error::Error;
use crate::generations::Generation;

/// The vectors of a request's texts. Where one is missing, the text is looked for by its words.
#[derive(Debug, Default)]
pub(super) struct QueryVectors {
    original: Option<Vec<f32>>,
    /// One for each sub-query that goes to the vectors, in their order.
    searches: Vec<Vec<f32>>,
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
    let query = ParsedQuery::parse(&request.query);
    let needs_original = !request.searches.is_empty() || request.strategy != Strategy::Keyword;
    let meant = request.searches.iter().filter(|search| search.kind.is_meant());
    let meant: Vec<String> = meant.map(meant_text).collect();
    let mut texts = Vec::new();
    if needs_original {
        texts.push(query.text());
    }
    texts.extend(meant.iter().map(String::as_str));
    let embedded = embedder.embed(&texts).await?;
    let mut vectors = embedded.vectors.into_iter();
    let original = if needs_original { vectors.next() } else { None };
    Ok(QueryVectors { original, searches: vectors.collect(), are_remembered: embedded.is_remembered })
}

/// What is embedded of a sub-query: a passage as it is, a question without what it excludes.
fn meant_text(search: &Subquery) -> String {
    match search.kind {
        SubqueryType::Hyde => search.text.clone(),
        SubqueryType::Lex | SubqueryType::Vec => ParsedQuery::parse(&search.text).text().to_owned(),
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
#[derive(Debug)]
pub(super) struct Ranking {
    pub(super) hits: Vec<Hit>,
    lists: Vec<List>,
}

struct Ranker<'a> {
    index: &'a dyn Engine,
    workspace: Uuid,
    within: Within<'a>,
    query: ParsedQuery,
    word_weight: f32,
}

/// Which of a workspace's chunks a search may find: those of these folders or sources, and of these documents.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Within<'a> {
    pub(super) containers: Option<&'a HashSet<Uuid>>,
    pub(super) documents: Option<&'a HashSet<Uuid>>,
}

/// Ranks the chunks of a workspace that may be found for the request. Blocks: runs off the async threads.
pub(super) fn rank(
    generation: &Generation,
    workspace: WorkspaceId,
    within: Within<'_>,
    request: &SearchRequest,
    vectors: &QueryVectors,
    word_weight: f32,
) -> Result<Ranking, Error> {
    let query = ParsedQuery::parse(&request.query);
    let index = generation.engine.as_ref();
    let ranker = Ranker { index, workspace: workspace.0, within, query, word_weight };
    if request.searches.is_empty() {
        return ranker.single(request, vectors.original.as_deref());
    }
    ranker.several(request, vectors)
}

impl Ranker<'_> {
    fn words(&self, query: &ParsedQuery) -> Result<Vec<Hit>, Error> {
        let lexical = LexicalQuery {
            workspace: self.workspace,
            words: query,
            containers: self.within.containers,
            documents: self.within.documents,
            limit: CANDIDATES_PER_LIST,
        };
        let hits = self.index.search(&lexical)?;
        // A sub-query leaves out its own exclusions already.
        self.without_excluded(hits, &[&self.query])
    }

    /// The nearest chunks that none of the queries excludes. Where exclusions take many, it looks farther.
    fn meaning(&self, vector: &[f32], queries: &[&ParsedQuery]) -> Result<Vec<Hit>, Error> {
        let mut limit = CANDIDATES_PER_LIST;
        loop {
            let Within { containers, documents } = self.within;
            let semantic = VectorQuery { workspace: self.workspace, vector, containers, documents, limit };
            let mut hits = self.index.vectors().search(&semantic)?;
            let is_all = hits.len() < limit;
            // What points away from the question is no evidence.
            hits.retain(|hit| hit.score > 0.0);
            let mut kept = self.without_excluded(hits, queries)?;
            if is_all || kept.len() >= CANDIDATES_PER_LIST || limit >= MOST_CANDIDATES {
                kept.truncate(CANDIDATES_PER_LIST);
                return Ok(kept);
            }
            limit = limit.saturating_mul(4).min(MOST_CANDIDATES);
        }
    }

    fn without_excluded(&self, mut hits: Vec<Hit>, queries: &[&ParsedQuery]) -> Result<Vec<Hit>, Error> {
        for query in queries.iter().filter(|query| !query.excluded().is_empty()) {
            let chunks: Vec<ChunkId> = hits.iter().map(|hit| hit.chunk).collect();
            let excluded = self.index.excluded(self.workspace, query, &chunks)?;
            hits.retain(|hit| !excluded.contains(&hit.chunk));
        }
        Ok(hits)
    }

    fn single(&self, request: &SearchRequest, vector: Option<&[f32]>) -> Result<Ranking, Error> {
        match (request.strategy, vector) {
            (Strategy::Keyword, _) | (_, None) => self.keyword(&request.query),
            (Strategy::Semantic, Some(vector)) => {
                let hits = self.meaning(vector, &[&self.query])?;
                // A cosine is normalised already: dividing by the best would make a poor answer look perfect.
                let list = List {
                    contributions: Contributions::Scores { greatest: 1.0 },
                    ..score_list(&request.query, "semantic", 1.0, hits.clone())
                };
                Ok(Ranking { hits, lists: vec![list] })
            }
            (Strategy::Hybrid, Some(vector)) => self.hybrid(&request.query, vector),
        }
    }

    fn keyword(&self, text: &str) -> Result<Ranking, Error> {
        let words = self.words(&self.query)?;
        let hits = fuse_scores(&words, &[], 1.0);
        Ok(Ranking { hits, lists: vec![score_list(text, "keyword", 1.0, words)] })
    }

    fn hybrid(&self, text: &str, vector: &[f32]) -> Result<Ranking, Error> {
        let words = self.words(&self.query)?;
        // A phrase is a demand: what lacks it is no answer, however near it is, unless nothing has it.
        let demands_phrase = !self.query.phrases().is_empty() && !words.is_empty();
        let near = if demands_phrase { Vec::new() } else { self.meaning(vector, &[&self.query])? };
        let union = candidates(&words, &near);
        let mut cosines = self.index.vectors().scores(self.workspace, vector, &union)?;
        sort_hits(&mut cosines);
        let hits = fuse_scores(&words, &cosines, self.word_weight);
        let lists = vec![
            score_list(text, "keyword", self.word_weight, words),
            score_list(text, "semantic", 1.0 - self.word_weight, cosines),
        ];
        Ok(Ranking { hits, lists })
    }

    fn several(&self, request: &SearchRequest, vectors: &QueryVectors) -> Result<Ranking, Error> {
        let original = match &vectors.original {
            Some(vector) => self.hybrid(&request.query, vector)?,
            None => self.keyword(&request.query)?,
        };
        let mut lists = vec![rank_list(&request.query, "original", ORIGINAL_WEIGHT, original.hits)];
        let mut meant = vectors.searches.iter();
        for search in &request.searches {
            let vector = if search.kind.is_meant() { meant.next() } else { None };
            let hits = self.subquery(search, vector.map(Vec::as_slice))?;
            lists.push(rank_list(&search.text, search.kind.as_str(), SUB_QUERY_WEIGHT, hits));
        }
        let ranked: Vec<_> =
            lists.iter().map(|list| RankedList { weight: list.weight, hits: &list.hits }).collect();
        let hits = fuse_ranks(&ranked);
        let greatest = lists.iter().map(|list| list.weight / (RRF_K + 1.0)).sum();
        for list in &mut lists {
            list.contributions = Contributions::Ranks { greatest };
        }
        Ok(Ranking { hits, lists })
    }

    fn subquery(&self, search: &Subquery, vector: Option<&[f32]>) -> Result<Vec<Hit>, Error> {
        let own = match search.kind {
            SubqueryType::Lex | SubqueryType::Vec => ParsedQuery::parse(&search.text),
            // A passage is prose: a dash in it excludes nothing.
            SubqueryType::Hyde => ParsedQuery::default(),
        };
        match (search.kind, vector) {
            (SubqueryType::Vec | SubqueryType::Hyde, Some(vector)) => {
                self.meaning(vector, &[&self.query, &own])
            }
            (SubqueryType::Hyde, None) => self.words(&ParsedQuery::parse(&search.text)),
            (SubqueryType::Lex, _) | (SubqueryType::Vec, None) => self.words(&own),
        }
    }
}

fn score_list(text: &str, kind: &'static str, weight: f32, hits: Vec<Hit>) -> List {
    let greatest = hits.iter().fold(0.0_f32, |greatest, hit| greatest.max(hit.score));
    List { text: text.to_owned(), kind, weight, hits, contributions: Contributions::Scores { greatest } }
}

fn rank_list(text: &str, kind: &'static str, weight: f32, hits: Vec<Hit>) -> List {
    List { text: text.to_owned(), kind, weight, hits, contributions: Contributions::Ranks { greatest: 1.0 } }
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
