//! SYNs in the names of hosts that do not exist (RFC 4987).

use crate::ground::{HERE, PORT};
use ackline::core::wire::{HeaderBuf, TcpFlags, TcpHeader, TcpOptions, TxChecksumMode, emit_tcp};
use ackline::core::{Duration, SeqNum};
use ackline_runtime::timer;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto};
use rustix::thread::Timespec;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

/// From one SYN to the next: 100,000 per second, if the machine makes so many.
const GAP: Duration = Duration::from_micros(10);
/// At most so many at once: what a forger that did not run has missed is not made up for.
const BURST: u64 = 200;
/// Between two bursts, 200 µs.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// Sends a SYN of another host each time.
pub(crate) struct Forger {
    socket: OwnedFd,
}

impl Forger {
    /// In the namespace of the calling thread.
    pub(crate) fn new() -> io::Result<Self> {
        // With headers of its own (raw(7)).
        let (kind, flags) = (SocketType::RAW, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(AddressFamily::INET, kind, flags, Some(ipproto::RAW))?;
        Ok(Self { socket })
    }

    /// Forges until a packet cannot be sent; `sent` counts.
    pub(crate) fn forge(&self, sent: &AtomicU64) -> io::Result<()> {
        let (mut number, mut last) = (0, timer::now());
        loop {
            // A signal only makes it shorter.
            let _ = rustix::thread::nanosleep(&REST);
            let due = timer::now().since(last).as_nanos() / GAP.as_nanos();
            last += Duration::from_nanos(GAP.as_nanos() * due);
            for _ in 0..due.min(BURST) {
                let taken = self.send(number)?;
                sent.fetch_add(u64::from(taken), Ordering::Relaxed);
                number = number.wrapping_add(1);
            }
        }
    }

    /// False if a queue is full: the packet is lost, as a network would lose it.
    fn send(&self, number: u32) -> io::Result<bool> {
        let mut syn = TcpHeader::new(somewhere(number), SocketAddr::from((HERE, PORT)));
        (syn.seq, syn.flags, syn.window) = (SeqNum(number), TcpFlags::SYN, u16::MAX);
        syn.options = TcpOptions { mss: Some(1_460), sack_permitted: true, ..TcpOptions::NONE };
        let mut packet = HeaderBuf::new();
        emit_tcp(&syn, [&[], &[]], TxChecksumMode::Complete, &mut packet).map_err(io::Error::other)?;
        let to = SocketAddr::from((HERE, 0));
        match rustix::net::sendto(&self.socket, packet.as_slice(), SendFlags::empty(), &to) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Another address for each number, and another port when the addresses are used up.
fn somewhere(number: u32) -> SocketAddr {
    // 198.18.0.0/15: RFC 2544, for benchmarks.
    let address = Ipv4Addr::from(0xc612_0000 | (number & 0x1_ffff));
    SocketAddr::new(IpAddr::V4(address), 1_024 + (number >> 17) as u16)
}
