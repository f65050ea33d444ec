//! The rules of records (spec 2.5, 4.9).
//!
//! Writes are optimistic: a write is validated against the database before its transaction. The transaction first verifies
//! that the database has not changed since; otherwise the write is validated again.

mod batched;
mod columns;
mod documents;
mod groups;
mod guess;
mod hidden;
mod import;
mod list;
mod listed;
mod of_table;
mod references;
mod table;
mod trash;
pub(crate) mod values;

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DatabaseId, FileId, RecordId};

pub(crate) use self::batched::{CheckedRecord, RecordWrite, RecordsOfBatch};
pub(crate) use self::documents::{Rendered, documents, readable};
pub(crate) use self::groups::{RecordGroup, RecordGroups, RecordGroupsRequest, Summary};
pub(crate) use self::import::{Imported, RowProblem, TableDraft};
pub(crate) use self::list::RecordListRequest;
pub(crate) use self::of_table::{DatabaseFromTable, FieldChoice, TableField, TableImport};
pub(crate) use self::references::Backlink;
pub(crate) use self::trash::{folders_of, require_database, revive};
use self::values::ValueChanges;
use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::context::Context;
use crate::databases::former;
use crate::model::{
    Activity, Author, Database, Former, Growth, Operation, Page, PageRequest, Record, RecordVersion, Values,
    Written,
};
use crate::scope::Caller;
use crate::{databases, store};

/// Attempts of a write; a concurrent change of the database's schema costs one.
const MAX_TRIES: usize = 5;

/// Names of properties by their ids.
pub(crate) type PropertyNames = HashMap<String, String>;

/// A record as a caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VisibleRecord {
    pub(crate) record: Record,
    pub(crate) title: String,
    /// The names of the properties that have values. Empty for a record of a page, where the page has them.
    pub(crate) property_names: PropertyNames,
}

/// The fields of a record in a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordDraft {
    /// A JSON object; empty for none.
    pub(crate) values: String,
    /// Absent leaves it unchanged; `Some(None)` clears it.
    pub(crate) content_file_id: Option<Option<String>>,
    pub(crate) allow_names: bool,
    /// The id of a new record; generated if absent.
    pub(crate) new_id: Option<String>,
    /// The version must be one of these; empty accepts any.
    pub(crate) if_version: Vec<u64>,
    /// Names in the field mask that are not fields.
    pub(crate) unknown_fields: Vec<String>,
}

/// A draft that was validated against a database.
struct Prepared {
    changes: ValueChanges,
    content_file_id: Option<Option<FileId>>,
    new_id: Option<RecordId>,
}

/// The rules of records on a store.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    context: Context,
}

impl Records {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Creates a record and its first version.
    pub(crate) async fn create(
        &self,
        caller: &Caller,
        database_id: &str,
        draft: RecordDraft,
    ) -> Result<Written<VisibleRecord>, Error> {
        for _ in 0..MAX_TRIES {
            let database = self.writable_database(caller, database_id).await?;
            let prepared = self.prepare(caller, &database, &draft).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            let record = self.new_record(&mut change, &database, prepared)?;
            let Some(positions) = change.commit_record(&database, &record).await? else {
                self.context.database_cache.invalidate(caller.workspace);
                continue;
            };
            let item = self.show_one(caller, &database, record).await?;
            return Ok(Written { item, position: positions.last });
        }
        Err(schema_in_flux())
    }

