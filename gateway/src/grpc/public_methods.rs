//! The allow-list of public methods and the services that own them: a new service stays internal until it is added
//! here.

use cairn_chassis::channel::ServiceChannel;

use crate::cost::Cost;
use crate::upstreams::Upstreams;

/// The only way to obtain an identity.
const EXCHANGE: &str = "/cairn.auth.v1.TokenService/Exchange";
/// Methods without authentication: public memories.
const PUBLIC: &[&str] = &["/cairn.content.v1.MemoryService/ExportMemory"];
/// The services for programs with the average cost of their calls.
const SERVICES: &[(&str, Owner, Cost)] = &[
    ("cairn.content.v1.FileService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.FileVersionService", Owner::Content, Cost::POINT),
    ("cairn.content.v1.FolderService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.BatchService", Owner::Content, Cost::BULK),
    ("cairn.content.v1.MemoryService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.DatabaseService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.RecordService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.AssetService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.TrashService", Owner::Content, Cost::LIST),
    ("cairn.content.v1.OverviewService", Owner::Content, Cost::LIST),
    ("cairn.retrieval.v1.SearchService", Owner::Retrieval, Cost::SEARCH),
    ("cairn.retrieval.v1.BrowseService", Owner::Retrieval, Cost::SCRIPT),
    ("cairn.retrieval.v1.RelatedService", Owner::Retrieval, Cost::SEARCH),
    ("cairn.retrieval.v1.IndexService", Owner::Retrieval, Cost::POINT),
    ("cairn.retrieval.v1.AnalyticsService", Owner::Retrieval, Cost::LIST),
    ("cairn.ingest.v1.IngestService", Owner::Ingest, Cost::WRITE),
    ("cairn.ingest.v1.SourceService", Owner::Ingest, Cost::SEARCH),
    ("cairn.sync.v1.SyncService", Owner::Sync, Cost::BULK),
];

/// The service that implements a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Content,
    Retrieval,
    Ingest,
    Sync,
}

impl Owner {
    pub(super) fn channel(self, upstreams: &Upstreams) -> ServiceChannel {
        match self {
            Self::Content => upstreams.content.clone(),
            Self::Retrieval => upstreams.retrieval.clone(),
            Self::Ingest => upstreams.ingest.clone(),
            Self::Sync => upstreams.sync.clone(),
        }
    }
}

/// A public method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PublicMethod {
    /// The exchange of an API token.
    Exchange,
    /// A method without authentication.
    Public { name: &'static str, owner: Owner },
    /// A method that requires an identity.
    Service { name: &'static str, owner: Owner, cost: Cost },
}

impl PublicMethod {
    /// The public method of a path; `None` if there is none.
    pub(super) fn of(path: &str) -> Option<Self> {
        if path == EXCHANGE {
            return Some(Self::Exchange);
        }
        let (service, _) = path.strip_prefix('/')?.split_once('/')?;
        let (name, owner, cost) = SERVICES.iter().copied().find(|(name, ..)| *name == service)?;
        Some(if PUBLIC.contains(&path) {
            Self::Public { name, owner }
        } else {
            Self::Service { name, owner, cost }
        })
    }

    /// The service's name, as a metric label.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Exchange => "cairn.auth.v1.TokenService",
            Self::Public { name, .. } | Self::Service { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_public() {
        assert_eq!(PublicMethod::of("/cairn.auth.v1.TokenService/Exchange"), Some(PublicMethod::Exchange));
        let files = PublicMethod::of("/cairn.content.v1.FileService/ListFiles").unwrap();
        let (name, owner) = ("cairn.content.v1.FileService", Owner::Content);
        assert_eq!(files, PublicMethod::Service { name, owner, cost: Cost::LIST });
        let export = PublicMethod::of("/cairn.content.v1.MemoryService/ExportMemory");
        assert!(matches!(export, Some(PublicMethod::Public { .. })));
        for inside in [
            "/cairn.auth.v1.TokenService/CreateToken",
            "/cairn.auth.v1.SessionService/CreateSession",
            "/cairn.auth.v1.KeyService/IssueServiceIdentity",
            "/cairn.feed.v1.FeedService/ReadFeed",
            "/cairn.document.v1.DocumentService/ReadDocuments",
            "/cairn.content.v1.TreeService/ListTree",
            "/grpc.health.v1.Health/Check",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "/cairn.content.v1.FileService",
            "cairn.content.v1.FileService/ListFiles",
            "//cairn.content.v1.FileService/ListFiles",
            "/",
            "",
        ] {
            assert_eq!(PublicMethod::of(inside), None, "{inside}");
        }
    }
}
