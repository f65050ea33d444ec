//! Servers that tests script: each on a thread of its own, which ends with the test process.

use std::net::{SocketAddr, TcpListener};

use axum::Router;

/// Binds a free port on loopback.
pub(crate) fn listen() -> (SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    (listener.local_addr().unwrap(), listener)
}

/// The address of a server that accepts connections and never responds.
pub(crate) fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            held.push(stream);
        }
    });
    address
}

/// Serves the routes on that listener.
pub(crate) fn serve(listener: TcpListener, routes: Router) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, routes).await.unwrap();
        });
    });
}