    /// A record.
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
    ) -> Result<VisibleRecord, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let found =
            store::records::get(self.context.db.engine(), caller.workspace, database.id, parse(id)?).await?;
        let record = found.ok_or_else(|| Error::no_record(id))?;
        self.show_one(caller, &database, record).await
    }

    /// Merges values into a record and saves a version. A no-op leaves version and feed unchanged.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
        draft: RecordDraft,
    ) -> Result<Written<VisibleRecord>, Error> {
        let record_id = parse(id)?;
        for _ in 0..MAX_TRIES {
            let database = databases::readable(&self.context.db, caller, database_id).await?;
            let prepared = self.prepare(caller, &database, &draft).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !lock_unchanged(&mut change, &database).await? {
                change.rollback().await?;
                continue;
            }
            let before = locked(&mut change, caller, &database, record_id).await?;
            require_version(&before, &draft.if_version)?;
            let record =
                self.save_in(&mut change, caller, &database, &before, prepared.merged(&before)).await?;
            return self.finish(change, caller, &database, record).await;
        }
        Err(schema_in_flux())
    }

    /// Renders a record as search would see it with these values merged in. Nothing is written.
    pub(crate) async fn preview(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
        values: String,
    ) -> Result<Rendered, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let draft = RecordDraft { values, ..RecordDraft::default() };
        let prepared = self.prepare(caller, &database, &draft).await?;
        let found =
            store::records::get(self.context.db.engine(), caller.workspace, database.id, parse(id)?).await?;
        let before = found.ok_or_else(|| Error::no_record(id))?;
        documents::rendered(&self.context, caller, &database, &prepared.merged(&before)).await
    }

    /// Restores a former version of a record as a new version. Whatever it references must exist.
    pub(crate) async fn restore_version(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
        version: u64,
    ) -> Result<Written<VisibleRecord>, Error> {
        let record_id = parse(id)?;
        for _ in 0..MAX_TRIES {
            let database = databases::readable(&self.context.db, caller, database_id).await?;
            let former = self.former(caller, &database, record_id, version).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !lock_unchanged(&mut change, &database).await? {
                change.rollback().await?;
                continue;
            }
            let before = locked(&mut change, caller, &database, record_id).await?;
            let record =
                self.save_in(&mut change, caller, &database, &before, former.replaced(&before)).await?;
            return self.finish(change, caller, &database, record).await;
        }
        Err(schema_in_flux())
    }

    /// The versions of a live record, newest first. Values of deleted properties are under the names that these had.
    pub(crate) async fn versions(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
        request: PageRequest,
    ) -> Result<Page<RecordVersion>, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let record_id = parse(id)?;
        let db = &self.context.db;
        let found = store::records::get(db.engine(), caller.workspace, database.id, record_id).await?;
        let total = found.ok_or_else(|| Error::no_record(id))?.version;
        // Versions are numbered without gaps, so a page token is just the last version number.
        let before = request.after.as_ref().and_then(|after| after.id.parse().ok()).unwrap_or(i64::MAX);
        let mut versions =
            store::records::versions(db, caller.workspace, record_id, before, request.fetch()).await?;
        let known = former::with_former_properties(&self.context, &database, &versions).await?;
        self.redact_versions(caller, &known, &mut versions).await?;
        for version in &mut versions {
            former::name_former(&database, &known, &mut version.values);
        }
        Ok(request.page(versions, total, |version| (String::new(), version.version.to_string())))
    }

    async fn prepare(
        &self,
        caller: &Caller,
        database: &Database,
        draft: &RecordDraft,
    ) -> Result<Prepared, Error> {
        let mut checks = Checks::default();
        checks.mask(&draft.unknown_fields);
        let changes = ValueChanges::read(&mut checks, database, &draft.values, draft.allow_names);
        let content_file_id = draft
            .content_file_id
            .as_ref()
            .map(|file| checks.optional_id::<FileId>("contentFileId", file.as_deref()));
        let new_id = checks.optional_id("newId", draft.new_id.as_deref());
        let body = content_file_id.flatten();
        self.check_references(&mut checks, caller, database, &changes, body).await?;
        checks.finish()?;
        Ok(Prepared { changes, content_file_id, new_id })
    }

    /// A former version of a record, validated like a request: its options or properties may have been deleted since.
    async fn former(
        &self,
        caller: &Caller,
        database: &Database,
        id: RecordId,
        version: u64,
    ) -> Result<Prepared, Error> {
        let db = &self.context.db;
        let seen = store::records::get(db.engine(), caller.workspace, database.id, id).await?;
        seen.ok_or_else(|| Error::no_record(id))?;
        let found = store::records::version(db, caller.workspace, id, version).await?;
        let former = found.ok_or_else(|| Error::NotFound { kind: "version", id: version.to_string() })?;
        let mut checks = Checks::default();
        let values = values::shown(database, &former.values, |_, _| true);
        let text = serde_json::Value::Object(values).to_string();
        let changes = ValueChanges::read(&mut checks, database, &text, false);
        let body = former.content_file_id;
        let checked = self.check_references(&mut checks, caller, database, &changes, body).await;
        checked.map_err(without_ids)?;
        checks.finish()?;
        Ok(Prepared { changes, content_file_id: Some(body), new_id: None })
    }

    /// A database to create a record in, from the cache if possible. It may be stale: storing the record verifies it. A
    /// folder-scoped caller always gets it from the store, as the cached folder must not decide what a scope covers.
    async fn writable_database(&self, caller: &Caller, id: &str) -> Result<Arc<Database>, Error> {
        let Context { db, database_cache, .. } = &self.context;
        let parsed: Option<DatabaseId> = id.parse().ok();
        let Some(database) = parsed.filter(|_| !db.is_shared() && caller.listed().is_none()) else {
            return databases::readable(db, caller, id).await.map(Arc::new);
        };
        if let Some(database) = database_cache.get(caller.workspace, database) {
            return Ok(database);
        }
        let generation = database_cache.generation();
        let database = Arc::new(databases::readable(db, caller, id).await?);
        database_cache.insert(generation, &database);
        Ok(database)
    }

    /// Creates a record in a database that the transaction has locked or created.
    async fn create_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        database: &Database,
        prepared: Prepared,
    ) -> Result<Record, Error> {
        let record = self.new_record(change, database, prepared)?;
        let author = Author::of_record(&caller.principal);
        let is_stored = store::records::insert(change.tx(), database, &record, &author).await?;
        if is_stored { Ok(record) } else { Err(schema_in_flux()) }
    }

    /// Builds a new record, and adds it to the feed and the activity of the change.
    fn new_record(
        &self,
        change: &mut Change,
        database: &Database,
        prepared: Prepared,
    ) -> Result<Record, Error> {
        let now = change.now();
        let mut record = Record {
            id: prepared.new_id.unwrap_or_else(|| self.context.ids.next()),
            database_id: database.id,
            values: Values::new(),
            content_file_id: prepared.content_file_id.flatten(),
            version: 1,
            created_at: now,
            updated_at: now,
        };
        prepared.changes.merge(&mut record.values);
        change.grow(Growth::of_change(0, store::records::size_of(&record)?));
        change.note(trash::noted(Operation::Create, database, &record).versions(None, Some(record.version)));
        change.publish_upsert(Kind::Record, record.id);
        Ok(record)
    }

    /// Saves a record as a new version, unless nothing has changed.
    async fn save_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        database: &Database,
        before: &Record,
        mut record: Record,
    ) -> Result<Record, Error> {
        if record == *before {
            return Ok(record);
        }
        record.version += 1;
        record.updated_at = change.now();
        let author = Author::of_record(&caller.principal);
        store::records::replace(change.tx(), database, &record, &author).await?;
        let (size, size_before) = (store::records::size_of(&record)?, store::records::size_of(before)?);
        change.grow(Growth::of_change(size_before, size));
        let update = trash::noted(Operation::Update, database, &record);
        let update = update.versions(Some(before.version), Some(record.version));
        change.note(Activity { former: vec![Former::Values], ..update });
        change.publish_upsert(Kind::Record, record.id);
        Ok(record)
    }

    /// Commits, and returns the record as the caller sees it.
    async fn finish(
        &self,
        change: Change,
        caller: &Caller,
        database: &Database,
        record: Record,
    ) -> Result<Written<VisibleRecord>, Error> {
        let position = change.commit().await?.last;
        let item = self.show_one(caller, database, record).await?;
        Ok(Written { item, position })
    }
}

