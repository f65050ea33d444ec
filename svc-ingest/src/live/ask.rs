//! Questions to many sources concurrently, each with its own deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cairn_proto::ids::{DocumentId, SourceId};
use cairn_providers::{Entry, ExternalId, Fault};
use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use super::cache::Key;
use super::read::Bounds;
use super::request::{Question, Selection, Target};
use super::{Connection, Live, unavailable_reason};
use crate::model::{LiveText, Source, Spending};
use crate::runs::{Unread, next};
use crate::scope::Caller;
use crate::{Error, store};

/// The deadline of each provider.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Bodies that are read of one live source.
const MAX_BODIES: usize = 3;
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Bytes of one response of a provider.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Texts of one answer, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;
/// What tokens that are bound to folders cannot use.
const SOURCES: &str = "connected sources";
/// Domain separation of the ids of live documents.
const LIVE: &[u8] = b"cairn document of live source ";

/// The answer to a question.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) documents: Vec<LiveHit>,
    pub(crate) sources: Vec<SourceReport>,
}

/// A document as its provider just returned it.
#[derive(Debug)]
pub(crate) struct LiveHit {
    pub(crate) id: DocumentId,
    pub(crate) source: SourceId,
    pub(crate) source_name: String,
    /// The name of the provider.
    pub(crate) provider: &'static str,
    pub(crate) external_id: ExternalId,
    /// Starting with `/sources`.
    pub(crate) path: String,
    pub(crate) text: Arc<LiveText>,
}

/// The result of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceReport {
    pub(crate) source: SourceId,
    pub(crate) outcome: Outcome,
    /// Bodies that were not read.
    pub(crate) not_read: u32,
    /// Requests made.
    pub(crate) used: u32,
    /// Requests that are left today.
    pub(crate) remaining: u32,
}

/// The outcome of one source; the worst of several documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The provider answered.
    Answered,
    /// It failed, timed out, or was not asked.
    Unavailable,
    /// The daily budget is used up.
    BudgetExhausted,
}

impl Outcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Unavailable => "unavailable",
            Self::BudgetExhausted => "budget_exhausted",
        }
    }

    const fn of(fault: &Fault) -> Self {
        if matches!(fault, Fault::Budget) { Self::BudgetExhausted } else { Self::Unavailable }
    }

    /// A document that is gone or has no text counts as answered.
    fn of_unread(why: &Unread) -> Self {
        match why {
            Unread::Gone => Self::Answered,
            Unread::Failure(failure) if failure.may_pass() => Self::Unavailable,
            Unread::Failure(_) => Self::Answered,
            Unread::Fault(fault) => Self::of(fault),
        }
    }
}

/// The query, the deadline and the byte budget that all sources of a question share.
struct QueryContext<'a> {
    query: &'a str,
    until: Instant,
    /// Remaining bytes for texts.
    bytes_left: AtomicUsize,
}

impl QueryContext<'_> {
    /// Reserves bytes for a text; `false` if too few are left.
    fn take(&self, bytes: usize) -> bool {
        let taken = self
            .bytes_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.is_ok()
    }
}

/// A document whose body is requested.
struct BodyRequest<'a> {
    id: DocumentId,
    /// Starting with `/sources`; absent if it depends on the title in the body.
    path: Option<&'a str>,
    entry: &'a Entry,
}

