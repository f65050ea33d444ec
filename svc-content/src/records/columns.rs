//! Pages and groups from columns in memory: who builds a snapshot, how it catches up with the feed, and when it may answer.
//!
//! A page or grouping is read in a transaction, and columns answer only at the exact feed position that the transaction sees.
//! A snapshot that is behind first applies the changes since, read in the same transaction, so that callers read their own
//! writes through any process. A snapshot that is ahead, because another request has advanced it, makes the request retry in
//! a later transaction. Without a snapshot the engine answers.
//!
//! A page from a current snapshot skips the transaction: it is found optimistically, and its position is validated by the
//! statement that reads the records.

use std::sync::{Arc, TryLockError};

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::Tx;
use cairn_proto::ids::RecordId;

use super::{Records, listed};
use crate::Error;
use crate::columns::{Builder, CacheLookup, Columns, Place, Row, RowChange, SharedSnapshot};
use crate::context::Context;
use crate::model::{Database, Listed, Selection, cells};
use crate::scope::Caller;
use crate::store;
use crate::store::columns::StoredRecord;
use crate::store::records::StoredPage;

/// Up to this many records the request builds the snapshot itself, which takes about as long as the page.
const MAX_INLINE_BUILD: u64 = 1_000;
/// Records per statement while a snapshot is built.
const BATCH_ROWS: u32 = 2_000;
/// A snapshot further behind the feed than this is rebuilt instead of catching up.
const MAX_LAG: u64 = 5_000;
/// With more rows or changes the work runs on a blocking thread.
const MAX_INLINE_ROWS: usize = 20_000;
const MAX_INLINE_CHANGES: usize = 64;
/// Retries of a request whose snapshot was advanced concurrently.
const MAX_TRIES: usize = 3;

/// Which page a request is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum PageTarget {
    Offset(u64),
    /// The page that contains a record.
    Containing(RecordId),
}

/// The answer of a snapshot to a query.
#[derive(Debug)]
enum Answer<T> {
    /// It cannot answer: fall back to the engine.
    Unavailable,
    /// It is ahead of the transaction: retry in a later one.
    Ahead,
    Found(T),
}

/// A query on a snapshot, and the changes that it must apply first.
struct Query<F> {
    database: Database,
    run: F,
    /// The feed position that the transaction sees.
    position: u64,
    changes: Vec<Result<StoredRecord, RecordId>>,
}

/// The page of a selection, `Some(None)` if the record that it must contain is not selected; `None` if the columns cannot
/// answer.
pub(super) fn page(
    columns: &Columns,
    selection: &Selection,
    target: PageTarget,
    limit: u32,
) -> Option<Option<Place>> {
    match target {
        PageTarget::Offset(offset) => columns.page(selection, limit, offset).map(Some),
        PageTarget::Containing(id) => columns.page_of(selection, limit, id),
    }
}

/// A page as of the position of a snapshot, which the caller must validate against the feed.
#[derive(Debug)]
struct UnverifiedPage {
    snapshot: SharedSnapshot<Columns>,
    position: u64,
    place: Place,
}

/// The page of a selection; `None` if the columns cannot answer, have another schema version, or the record that the page
/// must contain is not selected.
fn find_page(
    snapshot: SharedSnapshot<Columns>,
    written_at: Timestamp,
    selection: &Selection,
    target: PageTarget,
    limit: u32,
) -> Option<UnverifiedPage> {
    let (position, place) = {
        let columns = snapshot.read().ok()?;
        if columns.database().updated_at != written_at {
            return None;
        }
        (columns.position(), page(&columns, selection, target, limit)??)
    };
    Some(UnverifiedPage { snapshot, position, place })
}

/// The cached records as of a position; `None` if the snapshot has moved to another.
fn cached_records(
    snapshot: &SharedSnapshot<Columns>,
    position: u64,
    ids: &[RecordId],
) -> Option<Vec<Option<Arc<Listed>>>> {
    let columns = snapshot.read().ok()?;
    (columns.position() == position).then(|| columns.cached_records(ids))
}

/// Caches records that were read as of a position, unless the snapshot has moved since: stale records must not get into the
/// cache.
fn cache_records(
    snapshot: &SharedSnapshot<Columns>,
    position: u64,
    written_at: Timestamp,
    read: &[Arc<Listed>],
) {
    let Ok(columns) = snapshot.read() else { return };
    if columns.position() == position && columns.database().updated_at == written_at {
        columns.cache_records(read);
    }
}

