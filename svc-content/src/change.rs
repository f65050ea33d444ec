//! The unit of work of content. Whatever changes a workspace is one [`Change`], which owns the transaction, its time, what
//! the workspace keeps more or less, and what the feed is told.
//!
//! Every change ends alike, in [`Change::commit`], and in the order in which locks are taken everywhere: the records that
//! change along, the row of the workspace's usage, the head of its feed.

use std::collections::{BTreeSet, HashMap};

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Entry, Kind, Op, Positions, Unappended, UnitOfWork};
use cairn_chassis::ids::IdSource;
use cairn_chassis::limits::{Allowance, Grown};
use cairn_chassis::sql::Tx;
use cairn_chassis::status::Violation;
use cairn_proto::ids::{DatabaseId, DeletionId, RecordId, WorkspaceId};

use crate::context::Context;
use crate::known::KnownDatabases;
use crate::model::{Activity, Actor, Author, Database, Deletion, Growth, Operation, Record, Usage, Written};
use crate::scope::Caller;
use crate::store::ending::{Ended, Ending};
use crate::store::folders::Taken;
use crate::{Error, store};

/// What the feed is told.
#[derive(Debug)]
enum Publication {
    Entry(Entry),
    /// The same of every live record of a database, which are written by one statement.
    RecordsOf(DatabaseId, Op),
    /// That everything is gone which the deletion of a folder took; written by a statement for each kind.
    TakenBy(DeletionId, Taken),
}

/// Forgets the databases of a workspace when it goes: also where nobody comes to know what became of the commit.
#[derive(Debug)]
struct Forgetting {
    known: KnownDatabases,
    workspace: WorkspaceId,
}

impl Drop for Forgetting {
    fn drop(&mut self) {
        self.known.forget(self.workspace);
    }
}

impl Publication {
    /// Whether it tells of more than what is in a folder or a database: of where databases stand, or what they are.
    fn is_of_databases(&self) -> bool {
        match self {
            Self::Entry(entry) => !matches!(entry.kind, Kind::File | Kind::Memory | Kind::Record),
            Self::RecordsOf(..) | Self::TakenBy(..) => true,
        }
    }
}

/// A change of one workspace. Dropped without [`commit`](Self::commit), it changes nothing.
#[derive(Debug)]
pub(crate) struct Change {
    work: UnitOfWork,
    ids: IdSource,
    known: KnownDatabases,
    /// What the workspace may keep; absent when that is not asked.
    allowance: Option<Allowance>,
    /// Bytes that another service keeps of it.
    elsewhere: u64,
    growth: Growth,
    publications: Vec<Publication>,
    /// Who makes it, and what becomes of which item.
    actor: Actor,
    done: Vec<Activity>,
    /// The place of the last that was noted of each item.
    noted: HashMap<String, usize>,
}

impl Change {
    /// Begins a change that is refused when the plan of the caller's workspace has no room for it.
    pub(crate) async fn begin(context: &Context, caller: &Caller) -> Result<Self, Error> {
        let allowance = context.limits.of(caller.plan.as_deref());
        // Before the transaction: nobody is asked in the midst of one.
        let elsewhere = match allowance.stored_bytes {
            Some(_) => context.storage.elsewhere(caller.workspace).await,
            None => 0,
        };
        let change = Self::without_limits(context, caller).await?;
        Ok(Self { allowance: Some(allowance), elsewhere, ..change })
    }

