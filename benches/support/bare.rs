//! The peer: this bench started again as a bare server, so that both sides are one process on the same machine.

use std::net::SocketAddr;
use std::process::Command;

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use super::server::{Server, free_address};

/// Starts it, with its address as `--bare`.
pub(crate) fn start(arguments: &[&str]) -> anyhow::Result<Server> {
    let address = free_address()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--bare", &address.to_string()]).args(arguments);
    Server::spawn(command, address)
}

/// Serves until it is killed, in the started process.
pub(crate) async fn serve(address: SocketAddr, router: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await?.tap_io(|stream| {
        // As `cairn` does.
        let _unset = stream.set_nodelay(true);
    });
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        ended = axum::serve(listener, router) => Ok(ended?),
        _ = terminate.recv() => Ok(()),
    }
}
