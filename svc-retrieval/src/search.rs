//! Turns a request into ranked, cited evidence (spec 2.6, 4.4).

mod absence;
mod answer;
mod beside;
mod catalog;
mod citation;
pub(crate) mod confirm;
mod document_details;
mod evidence;
mod excerpt;
mod fetched;
pub(crate) mod fusion;
mod golden;
mod highlights;
mod names;
mod narrowing;
mod page;
mod past;
mod plan;
mod pool;
mod providers;
mod rank;
mod related;
mod request;
pub mod rerank;
mod second_look;
mod similar;
mod source_query;
mod sources;
pub(crate) mod state;
mod states;
pub(crate) mod stored_document;
pub(crate) mod tuning;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;

use cairn_browse::Browser;
use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::clock::Clock;
use cairn_chassis::identity::{Identity, Scope};
use cairn_chassis::status::Problem;
use cairn_embed::StaticRows;
use cairn_index::StoredChunk;
use cairn_index::words::ContainerNames;
use cairn_proto::content::v1::ResolveScopeRequest;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::domain::Feed;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::{self as proto, CoverageNote, SearchContextResponse, Trace};
use uuid::Uuid;

pub(crate) use self::absence::{AbsenceRequest, Missed};
pub(crate) use self::document_details::DocumentDetails;
use self::evidence::Evidence;
use self::excerpt::Excerpt;
pub(crate) use self::golden::{Edit, Outcome};
use self::highlights::Marking;
pub(crate) use self::names::ContainerNamesCache;
use self::narrowing::Narrowing;
use self::page::{Page, Passage};
use self::past::PastSearch;
use self::plan::Plan;
use self::pool::{Pool, Site};
use self::providers::SearchContext;
use self::rank::{QueryVectors, Ranker, Ranking, Within};
pub(crate) use self::related::RelatedRequest;
use self::request::After;
pub(crate) use self::request::{SearchRequest, Strategy, unsupported_moment};
use self::rerank::Reranker;
pub(crate) use self::source_query::{SourceQuery, require_whole_workspace};
use self::tuning::{MAX_RERANKED_BYTES, RERANKED_CHUNKS};

use crate::error::Error;
use crate::generations::{Generation, Generations};
use crate::owners::Owner;

/// An answer, and its cost.
#[derive(Debug)]
pub struct Searched {
    /// The response to the caller.
    pub response: SearchContextResponse,
    /// Whether the vectors of its texts came from the cache.
    pub is_cached: bool,
    /// Requests that were sent to providers.
    pub provider_operations: u64,
}

/// How the operator wants results ranked.
#[derive(Debug, Clone)]
pub struct Preferences {
    /// The words' share of a fused score, 0 to 1; the meaning has the rest ([`tuning::WORD_WEIGHT`]).
    pub word_weight: f32,
    /// Reranks the best chunks; none by default.
    pub reranker: Option<Arc<dyn Reranker>>,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { word_weight: tuning::WORD_WEIGHT, reranker: None }
    }
}

/// Answers searches; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Searcher {
    generations: Generations,
    browser: Browser,
    content: ServiceChannel,
    ingest: ServiceChannel,
    clock: Arc<dyn Clock>,
    preferences: Preferences,
    /// Finds highlights by meaning, whichever embedder the index has.
    rows: Arc<StaticRows>,
    names: ContainerNamesCache,
}

impl Searcher {
    /// A searcher over the current generation; `browser` knows the workspace as it was, `content` resolves folder scopes, `ingest`
    /// knows the connected sources.
    pub(crate) fn new(
        (generations, browser): (Generations, Browser),
        (content, ingest): (ServiceChannel, ServiceChannel),
        clock: Arc<dyn Clock>,
        preferences: Preferences,
        (rows, names): (Arc<StaticRows>, ContainerNamesCache),
    ) -> Self {
        Self { generations, browser, content, ingest, clock, preferences, rows, names }
    }

