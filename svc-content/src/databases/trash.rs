//! Databases in trash. Their records are not touched, and are unreachable meanwhile: restoring a database restores the records
//! that were live, but not those that had been deleted before it.

use cairn_chassis::feed::{Kind, Op};
use cairn_proto::ids::DatabaseId;

use super::{Databases, locked, noted, parse, version};
use crate::Error;
use crate::change::Change;
use crate::model::{Activity, Database, Deletion, Former, Growth, Operation, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;

impl Databases {
    /// Databases in trash; for a folder-scoped caller those whose folder is live and in scope.
    pub(crate) async fn list_trashed(
        &self,
        caller: &Caller,
        request: PageRequest,
    ) -> Result<Page<Database>, Error> {
        let mut found = store::databases::list_trashed(&self.context.db, caller.workspace).await?;
        found.retain(|database| caller.covers(&database.folders));
        let key = |database: &Database| (database.name.clone(), database.id.to_string());
        let total = found.len() as u64;
        if let Some(after) = &request.after {
            found.retain(|database| key(database) > (after.name.clone(), after.id.clone()));
        }
        Ok(request.page(found, total, key))
    }

    /// Moves a database to trash.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let mut change = Change::begin(&self.context, caller).await?;
        let database = locked(&mut change, caller, parse(id)?).await?;
        let folder_id = database.folder_id;
        let deletion = change
            .deletion(caller, Kind::Database, database.id, database.name, database.path)
            .in_folder(folder_id);
        change.trash(&deletion).await?;
        change.publish_records(database.id, Op::Delete);
        Ok(change.commit().await?.last)
    }

    /// Restores a database from trash, into the root if its folder is not live.
    pub(crate) async fn restore(&self, caller: &Caller, id: &str) -> Result<Written<Database>, Error> {
        let database_id = parse(id)?;
        let mut change = Change::begin(&self.context, caller).await?;
        let seen = trashed(&mut change, caller, database_id).await?;
        if let Some(folder_id) = seen.folder_id {
            store::folders::lock_shared(change.tx(), caller.workspace, folder_id).await?;
        }
        store::databases::lock(change.tx(), caller.workspace, database_id).await?;
        let mut database = trashed(&mut change, caller, database_id).await?;
        let deletion = deletion(&mut change, caller, database_id).await?;
        let folder_before = database.folder_id;
        if database.folders.is_empty() {
            caller.require_root()?;
            database.folder_id = None;
        }
        database.deleted_at = None;
        database.updated_at = change.now();
        store::databases::restore(change.tx(), &database).await?;
        let back = noted(Operation::Restore, &database).versions(None, Some(version(&database)));
        let is_moved = database.folder_id != folder_before;
        let former = is_moved.then_some(Former::Folder(folder_before)).into_iter().collect();
        change.note(Activity { former, ..back });
        if let Some(deletion) = deletion {
            store::trash::delete(change.tx(), &deletion).await?;
        }
        change.publish_upsert(Kind::Database, database.id);
        change.publish_records(database.id, Op::Upsert);
        change.commit_with(database).await
    }

    /// Permanently removes a trashed database, with its records and their versions.
    pub(crate) async fn purge(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let database_id = parse(id)?;
        let mut change = Change::begin(&self.context, caller).await?;
        store::databases::lock(change.tx(), caller.workspace, database_id).await?;
        let database = trashed(&mut change, caller, database_id).await?;
        let deletion = deletion(&mut change, caller, database_id).await?;
        let bytes = store::databases::record_bytes(change.tx(), caller.workspace, database.id).await?;
        change.grow(Growth::less_bytes(bytes));
        match &deletion {
            Some(deletion) => store::trash::delete(change.tx(), deletion).await?,
            // It was trashed with a folder, whose deletion did not publish the records.
            None => {
                let records =
                    store::databases::live_record_ids(change.tx(), caller.workspace, database.id).await?;
                for record in records {
                    change.publish_delete(Kind::Record, record);
                }
            }
        }
        store::databases::purge(change.tx(), caller.workspace, database.id).await?;
        change.note(noted(Operation::Remove, &database));
        change.publish_delete(Kind::Database, database.id);
        Ok(change.commit().await?.last)
    }
}

/// The deletion of a database, unless it was trashed with a folder. The database must be locked first, which is the lock order
/// of the trash.
async fn deletion(change: &mut Change, caller: &Caller, id: DatabaseId) -> Result<Option<Deletion>, Error> {
    Ok(store::trash::lock(change.tx(), caller.workspace, Kind::Database, &id.to_string()).await?)
}

async fn trashed(change: &mut Change, caller: &Caller, id: DatabaseId) -> Result<Database, Error> {
    let found = store::databases::get_trashed(change.tx(), caller.workspace, id).await?;
    let database = found.ok_or_else(|| Error::no_database(id))?;
    caller.require("database", id, &database.folders)?;
    Ok(database)
}
