//! How many connections a process takes.

use std::net::IpAddr;

use anyhow::Context as _;
use cairn_chassis::sql;
use cairn_chassis::transport::{Bounds, Connections};
use clap::Args;
use ipnet::IpNet;

use crate::process;

/// How many connections there may be.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectionOptions {
    /// How many connections may be open at once; more are closed. Default: 8192, or fewer where fewer files may be open.
    #[arg(
        long,
        env = "CAIRN_MAX_CONNECTIONS",
        value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: Option<u32>,
    /// How many of them may come from one address; for proxies of CAIRN_TRUSTED_PROXIES there is no such bound.
    #[arg(
        long,
        env = "CAIRN_MAX_CONNECTIONS_PER_ADDRESS",
        value_name = "COUNT",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections_per_address: u32,
}

/// How many connections a service has to its database.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DatabaseConnections {
    /// The most connections of this process to PostgreSQL. All processes of auth, content, ingest, retrieval and sync
    /// together must stay below what the server allows (`max_connections`, 100 when nothing else is set).
    #[arg(
        long,
        env = "CAIRN_DATABASE_CONNECTIONS",
        value_name = "COUNT",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(2..=10_000)
    )]
    database_connections: u32,
}

impl DatabaseConnections {
    /// The database at that URL with so many.
    pub(crate) fn config(self, url: &str) -> anyhow::Result<sql::Config> {
        let config =
            sql::Config::from_url(url).context("the database cannot be used; see --database in --help")?;
        // Those to a file are few, and of no server.
        Ok(if config.is_shared() { config.with_connections(self.database_connections) } else { config })
    }
}

impl ConnectionOptions {
    /// None yet; room is made in the limit of open files.
    pub(crate) fn open(&self, trusted_proxies: &[String]) -> Connections {
        let usual = Bounds::default().all;
        let room = process::raise_file_limit()
            .map_or(usize::MAX, |room| usize::try_from(room).unwrap_or(usize::MAX));
        let wanted = self.max_connections.map_or(usual.min(room), as_count);
        if wanted > room {
            tracing::warn!(
                wanted,
                room,
                "fewer files may be open than CAIRN_MAX_CONNECTIONS needs; raise the limit (`ulimit -n`, LimitNOFILE)"
            );
        }
        Connections::new(Bounds {
            all: wanted.min(room),
            per_address: as_count(self.max_connections_per_address),
            // Those that are none are refused with the gateway's settings.
            proxies: trusted_proxies.iter().filter_map(|text| network(text.trim())).collect(),
        })
    }
}

fn as_count(given: u32) -> usize {
    usize::try_from(given).unwrap_or(usize::MAX)
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}
