//! Both ends of a connection: the client's, which may still wait for its SYN-ACK, and the outer
//! one.

use crate::clients::EarlyPermit;
use crate::outside::Stream;
use ackline_runtime::{HeldSyn, Refusal, TcpStream};
use std::io;
use std::net::SocketAddr;
use tokio::io::Interest;

/// A client whose connection is to be relayed.
pub(crate) enum Client {
    /// Nothing has been answered. Anybody may have forged its SYN.
    Held(Box<HeldSyn>, EarlyPermit),
    /// It has completed its handshake.
    Proved(Box<TcpStream>),
}

impl Client {
    /// The client's address, and where it wants to go; `None` if it has gone.
    pub(crate) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self {
            Self::Held(syn, _) => Some((syn.peer_addr(), syn.local_addr())),
            Self::Proved(stream) => Some((stream.peer_addr().ok()?, stream.local_addr().ok()?)),
        }
    }

    /// Waits for `work`, while the client waits.
    ///
    /// # Errors
    /// If the client goes away before.
    pub(crate) async fn hold<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        match self {
            Self::Held(syn, _) => syn.hold(work).await,
            Self::Proved(stream) => tokio::select! {
                outcome = work => Ok(outcome),
                failed = stream.ready(Interest::ERROR) => {
                    failed.and(Err(io::ErrorKind::ConnectionReset.into()))
                }
            },
        }
    }

    /// The client's end of the connection.
    ///
    /// # Errors
    /// If it has gone.
    pub(crate) async fn accept(self) -> io::Result<StackStream> {
        let stream = match self {
            // The destination has its connection for an unproved client until then.
            Self::Held(syn, early) => {
                let stream = syn.accept().await;
                drop(early);
                stream?
            }
            Self::Proved(stream) => *stream,
        };
        Ok(StackStream { stream, is_over: false })
    }

    /// Refuses the client. One that is already connected gets a reset.
    pub(crate) fn refuse(self, how: Refusal) {
        match self {
            Self::Held(syn, _) => syn.refuse(how),
            Self::Proved(stream) => stream.abort(),
        }
    }
}

/// The end at the stack: the client's, or that of a published port's guest. Reset on drop, unless
/// everything has been passed on.
pub(crate) struct StackStream {
    pub(crate) stream: TcpStream,
    pub(crate) is_over: bool,
}

impl Drop for StackStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stream.abort();
        }
    }
}

/// The end outside: the destination's, or that of a published port's client. Reset on drop, unless
/// everything has been passed on.
pub(crate) struct OutsideStream {
    pub(crate) stream: Stream,
    pub(crate) is_over: bool,
}

impl Drop for OutsideStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stream.abort();
        }
    }
}
