//! What services are still to be told of deleted workspaces.

use cairn_proto::ids::WorkspaceId;

/// What services are told of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Refuse whoever comes.
    Suspend,
    /// Serve again.
    Restore,
    /// Remove all there is.
    Purge,
}

impl Action {
    /// The spelling in the table.
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

/// What one service is still to be told of a workspace: the newest, whatever went before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) workspace: WorkspaceId,
    pub(crate) service: String,
    pub(crate) action: Action,
    pub(crate) revision: u64,
    /// How often it was told in vain.
    pub(crate) attempts: u32,
}
