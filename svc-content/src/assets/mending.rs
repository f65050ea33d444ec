//! Mends the bytes of assets: from a copy, or what has none is given up.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::doctor::{self, Mended, Progress, Report};
use cairn_chassis::sql::Db;
use cairn_proto::ids::WorkspaceId;
use futures::stream::{StreamExt as _, TryStreamExt as _};

use super::doctor::{BYTES_RULE, OBJECT_RULE, damage, damaged, is_ours, unclaimed};
use super::objects::{AssetLocation, AssetStore};
use crate::Error;
use crate::model::StoredObject;
use crate::store::doctor as stored;

/// Mends every object that is not what its row says, and puts aside those that no row names. Where there is no store at all, or one
/// that has other objects and none of these, the place may be another deployment's: only what a copy has is put there, and nothing
/// is removed.
pub(crate) async fn mend(
    db: &Db,
    location: &AssetLocation,
    copy: Option<&AssetLocation>,
    now: Timestamp,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    progress(BYTES_RULE);
    let copy = match copy {
        Some(copy) => AssetStore::open_existing(copy).await?,
        None => None,
    };
    let objects = match (AssetStore::open_existing(location).await?, &copy) {
        (Some(objects), _) => objects,
        (None, Some(_)) => AssetStore::open(location).await?,
        (None, None) => return Ok(()),
    };
    let is_ours = is_ours(db, &objects).await?;
    let may_give_up = is_ours || objects.list().next().await.transpose()?.is_none();
    for (workspace, kept, _) in damaged(db, &objects).await? {
        if !from_copy(&objects, copy.as_ref(), workspace, &kept, report).await? && may_give_up {
            give_up(db, &objects, workspace, &kept, report).await?;
        }
    }
    if !is_ours {
        return Ok(());
    }
    progress(OBJECT_RULE);
    for lost in unclaimed(db, &objects, now).await? {
        // Its row may be what was lost: then these bytes are all that is left.
        objects.set_aside(lost.workspace, lost.object).await?;
        report.add(Mended {
            rule: OBJECT_RULE.into(),
            subject: format!("workspace {} object {}", lost.workspace, lost.object),
            does: "it is moved into the folder `damaged` of the assets, since no asset has it".into(),
            is_loss: false,
        });
    }
    Ok(())
}

/// Answers whether a copy has the object as it was.
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
    report.add(Mended {
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
    // First: if this is cut, the object is missing, which is found again.
    objects.set_aside(workspace, kept.object).await?;
    let mut tx = doctor::begin(db).await?;
    let assets = stored::assets_of_object(&mut tx, workspace, &kept.hash).await?;
    stored::forget_object(&mut tx, workspace, &kept.hash).await?;
    tx.commit().await?;
    for (id, name) in assets {
        report.add(Mended {
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
