//! A semaphore that is fair between workspaces: it bounds the expensive work that this process runs concurrently, and the part
//! of it that one workspace can take, so that a busy workspace queues behind itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits of a [`FairSemaphore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The number of permits.
    pub at_once: usize,
    /// The maximum number of permits that one workspace holds.
    pub per_workspace: usize,
    /// The maximum number of waiters of one workspace.
    pub waiting: usize,
    /// How long a caller waits for a permit.
    pub max_wait: Duration,
}

impl Default for Share {
    /// Two permits for each core, since work often waits for I/O; a quarter is reserved for other workspaces.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::of(cores.saturating_mul(2).max(4))
    }
}

impl Share {
    /// The limits for that number of permits, of which one workspace gets all but a quarter.
    pub fn of(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        let per_workspace = (at_once - at_once / 4).min(at_once - 1).max(1);
        Self { at_once, per_workspace, waiting: 64, max_wait: Duration::from_secs(5) }
    }
}

/// Too many callers of the workspace wait already, or this one has waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// The semaphore; cheap to clone.
#[derive(Debug, Clone)]
pub struct FairSemaphore {
    share: Share,
    global: Arc<Semaphore>,
    queues: Arc<Mutex<HashMap<WorkspaceId, Queue>>>,
}

/// The permits of one workspace.
#[derive(Debug)]
struct Queue {
    permits: Arc<Semaphore>,
    /// How many callers hold a permit or wait for one.
    callers: usize,
}

/// A permit, held until it is dropped.
#[derive(Debug)]
pub struct Permit {
    // Fields are dropped in order: the global permit is released before that of the workspace.
    _global: OwnedSemaphorePermit,
    _of_workspace: OwnedSemaphorePermit,
    _queued: QueueGuard,
}

/// Counts one caller in its queue, until it is dropped.
#[derive(Debug)]
struct QueueGuard {
    semaphore: FairSemaphore,
    workspace: WorkspaceId,
}

impl FairSemaphore {
    /// A semaphore with those limits.
    pub fn new(share: Share) -> Self {
        Self { share, global: Arc::new(Semaphore::new(share.at_once)), queues: Arc::default() }
    }

    /// Waits for a permit. Cancel safe: a dropped future leaves its queue.
    ///
    /// It first waits for a permit of its workspace and then, in one FIFO queue, for a global one. So no workspace takes more
    /// than its share of the global queue.
    ///
    /// # Errors
    /// When too many callers wait, or it takes too long.
    pub async fn acquire(&self, workspace: WorkspaceId) -> Result<Permit, Busy> {
        let (queued, queue) = self.enter(workspace)?;
        let waited = tokio::time::timeout(self.share.max_wait, async {
            let of_workspace = queue.acquire_owned().await.ok()?;
            let global = Arc::clone(&self.global).acquire_owned().await.ok()?;
            Some((of_workspace, global))
        });
        let (of_workspace, global) = waited.await.ok().flatten().ok_or(Busy)?;
        Ok(Permit { _global: global, _of_workspace: of_workspace, _queued: queued })
    }

    fn enter(&self, workspace: WorkspaceId) -> Result<(QueueGuard, Arc<Semaphore>), Busy> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(workspace).or_insert_with(|| Queue {
            permits: Arc::new(Semaphore::new(self.share.per_workspace)),
            callers: 0,
        });
        if queue.callers >= self.share.per_workspace + self.share.waiting {
            return Err(Busy);
        }
        queue.callers += 1;
        let permits = Arc::clone(&queue.permits);
        Ok((QueueGuard { semaphore: self.clone(), workspace }, permits))
    }
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        let mut queues = self.semaphore.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queues.get_mut(&self.workspace) else { return };
        queue.callers -= 1;
        if queue.callers == 0 {
            queues.remove(&self.workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn share() -> Share {
        Share { at_once: 4, per_workspace: 3, waiting: 2, max_wait: Duration::from_secs(600) }
    }

    /// The result of a future that is ready at its first poll.
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
            assert!((1..at_once).contains(&share.per_workspace), "{share:?}");
        }
        assert_eq!(Share::of(0).per_workspace, 1);
    }

    #[tokio::test]
    async fn one_workspace_never_takes_all() {
        let semaphore = FairSemaphore::new(share());
        let mut first: Vec<Permit> = Vec::new();
        for _ in 0..3 {
            first.push(now(semaphore.acquire(workspace(1))).unwrap().unwrap());
        }
        assert!(now(semaphore.acquire(workspace(1))).is_none(), "a fourth one waits, though a place is free");
        let second = now(semaphore.acquire(workspace(2))).unwrap().unwrap();
        assert!(now(semaphore.acquire(workspace(3))).is_none(), "no place is left");
        drop(second);
        assert!(now(semaphore.acquire(workspace(3))).is_some());
    }

    #[tokio::test]
    async fn a_crowd_is_refused_and_those_who_leave_make_room() {
        let semaphore = FairSemaphore::new(share());
        let mut running = Vec::new();
        for _ in 0..3 {
            running.push(now(semaphore.acquire(workspace(1))).unwrap().unwrap());
        }
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(semaphore.acquire(workspace(1)))).collect();
        for one in &mut waiting {
            assert!(one.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(now(semaphore.acquire(workspace(1))).map(|permit| permit.err()), Some(Some(Busy)));
        waiting.pop();
        let mut later = Box::pin(semaphore.acquire(workspace(1)));
        assert!(later.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        running.pop();
        drop(waiting.remove(0).await.unwrap());
        drop(later.await.unwrap());
        drop(running);
        assert!(semaphore.queues.lock().unwrap().is_empty(), "nothing is left of a workspace that is done");
    }

    #[tokio::test]
    async fn patience_ends() {
        let max_wait = Duration::from_millis(1);
        let semaphore = FairSemaphore::new(Share { at_once: 1, per_workspace: 1, max_wait, ..share() });
        let running = semaphore.acquire(workspace(1)).await.unwrap();
        assert_eq!(semaphore.acquire(workspace(2)).await.err(), Some(Busy));
        assert_eq!(semaphore.queues.lock().unwrap().len(), 1);
        drop(running);
        assert!(semaphore.acquire(workspace(2)).await.is_ok());
    }
}
