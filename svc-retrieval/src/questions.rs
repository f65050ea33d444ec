//! The question log: questions and answers of a workspace, with the retention that its owner has chosen.
//!
//! The log is off by default: the identity of the caller has the retention in days ([`Identity::question_log_days`]). When it is on,
//! an answered search enqueues an entry, and one task writes the entries every two seconds; when the queue is full or the database
//! fails for long, questions are dropped (`cairn_retrieval_questions_dropped_total`), and none ever waits. Texts of documents are not
//! stored: a passage is stored as its document, content hash and lines.
//!
//! Who reads: signed-in people alone, a viewer only what they or their own tokens and apps asked.

mod asked;
mod groups;
mod sweep;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::Call;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::identity::{Identity, Role, Scope};
use cairn_chassis::ids::IdSource;
use cairn_chassis::jobs::Lease;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::paging::{Page, PageRequest, Sizes};
use cairn_chassis::sql::{self, Db};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording::{self, Unit};
use cairn_embed::StaticRows;
use cairn_proto::domain::QuestionOutcome;
use cairn_proto::ids::{QuestionId, UserId, WorkspaceId};
use cairn_proto::retrieval::v1::QuestionDetails;
use prost::Message as _;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

pub(crate) use self::asked::{LoggedRequest, PendingQuestion};
pub(crate) use self::groups::Group;
use self::writer::{Entry, Writer};
use crate::error::Error;
use crate::store;

/// The capacity of the queue: a few megabytes.
const QUEUE: usize = 1_024;
/// Retained questions of a workspace: some 20 MB of the usual size.
const MAX_KEPT: i64 = 10_000;
/// Rows that one transaction deletes.
const DELETED_AT_ONCE: i64 = 500;
/// Questions that one request deletes.
const MAX_DELETED: usize = 200;
/// The longest text that questions are looked through for.
const MAX_TEXT: usize = 200;
const SIZES: Sizes = Sizes { default: 50, most: 200 };
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the last entries may take at the shutdown.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Who asked, as of that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) channel: String,
    /// The name that the program reports; empty if it reports none.
    pub(crate) client: String,
}

/// A question and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub(crate) id: QuestionId,
    pub(crate) asked_at: Timestamp,
    pub(crate) operation: String,
    pub(crate) asker: Asker,
    pub(crate) query: String,
    pub(crate) outcome: QuestionOutcome,
    pub(crate) results: u64,
    pub(crate) best_score: Option<f64>,
    pub(crate) took_micros: u64,
}

/// A filter of the questions that the reader may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) since: Timestamp,
    /// Empty for everybody.
    pub(crate) principal: String,
    /// Only of that person, their tokens and apps.
    pub(crate) person: Option<UserId>,
    pub(crate) is_unanswered: bool,
    /// Empty for all.
    pub(crate) text: String,
}

impl Filter {
    /// The person as the column holds it; empty for everybody.
    pub(crate) fn of_person(&self) -> String {
        self.person.map(|person| person.to_string()).unwrap_or_default()
    }

    /// The text as a pattern of LIKE with the escape `!`; empty for all.
    pub(crate) fn pattern(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let mut pattern = String::from("%");
        for letter in self.text.to_lowercase().chars() {
            if matches!(letter, '!' | '%' | '_') {
                pattern.push('!');
            }
            pattern.push(letter);
        }
        pattern.push('%');
        pattern
    }
}

/// The filter of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuestionFilter {
    pub(crate) principal: String,
    pub(crate) is_unanswered: bool,
    pub(crate) since: Option<Timestamp>,
    pub(crate) text: String,
}

/// A reader of the log, and how much of it they may see.
#[derive(Debug, Clone, Copy)]
struct Reader {
    workspace: WorkspaceId,
    /// Older questions are beyond the retention.
    since: Timestamp,
    /// Set for readers who see only their own questions.
    person: Option<UserId>,
}

/// The question log; cheap to clone.
#[derive(Clone)]
pub(crate) struct Questions {
    db: Db,
    clock: Arc<dyn Clock>,
    ids: IdSource,
    queue: mpsc::Sender<Entry>,
    writer: Arc<Mutex<Writer>>,
    lease: Lease,
    /// What questions are grouped by, whatever embedder the index has.
    model: Arc<StaticRows>,
}

cairn_chassis::debug_fields!(Questions { db });

impl Questions {
    /// On tables that are open.
    pub(crate) fn new(db: Db, suspensions: Suspensions, ambient: &Ambient, model: Arc<StaticRows>) -> Self {
        let (queue, entries) = mpsc::channel(QUEUE);
        let writer = Arc::new(Mutex::new(Writer::new(db.clone(), entries, suspensions)));
        let lease = sweep::lease(&db, ambient);
        let (clock, ids) = (Arc::clone(&ambient.clock), ambient.ids.clone());
        Self { db, clock, ids, queue, writer, lease, model }
    }

    /// Begins an entry, where the workspace of the caller has the log on.
    pub(crate) fn begin(
        &self,
        identity: &Identity,
        call: &Call,
        asked: impl FnOnce() -> LoggedRequest,
    ) -> Option<PendingQuestion> {
        let days = identity.question_log_days?;
        let workspace = identity.workspace?;
        Some(PendingQuestion::new(workspace, days, identity, call, asked(), self.clock.now()))
    }

    /// Enqueues an answered question, if there is room.
    fn enqueue(&self, entry: Entry) {
        if self.queue.try_send(entry).is_err() {
            writer::count_dropped(1);
        }
    }

