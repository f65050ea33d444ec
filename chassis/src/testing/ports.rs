//! Reserved addresses for processes that start later.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// Reserves a local address for a later listener. While the socket is bound without listening, the OS assigns the port to no
/// other socket, but a process that binds it explicitly can listen on it (`SO_REUSEADDR`).
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