    /// Ranked evidence of the identity's workspace, confirmed by its owners for the identity's scope.
    ///
    /// # Errors
    /// FORBIDDEN for an identity without a workspace; UNAVAILABLE when an owner cannot confirm; GONE for a moment that is longer ago
    /// than it is known how things stood.
    pub(crate) async fn search(
        &self,
        identity: &Identity,
        call: &Call,
        request: SearchRequest,
    ) -> Result<Searched, Error> {
        let workspace = identity.workspace_id()?;
        let began = self.clock.now();
        // One search sees one generation, whatever becomes current meanwhile.
        let generation = self.generations.current();
        let storage_losses = generation.engine.storage_losses();
        let (mut coverage, plan) = tokio::join!(
            catch_up(&generation, workspace, &request.after, request.max_wait),
            self.plan(&generation, identity, call, &request),
        );
        coverage.extend(plan.notes.iter().cloned());
        let past = self.past(identity, call, &request).await?;
        coverage.extend(past.as_ref().and_then(|then| then.workspace.at()).map(answer::as_it_was));
        let past = past.as_ref();
        let context = SearchContext { generation: &generation, workspace, call, began };
        // The index is searched while the providers are called.
        let (ranked, consulted) =
            tokio::try_join!(self.retained(&generation, identity, call, (&request, past), &plan), async {
                Ok(self.consult(context, &request, &plan).await)
            },)?;
        let mut answered = self.answered(context, (&request, past), ranked, consulted).await?;
        coverage.append(&mut answered.coverage);
        if generation.engine.storage_losses() != storage_losses {
            coverage.push(answer::index_was_lost());
        }
        let response = answer::response(answered.results, coverage, request.mode);
        Ok(Searched { response, is_cached: answered.is_cached, provider_operations: answered.used })
    }

    /// The workspace as it was, where the request is for that.
    async fn past(
        &self,
        identity: &Identity,
        call: &Call,
        request: &SearchRequest,
    ) -> Result<Option<PastSearch>, Error> {
        let Some(moment) = request.moment else { return Ok(None) };
        let past = self.browser.past(identity, call, moment).await.map_err(Problem::from)?;
        Ok(Some(PastSearch::of(past, &request.narrowing).await?))
    }

    /// Ranks the documents of the index.
    async fn retained(
        &self,
        generation: &Generation,
        identity: &Identity,
        call: &Call,
        (request, past): (&SearchRequest, Option<&PastSearch>),
        plan: &Plan,
    ) -> Result<Ranked, Error> {
        let workspace = identity.workspace_id()?;
        if !plan.searches_the_index() {
            return Ok(Ranked::default());
        }
        let (mut within, notes) = self.within(generation, identity, call, plan, request).await?;
        if let Some(then) = past {
            then.narrow(&mut within);
        }
        if [&within.documents, &within.containers].into_iter().flatten().any(HashSet::is_empty) {
            return Ok(Ranked { notes, ..Ranked::default() });
        }
        let mut ranked = self.ranked(generation, workspace, within, request).await?;
        ranked.notes.extend(notes);
        Ok(ranked)
    }

    /// The filter of a search of the index, and notes on what is missing for it.
    async fn within(
        &self,
        generation: &Generation,
        identity: &Identity,
        call: &Call,
        plan: &Plan,
        request: &SearchRequest,
    ) -> Result<(Within, Vec<CoverageNote>), Error> {
        let workspace = identity.workspace_id()?;
        let narrowing = request.narrowing_of_now();
        let (containers, narrowed, names) = tokio::join!(
            self.containers(identity, call, plan),
            narrowed(generation, workspace, call, &narrowing),
            self.names(generation, workspace, request),
        );
        let ((documents, unanswered), (names, unnamed)) = (narrowed?, names);
        let within = Within { containers: containers?, documents, names, ..Within::default() };
        Ok((within, unanswered.into_iter().chain(unnamed).collect()))
    }

    /// The names of the workspace's folders and databases, at least as new as anything that is known to be written and what the
    /// search waits for. A search without them finds less, and says so. A search of then has those of then ([`PastSearch`]).
    async fn names(
        &self,
        generation: &Generation,
        workspace: WorkspaceId,
        request: &SearchRequest,
    ) -> (Option<Arc<ContainerNames>>, Option<CoverageNote>) {
        let owner = generation.indexer.owner(Feed::Content).filter(|_| request.moment.is_none());
        let Some(owner) = owner else { return (None, None) };
        let of_content = request.after.iter().filter(|after| after.feed == Some(Feed::Content));
        let waited = of_content.map(|after| after.position);
        let known = generation.indexer.head(Feed::Content, workspace);
        let wanted = waited.max().map_or(known, |position| position.max(known));
        match self.names.read(owner, workspace, wanted).await {
            Ok(names) => (Some(names), None),
            Err(error) => {
                tracing::warn!(%workspace, %error, "a search does without the names of folders and databases");
                (None, Some(answer::without_names()))
            }
        }
    }

