//! Sources for operators: of all workspaces, from the storage of a deployment that may be running.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::doctor::Progress;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sealing::columns::{self, Resealed};
use cairn_chassis::sql::{self, Db};
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{SourceId, WorkspaceId};
use cairn_providers::{Call, Fault, Reach};
use tokio::time::Instant;

use crate::model::{Source, SourceDetails};
use crate::runs::{Check, Connect as _};
use crate::{Error, credentials, store, webhooks};

/// Deadline of an operator's check.
const MAX_TIME: Duration = Duration::from_secs(30);

/// A source, as one line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSummary {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub id: SourceId,
    /// What people call it.
    pub name: String,
    /// Whose interface it is of, such as `github`.
    pub provider: &'static str,
    /// Its status, as in the API.
    pub status: &'static str,
    /// Documents that searches find.
    pub documents: u64,
    /// The end of the last run that read everything.
    pub last_synced_at: Option<Timestamp>,
    /// Why the last run failed.
    pub error: Option<String>,
}

/// Every source in a storage; `None` when it holds none of this service's tables.
///
/// # Errors
/// When the storage cannot be read.
pub async fn sources(storage: &sql::Config, now: Timestamp) -> Result<Option<Vec<SourceSummary>>, Error> {
    let Some(db) = open(storage).await? else { return Ok(None) };
    let mut summaries = Vec::new();
    for source in store::sources::list_all(&db).await? {
        let run = store::source_runs::last(&db, source.workspace, source.id).await?;
        let shown = SourceDetails { source, used_today: 0, run };
        let status = shown.status(now).as_str();
        let source = shown.source;
        summaries.push(SourceSummary {
            workspace: source.workspace,
            id: source.id,
            name: source.name,
            provider: source.provider.as_str(),
            status,
            documents: source.documents,
            last_synced_at: source.last_synced_at,
            error: source.error,
        });
    }
    db.close().await;
    Ok(Some(summaries))
}

/// The result of a request to sync a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncRequested {
    /// The storage has no such source.
    Absent,
    /// It is live: nothing is stored, so there is nothing to sync.
    Live,
    /// It is due.
    Due,
}

/// Makes a source due, for the deployment that runs on the storage; `full` requests a full run.
///
/// # Errors
/// When the storage cannot be written.
pub async fn sync_source(
    storage: &sql::Config,
    id: SourceId,
    full: bool,
    now: Timestamp,
) -> Result<SyncRequested, Error> {
    let Some(db) = open(storage).await? else { return Ok(SyncRequested::Absent) };
    let Some(found) = find(&db, id).await? else { return Ok(SyncRequested::Absent) };
    let mut tx = db.begin_write().await?;
    let wished = match store::sources::get_for_update(&mut tx, found.workspace, id).await? {
        None => SyncRequested::Absent,
        Some(source) if source.mode == SourceMode::Live => SyncRequested::Live,
        Some(mut source) => {
            source.next_run_at = Some(now);
            source.full_next |= full;
            store::sources::set_next(&mut tx, &source).await?;
            SyncRequested::Due
        }
    };
    tx.commit().await?;
    db.close().await;
    Ok(wished)
}

/// Checks the stored settings and credentials of a source with its provider; returns a message, or `None` when there is no such source.
///
/// # Errors
/// When the storage cannot be read, or its credentials do not open.
pub async fn check_source(
    storage: &sql::Config,
    id: SourceId,
    reach: &Reach,
    ring: Option<&Keyring>,
    clock: Arc<dyn Clock>,
) -> Result<Option<Result<String, String>>, Error> {
    let Some(db) = open(storage).await? else { return Ok(None) };
    let Some(source) = find(&db, id).await? else { return Ok(None) };
    let sealed = store::sources::credentials(&db, source.workspace, id).await?;
    db.close().await;
    let opened = sealed.map(|sealed| credentials::open(ring, id, &sealed)).transpose()?;
    let made = reach.connect(source.provider, &source.settings, opened.as_ref(), Some(source.mode));
    let provider = made.map_err(Error::Invalid)?;
    let call = Call::new(reach.guard().clone(), Arc::new(Check::new()), clock);
    let call = call.with_deadline(Instant::now() + MAX_TIME);
    let asked = tokio::time::timeout(MAX_TIME, provider.check(&call)).await;
    Ok(Some(match asked.unwrap_or(Err(Fault::Unavailable)) {
        Ok(account) => Ok(account.name.map_or_else(
            || account.message.clone().into_owned(),
            |name| format!("{} (as {name})", account.message),
        )),
        Err(fault) => Err(fault.to_string()),
    }))
}

/// Reseals all credentials with the keyring's first key; `None` when the storage has none of this service's tables.
///
/// # Errors
/// At the first credential that does not open, or when the storage fails.
pub async fn reseal(
    storage: &sql::Config,
    ring: &Keyring,
    entropy: &dyn Entropy,
    progress: Progress<'_>,
) -> Result<Option<Resealed>, columns::Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let done =
        columns::reseal(&db, &[credentials::COLUMN, webhooks::COLUMN], ring, entropy, progress).await?;
    db.close().await;
    Ok(Some(done))
}

async fn open(storage: &sql::Config) -> Result<Option<Db>, Error> {
    Ok(Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await?)
}

async fn find(db: &Db, id: SourceId) -> Result<Option<Source>, Error> {
    Ok(store::sources::list_all(db).await?.into_iter().find(|source| source.id == id))
}
