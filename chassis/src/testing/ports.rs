//! Addresses of processes that start later.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// An address of this machine for somebody who listens later. While the socket is bound and does not listen, nobody else is
/// given the port, and whoever names it may listen there.
///
/// # Errors
/// When there is no free port.
pub fn reserve() -> io::Result<(TcpSocket, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}
