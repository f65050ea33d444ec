//! The answers of the API as JSON, and how each is read from its protobuf message.

mod analytics;
mod database;
mod feedback;
mod file;
mod file_version;
mod folder;
mod grant;
mod member;
mod memory;
mod overview;
mod record;
mod related;
mod script;
mod search;
mod source;
mod trash;
mod usage;
mod workspace;

use cairn_chassis::clock::Timestamp;

pub(crate) use self::analytics::RetrievalAnalytics;
pub(crate) use self::database::{Database, Property, View};
pub(crate) use self::feedback::FeedbackReport;
pub(crate) use self::file::{File, content_type};
pub(crate) use self::file_version::FileVersion;
pub(crate) use self::folder::Folder;
pub(crate) use self::grant::Grant;
pub(crate) use self::member::{AddedMember, Invitation, InvitationOffer, WorkspaceMember};
pub(crate) use self::memory::{Member, Memory, ResolvedMemory};
pub(crate) use self::overview::WorkspaceOverview;
pub(crate) use self::record::{Backlink, Record, RecordPage, RecordVersion};
pub(crate) use self::related::{RelatedFile, RelatedFiles};
pub(crate) use self::script::ScriptAnswer;
pub(crate) use self::search::{Citation, CoverageNote, SearchAnswer, SearchResult};
pub(crate) use self::source::{Source, SourceAnswer, SourceContent, SourceDocument};
pub(crate) use self::trash::{RestoredItem, TrashItem};
pub(crate) use self::usage::Usage;
pub(crate) use self::workspace::{ScopeType, Session, Token, TokenWorkspace, Workspace};

/// Makes addresses of what a service gives as a path.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    base: String,
}

impl Links {
    pub(crate) fn new(base_url: Option<&str>) -> Self {
        Self { base: base_url.unwrap_or_default().trim_end_matches('/').to_owned() }
    }

    /// Absolute where the deployment knows its address.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

fn time(proto: Option<&prost_types::Timestamp>) -> String {
    optional_time(proto).unwrap_or_default()
}

fn optional_time(proto: Option<&prost_types::Timestamp>) -> Option<String> {
    proto.map(|at| Timestamp::from_proto(at).to_rfc3339())
}
