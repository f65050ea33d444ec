//! Files by a part of their names, from the in-memory index of names: who builds it, how it follows the feed, and
//! when it may answer.
//!
//! A search runs in a transaction, and the index must answer for exactly the feed position of its snapshot. An index
//! that is behind first applies the changes in between, read in the same transaction, so that callers read their own
//! writes, made through any process. An index that is ahead requires a later transaction. Without an index, the SQL
//! engine answers.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::sql::Tx;
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};

use crate::columns::{Builder, CacheLookup, NameChange, NameQuery, NameSearchResult, Names, SharedSnapshot};
use crate::context::Context;
use crate::model::File;
use crate::{Error, store};

/// Up to this number of files, the request itself builds the index: it takes about as long as answering.
const INLINE_BUILD_LIMIT: u64 = 1_000;
/// The batch size of the background build.
const BATCH: u32 = 5_000;
/// The maximum number of feed entries that are applied to an index; beyond it the index is rebuilt.
const MAX_CATCH_UP: u64 = 5_000;
/// With more names or changes, the work runs off the async threads.
const OFFLOAD_THRESHOLD: usize = 20_000;
const MANY_CHANGES: usize = 256;
/// Retries of a search when the index is ahead of its snapshot.
const MAX_TRIES: usize = 3;

/// The answer of an index.
#[derive(Debug)]
enum Answer {
    /// There is none: the SQL engine answers.
    Absent,
    /// It is ahead of the snapshot: retry in a later transaction.
    Ahead,
    Found(NameSearchResult),
}

/// A search, and the changes to apply before it.
struct Search {
    workspace: WorkspaceId,
    query: NameQuery,
    position: u64,
    changes: Vec<NameChange>,
}

/// The files whose folded names contain a folded text, below some folders or anywhere: the first ones and the number
/// of all. `None` when the SQL engine has to answer.
pub(super) async fn search(
    context: &Context,
    workspace: WorkspaceId,
    folded: &str,
    below: Option<&[FolderId]>,
    limit: u32,
) -> Result<Option<(Vec<File>, u64)>, Error> {
    if context.names.budget() == 0 {
        return Ok(None);
    }
    let mut tries = 0;
    loop {
        let mut tx = context.db.begin_read().await?;
        let answer = search_index(context, &mut tx, workspace, (folded, below, limit)).await?;
        let files = match &answer {
            Answer::Found(found) => files_of(context, &mut tx, workspace, found).await?,
            Answer::Absent | Answer::Ahead => None,
        };
        tx.rollback().await?;
        match answer {
            Answer::Found(found) => return Ok(files.map(|files| (files, found.total))),
            Answer::Ahead if tries < MAX_TRIES => tries += 1,
            Answer::Absent | Answer::Ahead => return Ok(None),
        }
    }
}

async fn search_index(
    context: &Context,
    tx: &mut Tx,
    workspace: WorkspaceId,
    (folded, below, limit): (&str, Option<&[FolderId]>, u32),
) -> Result<Answer, Error> {
    let cache = &context.names;
    let (position, files) = store::names::position_and_count(tx.engine(), workspace).await?;
    let snapshot = match cache.lookup(workspace, files, context.clock.now()) {
        CacheLookup::Miss => return Ok(Answer::Absent),
        CacheLookup::Hit(snapshot) => snapshot,
        CacheLookup::Build(builder) if files <= INLINE_BUILD_LIMIT => {
            let read = store::names::batch(tx.engine(), workspace, None, BATCH).await?;
            // The count was too low: the index is built in the background.
            if read.len() >= BATCH as usize {
                tokio::spawn(build(context.clone(), builder, workspace));
                return Ok(Answer::Absent);
            }
            let mut names = Names::new(position);
            names.fill(&read);
            names.build_indexes();
            builder.finish(names)
        }
        CacheLookup::Build(builder) => {
            tokio::spawn(build(context.clone(), builder, workspace));
            return Ok(Answer::Absent);
        }
    };
    let Ok((then, len)) = snapshot.read().map(|names| (names.position(), names.len())) else {
        cache.invalidate(workspace);
        return Ok(Answer::Absent);
    };
    if then > position {
        return Ok(Answer::Ahead);
    }
    if position - then > MAX_CATCH_UP {
        cache.invalidate(workspace);
        return Ok(Answer::Absent);
    }
    let changes = match then == position {
        true => Vec::new(),
        false => store::names::changed(tx, workspace, then, position).await?,
    };
    let folders = match below {
        Some(folders) => Some(store::folders::ids_below(tx.engine(), workspace, folders).await?),
        None => None,
    };
    let is_much = len > OFFLOAD_THRESHOLD || changes.len() > MANY_CHANGES;
    let query = NameQuery { folded: folded.to_owned(), folders, limit: limit as usize };
    let search = Search { workspace, query, position, changes };
    if !is_much {
        return Ok(answer(context, &snapshot, &search));
    }
    let context = context.clone();
    let answered = tokio::task::spawn_blocking(move || answer(&context, &snapshot, &search)).await;
    Ok(answered.unwrap_or(Answer::Absent))
}

