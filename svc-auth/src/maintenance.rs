//! Maintenance of the storage from outside of the service, whether or not it is running.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::Progress;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::sealing::columns::{self, Resealed, SealedColumn};
use cairn_chassis::sql::{self, Db};
use cairn_proto::ids::WorkspaceId;

use crate::error::Error;
use crate::model::keys::Listed;
use crate::model::workspaces::{Changes, Workspace};
use crate::workspaces;
use crate::{keys, store};

/// Every column that holds sealed secrets.
pub(crate) const SEALED_COLUMNS: &[SealedColumn] = &[keys::SEEDS];

/// A signing key, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The `kid` of what it signs.
    pub id: String,
    /// `next`, `active` or `retired`.
    pub state: &'static str,
    /// When it entered that state.
    pub since: Timestamp,
    /// Whether its rotation was requested.
    pub is_to_be_replaced: bool,
}

/// Reseals every secret in a storage under the first key of the ring; `None` if it holds no accounts.
///
/// # Errors
/// When a secret cannot be opened, or the storage fails. The call can be repeated.
pub async fn reseal(
    storage: &sql::Config,
    ring: &Keyring,
    entropy: &dyn Entropy,
    progress: Progress<'_>,
) -> Result<Option<Resealed>, Error> {
    let Some(db) = existing(storage).await? else { return Ok(None) };
    let done = columns::reseal(&db, SEALED_COLUMNS, ring, entropy, progress).await;
    db.close().await;
    done.map(Some).map_err(|error| match error {
        columns::Error::Storage(storage) => storage.into(),
        columns::Error::Closed { .. } | columns::Error::Seal(_) => Error::Sealed(error.to_string()),
    })
}

/// The signing keys in a storage, newest first; `None` if it holds no accounts.
///
/// # Errors
/// When the storage fails.
pub async fn signing_keys(storage: &sql::Config) -> Result<Option<Vec<SigningKey>>, Error> {
    let Some(db) = existing(storage).await? else { return Ok(None) };
    let listed = store::keys::list(&db).await;
    db.close().await;
    let shown = |key: Listed| SigningKey {
        id: key.id,
        state: key.state.as_str(),
        since: key.since,
        is_to_be_replaced: key.rotate_after.is_some(),
    };
    Ok(Some(listed?.into_iter().map(shown).collect()))
}

/// Requests a rotation of the active signing key: a running service performs it within seconds, otherwise the next
/// start does. Returns whether there is a key.
///
/// # Errors
/// When the storage fails.
pub async fn ask_for_rotation(storage: &sql::Config, now: Timestamp) -> Result<bool, Error> {
    let Some(db) = existing(storage).await? else { return Ok(false) };
    let asked = store::keys::ask_for_rotation(&db, now).await;
    db.close().await;
    Ok(asked?)
}

/// A workspace with its plan, for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedWorkspace {
    /// The workspace.
    pub id: WorkspaceId,
    /// For people to read.
    pub name: String,
    /// One of [`crate::PLANS`].
    pub plan: String,
}

/// The live workspaces in a storage with their plans, by name; `None` if it holds no accounts.
///
/// # Errors
/// When the storage fails.
pub async fn workspace_plans(storage: &sql::Config) -> Result<Option<Vec<PlannedWorkspace>>, Error> {
    let Some(db) = existing(storage).await? else { return Ok(None) };
    let listed = store::workspaces::list_all(&db).await;
    db.close().await;
    let shown = |one: Workspace| PlannedWorkspace { id: one.id, name: one.name, plan: one.plan };
    Ok(Some(listed?.into_iter().map(shown).collect()))
}

/// Changes the plan of a live workspace; a running service sees it immediately. `None` if there is no such workspace.
///
/// # Errors
/// When the plan is unknown, or the storage fails.
pub async fn set_plan(
    storage: &sql::Config,
    workspace: WorkspaceId,
    plan: &str,
    now: Timestamp,
) -> Result<Option<PlannedWorkspace>, Error> {
    let mut changes = Changes { plan: Some(plan.to_owned()), ..Changes::default() };
    workspaces::check(&mut changes)?;
    let Some(db) = existing(storage).await? else { return Ok(None) };
    let changed = change(&db, workspace, &changes, now).await;
    db.close().await;
    Ok(changed?.map(|one| PlannedWorkspace { id: one.id, name: one.name, plan: one.plan }))
}

async fn change(
    db: &Db,
    workspace: WorkspaceId,
    changes: &Changes,
    now: Timestamp,
) -> Result<Option<Workspace>, Error> {
    let mut tx = db.begin_write().await?;
    let changed = store::workspaces::update(&mut tx, workspace, changes, now).await?;
    tx.commit().await?;
    Ok(changed)
}

async fn existing(storage: &sql::Config) -> Result<Option<Db>, Error> {
    Ok(Db::open_existing(storage, store::SERVICE, store::MIGRATIONS).await?)
}
