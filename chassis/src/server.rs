//! Serving: what every service's routes carry, and how they listen.

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

/// When a caller may try again that was one too many.
const BUSY: Duration = Duration::from_secs(1);
const CROWDED: &str = "too much is being sent at once; try again";

/// What a service's methods ask of their callers beside what each checks itself. A method that is not listed needs an
/// identity, and its messages have the usual size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Access {
    /// Paths of methods that need no identity (`/cairn.auth.v1.TokenService/Exchange`): their messages are small.
    pub open: &'static [&'static str],
    /// Paths of methods whose messages may be as large as messages get.
    pub large: &'static [&'static str],
}

/// The contracts' descriptors are damaged: a fault of the build.
#[derive(Debug, thiserror::Error)]
#[error("the descriptors of the contracts cannot be read")]
pub struct ReflectionError;

/// Routes as they are served, locally or over TCP: health, reflection, and the layers that hold on both.
#[derive(Debug)]
pub struct Composed {
    /// What a channel or a listener takes.
    pub routes: Routes,
    /// Says NOT_SERVING when the process is about to go.
    pub health: HealthReporter,
    names: Vec<&'static str>,
}

/// The paths of all methods that are served by any service.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    Contracts::get().paths()
}

/// Composes plain routes; `names` are the full names of their gRPC services (`cairn.content.v1.FileService`), `access`
/// says who may call them. An identity is verified before anything of a call's body is read.
///
/// # Errors
/// When the descriptors of the contracts cannot be read.
pub async fn compose(
    routes: Routes,
    names: &[&'static str],
    access: &[Access],
    verifier: &Verifier,
) -> Result<Composed, ReflectionError> {
    if !Contracts::get().are_whole() {
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
        // One stack: a router boxes whatever it is given, and copies each box for every call.
        .layer(
            ServiceBuilder::new()
                .layer(ObserveLayer)
                .layer(CatchPanicLayer::custom(answer_panic))
                .layer(DeadlineLayer)
                .map_response(error_info::complete)
                .layer(AdmissionLayer::new(access, verifier.clone())),
        );
    Ok(Composed { routes: Routes::from(router).prepare(), health, names: names.to_vec() })
}

impl Composed {
    /// Serves over TCP (HTTP/2) until the shutdown, and says NOT_SERVING from when it leaves; then drains.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        self.serve_over(listener, Settings::mesh(&Connections::default()), shutdown).await;
    }

    /// As [`Self::serve`], with other settings.
    pub async fn serve_over(self, listener: TcpListener, settings: Settings, shutdown: CancellationToken) {
        let Self { routes, health, names } = self;
        let leaving = settings.leaving.clone();
        let stopping = async {
            tokio::select! {
                () = leaving.cancelled() => {}
                () = shutdown.cancelled() => {}
            }
            // Probes that name no service ask for the whole process.
            for name in names.into_iter().chain([""]) {
                health.set_service_status(name, ServingStatus::NotServing).await;
            }
        };
        let serving = transport::serve(listener, routes.into_axum_router(), settings, shutdown.clone());
        tokio::join!(stopping, serving);
    }
}

/// Binds an address, saying what to do when it is taken.
///
/// # Errors
/// The system's, with the address and a way out in the text.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let taken = error.kind() == io::ErrorKind::AddrInUse;
        let advice = if taken {
            "; stop what listens there, or choose another port (port 0 picks a free one)"
        } else {
            ""
        };
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}{advice}"))
    })
}

fn answer_panic(panic: Box<dyn Any + Send>) -> Response<axum::body::Body> {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let problem = Problem::internal(format_args!("a handler panicked: {said}"));
    Status::from(problem).into_http::<Body>().map(axum::body::Body::new)
}

#[cfg(test)]
mod tests;
