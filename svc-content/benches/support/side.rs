//! The content service on one engine in this process, and the same tables for hand-written SQL beside it.

use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::{Permission, Scope};
use cairn_chassis::limits::PlanLimits;
use cairn_chassis::sql::{self, Engine};
use cairn_chassis::testing::identity::Issuer;
use cairn_chassis::testing::postgres;
use cairn_content::{AssetLocation, Config, Service};
use cairn_proto::content::v1::batch_service_client::BatchServiceClient;
use cairn_proto::content::v1::database_service_client::DatabaseServiceClient;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::content::v1::memory_service_client::MemoryServiceClient;
use cairn_proto::content::v1::record_service_client::RecordServiceClient;
use cairn_proto::ids::WorkspaceId;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tempfile::TempDir;
use tonic::Request;

const BUDGET: Duration = Duration::from_secs(60);
/// For databases in memory.
const COLUMNS_BYTES: usize = 256 << 20;

/// The service on one engine.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) workspace: WorkspaceId,
    pub(crate) batches: BatchServiceClient<ServiceChannel>,
    pub(crate) databases: DatabaseServiceClient<ServiceChannel>,
    pub(crate) folders: FolderServiceClient<ServiceChannel>,
    pub(crate) memories: MemoryServiceClient<ServiceChannel>,
    pub(crate) records: RecordServiceClient<ServiceChannel>,
    identity: String,
    peer: Engine<SqlitePool, PgPool>,
    _folder: Option<TempDir>,
}

/// The service on SQLite, and on PostgreSQL when this machine has it; that it has not is said.
pub(crate) async fn sides() -> anyhow::Result<Vec<Side>> {
    let folder = TempDir::new()?;
    let path = folder.path().join("content.db");
    let storage = sql::Config::sqlite(path.clone());
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let service = open(storage).await?;
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    let mut sides = vec![Side::new("sqlite", service, Engine::Sqlite(pool), Some(folder))?];
    match postgres::database().await {
        Err(why) => println!("skipped: postgres: {why}"),
        Ok(url) => {
            let service = open(sql::Config::postgres(url.clone())).await?;
            let options: PgConnectOptions = url.parse()?;
            // The throw-away server commits without waiting for its log, and until that is written out no VACUUM takes a row
            // for visible to all, so that no plan would read an index alone.
            let options = options.options([("search_path", "content"), ("synchronous_commit", "on")]);
            let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
            sides.push(Side::new("postgres", service, Engine::Postgres(pool), None)?);
        }
    }
    Ok(sides)
}

async fn open(storage: sql::Config) -> anyhow::Result<(Service, Issuer)> {
    let issuer = Issuer::new()?;
    let config = Config {
        storage,
        trash_retention: None,
        assets: AssetLocation::Memory,
        limits: PlanLimits::default(),
        columns_bytes: COLUMNS_BYTES,
        names_bytes: COLUMNS_BYTES,
    };
    Ok((Service::open(config, issuer.ambient()).await?, issuer))
}

impl Side {
    fn new(
        name: &'static str,
        (service, issuer): (Service, Issuer),
        peer: Engine<SqlitePool, PgPool>,
        folder: Option<TempDir>,
    ) -> anyhow::Result<Self> {
        let workspace: WorkspaceId = issuer.ambient().ids.next();
        let mut token = issuer.token(workspace, &Permission::ALL, Scope::All);
        token.expires_at = token.expires_at.plus(BUDGET * 60);
        let channel = ServiceChannel::local(service.routes());
        let memories = MemoryServiceClient::new(channel.clone());
        Ok(Self {
            name,
            workspace,
            batches: BatchServiceClient::new(channel.clone()),
            databases: DatabaseServiceClient::new(channel.clone()),
            folders: FolderServiceClient::new(channel.clone()),
            memories: memories.max_decoding_message_size(MAX_MESSAGE_BYTES),
            records: RecordServiceClient::new(channel),
            identity: issuer.sign(&token)?,
            peer,
            _folder: folder,
        })
    }

    /// A request with the identity of a token of the workspace.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        Call::within(BUDGET).with_identity(&self.identity).request(message)
    }

    /// Whether what the engine does counts as CPU time of this process.
    pub(crate) const fn is_embedded(&self) -> bool {
        matches!(self.peer, Engine::Sqlite(_))
    }

    /// Carries out hand-written SQL, each statement by itself.
    pub(crate) async fn run(&self, statement: String) -> anyhow::Result<()> {
        let sql = AssertSqlSafe(statement);
        match &self.peer {
            Engine::Sqlite(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|_| ())?,
            Engine::Postgres(pool) => sqlx::raw_sql(sql).execute(pool).await.map(|_| ())?,
        }
        Ok(())
    }

    /// Inserts one text into a table of the peer's own, in a transaction by itself.
    pub(crate) async fn insert_plain(&self, id: &str, body: &str) -> anyhow::Result<()> {
        const INSERT: &str = "INSERT INTO plain (id, body) VALUES ($1, $2)";
        match &self.peer {
            Engine::Sqlite(pool) => {
                sqlx::query(INSERT).bind(id).bind(body).execute(pool).await.map(|_| ())?
            }
            Engine::Postgres(pool) => {
                sqlx::query(INSERT).bind(id).bind(body).execute(pool).await.map(|_| ())?
            }
        }
        Ok(())
    }

    /// The number that a statement answers.
    pub(crate) async fn number(&self, statement: &str) -> anyhow::Result<i64> {
        let sql = AssertSqlSafe(statement);
        Ok(match &self.peer {
            Engine::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
            Engine::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        })
    }

    /// The rows that a statement answers: a text, a number and bytes each.
    pub(crate) async fn rows(&self, statement: &str) -> anyhow::Result<Vec<(String, i64, Vec<u8>)>> {
        let sql = AssertSqlSafe(statement);
        Ok(match &self.peer {
            Engine::Sqlite(pool) => sqlx::query_as(sql).fetch_all(pool).await?,
            Engine::Postgres(pool) => sqlx::query_as(sql).fetch_all(pool).await?,
        })
    }

    /// Lets the planner know the tables as they are now, and writes what is still to be written.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        match &self.peer {
            Engine::Sqlite(_) => self.run("PRAGMA wal_checkpoint(TRUNCATE)".to_owned()).await,
            Engine::Postgres(_) => self.run("VACUUM ANALYZE".to_owned()).await,
        }
    }
}
