//! Matches a question against catalog entries, and decides which matches are so clear that their bodies are fetched from the
//! provider (spec 4.4, rule 4; docs/SEARCH.md has the rule with its figures).

mod named;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_chassis::clock::Timestamp;
use cairn_index::words::{Language, Languages, SearchableText, SignificantWords};
use cairn_index::{ChunkId, Engine, ListQuery, ParsedQuery, Query, StoredChunk};
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use self::named::Named;
use super::request::SearchRequest;
use super::tuning::{DECISIVE_LEAD, MAX_BODIES, MAX_MATCHES};
use crate::entry::Entry;
use crate::error::Error;
use crate::partition;

/// An entry of a catalog that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Match {
    pub(super) document: Uuid,
    pub(super) source: Uuid,
}

/// The matches of a question in the catalogs, best first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Matches {
    /// Decisive matches, at most as many as are fetched.
    pub(super) decisive: Vec<Match>,
    /// Other entries whose titles have at least half of the informative words.
    pub(super) others: Vec<Match>,
}

impl Matches {
    /// Promotes the best others, so that as many as possible are fetched.
    pub(super) fn best(mut self) -> Self {
        let missing = MAX_BODIES.saturating_sub(self.decisive.len()).min(self.others.len());
        self.decisive.extend(self.others.drain(..missing));
        self
    }
}

/// The matches in the catalogs of a workspace: of these sources, or of all.
pub(super) async fn matches(
    engine: &dyn Engine,
    workspace: WorkspaceId,
    sources: Option<HashSet<Uuid>>,
    request: &SearchRequest,
) -> Result<Matches, Error> {
    let found = Found::by(engine, workspace, sources, request).await?;
    Ok(found.decided(request.query.parsed.text(), DECISIVE_LEAD))
}

/// Candidate entries for a question.
struct Found {
    named: Named,
    /// The best by words first, then those that were found by name.
    chunks: Vec<StoredChunk>,
    scores: HashMap<ChunkId, f32>,
}

impl Found {
    async fn by(
        engine: &dyn Engine,
        workspace: WorkspaceId,
        sources: Option<HashSet<Uuid>>,
        request: &SearchRequest,
    ) -> Result<Self, Error> {
        let partition = partition::of(workspace, true);
        let named = Named::in_text(&request.query.given);
        let words = Some(Arc::clone(&request.query.parsed));
        let mut lists = vec![ListQuery { words, ..ListQuery::default() }];
        lists.extend(named.phrases().map(|phrase| ListQuery {
            words: Some(Arc::new(ParsedQuery::parse(&format!("\"{phrase}\"")))),
            vector: None,
            without: vec![Arc::clone(&request.query.parsed)],
        }));
        let query =
            Query { workspace: partition, containers: sources, documents: None, limit: MAX_MATCHES, lists };
        let mut lists = engine.candidates(query).await?.into_iter().map(|found| found.words);
        let by_words = lists.next().unwrap_or_default();
        let scores: HashMap<_, _> = by_words.iter().map(|hit| (hit.chunk, hit.score)).collect();
        let mut ids: Vec<ChunkId> = by_words.iter().map(|hit| hit.chunk).collect();
        for hit in lists.flatten() {
            if !ids.contains(&hit.chunk) {
                ids.push(hit.chunk);
            }
        }
        let mut chunks = if ids.is_empty() { Vec::new() } else { engine.chunks(partition, ids).await? };
        chunks.retain(|chunk| request.narrowing.includes_time(Timestamp::from_micros(chunk.updated_at)));
        Ok(Self { named, chunks, scores })
    }

    /// Decides the matches; the best score must be `lead` times the next one to be decisive.
    fn decided(&self, question: &str, lead: f32) -> Matches {
        let score = |chunk: &StoredChunk| self.scores.get(&chunk.id).copied().unwrap_or_default();
        let candidates: Vec<Candidate<'_>> =
            self.chunks.iter().filter_map(|chunk| Candidate::of(chunk, score(chunk))).collect();
        decide(question, &self.named, &candidates, lead)
    }
}

/// An entry that may match.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    is: Match,
    entry: Entry<'a>,
    /// BM25 by the question's words; 0 where it was found only by name.
    score: f32,
}

impl<'a> Candidate<'a> {
    /// None for an entry of no source.
    fn of(chunk: &'a StoredChunk, score: f32) -> Option<Self> {
        let is = Match { document: chunk.id.document, source: chunk.container? };
        Some(Self { is, entry: Entry::read(&chunk.text), score })
    }

    /// How many of the informative words are in the title and the folders.
    fn holds(&self, significant: &SignificantWords) -> usize {
        significant.count_in(&SearchableText {
            title: self.entry.title,
            ..SearchableText::text(self.entry.folders, Language::English)
        })
    }
}

/// Decides the matches among candidates, best first.
fn decide(question: &str, named: &Named, candidates: &[Candidate<'_>], lead: f32) -> Matches {
    let significant = SignificantWords::of(question, Languages::default());
    let decisive = match named.among(question, candidates) {
        exact if exact.is_empty() => leading(&significant, candidates, lead).into_iter().collect(),
        exact => exact,
    };
    let is_other = |candidate: &&Candidate<'_>| {
        let held = candidate.holds(&significant);
        held > 0 && 2 * held >= significant.count() && !decisive.contains(&candidate.is)
    };
    let others = candidates.iter().filter(is_other).map(|candidate| candidate.is).collect();
    Matches { decisive, others }
}

/// The best candidate, if it has every informative word and its score is `lead` times the next one.
fn leading(significant: &SignificantWords, candidates: &[Candidate<'_>], lead: f32) -> Option<Match> {
    let mut by_score = candidates.iter().filter(|candidate| candidate.score > 0.0);
    let (best, next) = (by_score.next()?, by_score.next());
    let is_ahead = next.is_none_or(|next| best.score >= lead * next.score);
    let holds_all = significant.count() > 0 && best.holds(significant) == significant.count();
    (is_ahead && holds_all).then_some(best.is)
}

#[cfg(test)]
mod measured;
#[cfg(test)]
mod tests;