    /// The caller's access to the log; `None` while it is off.
    fn reader(&self, identity: &Identity) -> Result<Option<Reader>, Problem> {
        let person = identity.user_id()?;
        let workspace = identity.workspace_id()?;
        let role = identity.role.filter(|_| identity.scope == Scope::All).ok_or_else(|| {
            Problem::forbidden("reading the question log needs a member who sees the whole workspace")
        })?;
        let Some(days) = identity.question_log_days else { return Ok(None) };
        let person = (role == Role::Viewer).then_some(person);
        Ok(Some(Reader { workspace, since: self.kept_since(days), person }))
    }

    /// The earliest time within a retention of `days`.
    fn kept_since(&self, days: u32) -> Timestamp {
        before(self.clock.now(), days)
    }

    /// A page of the questions that the caller may see, latest first; empty while the log is off.
    pub(crate) async fn list(
        &self,
        identity: &Identity,
        wanted: QuestionFilter,
        (size, token): (u32, &str),
    ) -> Result<Page<Question>, Error> {
        let page = PageRequest::new(SIZES, size, token)?;
        if wanted.text.chars().count() > MAX_TEXT {
            let message = wording::at_most(MAX_TEXT, Unit::Characters);
            return Err(Error::Invalid(vec![Violation::new("text", "too_long", message)]));
        }
        if [&wanted.text, &wanted.principal].iter().any(|text| text.contains('\0')) {
            return Err(Error::Invalid(vec![Violation::new("text", "invalid", wording::NO_NUL)]));
        }
        let Some(reader) = self.reader(identity)? else {
            return Ok(Page { items: Vec::new(), next: String::new(), total: 0 });
        };
        let filter = Filter {
            since: wanted.since.map_or(reader.since, |since| since.max(reader.since)),
            principal: wanted.principal,
            person: reader.person,
            is_unanswered: wanted.is_unanswered,
            text: wanted.text,
        };
        let below = page.after.as_ref().map(|after| after.id.as_str()).unwrap_or_default();
        let mut tx = self.db.begin_read().await?;
        let found = store::questions::list(&mut tx, reader.workspace, &filter, below, page.fetch()).await?;
        let total = match page.known_total(found.len()) {
            Some(total) => total,
            None => store::questions::count_all(&mut tx, reader.workspace, &filter).await?,
        };
        tx.commit().await?;
        Ok(page.page(found, total, |question| (String::new(), question.id.to_string())))
    }

    /// A question with what was asked and answered, when the caller may see it.
    pub(crate) async fn get(
        &self,
        identity: &Identity,
        id: QuestionId,
    ) -> Result<(Question, QuestionDetails), Error> {
        let reader = self.reader(identity)?.ok_or_else(no_question)?;
        let person = reader.person.map(|person| person.to_string()).unwrap_or_default();
        let found = store::questions::find(&self.db, reader.workspace, id, reader.since, &person).await?;
        let (question, details) = found.ok_or_else(no_question)?;
        let details = QuestionDetails::decode(details.as_slice())
            .map_err(|_| sql::Error::corrupt(format!("the details of question {id} cannot be read")))?;
        let details = asked::with_query(details, &question.query);
        Ok((question, details))
    }

    /// Removes questions (owner, admin); how many were there.
    pub(crate) async fn delete(&self, identity: &Identity, ids: &[String]) -> Result<u64, Error> {
        identity.require_manager("deleting questions from the log")?;
        let workspace = identity.workspace_id()?;
        if ids.is_empty() || ids.len() > MAX_DELETED {
            let message = format!("must name 1 to {MAX_DELETED} questions");
            return Err(Error::Invalid(vec![Violation::new("ids", "out_of_range", message)]));
        }
        let named: Vec<QuestionId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        let mut tx = self.db.begin_write().await?;
        let mut deleted = 0;
        for id in named {
            deleted += store::questions::delete(&mut tx, workspace, id).await?;
        }
        tx.commit().await?;
        Ok(deleted)
    }

    /// Applies a new retention, `None` for no log, by deleting older questions (owner).
    pub(crate) async fn keep(&self, identity: &Identity, days: Option<u32>) -> Result<u64, Error> {
        identity.user_id()?;
        if identity.role != Some(Role::Owner) {
            return Err(Problem::forbidden(
                "changing the question log needs the role 'owner' in the workspace",
            )
            .into());
        }
        let workspace = identity.workspace_id()?;
        // Without a log everything goes; what is written this very moment is not shown, and goes when its days are over.
        let before = days.map_or_else(|| self.clock.now().plus(DAY), |days| self.kept_since(days));
        let deleted = sweep::delete_old(&self.db, workspace, before).await?;
        let mut tx = self.db.begin_write().await?;
        match days {
            Some(days) => store::questions::set_days(&mut tx, workspace, days).await?,
            None => store::questions::delete_log(&mut tx, workspace).await?,
        }
        tx.commit().await?;
        Ok(deleted)
    }

    /// Writes questions and deletes old ones, until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let writing = async { self.writer.lock().await.run(&shutdown).await };
        tokio::join!(writing, sweep::run(&self.db, &self.lease, &self.clock, &shutdown));
    }

    /// Drains the queue, when nothing is served any more.
    pub(crate) async fn close(&self) {
        let last = async { self.writer.lock().await.finish().await };
        if tokio::time::timeout(CLOSE_LIMIT, last).await.is_err() {
            tracing::warn!("the questions of the last seconds are not kept: the database takes too long");
        }
    }
}

/// So many days before.
fn before(now: Timestamp, days: u32) -> Timestamp {
    let ago = i64::try_from((DAY * days).as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(ago))
}

fn no_question() -> Error {
    Problem::not_found("there is no such question in the log").into()
}
