//! The rules of records (spec 2.5, 4.9).
//!
//! What a write needs to know of other things is read before its transaction; the transaction then begins by making
//! sure that the database is what the rules were applied to, and otherwise they are applied anew.

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
pub(crate) use self::of_table::{DatabaseOfTable, FieldChoice, MadeOfTable, TableField};
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

/// Every change of the database's schema in between costs a write one more try.
const MAX_TRIES: usize = 5;

/// Names of properties by their ids.
pub(crate) type PropertyNames = HashMap<String, String>;

/// A record as a caller sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    pub(crate) record: Record,
    pub(crate) title: String,
    /// Of the properties that the values are of; empty for a record of a page, which names them once.
    pub(crate) property_names: PropertyNames,
}

/// What a caller gives of a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordDraft {
    /// A JSON object; empty for none.
    pub(crate) values: String,
    /// Absent leaves it alone; `Some(None)` clears it.
    pub(crate) content_file_id: Option<Option<String>>,
    pub(crate) allow_names: bool,
    /// Of a new record; chosen here when absent.
    pub(crate) new_id: Option<String>,
    /// The version must be one of these; none: any.
    pub(crate) if_version: Vec<u64>,
    /// What is to be said of names in the mask that are no field.
    pub(crate) unknown_fields: Vec<String>,
}

/// A draft that obeys the rules of a database as it was read.
struct Prepared {
    changes: ValueChanges,
    content_file_id: Option<Option<FileId>>,
    new_id: Option<RecordId>,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    context: Context,
}

impl Records {
    pub(crate) fn new(context: Context) -> Self {
        Self { context }
    }

    /// Makes a record and its first version.
    pub(crate) async fn create(
        &self,
        caller: &Caller,
        database_id: &str,
        draft: RecordDraft,
    ) -> Result<Written<Shown>, Error> {
        for _ in 0..MAX_TRIES {
            let database = self.known(caller, database_id).await?;
            let prepared = self.prepare(caller, &database, &draft).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            let record = self.new_record(&mut change, &database, prepared)?;
            let Some(positions) = change.commit_record(&database, &record).await? else {
                self.context.known.forget(caller.workspace);
                continue;
            };
            let item = self.show_one(caller, &database, record).await?;
            return Ok(Written { item, position: positions.last });
        }
        Err(schema_in_flux())
    }

    /// A record.
    pub(crate) async fn get(&self, caller: &Caller, database_id: &str, id: &str) -> Result<Shown, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let found =
            store::records::get(self.context.db.engine(), caller.workspace, database.id, parse(id)?).await?;
        let record = found.ok_or_else(|| Error::no_record(id))?;
        self.show_one(caller, &database, record).await
    }

    /// Merges values into a record and saves a version. A change that changes nothing leaves version and feed alone.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
        draft: RecordDraft,
    ) -> Result<Written<Shown>, Error> {
        let record_id = parse(id)?;
        for _ in 0..MAX_TRIES {
            let database = databases::readable(&self.context.db, caller, database_id).await?;
            let prepared = self.prepare(caller, &database, &draft).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !hold(&mut change, &database).await? {
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

    /// A record as it would be searched with these values beside those that it has. Nothing is written.
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

    /// Makes a record what it was at a version, as a new version. What it named then must be there.
    pub(crate) async fn restore_version(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
        version: u64,
    ) -> Result<Written<Shown>, Error> {
        let record_id = parse(id)?;
        for _ in 0..MAX_TRIES {
            let database = databases::readable(&self.context.db, caller, database_id).await?;
            let former = self.former(caller, &database, record_id, version).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !hold(&mut change, &database).await? {
                change.rollback().await?;
                continue;
            }
            let before = locked(&mut change, caller, &database, record_id).await?;
            let record = self.save_in(&mut change, caller, &database, &before, former.alone(&before)).await?;
            return self.finish(change, caller, &database, record).await;
        }
        Err(schema_in_flux())
    }

    /// The versions of a live record, the newest first. Values of properties that are no more stand under the names
    /// that these had.
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
        // Versions are numbered without gaps, so the number before which a page ends is all that its token needs.
        let before = request.after.as_ref().and_then(|after| after.id.parse().ok()).unwrap_or(i64::MAX);
        let mut versions =
            store::records::versions(db, caller.workspace, record_id, before, request.fetch()).await?;
        let known = former::recall(&self.context, &database, &versions).await?;
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

    /// What a record was at a version. Read as if sent today: an option or a property may be gone since.
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

    /// A database to which a record is to be written. What it is by then is looked at when the record is stored; what the scope
    /// of a caller covers is never told from memory.
    async fn known(&self, caller: &Caller, id: &str) -> Result<Arc<Database>, Error> {
        let Context { db, known, .. } = &self.context;
        let parsed: Option<DatabaseId> = id.parse().ok();
        let Some(database) = parsed.filter(|_| !db.is_shared() && caller.listed().is_none()) else {
            return databases::readable(db, caller, id).await.map(Arc::new);
        };
        if let Some(database) = known.get(caller.workspace, database) {
            return Ok(database);
        }
        let begun = known.begin();
        let database = Arc::new(databases::readable(db, caller, id).await?);
        known.keep(begun, &database);
        Ok(database)
    }

    /// Makes a record of a database that the change holds, or has made.
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

    /// A record that is to be stored, of which the change tells.
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

    /// Makes a record what it becomes, as a new version, unless that is what it is.
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

    /// Ends the change of a record.
    async fn finish(
        &self,
        change: Change,
        caller: &Caller,
        database: &Database,
        record: Record,
    ) -> Result<Written<Shown>, Error> {
        let position = change.commit().await?.last;
        let item = self.show_one(caller, database, record).await?;
        Ok(Written { item, position })
    }
}

impl Prepared {
    /// The record with these values beside those that it has.
    fn merged(&self, before: &Record) -> Record {
        let mut record = before.clone();
        self.changes.merge(&mut record.values);
        if let Some(content_file_id) = self.content_file_id {
            record.content_file_id = content_file_id;
        }
        record
    }

    /// The record with these values and no others.
    fn alone(&self, before: &Record) -> Record {
        self.merged(&Record { values: Values::new(), ..before.clone() })
    }
}

/// Checks that a record has one of these versions; none: any.
fn require_version(record: &Record, versions: &[u64]) -> Result<(), Error> {
    if versions.is_empty() || versions.contains(&record.version) {
        return Ok(());
    }
    Err(Error::RecordConflict { id: record.id.to_string(), actual: record.version })
}

/// Keeps the database as it was read until the transaction ends; `false` when it is not that any more.
async fn hold(change: &mut Change, database: &Database) -> Result<bool, Error> {
    store::databases::hold(change.tx(), database.workspace_id, database.id).await?;
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

/// A version names what its reader did not: an error about that has no ids.
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

/// A text that is no id names no record.
fn parse(id: &str) -> Result<RecordId, Error> {
    id.parse().map_err(|_| Error::no_record(id))
}
