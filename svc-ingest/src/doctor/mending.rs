//! Repairs what the checks find, in one transaction: texts first, since rows reference them, and counters last.

use cairn_chassis::bodies::{self, Body, BodyFault, content_hash};
use cairn_chassis::doctor::{self, Progress, Repair, Report};
use cairn_chassis::feed;
use cairn_chassis::sql::{self, Db, Tx};
use cairn_proto::ids::WorkspaceId;

use super::checks;
use crate::store::doctor as stored;
use crate::{Error, store};

const RULE: &str = "every text is there as it was written";
const FROM_COPY: &str = "its text is that of the backup";
const AS_READ: &str =
    "its text stays as it can be read now, under its own hash: it is not quite what was written";
const LOST: &str =
    "its text is lost: what was sent is to be sent again, and a source is read again by its next run";

/// Repairs the documents in a storage, and reports the repairs; `None` if it has no tables of this service. Damaged texts are restored from
/// a copy of the database if it has them. Secrets that do not decrypt are left alone: their key may be found again.
///
/// # Errors
/// When the storage fails; nothing is changed then.
pub async fn mend(
    storage: &sql::Config,
    copy: Option<&sql::Config>,
    progress: Progress<'_>,
) -> Result<Option<Report>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let copy = match copy {
        Some(copy) => Db::open_existing(copy, store::SCHEMA, store::MIGRATIONS).await?,
        None => None,
    };
    let mut report = Report::default();
    mend_open(&db, copy.as_ref(), &mut report, progress).await?;
    if let Some(copy) = copy {
        copy.close().await;
    }
    db.close().await;
    Ok(Some(report))
}

/// As [`mend`], on an open database.
pub(crate) async fn mend_open(
    db: &Db,
    copy: Option<&Db>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let mut tx = doctor::begin(db).await?;
    // Lost texts are published to the feed, which therefore has to be intact.
    doctor::mend(&mut tx, feed::CHECKS, report, progress).await?;
    let mut faulty = bodies::faulty(&mut tx, progress).await?;
    faulty.extend(stored::missing_bodies(&mut tx).await?.into_iter().map(BodyFault::missing));
    for one in faulty {
        // Texts without a valid workspace are unreachable.
        if let Ok(workspace) = one.workspace.parse() {
            mend_text(&mut tx, copy, workspace, one, report).await?;
        }
    }
    doctor::mend(&mut tx, &checks(), report, progress).await?;
    tx.commit().await?;
    Ok(())
}

async fn mend_text(
    tx: &mut Tx,
    copy: Option<&Db>,
    workspace: WorkspaceId,
    faulty: BodyFault,
    report: &mut Report,
) -> Result<(), Error> {
    let BodyFault { hash, text, .. } = faulty;
    let documents = stored::documents_of_body(tx, workspace, &hash).await?;
    let (does, is_loss) = if let Some(body) = sound_copy(copy, workspace, &hash).await? {
        bodies::replace(tx, workspace, &body).await?;
        (FROM_COPY, false)
    } else if let Some(text) = text {
        let body = Body::of(text).await?;
        bodies::put(tx, workspace, &body).await?;
        stored::refer_instead(tx, workspace, &hash, &body).await?;
        bodies::remove(tx, workspace, &hash).await?;
        (AS_READ, true)
    } else {
        stored::give_up_text(tx, workspace, &hash).await?;
        bodies::remove(tx, workspace, &hash).await?;
        (LOST, true)
    };
    for document in documents {
        report.add(Repair {
            rule: RULE.into(),
            subject: format!("workspace {workspace} document {document}"),
            does: does.into(),
            is_loss,
        });
    }
    Ok(())
}

/// The text from the copy, if it is intact there.
async fn sound_copy(copy: Option<&Db>, workspace: WorkspaceId, hash: &str) -> Result<Option<Body>, Error> {
    let Some(copy) = copy else { return Ok(None) };
    let found = bodies::get_many(copy, workspace, &[hash]).await?.pop();
    let is_sound = |body: &Body| body.clone().into_text().is_ok_and(|text| content_hash(&text) == hash);
    Ok(found.filter(is_sound))
}
