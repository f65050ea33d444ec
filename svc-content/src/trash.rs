//! The rules of the trash (spec 3.1): what was deleted comes back as it was, or is removed for good.
//!
//! The trash holds deletions. What went along with a folder is not in the list by itself: it comes back with the
//! folder, and goes with it.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op};
use cairn_chassis::identity::Permission;
use cairn_chassis::sql::Tx;
use cairn_proto::ids::{FolderId, WorkspaceId};

use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::folders::MAX_DEPTH;
use crate::model::{Activity, Author, Deletion, Former, Operation, Page, PageRequest};
use crate::scope::Caller;
use crate::{memories, records, store};

/// How many deletions one sweep looks at before it looks again.
const SWEPT_AT_ONCE: i64 = 100;
/// As many as are told to have done something: see [`crate::activity`].
const MOST_DELETERS: i64 = 200;

/// A deletion in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrashEntry {
    pub(crate) deletion: Deletion,
    /// When it is removed for good by itself.
    pub(crate) expires_at: Option<Timestamp>,
}

/// What came back, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restored {
    /// What holds it; absent for the root.
    pub(crate) parent_id: Option<String>,
    pub(crate) path: String,
    pub(crate) items: u64,
    pub(crate) position: u64,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Trash {
    context: Context,
    /// How long deletions are kept; for ever when absent.
    retention: Option<Duration>,
}

impl Trash {
    pub(crate) fn new(context: Context, retention: Option<Duration>) -> Self {
        Self { context, retention }
    }

    /// Deletions, the latest first; by one principal or by all.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        principal: Option<&str>,
        request: PageRequest,
    ) -> Result<Page<TrashEntry>, Error> {
        require_whole(caller)?;
        if principal.is_some_and(|id| id.contains('\0')) {
            // Nobody is called so, and PostgreSQL takes no NUL.
            return Ok(request.page(Vec::new(), 0, |_| Default::default()));
        }
        let (at, id) = match &request.after {
            None => (Timestamp::from_micros(i64::MAX), ""),
            Some(cursor) => (read_place(&cursor.name)?, cursor.id.as_str()),
        };
        let db = &self.context.db;
        let _turn = db.reading_fairly(caller.workspace).await?;
        let found = store::trash::list(db, caller.workspace, principal, (at, id), request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::trash::count(db, caller.workspace, principal).await?,
        };
        let listed = found.into_iter().map(|deletion| self.entry(deletion)).collect();
        Ok(request.page(listed, total, |listed| {
            (listed.deletion.at.as_micros().to_string(), listed.deletion.id.to_string())
        }))
    }

    /// Who deleted what is in trash.
    pub(crate) async fn deleters(&self, caller: &Caller) -> Result<Vec<Author>, Error> {
        require_whole(caller)?;
        let db = &self.context.db;
        let _turn = db.reading_fairly(caller.workspace).await?;
        Ok(store::trash::deleters(db, caller.workspace, MOST_DELETERS).await?)
    }

    /// The deletion that has an item: its own, or that of what it went along with.
    pub(crate) async fn get(&self, caller: &Caller, kind: Kind, id: &str) -> Result<TrashEntry, Error> {
        require_whole(caller)?;
        let no_item = || Error::NotFound { kind: "item in trash", id: id.to_owned() };
        if id.contains('\0') {
            return Err(no_item());
        }
        let (db, workspace) = (&self.context.db, caller.workspace);
        if let Some(deletion) = store::trash::get(db.engine(), workspace, kind, id).await? {
            return Ok(self.entry(deletion));
        }
        let deletion = store::trash::along(db.engine(), workspace, kind, id).await?;
        deletion.map(|deletion| self.entry(deletion)).ok_or_else(no_item)
    }

    fn entry(&self, deletion: Deletion) -> TrashEntry {
        TrashEntry { expires_at: self.retention.map(|kept| deletion.at.plus(kept)), deletion }
    }

    /// Brings back what a deletion took. What held it may be in trash, gone, or by now too deep in the tree for what
    /// comes back: then it comes back into the root.
    pub(crate) async fn restore(&self, caller: &Caller, kind: Kind, id: &str) -> Result<Restored, Error> {
        let mut change = self.begin(caller).await?;
        let restored = restore_in(&mut change, caller, kind, id).await?;
        let position = change.commit().await?.last;
        Ok(Restored { position, ..restored })
    }

    /// Removes for good what a deletion took.
    pub(crate) async fn remove(&self, caller: &Caller, kind: Kind, id: &str) -> Result<u64, Error> {
        let mut change = self.begin(caller).await?;
        let deletion = find(change.tx(), caller, kind, id, "remove").await?;
        finish(change, &deletion).await
    }

    /// Whether anything is ever removed by itself.
    pub(crate) const fn has_retention(&self) -> bool {
        self.retention.is_some()
    }

    /// Removes for good some of what is older than the retention; answers how many deletions it looked at, none when
    /// there is nothing left to remove.
    pub(crate) async fn sweep(&self) -> Result<usize, Error> {
        let Some(retention) = self.retention else { return Ok(0) };
        let kept = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        let now = self.context.clock.now().as_micros();
        let limit = Timestamp::from_micros(now.saturating_sub(kept));
        let old = store::trash::older(&self.context.db, limit, SWEPT_AT_ONCE).await?;
        for deletion in &old {
            let mut change = self.begin(&Caller::upkeep(deletion.workspace)).await?;
            let found = lock(change.tx(), deletion.workspace, deletion.kind, &deletion.item_id).await?;
            // It may have been restored since, and deleted anew.
            if found.as_ref() == Some(deletion) {
                finish(change, deletion).await?;
            }
        }
        Ok(old.len())
    }

    /// Whoever changes the tree waits, so that what holds an item stays live while the item comes back into it.
    async fn begin(&self, caller: &Caller) -> Result<Change, Error> {
        let mut change = Change::without_limits(&self.context, caller).await?;
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        Ok(change)
    }
}

