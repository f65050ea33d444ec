//! The JSON responses of the API, converted from protobuf messages. Types that are identical to the contract's are
//! listed in `proto/answers.rs`.

mod absence;
mod activity;
mod analytics;
mod asset;
mod bulk;
mod change;
mod connected_source;
mod database;
mod feedback;
mod file;
mod file_version;
mod freshness;
mod golden;
mod health;
mod import_run;
mod ingested;
mod member;
mod memory;
mod memory_version;
mod overview;
mod own_session;
mod question;
mod reach;
mod record;
mod record_groups;
mod related;
mod script;
mod search;
mod source;
mod sync_run;
mod trash;
mod usage;
mod webhook;
mod workspace;

use cairn_chassis::clock::Timestamp;
pub(crate) use cairn_proto::auth::v1::Grant;
pub(crate) use cairn_proto::content::v1::{
    ActivityEntry, Author, File, FindNamesResponse as FoundNames, Folder, Property, TrashItem,
};
pub(crate) use cairn_proto::ingest::v1::Source;
pub(crate) use cairn_proto::retrieval::v1::{
    CheckEditResponse as EditCheck, CoverageNote, GetDocumentStatusResponse as DocumentStatus,
    RunGoldenQuestionsResponse as GoldenRun,
};

pub(crate) use self::absence::{Absence, AbsenceCheck, MissedDocument};
pub(crate) use self::activity::Undo;
pub(crate) use self::analytics::{
    Amounts, BillingDimensions, Day, Figures, PrincipalShare, RetrievalAnalytics, Share, TopDocument,
};
pub(crate) use self::asset::Asset;
pub(crate) use self::bulk::{ChangedItems, SkippedItem};
pub(crate) use self::change::{Change, Changes};
pub(crate) use self::connected_source::{CheckedSource, ConnectedSource, SourceBudget, SourceRun};
pub(crate) use self::database::{Database, DatabaseOfTable, View};
pub(crate) use self::feedback::FeedbackReport;
pub(crate) use self::file::content_type;
pub(crate) use self::file_version::FileVersion;
pub(crate) use self::freshness::{CitedDocument, Freshness, FreshnessOfFolder};
pub(crate) use self::golden::GoldenQuestion;
pub(crate) use self::health::{
    DocumentCounts, DocumentsHealth, IndexHealth, ServiceHealth, StorageHealth, StorageKind, WorkspaceHealth,
};
pub(crate) use self::import_run::{ImportReport, ImportRun};
pub(crate) use self::ingested::IngestedDocument;
pub(crate) use self::member::{AddedMember, Invitation, InvitationOffer, PendingInvitation, WorkspaceMember};
pub(crate) use self::memory::{Entry, Member, Memory, ResolvedMember, ResolvedMemory, tokens};
pub(crate) use self::memory_version::MemoryVersion;
pub(crate) use self::overview::{IndexState, Indexing, Outside, WorkspaceOverview};
pub(crate) use self::own_session::OwnSession;
pub(crate) use self::question::{
    AskedAgain, Question, QuestionArguments, QuestionGroup, QuestionReplay, RankChange, ReplayedPassage,
};
pub(crate) use self::reach::TokenReach;
pub(crate) use self::record::{Backlink, ImportedTable, Record, RecordPage, RecordVersion};
pub(crate) use self::record_groups::{RecordGroup, RecordGroups, RecordSummary};
pub(crate) use self::related::{RelatedFile, RelatedFiles};
pub(crate) use self::script::ScriptAnswer;
pub(crate) use self::search::{Citation, ResultMeta, SearchAnswer, SearchResult};
pub(crate) use self::source::{RetainedDocument, SourceAnswer, SourceContent, SourceDocument};
pub(crate) use self::sync_run::{SyncCounters, SyncRun};
pub(crate) use self::trash::RestoredItem;
pub(crate) use self::usage::Usage;
pub(crate) use self::webhook::{
    ReplayedDeliveries, TestedWebhook, Webhook, WebhookDelivery, WebhookWithSecret,
};
pub(crate) use self::workspace::{ScopeType, Session, Token, TokenWorkspace, Workspace};

/// Builds URLs from the paths that services return.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    base: String,
}

impl Links {
    pub(crate) fn new(base_url: Option<&str>) -> Self {
        Self { base: base_url.unwrap_or_default().trim_end_matches('/').to_owned() }
    }

    /// Absolute if the base URL is configured.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

pub(crate) fn time(proto: Option<&prost_types::Timestamp>) -> String {
    optional_time(proto).unwrap_or_default()
}

pub(crate) fn optional_time(proto: Option<&prost_types::Timestamp>) -> Option<String> {
    proto.map(|at| Timestamp::from_proto(at).to_rfc3339())
}
