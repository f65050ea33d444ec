//! The rules of records (spec 2.5, 4.9).
//!
//! What a write needs to know of other things is read before its transaction; the transaction then begins by making
//! sure that the database is what the rules were applied to, and otherwise they are applied anew.

mod documents;
mod hidden;
mod list;
mod references;
mod trash;
pub(crate) mod values;

use std::collections::HashMap;

use cairn_chassis::feed::Kind;
use cairn_proto::ids::{FileId, RecordId};

pub(crate) use self::documents::{Rendered, documents, readable};
pub(crate) use self::list::RecordListRequest;
pub(crate) use self::references::Backlink;
pub(crate) use self::trash::{folders_of, require_database, revive};
use self::values::ValueChanges;
use crate::Error;
use crate::change::Change;
use crate::checks::Checks;
use crate::context::Context;
use crate::databases::former;
use crate::model::{Author, Database, Growth, Page, PageRequest, Record, RecordVersion, Values, Written};
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
    database: Database,
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
            let prepared = self.prepare(caller, database_id, &draft).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !hold(&mut change, &prepared.database).await? {
                change.rollback().await?;
                continue;
            }
            let now = change.now();
            let mut record = Record {
                id: prepared.new_id.unwrap_or_else(|| self.context.ids.next()),
                database_id: prepared.database.id,
                values: Values::new(),
                content_file_id: prepared.content_file_id.flatten(),
                version: 1,
                created_at: now,
                updated_at: now,
            };
            prepared.changes.merge(&mut record.values);
            store::records::insert(change.tx(), &prepared.database, &record).await?;
            keep_version(&mut change, caller, &record).await?;
            store::cells::insert(change.tx(), &prepared.database, &record).await?;
            store::records::count(change.tx(), caller.workspace, record.database_id, 1).await?;
            change.grow(Growth::of_change(0, store::records::size_of(&record)?));
            return self.publish(change, caller, &prepared.database, record).await;
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
            let prepared = self.prepare(caller, database_id, &draft).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !hold(&mut change, &prepared.database).await? {
                change.rollback().await?;
                continue;
            }
            let before = locked(&mut change, caller, &prepared.database, record_id).await?;
            if !draft.if_version.is_empty() && !draft.if_version.contains(&before.version) {
                return Err(Error::RecordConflict { id: id.to_owned(), actual: before.version });
            }
            let mut record = before.clone();
            prepared.changes.merge(&mut record.values);
            if let Some(content_file_id) = prepared.content_file_id {
                record.content_file_id = content_file_id;
            }
            return self.save(change, caller, &prepared.database, &before, record).await;
        }
        Err(schema_in_flux())
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
            let db = &self.context.db;
            let seen = store::records::get(db.engine(), caller.workspace, database.id, record_id).await?;
            seen.ok_or_else(|| Error::no_record(id))?;
            let found = store::records::version(db, caller.workspace, record_id, version).await?;
            let former = found.ok_or_else(|| Error::NotFound { kind: "version", id: version.to_string() })?;
            let mut checks = Checks::default();
            // Read as if sent today: an option or a property may be gone since.
            let values = values::shown(&database, &former.values, |_, _| true);
            let text = serde_json::Value::Object(values).to_string();
            let changes = ValueChanges::read(&mut checks, &database, &text, false);
            let body = former.content_file_id;
            let checked = self.check_references(&mut checks, caller, &database, &changes, body).await;
            checked.map_err(without_ids)?;
            checks.finish()?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !hold(&mut change, &database).await? {
                change.rollback().await?;
                continue;
            }
            let before = locked(&mut change, caller, &database, record_id).await?;
            let mut record = Record { values: Values::new(), content_file_id: body, ..before.clone() };
            changes.merge(&mut record.values);
            return self.save(change, caller, &database, &before, record).await;
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
        database_id: &str,
        draft: &RecordDraft,
    ) -> Result<Prepared, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let mut checks = Checks::default();
        checks.mask(&draft.unknown_fields);
        let changes = ValueChanges::read(&mut checks, &database, &draft.values, draft.allow_names);
        let content_file_id = draft
            .content_file_id
            .as_ref()
            .map(|file| checks.optional_id::<FileId>("contentFileId", file.as_deref()));
        let new_id = checks.optional_id("newId", draft.new_id.as_deref());
        let body = content_file_id.flatten();
        self.check_references(&mut checks, caller, &database, &changes, body).await?;
        checks.finish()?;
        Ok(Prepared { database, changes, content_file_id, new_id })
    }

    async fn save(
        &self,
        mut change: Change,
        caller: &Caller,
        database: &Database,
        before: &Record,
        mut record: Record,
    ) -> Result<Written<Shown>, Error> {
        if record == *before {
            let position = change.commit().await?.last;
            let item = self.show_one(caller, database, record).await?;
            return Ok(Written { item, position });
        }
        record.version += 1;
        record.updated_at = change.now();
        store::records::update(change.tx(), database, &record).await?;
        keep_version(&mut change, caller, &record).await?;
        store::cells::forget_record(change.tx(), caller.workspace, record.id).await?;
        store::cells::insert(change.tx(), database, &record).await?;
        let (size, size_before) = (store::records::size_of(&record)?, store::records::size_of(before)?);
        change.grow(Growth::of_change(size_before, size));
        self.publish(change, caller, database, record).await
    }

    /// Ends the change of a record.
    async fn publish(
        &self,
        mut change: Change,
        caller: &Caller,
        database: &Database,
        record: Record,
    ) -> Result<Written<Shown>, Error> {
        change.publish_upsert(Kind::Record, record.id);
        let position = change.commit().await?.last;
        let item = self.show_one(caller, database, record).await?;
        Ok(Written { item, position })
    }
}

async fn keep_version(change: &mut Change, caller: &Caller, record: &Record) -> Result<(), Error> {
    let (author, now) = (Author::of_record(&caller.principal), change.now());
    Ok(store::records::insert_version(change.tx(), caller.workspace, record, &author, now).await?)
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
