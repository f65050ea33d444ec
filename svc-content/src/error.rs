//! What can go wrong, and what the caller gets of it.

use cairn_chassis::bodies::Damaged;
use cairn_chassis::limits;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_chassis::wording;

/// An error of this service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request break rules: all of them at once.
    #[error("{}", wording::invalid_fields(.0.len()))]
    Invalid(Vec<Violation>),
    /// No such item in the caller's workspace, or it is in trash.
    #[error("no {kind} {id}")]
    NotFound {
        /// `file` or `folder`.
        kind: &'static str,
        /// As the caller gave it.
        id: String,
    },
    /// The item is there, and was not at the time that was asked for.
    #[error("{0}")]
    NotThen(String),
    /// What was asked for is so long ago that it is not kept.
    #[error("{0}")]
    Gone(String),
    /// The record is there, and the filters, the search or the view of the request leave it out.
    #[error(
        "the record {0} is in this database, and what you ask for leaves it out: ask for it without filter, search and \
         viewId, or read it by itself"
    )]
    LeftOut(String),
    /// The item is in trash with something else, and comes back or goes with that only.
    #[error("the {kind} {id} went to trash along with the {with} '{name}' ({with_id})")]
    WentAlong {
        /// `file` or `record`.
        kind: &'static str,
        /// As the caller gave it.
        id: String,
        /// What it went with: `folder` or `database`.
        with: &'static str,
        /// What that is called.
        name: String,
        /// Its id.
        with_id: String,
    },
    /// References of the request name nothing in the caller's workspace: all of them at once.
    #[error("what is referred to is not in this workspace")]
    NoTargets(Vec<Violation>),
    /// Another memory of the workspace has the slug.
    #[error("the slug '{0}' is taken by another memory of this workspace")]
    SlugTaken(String),
    /// The item exists outside the folders of the caller's token.
    #[error("{0}")]
    OutOfScope(String),
    /// Everybody could read it then, and the workspace does not leave that to the caller.
    #[error(
        "{0} is for those whom the workspace lets publish, and this caller is none of them: leave the memory private \
         and ask an owner or admin to publish it, or to let more roles publish (PATCH /api/workspaces/{{id}} with \
         'publishers')"
    )]
    MayNotPublish(&'static str),
    /// A version of a memory has fewer members, and the caller may take out none.
    #[error(
        "members of this memory would go, since the version does not have them: that takes the permission to delete, which \
         this caller does not have"
    )]
    MayNotRemove,
    /// The file is not what the caller thought it was.
    #[error("the file {id} has the content hash {actual} now")]
    VersionConflict {
        /// Which file.
        id: String,
        /// Its content hash now.
        actual: String,
    },
    /// The record is not what the caller thought it was.
    #[error("the record {id} has version {actual} now")]
    RecordConflict {
        /// Which record.
        id: String,
        /// Its version now.
        actual: u64,
    },
    /// More bytes than the plan allows at once.
    #[error("{0}")]
    TooLarge(String),
    /// More than the plan allows in all: each limit with what is used of it.
    #[error("the plan of this workspace has no room for this: {}", limits::said(.0))]
    LimitExceeded(Vec<Violation>),
    /// The service that keeps documents of connected sources does not answer.
    #[error("the service that keeps documents of sources does not answer now: try again in a moment")]
    Unanswered,
    /// What the request was checked against changed again and again.
    #[error("{0}")]
    OutOfDate(String),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
    /// The store of assets failed.
    #[error("the store of assets: {0}")]
    Objects(#[from] object_store::Error),
    /// The bytes of an asset are not in the store.
    #[error("the bytes of the asset {0} are not in the store")]
    LostAsset(String),
    /// So many assets are not in the store that this is more likely no store of theirs, or one that is not mounted.
    #[error(
        "{missing} of {all} assets are not in {location}: mount their volume, or name their place with --assets, and mend \
         again; when they are lost for good, --give-up-assets removes them"
    )]
    StoreAway {
        /// Where they were looked for.
        location: String,
        /// How many are not there, and in no backup that was given.
        missing: usize,
        /// Of how many.
        all: usize,
    },
    /// A stored body cannot be read back.
    #[error(transparent)]
    DamagedBody(#[from] Damaged),
}

impl Error {
    pub(crate) fn no_file(id: impl ToString) -> Self {
        Self::NotFound { kind: "file", id: id.to_string() }
    }

    pub(crate) fn no_folder(id: impl ToString) -> Self {
        Self::NotFound { kind: "folder", id: id.to_string() }
    }

    pub(crate) fn no_memory(id: impl ToString) -> Self {
        Self::NotFound { kind: "memory", id: id.to_string() }
    }

    pub(crate) fn no_member(id: impl ToString) -> Self {
        Self::NotFound { kind: "member", id: id.to_string() }
    }

    pub(crate) fn no_database(id: impl ToString) -> Self {
        Self::NotFound { kind: "database", id: id.to_string() }
    }

    pub(crate) fn no_property(id: impl ToString) -> Self {
        Self::NotFound { kind: "property", id: id.to_string() }
    }

    pub(crate) fn no_view(id: impl ToString) -> Self {
        Self::NotFound { kind: "view", id: id.to_string() }
    }

    pub(crate) fn no_record(id: impl ToString) -> Self {
        Self::NotFound { kind: "record", id: id.to_string() }
    }

    pub(crate) fn no_asset(id: impl ToString) -> Self {
        Self::NotFound { kind: "asset", id: id.to_string() }
    }

    pub(crate) fn invalid(path: &str, code: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation::new(path, code, message)])
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(violations) => Self::validation(violations),
            Error::NoTargets(violations) => Self { reason: Reason::NotFound, ..Self::validation(violations) },
            Error::SlugTaken(_) => {
                Self::new(Reason::SlugTaken, format!("{error}; choose another, or leave it out"))
            }
            Error::NotFound { .. } | Error::LeftOut(_) | Error::NotThen(_) => {
                Self::not_found(error.to_string())
            }
            Error::Gone(_) => Self::new(Reason::Gone, error.to_string()),
            Error::WentAlong { with, .. } => Self::not_found(format!(
                "{error}: restore or remove that {with}, and this comes or goes with it"
            )),
            Error::OutOfScope(message) => Self::out_of_scope(message),
            Error::MayNotPublish(_) | Error::MayNotRemove => Self::forbidden(error.to_string()),
            Error::VersionConflict { .. } | Error::RecordConflict { .. } => {
                Self::version_conflict(format!("{error}; read it again and decide anew"))
            }
            Error::OutOfDate(message) => Self::unavailable(message, std::time::Duration::from_secs(1)),
            Error::Unanswered => Self::unavailable(error.to_string(), std::time::Duration::from_secs(2)),
            Error::Storage(storage) => Self::from(storage),
            Error::TooLarge(message) => Self::new(Reason::PayloadTooLarge, message),
            Error::LimitExceeded(ref refused) => {
                let message = format!(
                    "{error}; remove something for good (what is in trash counts), or choose another plan"
                );
                Self { violations: refused.clone(), ..Self::new(Reason::LimitExceeded, message) }
            }
            Error::Objects(failure) => {
                tracing::error!(error = %failure, "the store of assets failed");
                let message = "the store of assets does not answer now: try again";
                Self::unavailable(message, std::time::Duration::from_secs(1))
            }
            Error::LostAsset(_) | Error::StoreAway { .. } | Error::DamagedBody(_) => Self::internal(error),
        }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}
