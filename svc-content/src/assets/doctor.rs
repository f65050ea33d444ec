//! The invariants of assets: their rows, their objects, and the bytes in these.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::{self, Check, Finding, Mend, Progress};
use cairn_chassis::sql::Db;
use cairn_proto::ids::WorkspaceId;
use futures::stream::{StreamExt as _, TryStreamExt as _};

use super::input;
use super::objects::{AssetLocation, AssetStore, ListedObject};
use super::sweep::{upload_cutoff, without_row};
use crate::model::StoredObject;
use crate::{Error, store};

const ROWS_AT_ONCE: i64 = 500;
const OBJECT_BATCH: usize = 500;
pub(super) const BYTES_RULE: &str = "the bytes of an asset are in the store and have its hash and size";
pub(super) const OBJECT_RULE: &str =
    "an object in the store is that of an asset, or of an upload of the last day";

pub(crate) const CHECKS: &[Check] = &[
    Check {
        rule: "an asset has an object",
        sql: "SELECT 'workspace ' || a.workspace_id || ' asset ' || a.id FROM assets a \
              LEFT JOIN asset_objects o ON o.workspace_id = a.workspace_id AND o.hash = a.hash \
              WHERE o.hash IS NULL",
        mend: Mend::GiveUp {
            does: "it is removed",
            sql: &["DELETE FROM assets WHERE NOT EXISTS (SELECT 1 FROM asset_objects o \
                  WHERE o.workspace_id = assets.workspace_id AND o.hash = assets.hash)"],
        },
    },
    Check {
        rule: "an object is that of an asset",
        sql: "SELECT 'workspace ' || o.workspace_id || ' object ' || o.object_id FROM asset_objects o \
              LEFT JOIN assets a ON a.workspace_id = o.workspace_id AND a.hash = o.hash WHERE a.id IS NULL",
        mend: Mend::Restore {
            does: "its row is removed, and its bytes with the next sweep",
            sql: &["DELETE FROM asset_objects WHERE NOT EXISTS (SELECT 1 FROM assets a \
                  WHERE a.workspace_id = asset_objects.workspace_id AND a.hash = asset_objects.hash)"],
        },
    },
];

/// Checks the assets of a database against the store that goes with it. Read-only.
pub(crate) async fn examine(
    db: &Db,
    location: &AssetLocation,
    now: Timestamp,
    progress: Progress<'_>,
) -> Result<Vec<Finding>, Error> {
    let mut tx = db.begin_read().await?;
    let mut findings = doctor::run(&mut tx, CHECKS, progress).await?;
    tx.rollback().await?;
    progress(BYTES_RULE);
    let Some(objects) = AssetStore::open_existing(location).await? else {
        let rows = store::assets::list_all(db, "", "", 1).await?;
        findings.extend(rows.iter().map(|_| no_store(location)));
        return Ok(findings);
    };
    findings.extend(examine_bytes(db, &objects).await?);
    progress(OBJECT_RULE);
    findings.extend(examine_objects(db, &objects, now).await?);
    Ok(findings)
}

fn no_store(location: &AssetLocation) -> Finding {
    let subject = format!(
        "there are assets, and no store at {location}: mount their volume, or name their place with --assets"
    );
    Finding { rule: BYTES_RULE, subject }
}

async fn examine_bytes(db: &Db, objects: &AssetStore) -> Result<Vec<Finding>, Error> {
    let finding = |(workspace, kept, wrong): (WorkspaceId, StoredObject, String)| Finding {
        rule: BYTES_RULE,
        subject: format!("workspace {workspace} object {}: {wrong}", kept.object),
    };
    Ok(damaged(db, objects).await?.into_iter().map(finding).collect())
}

/// Every object whose bytes differ from its row, with a description.
pub(super) async fn damaged(
    db: &Db,
    objects: &AssetStore,
) -> Result<Vec<(WorkspaceId, StoredObject, String)>, Error> {
    let mut found = Vec::new();
    let mut after = (String::new(), String::new());
    loop {
        let rows = store::assets::list_all(db, &after.0, &after.1, ROWS_AT_ONCE).await?;
        let Some((workspace, last)) = rows.last() else { break };
        after = (workspace.to_string(), last.hash.clone());
        for (workspace, kept) in rows {
            let Some(wrong) = damage(objects, workspace, &kept).await? else { continue };
            // It may have been deleted since its row was read.
            let still = store::assets::existing_objects(db, workspace, &[kept.object]).await?;
            if !still.is_empty() {
                found.push((workspace, kept, wrong));
            }
        }
    }
    Ok(found)
}

/// The number of objects with a row.
pub(super) async fn count(db: &Db) -> Result<usize, Error> {
    let (mut count, mut after) = (0, (String::new(), String::new()));
    loop {
        let rows = store::assets::list_all(db, &after.0, &after.1, ROWS_AT_ONCE).await?;
        let Some((workspace, last)) = rows.last() else { return Ok(count) };
        after = (workspace.to_string(), last.hash.clone());
        count += rows.len();
    }
}

/// Whether the store has any object with a row: otherwise it may belong to another deployment.
pub(super) async fn is_ours(db: &Db, objects: &AssetStore) -> Result<bool, Error> {
    let mut after = (String::new(), String::new());
    loop {
        let rows = store::assets::list_all(db, &after.0, &after.1, ROWS_AT_ONCE).await?;
        let Some((workspace, last)) = rows.last() else { return Ok(false) };
        after = (workspace.to_string(), last.hash.clone());
        for (workspace, kept) in rows {
            if objects.size(workspace, kept.object).await?.is_some() {
                return Ok(true);
            }
        }
    }
}

/// A description of what is wrong with the bytes of an object, if anything is.
pub(super) async fn damage(
    objects: &AssetStore,
    workspace: WorkspaceId,
    kept: &StoredObject,
) -> Result<Option<String>, Error> {
    match objects.size(workspace, kept.object).await? {
        None => return Ok(Some("it is not there".to_owned())),
        Some(size) if size != kept.size_bytes => {
            return Ok(Some(format!("it has {size} bytes, not {}", kept.size_bytes)));
        }
        Some(_) => {}
    }
    let mut bytes = match objects.read(workspace, kept.object, 0..kept.size_bytes).await {
        Ok(bytes) => bytes,
        Err(object_store::Error::NotFound { .. }) => return Ok(Some("it is not there".to_owned())),
        Err(error) => return Err(error.into()),
    };
    let mut hasher = blake3::Hasher::new();
    while let Some(chunk) = bytes.try_next().await? {
        hasher.update(&chunk);
    }
    let hash = input::spelled(&hasher);
    Ok((hash != kept.hash).then(|| format!("it has the hash {hash}, not {}", kept.hash)))
}

async fn examine_objects(db: &Db, objects: &AssetStore, now: Timestamp) -> Result<Vec<Finding>, Error> {
    let finding = |lost: ListedObject| Finding {
        rule: OBJECT_RULE,
        subject: format!(
            "workspace {} object {}: no asset has it; the next sweep of a running Cairn removes it",
            lost.workspace, lost.object
        ),
    };
    Ok(unclaimed(db, objects, now).await?.into_iter().map(finding).collect())
}

/// Objects older than a day that belong to no asset.
pub(super) async fn unclaimed(
    db: &Db,
    objects: &AssetStore,
    now: Timestamp,
) -> Result<Vec<ListedObject>, Error> {
    let mut found = Vec::new();
    let mut chunks = objects.list().try_chunks(OBJECT_BATCH);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|cut| cut.1)?;
        found.extend(without_row(db, chunk, upload_cutoff(now)).await?);
    }
    Ok(found)
}
