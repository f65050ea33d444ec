//! Workspaces, as they are stored.

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
    /// Who may make memories public.
    pub(crate) publishers: Publishers,
    /// For how many days what is asked is kept; none: it is not.
    pub(crate) question_log_days: Option<u32>,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When its settings last changed.
    pub(crate) updated_at: Timestamp,
    /// When it was deleted.
    pub(crate) deleted_at: Option<Timestamp>,
    /// Until when a deleted one can be taken back.
    pub(crate) purge_at: Option<Timestamp>,
}

/// A workspace with a person's role in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The workspace.
    pub(crate) workspace: Workspace,
    /// The person's role.
    pub(crate) role: Role,
}

/// What is to change; `None` stays as it is.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) name: Option<String>,
    pub(crate) plan: Option<String>,
    pub(crate) publishers: Option<Publishers>,
    /// The days, or none for switching it off.
    pub(crate) question_log_days: Option<Option<u32>>,
    /// Values that say nothing known, by their fields.
    pub(crate) invalid: Vec<Violation>,
    /// Fields that were named and cannot be changed.
    pub(crate) unknown: Vec<String>,
}
