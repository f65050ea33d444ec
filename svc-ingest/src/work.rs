//! The unit of work of this service: a transaction with its time, the growth of the workspace's usage, and the feed entries.
//!
//! Every write takes its locks in the same order: the rows of documents and bodies, the row of the workspace's usage, the head of its feed.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Entry, Kind, Positions, Reserved, UnitOfWork};
use cairn_chassis::limits::{Allowance, CounterGrowth};
use cairn_chassis::sql::Tx;
use cairn_chassis::status::Violation;
use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::model::{Body, Growth, Usage};
use crate::scope::Caller;
use crate::{Error, store};

/// A write to one workspace. Rolls back when dropped without [`commit`](Self::commit).
#[derive(Debug)]
pub(crate) struct Work {
    work: UnitOfWork,
    /// The limits to enforce, if any.
    allowance: Option<Allowance>,
    /// Bytes that svc-content stores for the workspace.
    elsewhere: u64,
    growth: Growth,
}

impl Work {
    /// Begins a write that is refused beyond the limits of the caller's plan.
    pub(crate) async fn begin(context: &Context, caller: &Caller) -> Result<Self, Error> {
        let allowance = context.limits.of(caller.plan.as_deref());
        Self::within(context, caller.workspace, Some(allowance)).await
    }

    /// Begins a write without limits, for removals and for writes that were checked before.
    pub(crate) async fn without_limits(context: &Context, workspace: WorkspaceId) -> Result<Self, Error> {
        Self::within(context, workspace, None).await
    }

    /// Begins a write that is refused beyond these limits, if any.
    pub(crate) async fn within(
        context: &Context,
        workspace: WorkspaceId,
        allowance: Option<Allowance>,
    ) -> Result<Self, Error> {
        // Before the transaction, which must not wait for a call.
        let elsewhere = match allowance.and_then(|allowance| allowance.stored_bytes) {
            Some(_) => context.storage.elsewhere(workspace).await,
            None => 0,
        };
        let work = context.feed.begin(workspace).await?;
        Ok(Self { work, allowance, elsewhere, growth: Growth::default() })
    }

    /// The transaction, for the store.
    pub(crate) const fn tx(&mut self) -> &mut Tx {
        self.work.tx()
    }

    pub(crate) const fn workspace(&self) -> WorkspaceId {
        self.work.workspace()
    }

    /// The time of the write. Read it after taking the locks.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.work.now()
    }

    /// Adds to the usage of the workspace.
    pub(crate) const fn grow(&mut self, growth: Growth) {
        self.growth.add(growth);
    }

    /// Adds to the document count of the workspace.
    pub(crate) const fn grow_documents(&mut self, documents: i64) {
        self.grow(Growth { documents, bytes: 0 });
    }

    /// Reserves feed positions for entries that the caller inserts itself; returns their time, too. Locks the feed of the workspace, so the
    /// usage is counted first: the lock order has the feed last.
    pub(crate) async fn reserve(&mut self, count: u64) -> Result<(Reserved, Timestamp), Error> {
        self.count_growth().await?;
        let reserved = self.work.reserve(count).await?;
        Ok((reserved, self.work.now()))
    }

    /// Stores a text. Call it before writing what refers to it.
    pub(crate) async fn keep_text(&mut self, body: &Body) -> Result<(), Error> {
        let workspace = self.workspace();
        let bytes = store::bodies::put(self.tx(), workspace, body).await?;
        self.grow(Growth { bytes: i64::try_from(bytes).unwrap_or(i64::MAX), ..Growth::default() });
        Ok(())
    }

    /// Removes those of these texts that nothing refers to any more.
    pub(crate) async fn sweep_texts(&mut self, hashes: &[String]) -> Result<(), Error> {
        let workspace = self.workspace();
        let bytes = store::texts::sweep(self.tx(), workspace, hashes).await?;
        self.grow(Growth { bytes: -bytes, ..Growth::default() });
        Ok(())
    }

    /// Publishes that a document was created or updated.
    pub(crate) fn publish_upsert(&mut self, kind: Kind, id: impl ToString) {
        self.work.publish(Entry::upsert(kind, id));
    }

    /// Publishes that a document was deleted.
    pub(crate) fn publish_delete(&mut self, kind: Kind, id: impl ToString) {
        self.work.publish(Entry::delete(kind, id));
    }

    /// Commits; returns the feed positions of the write, or the feed's head if it published nothing.
    pub(crate) async fn commit(mut self) -> Result<Positions, Error> {
        self.count_growth().await?;
        Ok(self.work.commit().await?)
    }

    /// Rolls back.
    pub(crate) async fn rollback(self) -> Result<(), Error> {
        Ok(self.work.rollback().await?)
    }

    /// Updates the usage, and refuses a write beyond the limits.
    async fn count_growth(&mut self) -> Result<(), Error> {
        let (growth, workspace) = (self.growth, self.workspace());
        if growth == Growth::default() {
            return Ok(());
        }
        let used = store::usage::add(self.tx(), workspace, growth).await?;
        self.growth = Growth::default();
        let elsewhere = self.elsewhere;
        self.allowance.map_or(Ok(()), |allowance| require_room(allowance, growth, used, elsewhere))
    }
}

/// `used` is what the workspace keeps here with the growth, `elsewhere` the bytes that it keeps besides.
fn require_room(allowance: Allowance, growth: Growth, used: Usage, elsewhere: u64) -> Result<(), Error> {
    let documents = CounterGrowth { by: growth.documents, to: used.documents };
    let documents = documents.refusal("documents", allowance.files, "");
    let bytes = CounterGrowth { by: growth.bytes, to: used.bytes.saturating_add(elsewhere) };
    let bytes = bytes.refusal("storageBytes", allowance.stored_bytes, " bytes");
    let refused: Vec<Violation> = documents.into_iter().chain(bytes).collect();
    if refused.is_empty() { Ok(()) } else { Err(Error::LimitExceeded(refused)) }
}