/// The same as part of a larger change that has the tree locked; the position is not known yet.
pub(crate) async fn restore_in(
    change: &mut Change,
    caller: &Caller,
    kind: Kind,
    id: &str,
) -> Result<Restored, Error> {
    let mut deletion = find(change.tx(), caller, kind, id, "restore").await?;
    let mut former = Vec::new();
    let path = if kind == Kind::Record {
        records::require_database(change.tx(), &deletion).await?
    } else {
        let (parent_id, path) = place(change.tx(), &deletion).await?;
        if parent_id.is_none() && kind != Kind::Memory {
            caller.require_root()?;
        }
        if parent_id != deletion.parent_id {
            former.push(Former::Folder(deletion.parent_id));
            store::trash::place(change.tx(), &deletion, parent_id).await?;
        }
        deletion.parent_id = parent_id;
        path
    };
    let path = if kind == Kind::Memory {
        memories::revive(change.tx(), caller, &deletion).await?
    } else {
        format!("{path}/{}", deletion.name)
    };
    let databases = store::trash::databases(change.tx(), &deletion).await?;
    let back = store::trash::restore(change.tx(), &deletion).await?;
    if kind == Kind::Record {
        records::revive(change.tx(), &deletion).await?;
    }
    for database in databases {
        change.publish_records(database, Op::Upsert);
    }
    let items = back.len() as u64;
    let folder_id = if kind == Kind::Record {
        let folders = records::folders_of(change.tx(), &deletion).await?;
        folders.and_then(|folders| folders.last().copied())
    } else {
        deletion.parent_id
    };
    change.note(Activity {
        path: path.clone(),
        folder_id,
        items,
        former,
        ..deletion.activity(Operation::Restore)
    });
    for (kind, id) in back {
        change.publish_upsert(kind, id);
    }
    Ok(Restored { parent_id: deletion.holder(), path, items, position: 0 })
}

async fn finish(mut change: Change, deletion: &Deletion) -> Result<u64, Error> {
    store::trash::databases(change.tx(), deletion).await?;
    // The deletion of a database has told of its records; that of a folder has not.
    if deletion.kind == Kind::Folder {
        for id in store::trash::records_along(change.tx(), deletion).await? {
            change.publish_delete(Kind::Record, id);
        }
    }
    let removed = store::trash::remove(change.tx(), deletion).await?;
    change.note(deletion.activity(Operation::Remove));
    for (kind, id) in removed.items {
        change.publish_delete(kind, id);
    }
    change.grow(removed.growth);
    Ok(change.commit().await?.last)
}

/// What may be done with an item in trash: a record comes back with what it takes to write it (spec 3.1).
pub(crate) const fn to_restore(kind: Kind) -> Permission {
    if matches!(kind, Kind::Record) { Permission::Write } else { Permission::Delete }
}

/// Where the item goes: what holds it now, and the path of that ("" for the root).
async fn place(tx: &mut Tx, deletion: &Deletion) -> Result<(Option<FolderId>, String), Error> {
    let Some(parent_id) = deletion.parent_id else { return Ok((None, String::new())) };
    let Some(parent) = store::folders::get(tx.engine(), deletion.workspace, parent_id).await? else {
        return Ok((None, String::new()));
    };
    let height = if deletion.kind == Kind::Folder { store::trash::height(tx, deletion).await? } else { 0 };
    if parent.way().len() as u64 + height > MAX_DEPTH as u64 {
        return Ok((None, String::new()));
    }
    Ok((Some(parent_id), parent.path))
}