impl Records {
    /// The database that a snapshot was built with, for a caller who sees the whole workspace, as its folder may be stale. The
    /// caller must verify that it is current before using what was read with it.
    pub(super) fn database_in_columns(&self, caller: &Caller, id: &str) -> Option<Arc<Database>> {
        if caller.listed().is_some() {
            return None;
        }
        let of = (caller.workspace, id.parse().ok()?);
        let snapshot = self.context.columns.get(of, self.context.clock.now())?;
        // A writer may hold the lock for long while it applies changes; never block an async thread on it.
        let columns = snapshot.try_read().ok()?;
        Some(Arc::clone(columns.database()))
    }

    /// A page from a snapshot that is current, which is the usual case, in one statement: the statement returns the feed
    /// position with the records, which proves that the page is consistent with them. `None` if the snapshot is not current.
    pub(super) async fn page_if_current(
        &self,
        database: &Database,
        selection: &Selection,
        target: PageTarget,
        limit: u32,
    ) -> Result<Option<(Place, StoredPage)>, Error> {
        let Some(UnverifiedPage { position, place, .. }) =
            self.unverified_page(database, selection, target, limit).await
        else {
            return Ok(None);
        };
        let of = (database.workspace_id, database.id);
        let page = store::records::page(self.context.db.engine(), of, &place.ids).await?;
        let is_current = page.position == position && page.written_at == Some(database.updated_at);
        Ok(is_current.then_some((place, page)))
    }

    /// The same for a caller who sees the whole workspace, with records from the cache. If all of them are cached, the statement
    /// only reads the feed position and the schema version.
    pub(super) async fn records_if_current(
        &self,
        database: &Database,
        selection: &Selection,
        target: PageTarget,
        limit: u32,
    ) -> Result<Option<(Place, Vec<Listed>)>, Error> {
        let Some(unverified) = self.unverified_page(database, selection, target, limit).await else {
            return Ok(None);
        };
        let UnverifiedPage { snapshot, position, place } = unverified;
        let Some(cached) = cached_records(&snapshot, position, &place.ids) else { return Ok(None) };
        let (of, expected) = ((database.workspace_id, database.id), Some((position, database.updated_at)));
        let missing = place.ids.iter().zip(&cached).filter(|(_, record)| record.is_none());
        let missing: Vec<RecordId> = missing.map(|(id, _)| *id).collect();
        if missing.is_empty() {
            let current = store::columns::position_and_version(self.context.db.engine(), of.0, of.1).await?;
            let records: Vec<Listed> = cached.into_iter().flatten().map(Arc::unwrap_or_clone).collect();
            return Ok((current == expected).then_some((place, records)));
        }
        let page = store::records::page(self.context.db.engine(), of, &missing).await?;
        if page.written_at.map(|written_at| (page.position, written_at)) != expected {
            return Ok(None);
        }
        let read: Vec<Arc<Listed>> =
            listed::whole(database, &page.records()?)?.into_iter().map(Arc::new).collect();
        if read.len() != missing.len() {
            return Ok(None);
        }
        cache_records(&snapshot, position, database.updated_at, &read);
        let mut read = read.into_iter();
        let records = cached.into_iter().filter_map(|record| record.or_else(|| read.next()));
        let records: Vec<Listed> = records.map(Arc::unwrap_or_clone).collect();
        Ok(Some((place, records)))
    }

