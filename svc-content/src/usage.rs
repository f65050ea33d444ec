//! What a workspace keeps, and how much its plan lets it keep (contract, "Limits").
//!
//! Files and bytes are those of content, versions, trash and assets, equal contents of files and assets counted once. Each write counts what
//! it adds and takes away in its own transaction: a row for each workspace, which is written late, right before the
//! feed's head, so that nobody deadlocks and two writers at the limit cannot both pass.

use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::scope::Caller;
use crate::{Error, store};

/// How much there is of something, and how much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measure {
    pub(crate) used: u64,
    /// Absent: no limit.
    pub(crate) limit: Option<u64>,
}

/// What the caller's workspace has of what its plan limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) files: Measure,
    pub(crate) bytes: Measure,
}

/// What the bytes of a workspace are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) files: u64,
    pub(crate) assets: u64,
    pub(crate) records: u64,
}

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Accounts {
    context: Context,
}

impl Accounts {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
    }

    /// The bytes that this service keeps of a workspace.
    pub(crate) async fn stored_bytes(&self, workspace: WorkspaceId) -> Result<u64, Error> {
        Ok(store::usage::get(&self.context.db, workspace).await?.bytes)
    }

    /// What the caller's workspace keeps, and may keep.
    pub(crate) async fn get(&self, caller: &Caller) -> Result<Account, Error> {
        let used = store::usage::get(&self.context.db, caller.workspace).await?;
        let allowed = self.context.limits.of(caller.plan.as_deref());
        Ok(Account {
            files: Measure { used: used.files, limit: allowed.files },
            bytes: Measure { used: used.bytes, limit: allowed.stored_bytes },
        })
    }

    /// What the bytes are of that the caller's workspace keeps. They are counted as one number with every write; what is
    /// not of files and assets is of records.
    pub(crate) async fn stored(&self, caller: &Caller) -> Result<Stored, Error> {
        let db = &self.context.db;
        let _turn = db.reading_fairly(caller.workspace).await?;
        let all = store::usage::get(db, caller.workspace).await?.bytes;
        let (files, assets) = store::usage::bytes_of_files_and_assets(db, caller.workspace).await?;
        Ok(Stored { files, assets, records: all.saturating_sub(files).saturating_sub(assets) })
    }
}
