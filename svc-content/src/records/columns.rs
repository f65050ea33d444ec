//! Pages and groups from columns in memory: who builds them, how they follow the feed, and when they may answer.
//!
//! A page is read in a transaction, and so are groups. Columns answer for the very position of the feed that the transaction
//! sees. Those that are behind are told first what has changed since, from the same transaction, so that whoever has written
//! reads what was written, through whichever process. Those that are ahead, because another request has moved them on,
//! answer a transaction that begins later. Where there are none, the engine answers.

use std::sync::{Arc, TryLockError};

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::Tx;
use cairn_proto::ids::RecordId;

use super::{Records, listed};
use crate::Error;
use crate::columns::{Builder, Columns, Held, Place, Row, RowChange, Standing};
use crate::context::Context;
use crate::model::{Database, Listed, Selection, cells};
use crate::scope::Caller;
use crate::store;
use crate::store::columns::Stored;
use crate::store::records::KeptPage;

/// Of no more records than this, the request that wants the columns reads them itself: it takes about as long as the page.
const READ_AT_ONCE: u64 = 1_000;
/// Records that are read in one statement in the background.
const PART: u32 = 2_000;
/// Changes of a workspace that columns are told one by one; with more than these, the database is read anew.
const MAX_FOLLOWED: u64 = 5_000;
/// With more rows, or changes, the work is done off the async threads.
const MUCH: usize = 20_000;
const MANY_CHANGES: usize = 64;
/// How often a question is asked anew since columns were moved on meanwhile.
const MAX_TRIES: usize = 3;

/// Which page is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// The one at an offset.
    At(u64),
    /// The one with a record.
    With(RecordId),
}

/// What columns say to a question.
#[derive(Debug)]
enum Answer<T> {
    /// Ask the engine.
    Absent,
    /// They know more than the transaction sees: ask in a later one.
    Ahead,
    Told(T),
}

/// A question to columns, and what they are to know before they answer.
struct Question<F> {
    database: Database,
    ask: F,
    position: u64,
    changes: Vec<Result<Stored, RecordId>>,
}

/// The page of a selection, none when the record that it is to contain is not selected; `None` when the columns cannot tell.
pub(super) fn page(
    columns: &Columns,
    selection: &Selection,
    wanted: Wanted,
    limit: u32,
) -> Option<Option<Place>> {
    match wanted {
        Wanted::At(offset) => columns.page(selection, limit, offset).map(Some),
        Wanted::With(id) => columns.page_of(selection, limit, id),
    }
}

/// A page of columns, and which position of the feed it is as of.
#[derive(Debug)]
struct Resting {
    held: Held<Columns>,
    position: u64,
    place: Place,
}

/// The page of a selection; `None` where the columns cannot tell, are of another state of the database, or the record that the
/// page is to contain is not selected.
fn page_at_rest(
    held: Held<Columns>,
    written_at: Timestamp,
    selection: &Selection,
    wanted: Wanted,
    limit: u32,
) -> Option<Resting> {
    let (position, place) = {
        let columns = held.read().ok()?;
        if columns.database().updated_at != written_at {
            return None;
        }
        (columns.position(), page(&columns, selection, wanted, limit)??)
    };
    Some(Resting { held, position, place })
}

/// Which of some records are remembered as of a position; `None` when columns are as of another by now.
fn shown(held: &Held<Columns>, position: u64, ids: &[RecordId]) -> Option<Vec<Option<Arc<Listed>>>> {
    let columns = held.read().ok()?;
    (columns.position() == position).then(|| columns.shown(ids))
}

/// Remembers records that were read as of a position. What has changed since, columns have forgotten, and it stays so.
fn remember(held: &Held<Columns>, position: u64, written_at: Timestamp, read: &[Arc<Listed>]) {
    let Ok(columns) = held.read() else { return };
    if columns.position() == position && columns.database().updated_at == written_at {
        columns.remember(read);
    }
}

impl Records {
    /// A database as its columns know it, for a caller who sees the whole workspace: which folders it stands in is not
    /// known here. What is read with it counts only once it was seen to be the present one.
    pub(super) fn database_in_columns(&self, caller: &Caller, id: &str) -> Option<Arc<Database>> {
        if caller.listed().is_some() {
            return None;
        }
        let of = (caller.workspace, id.parse().ok()?);
        let held = self.context.columns.held_of(of, self.context.clock.now())?;
        // Whoever follows the feed holds them, for a while where it is much: not on this thread.
        let columns = held.try_read().ok()?;
        Some(Arc::clone(columns.database()))
    }

