//! What documents from outside use of what the plan limits (contract, "Limits").

use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::scope::Caller;
use crate::{Error, store};

/// What the caller's workspace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) documents: u64,
    /// Absent: no limit.
    pub(crate) documents_limit: Option<u64>,
    pub(crate) bytes: u64,
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

    /// Remembers the plan of the caller's workspace, which runs are held to.
    pub(crate) async fn learn_plan(&self, caller: &Caller) -> Result<(), Error> {
        let Some(plan) = &caller.plan else { return Ok(()) };
        let (db, workspace) = (&self.context.db, caller.workspace);
        if store::usage::plan(db, workspace).await?.as_ref() != Some(plan) {
            store::usage::learn_plan(db, workspace, plan).await?;
        }
        Ok(())
    }

    /// What the caller's workspace keeps, and may keep.
    pub(crate) async fn get(&self, caller: &Caller) -> Result<Account, Error> {
        let used = store::usage::get(&self.context.db, caller.workspace).await?;
        let allowed = self.context.limits.of(caller.plan.as_deref());
        Ok(Account { documents: used.documents, documents_limit: allowed.files, bytes: used.bytes })
    }
}
