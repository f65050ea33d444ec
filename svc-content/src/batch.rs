//! The rules of batches: atomic batches of writes, and bulk actions on items, where each item succeeds or fails by itself.

mod items;

use cairn_chassis::feed::{Kind, Positions};
use cairn_chassis::identity::Permission;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::{FileId, FolderId, RecordId};
use uuid::Uuid;

pub(crate) use self::items::{FileMatch, ItemAction, ItemSelection, ItemsChanged, Skipped};
use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::files::{self, Files};
use crate::folders::{self, Folders};
use crate::model::{Body, File, Folder, Growth, States, StatesRequest};
use crate::records::{CheckedRecord, RecordWrite, Records, RecordsOfBatch};
use crate::scope::Caller;
use crate::versions::Versions;
use crate::{store, trash};

const MAX_WRITES: usize = 1_000;
const MAX_CONTENT_BYTES: usize = 24 * 1024 * 1024;
/// Items per request of states.
const MAX_STATES: usize = 20_000;
/// The prefix of a reference to an earlier write of the batch by its index, in place of a folder id.
const WRITE_REFERENCE: char = '#';

/// One write with its preconditions.
#[derive(Debug, Clone)]
pub(crate) struct ConditionalWrite {
    pub(crate) write: Write,
    /// The id of a created item; generated if absent.
    pub(crate) new_id: Option<String>,
    /// The expected version of the file or record.
    pub(crate) if_version: Option<u64>,
    /// Whether a folder must be empty to be deleted.
    pub(crate) if_empty: bool,
    /// New tags for a file whose version is restored; versions do not store tags.
    pub(crate) tags: Option<Vec<String>>,
}

impl From<Write> for ConditionalWrite {
    fn from(write: Write) -> Self {
        Self { write, new_id: None, if_version: None, if_empty: false, tags: None }
    }
}

/// The operation of one write.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    CreateFile(files::FileDraft),
    UpdateFile(String, files::FilePatch),
    DeleteFile(String),
    CreateFolder(folders::FolderDraft),
    UpdateFolder(String, folders::FolderPatch),
    DeleteFolder(String),
    /// Restores the content of an earlier version of a file.
    RestoreVersion(String, u64),
    /// Restores an item from trash.
    RestoreItem(Kind, String),
    /// A write of a record in the database with this id.
    Record(String, RecordWrite),
}

impl Write {
    /// The permission that it requires.
    pub(crate) const fn needs(&self) -> Permission {
        match self {
            Self::DeleteFile(_) | Self::DeleteFolder(_) | Self::Record(_, RecordWrite::Delete(_)) => {
                Permission::Delete
            }
            Self::RestoreItem(kind, _) => trash::to_restore(*kind),
            Self::CreateFile(_)
            | Self::UpdateFile(..)
            | Self::CreateFolder(_)
            | Self::UpdateFolder(..)
            | Self::RestoreVersion(..)
            | Self::Record(..) => Permission::Write,
        }
    }

    fn content_bytes(&self) -> usize {
        match self {
            Self::CreateFile(draft) => draft.content.len(),
            Self::UpdateFile(_, patch) => patch.content.as_ref().map_or(0, String::len),
            Self::Record(_, write) => write.bytes(),
            Self::DeleteFile(_)
            | Self::CreateFolder(_)
            | Self::UpdateFolder(..)
            | Self::DeleteFolder(_)
            | Self::RestoreVersion(..)
            | Self::RestoreItem(..) => 0,
        }
    }

    /// The folder id in the request, with its field name.
    fn folder(&mut self) -> Option<(&'static str, &mut String)> {
        match self {
            Self::CreateFile(draft) => draft.folder_id.as_mut().map(|id| ("folderId", id)),
            Self::UpdateFile(_, patch) => patch.folder_id.as_mut()?.as_mut().map(|id| ("folderId", id)),
            Self::CreateFolder(draft) => draft.parent_id.as_mut().map(|id| ("parentId", id)),
            Self::UpdateFolder(_, patch) => patch.parent_id.as_mut()?.as_mut().map(|id| ("parentId", id)),
            Self::DeleteFile(_)
            | Self::DeleteFolder(_)
            | Self::RestoreVersion(..)
            | Self::RestoreItem(..)
            | Self::Record(..) => None,
        }
    }

    const fn creates(&self) -> bool {
        matches!(self, Self::CreateFile(_) | Self::CreateFolder(_) | Self::Record(_, RecordWrite::Create(_)))
    }
}

