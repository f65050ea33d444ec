//! Pages from columns in memory: who builds them, how they follow the feed, and when they may answer.
//!
//! A page is read in a transaction, and columns answer it for the very position of the feed that the transaction sees. Those
//! that are behind are told first what has changed since, from the same transaction, so that whoever has written reads
//! what was written, through whichever process. Those that are ahead, because another request has moved them on, answer a
//! transaction that begins later. Where there are none, the engine answers.

use std::sync::Arc;

use cairn_chassis::sql::Tx;
use cairn_proto::ids::RecordId;

use super::Records;
use crate::Error;
use crate::columns::{Builder, Columns, Held, Place, Row, RowChange, Standing};
use crate::context::Context;
use crate::model::{Database, Kept, Selection, cells};
use crate::scope::Caller;
use crate::store;
use crate::store::columns::Stored;

/// Of no more records than this, the request that wants the columns reads them itself: it takes about as long as the page.
const READ_AT_ONCE: u64 = 1_000;
/// Records that are read in one statement in the background.
const PART: u32 = 2_000;
/// Changes of a workspace that columns are told one by one; with more than these, the database is read anew.
const MAX_FOLLOWED: u64 = 5_000;
/// With more rows, or changes, the work is done off the async threads.
const MUCH: usize = 20_000;
const MANY_CHANGES: usize = 64;

/// Which page is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// The one at an offset.
    At(u64),
    /// The one with a record.
    With(RecordId),
}

/// What columns say to a request for a page.
#[derive(Debug)]
pub(super) enum Answer {
    /// Ask the engine.
    Absent,
    /// They know more than the transaction sees: ask in a later one.
    Ahead,
    /// The page; none when the record is not among those that are selected.
    Page(Option<Place>),
}

/// A question to columns, and what they are to know before they answer.
struct Question {
    database: Database,
    selection: Selection,
    wanted: Wanted,
    limit: u32,
    position: u64,
    changes: Vec<Result<Stored, RecordId>>,
}

impl Records {
    /// A database as its columns know it, for a caller who sees the whole workspace: which folders it stands in is not
    /// known here. What is read with it counts only once it was seen to be the present one.
    pub(super) fn known(&self, caller: &Caller, id: &str) -> Option<Arc<Database>> {
        if caller.listed().is_some() {
            return None;
        }
        let held =
            self.context.columns.held_of(caller.workspace, id.parse().ok()?, self.context.clock.now())?;
        let columns = held.read().ok()?;
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
    ) -> Result<Option<(Place, Vec<Kept>)>, Error> {
        let of = (database.workspace_id, database.id);
        let Some(held) = self.context.columns.held_of(of.0, of.1, self.context.clock.now()) else {
            return Ok(None);
        };
        let (position, answer) = {
            let Ok(columns) = held.read() else { return Ok(None) };
            if columns.len() > MUCH || columns.database().updated_at != database.updated_at {
                return Ok(None);
            }
            let position = columns.position();
            (position, ask(&columns, position, selection, wanted, limit))
        };
        let Answer::Page(Some(place)) = answer else { return Ok(None) };
        let page = store::records::page(self.context.db.engine(), of, &place.ids).await?;
        let is_present = page.position == position && page.written_at == Some(database.updated_at);
        Ok(is_present.then_some((place, page.records)))
    }

    /// A page from columns, for what the transaction sees.
    pub(super) async fn in_columns(
        &self,
        tx: &mut Tx,
        database: &Database,
        selection: &Selection,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Answer, Error> {
        let (shelf, of) = (&self.context.columns, (database.workspace_id, database.id));
        let standing = shelf.ask(of.0, of.1, database.record_count, self.context.clock.now());
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
                columns.fill(decode(database, rows)?);
                columns.put_in_order();
                builder.finish(columns)
            }
            Standing::Wanted(builder) => {
                tokio::spawn(build(self.context.clone(), builder, database.clone()));
                return Ok(Answer::Absent);
            }
        };
        let Ok((then, len)) = held.read().map(|columns| (columns.position(), columns.len())) else {
            shelf.forget(of.0, of.1);
            return Ok(Answer::Absent);
        };
        if then > position {
            return Ok(Answer::Ahead);
        }
        if position - then > MAX_FOLLOWED {
            shelf.forget(of.0, of.1);
            return Ok(Answer::Absent);
        }
        let changes = match then == position {
            true => Vec::new(),
            false => store::columns::changed(tx, of, then, position).await?,
        };
        let is_much = len > MUCH || changes.len() > MANY_CHANGES;
        let (selection, database) = (selection.clone(), database.clone());
        let question = Question { database, selection, wanted, limit, position, changes };
        let (context, held) = (self.context.clone(), Arc::clone(&held));
        if !is_much {
            return answer(&context, &held, question);
        }
        tokio::task::spawn_blocking(move || answer(&context, &held, question))
            .await
            .unwrap_or(Ok(Answer::Absent))
    }
}

/// Has columns answer for one position, after they were told what has changed up to it.
fn answer(context: &Context, held: &Held, question: Question) -> Result<Answer, Error> {
    let of = (question.database.workspace_id, question.database.id);
    let spoilt = || {
        context.columns.forget(of.0, of.1);
        Ok(Answer::Absent)
    };
    {
        let Ok(columns) = held.read() else { return spoilt() };
        if columns.position() > question.position || question.is_known_to(&columns) {
            return Ok(question.ask(&columns));
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
        context.columns.followed(of.0, of.1, columns.len(), || columns.bytes());
    }
    // Under the lock, so that no other request moves them on before this one is answered.
    Ok(question.ask(&columns))
}

impl Question {
    /// Whether columns are of its position, and of the database as the question has it.
    fn is_known_to(&self, columns: &Columns) -> bool {
        columns.position() == self.position && columns.database().updated_at == self.database.updated_at
    }

    fn ask(&self, columns: &Columns) -> Answer {
        ask(columns, self.position, &self.selection, self.wanted, self.limit)
    }
}

/// What columns answer for a position; those that are behind it or ahead of it have no page.
fn ask(columns: &Columns, position: u64, selection: &Selection, wanted: Wanted, limit: u32) -> Answer {
    if columns.position() != position {
        return Answer::Ahead;
    }
    let answered = match wanted {
        Wanted::At(offset) => columns.page(selection, limit, offset).map(Some),
        Wanted::With(id) => columns.page_of(selection, limit, id),
    };
    answered.map_or(Answer::Absent, Answer::Page)
}

fn row(database: &Database, stored: &Stored) -> Result<Row, Error> {
    let cells = cells(database, &stored.values()?);
    Ok(Row { id: stored.id, created_at: stored.created_at, cells })
}

fn decode(database: &Database, stored: Vec<Stored>) -> Result<Vec<Row>, Error> {
    stored.iter().map(|stored| row(database, stored)).collect()
}

/// Reads a database into columns, a part at a time, while others write.
async fn build(context: Context, builder: Builder, database: Database) {
    let Ok(_permit) = Arc::clone(context.columns.builds()).acquire_owned().await else { return };
    if let Err(error) = try_to_build(&context, builder, database).await {
        tracing::warn!(%error, "a database is not read into memory; the engine answers");
    }
}

async fn try_to_build(context: &Context, builder: Builder, database: Database) -> Result<(), Error> {
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
