//! Repairs the bytes of assets from a copy; assets without one are given up.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::{self, Progress, Repair, Report};
use cairn_chassis::sql::Db;
use cairn_proto::ids::WorkspaceId;
use futures::stream::{StreamExt as _, TryStreamExt as _};

use super::doctor::{BYTES_RULE, OBJECT_RULE, count, damage, damaged, is_ours, unclaimed};
use super::objects::{AssetLocation, AssetStore};
use crate::Error;
use crate::model::StoredObject;
use crate::store::doctor as stored;

/// What to do when a store lacks all or nearly all of its objects, as one that is not mounted does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfUnmounted {
    /// Fail, and change nothing.
    Refuse,
    /// Give the assets up.
    GiveUp,
}

/// From this percentage of missing objects on, a store looks as if it were not mounted.
const UNMOUNTED_PERCENT: usize = 90;

/// Restores every object that differs from its row, and quarantines those without a row. Where the store has other
/// objects and none of these, it may belong to another deployment: objects are only restored from a copy then, and
/// nothing is removed.
///
/// # Errors
///
/// [`Error::StoreAway`] when objects would be given up of a store that looks as if it were not mounted, unless
/// `if_unmounted` allows that. Nothing has been changed then.
pub(crate) async fn mend(
    db: &Db,
    location: &AssetLocation,
    copy: Option<&AssetLocation>,
    if_unmounted: IfUnmounted,
    now: Timestamp,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    progress(BYTES_RULE);
    let copy = match copy {
        Some(copy) => AssetStore::open_existing(copy).await?,
        None => None,
    };
    let all = count(db).await?;
    let objects = match (AssetStore::open_existing(location).await?, &copy, if_unmounted) {
        (Some(objects), _, _) => objects,
        (None, None, _) if all == 0 => return Ok(()),
        (None, Some(_), _) | (None, None, IfUnmounted::GiveUp) => AssetStore::open(location).await?,
        (None, None, IfUnmounted::Refuse) => return Err(away(location, all, all)),
    };
    let is_ours = is_ours(db, &objects).await?;
    let is_empty = objects.list().next().await.transpose()?.is_none();
    let may_give_up = is_ours || is_empty;
    let damaged = damaged(db, &objects).await?;
    if may_give_up && if_unmounted == IfUnmounted::Refuse {
        let missing = missing(&objects, copy.as_ref(), &damaged).await?;
        let is_away = is_empty || missing * 100 >= all * UNMOUNTED_PERCENT;
        if missing > 0 && is_away {
            return Err(away(location, missing, all));
        }
    }
    for (workspace, kept, _) in damaged {
        if !from_copy(&objects, copy.as_ref(), workspace, &kept, report).await? && may_give_up {
            give_up(db, &objects, workspace, &kept, report).await?;
        }
    }
    if !is_ours {
        return Ok(());
    }
    progress(OBJECT_RULE);
    for lost in unclaimed(db, &objects, now).await? {
        // Its row may be what was lost: these bytes are then the only copy.
        objects.quarantine(lost.workspace, lost.object).await?;
        report.add(Repair {
            rule: OBJECT_RULE.into(),
            subject: format!("workspace {} object {}", lost.workspace, lost.object),
            does: "it is moved into the folder `damaged` of the assets, since no asset has it".into(),
            is_loss: false,
        });
    }
    Ok(())
}

fn away(location: &AssetLocation, missing: usize, all: usize) -> Error {
    Error::StoreAway { location: location.to_string(), missing, all }
}

/// The number of these objects that are missing, in the store and in the copy.
async fn missing(
    objects: &AssetStore,
    copy: Option<&AssetStore>,
    damaged: &[(WorkspaceId, StoredObject, String)],
) -> Result<usize, Error> {
    let mut missing = 0;
    for (workspace, kept, _) in damaged {
        let is_there = objects.size(*workspace, kept.object).await?.is_some();
        let is_copied = match copy {
            Some(copy) => copy.size(*workspace, kept.object).await?.is_some(),
            None => false,
        };
        missing += usize::from(!is_there && !is_copied);
    }
    Ok(missing)
}

/// Whether the object was restored from the copy.
async fn from_copy(
    objects: &AssetStore,
    copy: Option<&AssetStore>,
    workspace: WorkspaceId,
    kept: &StoredObject,
    report: &mut Report,
) -> Result<bool, Error> {
    let Some(copy) = copy else { return Ok(false) };
    if damage(copy, workspace, kept).await?.is_some() {
        return Ok(false);
    }
    put_back(objects, copy, workspace, kept).await?;
    report.add(Repair {
        rule: BYTES_RULE.into(),
        subject: format!("workspace {workspace} object {}", kept.object),
        does: "its bytes are those of the backup".into(),
        is_loss: false,
    });
    Ok(true)
}

async fn give_up(
    db: &Db,
    objects: &AssetStore,
    workspace: WorkspaceId,
    kept: &StoredObject,
    report: &mut Report,
) -> Result<(), Error> {
    // First: if this is interrupted, the object is missing, which the next run finds.
    objects.quarantine(workspace, kept.object).await?;
    let mut tx = doctor::begin(db).await?;
    let assets = stored::assets_of_object(&mut tx, workspace, &kept.hash).await?;
    stored::delete_object(&mut tx, workspace, &kept.hash).await?;
    tx.commit().await?;
    for (id, name) in assets {
        report.add(Repair {
            rule: BYTES_RULE.into(),
            subject: format!("workspace {workspace} asset {id} ({name}) object {}", kept.object),
            does: "it is removed; what there is of its bytes is in the folder `damaged` of the assets".into(),
            is_loss: true,
        });
    }
    Ok(())
}

async fn put_back(
    objects: &AssetStore,
    copy: &AssetStore,
    workspace: WorkspaceId,
    kept: &StoredObject,
) -> Result<(), Error> {
    let mut bytes = copy.read(workspace, kept.object, 0..kept.size_bytes).await?;
    let mut writing = objects.write(workspace, kept.object);
    while let Some(chunk) = bytes.try_next().await? {
        writing.put(chunk).await?;
    }
    Ok(writing.finish().await?)
}