/// The outcome of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    File(File),
    Folder(Folder),
    /// A record, and its version unless it was deleted.
    Record(RecordId, Option<u64>),
    Deleted(String),
    /// The id of an item that was restored from trash.
    Restored(String),
}

/// The outcome of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchOutcome {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) positions: Positions,
}

/// A validated write.
enum CheckedWrite {
    CreateFile(FileId, files::CheckedFileDraft, Body),
    UpdateFile(FileId, files::CheckedFilePatch, Option<Body>, Option<u64>),
    DeleteFile(FileId, Option<u64>),
    CreateFolder(FolderId, String, Option<FolderId>),
    UpdateFolder(FolderId, folders::CheckedFolderPatch),
    DeleteFolder(FolderId, bool),
    RestoreItem(Kind, String),
    Record(Box<CheckedRecord>),
}

/// The rules of batches on a store.
#[derive(Debug, Clone)]
pub(crate) struct Batches {
    context: Context,
    files: Files,
    folders: Folders,
    versions: Versions,
    records: Records,
}

impl Batches {
    pub(crate) fn new(context: Context) -> Self {
        let (files, folders) = (Files::new(context.clone()), Folders::new(context.clone()));
        let (versions, records) = (Versions::new(context.clone()), Records::new(context.clone()));
        Self { files, folders, versions, records, context }
    }

    /// Applies all writes atomically; on failure reports all violations of all writes.
    pub(crate) async fn write(
        &self,
        caller: &Caller,
        writes: impl IntoIterator<Item = impl Into<ConditionalWrite>>,
    ) -> Result<BatchOutcome, Error> {
        let writes: Vec<ConditionalWrite> = writes.into_iter().map(Into::into).collect();
        check_size(&writes)?;
        let mut of_records = RecordsOfBatch::default();
        let checked = self.check(caller, writes, &mut of_records).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        // Batches and all changes of the tree are serialized by this lock, so that they cannot deadlock.
        store::folders::lock_tree(change.tx(), caller.workspace).await?;
        of_records.lock_unchanged(&mut change).await?;
        store_bodies(&mut change, &checked).await?;

        let mut outcomes = Vec::with_capacity(checked.len());
        let mut violations = Vec::new();
        for (place, write) in checked.into_iter().enumerate() {
            match self.apply(&mut change, caller, write).await {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => violations.extend(violations_of(place, error)?),
            }
        }
        if !violations.is_empty() {
            change.rollback().await?;
            return Err(Error::Invalid(violations));
        }
        let positions = change.commit().await?;
        Ok(BatchOutcome { outcomes, positions })
    }

    /// The states of items, including those in trash.
    pub(crate) async fn states(&self, caller: &Caller, request: &StatesRequest) -> Result<States, Error> {
        if caller.listed().is_some() {
            let message = "what is in trash is told to workspace-wide tokens only";
            return Err(Error::OutOfScope(message.into()));
        }
        if request.count() > MAX_STATES {
            let message = wording::at_most(MAX_STATES, Unit::Entries);
            return Err(Error::invalid("fileIds", "too_long", message));
        }
        let db = &self.context.db;
        let _permit = db.read_permit(caller.workspace).await?;
        let workspace = caller.workspace;
        Ok(States {
            files: store::states::files(db, workspace, &request.files).await?,
            folders: store::states::folders(db, workspace, &request.folders).await?,
            databases: store::states::databases(db, workspace, &request.databases).await?,
            records: store::states::records(db, workspace, &request.records).await?,
            assets: store::states::assets(db, workspace, &request.assets).await?,
        })
    }

