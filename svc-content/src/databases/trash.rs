//! Databases in trash. Their records stay as they are, and are out of reach with them: a database comes back with the
//! records that it had, and not with those that were deleted before.

use cairn_chassis::feed::{self, Entry, Kind, Op};
use cairn_chassis::sql::Tx;
use cairn_proto::ids::DatabaseId;

use super::{Databases, Records, announce, announce_records, locked, parse};
use crate::Error;
use crate::model::{Database, Deletion, Growth, Page, PageRequest, Written};
use crate::scope::Caller;
use crate::store;

impl Databases {
    /// Databases in trash; of a folder-scoped caller those whose folder is live and covered.
    pub(crate) async fn list_trashed(
        &self,
        caller: &Caller,
        ask: PageRequest,
    ) -> Result<Page<Database>, Error> {
        let mut found = store::databases::list_trashed(&self.context.db, caller.workspace).await?;
        found.retain(|database| caller.covers(&database.folders));
        let key = |database: &Database| (database.name.clone(), database.id.to_string());
        let total = found.len() as u64;
        if let Some(after) = &ask.after {
            found.retain(|database| key(database) > (after.name.clone(), after.id.clone()));
        }
        Ok(ask.page(found, total, key))
    }

    /// Moves a database to trash.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let mut tx = self.context.db.begin_write().await?;
        let database = locked(&mut tx, caller, parse(id)?).await?;
        let now = self.context.clock.now();
        let deletion = Deletion {
            workspace: caller.workspace,
            id: self.context.ids.next(),
            kind: Kind::Database,
            item_id: database.id.to_string(),
            parent_id: database.folder_id,
            database_id: None,
            name: database.name.clone(),
            path: database.path.clone(),
            items: 1,
            at: now,
        };
        store::databases::trash(&mut tx, caller.workspace, database.id, deletion.id, now).await?;
        store::trash::insert(&mut tx, &deletion).await?;
        let position = announce(&mut tx, &database, Op::Delete, Records::Gone, now).await?;
        self.context.feed.commit(tx, caller.workspace, position).await?;
        Ok(position)
    }

    /// Brings a database back from trash, into the root when its folder is not there any more.
    pub(crate) async fn restore(&self, caller: &Caller, id: &str) -> Result<Written<Database>, Error> {
        let database_id = parse(id)?;
        let mut tx = self.context.db.begin_write().await?;
        let seen = trashed(&mut tx, caller, database_id).await?;
        if let Some(folder_id) = seen.folder_id {
            store::folders::hold(&mut tx, caller.workspace, folder_id).await?;
        }
        store::databases::lock(&mut tx, caller.workspace, database_id).await?;
        let mut database = trashed(&mut tx, caller, database_id).await?;
        let deletion = deletion(&mut tx, caller, database_id).await?;
        if database.folders.is_empty() {
            caller.require_root()?;
            database.folder_id = None;
        }
        let now = self.context.clock.now();
        database.deleted_at = None;
        database.updated_at = now;
        store::databases::restore(&mut tx, &database).await?;
        if let Some(deletion) = deletion {
            store::trash::forget(&mut tx, &deletion).await?;
        }
        self.announce(tx, database, Records::Changed, now).await
    }

    /// Removes a trashed database for good, with its records and their versions.
    pub(crate) async fn purge(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        let database_id = parse(id)?;
        let mut tx = self.context.db.begin_write().await?;
        store::databases::lock(&mut tx, caller.workspace, database_id).await?;
        let database = trashed(&mut tx, caller, database_id).await?;
        let deletion = deletion(&mut tx, caller, database_id).await?;
        let now = self.context.clock.now();
        // Before the feed's head is had, as everywhere.
        let bytes = store::databases::record_bytes(&mut tx, caller.workspace, database.id).await?;
        store::usage::count(&mut tx, caller.workspace, Growth::less_bytes(bytes)).await?;
        match &deletion {
            Some(deletion) => store::trash::forget(&mut tx, deletion).await?,
            // It went along with a folder, whose deletion has not told of the records.
            None => {
                announce_records(&mut tx, caller.workspace, database.id, Op::Delete, now).await?;
            }
        }
        store::databases::purge(&mut tx, caller.workspace, database.id).await?;
        let entry = Entry::delete(Kind::Database, database.id);
        let position = feed::append(&mut tx, caller.workspace, &[entry], now).await?;
        self.context.feed.commit(tx, caller.workspace, position).await?;
        Ok(position)
    }
}

/// The deletion of a database by itself; after the database is locked, as the trash does, so that no other can come or
/// go meanwhile.
async fn deletion(tx: &mut Tx, caller: &Caller, id: DatabaseId) -> Result<Option<Deletion>, Error> {
    Ok(store::trash::lock(tx, caller.workspace, Kind::Database, &id.to_string()).await?)
}

async fn trashed(tx: &mut Tx, caller: &Caller, id: DatabaseId) -> Result<Database, Error> {
    let found = store::databases::get_trashed(tx, caller.workspace, id).await?;
    let database = found.ok_or_else(|| Error::no_database(id))?;
    caller.require("database", id, &database.folders)?;
    Ok(database)
}
