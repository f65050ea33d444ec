//! Receives and parses request bodies within bounds on memory and concurrency.
//!
//! Each route has a size limit. Large bodies share a memory budget, held until their request is answered, and are
//! parsed on a small number of blocking threads; beyond a bounded queue, requests are refused. No workspace gets
//! more than half of the budget, so that none starves the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use bytes::BytesMut;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::ids::WorkspaceId;
use http::Extensions;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;

/// Smaller bodies are parsed inline: a hand-over to a blocking thread would cost more.
const SMALL_BYTES: usize = 64 * 1024;
/// Memory budget of all large bodies together.
const BUDGET_BYTES: usize = 256 * 1024 * 1024;
/// Granularity of the budget.
const UNIT_BYTES: usize = 64 * 1024;
/// Large bodies parsed concurrently.
const MAX_PARSING: usize = 2;
/// Large bodies waiting to be parsed.
const MAX_QUEUED: usize = 30;
const RETRY: Duration = Duration::from_secs(1);

/// The body receiver of the process.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Upper bound for any body, whatever its route allows.
    max_bytes: usize,
    budget: Arc<Semaphore>,
    /// The budgets of workspaces with large bodies in flight.
    workspace_budgets: Mutex<HashMap<Option<WorkspaceId>, Arc<Semaphore>>>,
    /// A workspace's budget, in units.
    share: usize,
    /// Permits of those that are parsed or wait for it.
    queue_slots: Arc<Semaphore>,
    parse_slots: Arc<Semaphore>,
}

/// Holds the permits of a request's body until the request is answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyPermits(Arc<Mutex<Option<Permits>>>);

/// Permits of a body, of its workspace's budget and of the total.
#[derive(Debug)]
struct Permits {
    share: OwnedSemaphorePermit,
    budget: OwnedSemaphorePermit,
}

impl BodyPermits {
    fn hold(&self, permits: Option<Permits>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = permits;
    }
}

impl Intake {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self::with(max_bytes, BUDGET_BYTES, MAX_PARSING, MAX_QUEUED)
    }

    fn with(max_bytes: usize, budget: usize, parse_slots: usize, waiting: usize) -> Self {
        Self {
            max_bytes,
            budget: Arc::new(Semaphore::new(budget / UNIT_BYTES)),
            workspace_budgets: Mutex::default(),
            share: budget / UNIT_BYTES / 2,
            queue_slots: Arc::new(Semaphore::new(parse_slots + waiting)),
            parse_slots: Arc::new(Semaphore::new(parse_slots)),
        }
    }

    /// Receives a body up to the limit. Its permits are held with the request and come from the budget of the
    /// caller's workspace, if known.
    pub(crate) async fn receive(
        &self,
        mut body: Body,
        limit: usize,
        request: &Extensions,
        workspace: Option<WorkspaceId>,
    ) -> Result<Bytes, Error> {
        let limit = limit.min(self.max_bytes);
        // An announced length is trusted, to refuse early.
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(Error::body_too_large(limit));
        }
        let mut permits = None;
        let mut single = Bytes::new();
        let mut buffer = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(part) = frame.map_err(|_| incomplete())?.into_data() else { continue };
            let length = single.len() + buffer.len() + part.len();
            if length > limit {
                return Err(Error::body_too_large(limit));
            }
            self.acquire(&mut permits, length, workspace)?;
            if single.is_empty() && buffer.is_empty() {
                single = part;
                continue;
            }
            if buffer.is_empty() {
                buffer.reserve(announced.max(length));
                buffer.extend_from_slice(&std::mem::take(&mut single));
            }
            buffer.extend_from_slice(&part);
        }
        if let (Some(budget), Some(permits)) = (request.get::<BodyPermits>(), permits) {
            budget.hold(Some(permits));
        }
        Ok(if buffer.is_empty() { single } else { buffer.freeze() })
    }

    /// Acquires the missing permits for a body of that length; small ones need none.
    fn acquire(
        &self,
        permits: &mut Option<Permits>,
        length: usize,
        workspace: Option<WorkspaceId>,
    ) -> Result<(), Error> {
        if length <= SMALL_BYTES {
            return Ok(());
        }
        let has = permits.as_ref().map_or(0, |permits| permits.budget.num_permits());
        let lacks = u32::try_from(length.div_ceil(UNIT_BYTES).saturating_sub(has)).unwrap_or(u32::MAX);
        if lacks == 0 {
            return Ok(());
        }
        let share = match permits {
            Some(permits) => Arc::clone(permits.share.semaphore()),
            None => self.workspace_budget(workspace),
        };
        let share = share.try_acquire_many_owned(lacks).map_err(|_| busy())?;
        let budget = Arc::clone(&self.budget).try_acquire_many_owned(lacks).map_err(|_| busy())?;
        match permits {
            Some(permits) => {
                permits.share.merge(share);
                permits.budget.merge(budget);
            }
            None => *permits = Some(Permits { share, budget }),
        }
        Ok(())
    }

    /// A workspace's budget. Budgets without outstanding permits are dropped.
    fn workspace_budget(&self, workspace: Option<WorkspaceId>) -> Arc<Semaphore> {
        let mut workspace_budgets = self.workspace_budgets.lock().unwrap_or_else(PoisonError::into_inner);
        workspace_budgets.retain(|_, share| Arc::strong_count(share) > 1);
        Arc::clone(workspace_budgets.entry(workspace).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
    }

    /// Parses a body: a small one inline, a large one on a blocking thread.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        body: Bytes,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, Error> {
        if body.len() <= SMALL_BYTES {
            return Ok(read(&body));
        }
        let slot = Arc::clone(&self.queue_slots).try_acquire_owned().map_err(|_| busy())?;
        let permit = Arc::clone(&self.parse_slots).acquire_owned().await.map_err(Problem::internal)?;
        let reading = tokio::task::spawn_blocking(move || {
            // The caller may disconnect; the permits belong to the thread until it is done.
            let _permits = (slot, permit);
            let value = read(&body);
            drop(body);
            value
        });
        Ok(reading.await.map_err(Problem::internal)?)
    }
}

