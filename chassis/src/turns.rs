//! Whose work runs next, where it is costly: so much at once in this process, and of one workspace never all of it, so
//! that whoever has much to do waits for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many have their turn, and how many wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Turns that are taken at once.
    pub at_once: usize,
    /// Of those, turns of one workspace.
    pub of_one_workspace: usize,
    /// How many of one workspace wait.
    pub waiting: usize,
    /// How long one waits for its turn.
    pub patience: Duration,
}

impl Default for Share {
    /// Two for each core, since work that waits for something uses none; a quarter is left to other workspaces.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::of(cores.saturating_mul(2).max(4))
    }
}

impl Share {
    /// The share of one workspace in so many turns at once: all but a quarter.
    pub fn of(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        let of_one_workspace = (at_once - at_once / 4).min(at_once - 1).max(1);
        Self { at_once, of_one_workspace, waiting: 64, patience: Duration::from_secs(5) }
    }
}

/// Too many of the workspace wait already, or this one has waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// Gives turns; cheap to clone.
#[derive(Debug, Clone)]
pub struct Turns {
    share: Share,
    all: Arc<Semaphore>,
    lanes: Arc<Mutex<HashMap<WorkspaceId, Lane>>>,
}

/// Those of one workspace.
#[derive(Debug)]
struct Lane {
    turns: Arc<Semaphore>,
    /// How many have their turn or wait.
    present: usize,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    // Fields are dropped in their order: the place of all is free before that of the workspace.
    _of_all: OwnedSemaphorePermit,
    _of_workspace: OwnedSemaphorePermit,
    _presence: Presence,
}

/// Counts one in its lane, until it is dropped.
#[derive(Debug)]
struct Presence {
    turns: Turns,
    workspace: WorkspaceId,
}

impl Turns {
    /// Turns by that share.
    pub fn new(share: Share) -> Self {
        Self { share, all: Arc::new(Semaphore::new(share.at_once)), lanes: Arc::default() }
    }

    /// Waits for a turn. Whoever gives up waiting has never been here.
    ///
    /// It first waits for its workspace's share and then, in one queue, for its place among all. So no workspace has more
    /// than its share in that queue.
    ///
    /// # Errors
    /// When too many wait, or it takes too long.
    pub async fn take(&self, workspace: WorkspaceId) -> Result<Turn, Busy> {
        let (presence, lane) = self.enter(workspace)?;
        let waited = tokio::time::timeout(self.share.patience, async {
            let of_workspace = lane.acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some((of_workspace, of_all))
        });
        let (of_workspace, of_all) = waited.await.ok().flatten().ok_or(Busy)?;
        Ok(Turn { _of_all: of_all, _of_workspace: of_workspace, _presence: presence })
    }

    fn enter(&self, workspace: WorkspaceId) -> Result<(Presence, Arc<Semaphore>), Busy> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry(workspace).or_insert_with(|| Lane {
            turns: Arc::new(Semaphore::new(self.share.of_one_workspace)),
            present: 0,
        });
        if lane.present >= self.share.of_one_workspace + self.share.waiting {
            return Err(Busy);
        }
        lane.present += 1;
        let turns = Arc::clone(&lane.turns);
        Ok((Presence { turns: self.clone(), workspace }, turns))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut lanes = self.turns.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lane) = lanes.get_mut(&self.workspace) else { return };
        lane.present -= 1;
        if lane.present == 0 {
            lanes.remove(&self.workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn share() -> Share {
        Share { at_once: 4, of_one_workspace: 3, waiting: 2, patience: Duration::from_secs(600) }
    }

    /// Whether it is ready at its first look.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        let mut future = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn workspace(number: u128) -> WorkspaceId {
        WorkspaceId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn the_usual_share_leaves_room_for_others() {
        for at_once in 2..200 {
            let share = Share::of(at_once);
            assert!((1..at_once).contains(&share.of_one_workspace), "{share:?}");
        }
        assert_eq!(Share::of(0).of_one_workspace, 1);
    }

    #[tokio::test]
    async fn one_workspace_never_takes_all() {
        let turns = Turns::new(share());
        let mut first: Vec<Turn> = Vec::new();
        for _ in 0..3 {
            first.push(now(turns.take(workspace(1))).unwrap().unwrap());
        }
        assert!(now(turns.take(workspace(1))).is_none(), "a fourth one waits, though a place is free");
        let second = now(turns.take(workspace(2))).unwrap().unwrap();
        assert!(now(turns.take(workspace(3))).is_none(), "no place is left");
        drop(second);
        assert!(now(turns.take(workspace(3))).is_some());
    }

    #[tokio::test]
    async fn a_crowd_is_refused_and_those_who_leave_make_room() {
        let turns = Turns::new(share());
        let mut running = Vec::new();
        for _ in 0..3 {
            running.push(now(turns.take(workspace(1))).unwrap().unwrap());
        }
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(turns.take(workspace(1)))).collect();
        for one in &mut waiting {
            assert!(one.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(now(turns.take(workspace(1))).map(|turn| turn.err()), Some(Some(Busy)));
        waiting.pop();
        let mut later = Box::pin(turns.take(workspace(1)));
        assert!(later.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        running.pop();
        drop(waiting.remove(0).await.unwrap());
        drop(later.await.unwrap());
        drop(running);
        assert!(turns.lanes.lock().unwrap().is_empty(), "nothing is left of a workspace that is done");
    }

    #[tokio::test]
    async fn patience_ends() {
        let patience = Duration::from_millis(1);
        let turns = Turns::new(Share { at_once: 1, of_one_workspace: 1, patience, ..share() });
        let running = turns.take(workspace(1)).await.unwrap();
        assert_eq!(turns.take(workspace(2)).await.err(), Some(Busy));
        assert_eq!(turns.lanes.lock().unwrap().len(), 1);
        drop(running);
        assert!(turns.take(workspace(2)).await.is_ok());
    }
}
