//! Which methods are public, and whose they are. What is not named here does not exist at the public address, so that a
//! new service is inside until somebody lets it out.

use cairn_chassis::channel::ServiceChannel;

use crate::cost::Cost;
use crate::upstreams::Upstreams;

/// The one way to an identity.
const EXCHANGE: &str = "/cairn.auth.v1.TokenService/Exchange";
/// What nobody needs an identity for: memories that are public.
const PUBLIC: &[&str] = &["/cairn.content.v1.MemoryService/ExportMemory"];
/// The services for programs, and what their calls cost, reads and writes in the mean.
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

/// The service of the mesh that serves a method.
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

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// The exchange of an API token.
    Exchange,
    /// A method that needs no identity.
    Public { name: &'static str, owner: Owner },
    /// A method that needs one.
    Service { name: &'static str, owner: Owner, cost: Cost },
}

impl Door {
    /// The door of a path; `None` when there is none.
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

    /// The service's name, for counting.
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
        assert_eq!(Door::of("/cairn.auth.v1.TokenService/Exchange"), Some(Door::Exchange));
        let files = Door::of("/cairn.content.v1.FileService/ListFiles").unwrap();
        let (name, owner) = ("cairn.content.v1.FileService", Owner::Content);
        assert_eq!(files, Door::Service { name, owner, cost: Cost::LIST });
        let export = Door::of("/cairn.content.v1.MemoryService/ExportMemory");
        assert!(matches!(export, Some(Door::Public { .. })));
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
            assert_eq!(Door::of(inside), None, "{inside}");
        }
    }
}
