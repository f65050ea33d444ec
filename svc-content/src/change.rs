//! The unit of work of content. Every write to a workspace is one [`Change`], which owns the transaction, its timestamp, the
//! growth of the workspace's usage, and the entries for the feed.
//!
//! Every change ends in [`Change::commit`], which takes its locks in the global lock order: the records that change along, the
//! workspace's usage row, the head of its feed.

use std::collections::{BTreeSet, HashMap};

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Entry, Kind, Op, PendingEntries, Positions, UnitOfWork};
use cairn_chassis::ids::IdSource;
use cairn_chassis::limits::{Allowance, CounterGrowth};
use cairn_chassis::sql::Tx;
use cairn_chassis::status::Violation;
use cairn_proto::ids::{DatabaseId, DeletionId, RecordId, WorkspaceId};

use crate::context::Context;
use crate::database_cache::DatabaseCache;
use crate::model::{Activity, Actor, Author, Database, Deletion, Growth, Operation, Record, Usage, Written};
use crate::scope::Caller;
use crate::store::change_end::{ChangeEnd, ChangeEndResult};
use crate::store::folders::TrashCounts;
use crate::{Error, store};

/// What is published to the feed.
#[derive(Debug)]
enum Publication {
    Entry(Entry),
    /// An entry for every live record of a database, written by one statement.
    RecordsOf(DatabaseId, Op),
    /// A delete for everything that went to trash with a folder, written by one statement per kind.
    TakenBy(DeletionId, TrashCounts),
}

/// Invalidates the cached databases of a workspace on drop, so also if the outcome of the commit is unknown.
#[derive(Debug)]
struct InvalidateOnDrop {
    database_cache: DatabaseCache,
    workspace: WorkspaceId,
}

impl Drop for InvalidateOnDrop {
    fn drop(&mut self) {
        self.database_cache.invalidate(self.workspace);
    }
}

impl Publication {
    /// Whether it may change the schema or the folder of a database, which the database cache depends on.
    fn affects_databases(&self) -> bool {
        match self {
            Self::Entry(entry) => !matches!(entry.kind, Kind::File | Kind::Memory | Kind::Record),
            Self::RecordsOf(..) | Self::TakenBy(..) => true,
        }
    }
}

/// A change of one workspace. Dropped without [`commit`](Self::commit), it is rolled back.
#[derive(Debug)]
pub(crate) struct Change {
    work: UnitOfWork,
    ids: IdSource,
    database_cache: DatabaseCache,
    /// The limits of the workspace's plan; absent if they are not enforced.
    allowance: Option<Allowance>,
    /// Bytes of the workspace that another service stores.
    elsewhere: u64,
    growth: Growth,
    publications: Vec<Publication>,
    /// The author and the entries of the activity log.
    actor: Actor,
    done: Vec<Activity>,
    /// The index in `done` of each item's latest entry.
    noted: HashMap<String, usize>,
}

impl Change {
    /// Begins a change that enforces the plan limits of the caller's workspace.
    pub(crate) async fn begin(context: &Context, caller: &Caller) -> Result<Self, Error> {
        let allowance = context.limits.of(caller.plan.as_deref());
        // Before the transaction: no call to another service while locks are held.
        let elsewhere = match allowance.stored_bytes {
            Some(_) => context.storage.elsewhere(caller.workspace).await,
            None => 0,
        };
        let change = Self::without_limits(context, caller).await?;
        Ok(Self { allowance: Some(allowance), elsewhere, ..change })
    }

    /// Begins a change without plan limits: one that deletes, even if the versions that it keeps take space.
    pub(crate) async fn without_limits(context: &Context, caller: &Caller) -> Result<Self, Error> {
        Ok(Self {
            work: context.feed.begin(caller.workspace).await?,
            ids: context.ids.clone(),
            database_cache: context.database_cache.clone(),
            allowance: None,
            elsewhere: 0,
            growth: Growth::default(),
            publications: Vec::new(),
            actor: caller.actor(),
            done: Vec::new(),
            noted: HashMap::new(),
        })
    }

    /// The transaction, for the store.
    pub(crate) const fn tx(&mut self) -> &mut Tx {
        self.work.tx()
    }

    pub(crate) const fn workspace(&self) -> WorkspaceId {
        self.work.workspace()
    }

