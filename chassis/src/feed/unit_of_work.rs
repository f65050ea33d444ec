//! The unit of work of a service with a feed: one transaction on one workspace, with its time and what the feed is told.

use cairn_proto::ids::WorkspaceId;

use super::{Entry, Feed, Head, Reserved, append, from_column, head, listed, reserve, to_column};
use crate::clock::Timestamp;
use crate::sql::{Error, Tx};

/// The positions that a unit of work took in the feed, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// 0 when nothing was published.
    pub first: u64,
    /// The newest position of the workspace when nothing was published.
    pub last: u64,
}

/// What was published and is not appended, as [`append_entries!`](crate::append_entries) takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unappended {
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
    /// Published, and not appended yet.
    entries: Vec<Entry>,
    appended: Option<Positions>,
}

impl Feed {
    /// Begins a transaction that may write; see [`Db::begin_write`](crate::sql::Db::begin_write).
    ///
    /// # Errors
    /// When no connection can be had.
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

    /// Whose feed is written.
    pub const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// The time of the change: the clock's when it is asked for first, and the same from then on. Ask when the locks are
    /// held, so that the times of changes to one row stand in the order of the changes.
    pub fn now(&mut self) -> Timestamp {
        *self.now.get_or_insert_with(|| self.feed.clock.now())
    }

    /// Has the feed told of an entry: with the commit, since other writers of the workspace wait from then on.
    pub fn publish(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Appends what was published so far and takes `count` positions behind it: the caller inserts exactly that many rows
    /// into `feed_changes`. Other writers of the workspace wait from then on.
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

    /// Appends what was published so far, and answers the positions that the unit of work has taken; none when nothing was
    /// published. Other writers of the workspace wait from then on.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn append(&mut self) -> Result<Option<Positions>, Error> {
        self.flush().await?;
        Ok(self.appended)
    }

    /// What was published so far and is not appended, for a statement that appends it together with other rows; none when there
    /// is nothing.
    pub fn unappended(&self) -> Option<Unappended> {
        if self.entries.is_empty() {
            return None;
        }
        Some(Unappended { count: to_column(self.entries.len() as u64), list: listed(&self.entries) })
    }

    /// Takes note that what was [`unappended`](Self::unappended) is appended, and that the feed is at that position since.
    pub fn note_appended(&mut self, last: i64) {
        let count = std::mem::take(&mut self.entries).len() as u64;
        let last = from_column(last);
        self.extend_to(last.saturating_sub(count), last);
    }

    /// Appends what is left to be appended, commits, and wakes who watches the feed.
    ///
    /// # Errors
    /// When the database fails; nothing was written then, unless the connection broke on the way.
    pub async fn commit(self) -> Result<Positions, Error> {
        self.commit_then(|| {}).await
    }

    /// The same, and then does something that takes no time, before anybody is told; see [`Tx::commit_then`].
    ///
    /// # Errors
    /// As [`commit`](Self::commit); nothing is done then.
    pub async fn commit_then(mut self, then: impl FnOnce() + Send + 'static) -> Result<Positions, Error> {
        self.flush().await?;
        let Some(positions) = self.appended else {
            let last = head(&mut self.tx, self.workspace).await?;
            self.tx.commit_then(then).await?;
            return Ok(Positions { first: 0, last });
        };
        let head = Head { workspace: self.workspace, position: positions.last };
        let notices = self.feed.notices;
        self.tx
            .commit_then(move || {
                then();
                // Nobody listening is no failure.
                drop(notices.send(head));
            })
            .await?;
        Ok(positions)
    }

    /// Drops what was written, and waits until that is done.
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

    /// Positions of one transaction follow each other: the first append holds the head until the transaction ends.
    fn extend_to(&mut self, before: u64, last: u64) {
        let first = self.appended.map_or(before + 1, |positions| positions.first);
        self.appended = Some(Positions { first, last });
    }
}
