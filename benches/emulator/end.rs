//! One end of the path: a network namespace, the TUN device in it, and who sends there.

use crate::Outcome;
use crate::case::PACKET;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::device::{DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::netns::{Namespace, enter_user_net_namespace};
use ackline_runtime::stats::Distribution;
use ackline_runtime::{Device, Error, timer};
use ackline_tcp_core::{Duration, Instant};
use ipnet::{IpNet, Ipv4Net};
use rustix::thread::Timespec;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::{fs, io};

const INTERFACE: &str = "end0";
const PORT: u16 = 7_000;
/// Between two bursts of a sender, 100 us.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };
/// At most so many at once: what a sender that did not run has missed is not made up for.
const BURST: u64 = 100;
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// Makes the process able to make namespaces, if it may; while it has one thread.
pub(crate) fn check_rights() -> Outcome<()> {
    match Namespace::new_for_thread() {
        Err(Error::NamespaceForbidden) => Ok(enter_user_net_namespace()?),
        other => Ok(other.map(drop)?),
    }
}

/// One end.
pub(crate) struct End {
    namespace: Namespace,
    address: Ipv4Addr,
    /// Takes what comes in, and is not read: the kernel drops it there at little cost.
    socket: UdpSocket,
}

impl End {
    /// The end at `address`, and its device, behind which everything else is.
    pub(crate) fn make(address: Ipv4Addr) -> Outcome<(Self, Tun)> {
        let namespace = std::thread::scope(|scope| {
            let thread = scope.spawn(Namespace::new_for_thread);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let own = InterfaceAddress::network(IpNet::V4(Ipv4Net::new(address, 24)?));
        let all = IpNet::V4(Ipv4Net::new(Ipv4Addr::UNSPECIFIED, 0)?);
        let config = TunConfig::new().plain().name(INTERFACE).mtu(PACKET as u32).address(own).route(all);
        let tokio = tokio::runtime::Handle::current();
        let (tun, socket) = namespace.run(|| -> Outcome<_> {
            let _entered = tokio.enter();
            Ok((Tun::create(&config)?, UdpSocket::bind((address, PORT))?))
        })??;
        Ok((Self { namespace, address, socket }, tun))
    }

    /// Sends to the other end until it is told to stop.
    pub(crate) fn send(&self, to: &Self, gap: Duration, stop: &AtomicBool) -> io::Result<()> {
        self.socket.connect((to.address, PORT))?;
        let mut payload = [0; PACKET as usize - HEADERS];
        let mut last = timer::now();
        while !stop.load(Ordering::Relaxed) {
            // A signal only makes it shorter.
            let _ = rustix::thread::nanosleep(&REST);
            let due = timer::now().since(last).as_nanos() / gap.as_nanos();
            last += Duration::from_nanos(gap.as_nanos() * due);
            for _ in 0..due.min(BURST) {
                payload[..8].copy_from_slice(&timer::now().as_nanos().to_be_bytes());
                self.socket.send(&payload)?;
            }
        }
        Ok(())
    }

    /// Packets that found the device full so far.
    pub(crate) fn dropped(&self) -> Outcome<u64> {
        let text = self.namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        let counters =
            text.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        // Behind eight counters of what was received: bytes, packets, errors, drops.
        let dropped = counters.and_then(|counters| counters.split_ascii_whitespace().nth(11));
        Ok(dropped.ok_or("no counters of the device")?.parse()?)
    }
}

/// What a device was handed since it was last looked at.
#[derive(Debug, Default)]
pub(crate) struct HandoverStats {
    pub(crate) packets: u64,
    pub(crate) first: Instant,
    pub(crate) last: Instant,
    /// From the sender's call, more than the path takes.
    pub(crate) delay: Distribution,
}

/// Shared with the device that notes it.
pub(crate) type SharedStats = Arc<Mutex<HandoverStats>>;

/// A device that notes when it was handed which packet.
pub(crate) struct TimedTun {
    tun: Tun,
    /// What the path takes.
    path: Duration,
    handed: SharedStats,
}

impl TimedTun {
    pub(crate) fn new(tun: Tun, path: Duration) -> (Self, SharedStats) {
        let handed = SharedStats::default();
        (Self { tun, path, handed: handed.clone() }, handed)
    }
}

impl Device for TimedTun {
    fn caps(&self) -> DeviceCaps {
        self.tun.caps()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        self.tun.try_recv()
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let now = timer::now();
        if let Some(stamp) = packet.header.get(HEADERS..).and_then(|payload| payload.first_chunk()) {
            let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
            if handed.packets == 0 {
                handed.first = now;
            }
            handed.packets += 1;
            handed.last = now;
            let delay = now.since(Instant::from_nanos(u64::from_be_bytes(*stamp)));
            handed.delay.record(delay.saturating_sub(self.path));
        }
        self.tun.try_send(packet)
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tun.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tun.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        self.tun.stats()
    }
}
