//! The database of a service.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Error;

const POSTGRES_CONNECTIONS: u32 = 10;
/// Long reads of one workspace use at most half of them, see `Db::read_permit`.
const SQLITE_READERS: u32 = 6;

/// Which engine, where, and how many connections.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    pub(super) target: Target,
    pub(super) connections: u32,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Target {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Config {
    /// SQLite in that file, which is created when it is missing; its folder must exist.
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self { target: Target::Sqlite(path.into()), connections: SQLITE_READERS }
    }

    /// PostgreSQL at a URL: `postgres://user:password@host:5432/database`.
    pub fn postgres(url: impl Into<String>) -> Self {
        Self { target: Target::Postgres(url.into()), connections: POSTGRES_CONNECTIONS }
    }

    /// From a URL: `postgres://…`, `postgresql://…`, or `sqlite:` and a path.
    ///
    /// # Errors
    /// When the scheme is none of these.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::postgres(url));
        }
        match url.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Self::sqlite(path.strip_prefix("//").unwrap_or(path))),
            // The URL is not repeated: it may hold a password.
            _ => Err(Error::config("a database URL starts with postgres:// or sqlite:")),
        }
    }

    /// Whether several processes may use it at once: it is a server, not a file.
    pub const fn is_shared(&self) -> bool {
        matches!(self.target, Target::Postgres(_))
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> Option<&Path> {
        match &self.target {
            Target::Sqlite(path) => Some(path),
            Target::Postgres(_) => None,
        }
    }

    /// At most that many connections: to PostgreSQL in all, to SQLite for reading (there is one more, for writing).
    #[must_use]
    pub const fn with_connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Config");
        match &self.target {
            Target::Sqlite(path) => debug.field("sqlite", path),
            Target::Postgres(_) => debug.field("postgres", &"(url)"),
        };
        debug.field("connections", &self.connections).finish()
    }
}