    /// The page as of the position of the snapshot; `None` if there is none, or it cannot answer.
    async fn unverified_page(
        &self,
        database: &Database,
        selection: &Selection,
        target: PageTarget,
        limit: u32,
    ) -> Option<UnverifiedPage> {
        let of = (database.workspace_id, database.id);
        let snapshot = self.context.columns.get(of, self.context.clock.now())?;
        // A contended lock is waited for on a blocking thread.
        let is_blocking = snapshot.try_read().map_or(true, |columns| columns.len() > MAX_INLINE_ROWS);
        let written_at = database.updated_at;
        if !is_blocking {
            return find_page(snapshot, written_at, selection, target, limit);
        }
        let selection = selection.clone();
        let find = move || find_page(snapshot, written_at, &selection, target, limit);
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    /// Runs a query on columns. Returns the transaction and the result as of what the transaction sees; `None` if the engine must
    /// answer.
    pub(super) async fn query_columns<T, F>(
        &self,
        database: &Database,
        run: F,
    ) -> Result<(Tx, Option<T>), Error>
    where
        T: Send + 'static,
        F: Fn(&Columns) -> Option<T> + Clone + Send + 'static,
    {
        let mut tries = 0;
        loop {
            let mut tx = self.context.db.begin_read().await?;
            match self.try_columns(&mut tx, database, run.clone()).await? {
                Answer::Found(found) => return Ok((tx, Some(found))),
                Answer::Ahead if tries < MAX_TRIES => {
                    tries += 1;
                    tx.rollback().await?;
                }
                Answer::Unavailable | Answer::Ahead => return Ok((tx, None)),
            }
        }
    }

    async fn try_columns<T, F>(&self, tx: &mut Tx, database: &Database, run: F) -> Result<Answer<T>, Error>
    where
        T: Send + 'static,
        F: Fn(&Columns) -> Option<T> + Send + 'static,
    {
        let (cache, of) = (&self.context.columns, (database.workspace_id, database.id));
        let lookup = cache.lookup(of, database.record_count, self.context.clock.now());
        if matches!(lookup, CacheLookup::Miss) {
            return Ok(Answer::Unavailable);
        }
        let Some((position, written_at)) =
            store::columns::position_and_version(tx.engine(), of.0, of.1).await?
        else {
            return Ok(Answer::Unavailable);
        };
        // The request was validated against another version of the schema.
        if written_at != database.updated_at {
            return Ok(Answer::Unavailable);
        }
        let snapshot = match lookup {
            CacheLookup::Miss => return Ok(Answer::Unavailable),
            CacheLookup::Hit(snapshot) => snapshot,
            CacheLookup::Build(builder) if database.record_count <= MAX_INLINE_BUILD => {
                let mut columns = Columns::new(database, position);
                // A full batch means that there may be more rows than the record count says.
                let rows = store::columns::batch(tx.engine(), of, None, BATCH_ROWS).await?;
                if rows.len() as u64 >= u64::from(BATCH_ROWS) {
                    return Ok(Answer::Unavailable);
                }
                let rows = decode(database, rows)?;
                let load = move || {
                    columns.fill(rows);
                    columns.build_indexes();
                    columns
                };
                // Even few records may contain much text.
                let Ok(columns) = tokio::task::spawn_blocking(load).await else {
                    return Ok(Answer::Unavailable);
                };
                builder.finish(columns)
            }
            CacheLookup::Build(builder) => {
                tokio::spawn(build(self.context.clone(), builder, database.clone()));
                return Ok(Answer::Unavailable);
            }
        };
        let Some((snapshot_position, len)) = position_and_len(&snapshot).await else {
            cache.invalidate(of);
            return Ok(Answer::Unavailable);
        };
        if snapshot_position > position {
            return Ok(Answer::Ahead);
        }
        if position - snapshot_position > MAX_LAG {
            cache.invalidate(of);
            return Ok(Answer::Unavailable);
        }
        let changes = match snapshot_position == position {
            true => Vec::new(),
            false => store::columns::changed(tx, of, snapshot_position, position).await?,
        };
        let is_blocking = len > MAX_INLINE_ROWS || changes.len() > MAX_INLINE_CHANGES;
        let query = Query { database: database.clone(), run, position, changes };
        let (context, snapshot) = (self.context.clone(), Arc::clone(&snapshot));
        if !is_blocking {
            return answer(&context, &snapshot, query);
        }
        tokio::task::spawn_blocking(move || answer(&context, &snapshot, query))
            .await
            .unwrap_or(Ok(Answer::Unavailable))
    }
}

/// The position and the row count of a snapshot; `None` if its lock is poisoned.
async fn position_and_len(snapshot: &SharedSnapshot<Columns>) -> Option<(u64, usize)> {
    let of = |columns: &Columns| (columns.position(), columns.len());
    match snapshot.try_read() {
        Ok(columns) => return Some(of(&columns)),
        Err(TryLockError::Poisoned(_)) => return None,
        Err(TryLockError::WouldBlock) => {}
    }
    // Another request may hold the lock for long while it applies many changes.
    let snapshot = Arc::clone(snapshot);
    let waited = tokio::task::spawn_blocking(move || snapshot.read().ok().map(|columns| of(&columns)));
    waited.await.ok().flatten()
}

/// Runs a query at its position, after applying the changes up to it.
fn answer<T>(
    context: &Context,
    snapshot: &SharedSnapshot<Columns>,
    query: Query<impl Fn(&Columns) -> Option<T>>,
) -> Result<Answer<T>, Error> {
    let of = (query.database.workspace_id, query.database.id);
    let discard = || {
        context.columns.invalidate(of);
        Ok(Answer::Unavailable)
    };
    {
        let Ok(columns) = snapshot.read() else { return discard() };
        if columns.position() > query.position || query.matches(&columns) {
            return Ok(run_at(&columns, query.position, &query.run));
        }
    }
    let mut changes = Vec::with_capacity(query.changes.len());
    for changed in &query.changes {
        changes.push(match changed {
            Ok(stored) => RowChange::Upsert(row(&query.database, stored)?),
            Err(id) => RowChange::Delete(*id),
        });
    }
    let Ok(mut columns) = snapshot.write() else { return discard() };
    // Another request may have applied some of the changes meanwhile; applying them twice is idempotent.
    if columns.position() <= query.position {
        if !columns.adapt(&query.database) {
            drop(columns);
            return discard();
        }
        columns.apply(changes, query.position);
        context.columns.remeasure(of, &columns);
    }
    // Still under the write lock, so that no other request can advance the snapshot first.
    Ok(run_at(&columns, query.position, &query.run))
}

impl<F> Query<F> {
    /// Whether a snapshot is at the position and the schema version of the query.
    fn matches(&self, columns: &Columns) -> bool {
        columns.position() == self.position && columns.database().updated_at == self.database.updated_at
    }
}

/// Runs a query if the snapshot is at exactly this position.
fn run_at<T>(columns: &Columns, position: u64, run: impl Fn(&Columns) -> Option<T>) -> Answer<T> {
    if columns.position() != position {
        return Answer::Ahead;
    }
    run(columns).map_or(Answer::Unavailable, Answer::Found)
}

fn row(database: &Database, stored: &StoredRecord) -> Result<Row, Error> {
    let cells = cells(database, &stored.values()?);
    Ok(Row { id: stored.id, created_at: stored.created_at, cells })
}

fn decode(database: &Database, stored: Vec<StoredRecord>) -> Result<Vec<Row>, Error> {
    stored.iter().map(|stored| row(database, stored)).collect()
}

/// Builds the snapshot of a database in batches, concurrently with writes.
async fn build(context: Context, builder: Builder<Columns>, database: Database) {
    let Ok(_permit) = Arc::clone(context.columns.build_permits()).acquire_owned().await else { return };
    if let Err(error) = try_to_build(&context, builder, database).await {
        tracing::warn!(%error, "a database is not read into memory; the engine answers");
    }
}

async fn try_to_build(context: &Context, builder: Builder<Columns>, database: Database) -> Result<(), Error> {
    let (of, database) = ((database.workspace_id, database.id), Arc::new(database));
    let Some(position) = position_of(context, &database).await? else { return Ok(()) };
    let (mut columns, mut last) = (Columns::new(&database, position), None);
    loop {
        let rows = store::columns::batch_of(&context.db, of, last.as_ref(), BATCH_ROWS).await?;
        let is_last = rows.len() < BATCH_ROWS as usize;
        last = rows.last().cloned();
        let schema = Arc::clone(&database);
        columns = on_blocking_thread(move || {
            columns.fill(decode(&schema, rows)?);
            Ok(columns)
        })
        .await?;
        if columns.bytes() > context.columns.budget() {
            builder.give_up(database.record_count);
            return Ok(());
        }
        if is_last {
            break;
        }
    }
    let columns = on_blocking_thread(move || {
        columns.build_indexes();
        Ok(columns)
    })
    .await?;
    if let Some(columns) = catch_up(context, &database, columns).await? {
        builder.finish(columns);
    }
    Ok(())
}

/// The position of the feed; `None` if the schema has changed since the request.
async fn position_of(context: &Context, database: &Database) -> Result<Option<u64>, Error> {
    let mut tx = context.db.begin_read().await?;
    let current =
        store::columns::position_and_version(tx.engine(), database.workspace_id, database.id).await?;
    tx.rollback().await?;
    let is_same = |(position, written_at)| (written_at == database.updated_at).then_some(position);
    Ok(current.and_then(is_same))
}

/// Applies what was written during the build: its batches were read at different positions.
async fn catch_up(
    context: &Context,
    database: &Arc<Database>,
    mut columns: Columns,
) -> Result<Option<Columns>, Error> {
    let of = (database.workspace_id, database.id);
    let mut tx = context.db.begin_read().await?;
    let current = store::columns::position_and_version(tx.engine(), of.0, of.1).await?;
    let Some((position, _)) = current.filter(|(_, written_at)| *written_at == database.updated_at) else {
        return Ok(None);
    };
    while columns.position() < position {
        let until = position.min(columns.position().saturating_add(MAX_LAG));
        let changed = store::columns::changed(&mut tx, of, columns.position(), until).await?;
        let schema = Arc::clone(database);
        columns = on_blocking_thread(move || {
            let mut changes = Vec::with_capacity(changed.len());
            for changed in changed {
                changes.push(match changed {
                    Ok(stored) => RowChange::Upsert(row(&schema, &stored)?),
                    Err(id) => RowChange::Delete(id),
                });
            }
            columns.apply(changes, until);
            Ok(columns)
        })
        .await?;
    }
    tx.rollback().await?;
    Ok(Some(columns))
}

async fn on_blocking_thread(
    work: impl FnOnce() -> Result<Columns, Error> + Send + 'static,
) -> Result<Columns, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Error::OutOfDate("a database could not be read into memory".to_owned())))
}
