//! Background removal: documents of disconnected sources, texts that have been hidden for long, and old request counts.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op};
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{SourceId, WorkspaceId};

use super::next;
use crate::context::Context;
use crate::work::Work;
use crate::{Error, store};

/// Documents of one transaction.
const DOCUMENTS_AT_ONCE: i64 = 200;
const SOURCES_AT_ONCE: i64 = 20;
/// Retention of texts of documents to which the credentials no longer give access.
const HIDDEN_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const TEXTS_AT_ONCE: i64 = 100;
/// Retention of daily request counts, in days.
const OPERATIONS_RETENTION_DAYS: i64 = 90;

/// Removes the documents of disconnected sources and of sources that were changed to live mode.
pub(crate) async fn disconnected(context: &Context) -> Result<(), Error> {
    for (workspace, source) in store::sources::disconnected(&context.db, SOURCES_AT_ONCE).await? {
        while remove_some(context, workspace, source).await? {}
        let mut tx = context.db.begin_write().await?;
        store::source_runs::remove_of(&mut tx, workspace, source).await?;
        store::provider_operations::remove_of(&mut tx, workspace, source).await?;
        store::sources::remove(&mut tx, workspace, source).await?;
        tx.commit().await?;
    }
    for (workspace, source) in store::sources::emptied(&context.db, SOURCES_AT_ONCE).await? {
        while remove_some(context, workspace, source).await? {}
    }
    Ok(())
}

/// Removes a batch of documents of such a source; returns whether there may be more.
async fn remove_some(context: &Context, workspace: WorkspaceId, source: SourceId) -> Result<bool, Error> {
    let mut work = Work::without_limits(context, workspace).await?;
    work.tx().lock_name(&format!("ingest-disconnected-{source}")).await?;
    let held = store::sources::get_for_update(work.tx(), workspace, source).await?;
    if held.is_some_and(|source| source.mode != SourceMode::Live) {
        // Its mode was changed back: these documents belong to a new run.
        return Ok(false);
    }
    let some = store::source_documents::some(work.tx(), workspace, source, DOCUMENTS_AT_ONCE).await?;
    if some.is_empty() {
        return Ok(false);
    }
    let ids: Vec<_> = some.iter().map(|document| document.id).collect();
    store::source_documents::remove(work.tx(), workspace, &ids).await?;
    let hashes: Vec<String> =
        some.iter().filter_map(|document| Some(document.retained.as_ref()?.content_hash.clone())).collect();
    work.sweep_texts(&hashes).await?;
    let mut visible = 0;
    for document in some.iter().filter(|document| document.kept.is_visible()) {
        work.publish_delete(Kind::SourceDocument, document.id);
        visible += 1;
    }
    store::sources::add_documents(work.tx(), workspace, source, -visible).await?;
    work.grow_documents(-visible);
    work.commit().await?;
    Ok(true)
}

/// Removes expired texts and request counts; after an error, the next sweep retries.
pub(crate) async fn sweep(context: &Context) {
    if let Err(error) = try_sweep(context).await {
        tracing::warn!(%error, "what sources leave behind is not removed yet; the next try is in an hour");
    }
}

async fn try_sweep(context: &Context) -> Result<(), Error> {
    let now = context.clock.now();
    let hidden_for = i64::try_from(HIDDEN_RETENTION.as_micros()).unwrap_or(i64::MAX);
    let before = Timestamp::from_micros(now.as_micros().saturating_sub(hidden_for));
    loop {
        let some = store::source_documents::hidden_texts(&context.db, before, TEXTS_AT_ONCE).await?;
        if some.is_empty() {
            break;
        }
        for (workspace, id, hash) in some {
            let mut work = Work::without_limits(context, workspace).await?;
            store::source_documents::remove_text(work.tx(), workspace, id).await?;
            work.sweep_texts(&[hash]).await?;
            work.commit().await?;
        }
    }
    store::provider_operations::prune(&context.db, next::day(now) - OPERATIONS_RETENTION_DAYS).await?;
    Ok(())
}

/// Publishes a change of all documents of a source: of their path or their retention.
pub(crate) async fn publish_all(work: &mut Work, source: SourceId, op: Op) -> Result<(), Error> {
    let workspace = work.workspace();
    let count = store::sources::visible(work.tx(), workspace, source).await?;
    if count > 0 {
        let (reserved, now) = work.reserve(count).await?;
        store::sources::publish_documents(work.tx(), workspace, source, op, reserved, now).await?;
    }
    Ok(())
}
