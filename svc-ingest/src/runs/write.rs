//! Writes a batch as rows and feed entries.

use cairn_chassis::feed::{Kind, Op};
use cairn_proto::ids::{SourceId, SourceRunId};

use super::batch::Batch;
use crate::model::Body;
use crate::work::Work;
use crate::{Error, store};

/// Writes the documents of a batch. Lock order: the row of the source first.
pub(super) async fn documents(
    work: &mut Work,
    source: SourceId,
    listing: SourceRunId,
    batch: &Batch,
) -> Result<(), Error> {
    let workspace = work.workspace();
    store::sources::get_for_update(work.tx(), workspace, source).await?;
    let growth = batch.growth();
    if growth != 0 {
        store::sources::add_documents(work.tx(), workspace, source, growth).await?;
        work.grow_documents(growth);
    }
    let now = work.now();
    // Lock order: texts by hash. Two sources with the same texts would deadlock otherwise.
    let mut bodies: Vec<&Body> = batch.writes.iter().filter_map(|write| write.body.as_ref()).collect();
    bodies.sort_unstable_by(|one, other| one.hash.cmp(&other.hash));
    for body in bodies {
        work.keep_text(body).await?;
    }
    let mut removed = Vec::new();
    for write in &batch.writes {
        match &write.step.document {
            Some(document) => {
                store::source_documents::put(work.tx(), workspace, source, document, write.step.reindex, now)
                    .await?;
            }
            None => removed.extend(write.before.as_ref().map(|before| before.id)),
        }
    }
    if !removed.is_empty() {
        store::source_documents::remove(work.tx(), workspace, &removed).await?;
    }
    if !batch.seen.is_empty() {
        store::source_documents::see(work.tx(), workspace, &batch.seen, listing, now).await?;
    }
    work.sweep_texts(&batch.left()).await?;
    for write in &batch.writes {
        let Some(document) = write.step.document.as_ref().or(write.before.as_ref()) else { continue };
        match write.step.feed_op {
            None => {}
            Some(Op::Delete) => work.publish_delete(Kind::SourceDocument, document.id),
            Some(Op::Upsert | Op::Unspecified) => work.publish_upsert(Kind::SourceDocument, document.id),
        }
    }
    Ok(())
}
