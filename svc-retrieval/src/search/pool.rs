//! Reads and confirms the chunks of an answer in rounds: only as many as it needs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cairn_browse::PastWorkspace;
use cairn_chassis::call::Call;
use cairn_chassis::clock::Timestamp;
use cairn_index::{ChunkId, Hit, StoredChunk};
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::confirm;
use super::evidence::Evidence;
use super::fetched::Fetched;
use super::page::Page;
use super::request::SearchRequest;
use super::tuning::{MAX_CHUNKS_PER_ROUND, RERANK_WEIGHT, SPARE_CHUNKS};
use crate::error::Error;
use crate::generations::Generation;

/// The context in which chunks are read and confirmed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) generation: &'a Generation,
    pub(super) workspace: WorkspaceId,
    pub(super) call: &'a Call,
    /// Live answers of providers, or past versions of files. They need no confirmation: both were read for the caller.
    pub(super) fetched: &'a Fetched,
    pub(super) now: Timestamp,
    /// The workspace as it was, in a search of the past.
    pub(super) past: Option<&'a PastWorkspace>,
}

impl Site<'_> {
    /// The past version of a confirmed document in a search of the past; `None` where it did not exist or is unknown.
    fn shown(&self, document: &Arc<ConfirmedDocument>) -> Option<Arc<ConfirmedDocument>> {
        match self.past {
            None => Some(Arc::clone(document)),
            Some(past) => past.past_version(document).map(Arc::new),
        }
    }
}

/// Confirmed chunks, best first, and the remaining hits.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    /// Best first.
    rest: &'a [Hit],
    /// Chunks that were read by the ranking already.
    read: HashMap<ChunkId, StoredChunk>,
    evidence: Vec<Evidence>,
    /// Upper bound for the scores of later chunks, which the reranker has not read.
    ceiling: Option<f64>,
    /// Documents that changed since they were indexed.
    outdated: HashSet<Uuid>,
    /// Documents whose owner does not answer now.
    unanswered: HashSet<Uuid>,
}

impl<'a> Pool<'a> {
    /// An empty pool of these hits, best first.
    pub(super) fn new(hits: &'a [Hit], read: Vec<StoredChunk>) -> Self {
        let (outdated, unanswered) = (HashSet::new(), HashSet::new());
        let read = read.into_iter().map(|chunk| (chunk.id, chunk)).collect();
        Self { rest: hits, read, evidence: Vec::new(), ceiling: None, outdated, unanswered }
    }

    pub(super) fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// How many documents were left out because their text is no longer the one that was indexed.
    pub(super) fn outdated(&self) -> usize {
        self.outdated.len()
    }

    /// How many documents were left out because their owner does not answer.
    pub(super) fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    /// Grows until it has `wanted` chunks, or all.
    pub(super) async fn fill(&mut self, site: Site<'_>, wanted: usize) -> Result<(), Error> {
        while self.evidence.len() < wanted && !self.rest.is_empty() {
            self.grow(site, wanted - self.evidence.len()).await?;
        }
        Ok(())
    }

    /// Grows until no remaining chunk can change the page.
    pub(super) async fn settle(&mut self, site: Site<'_>, request: &SearchRequest) -> Result<(), Error> {
        while !self.is_settled(request) {
            self.grow(site, request.limit + SPARE_CHUNKS).await?;
        }
        Ok(())
    }

    fn is_settled(&self, request: &SearchRequest) -> bool {
        let Some(next) = self.rest.first() else { return true };
        // Age only lowers a score, so the score of a hit is an upper bound.
        let most = self.ceiling.unwrap_or(f64::INFINITY).min(f64::from(next.score));
        most < request.min_score
            || Page::of(&self.evidence, request).closed_at.is_some_and(|score| score > most)
    }

    /// Reads and confirms the next best chunks.
    async fn grow(&mut self, site: Site<'_>, wanted: usize) -> Result<(), Error> {
        let (round, rest) = self.rest.split_at(wanted.min(MAX_CHUNKS_PER_ROUND).min(self.rest.len()));
        self.rest = rest;
        let mut hits: HashMap<ChunkId, Hit> = HashMap::with_capacity(round.len());
        let (mut chunks, mut unread) = (Vec::with_capacity(round.len()), Vec::new());
        for hit in round {
            if let Some((chunk, document)) = site.fetched.passage(hit.chunk) {
                let evidence = Evidence::new(*hit, chunk, document, site.now);
                self.push(if site.fetched.are_live { evidence.read_live() } else { evidence });
                continue;
            }
            hits.insert(hit.chunk, *hit);
            match self.read.remove(&hit.chunk) {
                Some(chunk) => chunks.push(chunk),
                None => unread.push(hit.chunk),
            }
        }
        if !unread.is_empty() {
            chunks.extend(confirm::stored(site.generation, site.workspace, unread).await?);
        }
        let confirmed = confirm::confirm(site.generation, site.call, &chunks).await?;
        for chunk in chunks {
            let (Some(document), Some(hit)) = (confirmed.get(chunk.id.document), hits.get(&chunk.id)) else {
                continue;
            };
            let Some(document) = site.shown(document) else { continue };
            if document.content_hash != chunk.content_hash {
                // Its line numbers are of an older version.
                self.outdated.insert(chunk.id.document);
                continue;
            }
            self.push(Evidence::new(*hit, chunk, document, site.now));
        }
        self.unanswered.extend(confirmed.unanswered);
        self.evidence.sort_by(Evidence::order);
        Ok(())
    }

    fn push(&mut self, mut evidence: Evidence) {
        evidence.rerank = self.ceiling.map(|ceiling| (ceiling - evidence.unranked_score()).min(0.0));
        self.evidence.push(evidence);
    }

    /// Applies the relevance of the reranker, 0 to 1, one for each chunk in order.
    pub(super) fn rerank(&mut self, relevance: &[f32]) {
        for (evidence, relevance) in self.evidence.iter_mut().zip(relevance) {
            let found = evidence.unranked_score();
            evidence.rerank = Some(RERANK_WEIGHT * (f64::from(*relevance) - found));
        }
        self.evidence.sort_by(Evidence::order);
        self.ceiling = self.evidence.last().map(Evidence::score);
    }
}
