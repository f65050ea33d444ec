//! The public HTTP listener.

use std::future::IntoFuture as _;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
use axum::serve::ListenerExt as _;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long requests under way may take after the shutdown began.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(20);

/// Serves until the shutdown, then lets requests under way finish.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let listener = listener.tap_io(|stream| {
        // Without it, small answers wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
    });
    let service: IntoMakeServiceWithConnectInfo<Router, SocketAddr> =
        router.into_make_service_with_connect_info();
    let serving = axum::serve(listener, service).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let drained = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN_LIMIT).await;
    };
    tokio::select! {
        ended = serving.into_future() => ended.context("the public address is no longer served"),
        () = drained => {
            tracing::warn!("some requests did not finish in time and were cut off");
            Ok(())
        }
    }
}
