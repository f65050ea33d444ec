//! The rules of files (spec 2.1, 4.1).

pub(crate) mod many;
mod names;
mod selection;
mod tags;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{FileId, FolderId};

pub(crate) use self::selection::{FileSelection, InFolder, checked_tags};
pub(crate) use self::tags::TagChange;
use crate::Error;
use crate::change::Change;
use crate::checks::{Checks, part_of_name};
use crate::context::Context;
use crate::folders::{self, Destination};
use crate::model::{
    Activity, Author, Body, File, FileType, FileVersion, Former, Growth, Operation, Page, PageRequest,
    Written, fold,
};
use crate::scope::Caller;
use crate::store;
use crate::store::page::ListScope;

const DEFAULT_FOUND: u32 = 50;
const MAX_FOUND: u32 = 1_000;

/// The fields of a new file.
#[derive(Debug, Clone)]
pub(crate) struct FileDraft {
    pub(crate) name: String,
    pub(crate) content: String,
    /// Absent when the caller gave no valid type.
    pub(crate) file_type: Option<FileType>,
    pub(crate) folder_id: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) description: Option<String>,
}

/// An update of a file: absent fields stay as they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilePatch {
    pub(crate) name: Option<String>,
    pub(crate) content: Option<String>,
    /// `Some(None)` is the root.
    pub(crate) folder_id: Option<Option<String>>,
    pub(crate) tags: Option<Vec<String>>,
    /// `Some(None)` clears it.
    pub(crate) description: Option<Option<String>>,
    /// Names in the mask that are no field.
    pub(crate) unknown_fields: Vec<String>,
    /// The precondition: the content hash is one of these; empty: none.
    pub(crate) if_content_hash: Vec<String>,
}

/// The rules of files on a store.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    context: Context,
}

impl Files {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Creates a file.
    pub(crate) async fn create(&self, caller: &Caller, draft: FileDraft) -> Result<Written<File>, Error> {
        let mut checked = check_draft(draft)?;
        let body = Body::of(std::mem::take(&mut checked.content)).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        let file = self.create_in(&mut change, caller, self.context.ids.next(), checked, &body).await?;
        change.commit_with(file).await
    }

