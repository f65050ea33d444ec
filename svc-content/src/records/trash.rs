//! Records in trash. Their cells, by which SQL finds and counts live records, are deleted with them and rebuilt on restore.

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::Tx;
use cairn_proto::domain::limits::NAME_CHARS;
use cairn_proto::ids::{DatabaseId, FolderId, RecordId};

use super::{MAX_TRIES, Records, VisibleRecord, lock_unchanged, locked, parse, schema_in_flux};
use crate::Error;
use crate::change::Change;
use crate::model::{Activity, Database, Deletion, Operation, Record, Written};
use crate::scope::Caller;
use crate::{databases, store};

const UNTITLED: &str = "Untitled";

impl Records {
    /// Moves a record to trash.
    pub(crate) async fn delete(&self, caller: &Caller, database_id: &str, id: &str) -> Result<u64, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        hold_live(&mut change, &database).await?;
        let record = locked(&mut change, caller, &database, parse(id)?).await?;
        delete_in(&mut change, caller, &database, &record).await?;
        Ok(change.commit().await?.last)
    }

    /// Restores a record from trash into its database, which must be live.
    pub(crate) async fn restore(
        &self,
        caller: &Caller,
        database_id: &str,
        id: &str,
    ) -> Result<Written<VisibleRecord>, Error> {
        let record_id = parse(id)?;
        for _ in 0..MAX_TRIES {
            let database = databases::readable(&self.context.db, caller, database_id).await?;
            let mut change = Change::begin(&self.context, caller).await?;
            if !lock_unchanged(&mut change, &database).await? {
                change.rollback().await?;
                continue;
            }
            let (record, deletion) = trashed(&mut change, caller, &database, record_id).await?;
            store::trash::restore(change.tx(), &deletion).await?;
            index_record(change.tx(), &database, &record).await?;
            change.note(noted(Operation::Restore, &database, &record));
            change.publish_upsert(Kind::Record, record.id);
            return self.finish(change, caller, &database, record).await;
        }
        Err(schema_in_flux())
    }

    /// Permanently removes a trashed record, with its versions.
    pub(crate) async fn purge(&self, caller: &Caller, database_id: &str, id: &str) -> Result<u64, Error> {
        let database = databases::readable(&self.context.db, caller, database_id).await?;
        let mut change = Change::begin(&self.context, caller).await?;
        hold_live(&mut change, &database).await?;
        let (record, deletion) = trashed(&mut change, caller, &database, parse(id)?).await?;
        let removed = store::trash::remove(change.tx(), &deletion).await?;
        change.note(noted(Operation::Remove, &database, &record));
        change.grow(removed.growth);
        change.publish_delete(Kind::Record, record.id);
        Ok(change.commit().await?.last)
    }
}

/// Moves a record to trash.
pub(super) async fn delete_in(
    change: &mut Change,
    caller: &Caller,
    database: &Database,
    record: &Record,
) -> Result<(), Error> {
    let name = name(database, record);
    let path = format!("{}/{name}", database.path);
    let deletion = change.deletion(caller, Kind::Record, record.id, name, path).in_database(database.id);
    store::cells::delete_of_record(change.tx(), database.workspace_id, record.id).await?;
    change.trash_noted(&deletion, noted(Operation::Trash, database, record)).await?;
    Ok(store::records::count(change.tx(), database.workspace_id, database.id, -1).await?)
}

/// The path of the database of a trashed record, which must be live for the record to be restored.
pub(crate) async fn require_database(tx: &mut Tx, deletion: &Deletion) -> Result<String, Error> {
    Ok(holder(tx, deletion).await?.path)
}

/// The folders from the root to the database of a trashed record; `None` if the database is not live.
pub(crate) async fn folders_of(tx: &mut Tx, deletion: &Deletion) -> Result<Option<Vec<FolderId>>, Error> {
    let Some(id) = deletion.database_id else { return Ok(None) };
    let found = store::databases::get(tx.engine(), deletion.workspace, id).await?;
    Ok(found.map(|database| database.folders))
}

/// Rebuilds the cells of a restored record.
pub(crate) async fn revive(tx: &mut Tx, deletion: &Deletion) -> Result<(), Error> {
    let database = holder(tx, deletion).await?;
    let id = parse(&deletion.item_id)?;
    let found = store::records::get(tx.engine(), deletion.workspace, database.id, id).await?;
    let record = found.ok_or_else(|| Error::no_record(id))?;
    index_record(tx, &database, &record).await
}

async fn holder(tx: &mut Tx, deletion: &Deletion) -> Result<Database, Error> {
    let in_trash = || {
        let message = "the record's database is in trash: restore the database first";
        Error::invalid("itemId", "database_in_trash", message)
    };
    let id: DatabaseId = deletion.database_id.ok_or_else(in_trash)?;
    store::databases::get(tx.engine(), deletion.workspace, id).await?.ok_or_else(in_trash)
}

async fn index_record(tx: &mut Tx, database: &Database, record: &Record) -> Result<(), Error> {
    store::cells::insert(tx, database, record).await?;
    Ok(store::records::count(tx, database.workspace_id, database.id, 1).await?)
}

/// Locks a database, which must be live, until the end of the transaction.
async fn hold_live(change: &mut Change, database: &Database) -> Result<(), Error> {
    store::databases::lock_shared(change.tx(), database.workspace_id, database.id).await?;
    let written = store::databases::written_at(change.tx(), database.workspace_id, database.id).await?;
    written.map(|_| ()).ok_or_else(|| Error::no_database(database.id))
}

/// Locks a trashed record and its deletion. The deletion comes first in the lock order of the trash.
async fn trashed(
    change: &mut Change,
    caller: &Caller,
    database: &Database,
    id: RecordId,
) -> Result<(Record, Deletion), Error> {
    let deletion = store::trash::lock(change.tx(), caller.workspace, Kind::Record, &id.to_string()).await?;
    store::records::lock(change.tx(), caller.workspace, id).await?;
    let found = store::records::get_trashed(change.tx(), caller.workspace, database.id, id).await?;
    found.zip(deletion).ok_or_else(|| Error::no_record(id))
}

/// The activity entry of a record.
pub(super) fn noted(operation: Operation, database: &Database, record: &Record) -> Activity {
    let name = name(database, record);
    let path = format!("{}/{name}", database.path);
    Activity {
        database_id: Some(database.id),
        ..Activity::of(operation, Kind::Record, record.id, &name).at(&path, database.folder_id)
    }
}

fn name(database: &Database, record: &Record) -> String {
    let title = database.title_of(&record.values);
    if title.trim().is_empty() { UNTITLED.to_owned() } else { title.chars().take(NAME_CHARS).collect() }
}
