//! The kinds of providers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kind of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// A folder of the server.
    Folder,
    /// A git repository over HTTP.
    Git,
    /// Pages, sitemaps and feeds.
    Web,
    /// A bucket of an S3-compatible object store.
    S3,
    /// Issues, pull requests and files of GitHub.
    Github,
    /// Notion.
    Notion,
    /// Google Drive.
    GoogleDrive,
    /// Slack.
    Slack,
    /// Confluence.
    Confluence,
    /// Jira.
    Jira,
    /// Linear.
    Linear,
    /// A server of the Model Context Protocol.
    Mcp,
}

impl ProviderKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Folder,
        Self::Git,
        Self::Web,
        Self::S3,
        Self::Github,
        Self::Notion,
        Self::GoogleDrive,
        Self::Slack,
        Self::Confluence,
        Self::Jira,
        Self::Linear,
        Self::Mcp,
    ];

    /// The name in JSON and in text columns.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Git => "git",
            Self::Web => "web",
            Self::S3 => "s3",
            Self::Github => "github",
            Self::Notion => "notion",
            Self::GoogleDrive => "google_drive",
            Self::Slack => "slack",
            Self::Confluence => "confluence",
            Self::Jira => "jira",
            Self::Linear => "linear",
            Self::Mcp => "mcp",
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// An unknown provider name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a provider")]
pub struct UnknownProvider;

impl FromStr for ProviderKind {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or(UnknownProvider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_everywhere() {
        for kind in ProviderKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!("Folder".parse::<ProviderKind>(), Err(UnknownProvider));
    }
}