    /// [`Self::create`] as part of a larger change.
    pub(crate) async fn create_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        id: FileId,
        draft: CheckedFileDraft,
        body: &Body,
    ) -> Result<File, Error> {
        let destination = folders::destination(change, caller, draft.folder_id).await?;
        let now = change.now();
        let file = File {
            id,
            workspace_id: caller.workspace,
            path: destination.path_of(&draft.name),
            folders: destination.folders,
            name: draft.name,
            description: draft.description,
            file_type: draft.file_type,
            tags: draft.tags,
            size_bytes: body.size_bytes,
            content_hash: body.hash.clone(),
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let bytes = store::bodies::put(change.tx(), caller.workspace, body).await?;
        change.grow(Growth { files: 1, ..Growth::more_bytes(bytes) });
        let author = Author::of_content(&caller.principal);
        store::files::insert(change.tx(), &file, &fold(&file.name), &author).await?;
        change.note(activity_of(Operation::Create, &file).versions(None, Some(file.version)));
        change.publish_upsert(Kind::File, file.id);
        Ok(file)
    }

    /// A file with its content.
    pub(crate) async fn get(&self, caller: &Caller, id: &str) -> Result<(File, String), Error> {
        let file_id = parse(id)?;
        let found = store::files::get_with_body(&self.context.db, caller.workspace, file_id).await?;
        let (file, body) = found.ok_or_else(|| Error::no_file(id))?;
        caller.require("file", id, &file.folders)?;
        Ok((file, body.into_text()?))
    }

    /// Files without content in the order of name, then id; for a folder-scoped caller only those in the scope.
    pub(crate) async fn list(
        &self,
        caller: &Caller,
        wanted: impl Into<FileSelection>,
        request: PageRequest,
    ) -> Result<Page<File>, Error> {
        let FileSelection { folder, tags } = wanted.into();
        let tags = checked_tags(tags)?;
        let scope = self.list_scope(caller, folder).await?;
        let db = &self.context.db;
        let workspace = caller.workspace;
        let _permit = db.read_permit(workspace).await?;
        let files =
            store::files::list(db, workspace, &scope, &tags, request.after.as_ref(), request.fetch()).await?;
        let total = match request.known_total(files.len()) {
            Some(total) => total,
            None => store::files::count(db, workspace, &scope, &tags).await?,
        };
        Ok(request.page(files, total, |file| (file.name.clone(), file.id.to_string())))
    }

    async fn list_scope(&self, caller: &Caller, folder: Option<InFolder>) -> Result<ListScope, Error> {
        let (folder_id, is_recursive) = match folder {
            None => (None, true),
            Some(folder) => (folder.folder_id, folder.is_recursive),
        };
        let Some(text) = folder_id else {
            return Ok(match (caller.listed(), is_recursive) {
                (None, true) => ListScope::All,
                (None, false) => ListScope::Root,
                (Some(listed), true) => ListScope::Below(listed.to_vec()),
                // The root is outside of every folder scope.
                (Some(_), false) => ListScope::Below(Vec::new()),
            });
        };
        let id = folders::readable(&self.context.db, caller, "folderId", &text).await?;
        Ok(if is_recursive { ListScope::Below(vec![id]) } else { ListScope::In(id) })
    }

    /// Files whose name contains a text, case-insensitively: exact matches first, then prefixes.
    pub(crate) async fn search(
        &self,
        caller: &Caller,
        query: &str,
        folder_id: Option<&str>,
        limit: u32,
        tags: Vec<String>,
    ) -> Result<(Vec<File>, u64), Error> {
        let tags = checked_tags(tags)?;
        let folded = part_of_name(query)?;
        let limit = match limit {
            0 => DEFAULT_FOUND,
            some => some.min(MAX_FOUND),
        };
        let below = match folder_id {
            Some(text) => Some(vec![folders::readable(&self.context.db, caller, "folderId", text).await?]),
            None => caller.listed().map(<[FolderId]>::to_vec),
        };
        let (db, workspace) = (&self.context.db, caller.workspace);
        // The in-memory names have no tags.
        if tags.is_empty()
            && let Some(found) =
                names::search(&self.context, workspace, &folded, below.as_deref(), limit).await?
        {
            return Ok(found);
        }
        let _permit = db.read_permit(workspace).await?;
        let limit = i64::from(limit);
        Ok(store::files::search(db, workspace, &folded, below.as_deref(), &tags, limit).await?)
    }

    /// Updates a file. An update without effect keeps version and feed and returns the feed head, which is not before
    /// the write of the current state.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        id: &str,
        patch: FilePatch,
    ) -> Result<Written<File>, Error> {
        let file_id = parse(id)?;
        let mut checked = check(patch)?;
        let body = match checked.content.take() {
            Some(content) => Some(Body::of(content).await?),
            None => None,
        };
        let mut change = Change::begin(&self.context, caller).await?;
        let file = self.update_in(&mut change, caller, file_id, checked, body.as_ref()).await?;
        change.commit_with(file).await
    }

    /// [`Self::update`] as part of a larger change.
    pub(crate) async fn update_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        file_id: FileId,
        checked: CheckedFilePatch,
        body: Option<&Body>,
    ) -> Result<File, Error> {
        // Lock order: the folder before the file, see store::folders::lock_shared.
        let target = match checked.folder_id {
            Some(folder_id) => Some(folders::destination(change, caller, folder_id).await?),
            None => None,
        };
        let before = locked(change, caller, file_id).await?;
        if !checked.if_content_hash.is_empty() && !checked.if_content_hash.contains(&before.content_hash) {
            return Err(Error::VersionConflict { id: file_id.to_string(), actual: before.content_hash });
        }

        let mut file = before.clone();
        file.name = checked.name.unwrap_or(file.name);
        file.tags = checked.tags.unwrap_or(file.tags);
        file.description = checked.description.unwrap_or(file.description);
        if let Some(body) = body {
            file.size_bytes = body.size_bytes;
            file.content_hash.clone_from(&body.hash);
        }
        let destination = target.unwrap_or_else(|| Destination::holding(&before.path, &before.folders));
        file.path = destination.path_of(&file.name);
        file.folders = destination.folders;
        if file == before {
            return Ok(file);
        }
        if let Some(body) = body.filter(|body| body.hash != before.content_hash) {
            let bytes = store::bodies::put(change.tx(), caller.workspace, body).await?;
            change.grow(Growth::more_bytes(bytes));
        }
        file.version += 1;
        file.updated_at = change.now();
        store::files::update(change.tx(), &file, &fold(&file.name)).await?;
        if file.content_hash != before.content_hash {
            store::versions::insert(change.tx(), caller.workspace, &version_of(&file, caller)).await?;
        }
        let update = activity_of(Operation::Update, &file).versions(Some(before.version), Some(file.version));
        change.note(Activity { former: former(&before, &file), ..update });
        change.publish_upsert(Kind::File, file.id);
        Ok(file)
    }

    /// Moves a file to trash.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let file_id = parse(id)?;
        let mut change = Change::begin(&self.context, caller).await?;
        self.delete_in(&mut change, caller, file_id).await?;
        Ok(change.commit().await?.last)
    }

    /// [`Self::delete`] as part of a larger change.
    pub(crate) async fn delete_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        file_id: FileId,
    ) -> Result<(), Error> {
        let file = locked(change, caller, file_id).await?;
        let folder_id = file.folder_id();
        let deletion =
            change.deletion(caller, Kind::File, file.id, file.name, file.path).in_folder(folder_id);
        change.trash(&deletion).await
    }
}

