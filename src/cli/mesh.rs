//! The services of the mesh and their addresses.

use std::net::{Ipv4Addr, SocketAddr};

use clap::{Args, ValueEnum};

/// A service of the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// The edge: REST, MCP, console API.
    Gateway,
    /// Users, workspaces, tokens, signed identities.
    Auth,
    /// Files and folders.
    Content,
    /// Outside documents.
    Ingest,
    /// Index and search.
    Retrieval,
    /// Directory sync and imports.
    Sync,
}

impl Role {
    /// The name on the command line, in logs and in traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Auth => "auth",
            Self::Content => "content",
            Self::Ingest => "ingest",
            Self::Retrieval => "retrieval",
            Self::Sync => "sync",
        }
    }

    /// The address when nothing else is said; the gateway's port is the public one.
    pub(crate) fn default_address(self) -> SocketAddr {
        let port = match self {
            Self::Gateway => 8700,
            Self::Auth => 8711,
            Self::Content => 8712,
            Self::Ingest => 8713,
            Self::Retrieval => 8714,
            Self::Sync => 8715,
        };
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }
}

/// Where the other services of the mesh are.
#[derive(Debug, Clone, Args)]
pub(crate) struct UpstreamOptions {
    /// svc-auth: a URL, or several with commas between. Calls are spread over every address of every name.
    #[arg(long, env = "CAIRN_AUTH_URL", value_name = "URL", default_value = "http://127.0.0.1:8711")]
    pub(crate) auth_url: String,
    /// svc-content, in the same way.
    #[arg(long, env = "CAIRN_CONTENT_URL", value_name = "URL", default_value = "http://127.0.0.1:8712")]
    pub(crate) content_url: String,
    /// svc-ingest, in the same way.
    #[arg(long, env = "CAIRN_INGEST_URL", value_name = "URL", default_value = "http://127.0.0.1:8713")]
    pub(crate) ingest_url: String,
    /// svc-retrieval, in the same way.
    #[arg(long, env = "CAIRN_RETRIEVAL_URL", value_name = "URL", default_value = "http://127.0.0.1:8714")]
    pub(crate) retrieval_url: String,
    /// svc-sync, in the same way.
    #[arg(long, env = "CAIRN_SYNC_URL", value_name = "URL", default_value = "http://127.0.0.1:8715")]
    pub(crate) sync_url: String,
}

impl UpstreamOptions {
    /// The address of each service that has one.
    pub(crate) fn urls(&self) -> [(Role, &str); 5] {
        [
            (Role::Auth, &self.auth_url),
            (Role::Content, &self.content_url),
            (Role::Ingest, &self.ingest_url),
            (Role::Retrieval, &self.retrieval_url),
            (Role::Sync, &self.sync_url),
        ]
    }
}
