//! Who may call, decided before a call's body is read; and how much all calls together may take.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use http::{Request, Response};
use tokio::sync::Semaphore;
use tonic::Status;
use tower::{Layer, Service};

use super::body::{Allowed, Bounded, SHARE_BYTES, Share};
use super::{Access, BUSY};
use crate::channel::MAX_MESSAGE_BYTES;
use crate::contracts::Contracts;
use crate::identity::Verifier;
use crate::status::Problem;

/// What a message may weigh that anybody may send.
pub const MAX_OPEN_BYTES: usize = 64 * 1024;
/// What a message may weigh otherwise; texts of files go through methods that [`Access::large`] lists.
pub const MAX_USUAL_BYTES: usize = 2 * 1024 * 1024;
/// Of how many fields and entries a message may consist: one that anybody may send, a usual one, a large one.
const MOST_ELEMENTS: (usize, usize, usize) = (1_000, 20_000, 100_000);
/// How many calls a service serves at once.
const MOST_CALLS: usize = 4_096;
/// What probes call.
const HEALTH: &str = "/grpc.health.v1.Health/";
/// What the bodies of all calls to a service may weigh together.
const MOST_BYTES: usize = 512 * 1024 * 1024;

/// Puts [`Admission`] around a service.
#[derive(Debug, Clone)]
pub(super) struct AdmissionLayer(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    verifier: Verifier,
    /// By path; what is not there is not served.
    allowed: foldhash::HashMap<&'static str, Allowed>,
    calls: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl AdmissionLayer {
    pub(super) fn new(access: &[Access], verifier: Verifier) -> Self {
        let listed = |list: fn(&Access) -> &'static [&'static str]| {
            access.iter().flat_map(move |access| list(access).iter().copied()).collect::<HashSet<_>>()
        };
        let mut open = listed(|access| access.open);
        let large = listed(|access| access.large);
        open.extend(Contracts::get().paths().filter(|path| path.starts_with("/grpc.")));
        let allowed = Contracts::get().paths().map(|path| (path, allowed(path, &open, &large))).collect();
        Self(Arc::new(Rules {
            verifier,
            allowed,
            calls: Arc::new(Semaphore::new(MOST_CALLS)),
            memory: Arc::new(Semaphore::new(MOST_BYTES / SHARE_BYTES)),
        }))
    }
}

fn allowed(path: &str, open: &HashSet<&str>, large: &HashSet<&str>) -> Allowed {
    let (few, usual, many) = MOST_ELEMENTS;
    let is_open = open.contains(path);
    let (bytes, elements) = if large.contains(path) {
        (MAX_MESSAGE_BYTES, many)
    } else if is_open {
        (MAX_OPEN_BYTES, few)
    } else {
        (MAX_USUAL_BYTES, usual)
    };
    let method = Contracts::get().method(path).map(|(_, method)| method);
    Allowed {
        is_open,
        message: method.and_then(|method| method.request),
        bytes,
        elements,
        is_stream: method.is_some_and(|method| method.takes_stream),
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        Admission { inner, rules: Arc::clone(&self.0) }
    }
}

/// Verifies the caller's identity, takes the call in, and bounds its body, in this order.
#[derive(Debug, Clone)]
pub(super) struct Admission<S> {
    inner: S,
    rules: Arc<Rules>,
}

type BoxedFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<S> Service<Request<Body>> for Admission<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxedFuture<Self::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let rules = Arc::clone(&self.rules);
        // The one that was ready serves the call; the copy is readied for the next.
        let copy = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, copy);
        Box::pin(async move {
            let allowed = rules.allowed.get(request.uri().path()).copied();
            if !allowed.is_some_and(|allowed| allowed.is_open)
                && let Err(problem) = rules.verifier.authenticate_call(request.headers()).await
            {
                return Ok(refuse(problem));
            }
            // Who asks whether this process lives must not take its being busy for its end.
            let is_probe = request.uri().path().starts_with(HEALTH);
            let call = rules.calls.try_acquire();
            if call.is_err() && !is_probe {
                return Ok(refuse(Problem::unavailable("too many calls are under way; try again", BUSY)));
            }
            let share = Share::of(&rules.memory);
            let request = request.map(|body| match allowed {
                Some(allowed) => Body::new(Bounded::new(body, allowed, share.clone())),
                // It is answered that there is no such method.
                None => Body::empty(),
            });
            let answered = inner.call(request).await;
            drop((share, call));
            answered
        })
    }
}

fn refuse(problem: Problem) -> Response<Body> {
    Status::from(problem).into_http::<Body>()
}
