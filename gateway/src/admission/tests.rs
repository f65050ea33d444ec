//! Waiting, leaving and cancellation on the real runtime. The order of admission is covered by the queue's own
//! tests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::{Body, Bytes};
use cairn_chassis::clock::{ManualClock, Timestamp};
use cairn_chassis::status::Reason;
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use uuid::Uuid;

use super::*;
use crate::suspension;

type Entering<'a> = Pin<Box<dyn Future<Output = Result<Option<Arc<Permit>>, Problem>> + Send + 'a>>;

fn admission(capacity: u32) -> Arc<Admission> {
    let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
    Arc::new(Admission::new(capacity, clock))
}

fn tenant(number: u128) -> Tenant {
    Tenant::Workspace(Uuid::from_u128(number).into())
}

fn enter(admission: &Arc<Admission>, number: u128, cost: Cost) -> Entering<'_> {
    Box::pin(async move { admission.enter(tenant(number), cost, &mut Extensions::new()).await })
}

/// Polls once.
fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A permit that is granted at once.
fn permit(admission: &Arc<Admission>, number: u128, cost: Cost) -> Arc<Permit> {
    poll(&mut enter(admission, number, cost)).unwrap().unwrap().unwrap()
}

fn is_empty(admission: &Admission) -> bool {
    lock(admission.queue.as_ref().unwrap()).is_empty()
}

#[tokio::test]
async fn without_a_capacity_everything_is_let_in() {
    let admission = admission(0);
    for _ in 0..1_000 {
        assert!(enter(&admission, 1, Cost::BULK).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn probes_take_no_place() {
    let admission = admission(1);
    let _all = permit(&admission, 1, Cost::BULK);
    assert!(enter(&admission, 1, Cost::FREE).await.unwrap().is_none());
}

#[tokio::test]
async fn who_waits_is_let_in_when_a_place_is_free() {
    let admission = admission(4);
    let mut own: Vec<_> = (0..3).map(|_| permit(&admission, 1, Cost::POINT)).collect();
    let mut over = enter(&admission, 1, Cost::POINT);
    assert!(poll(&mut over).is_none(), "a quarter is left to others");
    let other = permit(&admission, 2, Cost::POINT);
    let mut third = enter(&admission, 3, Cost::POINT);
    assert!(poll(&mut third).is_none(), "all units are taken");
    own.pop();
    let third = poll(&mut third).unwrap().unwrap();
    assert!(poll(&mut over).is_none(), "who has more waits longer");
    drop(other);
    let over = poll(&mut over).unwrap().unwrap();
    drop((own, third, over));
    assert!(is_empty(&admission));
}

#[tokio::test]
async fn what_is_dropped_leaves_nothing() {
    let admission = admission(4);
    let first: Vec<_> = (0..3).map(|_| permit(&admission, 1, Cost::POINT)).collect();
    let mut waiting = enter(&admission, 1, Cost::POINT);
    let mut next = enter(&admission, 1, Cost::POINT);
    assert!(poll(&mut waiting).is_none() && poll(&mut next).is_none());
    drop(waiting);
    drop(first);
    // It was admitted by then, and never polled.
    drop(next);
    assert!(is_empty(&admission));
}

#[tokio::test]
async fn patience_ends_with_a_refusal_that_says_when_to_come_again() {
    let admission = admission(1);
    let taken = permit(&admission, 1, Cost::BULK);
    let refused = enter(&admission, 2, Cost::POINT).await.unwrap_err();
    assert_eq!((refused.reason, refused.retry_after), (Reason::Unavailable, Some(BUSY)));
    drop(taken);
    drop(enter(&admission, 2, Cost::POINT).await.unwrap());
    assert!(is_empty(&admission));
}

#[tokio::test]
async fn a_place_is_free_while_its_request_waits() {
    let admission = admission(1);
    let slow = permit(&admission, 1, Cost::BULK);
    let (sender, parts) = tokio::sync::mpsc::channel::<Bytes>(1);
    let parts = stream::unfold(parts, |mut parts| async move { Some((parts.recv().await?, parts)) });
    let mut body = suspension::track_body(&slow, Body::from_stream(parts.map(Ok::<_, std::io::Error>)));
    assert!(futures::poll!(body.frame()).is_pending());
    let mut extensions = Extensions::new();
    let other = admission.enter(tenant(2), Cost::POINT, &mut extensions).await.unwrap();
    let suspended = Permits::suspend(&extensions);
    let third = permit(&admission, 3, Cost::POINT);
    drop(suspended);
    sender.send(Bytes::from_static(b"all")).await.unwrap();
    drop(sender);
    assert_eq!(body.collect().await.unwrap().to_bytes(), "all");
    let mut fourth = enter(&admission, 4, Cost::POINT);
    assert!(poll(&mut fourth).is_none(), "three go on with one unit");
    drop((slow, other, third));
    drop(poll(&mut fourth).unwrap().unwrap());
    assert!(is_empty(&admission));
}

#[test]
fn the_usual_capacity_is_below_the_bound_of_all_requests() {
    for requests in [1, 2, 3, 512, 100_000] {
        let capacity = default_capacity(requests);
        assert!(capacity >= 1 && usize::try_from(capacity).unwrap() <= requests, "{requests}: {capacity}");
    }
}
