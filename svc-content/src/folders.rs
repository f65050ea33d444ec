//! The rules of folders (spec 2.2, 4.2).

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::Db;
use cairn_proto::ids::FolderId;

use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::context::Context;
use crate::model::{Activity, Folder, Former, Operation, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;
use crate::store::page::ListScope;

/// The maximum depth of the tree: deeper trees are accidents, and paths stay usable.
pub(crate) const MAX_DEPTH: usize = 100;

/// The fields of a new folder.
#[derive(Debug, Clone)]
pub(crate) struct FolderDraft {
    pub(crate) name: String,
    pub(crate) parent_id: Option<String>,
}

/// An update of a folder: absent fields stay as they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct FolderPatch {
    pub(crate) name: Option<String>,
    /// `Some(None)` is the root.
    pub(crate) parent_id: Option<Option<String>>,
    /// Names in the mask that are no field.
    pub(crate) unknown_fields: Vec<String>,
}

/// The rules of folders on a store.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    context: Context,
}

impl Folders {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Creates a folder.
    pub(crate) async fn create(&self, caller: &Caller, draft: FolderDraft) -> Result<Written<Folder>, Error> {
        let (name, parent_id) = check_draft(draft)?;
        let mut change = self.begin(caller).await?;
        let folder = self.create_in(&mut change, caller, self.context.ids.next(), name, parent_id).await?;
        change.commit_with(folder).await
    }

