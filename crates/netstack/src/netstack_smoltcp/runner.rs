//! The future that drives a stack.

use ackline_runtime::Packets;
use ackline_runtime::stack::Driver;
use ackline_tcp_core::RxPacket;
use ackline_tcp_core::wire::{self, HeaderBuf, IcmpEmit, IcmpHeader, IcmpMessage, Transport};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Hop limit of what the stack answers.
pub(super) const TTL: u8 = 64;

/// Drives the stack: hand it to tokio. It ends when stack, listener and streams are dropped, or
/// with an error when the [`Stack`](super::Stack) is.
#[must_use = "nothing moves unless the runner is polled"]
pub struct Runner {
    driver: Driver,
    /// Pings, if they are answered.
    pings: Option<Packets>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

impl Runner {
    pub(super) const fn new(driver: Driver, pings: Option<Packets>) -> Self {
        Self { driver, pings }
    }
}

impl Future for Runner {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { driver, pings } = &mut *self;
        if let Poll::Ready(outcome) = Pin::new(driver).poll(cx) {
            return Poll::Ready(outcome);
        }
        if let Some(taken) = pings {
            loop {
                match taken.poll_recv(cx) {
                    Poll::Ready(Ok(packet)) => {
                        if let Some(reply) = reply_to(&packet) {
                            // What finds no room is lost, like a ping that a router drops.
                            let _ = taken.send(&reply);
                        }
                    }
                    Poll::Ready(Err(_)) => {
                        *pings = None;
                        break;
                    }
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }
}

/// The echo reply to a request, from the address that it is for (RFC 1122, section 3.2.2.6; RFC
/// 4443, section 4.2); `None` if it is none.
fn reply_to(packet: &[u8]) -> Option<Vec<u8>> {
    let datagram = wire::parse(&RxPacket::new(packet)).ok()?;
    let Transport::Icmp(IcmpMessage::EchoRequest(echo)) = datagram.transport else { return None };
    let mut data = vec![0; echo.data.len()];
    echo.data.copy_to(&mut data);
    let message = IcmpEmit::EchoReply { ident: echo.ident, seq: echo.seq };
    let header = IcmpHeader { src: datagram.ip.dst, dst: datagram.ip.src, ttl: TTL, message };
    let mut headers = HeaderBuf::new();
    wire::emit_icmp(&header, [&data, &[]], &mut headers).ok()?;
    Some([headers.as_slice(), &data].concat())
}