impl Prepared {
    /// The record with these values merged into its own.
    fn merged(&self, before: &Record) -> Record {
        let mut record = before.clone();
        self.changes.merge(&mut record.values);
        if let Some(content_file_id) = self.content_file_id {
            record.content_file_id = content_file_id;
        }
        record
    }

    /// The record with these values instead of its own.
    fn replaced(&self, before: &Record) -> Record {
        self.merged(&Record { values: Values::new(), ..before.clone() })
    }
}

/// Checks the precondition that a record has one of these versions; empty accepts any.
fn require_version(record: &Record, versions: &[u64]) -> Result<(), Error> {
    if versions.is_empty() || versions.contains(&record.version) {
        return Ok(());
    }
    Err(Error::RecordConflict { id: record.id.to_string(), actual: record.version })
}

/// Locks the database until the end of the transaction; `false` if it has changed since it was read.
async fn lock_unchanged(change: &mut Change, database: &Database) -> Result<bool, Error> {
    store::databases::lock_shared(change.tx(), database.workspace_id, database.id).await?;
    let now = store::databases::written_at(change.tx(), database.workspace_id, database.id).await?;
    Ok(now == Some(database.updated_at))
}

async fn locked(
    change: &mut Change,
    caller: &Caller,
    database: &Database,
    id: RecordId,
) -> Result<Record, Error> {
    store::records::lock(change.tx(), caller.workspace, id).await?;
    let found = store::records::get(change.tx().engine(), caller.workspace, database.id, id).await?;
    found.ok_or_else(|| Error::no_record(id))
}

/// The error for a version that references items outside the caller's scope, without their ids: the caller did not send them.
fn without_ids(error: Error) -> Error {
    if !matches!(error, Error::OutOfScope(_)) {
        return error;
    }
    let message = "this version names things outside the folders of this token: a token that reaches them can bring \
                   it back";
    Error::OutOfScope(message.to_owned())
}

fn schema_in_flux() -> Error {
    Error::OutOfDate("the database's properties keep changing: try again".to_owned())
}

/// Parses an id; an invalid one is reported as not found.
fn parse(id: &str) -> Result<RecordId, Error> {
    id.parse().map_err(|_| Error::no_record(id))
}
