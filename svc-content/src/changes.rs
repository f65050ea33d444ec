//! The change feed as a caller sees it, for programs that follow a workspace.
//!
//! The feed says that an item changed; the activity of the same write says by whom and to which version. For a scoped
//! caller, each change is filtered by the current location of the item and by its location at that write: an item
//! that left the folders of the caller is reported as deleted, without its new location. Items that were deleted or
//! moved with a folder are covered by the entry of the folder.

use std::collections::{HashMap, HashSet};

use cairn_chassis::feed::changes::{Author, TimedChange, VisibleChange};
use cairn_chassis::feed::{Kind, Op};
use cairn_proto::ids::{DatabaseId, FileId, FolderId, RecordId, WorkspaceId};

use crate::Error;
use crate::context::Context;
use crate::model::{ActivityEntry, Former};
use crate::scope::Caller;
use crate::store;

/// The maximum number of activity entries read for a page: a write has one for each item, and a page of the feed has
/// a thousand at most. Changes beyond it have no author.
const MAX_ENTRIES: i64 = 5_000;

/// The rules of the visible feed on a store.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    context: Context,
}

impl Changes {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// The changes that the caller may see, in their order.
    pub(crate) async fn seen(
        &self,
        caller: &Caller,
        changes: Vec<TimedChange>,
    ) -> Result<Vec<VisibleChange>, Error> {
        let _permit = self.context.db.read_permit(caller.workspace).await?;
        let log = self.write_log(caller.workspace, &changes).await?;
        let Some(listed) = caller.listed() else {
            return Ok(changes.into_iter().map(|change| log.annotate(change)).collect());
        };
        let covered = Covered::read(&self.context, caller.workspace, listed).await?;
        let now = Places::read(&self.context, caller.workspace, &changes).await?;
        Ok(changes.into_iter().filter_map(|change| visible(change, &log, &covered, &now)).collect())
    }

    /// The activity of the writes of these changes.
    async fn write_log(&self, workspace: WorkspaceId, changes: &[TimedChange]) -> Result<WriteLog, Error> {
        let times = changes.iter().map(|change| change.at);
        let (Some(first), Some(last)) = (times.clone().min(), times.max()) else {
            return Ok(WriteLog::default());
        };
        let from = changes.iter().map(|change| change.change.position).min().unwrap_or_default();
        let entries =
            store::activity::between(&self.context.db, workspace, (first, last), from, MAX_ENTRIES).await?;
        Ok(WriteLog { entries })
    }
}

/// Activity entries in the order of their writes.
#[derive(Debug, Default)]
struct WriteLog {
    entries: Vec<ActivityEntry>,
}

impl WriteLog {
    /// The entries of the write that made a change: the first write at its position or later, if the times match.
    fn of_write(&self, change: &TimedChange) -> &[ActivityEntry] {
        let begin = self.entries.partition_point(|entry| entry.id.position < change.change.position);
        let behind = self.entries.get(begin..).unwrap_or_default();
        let Some(first) = behind.first().filter(|first| first.id.at == change.at) else {
            return &[];
        };
        let end = behind.partition_point(|entry| entry.id.position == first.id.position);
        behind.get(..end).unwrap_or_default()
    }

    /// The entry of the write for the item itself.
    fn of_item(&self, change: &TimedChange) -> Option<&ActivityEntry> {
        self.of_write(change).iter().find(|entry| entry.what.item_id == change.change.entry.item_id)
    }

    fn annotate(&self, change: TimedChange) -> VisibleChange {
        let author = self.of_write(&change).first().map(|entry| Author {
            kind: entry.author.kind.clone(),
            id: entry.author.id.clone(),
            name: entry.author.name.clone(),
        });
        let is_numbered = matches!(change.change.entry.kind, Kind::File | Kind::Record | Kind::Memory)
            && change.change.entry.op == Op::Upsert;
        let version = self.of_item(&change).and_then(|entry| entry.what.version_after);
        VisibleChange { author, version: version.filter(|_| is_numbered), ..VisibleChange::of(change) }
    }
}

