//! The rules of batches: many writes in one transaction, all of them or none.

use cairn_chassis::feed::Positions;
use cairn_chassis::identity::Permission;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{FileId, FolderId};
use uuid::Uuid;

use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::files::{self, Files};
use crate::folders::{self, Folders};
use crate::model::{Body, File, Folder, Growth};
use crate::scope::Caller;
use crate::store;

const MAX_WRITES: usize = 1_000;
const MAX_CONTENT_BYTES: usize = 24 * 1024 * 1024;
/// Marks the index of an earlier write where an id of a folder could stand.
const EARLIER: char = '#';

/// One write.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    CreateFile(files::FileDraft),
    UpdateFile(String, files::FilePatch),
    DeleteFile(String),
    CreateFolder(folders::FolderDraft),
    UpdateFolder(String, folders::FolderPatch),
    DeleteFolder(String),
}

impl Write {
    /// What it takes.
    pub(crate) const fn needs(&self) -> Permission {
        match self {
            Self::DeleteFile(_) | Self::DeleteFolder(_) => Permission::Delete,
            Self::CreateFile(_) | Self::UpdateFile(..) | Self::CreateFolder(_) | Self::UpdateFolder(..) => {
                Permission::Write
            }
        }
    }

    fn content_bytes(&self) -> usize {
        match self {
            Self::CreateFile(draft) => draft.content.len(),
            Self::UpdateFile(_, patch) => patch.content.as_ref().map_or(0, String::len),
            Self::DeleteFile(_) | Self::CreateFolder(_) | Self::UpdateFolder(..) | Self::DeleteFolder(_) => 0,
        }
    }

    /// The folder that it names.
    fn folder(&mut self) -> Option<(&'static str, &mut String)> {
        match self {
            Self::CreateFile(draft) => draft.folder_id.as_mut().map(|id| ("folderId", id)),
            Self::UpdateFile(_, patch) => patch.folder_id.as_mut()?.as_mut().map(|id| ("folderId", id)),
            Self::CreateFolder(draft) => draft.parent_id.as_mut().map(|id| ("parentId", id)),
            Self::UpdateFolder(_, patch) => patch.parent_id.as_mut()?.as_mut().map(|id| ("parentId", id)),
            Self::DeleteFile(_) | Self::DeleteFolder(_) => None,
        }
    }
}

/// What became of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    File(File),
    Folder(Folder),
    Deleted(String),
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) positions: Positions,
}

/// A write whose fields obey their rules.
enum CheckedWrite {
    CreateFile(FileId, files::CheckedFileDraft, Body),
    UpdateFile(FileId, files::CheckedFilePatch, Option<Body>),
    DeleteFile(FileId),
    CreateFolder(FolderId, String, Option<FolderId>),
    UpdateFolder(FolderId, folders::CheckedFolderPatch),
    DeleteFolder(FolderId),
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Batches {
    context: Context,
    files: Files,
    folders: Folders,
}

impl Batches {
    pub(crate) fn new(context: Context) -> Self {
        Self { files: Files::new(context.clone()), folders: Folders::new(context.clone()), context }
    }

    /// Carries out all writes, or none and says all that is wrong.
    pub(crate) async fn write(&self, caller: &Caller, writes: Vec<Write>) -> Result<Done, Error> {
        check_size(&writes)?;
        let checked = self.check(writes).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        // Of batches and of all that changes the tree, one at a time: so they cannot deadlock.
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        hold_bodies(&mut change, &checked).await?;

        let mut outcomes = Vec::with_capacity(checked.len());
        let mut wrong = Vec::new();
        for (place, write) in checked.into_iter().enumerate() {
            match self.apply(&mut change, caller, write).await {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => wrong.extend(violations_of(place, error)?),
            }
        }
        if !wrong.is_empty() {
            change.rollback().await?;
            return Err(Error::Invalid(wrong));
        }
        let positions = change.commit().await?;
        Ok(Done { outcomes, positions })
    }

    async fn check(&self, writes: Vec<Write>) -> Result<Vec<CheckedWrite>, Error> {
        let ids: Vec<Uuid> = writes.iter().map(|_| self.context.ids.next()).collect();
        let makes_folder: Vec<bool> =
            writes.iter().map(|write| matches!(write, Write::CreateFolder(_))).collect();
        let mut checked = Vec::with_capacity(writes.len());
        let mut wrong = Vec::new();
        for (place, (mut write, id)) in writes.into_iter().zip(&ids).enumerate() {
            let earlier = |index: usize| {
                let is_folder = index < place && makes_folder.get(index) == Some(&true);
                ids.get(index).filter(|_| is_folder).map(Uuid::to_string)
            };
            let checking = match resolve(&mut write, earlier) {
                Ok(()) => check_one(write, *id).await,
                Err(error) => Err(error),
            };
            match checking {
                Ok(write) => checked.push(write),
                Err(error) => wrong.extend(violations_of(place, error)?),
            }
        }
        if wrong.is_empty() { Ok(checked) } else { Err(Error::Invalid(wrong)) }
    }

