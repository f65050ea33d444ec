//! The errors of this service, and their mapping to problems.

use cairn_chassis::bodies::CorruptBody;
use cairn_chassis::limits;
use cairn_chassis::sql;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_chassis::wording;

/// An error of this service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Fields of the request are invalid, with all violations.
    #[error("{}", wording::invalid_fields(.0.len()))]
    Invalid(Vec<Violation>),
    /// The workspace of the caller has no such item, or it is in trash.
    #[error("no {kind} {id}")]
    NotFound {
        /// `file` or `folder`.
        kind: &'static str,
        /// As the caller gave it.
        id: String,
    },
    /// The item exists, but did not at the requested time.
    #[error("{0}")]
    NotThen(String),
    /// The requested state is older than the retention.
    #[error("{0}")]
    Gone(String),
    /// The record exists, but the filters, the search or the view of the request exclude it.
    #[error(
        "the record {0} is in this database, and what you ask for leaves it out: ask for it without filter, search and \
         viewId, or read it by itself"
    )]
    LeftOut(String),
    /// The item is in trash with its container, and is restored or removed only with it.
    #[error("the {kind} {id} went to trash along with the {with} '{name}' ({with_id})")]
    WentAlong {
        /// `file` or `record`.
        kind: &'static str,
        /// As the caller gave it.
        id: String,
        /// The kind of the container: `folder` or `database`.
        with: &'static str,
        /// The name of the container.
        name: String,
        /// The id of the container.
        with_id: String,
    },
    /// References of the request that do not exist in the workspace of the caller, with all violations.
    #[error("what is referred to is not in this workspace")]
    NoTargets(Vec<Violation>),
    /// Another memory of the workspace has the slug.
    #[error("the slug '{0}' is taken by another memory of this workspace")]
    SlugTaken(String),
    /// The item exists outside of the folders of the token.
    #[error("{0}")]
    OutOfScope(String),
    /// The memory would be public, and the workspace does not let the caller publish.
    #[error(
        "{0} is for those whom the workspace lets publish, and this caller is none of them: leave the memory private \
         and ask an owner or admin to publish it, or to let more roles publish (PATCH /api/workspaces/{{id}} with \
         'publishers')"
    )]
    MayNotPublish(&'static str),
    /// A version of a memory has fewer members, and the caller may not remove members.
    #[error(
        "members of this memory would go, since the version does not have them: that takes the permission to delete, which \
         this caller does not have"
    )]
    MayNotRemove,
    /// The content hash precondition of a file failed.
    #[error("the file {id} has the content hash {actual} now")]
    VersionConflict {
        /// The id of the file.
        id: String,
        /// Its current content hash.
        actual: String,
    },
    /// The version precondition of a record failed.
    #[error("the record {id} has version {actual} now")]
    RecordConflict {
        /// The id of the record.
        id: String,
        /// Its current version.
        actual: u64,
    },
    /// The request exceeds the size limit of the plan.
    #[error("{0}")]
    TooLarge(String),
    /// The workspace would exceed limits of its plan: each with its usage.
    #[error("the plan of this workspace has no room for this: {}", limits::summary(.0))]
    LimitExceeded(Vec<Violation>),
    /// The service that owns documents of connected sources is unavailable.
    #[error("the service that keeps documents of sources does not answer now: try again in a moment")]
    Unanswered,
    /// The state that the request was checked against changed at every retry.
    #[error("{0}")]
    OutOfDate(String),
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] sql::Error),
    /// The asset store failed.
    #[error("the store of assets: {0}")]
    Objects(#[from] object_store::Error),
    /// The object of an asset is missing from the store.
    #[error("the bytes of the asset {0} are not in the store")]
    LostAsset(String),
    /// So many objects are missing that the store is probably the wrong one, or not mounted.
    #[error(
        "{missing} of {all} assets are not in {location}: mount their volume, or name their place with --assets, and mend \
         again; when they are lost for good, --give-up-assets removes them"
    )]
    StoreAway {
        /// The location of the store.
        location: String,
        /// The number of missing objects that no given backup has.
        missing: usize,
        /// The number of all objects.
        all: usize,
    },
    /// A stored body cannot be decoded.
    #[error(transparent)]
    DamagedBody(#[from] CorruptBody),
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
