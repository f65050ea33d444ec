//! The rules of the overview (spec 4.12): what a workspace contains; for a folder-scoped caller what its folders
//! contain.

use std::collections::HashSet;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, DocumentId, FileId, FolderId, RecordId};

use crate::Error;
use crate::context::Context;
use crate::databases::Databases;
use crate::folders::Folders;
use crate::memories::Memories;
use crate::model::{Author, Database, File, Folder, Memory, Page, PageRequest, Record};
use crate::scope::Caller;
use crate::store;
use crate::store::overview::Below;
use crate::store::page::ListScope;

/// The maximum number of listed folders, memories and databases; the lists have more.
const MAX_LISTED: u32 = 30;
/// The maximum number of recent changes.
const MAX_CHANGES: usize = 10;
/// How many feed entries are searched for them. A large sync may fill them all, and is then what is recent.
const MAX_LOOKBACK: i64 = 500;
/// The batch size of reading items until there are enough changes.
const READ_BATCH: usize = 40;
/// Counting files below a folder stops here: beyond it only "many" matters, and counting reads the row of each file.
pub(crate) const MAX_COUNTED_FILES: u64 = 100;

/// A folder at the top of what the caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopFolder {
    pub(crate) folder: Folder,
    pub(crate) below: Below,
}

/// A file or record that changed recently, in its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecentChange {
    pub(crate) kind: Kind,
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) folder_id: Option<FolderId>,
    pub(crate) database_id: Option<DatabaseId>,
    pub(crate) version: u64,
    pub(crate) changed_at: Timestamp,
    /// The author of its current content, where known.
    pub(crate) author: Option<Author>,
}

/// What the caller sees of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overview {
    pub(crate) files: u64,
    pub(crate) folders: u64,
    pub(crate) top_folders: Vec<TopFolder>,
    pub(crate) top_folder_count: u64,
    pub(crate) memories: Page<Memory>,
    pub(crate) databases: Page<Database>,
    /// The newest first.
    pub(crate) changes: Vec<RecentChange>,
}

/// The rules of the overview on a store.
#[derive(Debug, Clone)]
pub(crate) struct Overviews {
    context: Context,
}

impl Overviews {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// The overview of what is live.
    pub(crate) async fn get(&self, caller: &Caller) -> Result<Overview, Error> {
        let request = || PageRequest { size: MAX_LISTED, after: None };
        let (memories, databases) = self.lists();
        let ((files, folders), (top_folders, top_folder_count), memories, databases, changes) = tokio::try_join!(
            self.files_and_folders(caller),
            self.top_folders(caller, request()),
            memories.list(caller, request()),
            databases.list(caller, None, request()),
            self.changes(caller),
        )?;
        Ok(Overview { files, folders, top_folders, top_folder_count, memories, databases, changes })
    }

    /// The counts, without the lists.
    pub(crate) async fn counts(&self, caller: &Caller) -> Result<Overview, Error> {
        let one = || PageRequest { size: 1, after: None };
        let (memories, databases) = self.lists();
        let ((files, folders), memories, databases) = tokio::try_join!(
            self.files_and_folders(caller),
            memories.list(caller, one()),
            databases.list(caller, None, one()),
        )?;
        Ok(Overview {
            files,
            folders,
            top_folders: Vec::new(),
            top_folder_count: 0,
            memories: Page { items: Vec::new(), ..memories },
            databases: Page { items: Vec::new(), ..databases },
            changes: Vec::new(),
        })
    }

    fn lists(&self) -> (Memories, Databases) {
        (Memories::new(self.context.clone()), Databases::new(self.context.clone()))
    }

    async fn files_and_folders(&self, caller: &Caller) -> Result<(u64, u64), Error> {
        let (db, workspace) = (&self.context.db, caller.workspace);
        let scope = match caller.listed() {
            None => ListScope::All,
            Some(listed) => ListScope::Below(listed.to_vec()),
        };
        // Each of the lists below takes its own read permit.
        let _permit = db.read_permit(workspace).await?;
        let files = store::files::count(db, workspace, &scope, &[]).await?;
        Ok((files, store::folders::count(db, workspace, &scope).await?))
    }

    async fn top_folders(
        &self,
        caller: &Caller,
        request: PageRequest,
    ) -> Result<(Vec<TopFolder>, u64), Error> {
        let page = match caller.listed() {
            None => Folders::new(self.context.clone()).list(caller, Some(None), request).await?,
            Some(listed) => self.outermost(caller, listed, &request).await?,
        };
        let ids: Vec<FolderId> = page.items.iter().map(|folder| folder.id).collect();
        let limit = i64::try_from(MAX_COUNTED_FILES).unwrap_or(i64::MAX);
        let below = store::overview::below(&self.context.db, caller.workspace, &ids, limit).await?;
        let counted = |folder: Folder| {
            let below = below.get(&folder.id).copied().unwrap_or_default();
            TopFolder { folder, below }
        };
        Ok((page.items.into_iter().map(counted).collect(), page.total))
    }

