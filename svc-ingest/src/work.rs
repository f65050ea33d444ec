//! The unit of work of documents from outside: the transaction, its time, what the workspace keeps more or less, and what
//! the feed is told.
//!
//! Every write ends alike, and in the order in which locks are taken everywhere: the rows of documents and bodies, the row of
//! the workspace's usage, the head of its feed.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Entry, Kind, Positions, Reserved, UnitOfWork};
use cairn_chassis::limits::{Allowance, Grown};
use cairn_chassis::sql::Tx;
use cairn_chassis::status::Violation;
use cairn_proto::ids::WorkspaceId;

use crate::context::Context;
use crate::model::{Body, Growth, Usage};
use crate::scope::Caller;
use crate::{Error, store};

/// A write of one workspace. Dropped without [`commit`](Self::commit), it changes nothing.
#[derive(Debug)]
pub(crate) struct Work {
    work: UnitOfWork,
    /// What the workspace may keep; absent when that is not asked.
    allowance: Option<Allowance>,
    /// Bytes that another service keeps of it.
    elsewhere: u64,
    growth: Growth,
}

impl Work {
    /// Begins a write that is refused when the plan of the caller's workspace has no room for it.
    pub(crate) async fn begin(context: &Context, caller: &Caller) -> Result<Self, Error> {
        let allowance = context.limits.of(caller.plan.as_deref());
        Self::within(context, caller.workspace, Some(allowance)).await
    }

    /// Begins a write that takes away, or whose room was asked for before.
    pub(crate) async fn without_limits(context: &Context, workspace: WorkspaceId) -> Result<Self, Error> {
        Self::within(context, workspace, None).await
    }

    /// Begins a write that is refused when it goes beyond what is allowed; absent: nothing is asked.
    pub(crate) async fn within(
        context: &Context,
        workspace: WorkspaceId,
        allowance: Option<Allowance>,
    ) -> Result<Self, Error> {
        // Before the transaction: nobody is asked in the midst of one.
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

    /// The time of the write; to be asked for when the locks are held.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.work.now()
    }

    /// Has the workspace keep more, or less.
    pub(crate) const fn grow(&mut self, growth: Growth) {
        self.growth.add(growth);
    }

    /// Has the workspace keep more documents, or fewer.
    pub(crate) const fn grow_documents(&mut self, documents: i64) {
        self.grow(Growth { documents, bytes: 0 });
    }

    /// Takes positions of the feed for entries that the caller inserts itself, with their time. Other writers of the
    /// workspace wait from then on. What the workspace keeps is counted before, as in every write: the feed is locked last.
    pub(crate) async fn reserve(&mut self, count: u64) -> Result<(Reserved, Timestamp), Error> {
        self.count_growth().await?;
        let reserved = self.work.reserve(count).await?;
        Ok((reserved, self.work.now()))
    }

    /// Keeps a text, which whatever refers to it is written after.
    pub(crate) async fn keep_text(&mut self, body: &Body) -> Result<(), Error> {
        let workspace = self.workspace();
        let bytes = store::bodies::put(self.tx(), workspace, body).await?;
        self.grow(Growth { bytes: i64::try_from(bytes).unwrap_or(i64::MAX), ..Growth::default() });
        Ok(())
    }

    /// Lets go of texts that nothing refers to any more.
    pub(crate) async fn sweep_texts(&mut self, hashes: &[String]) -> Result<(), Error> {
        let workspace = self.workspace();
        let bytes = store::texts::sweep(self.tx(), workspace, hashes).await?;
        self.grow(Growth { bytes: -bytes, ..Growth::default() });
        Ok(())
    }

    /// Tells the feed that a document is new or has changed.
    pub(crate) fn publish_upsert(&mut self, kind: Kind, id: impl ToString) {
        self.work.publish(Entry::upsert(kind, id));
    }

    /// Tells the feed that a document is gone.
    pub(crate) fn publish_delete(&mut self, kind: Kind, id: impl ToString) {
        self.work.publish(Entry::delete(kind, id));
    }

    /// Ends the write; answers the positions that it has in the feed, and the feed's head when it told nothing.
    pub(crate) async fn commit(mut self) -> Result<Positions, Error> {
        self.count_growth().await?;
        Ok(self.work.commit().await?)
    }

    /// Takes everything back.
    pub(crate) async fn rollback(self) -> Result<(), Error> {
        Ok(self.work.rollback().await?)
    }

    /// Counts what is kept more or less, and refuses what the plan has no room for.
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
    let documents = Grown { by: growth.documents, to: used.documents };
    let documents = documents.refusal("documents", allowance.files, "");
    let bytes = Grown { by: growth.bytes, to: used.bytes.saturating_add(elsewhere) };
    let bytes = bytes.refusal("storageBytes", allowance.stored_bytes, " bytes");
    let refused: Vec<Violation> = documents.into_iter().chain(bytes).collect();
    if refused.is_empty() { Ok(()) } else { Err(Error::LimitExceeded(refused)) }
}