fn busy() -> Error {
    let message = "too many large requests are under way; try again soon, or send less in one request";
    Problem::unavailable(message, RETRY).into()
}

fn incomplete() -> Problem {
    Problem::validation(vec![Violation::new("body", "incomplete", "ended before it was whole")])
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};

    use super::*;

    fn streamed(parts: &[&'static str]) -> Body {
        Body::from_stream(stream::iter(parts.to_vec()).map(Ok::<_, std::io::Error>))
    }

    #[tokio::test]
    async fn a_body_is_taken_up_to_its_limit() {
        let intake = Intake::new(usize::MAX);
        let none = Extensions::new();
        for (parts, whole) in [(&["12", "34"][..], "1234"), (&["", "1", ""][..], "1"), (&[][..], "")] {
            assert_eq!(intake.receive(streamed(parts), 4, &none, None).await.unwrap(), whole);
        }
        assert_eq!(intake.receive(Body::from("1234"), 4, &none, None).await.unwrap(), "1234");
        for body in [Body::from("12345"), streamed(&["1234", "5"])] {
            assert_eq!(intake.receive(body, 4, &none, None).await.unwrap_err().status.as_u16(), 413);
        }
        let broken = stream::iter([Ok("12"), Err(std::io::Error::other("gone"))]);
        assert_eq!(
            intake.receive(Body::from_stream(broken), 4, &none, None).await.unwrap_err().status.as_u16(),
            400
        );
    }

    #[tokio::test]
    async fn large_bodies_share_their_room_until_they_are_answered() {
        const MAX_BYTES: usize = usize::MAX;
        let intake = Intake::with(MAX_BYTES, 8 * UNIT_BYTES, 1, 0);
        let large = |units: usize| Body::from(vec![b'x'; units * UNIT_BYTES]);
        let workspace = |number: u128| Some(WorkspaceId(uuid::Uuid::from_u128(number)));
        let none = Extensions::new();
        let mut request = Extensions::new();
        request.insert(BodyPermits::default());
        intake.receive(large(3), MAX_BYTES, &request, workspace(1)).await.unwrap();
        let refused = intake.receive(large(2), MAX_BYTES, &none, workspace(1)).await.unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(RETRY)), "beyond its share");
        intake.receive(Body::from("small"), 9, &none, workspace(1)).await.unwrap();
        for number in 2..4 {
            intake.receive(large(4), MAX_BYTES, &none, workspace(number)).await.unwrap();
        }
        drop(request);
        intake.receive(large(4), MAX_BYTES, &none, workspace(1)).await.unwrap();

        let mut kept = Vec::new();
        for number in 1..3 {
            let mut request = Extensions::new();
            request.insert(BodyPermits::default());
            intake.receive(large(4), MAX_BYTES, &request, workspace(number)).await.unwrap();
            kept.push(request);
        }
        assert!(intake.receive(large(2), MAX_BYTES, &none, workspace(9)).await.is_err(), "no room is left");
    }

    #[tokio::test]
    async fn who_finds_too_many_waiting_comes_back_later() {
        let intake = Arc::new(Intake::with(usize::MAX, BUDGET_BYTES, 1, 1));
        let large = || Bytes::from(vec![b'x'; 2 * SMALL_BYTES]);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel::<()>();
        let first = tokio::spawn({
            let intake = Arc::clone(&intake);
            async move {
                let reading = intake.read(large(), move |body| {
                    begin.send(()).unwrap();
                    ended.recv().unwrap();
                    body.len()
                });
                reading.await.unwrap()
            }
        });
        begun.await.unwrap();
        let mut second = Box::pin(intake.read(large(), <[u8]>::len));
        assert!(futures::poll!(&mut second).is_pending());
        let third = intake.read(large(), <[u8]>::len).await.unwrap_err();
        assert_eq!(third.status.as_u16(), 503);
        assert_eq!(intake.read(Bytes::from("small"), <[u8]>::len).await.unwrap(), 5);
        end.send(()).unwrap();
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (2 * SMALL_BYTES, 2 * SMALL_BYTES));
    }
}