    /// Those of the listed folders that are below no other listed one.
    async fn outermost(
        &self,
        caller: &Caller,
        listed: &[FolderId],
        request: &PageRequest,
    ) -> Result<Page<Folder>, Error> {
        let mut folders = store::folders::get_many(&self.context.db, caller.workspace, listed).await?;
        folders.retain(|folder| !caller.covers(&folder.folders_above));
        let key = |folder: &Folder| (folder.name.clone(), folder.id.to_string());
        folders.sort_by_cached_key(key);
        let total = u64::try_from(folders.len()).unwrap_or(u64::MAX);
        Ok(request.page(folders, total, key))
    }

    /// Files and records that changed last, live and in scope, the newest first.
    async fn changes(&self, caller: &Caller) -> Result<Vec<RecentChange>, Error> {
        let latest = store::overview::latest(&self.context.db, caller.workspace, MAX_LOOKBACK).await?;
        let mut seen = HashSet::new();
        let items: Vec<(Kind, DocumentId)> = latest
            .into_iter()
            .filter(|item| matches!(item.0, Kind::File | Kind::Record) && seen.insert(*item))
            .collect();
        let mut changes = Vec::new();
        for some in items.chunks(READ_BATCH) {
            changes.extend(self.live(caller, some).await?);
            if changes.len() >= MAX_CHANGES {
                break;
            }
        }
        changes.truncate(MAX_CHANGES);
        self.name_authors(caller, changes).await
    }

    /// Those of these items that are live and in the scope of the caller, in their order.
    async fn live(&self, caller: &Caller, items: &[(Kind, DocumentId)]) -> Result<Vec<RecentChange>, Error> {
        let of = |kind| items.iter().filter(move |item| item.0 == kind).map(|item| item.1.0);
        let files: Vec<FileId> = of(Kind::File).map(FileId).collect();
        let records: Vec<RecordId> = of(Kind::Record).map(RecordId).collect();
        let (db, workspace) = (&self.context.db, caller.workspace);
        let mut found = Vec::new();
        if !files.is_empty() {
            let files = store::files::get_many(db, workspace, &files).await?;
            found.extend(
                files.into_iter().filter(|file| caller.covers(&file.folders)).map(RecentChange::from),
            );
        }
        if !records.is_empty() {
            let records = store::records::get_many(db, workspace, &records).await?;
            let held: Vec<DatabaseId> = records.iter().map(|record| record.database_id).collect();
            let databases = store::databases::get_many(db.engine(), workspace, &held).await?;
            found.extend(records.iter().filter_map(|record| {
                let database = databases.iter().find(|one| one.id == record.database_id)?;
                caller.covers(&database.folders).then(|| of_record(database, record))
            }));
        }
        found.sort_by_key(|change| items.iter().position(|item| *item == (change.kind, change.id)));
        Ok(found)
    }

    async fn name_authors(
        &self,
        caller: &Caller,
        mut changes: Vec<RecentChange>,
    ) -> Result<Vec<RecentChange>, Error> {
        for kind in [Kind::File, Kind::Record] {
            let ids: Vec<DocumentId> =
                changes.iter().filter(|change| change.kind == kind).map(|change| change.id).collect();
            if ids.is_empty() {
                continue;
            }
            let mut authors =
                store::overview::authors(&self.context.db, caller.workspace, kind, &ids).await?;
            for change in changes.iter_mut().filter(|change| change.kind == kind) {
                change.author = authors.remove(&change.id);
            }
        }
        Ok(changes)
    }
}

impl From<File> for RecentChange {
    fn from(file: File) -> Self {
        Self {
            kind: Kind::File,
            id: DocumentId(file.id.0),
            folder_id: file.folder_id(),
            title: file.name,
            path: file.path,
            database_id: None,
            version: file.version,
            changed_at: file.updated_at,
            author: None,
        }
    }
}

fn of_record(database: &Database, record: &Record) -> RecentChange {
    let title = database.title_of(&record.values);
    RecentChange {
        kind: Kind::Record,
        id: DocumentId(record.id.0),
        path: format!("{}/{title}", database.path),
        title,
        folder_id: database.folder_id,
        database_id: Some(database.id),
        version: record.version,
        changed_at: record.updated_at,
        author: None,
    }
}
