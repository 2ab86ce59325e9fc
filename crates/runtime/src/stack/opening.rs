//! Streams, listeners and sockets that are opened by their own names, as tokio's are.

use super::Stack;
use crate::io_error;
use crate::listener::TcpListener;
use crate::stream::TcpStream;
use crate::udp::UdpSocket;
use ackline_tcp_core::ListenOn;
use ackline_tcp_core::config::FastOpen;
use std::io;
use std::sync::Arc;
use tokio::net::{ToSocketAddrs, lookup_host};

impl TcpStream {
    /// Connects; the same as [`Stack::connect`].
    ///
    /// # Errors
    /// As there.
    pub async fn connect(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        stack.connect(addr).await
    }

    /// Connects with TCP Fast Open (RFC 7413), and sends all of `data`: with the SYN, if the server
    /// has given this stack a cookie before. Otherwise it asks for one, and sends the data after
    /// the handshake. [`Stack::connect_to_with_data`] takes other settings.
    ///
    /// # Errors
    /// As [`Stack::connect`], and those of a write.
    pub async fn connect_with_data(stack: &Stack, addr: impl ToSocketAddrs, data: &[u8]) -> io::Result<Self> {
        let mut config = (**stack.connections()).clone();
        config.fast_open = FastOpen::Client;
        stack.connect_to_any(addr, Arc::new(config), data).await
    }
}

impl TcpListener {
    /// Listens on the first of the addresses that is free, with the stack's default settings. An
    /// unspecified address means all of the stack's addresses; port 0 picks a free port. Names are
    /// resolved by the system's resolver.
    ///
    /// # Errors
    /// As [`Stack::listen`], for the last address.
    pub async fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            match stack.listen(ListenOn::Address(addr)) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(io_error::no_address))
    }
}

impl UdpSocket {
    /// Binds to the first of the addresses that is free. Port 0 picks a free port, which
    /// [`local_addr`](Self::local_addr) returns.
    ///
    /// # Errors
    /// As [`Stack::bind_udp`], for the last address; the resolver's.
    pub async fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            match stack.bind_udp(addr) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(io_error::no_address))
    }
}
