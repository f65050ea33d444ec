//! Golden questions: questions with an expected result. They are few; every caller of the whole workspace sees them, and every
//! writer may pin and unpin them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::identity::{Identity, Permission, Scope};
use cairn_chassis::ids::IdSource;
use cairn_chassis::sql::Db;
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::{GoldenQuestionId, WorkspaceId};
use cairn_proto::retrieval::v1::{CreateGoldenQuestionRequest, Mode, SearchContextRequest};
use uuid::Uuid;

use crate::error::Error;
use crate::search::{SearchRequest, unsupported_moment};
use crate::store;

/// Golden questions of a workspace at most: all of them are run at once, twice for an edit.
pub(crate) const MAX_QUESTIONS: usize = 50;
/// The limit of a read: concurrent pins may exceed the maximum slightly.
const MAX_READ: i64 = 60;
/// Bytes of a passage: a result has at most half of that.
const MAX_QUOTE: usize = 8 * 1024;
/// Bytes of a hash as documents have it.
const MAX_HASH: usize = 100;

/// Who pinned a question, as of that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

/// The expected document or passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) kind: Kind,
    pub(crate) document: Uuid,
    /// Empty when any passage of the document will do.
    pub(crate) quote: String,
    /// The lines of the passage when the question was pinned; 0 if unknown.
    pub(crate) lines: (u32, u32),
    /// The hash of the text that these lines refer to.
    pub(crate) content_hash: String,
}

/// A question with its expected result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GoldenQuestion {
    pub(crate) id: GoldenQuestionId,
    pub(crate) created_at: Timestamp,
    pub(crate) author: Author,
    /// The search that runs it.
    pub(crate) search: SearchContextRequest,
    pub(crate) expected: Expected,
}

/// A validated question to pin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewQuestion {
    search: SearchContextRequest,
    pub(crate) expected: Expected,
}

impl TryFrom<CreateGoldenQuestionRequest> for NewQuestion {
    type Error = Error;

    /// Checks a request; all violations at once.
    fn try_from(request: CreateGoldenQuestionRequest) -> Result<Self, Error> {
        let kind = request.kind();
        // No waiting for writes, and no calls of providers.
        let search = SearchContextRequest {
            mode: Mode::Fast.into(),
            explain: false,
            after: Vec::new(),
            max_wait: None,
            ..request.search.unwrap_or_default()
        };
        let mut violations = match SearchRequest::try_from(search.clone()) {
            Ok(_) => Vec::new(),
            Err(Error::Invalid(violations)) => violations,
            Err(error) => return Err(error),
        };
        violations.extend(unsupported_moment(&search));
        let document = Uuid::try_parse(&request.document_id);
        if document.is_err() {
            let message = "must be the id of a document: a UUID";
            violations.push(Violation::new("documentId", "invalid_id", message));
        }
        if matches!(kind, Kind::Unspecified | Kind::Folder | Kind::Database) {
            violations.push(Violation::new("kind", "invalid", "is no kind of a document"));
        }
        for (path, text, most) in
            [("quote", &request.quote, MAX_QUOTE), ("contentHash", &request.content_hash, MAX_HASH)]
        {
            if text.len() > most {
                violations.push(Violation::new(path, "too_long", format!("must be at most {most} bytes")));
            }
            if text.contains('\0') {
                violations.push(Violation::new(path, "invalid", wording::NO_NUL));
            }
        }
        let (Ok(document), true) = (document, violations.is_empty()) else {
            return Err(Error::Invalid(violations));
        };
        let expected = Expected {
            kind,
            document,
            quote: request.quote.trim().to_owned(),
            lines: (request.start_line, request.end_line),
            content_hash: request.content_hash,
        };
        Ok(Self { search, expected })
    }
}

/// The golden questions; cheap to clone.
#[derive(Clone)]
pub(crate) struct Golden {
    db: Db,
    clock: Arc<dyn Clock>,
    ids: IdSource,
}

cairn_chassis::debug_fields!(Golden { db });

impl Golden {
    /// On tables that are open.
    pub(crate) fn new(db: Db, ambient: &Ambient) -> Self {
        Self { db, clock: Arc::clone(&ambient.clock), ids: ambient.ids.clone() }
    }

    /// Checks that the caller may pin questions.
    pub(crate) fn require_writer(&self, identity: &Identity) -> Result<(), Problem> {
        writer(identity).map(drop)
    }

    /// All questions of the caller's workspace, the oldest first.
    pub(crate) async fn list(&self, identity: &Identity) -> Result<Vec<GoldenQuestion>, Error> {
        let workspace = reader(identity)?;
        Ok(store::golden::list(self.db.engine(), workspace, MAX_READ).await?)
    }

    /// Pins a question; one that is pinned for the same document stays as it is.
    pub(crate) async fn create(
        &self,
        identity: &Identity,
        new: NewQuestion,
    ) -> Result<GoldenQuestion, Error> {
        let workspace = writer(identity)?;
        let principal = &identity.principal;
        let author = Author {
            kind: principal.kind.as_str().to_owned(),
            id: principal.id.clone(),
            name: principal.name.clone(),
        };
        let mut tx = self.db.begin_write().await?;
        let known = store::golden::list(tx.engine(), workspace, MAX_READ).await?;
        let is_same = |known: &&GoldenQuestion| {
            known.search == new.search && known.expected.document == new.expected.document
        };
        if let Some(same) = known.iter().find(is_same) {
            return Ok(same.clone());
        }
        if known.len() >= MAX_QUESTIONS {
            let message = format!(
                "there are {MAX_QUESTIONS} golden questions, which is as many as there may be: unpin one first"
            );
            return Err(Error::Invalid(vec![Violation::new("search", "too_many", message)]));
        }
        let question = GoldenQuestion {
            id: self.ids.next(),
            created_at: self.clock.now(),
            author,
            search: new.search,
            expected: new.expected,
        };
        store::golden::insert(&mut tx, workspace, &question).await?;
        tx.commit().await?;
        Ok(question)
    }

    /// Unpins a question.
    pub(crate) async fn delete(&self, identity: &Identity, id: &str) -> Result<(), Error> {
        let workspace = writer(identity)?;
        let missing = || Problem::not_found("there is no such golden question");
        let id: GoldenQuestionId = id.parse().map_err(|_| missing())?;
        let mut tx = self.db.begin_write().await?;
        let deleted = store::golden::delete(&mut tx, workspace, id).await?;
        tx.commit().await?;
        if deleted == 0 { Err(missing().into()) } else { Ok(()) }
    }
}

/// The workspace of a caller who sees all of it.
fn reader(identity: &Identity) -> Result<WorkspaceId, Problem> {
    identity.require(Permission::Read)?;
    if identity.scope != Scope::All {
        return Err(Problem::out_of_scope(
            "golden questions are about the whole workspace, and this token is bound to folders: use one without a folder scope",
        ));
    }
    identity.workspace_id()
}

fn writer(identity: &Identity) -> Result<WorkspaceId, Problem> {
    identity.require(Permission::Write)?;
    reader(identity)
}
