//! The rules of the trash (spec 3.1): deleted items are restored as they were, or removed permanently.
//!
//! The trash contains deletions. Items that were deleted with a folder are not listed by themselves: they are
//! restored and removed with the folder.

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

/// The batch size of a sweep.
const SWEEP_BATCH: i64 = 100;
/// The same limit as in [`crate::activity`].
const MAX_DELETERS: i64 = 200;

/// A deletion in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrashEntry {
    pub(crate) deletion: Deletion,
    /// When the retention removes it.
    pub(crate) expires_at: Option<Timestamp>,
}

/// A restored item, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restored {
    /// Its container; absent for the root.
    pub(crate) parent_id: Option<String>,
    pub(crate) path: String,
    pub(crate) items: u64,
    pub(crate) position: u64,
}

/// The rules of the trash on a store.
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

    /// Deletions, the newest first; by one principal or by all.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        principal: Option<&str>,
        request: PageRequest,
    ) -> Result<Page<TrashEntry>, Error> {
        require_whole(caller)?;
        if principal.is_some_and(|id| id.contains('\0')) {
            // No principal has NUL in its id, and PostgreSQL rejects it.
            return Ok(request.page(Vec::new(), 0, |_| Default::default()));
        }
        let (at, id) = match &request.after {
            None => (Timestamp::from_micros(i64::MAX), ""),
            Some(cursor) => (read_place(&cursor.name)?, cursor.id.as_str()),
        };
        let db = &self.context.db;
        let _permit = db.read_permit(caller.workspace).await?;
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

    /// The principals of the deletions in trash.
    pub(crate) async fn deleters(&self, caller: &Caller) -> Result<Vec<Author>, Error> {
        require_whole(caller)?;
        let db = &self.context.db;
        let _permit = db.read_permit(caller.workspace).await?;
        Ok(store::trash::deleters(db, caller.workspace, MAX_DELETERS).await?)
    }

    /// The deletion that an item belongs to: its own, or that of its container.
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

    /// Restores the items of a deletion. If the former container is in trash or removed, or is now too deep in the
    /// tree, it is restored into the root.
    pub(crate) async fn restore(&self, caller: &Caller, kind: Kind, id: &str) -> Result<Restored, Error> {
        let mut change = self.begin(caller).await?;
        let restored = restore_in(&mut change, caller, kind, id).await?;
        let position = change.commit().await?.last;
        Ok(Restored { position, ..restored })
    }

    /// Removes the items of a deletion permanently.
    pub(crate) async fn remove(&self, caller: &Caller, kind: Kind, id: &str) -> Result<u64, Error> {
        let mut change = self.begin(caller).await?;
        let deletion = find(change.tx(), caller, kind, id, "remove").await?;
        finish(change, &deletion).await
    }

    /// Whether a retention is configured.
    pub(crate) const fn has_retention(&self) -> bool {
        self.retention.is_some()
    }

    /// Removes a batch of expired deletions permanently; returns the number of deletions examined, 0 when none are
    /// left.
    pub(crate) async fn sweep(&self) -> Result<usize, Error> {
        let Some(retention) = self.retention else { return Ok(0) };
        let kept = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
        let now = self.context.clock.now().as_micros();
        let limit = Timestamp::from_micros(now.saturating_sub(kept));
        let old = store::trash::older(&self.context.db, limit, SWEEP_BATCH).await?;
        for deletion in &old {
            let mut change = self.begin(&Caller::upkeep(deletion.workspace)).await?;
            let found = lock(change.tx(), deletion.workspace, deletion.kind, &deletion.item_id).await?;
            // It may have been restored and deleted again since.
            if found.as_ref() == Some(deletion) {
                finish(change, deletion).await?;
            }
        }
        Ok(old.len())
    }

    /// Locks the tree, so that the container stays live while an item is restored into it.
    async fn begin(&self, caller: &Caller) -> Result<Change, Error> {
        let mut change = Change::without_limits(&self.context, caller).await?;
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        Ok(change)
    }
}

/// [`Trash::restore`] as part of a larger change that holds the lock on the tree; the position is not known yet.
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
    // The deletion of a database published its records, that of a folder did not.
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

/// The permission to restore: for a record that to write it (spec 3.1).
pub(crate) const fn to_restore(kind: Kind) -> Permission {
    if matches!(kind, Kind::Record) { Permission::Write } else { Permission::Delete }
}

/// The container that the item is restored into, and its path ("" for the root).
async fn place(tx: &mut Tx, deletion: &Deletion) -> Result<(Option<FolderId>, String), Error> {
    let Some(parent_id) = deletion.parent_id else { return Ok((None, String::new())) };
    let Some(parent) = store::folders::get(tx.engine(), deletion.workspace, parent_id).await? else {
        return Ok((None, String::new()));
    };
    let height = if deletion.kind == Kind::Folder { store::trash::height(tx, deletion).await? } else { 0 };
    if parent.path_ids().len() as u64 + height > MAX_DEPTH as u64 {
        return Ok((None, String::new()));
    }
    Ok((Some(parent_id), parent.path))
}

/// The deletion of an item, if the caller may touch it. For an item that was deleted with its container, the error
/// names that.
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
        // Nothing outside of the scope may be disclosed.
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

/// Checks that a folder scope covers an item in trash, as it did at the deletion: by its container, which must still
/// exist, as coverage is unknown otherwise.
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
                parent.map(|parent| parent.path_ids())
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

/// The name of a kind.
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

/// Locks the deletion of an item until the transaction ends, and reads it.
///
/// Lock order: a database before its deletion and the deletions of its records. Any other order can deadlock, or read
/// a deletion that was made during the wait.
async fn lock(tx: &mut Tx, workspace: WorkspaceId, kind: Kind, id: &str) -> Result<Option<Deletion>, Error> {
    match kind {
        Kind::Record => {
            let seen = store::trash::get(tx.engine(), workspace, kind, id).await?;
            let Some(database) = seen.and_then(|seen| seen.database_id) else { return Ok(None) };
            store::databases::lock_shared(tx, workspace, database).await?;
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

/// The former containers may be removed, so it is unknown whether a folder scope covers the list.
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