    /// A page from columns that know all that has been written, which is the usual case: in one statement, since the page
    /// and its records are of one moment when the feed and the database are where the columns are. `None` where it is not
    /// that simple.
    pub(super) async fn at_rest(
        &self,
        database: &Database,
        selection: &Selection,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Option<(Place, KeptPage)>, Error> {
        let Some(Resting { position, place, .. }) = self.resting(database, selection, wanted, limit).await
        else {
            return Ok(None);
        };
        let of = (database.workspace_id, database.id);
        let page = store::records::page(self.context.db.engine(), of, &place.ids).await?;
        let is_present = page.position == position && page.written_at == Some(database.updated_at);
        Ok(is_present.then_some((place, page)))
    }

    /// The same for a caller who sees the whole workspace. Records of the pages that were asked for last are not read again:
    /// of a page of these, the statement only asks whether the feed and the database are where the columns are.
    pub(super) async fn listed_at_rest(
        &self,
        database: &Database,
        selection: &Selection,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Option<(Place, Vec<Listed>)>, Error> {
        let Some(resting) = self.resting(database, selection, wanted, limit).await else { return Ok(None) };
        let Resting { held, position, place } = resting;
        let Some(known) = shown(&held, position, &place.ids) else { return Ok(None) };
        let (of, present) = ((database.workspace_id, database.id), Some((position, database.updated_at)));
        let unknown = place.ids.iter().zip(&known).filter(|(_, shown)| shown.is_none());
        let unknown: Vec<RecordId> = unknown.map(|(id, _)| *id).collect();
        if unknown.is_empty() {
            let standing = store::columns::standing(self.context.db.engine(), of.0, of.1).await?;
            let records: Vec<Listed> = known.into_iter().flatten().map(Arc::unwrap_or_clone).collect();
            return Ok((standing == present).then_some((place, records)));
        }
        let page = store::records::page(self.context.db.engine(), of, &unknown).await?;
        if page.written_at.map(|written_at| (page.position, written_at)) != present {
            return Ok(None);
        }
        let read: Vec<Arc<Listed>> =
            listed::whole(database, &page.records()?)?.into_iter().map(Arc::new).collect();
        if read.len() != unknown.len() {
            return Ok(None);
        }
        remember(&held, position, database.updated_at, &read);
        let mut read = read.into_iter();
        let records = known.into_iter().filter_map(|known| known.or_else(|| read.next()));
        let records: Vec<Listed> = records.map(Arc::unwrap_or_clone).collect();
        Ok(Some((place, records)))
    }

    /// The page as of the position that columns have; `None` where there are none, or they cannot tell.
    async fn resting(
        &self,
        database: &Database,
        selection: &Selection,
        wanted: Wanted,
        limit: u32,
    ) -> Option<Resting> {
        let of = (database.workspace_id, database.id);
        let held = self.context.columns.held_of(of, self.context.clock.now())?;
        // Nor is waited here for whoever holds them.
        let is_much = held.try_read().map_or(true, |columns| columns.len() > MUCH);
        let written_at = database.updated_at;
        if !is_much {
            return page_at_rest(held, written_at, selection, wanted, limit);
        }
        let selection = selection.clone();
        let find = move || page_at_rest(held, written_at, &selection, wanted, limit);
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    /// A transaction, and what columns answer to a question for what it sees; `None` where the engine is to be asked.
    pub(super) async fn by_columns<T, F>(&self, database: &Database, ask: F) -> Result<(Tx, Option<T>), Error>
    where
        T: Send + 'static,
        F: Fn(&Columns) -> Option<T> + Clone + Send + 'static,
    {
        let mut tries = 0;
        loop {
            let mut tx = self.context.db.begin_read().await?;
            match self.in_columns(&mut tx, database, ask.clone()).await? {
                Answer::Told(told) => return Ok((tx, Some(told))),
                Answer::Ahead if tries < MAX_TRIES => {
                    tries += 1;
                    tx.rollback().await?;
                }
                Answer::Absent | Answer::Ahead => return Ok((tx, None)),
            }
        }
    }

    async fn in_columns<T, F>(&self, tx: &mut Tx, database: &Database, ask: F) -> Result<Answer<T>, Error>
    where
        T: Send + 'static,
        F: Fn(&Columns) -> Option<T> + Send + 'static,
    {
        let (shelf, of) = (&self.context.columns, (database.workspace_id, database.id));
        let standing = shelf.ask(of, database.record_count, self.context.clock.now());
        if matches!(standing, Standing::Absent) {
            return Ok(Answer::Absent);
        }
        let Some((position, written_at)) = store::columns::standing(tx.engine(), of.0, of.1).await? else {
            return Ok(Answer::Absent);
        };
        // The request was checked against properties that are not these.
        if written_at != database.updated_at {
            return Ok(Answer::Absent);
        }
        let held = match standing {
            Standing::Absent => return Ok(Answer::Absent),
            Standing::Held(held) => held,
            Standing::Wanted(builder) if database.record_count <= READ_AT_ONCE => {
                let mut columns = Columns::new(database, position);
                // One more, to be sure that it was all.
                let rows = store::columns::part(tx.engine(), of, None, PART).await?;
                if rows.len() as u64 >= u64::from(PART) {
                    return Ok(Answer::Absent);
                }
                let rows = decode(database, rows)?;
                let made = move || {
                    columns.fill(rows);
                    columns.put_in_order();
                    columns
                };
                // Few records may hold much text.
                let Ok(columns) = tokio::task::spawn_blocking(made).await else { return Ok(Answer::Absent) };
                builder.finish(columns)
            }
            Standing::Wanted(builder) => {
                tokio::spawn(build(self.context.clone(), builder, database.clone()));
                return Ok(Answer::Absent);
            }
        };
        let Some((then, len)) = extent(&held).await else {
            shelf.forget(of);
            return Ok(Answer::Absent);
        };
        if then > position {
            return Ok(Answer::Ahead);
        }
        if position - then > MAX_FOLLOWED {
            shelf.forget(of);
            return Ok(Answer::Absent);
        }
        let changes = match then == position {
            true => Vec::new(),
            false => store::columns::changed(tx, of, then, position).await?,
        };
        let is_much = len > MUCH || changes.len() > MANY_CHANGES;
        let question = Question { database: database.clone(), ask, position, changes };
        let (context, held) = (self.context.clone(), Arc::clone(&held));
        if !is_much {
            return answer(&context, &held, question);
        }
        tokio::task::spawn_blocking(move || answer(&context, &held, question))
            .await
            .unwrap_or(Ok(Answer::Absent))
    }
}

/// The position of columns and how many rows they have; `None` where they are spoilt.
async fn extent(held: &Held<Columns>) -> Option<(u64, usize)> {
    let of = |columns: &Columns| (columns.position(), columns.len());
    match held.try_read() {
        Ok(columns) => return Some(of(&columns)),
        Err(TryLockError::Poisoned(_)) => return None,
        Err(TryLockError::WouldBlock) => {}
    }
    // Who follows the feed may take long where much has changed.
    let held = Arc::clone(held);
    let waited = tokio::task::spawn_blocking(move || held.read().ok().map(|columns| of(&columns)));
    waited.await.ok().flatten()
}

/// Has columns answer for one position, after they were told what has changed up to it.
fn answer<T>(
    context: &Context,
    held: &Held<Columns>,
    question: Question<impl Fn(&Columns) -> Option<T>>,
) -> Result<Answer<T>, Error> {
    let of = (question.database.workspace_id, question.database.id);
    let spoilt = || {
        context.columns.forget(of);
        Ok(Answer::Absent)
    };
    {
        let Ok(columns) = held.read() else { return spoilt() };
        if columns.position() > question.position || question.is_known_to(&columns) {
            return Ok(told(&columns, question.position, &question.ask));
        }
    }
    let mut changes = Vec::with_capacity(question.changes.len());
    for changed in &question.changes {
        changes.push(match changed {
            Ok(stored) => RowChange::Is(row(&question.database, stored)?),
            Err(id) => RowChange::IsGone(*id),
        });
    }
    let Ok(mut columns) = held.write() else { return spoilt() };
    // Another request may have told them some of it meanwhile; to be told twice does no harm.
    if columns.position() <= question.position {
        if !columns.adapt(&question.database) {
            drop(columns);
            return spoilt();
        }
        columns.follow(changes, question.position);
        context.columns.followed(of, &columns);
    }
    // Under the lock, so that no other request moves them on before this one is answered.
    Ok(told(&columns, question.position, &question.ask))
}

impl<F> Question<F> {
    /// Whether columns are of its position, and of the database as the question has it.
    fn is_known_to(&self, columns: &Columns) -> bool {
        columns.position() == self.position && columns.database().updated_at == self.database.updated_at
    }
}

/// What columns answer for a position; those that are behind it or ahead of it answer nothing.
fn told<T>(columns: &Columns, position: u64, ask: impl Fn(&Columns) -> Option<T>) -> Answer<T> {
    if columns.position() != position {
        return Answer::Ahead;
    }
    ask(columns).map_or(Answer::Absent, Answer::Told)
}

fn row(database: &Database, stored: &Stored) -> Result<Row, Error> {
    let cells = cells(database, &stored.values()?);
    Ok(Row { id: stored.id, created_at: stored.created_at, cells })
}

fn decode(database: &Database, stored: Vec<Stored>) -> Result<Vec<Row>, Error> {
    stored.iter().map(|stored| row(database, stored)).collect()
}

/// Reads a database into columns, a part at a time, while others write.
async fn build(context: Context, builder: Builder<Columns>, database: Database) {
    let Ok(_permit) = Arc::clone(context.columns.builds()).acquire_owned().await else { return };
    if let Err(error) = try_to_build(&context, builder, database).await {
        tracing::warn!(%error, "a database is not read into memory; the engine answers");
    }
}

async fn try_to_build(context: &Context, builder: Builder<Columns>, database: Database) -> Result<(), Error> {
    let (of, database) = ((database.workspace_id, database.id), Arc::new(database));
    let Some(position) = position_of(context, &database).await? else { return Ok(()) };
    let (mut columns, mut last) = (Columns::new(&database, position), None);
    loop {
        let rows = store::columns::part_of(&context.db, of, last.as_ref(), PART).await?;
        let is_last = rows.len() < PART as usize;
        last = rows.last().cloned();
        let schema = Arc::clone(&database);
        columns = off_threads(move || {
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
    let columns = off_threads(move || {
        columns.put_in_order();
        Ok(columns)
    })
    .await?;
    if let Some(columns) = catch_up(context, &database, columns).await? {
        builder.finish(columns);
    }
    Ok(())
}

/// Where the feed is, while the database is still what it was.
async fn position_of(context: &Context, database: &Database) -> Result<Option<u64>, Error> {
    let mut tx = context.db.begin_read().await?;
    let standing = store::columns::standing(tx.engine(), database.workspace_id, database.id).await?;
    tx.rollback().await?;
    let is_same = |(position, written_at)| (written_at == database.updated_at).then_some(position);
    Ok(standing.and_then(is_same))
}

/// Tells columns of what was written while they were read: parts of them were read later than others.
async fn catch_up(
    context: &Context,
    database: &Arc<Database>,
    mut columns: Columns,
) -> Result<Option<Columns>, Error> {
    let of = (database.workspace_id, database.id);
    let mut tx = context.db.begin_read().await?;
    let standing = store::columns::standing(tx.engine(), of.0, of.1).await?;
    let Some((position, _)) = standing.filter(|(_, written_at)| *written_at == database.updated_at) else {
        return Ok(None);
    };
    while columns.position() < position {
        let until = position.min(columns.position().saturating_add(MAX_FOLLOWED));
        let changed = store::columns::changed(&mut tx, of, columns.position(), until).await?;
        let schema = Arc::clone(database);
        columns = off_threads(move || {
            let mut changes = Vec::with_capacity(changed.len());
            for changed in changed {
                changes.push(match changed {
                    Ok(stored) => RowChange::Is(row(&schema, &stored)?),
                    Err(id) => RowChange::IsGone(id),
                });
            }
            columns.follow(changes, until);
            Ok(columns)
        })
        .await?;
    }
    tx.rollback().await?;
    Ok(Some(columns))
}

async fn off_threads(
    work: impl FnOnce() -> Result<Columns, Error> + Send + 'static,
) -> Result<Columns, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Error::OutOfDate("a database could not be read into memory".to_owned())))
}
