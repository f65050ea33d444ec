//! The rules of folders (spec 2.2, 4.2).

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{self, Entry, Kind};
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::{DeletionId, FolderId};

use crate::Error;
use crate::bodied::bodied_by_trash;
use crate::checks::Checks;
use crate::context::Context;
use crate::model::{Deletion, Folder, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;
use crate::store::folders::Taken;
use crate::store::page::ListScope;

/// Levels of folders: deeper trees are accidents, and paths stay of a length that people can use.
pub(crate) const MAX_DEPTH: usize = 100;

/// A folder to be made.
#[derive(Debug, Clone)]
pub(crate) struct FolderDraft {
    pub(crate) name: String,
    pub(crate) parent_id: Option<String>,
}

/// Changes to a folder: what is absent stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct FolderPatch {
    pub(crate) name: Option<String>,
    /// `Some(None)` is the root.
    pub(crate) parent_id: Option<Option<String>>,
    /// Names in the mask that are no field.
    pub(crate) unknown_fields: Vec<String>,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    context: Context,
}

impl Folders {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Makes a folder.
    pub(crate) async fn create(&self, caller: &Caller, draft: FolderDraft) -> Result<Written<Folder>, Error> {
        let (name, parent_id) = check_draft(draft)?;
        let mut tx = self.begin(caller).await?;
        let folder = self.create_in(&mut tx, caller, self.context.ids.next(), name, parent_id).await?;
        let now = folder.created_at;
        self.announce(tx, folder, now).await
    }

    /// The same as part of a larger transaction that has the tree locked and tells the feed.
    pub(crate) async fn create_in(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        id: FolderId,
        name: String,
        parent_id: Option<FolderId>,
    ) -> Result<Folder, Error> {
        let parent = parent(tx, caller, parent_id).await?;
        if parent.way.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        let now = self.context.clock.now();
        let folder = Folder {
            id,
            workspace_id: caller.workspace,
            path: format!("{}/{name}", parent.path),
            folders_above: parent.way,
            name,
            created_at: now,
            updated_at: now,
        };
        store::folders::insert(tx, &folder).await?;
        Ok(folder)
    }