/// The folders of a scope and all folders below them, live or in trash.
struct Covered(HashSet<FolderId>);

impl Covered {
    async fn read(context: &Context, workspace: WorkspaceId, listed: &[FolderId]) -> Result<Self, Error> {
        Ok(Self(store::folders::all_below(&context.db, workspace, listed).await?.into_iter().collect()))
    }

    /// The root is outside of every scope.
    fn holds(&self, folder: Option<FolderId>) -> bool {
        folder.is_some_and(|folder| self.0.contains(&folder))
    }

    /// Whether the item was in these folders before or after that write.
    fn was_touched(&self, entry: &ActivityEntry) -> bool {
        let stood =
            |former: &Former| if let Former::Folder(folder) = former { self.holds(*folder) } else { false };
        let itself = entry.what.kind == Kind::Folder && self.holds(entry.what.item_id.parse().ok());
        itself || self.holds(entry.what.folder_id) || entry.what.former.iter().any(stood)
    }
}

/// The current folder of each item, live or in trash; for folders, themselves. Removed items are absent.
#[derive(Default)]
struct Places(HashMap<(Kind, String), Option<FolderId>>);

impl Places {
    async fn read(context: &Context, workspace: WorkspaceId, changes: &[TimedChange]) -> Result<Self, Error> {
        let db = &context.db;
        let mut places = HashMap::new();
        let files: Vec<FileId> = ids_of(changes, Kind::File);
        for file in store::states::files(db, workspace, &files).await? {
            places.insert((Kind::File, file.id.to_string()), file.folder_id);
        }
        for folder in ids_of::<FolderId>(changes, Kind::Folder) {
            places.insert((Kind::Folder, folder.to_string()), Some(folder));
        }
        let records =
            store::states::records(db, workspace, &ids_of::<RecordId>(changes, Kind::Record)).await?;
        let mut databases: Vec<DatabaseId> = ids_of(changes, Kind::Database);
        databases.extend(records.iter().map(|record| record.database_id));
        databases.sort_unstable();
        databases.dedup();
        let databases: HashMap<DatabaseId, Option<FolderId>> =
            store::states::databases(db, workspace, &databases)
                .await?
                .into_iter()
                .map(|database| (database.id, database.folder_id))
                .collect();
        for record in records {
            if let Some(folder) = databases.get(&record.database_id) {
                places.insert((Kind::Record, record.id.to_string()), *folder);
            }
        }
        let of_databases =
            databases.into_iter().map(|(id, folder)| ((Kind::Database, id.to_string()), folder));
        places.extend(of_databases);
        Ok(Self(places))
    }

    fn of(&self, change: &TimedChange) -> Option<FolderId> {
        let entry = &change.change.entry;
        self.0.get(&(entry.kind, entry.item_id.clone())).copied().flatten()
    }
}

/// A change as a scoped caller sees it; `None` when it is out of scope.
fn visible(change: TimedChange, log: &WriteLog, covered: &Covered, now: &Places) -> Option<VisibleChange> {
    // A memory is in no folder; every scope sees that it exists.
    if change.change.entry.kind == Kind::Memory || covered.holds(now.of(&change)) {
        return Some(log.annotate(change));
    }
    let has_left = log.of_item(&change).is_some_and(|entry| covered.was_touched(entry));
    has_left.then(|| VisibleChange { op: Op::Delete, ..VisibleChange::of(change) })
}

/// The ids of one kind among changes, each once.
fn ids_of<T: std::str::FromStr + Ord>(changes: &[TimedChange], kind: Kind) -> Vec<T> {
    let of_kind = changes.iter().filter(|change| change.change.entry.kind == kind);
    let mut ids: Vec<T> = of_kind.filter_map(|change| change.change.entry.item_id.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
