//! Files by a part of their names, from the names in memory: who reads them, how they follow the feed, and when they may
//! answer.
//!
//! A question is asked in a transaction, and names answer for the very position of the feed that it sees. Those that are
//! behind are told first what has changed since, from the same transaction, so that whoever has written finds what was
//! written, through whichever process. Those that are ahead answer a transaction that begins later. Where there are none,
//! the engine answers.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::sql::Tx;
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};

use crate::columns::{Builder, Found, Held, NameChange, Names, NamesWanted, Standing};
use crate::context::Context;
use crate::model::File;
use crate::{Error, store};

/// Of no more files than this, the request that wants the names reads them itself: it takes about as long as its answer.
const READ_AT_ONCE: u64 = 1_000;
/// Files that are read in one statement in the background.
const PART: u32 = 5_000;
/// Changes of a workspace that names are told one by one; with more than these, they are read anew.
const MAX_FOLLOWED: u64 = 5_000;
/// With more names, or changes, the work is done off the async threads.
const MUCH: usize = 20_000;
const MANY_CHANGES: usize = 256;
/// How often a question is asked anew since names were moved on meanwhile.
const MAX_TRIES: usize = 3;

/// What names say to a question.
#[derive(Debug)]
enum Answer {
    /// Ask the engine.
    Absent,
    /// They know more than the transaction sees: ask in a later one.
    Ahead,
    Told(Found),
}

/// A question, and what names are to know before they answer it.
struct Question {
    workspace: WorkspaceId,
    wanted: NamesWanted,
    position: u64,
    changes: Vec<NameChange>,
}

/// The files below some folders, or anywhere, whose folded names hold a folded text: the first ones and how many there are.
/// `None` where the engine is to be asked.
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
        let answer = in_names(context, &mut tx, workspace, (folded, below, limit)).await?;
        let files = match &answer {
            Answer::Told(found) => files_of(context, &mut tx, workspace, found).await?,
            Answer::Absent | Answer::Ahead => None,
        };
        tx.rollback().await?;
        match answer {
            Answer::Told(found) => return Ok(files.map(|files| (files, found.total))),
            Answer::Ahead if tries < MAX_TRIES => tries += 1,
            Answer::Absent | Answer::Ahead => return Ok(None),
        }
    }
}

async fn in_names(
    context: &Context,
    tx: &mut Tx,
    workspace: WorkspaceId,
    (folded, below, limit): (&str, Option<&[FolderId]>, u32),
) -> Result<Answer, Error> {
    let shelf = &context.names;
    let (position, files) = store::names::standing(tx.engine(), workspace).await?;
    let held = match shelf.ask(workspace, files, context.clock.now()) {
        Standing::Absent => return Ok(Answer::Absent),
        Standing::Held(held) => held,
        Standing::Wanted(builder) if files <= READ_AT_ONCE => {
            let read = store::names::part(tx.engine(), workspace, None, PART).await?;
            // One that was counted wrong is read in the background.
            if read.len() >= PART as usize {
                tokio::spawn(build(context.clone(), builder, workspace));
                return Ok(Answer::Absent);
            }
            let mut names = Names::new(position);
            names.fill(&read);
            names.put_in_order();
            builder.finish(names)
        }
        Standing::Wanted(builder) => {
            tokio::spawn(build(context.clone(), builder, workspace));
            return Ok(Answer::Absent);
        }
    };
    let Ok((then, len)) = held.read().map(|names| (names.position(), names.len())) else {
        shelf.forget(workspace);
        return Ok(Answer::Absent);
    };
    if then > position {
        return Ok(Answer::Ahead);
    }
    if position - then > MAX_FOLLOWED {
        shelf.forget(workspace);
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
    let is_much = len > MUCH || changes.len() > MANY_CHANGES;
    let wanted = NamesWanted { folded: folded.to_owned(), folders, limit: limit as usize };
    let question = Question { workspace, wanted, position, changes };
    if !is_much {
        return Ok(answer(context, &held, &question));
    }
    let context = context.clone();
    let answered = tokio::task::spawn_blocking(move || answer(&context, &held, &question)).await;
    Ok(answered.unwrap_or(Answer::Absent))
}

/// Has names answer for one position, after they were told what has changed up to it.
fn answer(context: &Context, held: &Held<Names>, question: &Question) -> Answer {
    let spoilt = || {
        context.names.forget(question.workspace);
        Answer::Absent
    };
    {
        let Ok(names) = held.read() else { return spoilt() };
        if names.position() >= question.position {
            return told(&names, question);
        }
    }
    let Ok(mut names) = held.write() else { return spoilt() };
    // Another request may have told them some of it meanwhile; to be told twice does no harm.
    if names.position() < question.position {
        names.follow(&question.changes, question.position);
        context.names.followed(question.workspace, &names);
    }
    // Under the lock, so that no other request moves them on before this one is answered.
    told(&names, question)
}

/// What names answer for a position; those that are ahead of it answer nothing.
fn told(names: &Names, question: &Question) -> Answer {
    match names.position() == question.position {
        true => Answer::Told(names.search(&question.wanted)),
        false => Answer::Ahead,
    }
}

/// The files that were found, in that order. Should one of them be gone, the names are not those of the transaction: they
/// are forgotten.
async fn files_of(
    context: &Context,
    tx: &mut Tx,
    workspace: WorkspaceId,
    found: &Found,
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
    context.names.forget(workspace);
    Ok(None)
}

/// Reads the names of a workspace, a part at a time, while others write.
async fn build(context: Context, builder: Builder<Names>, workspace: WorkspaceId) {
    let Ok(_permit) = Arc::clone(context.names.builds()).acquire_owned().await else { return };
    if let Err(error) = try_to_build(&context, builder, workspace).await {
        tracing::warn!(%error, "the names of a workspace are not read into memory; the engine answers");
    }
}

async fn try_to_build(
    context: &Context,
    builder: Builder<Names>,
    workspace: WorkspaceId,
) -> Result<(), Error> {
    let (position, files) = store::names::standing(context.db.engine(), workspace).await?;
    let (mut names, mut last) = (Names::new(position), None);
    loop {
        let read = store::names::part_of(&context.db, workspace, last, PART).await?;
        let is_last = read.len() < PART as usize;
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
    names = off_threads(names, Names::put_in_order).await?;
    builder.finish(catch_up(context, workspace, names).await?);
    Ok(())
}

/// Tells names of what was written while they were read: parts of them were read later than others.
async fn catch_up(context: &Context, workspace: WorkspaceId, mut names: Names) -> Result<Names, Error> {
    let mut tx = context.db.begin_read().await?;
    let (position, _) = store::names::standing(tx.engine(), workspace).await?;
    while names.position() < position {
        let until = position.min(names.position().saturating_add(MAX_FOLLOWED));
        let changed = store::names::changed(&mut tx, workspace, names.position(), until).await?;
        names = off_threads(names, move |names| names.follow(&changed, until)).await?;
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