/// The deletion of an item that the caller may touch. What went along with something else names that.
async fn find(tx: &mut Tx, caller: &Caller, kind: Kind, id: &str, action: &str) -> Result<Deletion, Error> {
    let no_item = || Error::NotFound { kind: "item in trash", id: id.to_owned() };
    if id.contains('\0') {
        return Err(no_item());
    }
    if let Some(deletion) = lock(tx, caller.workspace, kind, id).await? {
        require(tx, caller, &deletion, action).await?;
        return Ok(deletion);
    }
    let with = store::trash::along(tx.engine(), caller.workspace, kind, id).await?.ok_or_else(no_item)?;
    let kind = word(kind);
    match require(tx, caller, &with, action).await {
        Ok(()) => {}
        // Nothing is said of what lies outside.
        Err(Error::OutOfScope(_)) => {
            return Err(Error::OutOfScope(format!(
                "the {kind} {id} went to trash along with something outside the folders of this token: a workspace-wide \
                 token can {action} that"
            )));
        }
        Err(error) => return Err(error),
    }
    Err(Error::WentAlong {
        kind,
        id: id.to_owned(),
        with: word(with.kind),
        name: with.name,
        with_id: with.item_id,
    })
}

/// Checks that a folder scope covers an item in trash, as it covered the item when that was deleted: by what held it, which
/// must be there still, or else nobody could say.
async fn require(tx: &mut Tx, caller: &Caller, deletion: &Deletion, action: &str) -> Result<(), Error> {
    if caller.listed().is_none() {
        return Ok(());
    }
    let kind = word(deletion.kind);
    let folders = match deletion.kind {
        Kind::Memory => return memories::require_trashed(tx, caller, deletion, action).await,
        Kind::Record => records::folders_of(tx, deletion).await?,
        Kind::File
        | Kind::Folder
        | Kind::Database
        | Kind::Unspecified
        | Kind::SourceDocument
        | Kind::Ingested => match deletion.parent_id {
            None => Some(Vec::new()),
            Some(parent) => {
                let parent = store::folders::get(tx.engine(), deletion.workspace, parent).await?;
                parent.map(|parent| parent.way())
            }
        },
    };
    let folders = folders.ok_or_else(|| {
        Error::OutOfScope(format!(
            "what held the {kind} is not there any more: to {action} it needs a workspace-wide token"
        ))
    })?;
    caller.require(kind, &deletion.item_id, &folders)
}

/// What a kind is called.
const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Memory => "memory",
        Kind::Database => "database",
        Kind::Record => "record",
        Kind::SourceDocument | Kind::Ingested | Kind::Unspecified => "item",
    }
}

/// The deletion of an item, which no other transaction can undo or finish until this one ends.
///
/// A database is had before its deletion and the deletions of its records, by everybody: whoever waits for one of them in
/// another order may deadlock, or see a deletion that came while it waited.
async fn lock(tx: &mut Tx, workspace: WorkspaceId, kind: Kind, id: &str) -> Result<Option<Deletion>, Error> {
    match kind {
        Kind::Record => {
            let seen = store::trash::get(tx.engine(), workspace, kind, id).await?;
            let Some(database) = seen.and_then(|seen| seen.database_id) else { return Ok(None) };
            store::databases::hold(tx, workspace, database).await?;
        }
        Kind::Database => {
            if let Ok(database) = id.parse() {
                store::databases::lock(tx, workspace, database).await?;
            }
        }
        Kind::Unspecified
        | Kind::File
        | Kind::Folder
        | Kind::Memory
        | Kind::SourceDocument
        | Kind::Ingested => {}
    }
    Ok(store::trash::lock(tx, workspace, kind, id).await?)
}

/// Where an item stood may be gone, so nobody could say whether a folder scope covers the list.
fn require_whole(caller: &Caller) -> Result<(), Error> {
    match caller.listed() {
        None => Ok(()),
        Some(_) => Err(Error::OutOfScope("the list of the trash needs a workspace-wide token".into())),
    }
}

fn read_place(text: &str) -> Result<Timestamp, Error> {
    let micros = text.parse().map_err(|_| {
        Error::invalid("pageToken", "invalid", "send the token of the previous page as it came")
    })?;
    Ok(Timestamp::from_micros(micros))
}
