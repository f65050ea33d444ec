//! Asks providers while a caller waits: for entries of catalogs that are meant, and for what live sources find.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::Feed;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::live_service_client::LiveServiceClient;
use cairn_proto::ingest::v1::source_outcome::Outcome;
use cairn_proto::ingest::v1::{
    AskProvidersRequest, AskProvidersResponse, LiveDocument, ProviderOperations, SourceOutcome,
};
use cairn_proto::retrieval::v1::CoverageNote;
use uuid::Uuid;

use super::catalog::{self, Match, Matches};
use super::plan::Plan;
use super::request::SearchRequest;
use super::tuning::{PROVIDERS_ANSWERED_BY, PROVIDERS_PATIENCE};
use super::{Searcher, answer};
use crate::error::Error;
use crate::generations::Generation;

/// Live sources that are asked at once: as many as the contract with svc-ingest allows.
const MOST_LIVE_SOURCES: usize = 50;

/// Who is asked, on whose behalf, since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) generation: &'a Generation,
    pub(super) workspace: WorkspaceId,
    pub(super) call: &'a Call,
    pub(super) began: Timestamp,
}

/// What providers said, and what is to be said of it.
#[derive(Debug, Default)]
pub(super) struct Consulted {
    /// In the order of the providers' own ranking for each source.
    pub(super) documents: Vec<LiveDocument>,
    pub(super) notes: Vec<CoverageNote>,
    /// What it cost, for each source that was asked.
    pub(super) operations: BTreeMap<String, ProviderOperations>,
}

impl Consulted {
    /// Requests that were sent to providers.
    pub(super) fn used(&self) -> u64 {
        self.operations.values().map(|operations| u64::from(operations.used)).sum()
    }
}

impl Searcher {
    /// Looks into the catalogs of the plan, and asks the providers whose word is wanted. It fails never: what cannot be had
    /// is a note.
    pub(super) async fn consult(
        &self,
        asking: Asking<'_>,
        request: &SearchRequest,
        plan: &Plan,
    ) -> Consulted {
        if !request.narrowing.may_name_source_documents() {
            return Consulted::default();
        }
        let matches = match self.matches(asking, request, plan).await {
            Ok(matches) => matches,
            Err(error) => {
                tracing::warn!(workspace = %asking.workspace, %error, "catalogs are not searched");
                Matches::default()
            }
        };
        self.asked(asking, request, &plan.live, matches).await
    }

    /// What of the catalogs matches. Where nothing from outside was ever indexed, nothing is looked for.
    pub(super) async fn matches(
        &self,
        asking: Asking<'_>,
        request: &SearchRequest,
        plan: &Plan,
    ) -> Result<Matches, Error> {
        let Asking { generation, workspace, .. } = asking;
        let has_entries = generation.engine.cursor(Feed::Ingest.as_str(), workspace.0) > 0;
        if !plan.consults_catalogs() || !has_entries {
            return Ok(Matches::default());
        }
        let sources = plan.catalogs.as_ref().map(|sources| sources.iter().copied().collect());
        catalog::matches(generation.engine.as_ref(), workspace, sources, request).await
    }

    /// Asks for the decisive matches, and asks the live sources.
    pub(super) async fn asked(
        &self,
        asking: Asking<'_>,
        request: &SearchRequest,
        live: &[Uuid],
        matches: Matches,
    ) -> Consulted {
        let (live, too_many) = live.split_at(live.len().min(MOST_LIVE_SOURCES));
        let mut consulted = Consulted::default();
        if !live.is_empty() || !matches.decisive.is_empty() {
            let question = AskProvidersRequest {
                query: request.query.given.clone(),
                source_ids: live.iter().map(Uuid::to_string).collect(),
                document_ids: matches.decisive.iter().map(|entry| entry.document.to_string()).collect(),
            };
            match self.ask(asking, question).await {
                Some(response) => consulted = heard(response),
                None => consulted.notes = unheard(live, &matches),
            }
        }
        consulted.notes.extend(too_many.iter().map(|source| answer::provider_unavailable(*source, None)));
        consulted.notes.extend(not_fetched(&matches, &consulted.documents));
        consulted
    }