    /// [`Self::create`] as part of a larger change that holds the lock on the tree.
    pub(crate) async fn create_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        id: FolderId,
        name: String,
        parent_id: Option<FolderId>,
    ) -> Result<Folder, Error> {
        let parent = parent(change, caller, parent_id).await?;
        if parent.folders.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        let now = change.now();
        let folder = Folder {
            id,
            workspace_id: caller.workspace,
            path: parent.path_of(&name),
            folders_above: parent.folders,
            name,
            created_at: now,
            updated_at: now,
        };
        store::folders::insert(change.tx(), &folder).await?;
        change.note(activity_of(Operation::Create, &folder));
        change.publish_upsert(Kind::Folder, folder.id);
        Ok(folder)
    }

    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<Folder, Error> {
        let folder_id = parse(id)?;
        let found = store::folders::get(self.context.db.engine(), caller.workspace, folder_id).await?;
        let folder = found.ok_or_else(|| Error::no_folder(id))?;
        caller.require("folder", id, &folder.path_ids())?;
        Ok(folder)
    }

    /// Folders in the order of name, then id: all, or the direct children of a parent (`Some(None)` is the root); for
    /// a folder-scoped caller only those in the scope.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        parent_id: Option<Option<String>>,
        request: PageRequest,
    ) -> Result<Page<Folder>, Error> {
        let scope = match (parent_id, caller.listed()) {
            (None, None) => ListScope::All,
            (None, Some(listed)) => ListScope::Below(listed.to_vec()),
            (Some(None), _) => ListScope::Root,
            (Some(Some(text)), _) => {
                ListScope::In(readable(&self.context.db, caller, "parentId", &text).await?)
            }
        };
        let db = &self.context.db;
        let workspace = caller.workspace;
        if let (ListScope::Root, Some(_)) = (&scope, caller.listed()) {
            return self.list_covered_roots(caller, request).await;
        }
        let _permit = db.read_permit(workspace).await?;
        let folders =
            store::folders::list(db, workspace, &scope, request.after.as_ref(), request.fetch()).await?;
        let total = match request.known_total(folders.len()) {
            Some(total) => total,
            None => store::folders::count(db, workspace, &scope).await?,
        };
        Ok(request.page(folders, total, |folder| (folder.name.clone(), folder.id.to_string())))
    }

    /// Updates a folder. An update without effect keeps the feed and returns its head.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        id: &str,
        patch: FolderPatch,
    ) -> Result<Written<Folder>, Error> {
        let folder_id = parse(id)?;
        let checked = check(patch)?;
        let mut change = self.begin(caller).await?;
        let folder = self.update_in(&mut change, caller, folder_id, checked).await?;
        change.commit_with(folder).await
    }

    /// [`Self::update`] as part of a larger change that holds the lock on the tree.
    pub(crate) async fn update_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        folder_id: FolderId,
        (name, target): CheckedFolderPatch,
    ) -> Result<Folder, Error> {
        let before = changeable(change, caller, folder_id).await?;

        let mut folder = before.clone();
        folder.name = name.unwrap_or(folder.name);
        let parent = match target.filter(|parent_id| *parent_id != before.parent_id()) {
            None => Destination::holding(&before.path, &before.folders_above),
            Some(parent_id) => {
                let parent = parent(change, caller, parent_id).await?;
                check_move(change, &before, &parent).await?;
                parent
            }
        };
        folder.path = parent.path_of(&folder.name);
        folder.folders_above = parent.folders;
        if folder == before {
            return Ok(folder);
        }
        folder.updated_at = change.now();
        store::folders::update(change.tx(), &folder).await?;
        let renamed = (folder.name != before.name).then(|| Former::Name(before.name.clone()));
        let moved = (folder.parent_id() != before.parent_id()).then(|| Former::Folder(before.parent_id()));
        let former = renamed.into_iter().chain(moved).collect();
        change.note(Activity { former, ..activity_of(Operation::Update, &folder) });
        change.publish_upsert(Kind::Folder, folder.id);
        Ok(folder)
    }

    /// Moves a folder with everything in it to trash, with one deletion id.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let folder_id = parse(id)?;
        let mut change = self.begin(caller).await?;
        self.delete_in(&mut change, caller, folder_id).await?;
        Ok(change.commit().await?.last)
    }

    /// [`Self::delete`] as part of a larger change that holds the lock on the tree.
    pub(crate) async fn delete_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        folder_id: FolderId,
    ) -> Result<(), Error> {
        let folder = changeable(change, caller, folder_id).await?;
        let parent_id = folder.parent_id();
        let deletion =
            change.deletion(caller, Kind::Folder, folder.id, folder.name, folder.path).in_folder(parent_id);
        change.trash_folder(deletion).await
    }

    /// The live folders in the scope of the caller; `None` for the whole workspace.
    pub(crate) async fn resolve_scope(&self, caller: &Caller) -> Result<Option<Vec<FolderId>>, Error> {
        match caller.listed() {
            None => Ok(None),
            Some(listed) => {
                Ok(Some(store::folders::ids_below(self.context.db.engine(), caller.workspace, listed).await?))
            }
        }
    }

    /// The listed folders that are in the root; a token lists few.
    async fn list_covered_roots(&self, caller: &Caller, request: PageRequest) -> Result<Page<Folder>, Error> {
        let mut roots = Vec::new();
        for id in caller.listed().unwrap_or_default() {
            let found = store::folders::get(self.context.db.engine(), caller.workspace, *id).await?;
            roots.extend(found.filter(|folder| folder.folders_above.is_empty()));
        }
        let key = |folder: &Folder| (folder.name.clone(), folder.id.to_string());
        roots.sort_by_key(key);
        roots.dedup();
        let total = roots.len() as u64;
        if let Some(after) = &request.after {
            roots.retain(|folder| key(folder) > (after.name.clone(), after.id.clone()));
        }
        Ok(request.page(roots, total, key))
    }

    /// Moves and deletions of folders are serialized per workspace: two concurrent moves could make a cycle that
    /// neither of them sees.
    async fn begin(&self, caller: &Caller) -> Result<Change, Error> {
        let mut change = Change::begin(&self.context, caller).await?;
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        Ok(change)
    }
}

fn activity_of(operation: Operation, folder: &Folder) -> Activity {
    Activity::of(operation, Kind::Folder, folder.id, &folder.name).at(&folder.path, folder.parent_id())
}