    /// The timestamp of the change. Take it after acquiring the locks, so that the changes of a row have ascending timestamps; a
    /// new item has no earlier changes and may take it before.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.work.now()
    }

    /// Adds to the growth of the workspace's usage, which may be negative.
    pub(crate) fn grow(&mut self, growth: Growth) {
        self.growth.add(growth);
    }

    /// Adds an entry to the activity log. Entries of one item are merged into one.
    pub(crate) fn note(&mut self, activity: Activity) {
        let earlier = self.noted.get(&activity.item_id).and_then(|place| self.done.get_mut(*place));
        let separate = match earlier {
            Some(earlier) => earlier.absorb(activity).err(),
            None => Some(activity),
        };
        if let Some(separate) = separate {
            self.noted.insert(separate.item_id.clone(), self.done.len());
            self.done.push(separate);
        }
    }

    /// How many items have activity entries, and how many items these cover, including the contents of folders.
    pub(crate) fn noted(&self) -> (usize, u64) {
        (self.done.len(), self.done.iter().map(|one| one.items).sum())
    }

    /// Publishes an upsert of an item to the feed.
    pub(crate) fn publish_upsert(&mut self, kind: Kind, id: impl ToString) {
        self.publications.push(Publication::Entry(Entry::upsert(kind, id)));
    }

    /// Publishes a delete of an item to the feed.
    pub(crate) fn publish_delete(&mut self, kind: Kind, id: impl ToString) {
        self.publications.push(Publication::Entry(Entry::delete(kind, id)));
    }

    /// Publishes an operation on all records of a database that are live at the end of the change.
    pub(crate) fn publish_records(&mut self, database: DatabaseId, op: Op) {
        self.publications.push(Publication::RecordsOf(database, op));
    }

    /// A deletion by the caller of a single item in the root.
    pub(crate) fn deletion(
        &mut self,
        caller: &Caller,
        kind: Kind,
        item_id: impl ToString,
        name: String,
        path: String,
    ) -> Deletion {
        Deletion {
            workspace: self.workspace(),
            id: self.ids.next(),
            kind,
            item_id: item_id.to_string(),
            parent_id: None,
            database_id: None,
            name,
            path,
            items: 1,
            at: self.now(),
            by: Some(Author::of_content(&caller.principal)),
        }
    }

    /// Moves the item of a deletion to trash, without contents.
    pub(crate) async fn trash(&mut self, deletion: &Deletion) -> Result<(), Error> {
        self.trash_noted(deletion, deletion.activity(Operation::Trash)).await
    }

    /// The same, with this activity entry.
    pub(crate) async fn trash_noted(&mut self, deletion: &Deletion, activity: Activity) -> Result<(), Error> {
        store::trash::take(self.tx(), deletion).await?;
        self.note(activity);
        self.publish_delete(deletion.kind, &deletion.item_id);
        Ok(())
    }

    /// Moves the folder of a deletion to trash with all its contents.
    pub(crate) async fn trash_folder(&mut self, mut deletion: Deletion) -> Result<(), Error> {
        let taken = store::folders::trash(self.tx(), &deletion).await?;
        deletion.items = taken.items();
        store::trash::insert(self.tx(), &deletion).await?;
        self.note(deletion.activity(Operation::Trash));
        self.publications.push(Publication::TakenBy(deletion.id, taken));
        Ok(())
    }

    /// Commits. Returns the positions of the change in the feed, or the head of the feed if nothing was published.
    pub(crate) async fn commit(mut self) -> Result<Positions, Error> {
        self.publish_records_with_changed_body().await?;
        let affects_databases = self.publications.iter().any(Publication::affects_databases);
        let invalidated = affects_databases.then_some(self.workspace());
        let is_entry = |publication: &Publication| matches!(publication, Publication::Entry(_));
        if self.publications.iter().all(is_entry) && !self.publications.is_empty() {
            self.finish_in_one_statement().await?;
        } else {
            self.finish_in_steps().await?;
        }
        let Some(workspace) = invalidated else { return Ok(self.work.commit().await?) };
        let invalidation = InvalidateOnDrop { database_cache: self.database_cache, workspace };
        Ok(self.work.commit_then(move || drop(invalidation)).await?)
    }

    /// Commits a change that creates one record and nothing else, in the statement that stores it. `None`, after a rollback, if
    /// the database has changed since it was read.
    pub(crate) async fn commit_record(
        mut self,
        database: &Database,
        record: &Record,
    ) -> Result<Option<Positions>, Error> {
        let entries = self.pending_entries();
        let (tx, end) = self.change_end(&entries);
        let Some(result) = store::records::insert_and_end(tx, database, record, &end).await? else {
            self.rollback().await?;
            return Ok(None);
        };
        self.note_change_end(result)?;
        Ok(Some(self.work.commit().await?))
    }

    /// Writes the end of a change that publishes single entries only, which most changes do.
    async fn finish_in_one_statement(&mut self) -> Result<(), Error> {
        let (workspace, entries) = (self.workspace(), self.pending_entries());
        let (tx, end) = self.change_end(&entries);
        let result = store::change_end::write(tx, workspace, &end).await?;
        self.note_change_end(result)
    }

    /// The entries that such a change appends to the feed.
    fn pending_entries(&mut self) -> PendingEntries {
        for publication in std::mem::take(&mut self.publications) {
            if let Publication::Entry(entry) = publication {
                self.work.publish(entry);
            }
        }
        self.work.pending_entries().unwrap_or_default()
    }

    /// The transaction, and the parameters of its final statement.
    fn change_end<'a>(&'a mut self, entries: &'a PendingEntries) -> (&'a mut Tx, ChangeEnd<'a>) {
        let at = self.work.now();
        let end = ChangeEnd { at, entries, growth: self.growth, actor: &self.actor, done: &self.done };
        (self.work.tx(), end)
    }

    fn note_change_end(&mut self, result: ChangeEndResult) -> Result<(), Error> {
        self.work.mark_appended(result.position);
        if self.growth == Growth::default() { Ok(()) } else { self.require_room(result.used) }
    }

    async fn finish_in_steps(&mut self) -> Result<(), Error> {
        self.count_growth().await?;
        for publication in std::mem::take(&mut self.publications) {
            self.append(publication).await?;
        }
        self.journal().await
    }

    /// Commits, and returns the item with the position of the change.
    pub(crate) async fn commit_with<T>(self, item: T) -> Result<Written<T>, Error> {
        let position = self.commit().await?.last;
        Ok(Written { item, position })
    }

    /// Rolls everything back.
    pub(crate) async fn rollback(self) -> Result<(), Error> {
        Ok(self.work.rollback().await?)
    }

    /// Writes the activity entries. Every change with activity has published something, which gives them a position.
    async fn journal(&mut self) -> Result<(), Error> {
        let done = std::mem::take(&mut self.done);
        if done.is_empty() {
            return Ok(());
        }
        let Some(positions) = self.work.append().await? else { return Ok(()) };
        let (workspace, now) = (self.workspace(), self.now());
        let at = (now, positions.last);
        Ok(store::activity::insert(self.work.tx(), workspace, at, &self.actor, &done).await?)
    }

    /// Publishes the records whose body file changes, as search finds them by its text.
    async fn publish_records_with_changed_body(&mut self) -> Result<(), Error> {
        let workspace = self.workspace();
        let mut files = Vec::new();
        let mut deletions = Vec::new();
        for publication in &self.publications {
            match publication {
                Publication::Entry(entry) if entry.kind == Kind::File => files.push(entry.item_id.clone()),
                Publication::TakenBy(deletion, _) => deletions.push(*deletion),
                Publication::Entry(_) | Publication::RecordsOf(..) => {}
            }
        }
        let mut records: BTreeSet<RecordId> = BTreeSet::new();
        if !files.is_empty() {
            records.extend(store::records::with_body_in(self.tx(), workspace, &files).await?);
        }
        for deletion in deletions {
            records.extend(store::records::with_body_in_deletion(self.tx(), workspace, deletion).await?);
        }
        for record in records {
            self.publish_upsert(Kind::Record, record);
        }
        Ok(())
    }

    /// Adds the growth to the usage, and enforces the plan limits.
    async fn count_growth(&mut self) -> Result<(), Error> {
        let (growth, workspace) = (self.growth, self.workspace());
        if growth == Growth::default() {
            return Ok(());
        }
        let used = store::usage::add(self.tx(), workspace, growth).await?;
        self.require_room(used)
    }

    /// Enforces the plan limits; `used` is the usage including this change. A change that adds nothing is never refused, even if
    /// the workspace is over its limit.
    fn require_room(&self, used: Usage) -> Result<(), Error> {
        let (growth, elsewhere) = (self.growth, self.elsewhere);
        self.allowance.map_or(Ok(()), |allowance| require_room(allowance, growth, used, elsewhere))
    }

    async fn append(&mut self, publication: Publication) -> Result<(), Error> {
        let (workspace, now) = (self.workspace(), self.now());
        match publication {
            Publication::Entry(entry) => self.work.publish(entry),
            Publication::RecordsOf(database, op) => {
                let count = store::databases::live_records(self.tx(), workspace, database).await?;
                if count > 0 {
                    let reserved = self.work.reserve(count).await?;
                    store::databases::publish_records(self.tx(), workspace, database, op, reserved, now)
                        .await?;
                }
            }
            Publication::TakenBy(deletion, taken) => {
                let reserved = self.work.reserve(taken.items()).await?;
                store::folders::publish_trash(self.tx(), workspace, deletion, taken, reserved, now).await?;
            }
        }
        Ok(())
    }
}

/// `used` is the usage in this service including the growth, `elsewhere` the bytes in other services.
fn require_room(allowance: Allowance, growth: Growth, used: Usage, elsewhere: u64) -> Result<(), Error> {
    let files = CounterGrowth { by: growth.files, to: used.files }.refusal("files", allowance.files, "");
    let bytes = CounterGrowth { by: growth.bytes, to: used.bytes.saturating_add(elsewhere) };
    let bytes = bytes.refusal("storageBytes", allowance.stored_bytes, " bytes");
    let refused: Vec<Violation> = files.into_iter().chain(bytes).collect();
    if refused.is_empty() { Ok(()) } else { Err(Error::LimitExceeded(refused)) }
}
