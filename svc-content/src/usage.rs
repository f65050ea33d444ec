//! The usage of a workspace, and the limits of its plan (contract, "Limits").
//!
//! Files and bytes are those of content, versions, trash and assets, with equal contents counted once. Each write
//! adds its growth in its own transaction: one row for each workspace, locked late, right before the feed head, which
//! prevents deadlocks, and prevents two concurrent writers at the limit from both passing.

use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::scope::Caller;
use crate::{Error, store};

/// A usage, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) used: u64,
    /// Absent: no limit.
    pub(crate) limit: Option<u64>,
}

/// The usage of the workspace of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) files: Measure,
    pub(crate) bytes: Measure,
}

/// The bytes of a workspace by what they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) files: u64,
    pub(crate) assets: u64,
    pub(crate) records: u64,
}

/// The rules of usage on a store.
#[derive(Debug, Clone)]
pub(crate) struct Accounts {
    context: Context,
}

impl Accounts {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// The bytes that this service stores of a workspace.
    pub(crate) async fn stored_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        Ok(store::usage::get(&self.context.db, workspace).await?.bytes)
    }

    /// The usage and the limits of the workspace of the caller.
    pub(crate) async fn get(&self, caller: &Caller) -> Result<Account, Error> {
        let used = store::usage::get(&self.context.db, caller.workspace).await?;
        let allowed = self.context.limits.of(caller.plan.as_deref());
        Ok(Account {
            files: Measure { used: used.files, limit: allowed.files },
            bytes: Measure { used: used.bytes, limit: allowed.stored_bytes },
        })
    }

    /// The bytes of the workspace of the caller by what they are of. Writes count a single number; what is not of
    /// files and assets is of records.
    pub(crate) async fn stored(&self, caller: &Caller) -> Result<Stored, Error> {
        let db = &self.context.db;
        let _permit = db.read_permit(caller.workspace).await?;
        let all = store::usage::get(db, caller.workspace).await?.bytes;
        let (files, assets) = store::usage::bytes_of_files_and_assets(db, caller.workspace).await?;
        Ok(Stored { files, assets, records: all.saturating_sub(files).saturating_sub(assets) })
    }
}
