//! Record writes of a batch: validated before the batch's transaction, applied in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_proto::ids::{DatabaseId, RecordId};

use super::{
    Prepared, RecordDraft, Records, lock_unchanged, locked, parse, require_version, schema_in_flux, trash,
};
use crate::Error;
use crate::change::Change;
use crate::context::Context;
use crate::databases;
use crate::model::{Database, Record};
use crate::scope::Caller;

/// One write of a record.
#[derive(Debug, Clone)]
pub(crate) enum RecordWrite {
    Create(RecordDraft),
    Update(String, RecordDraft),
    /// Restores a former version.
    RestoreVersion(String, u64),
    Delete(String),
}

impl RecordWrite {
    /// The bytes of the values.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Create(draft) | Self::Update(_, draft) => draft.values.len(),
            Self::RestoreVersion(..) | Self::Delete(_) => 0,
        }
    }
}

/// A write that was validated against its database.
pub(crate) struct CheckedRecord {
    database: Arc<Database>,
    write: Checked,
    /// The record must have one of these versions; empty accepts any.
    if_version: Vec<u64>,
}

enum Checked {
    Create(Prepared),
    Update(RecordId, Prepared),
    Replace(RecordId, Prepared),
    Delete(RecordId),
}

/// The databases of a batch's records, each read once per batch.
#[derive(Debug, Default)]
pub(crate) struct RecordsOfBatch(BTreeMap<DatabaseId, Arc<Database>>);

impl RecordsOfBatch {
    /// A database, read on first use.
    pub(crate) async fn database(
        &mut self,
        context: &Context,
        caller: &Caller,
        id: &str,
    ) -> Result<Arc<Database>, Error> {
        let read = id.parse().ok().and_then(|id: DatabaseId| self.0.get(&id));
        if let Some(database) = read {
            return Ok(Arc::clone(database));
        }
        let found = Arc::new(databases::readable(&context.db, caller, id).await?);
        self.0.insert(found.id, Arc::clone(&found));
        Ok(found)
    }

    /// Locks all of them until the end of the transaction, in order of id as the lock order.
    ///
    /// # Errors
    /// If one has changed since it was read; the batch can be retried.
    pub(crate) async fn lock_unchanged(&self, change: &mut Change) -> Result<(), Error> {
        for database in self.0.values() {
            if !lock_unchanged(change, database).await? {
                return Err(schema_in_flux());
            }
        }
        Ok(())
    }
}

impl Records {
    /// Validates a write; `id` becomes the id of a new record.
    pub(crate) async fn check_write(
        &self,
        caller: &Caller,
        database: Arc<Database>,
        write: RecordWrite,
        id: RecordId,
        if_version: Option<u64>,
    ) -> Result<CheckedRecord, Error> {
        let mut versions: Vec<u64> = if_version.into_iter().collect();
        let write = match write {
            RecordWrite::Create(draft) => {
                let prepared = self.prepare(caller, &database, &draft).await?;
                Checked::Create(Prepared { new_id: Some(id), ..prepared })
            }
            RecordWrite::Update(id, draft) => {
                versions.extend(&draft.if_version);
                Checked::Update(parse(&id)?, self.prepare(caller, &database, &draft).await?)
            }
            RecordWrite::RestoreVersion(id, version) => {
                let id = parse(&id)?;
                Checked::Replace(id, self.former(caller, &database, id, version).await?)
            }
            RecordWrite::Delete(id) => Checked::Delete(parse(&id)?),
        };
        Ok(CheckedRecord { database, write, if_version: versions })
    }

    /// Applies a write. Returns the id of the record, and its version unless it was deleted.
    pub(crate) async fn apply_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        checked: CheckedRecord,
    ) -> Result<(RecordId, Option<u64>), Error> {
        let CheckedRecord { database, write, if_version } = checked;
        let record = match write {
            Checked::Create(prepared) => self.create_in(change, caller, &database, prepared).await?,
            Checked::Update(id, prepared) => {
                let before = locked_at_version(change, caller, &database, id, &if_version).await?;
                self.save_in(change, caller, &database, &before, prepared.merged(&before)).await?
            }
            Checked::Replace(id, prepared) => {
                let before = locked_at_version(change, caller, &database, id, &if_version).await?;
                self.save_in(change, caller, &database, &before, prepared.replaced(&before)).await?
            }
            Checked::Delete(id) => {
                let before = locked_at_version(change, caller, &database, id, &if_version).await?;
                trash::delete_in(change, caller, &database, &before).await?;
                return Ok((id, None));
            }
        };
        Ok((record.id, Some(record.version)))
    }
}

/// Locks a record, and checks the version precondition.
async fn locked_at_version(
    change: &mut Change,
    caller: &Caller,
    database: &Database,
    id: RecordId,
    if_version: &[u64],
) -> Result<Record, Error> {
    let record = locked(change, caller, database, id).await?;
    require_version(&record, if_version)?;
    Ok(record)
}