    /// A folder.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Folder, Error> {
        let folder_id = parse(id)?;
        let found = store::folders::get(self.context.db.engine(), caller.workspace, folder_id).await?;
        let folder = found.ok_or_else(|| Error::no_folder(id))?;
        caller.require("folder", id, &folder.way())?;
        Ok(folder)
    }

    /// Folders in the order of name, then id: all, or the direct children of a parent (`Some(None)` is the root); of a
    /// folder-scoped caller only what the scope covers.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        parent_id: Option<Option<String>>,
        ask: PageRequest,
    ) -> Result<Page<Folder>, Error> {
        let among = match (parent_id, caller.listed()) {
            (None, None) => ListScope::All,
            (None, Some(listed)) => ListScope::Below(listed.to_vec()),
            (Some(None), _) => ListScope::Root,
            (Some(Some(text)), _) => {
                ListScope::In(readable(&self.context.db, caller, "parentId", &text).await?)
            }
        };
        let db = &self.context.db;
        let workspace = caller.workspace;
        if let (ListScope::Root, Some(_)) = (&among, caller.listed()) {
            return self.list_covered_roots(caller, ask).await;
        }
        let _turn = db.reading_fairly(workspace).await?;
        let folders = store::folders::list(db, workspace, &among, ask.after.as_ref(), ask.fetch()).await?;
        let total = match ask.known_total(folders.len()) {
            Some(total) => total,
            None => store::folders::count(db, workspace, &among).await?,
        };
        Ok(ask.page(folders, total, |folder| (folder.name.clone(), folder.id.to_string())))
    }

    /// Changes a folder. A change that changes nothing leaves the feed alone and answers its head.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        id: &str,
        patch: FolderPatch,
    ) -> Result<Written<Folder>, Error> {
        let folder_id = parse(id)?;
        let checked = check(patch)?;
        let mut tx = self.begin(caller).await?;
        let (folder, is_changed) = self.update_in(&mut tx, caller, folder_id, checked).await?;
        if !is_changed {
            let position = feed::head(&mut tx, caller.workspace).await?;
            tx.rollback().await?;
            return Ok(Written { item: folder, position });
        }
        let now = folder.updated_at;
        self.announce(tx, folder, now).await
    }

    /// The same as part of a larger transaction that has the tree locked and tells the feed of what has changed.
    pub(crate) async fn update_in(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        folder_id: FolderId,
        (name, target): CheckedFolderPatch,
    ) -> Result<(Folder, bool), Error> {
        let before = self.changeable(tx, caller, folder_id).await?;

        let mut folder = before.clone();
        folder.name = name.unwrap_or(folder.name);
        if let Some(parent_id) = target.filter(|parent_id| *parent_id != before.parent_id()) {
            let parent = parent(tx, caller, parent_id).await?;
            check_move(tx, &before, &parent).await?;
            folder.path = format!("{}/{}", parent.path, folder.name);
            folder.folders_above = parent.way;
        } else {
            let above = before.path.rsplit_once('/').map_or("", |(above, _)| above);
            folder.path = format!("{above}/{}", folder.name);
        }
        if folder == before {
            return Ok((folder, false));
        }
        folder.updated_at = self.context.clock.now();
        store::folders::update(tx, &folder).await?;
        Ok((folder, true))
    }

    /// Moves a folder and all that it holds to trash, under one deletion id.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let folder_id = parse(id)?;
        let mut tx = self.begin(caller).await?;
        let (deletion, taken) = self.delete_in(&mut tx, caller, folder_id).await?;
        let (workspace, now) = (caller.workspace, deletion.at);
        let reserved = feed::reserve(&mut tx, workspace, deletion.items, now).await?;
        store::folders::announce_trash(&mut tx, workspace, deletion.id, taken, reserved, now).await?;
        let bodied = bodied_by_trash(&mut tx, workspace, deletion.id).await?;
        let last = feed::append(&mut tx, workspace, &bodied, now).await?;
        self.context.feed.commit(tx, workspace, last).await?;
        Ok(last)
    }

    /// The same as part of a larger transaction that has the tree locked and tells the feed.
    pub(crate) async fn delete_in(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        folder_id: FolderId,
    ) -> Result<(Deletion, Taken), Error> {
        let folder = self.changeable(tx, caller, folder_id).await?;
        let now = self.context.clock.now();
        let workspace = caller.workspace;
        let deletion: DeletionId = self.context.ids.next();
        let taken = store::folders::trash(tx, workspace, folder.id, deletion, now).await?;
        let recorded = Deletion {
            workspace,
            id: deletion,
            kind: Kind::Folder,
            item_id: folder.id.to_string(),
            parent_id: folder.parent_id(),
            database_id: None,
            name: folder.name,
            path: folder.path,
            items: taken.folders + taken.files + taken.databases,
            at: now,
        };
        store::trash::insert(tx, &recorded).await?;
        Ok((recorded, taken))
    }

    /// The live folders that the caller's scope covers; `None` for the whole workspace.
    pub(crate) async fn resolve_scope(&self, caller: &Caller) -> Result<Option<Vec<FolderId>>, Error> {
        match caller.listed() {
            None => Ok(None),
            Some(listed) => {
                Ok(Some(store::folders::ids_below(&self.context.db, caller.workspace, listed).await?))
            }
        }
    }

    /// The listed folders that stand in the root themselves; a token lists few.
    async fn list_covered_roots(&self, caller: &Caller, ask: PageRequest) -> Result<Page<Folder>, Error> {
        let mut roots = Vec::new();
        for id in caller.listed().unwrap_or_default() {
            let found = store::folders::get(self.context.db.engine(), caller.workspace, *id).await?;
            roots.extend(found.filter(|folder| folder.folders_above.is_empty()));
        }
        let key = |folder: &Folder| (folder.name.clone(), folder.id.to_string());
        roots.sort_by_key(key);
        roots.dedup();
        let total = roots.len() as u64;
        if let Some(after) = &ask.after {
            roots.retain(|folder| key(folder) > (after.name.clone(), after.id.clone()));
        }
        Ok(ask.page(roots, total, key))
    }

    /// Moves and deletions of one workspace's folders follow each other: only so can none of two moves that together
    /// close a circle miss the other.
    async fn begin(&self, caller: &Caller) -> Result<Tx, Error> {
        let mut tx = self.context.db.begin_write().await?;
        store::folders::lock_tree(&mut tx, caller.workspace).await?;
        Ok(tx)
    }

    async fn changeable(&self, tx: &mut Tx, caller: &Caller, id: FolderId) -> Result<Folder, Error> {
        let found = store::folders::get(tx.engine(), caller.workspace, id).await?;
        let folder = found.ok_or_else(|| Error::no_folder(id))?;
        caller.require("folder", id, &folder.way())?;
        caller.require_entry(id, &folder.folders_above)?;
        Ok(folder)
    }

    async fn announce(&self, mut tx: Tx, folder: Folder, at: Timestamp) -> Result<Written<Folder>, Error> {
        let entry = Entry::upsert(Kind::Folder, folder.id);
        let position = feed::append(&mut tx, folder.workspace_id, &[entry], at).await?;
        self.context.feed.commit(tx, folder.workspace_id, position).await?;
        Ok(Written { item: folder, position })
    }
}