/// Searches an index at one position, after applying the changes up to it.
fn answer(context: &Context, snapshot: &SharedSnapshot<Names>, search: &Search) -> Answer {
    let discard = || {
        context.names.invalidate(search.workspace);
        Answer::Absent
    };
    {
        let Ok(names) = snapshot.read() else { return discard() };
        if names.position() >= search.position {
            return search_at(&names, search);
        }
    }
    let Ok(mut names) = snapshot.write() else { return discard() };
    // A concurrent request may have applied some of them; applying is idempotent.
    if names.position() < search.position {
        names.apply(&search.changes, search.position);
        context.names.remeasure(search.workspace, &names);
    }
    // Under the lock, so that no concurrent request advances the index before this one is answered.
    search_at(&names, search)
}

/// Searches an index that is at the position of the search; one that is ahead does not answer.
fn search_at(names: &Names, search: &Search) -> Answer {
    match names.position() == search.position {
        true => Answer::Found(names.search(&search.query)),
        false => Answer::Ahead,
    }
}

/// The files that were found, in that order. If one of them does not exist, the index disagrees with the snapshot and
/// is evicted.
async fn files_of(
    context: &Context,
    tx: &mut Tx,
    workspace: WorkspaceId,
    found: &NameSearchResult,
) -> Result<Option<Vec<File>>, Error> {
    if found.ids.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let files = store::files::get_many_in(tx, workspace, &found.ids).await?;
    let mut by_id: HashMap<FileId, File> = files.into_iter().map(|file| (file.id, file)).collect();
    let files: Vec<File> = found.ids.iter().filter_map(|id| by_id.remove(id)).collect();
    if files.len() == found.ids.len() {
        return Ok(Some(files));
    }
    tracing::warn!(%workspace, "names in memory are not those of the files: they are read anew");
    context.names.invalidate(workspace);
    Ok(None)
}

/// Builds the index of a workspace in batches, while others write.
async fn build(context: Context, builder: Builder<Names>, workspace: WorkspaceId) {
    let Ok(_permit) = Arc::clone(context.names.build_permits()).acquire_owned().await else { return };
    if let Err(error) = try_to_build(&context, builder, workspace).await {
        tracing::warn!(%error, "the names of a workspace are not read into memory; the engine answers");
    }
}

async fn try_to_build(
    context: &Context,
    builder: Builder<Names>,
    workspace: WorkspaceId,
) -> Result<(), Error> {
    let (position, files) = store::names::position_and_count(context.db.engine(), workspace).await?;
    let (mut names, mut last) = (Names::new(position), None);
    loop {
        let read = store::names::batch_of(&context.db, workspace, last, BATCH).await?;
        let is_last = read.len() < BATCH as usize;
        last = read.last().map(|file| file.id);
        names = off_threads(names, move |names| names.fill(&read)).await?;
        if names.bytes() > context.names.budget() {
            builder.give_up(files);
            return Ok(());
        }
        if is_last {
            break;
        }
    }
    names = off_threads(names, Names::build_indexes).await?;
    builder.finish(catch_up(context, workspace, names).await?);
    Ok(())
}

/// Applies what was written during the build: the batches were read at different positions.
async fn catch_up(context: &Context, workspace: WorkspaceId, mut names: Names) -> Result<Names, Error> {
    let mut tx = context.db.begin_read().await?;
    let (position, _) = store::names::position_and_count(tx.engine(), workspace).await?;
    while names.position() < position {
        let until = position.min(names.position().saturating_add(MAX_CATCH_UP));
        let changed = store::names::changed(&mut tx, workspace, names.position(), until).await?;
        names = off_threads(names, move |names| names.apply(&changed, until)).await?;
    }
    tx.rollback().await?;
    Ok(names)
}

async fn off_threads(
    mut names: Names,
    work: impl FnOnce(&mut Names) + Send + 'static,
) -> Result<Names, Error> {
    let done = tokio::task::spawn_blocking(move || {
        work(&mut names);
        names
    });
    done.await
        .map_err(|_| Error::OutOfDate("the names of a workspace could not be read into memory".to_owned()))
}
