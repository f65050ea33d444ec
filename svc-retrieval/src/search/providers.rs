//! Calls providers during a search: for catalog entries that match decisively, and for live sources.

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
use super::tuning::{PROVIDERS_DEADLINE, PROVIDERS_TIMEOUT};
use super::{Searcher, answer};
use crate::error::Error;
use crate::generations::Generation;

/// Live sources per call: the limit of the contract with svc-ingest.
const MAX_LIVE_SOURCES: usize = 50;

/// The generation, workspace and caller of a search, and when it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchContext<'a> {
    pub(super) generation: &'a Generation,
    pub(super) workspace: WorkspaceId,
    pub(super) call: &'a Call,
    pub(super) began: Timestamp,
}

/// The documents of providers, and notes about them.
#[derive(Debug, Default)]
pub(super) struct ProviderAnswers {
    /// In the order of each provider's own ranking.
    pub(super) documents: Vec<LiveDocument>,
    pub(super) notes: Vec<CoverageNote>,
    /// The cost, for each source that was called.
    pub(super) operations: BTreeMap<String, ProviderOperations>,
}

impl ProviderAnswers {
    /// Requests that were sent to providers.
    pub(super) fn used(&self) -> u64 {
        self.operations.values().map(|operations| u64::from(operations.used)).sum()
    }
}

impl Searcher {
    /// Searches the catalogs of the plan, and calls the providers that it needs. Never fails: whatever is unavailable becomes a
    /// note.
    pub(super) async fn consult(
        &self,
        context: SearchContext<'_>,
        request: &SearchRequest,
        plan: &Plan,
    ) -> ProviderAnswers {
        if !request.narrowing.may_name_source_documents() {
            return ProviderAnswers::default();
        }
        let matches = match self.matches(context, request, plan).await {
            Ok(matches) => matches,
            Err(error) => {
                tracing::warn!(workspace = %context.workspace, %error, "catalogs are not searched");
                Matches::default()
            }
        };
        self.asked(context, request, &plan.live, matches).await
    }

    /// The matches in the catalogs; none where nothing from outside was ever indexed.
    pub(super) async fn matches(
        &self,
        context: SearchContext<'_>,
        request: &SearchRequest,
        plan: &Plan,
    ) -> Result<Matches, Error> {
        let SearchContext { generation, workspace, .. } = context;
        let has_entries = generation.engine.cursor(Feed::Ingest.as_str(), workspace.0) > 0;
        if !plan.consults_catalogs() || !has_entries {
            return Ok(Matches::default());
        }
        let sources = plan.catalogs.as_ref().map(|sources| sources.iter().copied().collect());
        catalog::matches(generation.engine.as_ref(), workspace, sources, request).await
    }

    /// Fetches the decisive matches, and queries the live sources.
    pub(super) async fn asked(
        &self,
        context: SearchContext<'_>,
        request: &SearchRequest,
        live: &[Uuid],
        matches: Matches,
    ) -> ProviderAnswers {
        let (live, too_many) = live.split_at(live.len().min(MAX_LIVE_SOURCES));
        let mut consulted = ProviderAnswers::default();
        if !live.is_empty() || !matches.decisive.is_empty() {
            let question = AskProvidersRequest {
                query: request.query.given.clone(),
                source_ids: live.iter().map(Uuid::to_string).collect(),
                document_ids: matches.decisive.iter().map(|entry| entry.document.to_string()).collect(),
            };
            match self.ask(context, question).await {
                Some(response) => consulted = answers_of(response),
                None => consulted.notes = unanswered_notes(live, &matches),
            }
        }
        consulted.notes.extend(too_many.iter().map(|source| answer::provider_unavailable(*source, None)));
        consulted.notes.extend(not_fetched(&matches, &consulted.documents));
        consulted
    }

    /// `None` when svc-ingest does not answer in time, or its circuit breaker is open.
    async fn ask(
        &self,
        context: SearchContext<'_>,
        question: AskProvidersRequest,
    ) -> Option<AskProvidersResponse> {
        let time_left = self.time_left(context.began);
        let owner = context.generation.indexer.owner(Feed::Ingest)?;
        let mut providers =
            LiveServiceClient::new(self.ingest.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let mut asked = context.call.request(question);
        asked.set_timeout(time_left.min(context.call.remaining()));
        let answer = async move { Ok(providers.ask_providers(asked).await?.into_inner()) };
        let answered = owner.answered_within(time_left, answer).await;
        answered.unwrap_or_else(|error: Error| {
            tracing::warn!(%error, "providers are not asked");
            None
        })
    }

    /// The time that is left for providers within that of the search.
    fn time_left(&self, began: Timestamp) -> Duration {
        let left = PROVIDERS_DEADLINE.saturating_sub(self.clock.now().since(began));
        left.min(PROVIDERS_TIMEOUT)
    }
}

/// Documents, notes and costs of a response.
fn answers_of(response: AskProvidersResponse) -> ProviderAnswers {
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
    ProviderAnswers { notes, operations: operations.collect(), documents }
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

/// A note for each source that was to be called.
fn unanswered_notes(live: &[Uuid], matches: &Matches) -> Vec<CoverageNote> {
    let mut seen = HashSet::new();
    let sources = live.iter().copied().chain(matches.decisive.iter().map(|entry| entry.source));
    sources
        .filter(|source| seen.insert(*source))
        .map(|source| answer::provider_unavailable(source, None))
        .collect()
}

/// A note for each catalog with matches that were not fetched.
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
        let consulted = answers_of(response);
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
        assert_eq!(told(&unanswered_notes(&[id(10), id(12), id(10)], &matches)), unavailable);
    }
}
