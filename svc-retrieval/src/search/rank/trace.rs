//! Explains scores, and the rank of a document in each list.

use cairn_index::{ChunkId, Hit};
use cairn_proto::retrieval::v1::{ListRank, SubqueryTrace, Trace};
use uuid::Uuid;

use super::{Contributions, List, Ranking};
use crate::search::tuning::RRF_K;

impl Ranking {
    /// The rank of a document's best passage in each list, and in the fused one.
    pub(in crate::search) fn places(&self, document: Uuid) -> Vec<ListRank> {
        let lists = self.lists.iter().map(|list| place_in(list.kind, &list.text, &list.hits, document));
        lists.chain([place_in("fused", "", &self.hits, document)]).collect()
    }

    /// Explains the score of a hit; the contributions add up to `final`.
    pub(in crate::search) fn trace(&self, hit: &Hit) -> Trace {
        let again = self.second.as_ref();
        let (lists, scale) = match again {
            Some(again) if again.chunks.contains(&hit.chunk) => (&again.lists, 1.0),
            Some(again) => (&self.lists, again.scale),
            None => (&self.lists, 1.0),
        };
        let scaled = |list: &List| {
            let trace = list.trace(hit.chunk);
            SubqueryTrace { contribution: trace.contribution * f64::from(scale), ..trace }
        };
        let subqueries: Vec<SubqueryTrace> = lists.iter().map(scaled).collect();
        let rank_lists = lists.iter().zip(&subqueries).filter(|(list, _)| list.fuses_ranks());
        Trace {
            rrf: rank_lists.map(|(_, trace)| trace.contribution).sum(),
            subqueries,
            bonuses: 0.0,
            rerank: None,
            r#final: f64::from(hit.score),
        }
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

fn place_in(list: &str, query: &str, hits: &[Hit], document: Uuid) -> ListRank {
    // Hits of the words are in the semantic list, too, with score 0 where they have no vector.
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