async fn locked(change: &mut Change, caller: &Caller, id: FileId) -> Result<File, Error> {
    let found = store::files::lock(change.tx(), caller.workspace, id).await?;
    let file = found.ok_or_else(|| Error::no_file(id))?;
    caller.require("file", id, &file.folders)?;
    Ok(file)
}

fn activity_of(operation: Operation, file: &File) -> Activity {
    Activity::of(operation, Kind::File, file.id, &file.name).at(&file.path, file.folder_id())
}

/// The fields that an update changes, with their previous values.
fn former(before: &File, after: &File) -> Vec<Former> {
    let changes = [
        (before.content_hash != after.content_hash).then_some(Former::Content),
        (before.name != after.name).then(|| Former::Name(before.name.clone())),
        (before.folder_id() != after.folder_id()).then(|| Former::Folder(before.folder_id())),
        (before.tags != after.tags).then(|| Former::Tags(before.tags.clone())),
        (before.description != after.description).then(|| Former::Description(before.description.clone())),
    ];
    changes.into_iter().flatten().collect()
}

/// A validated draft.
#[derive(Debug)]
pub(crate) struct CheckedFileDraft {
    name: String,
    pub(crate) content: String,
    file_type: FileType,
    folder_id: Option<FolderId>,
    tags: Vec<String>,
    description: Option<String>,
}

pub(crate) fn check_draft(draft: FileDraft) -> Result<CheckedFileDraft, Error> {
    let mut checks = Checks::default();
    checks.name(&draft.name);
    checks.content(&draft.content);
    if draft.file_type.is_none() {
        checks.violation("fileType", "required", "give a file type: markdown, json, yaml or text");
    }
    let tags = checks.tags(draft.tags);
    let description = checks.description(draft.description);
    let folder_id = checks.optional_id("folderId", draft.folder_id.as_deref());
    checks.finish()?;
    let file_type = draft.file_type.unwrap_or(FileType::Text);
    let (name, content) = (draft.name, draft.content);
    Ok(CheckedFileDraft { name, content, file_type, folder_id, tags, description })
}

/// A validated patch.
#[derive(Debug)]
pub(crate) struct CheckedFilePatch {
    name: Option<String>,
    pub(crate) content: Option<String>,
    folder_id: Option<Option<FolderId>>,
    tags: Option<Vec<String>>,
    description: Option<Option<String>>,
    if_content_hash: Vec<String>,
}

pub(crate) fn check(patch: FilePatch) -> Result<CheckedFilePatch, Error> {
    let mut checks = Checks::default();
    checks.mask(&patch.unknown_fields);
    if let Some(name) = &patch.name {
        checks.name(name);
    }
    if let Some(content) = &patch.content {
        checks.content(content);
    }
    let tags = patch.tags.map(|tags| checks.tags(tags));
    let description = patch.description.map(|text| checks.description(text));
    let folder_id = patch.folder_id.map(|folder| checks.optional_id("folderId", folder.as_deref()));
    checks.finish()?;
    let (name, content, if_content_hash) = (patch.name, patch.content, patch.if_content_hash);
    Ok(CheckedFilePatch { name, content, folder_id, tags, description, if_content_hash })
}

/// A text that is no id is not found.
pub(crate) fn parse(id: &str) -> Result<FileId, Error> {
    id.parse().map_err(|_| Error::no_file(id))
}

/// The current state of a file as a version by the caller.
fn version_of(file: &File, caller: &Caller) -> FileVersion {
    FileVersion {
        file_id: file.id,
        version: file.version,
        content_hash: file.content_hash.clone(),
        size_bytes: file.size_bytes,
        created_at: file.updated_at,
        author: Some(Author::of_content(&caller.principal)),
    }
}