impl Live {
    /// Searches live sources and reads catalog entries concurrently. The failure of a source is an outcome, not an error.
    pub(crate) async fn ask(
        &self,
        caller: &Caller,
        query: String,
        sources: &[String],
        documents: &[String],
    ) -> Result<Answers, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let until = Instant::now() + MAX_TIME;
        let question = Question::check(query, sources, documents)?;
        let targets = self.targets(caller.workspace, &question).await?;
        let query_context =
            QueryContext { query: &question.query, until, bytes_left: AtomicUsize::new(MAX_TEXT_BYTES) };
        let answered = join_all(targets.iter().map(|target| self.ask_one(target, &query_context))).await;
        let (day, db) = (next::day(self.runner.context.clock.now()), &self.runner.context.db);
        let used = store::provider_operations::used_of_all(db, caller.workspace, day, Spending::Live).await?;
        let mut answers = Answers { documents: Vec::new(), sources: Vec::new() };
        for (target, (found, mut report)) in targets.iter().zip(answered) {
            let used = used.iter().find(|(id, _)| *id == report.source).map_or(0, |(_, used)| *used);
            report.remaining = target.source.daily_budget.saturating_sub(used);
            answers.documents.extend(found);
            answers.sources.push(report);
        }
        Ok(answers)
    }

    async fn ask_one(
        &self,
        target: &Target,
        query_context: &QueryContext<'_>,
    ) -> (Vec<LiveHit>, SourceReport) {
        let (source, started) = (&target.source, Instant::now());
        let mut report = SourceReport {
            source: source.id,
            outcome: Outcome::Unavailable,
            not_read: 0,
            used: 0,
            remaining: 0,
        };
        if let Selection::Entries(catalog_entries) = &target.selection {
            report.not_read = count(catalog_entries.len());
        }
        let mut found = Vec::new();
        if unavailable_reason(source).is_none()
            && let Ok(Ok(_permit)) =
                timeout_at(query_context.until, self.semaphores.sources.acquire(source.workspace)).await
        {
            match self.connect(source).await {
                Ok(connection) => {
                    found = self.query_source(target, &connection, query_context, &mut report).await;
                    report.used = connection.call.sent();
                }
                Err(error) => tracing::warn!(source = %source.id, %error, "a source cannot be asked"),
            }
        }
        let provider = source.provider.as_str();
        let outcome = report.outcome.label();
        metrics::counter!("cairn_live_questions_total", "provider" => provider, "outcome" => outcome)
            .increment(1);
        metrics::histogram!("cairn_live_seconds", "provider" => provider)
            .record(started.elapsed().as_secs_f64());
        (found, report)
    }

    /// Queries a connected source.
    async fn query_source(
        &self,
        target: &Target,
        connection: &Connection<'_>,
        query_context: &QueryContext<'_>,
        report: &mut SourceReport,
    ) -> Vec<LiveHit> {
        match &target.selection {
            Selection::Entries(catalog_entries) => {
                let hits = catalog_entries.iter().map(|catalog_entry| BodyRequest {
                    id: catalog_entry.id,
                    path: Some(&catalog_entry.path),
                    entry: &catalog_entry.entry,
                });
                self.bodies(connection, hits, query_context, report).await
            }
            Selection::Search => match self.search(connection, query_context).await {
                Ok(entries) => {
                    let hits = entries.iter().take(MAX_BODIES).map(|entry| BodyRequest {
                        id: live_id(target.source.id, &entry.id),
                        path: None,
                        entry,
                    });
                    self.bodies(connection, hits, query_context, report).await
                }
                Err(fault) => {
                    report.outcome = Outcome::of(&fault);
                    Vec::new()
                }
            },
        }
    }

    async fn search(
        &self,
        connection: &Connection<'_>,
        query_context: &QueryContext<'_>,
    ) -> Result<Vec<Entry>, Fault> {
        let call = connection.call.with_deadline(query_context.until).with_most_bytes(MAX_ANSWER_BYTES);
        let searching = connection.provider.search(&call, query_context.query, MAX_BODIES);
        let found = timeout_at(query_context.until, searching).await.unwrap_or(Err(Fault::Unavailable));
        if let Err(fault) = &found {
            self.record_fault(connection.source, fault).await;
        }
        found
    }

    /// Reads the bodies of documents concurrently.
    async fn bodies<'a>(
        &self,
        connection: &Connection<'_>,
        hits: impl Iterator<Item = BodyRequest<'a>>,
        query_context: &QueryContext<'_>,
        report: &mut SourceReport,
    ) -> Vec<LiveHit> {
        let read = join_all(hits.map(|hit| self.body(connection, hit, query_context))).await;
        report.outcome = Outcome::Answered;
        report.not_read = 0;
        let mut found = Vec::new();
        for read in read {
            match read {
                Ok(document) => found.push(document),
                Err(outcome) => {
                    report.not_read += 1;
                    report.outcome = report.outcome.max(outcome);
                }
            }
        }
        let provider = connection.source.provider.as_str();
        let counted = |outcome: &'static str, number: usize| {
            metrics::counter!("cairn_live_bodies_total", "provider" => provider, "outcome" => outcome)
                .increment(u64::try_from(number).unwrap_or(u64::MAX));
        };
        counted("read", found.len());
        counted("not_read", usize::try_from(report.not_read).unwrap_or(usize::MAX));
        found
    }

    /// Reads one body, from the cache or the provider.
    async fn body(
        &self,
        connection: &Connection<'_>,
        hit: BodyRequest<'_>,
        query_context: &QueryContext<'_>,
    ) -> Result<LiveHit, Outcome> {
        let (source, clock) = (connection.source, &self.runner.context.clock);
        let key = Key::of(source, hit.entry);
        let text = match key.as_ref().and_then(|key| self.cache.get(key, clock.now())) {
            Some(text) => text,
            None => {
                let bounds = Bounds {
                    until: query_context.until,
                    bytes: MAX_BODY_BYTES,
                    answer_bytes: MAX_ANSWER_BYTES,
                    semaphore: &self.semaphores.bodies,
                };
                let read = self.read(connection, hit.entry, bounds).await;
                let text = Arc::new(read.map_err(|why| Outcome::of_unread(&why))?);
                if let Some(key) = key {
                    self.cache.insert(key, Arc::clone(&text), clock.now());
                }
                text
            }
        };
        if !query_context.take(text.content.len()) {
            return Err(Outcome::Answered);
        }
        let path = match hit.path {
            Some(path) => path.to_owned(),
            None => live_path(source, &text),
        };
        Ok(LiveHit {
            id: hit.id,
            source: source.id,
            source_name: source.name.clone(),
            provider: source.provider.as_str(),
            external_id: hit.entry.id.clone(),
            path,
            text,
        })
    }
}

