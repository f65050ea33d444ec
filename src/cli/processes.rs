//! The options of the two ways to run: `cairn up` and `cairn serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use cairn_chassis::debug_fields;
use clap::Args;

use super::connections::DatabaseConnections;
use super::mesh::{Role, UpstreamOptions};
use super::protection::TlsClientOptions;
use super::services::ServiceOptions;

/// The default public address (contract, "Starting it").
const DEFAULT_LISTEN: &str = "127.0.0.1:8700";

#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    /// The folder that holds all data; made when it is not there.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// The public address (HTTP); port 0 picks a free one.
    #[arg(long, env = "CAIRN_LISTEN", value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    pub(crate) listen: SocketAddr,
    /// The admin address (/metrics, /healthz, /readyz). Default: the public port + 1 of 127.0.0.1, when that is free.
    #[arg(long, env = "CAIRN_ADMIN_LISTEN", value_name = "ADDR")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// An address for programs that call over gRPC: token exchange, content, retrieval, ingest and sync, under the
    /// same limits as REST. Default: none.
    #[arg(long, env = "CAIRN_GRPC_LISTEN", value_name = "ADDR")]
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// Print nothing but errors.
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
}

#[derive(Args)]
pub(crate) struct ServeOptions {
    /// Which service.
    #[arg(value_enum)]
    pub(crate) service: Role,
    /// The address to serve on: HTTP for the gateway, gRPC for the others. Default: 127.0.0.1 and the service's port.
    #[arg(long, env = "CAIRN_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The admin address (/metrics, /healthz, /readyz). Default: a free port of 127.0.0.1.
    #[arg(long, env = "CAIRN_ADMIN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) admin_listen: SocketAddr,
    /// Of the gateway: an address for programs that call over gRPC, under the same limits as REST. Default: none.
    #[arg(long, env = "CAIRN_GRPC_LISTEN", value_name = "ADDR")]
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// The folder for what the service keeps on its own disk: SQLite when no database is given, the search index.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// The database, such as postgres://user:password@host/database. Default: a SQLite file in the data folder.
    #[arg(long, env = "CAIRN_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) database_connections: DatabaseConnections,
    /// The secret that services of one mesh share, at least 16 characters; better set by the environment.
    #[arg(
        long,
        env = "CAIRN_MESH_SECRET",
        hide_env_values = true,
        value_name = "SECRET",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) mesh_secret: String,
    /// Let services of the mesh speak to each other without TLS beyond this machine: everything that they say, the
    /// mesh secret among it, can then be read on the way.
    #[arg(long, env = "CAIRN_INSECURE_MESH")]
    pub(crate) insecure_mesh: bool,
    #[command(flatten)]
    pub(crate) upstreams: UpstreamOptions,
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
    #[command(flatten)]
    pub(crate) tls_client: TlsClientOptions,
}

debug_fields!(ServeOptions { service });
