//! Workspaces, as stored.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Role;
use cairn_chassis::status::Violation;
use cairn_proto::domain::Publishers;
use cairn_proto::ids::WorkspaceId;

/// The unit that tokens, content and limits belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// The workspace.
    pub(crate) id: WorkspaceId,
    /// For people to read.
    pub(crate) name: String,
    /// One of [`PLANS`](crate::PLANS).
    pub(crate) plan: String,
    /// Who may publish memories.
    pub(crate) publishers: Publishers,
    /// The retention of the question log in days; `None`: it is off.
    pub(crate) question_log_days: Option<u32>,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When its settings last changed.
    pub(crate) updated_at: Timestamp,
    /// When it was deleted.
    pub(crate) deleted_at: Option<Timestamp>,
    /// The end of the grace period of a deleted workspace.
    pub(crate) purge_at: Option<Timestamp>,
}

/// A workspace with a user's role in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The workspace.
    pub(crate) workspace: Workspace,
    /// The person's role.
    pub(crate) role: Role,
}

/// A partial update; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) name: Option<String>,
    pub(crate) plan: Option<String>,
    pub(crate) publishers: Option<Publishers>,
    /// The days, or `None` to switch it off.
    pub(crate) question_log_days: Option<Option<u32>>,
    /// Unknown values, by field.
    pub(crate) invalid: Vec<Violation>,
    /// Unknown or immutable fields in the request.
    pub(crate) unknown: Vec<String>,
}