    /// Begins a change that needs no room: it takes away, or what it keeps of what it takes away is not asked of the plan.
    pub(crate) async fn without_limits(context: &Context, caller: &Caller) -> Result<Self, Error> {
        Ok(Self {
            work: context.feed.begin(caller.workspace).await?,
            ids: context.ids.clone(),
            known: context.known.clone(),
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

    /// The time of the change; to be asked for when the locks are held, but for that of a new item, which has no order to keep among
    /// changes to one row.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.work.now()
    }

    /// Has the workspace keep more, or less.
    pub(crate) fn grow(&mut self, growth: Growth) {
        self.growth.add(growth);
    }

    /// Notes what becomes of an item, for the list of activity. What it says of one item is one entry, however often the
    /// change goes on with it.
    pub(crate) fn note(&mut self, activity: Activity) {
        let known = self.noted.get(&activity.item_id).and_then(|place| self.done.get_mut(*place));
        let apart = match known {
            Some(known) => known.absorb(activity).err(),
            None => Some(activity),
        };
        if let Some(apart) = apart {
            self.noted.insert(apart.item_id.clone(), self.done.len());
            self.done.push(apart);
        }
    }

    /// How many items it has noted something of, and how many these are with all that went or came along.
    pub(crate) fn noted(&self) -> (usize, u64) {
        (self.done.len(), self.done.iter().map(|one| one.items).sum())
    }

    /// Tells the feed that an item is new or has changed.
    pub(crate) fn publish_upsert(&mut self, kind: Kind, id: impl ToString) {
        self.publications.push(Publication::Entry(Entry::upsert(kind, id)));
    }

    /// Tells the feed that an item is gone.
    pub(crate) fn publish_delete(&mut self, kind: Kind, id: impl ToString) {
        self.publications.push(Publication::Entry(Entry::delete(kind, id)));
    }

    /// Tells the feed what becomes of all records of a database that are live when the change ends.
    pub(crate) fn publish_records(&mut self, database: DatabaseId, op: Op) {
        self.publications.push(Publication::RecordsOf(database, op));
    }

    /// The caller's deletion of an item by itself, which stands in the root.
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

    /// Moves the item of a deletion to trash, and nothing else.
    pub(crate) async fn trash(&mut self, deletion: &Deletion) -> Result<(), Error> {
        self.trash_noted(deletion, deletion.activity(Operation::Trash)).await
    }

    /// The same, noted in those words.
    pub(crate) async fn trash_noted(&mut self, deletion: &Deletion, activity: Activity) -> Result<(), Error> {
        store::trash::take(self.tx(), deletion).await?;
        self.note(activity);
        self.publish_delete(deletion.kind, &deletion.item_id);
        Ok(())
    }

    /// Moves the folder of a deletion to trash with all that it holds.
    pub(crate) async fn trash_folder(&mut self, mut deletion: Deletion) -> Result<(), Error> {
        let taken = store::folders::trash(self.tx(), &deletion).await?;
        deletion.items = taken.items();
        store::trash::insert(self.tx(), &deletion).await?;
        self.note(deletion.activity(Operation::Trash));
        self.publications.push(Publication::TakenBy(deletion.id, taken));
        Ok(())
    }

    /// Ends the change; answers the positions that it has in the feed, and the feed's head when it told nothing.
    pub(crate) async fn commit(mut self) -> Result<Positions, Error> {
        self.publish_bodied_records().await?;
        let forgotten =
            self.publications.iter().any(Publication::is_of_databases).then_some(self.workspace());
        let is_entry = |publication: &Publication| matches!(publication, Publication::Entry(_));
        if self.publications.iter().all(is_entry) && !self.publications.is_empty() {
            self.end_at_once().await?;
        } else {
            self.end_step_by_step().await?;
        }
        let Some(workspace) = forgotten else { return Ok(self.work.commit().await?) };
        let forgetting = Forgetting { known: self.known, workspace };
        Ok(self.work.commit_then(move || drop(forgetting)).await?)
    }

    /// Ends a change that makes a record and nothing else, with the statement that stores it. None, and all is taken back, when the
    /// database is not any more what was read.
    pub(crate) async fn commit_record(
        mut self,
        database: &Database,
        record: &Record,
    ) -> Result<Option<Positions>, Error> {
        let told = self.told();
        let (tx, ending) = self.ending(&told);
        let Some(ended) = store::records::insert_and_end(tx, database, record, &ending).await? else {
            self.rollback().await?;
            return Ok(None);
        };
        self.note_ended(ended)?;
        Ok(Some(self.work.commit().await?))
    }

    /// Ends a change that tells of items one by one, as most do.
    async fn end_at_once(&mut self) -> Result<(), Error> {
        let (workspace, told) = (self.workspace(), self.told());
        let (tx, ending) = self.ending(&told);
        let ended = store::ending::write(tx, workspace, &ending).await?;
        self.note_ended(ended)
    }

    /// What such a change tells.
    fn told(&mut self) -> Unappended {
        for publication in std::mem::take(&mut self.publications) {
            if let Publication::Entry(entry) = publication {
                self.work.publish(entry);
            }
        }
        self.work.unappended().unwrap_or_default()
    }

    /// The transaction, and what ends it.
    fn ending<'a>(&'a mut self, told: &'a Unappended) -> (&'a mut Tx, Ending<'a>) {
        let at = self.work.now();
        let ending = Ending { at, told, growth: self.growth, actor: &self.actor, done: &self.done };
        (self.work.tx(), ending)
    }

    fn note_ended(&mut self, ended: Ended) -> Result<(), Error> {
        self.work.note_appended(ended.position);
        if self.growth == Growth::default() { Ok(()) } else { self.require_room(ended.used) }
    }

    async fn end_step_by_step(&mut self) -> Result<(), Error> {
        self.count_growth().await?;
        for publication in std::mem::take(&mut self.publications) {
            self.append(publication).await?;
        }
        self.journal().await
    }

    /// Ends the change that made an item what it is.
    pub(crate) async fn commit_with<T>(self, item: T) -> Result<Written<T>, Error> {
        let position = self.commit().await?.last;
        Ok(Written { item, position })
    }

    /// Takes everything back.
    pub(crate) async fn rollback(self) -> Result<(), Error> {
        Ok(self.work.rollback().await?)
    }

    /// Writes what was noted; all that is noted is published, too.
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

    /// Records are found by the text of their page body too, so they change with the file that is their body.
    async fn publish_bodied_records(&mut self) -> Result<(), Error> {
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
            records.extend(store::records::bodied(self.tx(), workspace, &files).await?);
        }
        for deletion in deletions {
            records.extend(store::records::bodied_by_trash(self.tx(), workspace, deletion).await?);
        }
        for record in records {
            self.publish_upsert(Kind::Record, record);
        }
        Ok(())
    }

    /// Counts what is kept more or less, and refuses what the plan has no room for.
    async fn count_growth(&mut self) -> Result<(), Error> {
        let (growth, workspace) = (self.growth, self.workspace());
        if growth == Growth::default() {
            return Ok(());
        }
        let used = store::usage::add(self.tx(), workspace, growth).await?;
        self.require_room(used)
    }

    /// Refuses what the plan has no room for; `used` is what the workspace keeps with it. What takes away, or adds nothing, is
    /// never refused, however full the workspace is.
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

/// `used` is what the workspace keeps here with the growth, `elsewhere` the bytes that it keeps besides.
fn require_room(allowance: Allowance, growth: Growth, used: Usage, elsewhere: u64) -> Result<(), Error> {
    let files = Grown { by: growth.files, to: used.files }.refusal("files", allowance.files, "");
    let bytes = Grown { by: growth.bytes, to: used.bytes.saturating_add(elsewhere) };
    let bytes = bytes.refusal("storageBytes", allowance.stored_bytes, " bytes");
    let refused: Vec<Violation> = files.into_iter().chain(bytes).collect();
    if refused.is_empty() { Ok(()) } else { Err(Error::LimitExceeded(refused)) }
}
