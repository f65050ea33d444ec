//! Admission control: authenticates a call before its body is read, and limits the calls and the body memory of a service.

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

use super::body::{LimitedBody, MemoryShare, MethodLimits, SHARE_BYTES};
use super::{Access, RETRY_AFTER};
use crate::channel::MAX_MESSAGE_BYTES;
use crate::contracts::Contracts;
use crate::identity::Verifier;
use crate::status::Problem;

/// The message limit of methods that require no identity.
pub const MAX_OPEN_BYTES: usize = 64 * 1024;
/// The default message limit; texts of files go through methods that [`Access::large`] lists.
pub const MAX_USUAL_BYTES: usize = 2 * 1024 * 1024;
/// The limits of fields and list entries in a message: of an open, a default and a large method.
const MAX_ELEMENTS: (usize, usize, usize) = (1_000, 20_000, 100_000);
/// Concurrent calls of a service.
const MAX_CALLS: usize = 4_096;
/// The service that probes call.
const HEALTH: &str = "/grpc.health.v1.Health/";
/// The memory for the bodies of all calls of a service.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// Wraps a service in [`Admission`].
#[derive(Debug, Clone)]
pub(super) struct AdmissionLayer(Arc<Rules>);

#[derive(Debug)]
struct Rules {
    verifier: Verifier,
    /// By path, for every method of the contracts.
    limits: foldhash::HashMap<&'static str, MethodLimits>,
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
        let limits = Contracts::get().paths().map(|path| (path, limits_of(path, &open, &large))).collect();
        Self(Arc::new(Rules {
            verifier,
            limits,
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
            memory: Arc::new(Semaphore::new(MAX_BYTES / SHARE_BYTES)),
        }))
    }
}

fn limits_of(path: &str, open: &HashSet<&str>, large: &HashSet<&str>) -> MethodLimits {
    let (few, usual, many) = MAX_ELEMENTS;
    let is_open = open.contains(path);
    let (bytes, elements) = if large.contains(path) {
        (MAX_MESSAGE_BYTES, many)
    } else if is_open {
        (MAX_OPEN_BYTES, few)
    } else {
        (MAX_USUAL_BYTES, usual)
    };
    let method = Contracts::get().method(path).map(|(_, method)| method);
    MethodLimits {
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

/// Verifies the caller's identity, acquires a call permit, and limits the body, in this order.
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
        // `poll_ready` was called on this instance and not on its clone, so this one has to handle the call.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let limits = rules.limits.get(request.uri().path()).copied();
            if !limits.is_some_and(|limits| limits.is_open)
                && let Err(problem) = rules.verifier.authenticate_call(request.headers()).await
            {
                return Ok(refuse(problem));
            }
            // A liveness probe must succeed on a busy process, too.
            let is_probe = request.uri().path().starts_with(HEALTH);
            let permit = rules.calls.try_acquire();
            if permit.is_err() && !is_probe {
                return Ok(refuse(Problem::unavailable(
                    "too many calls are under way; try again",
                    RETRY_AFTER,
                )));
            }
            let share = MemoryShare::of(&rules.memory);
            let request = request.map(|body| match limits {
                Some(limits) => Body::new(LimitedBody::new(body, limits, share.clone())),
                // The router responds with UNIMPLEMENTED.
                None => Body::empty(),
            });
            let response = inner.call(request).await;
            drop((share, permit));
            response
        })
    }
}

fn refuse(problem: Problem) -> Response<Body> {
    Status::from(problem).into_http::<Body>()
}