    /// None when svc-ingest does not answer in time, or is left alone for now.
    async fn ask(&self, asking: Asking<'_>, question: AskProvidersRequest) -> Option<AskProvidersResponse> {
        let patience = self.patience(asking.began);
        let owner = asking.generation.indexer.owner(Feed::Ingest)?;
        let mut providers =
            LiveServiceClient::new(self.ingest.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let mut asked = asking.call.request(question);
        asked.set_timeout(patience.min(asking.call.remaining()));
        let answer = async move { Ok(providers.ask_providers(asked).await?.into_inner()) };
        let answered = owner.answered_within(patience, answer).await;
        answered.unwrap_or_else(|error: Error| {
            tracing::warn!(%error, "providers are not asked");
            None
        })
    }

    /// What is left for providers of the time that a search may take.
    fn patience(&self, began: Timestamp) -> Duration {
        let left = PROVIDERS_ANSWERED_BY.saturating_sub(self.clock.now().since(began));
        left.min(PROVIDERS_PATIENCE)
    }
}

/// What an answer of providers is to a search.
fn heard(response: AskProvidersResponse) -> Consulted {
    let AskProvidersResponse { documents, outcomes } = response;
    let mut notes = Vec::new();
    for outcome in &outcomes {
        let Ok(source) = Uuid::try_parse(&outcome.source_id) else { continue };
        let read = documents.iter().filter(|document| document.source_id == outcome.source_id).count();
        notes.extend(notes_of(source, outcome, read));
    }
    let operations = outcomes.into_iter().map(|outcome| {
        let operations = outcome.provider_operations.unwrap_or_default();
        (outcome.source_id, operations)
    });
    Consulted { notes, operations: operations.collect(), documents }
}

fn notes_of(source: Uuid, outcome: &SourceOutcome, read: usize) -> Vec<CoverageNote> {
    let mut notes = Vec::new();
    let is_answered = outcome.outcome() == Outcome::Answered;
    if is_answered || read > 0 {
        notes.push(answer::live_fetch(source, read));
    }
    match outcome.outcome() {
        Outcome::Answered | Outcome::Unspecified => {}
        Outcome::Unavailable => notes.push(answer::provider_unavailable(source, None)),
        Outcome::BudgetExhausted => notes.push(answer::provider_budget_exhausted(source)),
    }
    if is_answered && outcome.not_read > 0 {
        notes.push(answer::provider_unavailable(source, Some(outcome.not_read)));
    }
    notes
}

/// Each source that was to be asked, once.
fn unheard(live: &[Uuid], matches: &Matches) -> Vec<CoverageNote> {
    let mut seen = HashSet::new();
    let sources = live.iter().copied().chain(matches.decisive.iter().map(|entry| entry.source));
    sources
        .filter(|source| seen.insert(*source))
        .map(|source| answer::provider_unavailable(source, None))
        .collect()
}

/// What matched in each catalog and was not read.
fn not_fetched(matches: &Matches, fetched: &[LiveDocument]) -> Vec<CoverageNote> {
    let fetched: HashSet<Uuid> =
        fetched.iter().filter_map(|document| Uuid::try_parse(&document.id).ok()).collect();
    let mut counts: BTreeMap<Uuid, usize> = BTreeMap::new();
    let is_left = |entry: &&Match| !fetched.contains(&entry.document);
    for entry in matches.decisive.iter().chain(&matches.others).filter(is_left) {
        *counts.entry(entry.source).or_default() += 1;
    }
    counts.into_iter().map(|(source, count)| answer::catalog_match_not_fetched(source, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn outcome(source: u128, outcome: Outcome, not_read: u32) -> SourceOutcome {
        let provider_operations = Some(ProviderOperations { used: 2, remaining_today: 8 });
        let source_id = id(source).to_string();
        SourceOutcome { source_id, outcome: outcome.into(), not_read, provider_operations }
    }

    fn document(number: u128, source: u128) -> LiveDocument {
        let (id, source_id) = (id(number).to_string(), id(source).to_string());
        LiveDocument { id, source_id, ..LiveDocument::default() }
    }

    fn told(notes: &[CoverageNote]) -> Vec<(&str, Option<String>, Option<u32>)> {
        notes.iter().map(|note| (note.code.as_str(), note.source_id.clone(), note.count)).collect()
    }

    #[test]
    fn each_outcome_is_told_with_its_source() {
        let response = AskProvidersResponse {
            documents: vec![document(1, 10), document(2, 10), document(3, 11)],
            outcomes: vec![
                outcome(10, Outcome::Answered, 0),
                outcome(11, Outcome::BudgetExhausted, 0),
                outcome(12, Outcome::Unavailable, 0),
                outcome(13, Outcome::Answered, 4),
                SourceOutcome { source_id: "none".to_owned(), ..SourceOutcome::default() },
            ],
        };
        let consulted = heard(response);
        let source = |number| Some(id(number).to_string());
        let expected = vec![
            ("live_fetch", source(10), Some(2)),
            ("live_fetch", source(11), Some(1)),
            ("provider_budget_exhausted", source(11), None),
            ("provider_unavailable", source(12), None),
            ("live_fetch", source(13), Some(0)),
            ("provider_unavailable", source(13), Some(4)),
        ];
        assert_eq!(told(&consulted.notes), expected);
        assert_eq!(consulted.used(), 8);
    }

    #[test]
    fn what_matched_and_was_not_read_is_counted_by_source() {
        let entry = |document, source| Match { document: id(document), source: id(source) };
        let matches = Matches { decisive: vec![entry(1, 10), entry(2, 11)], others: vec![entry(3, 10)] };
        let source = |number| Some(id(number).to_string());
        let both = vec![
            ("catalog_match_not_fetched", source(10), Some(1)),
            ("catalog_match_not_fetched", source(11), Some(1)),
        ];
        assert_eq!(told(&not_fetched(&matches, &[document(1, 10)])), both);
        assert_eq!(not_fetched(&Matches::default(), &[]), []);
        let unavailable = [10, 12, 11].map(|number| ("provider_unavailable", source(number), None)).to_vec();
        assert_eq!(told(&unheard(&[id(10), id(12), id(10)], &matches)), unavailable);
    }
}