    /// The best confirmed results of a ranking and of what was read for it, and notes for what is missing among them.
    async fn results(
        &self,
        site: Site<'_>,
        request: &SearchRequest,
        (ranking, read): (&Ranking, Vec<StoredChunk>),
    ) -> Result<(Vec<proto::Result>, Vec<CoverageNote>), Error> {
        let (pool, mut notes) = self.gathered(site, request, (ranking, read)).await?;
        let page = Page::of(pool.evidence(), request);
        let explained = |best: &Evidence| request.explain.then(|| explain(ranking, best));
        let marking = Marking::new(&self.rows, &ranking.inspection.words, request.query.parsed.text());
        let shown = page.passages.iter().map(|passage| {
            let highlights = marking.highlights(passage);
            (passage, Excerpt::of(passage, highlights, request.detail))
        });
        let (shown, over_budget) = excerpt::within_budget(shown, request);
        let result = |(passage, shown): (&Passage<'_>, Excerpt)| {
            answer::result(passage, shown, explained(passage.best))
        };
        let results = shown.into_iter().map(result).collect();
        notes.extend(answer::left_out(page.over_budget + over_budget, pool.outdated()));
        notes.extend(answer::unanswered(pool.unanswered()));
        Ok((results, notes))
    }

    /// The confirmed chunks that decide the page of a ranking, and why they are not in the reranker's order.
    async fn gathered<'a>(
        &self,
        site: Site<'_>,
        request: &SearchRequest,
        (ranking, read): (&'a Ranking, Vec<StoredChunk>),
    ) -> Result<(Pool<'a>, Vec<CoverageNote>), Error> {
        let mut pool = Pool::new(&ranking.hits, read);
        let mut notes = Vec::new();
        if let Some(reranker) = &self.preferences.reranker {
            pool.fill(site, request.limit.max(RERANKED_CHUNKS)).await?;
            notes.extend(rerank(reranker.as_ref(), request, &mut pool).await);
        }
        pool.settle(site, request).await?;
        Ok((pool, notes))
    }

    /// Ranks by words and meaning; by words alone, with a note, when the embedder fails: words are an answer, too.
    async fn ranked(
        &self,
        generation: &Generation,
        workspace: WorkspaceId,
        within: Within,
        request: &SearchRequest,
    ) -> Result<Ranked, Error> {
        let (vectors, note) = match rank::embed_queries(request, &generation.queries).await {
            Ok(vectors) if vectors.are_needed() => (vectors, not_embedded(generation, workspace)),
            Ok(vectors) => (vectors, None),
            Err(error) => {
                tracing::debug!(%workspace, %error, "a search is answered by words only");
                (rank::QueryVectors::default(), Some(answer::words_only(&error)))
            }
        };
        let (is_cached, used) = (vectors.are_cached, Some(vectors.clone()));
        let ranker = Ranker::of(generation, self.preferences.word_weight);
        let ranking = rank::rank(ranker, workspace, within, request, vectors).await?;
        Ok(Ranked { ranking, notes: note.into_iter().collect(), is_cached, vectors: used })
    }

    /// The folders or sources that a plan searches for the identity; `None` for all.
    async fn containers(
        &self,
        identity: &Identity,
        call: &Call,
        plan: &Plan,
    ) -> Result<Option<HashSet<Uuid>>, Error> {
        match &plan.retained {
            Some(sources) => Ok(Some(sources.iter().copied().collect())),
            None => self.scope(identity, call).await,
        }
    }