    async fn apply(
        &self,
        change: &mut Change,
        caller: &Caller,
        write: CheckedWrite,
    ) -> Result<Outcome, Error> {
        match write {
            CheckedWrite::CreateFile(id, draft, body) => {
                Ok(Outcome::File(self.files.create_in(change, caller, id, draft, &body).await?))
            }
            CheckedWrite::UpdateFile(id, patch, body) => {
                Ok(Outcome::File(self.files.update_in(change, caller, id, patch, body.as_ref()).await?))
            }
            CheckedWrite::DeleteFile(id) => {
                self.files.delete_in(change, caller, id).await?;
                Ok(Outcome::Deleted(id.to_string()))
            }
            CheckedWrite::CreateFolder(id, name, parent) => {
                Ok(Outcome::Folder(self.folders.create_in(change, caller, id, name, parent).await?))
            }
            CheckedWrite::UpdateFolder(id, patch) => {
                Ok(Outcome::Folder(self.folders.update_in(change, caller, id, patch).await?))
            }
            CheckedWrite::DeleteFolder(id) => {
                self.folders.delete_in(change, caller, id).await?;
                Ok(Outcome::Deleted(id.to_string()))
            }
        }
    }
}

/// In the order of their hashes, as whoever removes bodies takes them.
async fn hold_bodies(change: &mut Change, writes: &[CheckedWrite]) -> Result<(), Error> {
    let mut bodies: Vec<&Body> = writes.iter().filter_map(body_of).collect();
    bodies.sort_by(|one, other| one.hash.cmp(&other.hash));
    bodies.dedup_by(|one, other| one.hash == other.hash);
    let workspace = change.workspace();
    for body in bodies {
        let bytes = store::bodies::put(change.tx(), workspace, body).await?;
        change.grow(Growth::more_bytes(bytes));
    }
    Ok(())
}

/// Checked before anything is made of the writes.
pub(crate) fn check_count(writes: usize) -> Result<(), Error> {
    if writes > MAX_WRITES {
        let message = format!("{}; this batch has {writes}", wording::at_most(MAX_WRITES, Unit::Writes));
        return Err(Error::invalid("writes", "too_long", message));
    }
    Ok(())
}

fn check_size(writes: &[Write]) -> Result<(), Error> {
    check_count(writes.len())?;
    let bytes: usize = writes.iter().map(Write::content_bytes).sum();
    if bytes > MAX_CONTENT_BYTES {
        let message = format!(
            "{} of content; this batch has {bytes}",
            wording::at_most(MAX_CONTENT_BYTES, Unit::Bytes)
        );
        return Err(Error::invalid("writes", "too_long", message));
    }
    Ok(())
}

/// Puts the id of the folder that an earlier write makes where the write names that one by its index.
fn resolve(write: &mut Write, earlier: impl Fn(usize) -> Option<String>) -> Result<(), Error> {
    let Some((path, id)) = write.folder() else { return Ok(()) };
    let Some(index) = id.strip_prefix(EARLIER) else { return Ok(()) };
    let found = index.parse().ok().and_then(earlier);
    *id = found.ok_or_else(|| {
        let message = "'#' and an index name an earlier write of this batch that makes a folder";
        Error::invalid(path, "invalid", message)
    })?;
    Ok(())
}

async fn check_one(write: Write, id: Uuid) -> Result<CheckedWrite, Error> {
    Ok(match write {
        Write::CreateFile(draft) => {
            let mut draft = files::check_draft(draft)?;
            let body = Body::of(std::mem::take(&mut draft.content)).await?;
            CheckedWrite::CreateFile(FileId(id), draft, body)
        }
        Write::UpdateFile(id, patch) => {
            let id = files::parse(&id)?;
            let mut patch = files::check(patch)?;
            let body = match patch.content.take() {
                Some(content) => Some(Body::of(content).await?),
                None => None,
            };
            CheckedWrite::UpdateFile(id, patch, body)
        }
        Write::DeleteFile(id) => CheckedWrite::DeleteFile(files::parse(&id)?),
        Write::CreateFolder(draft) => {
            let (name, parent) = folders::check_draft(draft)?;
            CheckedWrite::CreateFolder(FolderId(id), name, parent)
        }
        Write::UpdateFolder(id, patch) => {
            CheckedWrite::UpdateFolder(folders::parse(&id)?, folders::check(patch)?)
        }
        Write::DeleteFolder(id) => CheckedWrite::DeleteFolder(folders::parse(&id)?),
    })
}

const fn body_of(write: &CheckedWrite) -> Option<&Body> {
    match write {
        CheckedWrite::CreateFile(_, _, body) => Some(body),
        CheckedWrite::UpdateFile(_, _, body) => body.as_ref(),
        CheckedWrite::DeleteFile(_)
        | CheckedWrite::CreateFolder(..)
        | CheckedWrite::UpdateFolder(..)
        | CheckedWrite::DeleteFolder(_) => None,
    }
}

/// What is wrong with one write, under its place; what is no fault of the caller stays an error.
fn violations_of(place: usize, error: Error) -> Result<Vec<Violation>, Error> {
    let path = format!("writes[{place}]");
    let code = if matches!(error, Error::NotFound { .. }) {
        "not_found"
    } else if matches!(error, Error::OutOfScope(_)) {
        "out_of_scope"
    } else if matches!(error, Error::VersionConflict { .. }) {
        "version_conflict"
    } else if let Error::Invalid(violations) = error {
        let under = |broken: Violation| Violation { path: format!("{path}.{}", broken.path), ..broken };
        return Ok(violations.into_iter().map(under).collect());
    } else {
        return Err(error);
    };
    Ok(vec![Violation::new(path, code, error.to_string())])
}