    async fn check(
        &self,
        caller: &Caller,
        writes: Vec<ConditionalWrite>,
        of_records: &mut RecordsOfBatch,
    ) -> Result<Vec<CheckedWrite>, Error> {
        let ids = self.ids(&writes)?;
        let makes_folder: Vec<bool> =
            writes.iter().map(|conditional| matches!(conditional.write, Write::CreateFolder(_))).collect();
        let mut checked = Vec::with_capacity(writes.len());
        let mut violations = Vec::new();
        for (place, (mut conditional, id)) in writes.into_iter().zip(&ids).enumerate() {
            let earlier = |index: usize| {
                let is_folder = index < place && makes_folder.get(index) == Some(&true);
                ids.get(index).filter(|_| is_folder).map(Uuid::to_string)
            };
            let checking = match resolve(&mut conditional.write, earlier) {
                Ok(()) => self.check_one(caller, conditional, *id, of_records).await,
                Err(error) => Err(error),
            };
            match checking {
                Ok(write) => checked.push(write),
                Err(error) => violations.extend(violations_of(place, error)?),
            }
        }
        if violations.is_empty() { Ok(checked) } else { Err(Error::Invalid(violations)) }
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
            CheckedWrite::UpdateFile(id, patch, body, version) => {
                require_version(change, caller, id, version).await?;
                Ok(Outcome::File(self.files.update_in(change, caller, id, patch, body.as_ref()).await?))
            }
            CheckedWrite::DeleteFile(id, version) => {
                require_version(change, caller, id, version).await?;
                self.files.delete_in(change, caller, id).await?;
                Ok(Outcome::Deleted(id.to_string()))
            }
            CheckedWrite::CreateFolder(id, name, parent) => {
                Ok(Outcome::Folder(self.folders.create_in(change, caller, id, name, parent).await?))
            }
            CheckedWrite::UpdateFolder(id, patch) => {
                Ok(Outcome::Folder(self.folders.update_in(change, caller, id, patch).await?))
            }
            CheckedWrite::DeleteFolder(id, if_empty) => {
                if if_empty && store::states::children(change.tx(), caller.workspace, id).await? > 0 {
                    return Err(Error::invalid("ifEmpty", "not_empty", "something stands in this folder"));
                }
                self.folders.delete_in(change, caller, id).await?;
                Ok(Outcome::Deleted(id.to_string()))
            }
            CheckedWrite::RestoreItem(kind, id) => {
                trash::restore_in(change, caller, kind, &id).await?;
                Ok(Outcome::Restored(id))
            }
            CheckedWrite::Record(checked) => {
                let (id, version) = self.records.apply_in(change, caller, *checked).await?;
                Ok(Outcome::Record(id, version))
            }
        }
    }

    /// The ids of created items: those in the request, otherwise generated.
    fn ids(&self, writes: &[ConditionalWrite]) -> Result<Vec<Uuid>, Error> {
        let mut ids = Vec::with_capacity(writes.len());
        let mut violations = Vec::new();
        for (place, conditional) in writes.iter().enumerate() {
            let requested = conditional.new_id.as_ref().filter(|_| conditional.write.creates());
            match requested.map(|id| id.parse::<FileId>()) {
                None => ids.push(self.context.ids.next()),
                Some(Ok(id)) => ids.push(id.0),
                Some(Err(_)) => {
                    let path = format!("writes[{place}].newId");
                    violations.push(Violation::new(path, "invalid", wording::ID));
                }
            }
        }
        if violations.is_empty() { Ok(ids) } else { Err(Error::Invalid(violations)) }
    }

    async fn check_one(
        &self,
        caller: &Caller,
        conditional: ConditionalWrite,
        id: Uuid,
        of_records: &mut RecordsOfBatch,
    ) -> Result<CheckedWrite, Error> {
        let (version, if_empty) = (conditional.if_version, conditional.if_empty);
        Ok(match conditional.write {
            Write::CreateFile(draft) => {
                let mut draft = files::check_draft(draft)?;
                let body = Body::of(std::mem::take(&mut draft.content)).await?;
                CheckedWrite::CreateFile(FileId(id), draft, body)
            }
            Write::UpdateFile(id, patch) => check_update(&id, patch, version).await?,
            Write::DeleteFile(id) => CheckedWrite::DeleteFile(files::parse(&id)?, version),
            Write::CreateFolder(draft) => {
                let (name, parent) = folders::check_draft(draft)?;
                CheckedWrite::CreateFolder(FolderId(id), name, parent)
            }
            Write::UpdateFolder(id, patch) => {
                CheckedWrite::UpdateFolder(folders::parse(&id)?, folders::check(patch)?)
            }
            Write::DeleteFolder(id) => CheckedWrite::DeleteFolder(folders::parse(&id)?, if_empty),
            Write::RestoreVersion(id, wanted) => {
                // Versions live as long as their file, so the content read here is still valid when it is written.
                let content = self.versions.content_as_of(caller, &id, wanted).await?;
                let patch = files::FilePatch {
                    content: Some(content),
                    tags: conditional.tags,
                    ..files::FilePatch::default()
                };
                check_update(&id, patch, version).await?
            }
            Write::RestoreItem(kind, id) => CheckedWrite::RestoreItem(kind, id),
            Write::Record(database, write) => {
                let database = of_records.database(&self.context, caller, &database).await?;
                let checked =
                    self.records.check_write(caller, database, write, RecordId(id), version).await?;
                CheckedWrite::Record(Box::new(checked))
            }
        })
    }
}

