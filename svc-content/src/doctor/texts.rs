//! Repairs damaged and missing bodies: from a copy, from what can still be decoded, or with a note in their place.

use cairn_chassis::bodies::{self, Body, BodyFault, content_hash};
use cairn_chassis::doctor::{Progress, Repair, Report};
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::WorkspaceId;

use crate::Error;
use crate::store::doctor as stored;

const RULE: &str = "every text is there as it was written";
const FROM_COPY: &str = "its text is that of the backup";
const AS_READ: &str =
    "its text stays as it can be read now, under its own hash: it is not quite what was written";
const NOTE: &str = "its text is lost; a note stands in its place, and other versions are as they were";
const UNUSED: &str = "a text that nothing has is removed";

/// Repairs every referenced body.
pub(super) async fn mend(
    tx: &mut Tx,
    copy: Option<&Db>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let mut all = bodies::faulty(tx, progress).await?;
    all.extend(stored::missing_bodies(tx).await?.into_iter().map(BodyFault::missing));
    for faulty in all {
        // A body without a valid workspace is unreachable.
        if let Ok(workspace) = faulty.workspace.parse() {
            mend_one(tx, copy, workspace, faulty, report).await?;
        }
    }
    Ok(())
}

async fn mend_one(
    tx: &mut Tx,
    copy: Option<&Db>,
    workspace: WorkspaceId,
    faulty: BodyFault,
    report: &mut Report,
) -> Result<(), Error> {
    let BodyFault { hash, text, .. } = faulty;
    let versions = stored::versions_of_body(tx, workspace, &hash).await?;
    let does = match intact_copy(copy, workspace, &hash).await? {
        Some(body) => {
            bodies::replace(tx, workspace, &body).await?;
            FROM_COPY
        }
        None if versions.is_empty() => {
            bodies::remove(tx, workspace, &hash).await?;
            UNUSED
        }
        None => {
            let does = if text.is_some() { AS_READ } else { NOTE };
            let body = Body::of(text.unwrap_or_else(|| note(&hash))).await?;
            bodies::put(tx, workspace, &body).await?;
            stored::replace_body(tx, workspace, &hash, &body).await?;
            bodies::remove(tx, workspace, &hash).await?;
            does
        }
    };
    let is_loss = does == AS_READ || does == NOTE;
    let mut told = |subject: String| {
        report.add(Repair { rule: RULE.into(), subject, does: does.into(), is_loss });
    };
    if versions.is_empty() {
        told(format!("workspace {workspace} body {hash}"));
    }
    for (file, version) in versions {
        told(format!("workspace {workspace} file {file} version {version}"));
    }
    Ok(())
}

/// The body of a copy under that hash, if its content has that hash.
async fn intact_copy(copy: Option<&Db>, workspace: WorkspaceId, hash: &str) -> Result<Option<Body>, Error> {
    let Some(copy) = copy else { return Ok(None) };
    let found = bodies::get_many(copy, workspace, &[hash]).await?.pop();
    let is_sound = |body: &Body| body.clone().into_text().is_ok_and(|text| content_hash(&text) == hash);
    Ok(found.filter(is_sound))
}

/// The note in place of a lost body. It has the hash, so that the body can be found in other copies.
fn note(hash: &str) -> String {
    format!(
        "The text that stood here is lost: what was stored of it is damaged. `cairn doctor` put this note in its place. \
         Its hash was {hash}.\n"
    )
}