/// The live folder that a field of a read names, if the caller's scope covers it.
pub(crate) async fn readable(db: &Db, caller: &Caller, field: &str, text: &str) -> Result<FolderId, Error> {
    let mut checks = Checks::default();
    let id: Option<FolderId> = checks.id(field, text);
    checks.finish()?;
    let id = id.ok_or_else(|| Error::no_folder(text))?;
    let found = store::folders::get(db.engine(), caller.workspace, id).await?;
    let folder = found.ok_or_else(|| Error::no_folder(text))?;
    caller.require("folder", text, &folder.way())?;
    Ok(id)
}

/// A folder, or the root, that the caller may put a folder into.
struct Parent {
    way: Vec<FolderId>,
    path: String,
}

async fn parent(tx: &mut Tx, caller: &Caller, parent_id: Option<FolderId>) -> Result<Parent, Error> {
    let Some(id) = parent_id else {
        caller.require_root()?;
        return Ok(Parent { way: Vec::new(), path: String::new() });
    };
    let folder =
        store::folders::get(tx.engine(), caller.workspace, id).await?.ok_or_else(|| Error::no_folder(id))?;
    let way = folder.way();
    caller.require("folder", id, &way)?;
    Ok(Parent { way, path: folder.path })
}

async fn check_move(tx: &mut Tx, folder: &Folder, parent: &Parent) -> Result<(), Error> {
    if parent.way.contains(&folder.id) {
        let message = "a folder cannot be moved into itself or a folder below it";
        return Err(Error::invalid("parentId", "cycle", message));
    }
    let height = store::folders::height(tx, folder.workspace_id, folder.id).await?;
    if parent.way.len() as u64 + height > MAX_DEPTH as u64 {
        return Err(too_deep());
    }
    Ok(())
}

fn too_deep() -> Error {
    Error::invalid("parentId", "out_of_range", format!("folders nest at most {MAX_DEPTH} levels deep"))
}

/// A name and the parent.
pub(crate) fn check_draft(draft: FolderDraft) -> Result<(String, Option<FolderId>), Error> {
    let mut checks = Checks::default();
    checks.name(&draft.name);
    let parent_id = checks.optional_id("parentId", draft.parent_id.as_deref());
    checks.finish()?;
    Ok((draft.name, parent_id))
}

/// The new name and the new parent.
pub(crate) type CheckedFolderPatch = (Option<String>, Option<Option<FolderId>>);

pub(crate) fn check(patch: FolderPatch) -> Result<CheckedFolderPatch, Error> {
    let mut checks = Checks::default();
    for field in &patch.unknown_fields {
        let message = format!("'{field}' cannot be updated; name and parent_id can");
        checks.violation("updateMask", "invalid", message);
    }
    if let Some(name) = &patch.name {
        checks.name(name);
    }
    let parent_id = patch.parent_id.map(|parent| checks.optional_id("parentId", parent.as_deref()));
    checks.finish()?;
    Ok((patch.name, parent_id))
}

/// A text that is no id names no folder.
pub(crate) fn parse(id: &str) -> Result<FolderId, Error> {
    id.parse().map_err(|_| Error::no_folder(id))
}
