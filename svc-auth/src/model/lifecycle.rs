//! Notices to services about deleted workspaces.

use cairn_proto::ids::WorkspaceId;

/// The action of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Reject all access.
    Suspend,
    /// Serve again.
    Restore,
    /// Delete all data.
    Purge,
}

impl Action {
    /// The column's value.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Restore => "restore",
            Self::Purge => "purge",
        }
    }
}

impl std::str::FromStr for Action {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Suspend, Self::Restore, Self::Purge];
        all.into_iter().find(|action| action.as_str() == text).ok_or(())
    }
}

/// An undelivered notice to one service: only the newest counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) workspace: WorkspaceId,
    pub(crate) service: String,
    pub(crate) action: Action,
    pub(crate) revision: u64,
    /// The number of failed deliveries.
    pub(crate) attempts: u32,
}
