//! Behind the path: TCP connections of the program end in a stack here, and sockets of the kernel carry them on.

use super::program::Addresses;
use crate::failure::Failure;
use ackline::core::ListenOn;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::{Registry, Stack, TcpListener, TcpStream};

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A stack that accepts what comes for any address.
pub(super) struct Outside {
    listener: TcpListener,
    base: Ipv4Addr,
}

impl Outside {
    /// The stack, and the device at which the path ends.
    pub(super) fn start(
        addresses: Addresses,
        mtu: u32,
        registry: &Registry,
    ) -> Result<(Self, Channel), Failure> {
        let (device, end) = Channel::pair(ChannelConfig::default().plain().mtu(mtu));
        let stack = Stack::builder(device).registry(registry.clone()).any_address().spawn();
        let stack = stack.map_err(|error| Failure::system("start a stack", &io::Error::other(error)))?;
        let listener =
            stack.listen(ListenOn::Any).map_err(|error| Failure::system("accept connections", &error))?;
        Ok((Self { listener, base: addresses.base }, end))
    }

    /// Carries connections on, until the stack fails.
    pub(super) async fn run(self) -> io::Error {
        loop {
            let (inside, _) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => return error,
            };
            let base = self.base;
            tokio::spawn(async move {
                // What goes wrong with one connection its two ends are told.
                let _ = carry(inside, base).await;
            });
        }
    }
}

/// Both directions of a connection, each to its own end. A failure on one side resets the other.
async fn carry(mut inside: TcpStream, base: Ipv4Addr) -> io::Result<()> {
    let wanted = inside.local_addr()?;
    let to = match wanted.ip() {
        IpAddr::V4(address) if address == base => SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.port())),
        _ => wanted,
    };
    let mut outside = match tokio::net::TcpStream::connect(to).await {
        Ok(outside) => outside,
        Err(error) => {
            inside.abort();
            return Err(error);
        }
    };
    outside.set_nodelay(true)?;
    let copied = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
    if copied.is_err() {
        inside.abort();
        outside.set_zero_linger()?;
    }
    copied.map(drop)
}
