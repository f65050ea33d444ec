//! From a request to fused, explained hits. Nothing here asks an owner.

use std::collections::{HashMap, HashSet};

use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{SubqueryTrace, Trace};
use uuid::Uuid;

use super::fusion::{
    CANDIDATES_PER_LIST, ORIGINAL_WEIGHT, RRF_K, RankedList, SUB_QUERY_WEIGHT, WORD_WEIGHT, candidates,
    fuse_ranks, fuse_scores,
};
use super::request::{SearchRequest, Strategy, Subquery, SubqueryKind};
use crate::embed::Embedder;
use crate::error::Error;
use crate::index::{ChunkId, Engine, Hit, LexicalQuery, ParsedQuery, sort_hits};
use crate::vectors::VectorQuery;

/// The vectors of a request's texts.
#[derive(Debug)]
pub(super) struct QueryVectors {
    original: Vec<f32>,
    /// One for each sub-query; empty for those that go to the words.
    searches: Vec<Vec<f32>>,
}

/// Embeds what the request sends to the vectors.
pub(super) async fn embed_queries(
    request: &SearchRequest,
    embedder: &dyn Embedder,
) -> Result<QueryVectors, Error> {
    let query = ParsedQuery::parse(&request.query);
    let mut texts = vec![query.text()];
    texts.extend(request.searches.iter().map(|search| search.text.as_str()));
    let mut vectors = embedder.embed(&texts).await?.into_iter();
    let original = vectors.next().unwrap_or_default();
    Ok(QueryVectors { original, searches: vectors.collect() })
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
    containers: Option<&'a HashSet<Uuid>>,
    query: ParsedQuery,
}

/// Ranks the chunks of a workspace (of `containers`, when given) for the request. Blocks: runs off the async threads.
pub(super) fn rank(
    index: &dyn Engine,
    workspace: WorkspaceId,
    containers: Option<&HashSet<Uuid>>,
    request: &SearchRequest,
    vectors: &QueryVectors,
) -> Result<Ranking, Error> {
    let query = ParsedQuery::parse(&request.query);
    let ranker = Ranker { index, workspace: workspace.0, containers, query };
    if request.searches.is_empty() {
        return ranker.single(request, &vectors.original);
    }
    ranker.several(request, vectors)
}

impl Ranker<'_> {
    fn words(&self, query: &ParsedQuery) -> Result<Vec<Hit>, Error> {
        let lexical = LexicalQuery {
            workspace: self.workspace,
            words: query,
            containers: self.containers,
            limit: CANDIDATES_PER_LIST,
        };
        let hits = self.index.search(&lexical)?;
        self.without_excluded(hits)
    }

    fn meaning(&self, vector: &[f32]) -> Result<Vec<Hit>, Error> {
        let semantic = VectorQuery {
            workspace: self.workspace,
            vector,
            containers: self.containers,
            limit: CANDIDATES_PER_LIST,
        };
        let mut hits = self.index.vectors().search(&semantic)?;
        // What points away from the question is no evidence.
        hits.retain(|hit| hit.score > 0.0);
        self.without_excluded(hits)
    }

    /// The original query's exclusions hold for every list.
    fn without_excluded(&self, mut hits: Vec<Hit>) -> Result<Vec<Hit>, Error> {
        if self.query.excluded().is_empty() || hits.is_empty() {
            return Ok(hits);
        }
        let chunks: Vec<ChunkId> = hits.iter().map(|hit| hit.chunk).collect();
        let excluded = self.index.excluded(self.workspace, &self.query, &chunks)?;
        hits.retain(|hit| !excluded.contains(&hit.chunk));
        Ok(hits)
    }

    fn single(&self, request: &SearchRequest, vector: &[f32]) -> Result<Ranking, Error> {
        match request.strategy {
            Strategy::Keyword => {
                let words = self.words(&self.query)?;
                let hits = fuse_scores(&words, &[], 1.0);
                Ok(Ranking { hits, lists: vec![score_list(&request.query, "keyword", 1.0, words)] })
            }
            Strategy::Semantic => {
                let hits = self.meaning(vector)?;
                // A cosine is normalised already: dividing by the best would make a poor answer look perfect.
                let list = List {
                    contributions: Contributions::Scores { greatest: 1.0 },
                    ..score_list(&request.query, "semantic", 1.0, hits.clone())
                };
                Ok(Ranking { hits, lists: vec![list] })
            }
            Strategy::Hybrid => self.hybrid(&request.query, vector),
        }
    }

    fn hybrid(&self, text: &str, vector: &[f32]) -> Result<Ranking, Error> {
        let words = self.words(&self.query)?;
        let union = candidates(&words, &self.meaning(vector)?);
        let mut cosines = self.index.vectors().scores(self.workspace, vector, &union)?;
        sort_hits(&mut cosines);
        let hits = fuse_scores(&words, &cosines, WORD_WEIGHT);
        let lists = vec![
            score_list(text, "keyword", WORD_WEIGHT, words),
            score_list(text, "semantic", 1.0 - WORD_WEIGHT, cosines),
        ];
        Ok(Ranking { hits, lists })
    }

    fn several(&self, request: &SearchRequest, vectors: &QueryVectors) -> Result<Ranking, Error> {
        let original = self.hybrid(&request.query, &vectors.original)?;
        let mut lists = vec![rank_list(&request.query, "original", ORIGINAL_WEIGHT, original.hits)];
        for (search, vector) in request.searches.iter().zip(&vectors.searches) {
            let hits = self.subquery(search, vector)?;
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

    fn subquery(&self, search: &Subquery, vector: &[f32]) -> Result<Vec<Hit>, Error> {
        match search.kind {
            SubqueryKind::Lex => self.words(&ParsedQuery::parse(&search.text)),
            SubqueryKind::Vec | SubqueryKind::Hyde => self.meaning(vector),
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

    /// The scores by chunk.
    pub(super) fn by_chunk(&self) -> HashMap<ChunkId, Hit> {
        self.hits.iter().map(|hit| (hit.chunk, *hit)).collect()
    }
}