async fn check_update(
    id: &str,
    patch: files::FilePatch,
    version: Option<u64>,
) -> Result<CheckedWrite, Error> {
    let id = files::parse(id)?;
    let mut patch = files::check(patch)?;
    let body = match patch.content.take() {
        Some(content) => Some(Body::of(content).await?),
        None => None,
    };
    Ok(CheckedWrite::UpdateFile(id, patch, body, version))
}

/// Locks a file, and checks the version precondition.
async fn require_version(
    change: &mut Change,
    caller: &Caller,
    id: FileId,
    version: Option<u64>,
) -> Result<(), Error> {
    let Some(version) = version else { return Ok(()) };
    let found = store::files::lock(change.tx(), caller.workspace, id).await?;
    let file = found.ok_or_else(|| Error::no_file(id))?;
    if file.version == version {
        return Ok(());
    }
    Err(Error::VersionConflict { id: id.to_string(), actual: file.content_hash })
}

/// Stores the bodies in order of hash, which is the lock order that their removal uses, too.
async fn store_bodies(change: &mut Change, writes: &[CheckedWrite]) -> Result<(), Error> {
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

/// Checks the number of writes, before they are decoded.
pub(crate) fn check_count(writes: usize) -> Result<(), Error> {
    if writes > MAX_WRITES {
        let message = format!("{}; this batch has {writes}", wording::at_most(MAX_WRITES, Unit::Writes));
        return Err(Error::invalid("writes", "too_long", message));
    }
    Ok(())
}

fn check_size(writes: &[ConditionalWrite]) -> Result<(), Error> {
    check_count(writes.len())?;
    let bytes: usize = writes.iter().map(|conditional| conditional.write.content_bytes()).sum();
    if bytes > MAX_CONTENT_BYTES {
        let message = format!(
            "{} of content; this batch has {bytes}",
            wording::at_most(MAX_CONTENT_BYTES, Unit::Bytes)
        );
        return Err(Error::invalid("writes", "too_long", message));
    }
    Ok(())
}

/// Replaces a reference to an earlier write by the id of the folder that it creates.
fn resolve(write: &mut Write, earlier: impl Fn(usize) -> Option<String>) -> Result<(), Error> {
    let Some((path, id)) = write.folder() else { return Ok(()) };
    let Some(index) = id.strip_prefix(WRITE_REFERENCE) else { return Ok(()) };
    let found = index.parse().ok().and_then(earlier);
    *id = found.ok_or_else(|| {
        let message = "'#' and an index name an earlier write of this batch that makes a folder";
        Error::invalid(path, "invalid", message)
    })?;
    Ok(())
}

const fn body_of(write: &CheckedWrite) -> Option<&Body> {
    match write {
        CheckedWrite::CreateFile(_, _, body) => Some(body),
        CheckedWrite::UpdateFile(_, _, body, _) => body.as_ref(),
        CheckedWrite::DeleteFile(..)
        | CheckedWrite::CreateFolder(..)
        | CheckedWrite::UpdateFolder(..)
        | CheckedWrite::DeleteFolder(..)
        | CheckedWrite::RestoreItem(..)
        | CheckedWrite::Record(_) => None,
    }
}

/// The violations of one write, with paths below its index; an error that is not the caller's fault is returned as such.
fn violations_of(place: usize, error: Error) -> Result<Vec<Violation>, Error> {
    let path = format!("writes[{place}]");
    let code = if matches!(error, Error::NotFound { .. }) {
        "not_found"
    } else if matches!(error, Error::OutOfScope(_)) {
        "out_of_scope"
    } else if matches!(error, Error::VersionConflict { .. } | Error::RecordConflict { .. }) {
        "version_conflict"
    } else if matches!(error, Error::WentAlong { .. }) {
        "went_along"
    } else if let Error::Invalid(violations) | Error::NoTargets(violations) = error {
        let under = |broken: Violation| Violation { path: format!("{path}.{}", broken.path), ..broken };
        return Ok(violations.into_iter().map(under).collect());
    } else {
        return Err(error);
    };
    Ok(vec![Violation::new(path, code, error.to_string())])
}