/// The path of a document of a live source.
pub(crate) fn live_path(source: &Source, text: &LiveText) -> String {
    format!("/sources/{}/{}", source.folder, text.metadata.path)
}

/// The id of a live document: deterministic, and of a UUID version that stored documents never have.
fn live_id(source: SourceId, id: &ExternalId) -> DocumentId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(LIVE).update(source.0.as_bytes()).update(id.as_str().as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    DocumentId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_id_of_a_live_document_is_always_the_same_and_looks_like_no_other() {
        let (one, other) = (SourceId(Uuid::from_u128(1)), SourceId(Uuid::from_u128(2)));
        let (a, b) = (ExternalId::new("a").unwrap(), ExternalId::new("b").unwrap());
        assert_eq!(live_id(one, &a), live_id(one, &a));
        assert_ne!(live_id(one, &a), live_id(one, &b));
        assert_ne!(live_id(one, &a), live_id(other, &a));
        assert_eq!(live_id(one, &a).0.get_version_num(), 8);
    }

    #[test]
    fn of_several_outcomes_the_worst_is_told() {
        let waiting = Fault::Waiting { until: cairn_chassis::clock::Timestamp::from_seconds(1) };
        assert_eq!(Outcome::of_unread(&Unread::Gone), Outcome::Answered);
        assert_eq!(Outcome::of_unread(&Unread::Fault(waiting)), Outcome::Unavailable);
        assert_eq!(Outcome::of_unread(&Unread::Fault(Fault::Budget)), Outcome::BudgetExhausted);
        assert!(Outcome::Answered < Outcome::Unavailable && Outcome::Unavailable < Outcome::BudgetExhausted);
    }
}
