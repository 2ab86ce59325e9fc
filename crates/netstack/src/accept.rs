//! Accepting connections, which both interfaces do.

use ackline_runtime::{TcpListener, TcpStream};
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

/// The next connection, with its client and the address that the client connected to. A connection
/// that was reset meanwhile has no address any more, and is left out.
pub(crate) fn poll_connection(
    listener: &TcpListener,
    cx: &mut Context<'_>,
) -> Poll<io::Result<(TcpStream, SocketAddr, SocketAddr)>> {
    loop {
        let (stream, client) = ready!(listener.poll_accept(cx))?;
        if let Ok(destination) = stream.local_addr() {
            return Poll::Ready(Ok((stream, client, destination)));
        }
    }
}
