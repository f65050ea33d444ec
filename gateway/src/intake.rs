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
const ROOM_BYTES: usize = 256 * 1024 * 1024;
/// Granularity of the budget.
const UNIT_BYTES: usize = 64 * 1024;
/// Large bodies parsed concurrently.
const TURNS: usize = 2;
/// Large bodies waiting to be parsed.
const WAITING: usize = 30;
const RETRY: Duration = Duration::from_secs(1);

/// The body receiver of the process.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Upper bound for any body, whatever its route allows.
    most: usize,
    room: Arc<Semaphore>,
    /// The budgets of workspaces with large bodies in flight.
    shares: Mutex<HashMap<Option<WorkspaceId>, Arc<Semaphore>>>,
    /// A workspace's budget, in units.
    share: usize,
    /// Permits of those that are parsed or wait for it.
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// Holds the permits of a request's body until the request is answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room(Arc<Mutex<Option<Taken>>>);

/// Permits of a body, of its workspace's budget and of the total.
#[derive(Debug)]
struct Taken {
    share: OwnedSemaphorePermit,
    room: OwnedSemaphorePermit,
}

impl Room {
    fn keep(&self, taken: Option<Taken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = taken;
    }
}

impl Intake {
    pub(crate) fn new(most: usize) -> Self {
        Self::with(most, ROOM_BYTES, TURNS, WAITING)
    }

    fn with(most: usize, room: usize, turns: usize, waiting: usize) -> Self {
        Self {
            most,
            room: Arc::new(Semaphore::new(room / UNIT_BYTES)),
            shares: Mutex::default(),
            share: room / UNIT_BYTES / 2,
            places: Arc::new(Semaphore::new(turns + waiting)),
            turns: Arc::new(Semaphore::new(turns)),
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
        let limit = limit.min(self.most);
        // An announced length is trusted, to refuse early.
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(Error::body_too_large(limit));
        }
        let mut taken = None;
        let mut whole = Bytes::new();
        let mut parts = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(part) = frame.map_err(|_| incomplete())?.into_data() else { continue };
            let length = whole.len() + parts.len() + part.len();
            if length > limit {
                return Err(Error::body_too_large(limit));
            }
            self.take_room(&mut taken, length, workspace)?;
            if whole.is_empty() && parts.is_empty() {
                whole = part;
                continue;
            }
            if parts.is_empty() {
                parts.reserve(announced.max(length));
                parts.extend_from_slice(&std::mem::take(&mut whole));
            }
            parts.extend_from_slice(&part);
        }
        if let (Some(room), Some(taken)) = (request.get::<Room>(), taken) {
            room.keep(Some(taken));
        }
        Ok(if parts.is_empty() { whole } else { parts.freeze() })
    }

    /// Acquires the missing permits for a body of that length; small ones need none.
    fn take_room(
        &self,
        taken: &mut Option<Taken>,
        length: usize,
        workspace: Option<WorkspaceId>,
    ) -> Result<(), Error> {
        if length <= SMALL_BYTES {
            return Ok(());
        }
        let has = taken.as_ref().map_or(0, |taken| taken.room.num_permits());
        let lacks = u32::try_from(length.div_ceil(UNIT_BYTES).saturating_sub(has)).unwrap_or(u32::MAX);
        if lacks == 0 {
            return Ok(());
        }
        let share = match taken {
            Some(taken) => Arc::clone(taken.share.semaphore()),
            None => self.share_of(workspace),
        };
        let share = share.try_acquire_many_owned(lacks).map_err(|_| busy())?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(lacks).map_err(|_| busy())?;
        match taken {
            Some(taken) => {
                taken.share.merge(share);
                taken.room.merge(room);
            }
            None => *taken = Some(Taken { share, room }),
        }
        Ok(())
    }

    /// A workspace's budget. Budgets without outstanding permits are dropped.
    fn share_of(&self, workspace: Option<WorkspaceId>) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        Arc::clone(shares.entry(workspace).or_insert_with(|| Arc::new(Semaphore::new(self.share))))
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
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| busy())?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(Problem::internal)?;
        let reading = tokio::task::spawn_blocking(move || {
            // The caller may disconnect; the permits belong to the thread until it is done.
            let _taken = (place, turn);
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
        const MOST: usize = usize::MAX;
        let intake = Intake::with(MOST, 8 * UNIT_BYTES, 1, 0);
        let large = |units: usize| Body::from(vec![b'x'; units * UNIT_BYTES]);
        let workspace = |number: u128| Some(WorkspaceId(uuid::Uuid::from_u128(number)));
        let none = Extensions::new();
        let mut request = Extensions::new();
        request.insert(Room::default());
        intake.receive(large(3), MOST, &request, workspace(1)).await.unwrap();
        let refused = intake.receive(large(2), MOST, &none, workspace(1)).await.unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(RETRY)), "beyond its share");
        intake.receive(Body::from("small"), 9, &none, workspace(1)).await.unwrap();
        for number in 2..4 {
            intake.receive(large(4), MOST, &none, workspace(number)).await.unwrap();
        }
        drop(request);
        intake.receive(large(4), MOST, &none, workspace(1)).await.unwrap();

        let mut kept = Vec::new();
        for number in 1..3 {
            let mut request = Extensions::new();
            request.insert(Room::default());
            intake.receive(large(4), MOST, &request, workspace(number)).await.unwrap();
            kept.push(request);
        }
        assert!(intake.receive(large(2), MOST, &none, workspace(9)).await.is_err(), "no room is left");
    }

    #[tokio::test]
    async fn who_finds_too_many_waiting_comes_back_later() {
        let intake = Arc::new(Intake::with(usize::MAX, ROOM_BYTES, 1, 1));
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
