//! The unit of work of a service with a feed: one transaction on one workspace, with its time and its feed entries.

use cairn_proto::ids::WorkspaceId;

use super::{Entry, Feed, Head, Reserved, append, encode_entries, from_column, head, reserve, to_column};
use crate::clock::Timestamp;
use crate::sql::{Error, Tx};

/// The positions of a unit of work in the feed, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// 0 when nothing was published.
    pub first: u64,
    /// The newest position of the workspace when nothing was published.
    pub last: u64,
}

/// Entries that are published but not appended yet, as [`append_entries!`](crate::append_entries) takes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingEntries {
    /// How many entries.
    pub count: i64,
    /// A JSON array of `[kind, id, op]`.
    pub list: String,
}

/// A transaction that changes one workspace. Dropped without [`commit`](Self::commit) it rolls back.
#[derive(Debug)]
pub struct UnitOfWork {
    tx: Tx,
    feed: Feed,
    workspace: WorkspaceId,
    now: Option<Timestamp>,
    /// Published, but not appended yet.
    entries: Vec<Entry>,
    appended: Option<Positions>,
}

impl Feed {
    /// Begins a transaction that may write; see [`Db::begin_write`](crate::sql::Db::begin_write).
    ///
    /// # Errors
    /// When no connection is available.
    pub async fn begin(&self, workspace: WorkspaceId) -> Result<UnitOfWork, Error> {
        let tx = self.db.begin_write().await?;
        Ok(UnitOfWork { tx, feed: self.clone(), workspace, now: None, entries: Vec::new(), appended: None })
    }
}

impl UnitOfWork {
    /// The transaction.
    pub const fn tx(&mut self) -> &mut Tx {
        &mut self.tx
    }

    /// The workspace whose feed is written.
    pub const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// The time of the change: read from the clock at the first call, and the same from then on. Call it when the locks are
    /// held, so that the times of changes to one row are in the order of the changes.
    pub fn now(&mut self) -> Timestamp {
        *self.now.get_or_insert_with(|| self.feed.clock.now())
    }

    /// Adds an entry to the feed. It is appended right before the commit, since an append blocks other writers of the
    /// workspace.
    pub fn publish(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Appends the published entries and reserves `count` positions after them: the caller inserts exactly that many rows
    /// into `feed_changes`. Other writers of the workspace are blocked from here on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn reserve(&mut self, count: u64) -> Result<Reserved, Error> {
        self.flush().await?;
        let now = self.now();
        let reserved = reserve(&mut self.tx, self.workspace, count, now).await?;
        self.extend_to(reserved.before, reserved.last);
        Ok(reserved)
    }

    /// Appends the published entries, and returns the positions of the unit of work; `None` when nothing was published. Other
    /// writers of the workspace are blocked from here on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn append(&mut self) -> Result<Option<Positions>, Error> {
        self.flush().await?;
        Ok(self.appended)
    }

    /// The entries that are published but not appended yet, for a statement that appends them together with other rows; `None`
    /// when there are none.
    pub fn pending_entries(&self) -> Option<PendingEntries> {
        if self.entries.is_empty() {
            return None;
        }
        Some(PendingEntries {
            count: to_column(self.entries.len() as u64),
            list: encode_entries(&self.entries),
        })
    }

    /// Records that the [`pending_entries`](Self::pending_entries) were appended, the last of them at that position.
    pub fn mark_appended(&mut self, last: i64) {
        let count = std::mem::take(&mut self.entries).len() as u64;
        let last = from_column(last);
        self.extend_to(last.saturating_sub(count), last);
    }

    /// Appends the remaining entries, commits, and notifies the watchers of the feed.
    ///
    /// # Errors
    /// When the database fails. Nothing was written then, unless the connection broke before the answer.
    pub async fn commit(self) -> Result<Positions, Error> {
        self.commit_then(|| {}).await
    }

    /// The same, with a hook that runs after the commit and before the notification; see [`Tx::commit_then`].
    ///
    /// # Errors
    /// As [`commit`](Self::commit); the hook does not run then.
    pub async fn commit_then(mut self, hook: impl FnOnce() + Send + 'static) -> Result<Positions, Error> {
        self.flush().await?;
        let Some(positions) = self.appended else {
            let last = head(&mut self.tx, self.workspace).await?;
            self.tx.commit_then(hook).await?;
            return Ok(Positions { first: 0, last });
        };
        let head = Head { workspace: self.workspace, position: positions.last };
        let notices = self.feed.notices;
        self.tx
            .commit_then(move || {
                hook();
                // A send fails only when no watcher is subscribed.
                drop(notices.send(head));
            })
            .await?;
        Ok(positions)
    }

    /// Rolls back, and waits until that is done.
    ///
    /// # Errors
    /// When the connection breaks; nothing was written then either.
    pub async fn rollback(self) -> Result<(), Error> {
        self.tx.rollback().await
    }

    async fn flush(&mut self) -> Result<(), Error> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.entries);
        let now = self.now();
        let last = append(&mut self.tx, self.workspace, &entries, now).await?;
        self.extend_to(last.saturating_sub(entries.len() as u64), last);
        Ok(())
    }

    /// Positions of one transaction are contiguous: the first append locks the head until the transaction ends.
    fn extend_to(&mut self, before: u64, last: u64) {
        let first = self.appended.map_or(before + 1, |positions| positions.first);
        self.appended = Some(Positions { first, last });
    }
}
