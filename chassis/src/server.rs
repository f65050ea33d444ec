//! The gRPC server of a service: its layers, health, reflection and listeners.

mod admission;
mod body;
mod error_info;
mod observe;
mod reflection;
mod scanner;
mod services_only;

use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::Response;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use self::admission::AdmissionLayer;
pub use self::admission::{MAX_OPEN_BYTES, MAX_USUAL_BYTES};
use self::observe::ObserveLayer;
pub use self::services_only::ServicesOnly;
use crate::contracts::Contracts;
use crate::deadline::DeadlineLayer;
use crate::identity::Verifier;
use crate::status::Problem;
use crate::transport::{self, Connections, Settings};

/// The retry-after of a call that was rejected because of load.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const OVERLOADED: &str = "too much is being sent at once; try again";

/// Exceptions from the access rules of a service's methods. A method that is not listed requires an identity, and its messages
/// have the default limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access {
    /// Paths of methods that require no identity (`/cairn.auth.v1.TokenService/Exchange`); their messages must be small.
    pub open: &'static [&'static str],
    /// Paths of methods whose messages may have the maximum size.
    pub large: &'static [&'static str],
}

/// The descriptors of the contracts cannot be decoded, which is a bug of the build.
#[derive(Debug, thiserror::Error)]
#[error("the descriptors of the contracts cannot be read")]
pub struct ReflectionError;

/// The routes of a service with health, reflection and all layers, for a local channel and for TCP alike.
#[derive(Debug)]
pub struct Composed {
    /// For a channel or a listener.
    pub routes: Routes,
    /// Reports NOT_SERVING when the process is about to shut down.
    pub health: HealthReporter,
    names: Vec<&'static str>,
}

/// The paths of all methods of all services.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    Contracts::get().paths()
}

/// Adds health, reflection and the layers to routes; `names` are the full names of their gRPC services
/// (`cairn.content.v1.FileService`), `access` their access rules. The identity is verified before the body of a call is read.
///
/// # Errors
/// When the descriptors of the contracts cannot be read.
pub async fn compose(
    routes: Routes,
    names: &[&'static str],
    access: &[Access],
    verifier: &Verifier,
) -> Result<Composed, ReflectionError> {
    if !Contracts::get().is_complete() {
        return Err(ReflectionError);
    }
    let (health, health_service) = tonic_health::server::health_reporter();
    for name in names {
        health.set_service_status(*name, ServingStatus::Serving).await;
    }
    let router = routes
        .add_service(health_service)
        .into_axum_router()
        .merge(reflection::routes(names))
        // One stack instead of several layers: a router boxes each layer, and clones each box for every call.
        .layer(
            ServiceBuilder::new()
                .layer(ObserveLayer)
                .layer(CatchPanicLayer::custom(panic_response))
                .layer(DeadlineLayer)
                .map_response(error_info::complete)
                .layer(AdmissionLayer::new(access, verifier.clone())),
        );
    Ok(Composed { routes: Routes::from(router).prepare(), health, names: names.to_vec() })
}

impl Composed {
    /// Serves over TCP (HTTP/2) until shutdown and then drains. Health reports NOT_SERVING as soon as `leaving` is cancelled.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        self.serve_over(listener, Settings::mesh(&Connections::default()), shutdown).await;
    }

    /// As [`Self::serve`], with other settings.
    pub async fn serve_over(self, listener: TcpListener, settings: Settings, shutdown: CancellationToken) {
        let Self { routes, health, names } = self;
        let leaving = settings.leaving.clone();
        let report_not_serving = async {
            tokio::select! {
                () = leaving.cancelled() => {}
                () = shutdown.cancelled() => {}
            }
            // The empty name stands for the whole process.
            for name in names.into_iter().chain([""]) {
                health.set_service_status(name, ServingStatus::NotServing).await;
            }
        };
        let serving = transport::serve(listener, routes.into_axum_router(), settings, shutdown.clone());
        tokio::join!(report_not_serving, serving);
    }
}

/// Binds an address.
///
/// # Errors
/// That of the OS, with the address and advice for a port in use in its text.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let is_in_use = error.kind() == io::ErrorKind::AddrInUse;
        let advice = if is_in_use {
            "; stop what listens there, or choose another port (port 0 picks a free one)"
        } else {
            ""
        };
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}{advice}"))
    })
}

fn panic_response(panic: Box<dyn Any + Send>) -> Response<axum::body::Body> {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let problem = Problem::internal(format_args!("a handler panicked: {message}"));
    Status::from(problem).into_http::<Body>().map(axum::body::Body::new)
}

#[cfg(test)]
mod tests;
