//! What a workspace keeps, and how much its plan lets it keep (contract, "Limits").
//!
//! Files and bytes are those of content, versions, trash and assets, equal contents of files and assets counted once. Each write counts what
//! it adds and takes away in its own transaction: a row for each workspace, which is written late, right before the
//! feed's head, so that nobody waits for others in a circle and two writers at the limit cannot both pass.

use cairn_chassis::sql::Tx;
use cairn_chassis::status::Violation;

use crate::context::Context;
use crate::model::Growth;
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

/// The rules, on a storage.
#[derive(Debug, Clone)]
pub(crate) struct Accounts {
    context: Context,
}

impl Accounts {
    pub(crate) const fn new(context: Context) -> Self {
        Self { context }
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
}

impl Context {
    /// Counts what a transaction adds and takes away, and refuses what the plan has no room for. Late in a transaction:
    /// until its end, other writers of the workspace wait. What takes away, or adds nothing, is never refused, however
    /// full the workspace is.
    pub(crate) async fn count(&self, tx: &mut Tx, caller: &Caller, growth: Growth) -> Result<(), Error> {
        if growth == Growth::default() {
            return Ok(());
        }
        let now = store::usage::add(tx, caller.workspace, growth).await?;
        let allowed = self.limits.of(caller.plan.as_deref());
        let beyond = |more: i64, now: u64, most: Option<u64>| {
            let most = most.filter(|most| more > 0 && now > *most)?;
            Some((now.saturating_sub(more.unsigned_abs()), more.unsigned_abs(), most))
        };
        let mut refused = Vec::new();
        if let Some((used, more, most)) = beyond(growth.files, now.files, allowed.files) {
            let message = format!("{used} of {most} are used, and this would add {more}");
            refused.push(Violation::new("files", "limit_exceeded", message));
        }
        if let Some((used, more, most)) = beyond(growth.bytes, now.bytes, allowed.stored_bytes) {
            let message = format!("{used} of {most} bytes are used, and this would add {more}");
            refused.push(Violation::new("storageBytes", "limit_exceeded", message));
        }
        if refused.is_empty() { Ok(()) } else { Err(Error::LimitExceeded(refused)) }
    }
}