async fn changeable(change: &mut Change, caller: &Caller, id: FolderId) -> Result<Folder, Error> {
    let found = store::folders::get(change.tx().engine(), caller.workspace, id).await?;
    let folder = found.ok_or_else(|| Error::no_folder(id))?;
    caller.require("folder", id, &folder.path_ids())?;
    caller.require_entry(id, &folder.folders_above)?;
    Ok(folder)
}

/// The live folder in a field of a read, if it is in the scope of the caller.
pub(crate) async fn readable(db: &Db, caller: &Caller, field: &str, text: &str) -> Result<FolderId, Error> {
    let mut checks = Checks::default();
    let id: Option<FolderId> = checks.id(field, text);
    checks.finish()?;
    let id = id.ok_or_else(|| Error::no_folder(text))?;
    let found = store::folders::get(db.engine(), caller.workspace, id).await?;
    let folder = found.ok_or_else(|| Error::no_folder(text))?;
    caller.require("folder", text, &folder.path_ids())?;
    Ok(id)
}

/// A folder, or the root, as a container of items.
#[derive(Debug)]
pub(crate) struct Destination {
    /// From the root to the folder itself; empty for the root.
    pub(crate) folders: Vec<FolderId>,
    /// Empty for the root.
    pub(crate) path: String,
}

impl Destination {
    /// The container of an item with that path.
    pub(crate) fn holding(path: &str, folders: &[FolderId]) -> Self {
        let path = path.rsplit_once('/').map_or("", |(above, _)| above);
        Self { folders: folders.to_vec(), path: path.to_owned() }
    }

    /// The path of an item with that name in it.
    pub(crate) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn root(caller: &Caller) -> Result<Self, Error> {
        caller.require_root()?;
        Ok(Self { folders: Vec::new(), path: String::new() })
    }

    fn folder(caller: &Caller, id: FolderId, found: Option<Folder>) -> Result<Self, Error> {
        let folder = found.ok_or_else(|| Error::no_folder(id))?;
        let folders = folder.path_ids();
        caller.require("folder", id, &folders)?;
        Ok(Self { folders, path: folder.path })
    }
}

/// A folder, or the root, that the caller may put something into; it is locked and stays live until the change ends.
pub(crate) async fn destination(
    change: &mut Change,
    caller: &Caller,
    folder_id: Option<FolderId>,
) -> Result<Destination, Error> {
    let Some(id) = folder_id else { return Destination::root(caller) };
    Destination::folder(caller, id, store::folders::lock_shared(change.tx(), caller.workspace, id).await?)
}

/// [`destination`] for a folder, in a change that holds the lock on the tree.
async fn parent(
    change: &mut Change,
    caller: &Caller,
    parent_id: Option<FolderId>,
) -> Result<Destination, Error> {
    let Some(id) = parent_id else { return Destination::root(caller) };
    let found = store::folders::get(change.tx().engine(), caller.workspace, id).await?;
    Destination::folder(caller, id, found)
}

async fn check_move(change: &mut Change, folder: &Folder, parent: &Destination) -> Result<(), Error> {
    if parent.folders.contains(&folder.id) {
        let message = "a folder cannot be moved into itself or a folder below it";
        return Err(Error::invalid("parentId", "cycle", message));
    }
    let height = store::folders::height(change.tx(), folder.workspace_id, folder.id).await?;
    if parent.folders.len() as u64 + height > MAX_DEPTH as u64 {
        return Err(too_deep());
    }
    Ok(())
}

fn too_deep() -> Error {
    Error::invalid("parentId", "out_of_range", format!("folders nest at most {MAX_DEPTH} levels deep"))
}

/// The validated name and parent.
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
    checks.mask(&patch.unknown_fields);
    if let Some(name) = &patch.name {
        checks.name(name);
    }
    let parent_id = patch.parent_id.map(|parent| checks.optional_id("parentId", parent.as_deref()));
    checks.finish()?;
    Ok((patch.name, parent_id))
}

/// A text that is no id is not found.
pub(crate) fn parse(id: &str) -> Result<FolderId, Error> {
    id.parse().map_err(|_| Error::no_folder(id))
}