    /// The folders that the identity may see; `None` for all.
    async fn scope(&self, identity: &Identity, call: &Call) -> Result<Option<HashSet<Uuid>>, Error> {
        if identity.scope == Scope::All {
            return Ok(None);
        }
        let mut folders =
            FolderServiceClient::new(self.content.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let scope = folders.resolve_scope(call.request(ResolveScopeRequest {})).await?.into_inner();
        if scope.whole_workspace {
            return Ok(None);
        }
        Ok(Some(scope.folder_ids.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect()))
    }
}

/// The documents that a search is narrowed to, as their owners say now; `None` when it is not. A note where an owner
/// does not answer that an answer can do without.
async fn narrowed(
    generation: &Generation,
    workspace: WorkspaceId,
    call: &Call,
    narrowing: &Narrowing,
) -> Result<(Option<HashSet<Uuid>>, Option<CoverageNote>), Error> {
    if narrowing.is_none() {
        return Ok((None, None));
    }
    // An owner of whose documents none are indexed has nothing to select.
    let is_asked = |owner: &&Owner| {
        narrowing.may_name_documents_of(owner.feed)
            && (!owner.is_optional() || generation.engine.cursor(owner.feed.as_str(), workspace.0) > 0)
    };
    let asked = generation.indexer.owners().iter().filter(is_asked);
    let selected = try_join_all(asked.map(|owner| owner.select(call, narrowing.clone().into()))).await?;
    let note = selected.iter().any(Option::is_none).then(answer::outside_unanswered);
    Ok((Some(selected.into_iter().flatten().flatten().collect()), note))
}

/// Explains the score of a result's best chunk.
fn explain(ranking: &Ranking, evidence: &Evidence) -> Trace {
    Trace {
        bonuses: evidence.age,
        rerank: evidence.rerank,
        r#final: evidence.score(),
        ..ranking.trace(&evidence.hit)
    }
}

/// Reranks the pool; a note when that fails.
async fn rerank(
    reranker: &dyn Reranker,
    request: &SearchRequest,
    pool: &mut Pool<'_>,
) -> Option<CoverageNote> {
    let texts: Vec<&str> = pool.evidence().iter().map(|evidence| beginning(evidence.lines())).collect();
    match reranker.rerank(request.query.parsed.text(), &texts).await {
        Ok(relevance) => {
            pool.rerank(&relevance);
            None
        }
        Err(error) => {
            tracing::warn!(%error, "an answer is not reranked");
            Some(answer::not_reranked())
        }
    }
}

/// The beginning of a text, as long as a reranker reads.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_RERANKED_BYTES)).unwrap_or(text)
}

/// Waits for the writes that the caller must see; a note when that times out, or when the index is known to lag.
async fn catch_up(
    generation: &Generation,
    workspace: WorkspaceId,
    after: &[After],
    max_wait: Duration,
) -> Vec<CoverageNote> {
    let reached = tokio::time::timeout(max_wait, reach_all(generation, workspace, after)).await;
    match reached {
        Ok(true) => {}
        Ok(false) | Err(_) => return vec![answer::index_behind_write()],
    }
    match generation.indexer.lag(workspace) {
        0 => Vec::new(),
        lag => vec![answer::index_lags(lag)],
    }
}

async fn reach_all(generation: &Generation, workspace: WorkspaceId, writes: &[After]) -> bool {
    for after in writes {
        let Some(owner) = after.feed.and_then(|feed| generation.indexer.owner(feed)) else {
            return false;
        };
        match generation.indexer.reach(owner, workspace, after.position).await {
            Ok(true) => {}
            Ok(false) => return false,
            Err(error) => {
                tracing::warn!(%workspace, %error, "the index cannot reach a write that a search waits for");
                return false;
            }
        }
    }
    true
}

/// A ranking, before the owners confirm its documents.
#[derive(Default)]
struct Ranked {
    ranking: Ranking,
    notes: Vec<CoverageNote>,
    is_cached: bool,
    /// The vectors of the request's texts, where the index was searched.
    vectors: Option<QueryVectors>,
}

/// The results of a search, and their cost.
struct FinalResults {
    results: Vec<proto::Result>,
    coverage: Vec<CoverageNote>,
    is_cached: bool,
    /// Requests that were sent to providers.
    used: u64,
}

fn not_embedded(generation: &Generation, workspace: WorkspaceId) -> Option<CoverageNote> {
    match generation.indexer.not_embedded(workspace) {
        0 => None,
        count => Some(answer::not_embedded(count)),
    }
}

/// How long a search waits for a write when the caller does not say (contract, "Consistency token").
pub(crate) const DEFAULT_WAIT: Duration = Duration::from_secs(2);
/// The longest that a caller may ask for.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);
