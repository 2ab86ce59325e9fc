//! The two that count: a socket of the kernel on a TUN device, and an endpoint in virtual time.

use ackline::Registry;
use ackline_runtime::device::OutgoingPacket;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::{Device as _, Error};
use ackline_tcp_core::wire::RxPacket;
use ackline_tcp_core::{
    AcceptConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, TxBudget,
};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Where both listen.
pub(super) const PLACE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 79, 0, 1)), 7);

/// How often the kernel is looked at before it has had long enough: every millisecond.
const LOOKS: u32 = 10_000;

/// Counters by `nstat`'s names.
pub(super) type Counted = BTreeMap<String, u64>;

/// A host that listens at [`PLACE`].
pub(super) trait Subject {
    /// A packet of its peer arrives.
    fn take(&mut self, packet: &[u8]);
    /// The next packet that it sends, at once or when a timer expires.
    fn give(&mut self) -> Vec<u8>;
    /// Its application accepts a connection, writes to it, closes its own side, or lets go of it.
    fn accept(&mut self);
    fn write(&mut self, len: usize);
    fn shut(&mut self);
    fn release(&mut self);
    /// What it has counted once all that came is processed.
    fn counted(&mut self) -> Counted;
}

/// A socket of the kernel.
pub(super) struct Kernel {
    tun: Tun,
    listener: TcpListener,
    stream: Option<TcpStream>,
    /// Packets that have come.
    taken: u64,
}

impl Kernel {
    /// In the namespace of this thread. The kernel's limit of ACKs (`tcp_invalid_ratelimit`) is far
    /// longer than the test: what it suppresses does not depend on how fast this runs.
    pub(super) fn start() -> Result<Self, Error> {
        let failed = |action| move |source| Error::System { action, source };
        let limit = "/proc/sys/net/ipv4/tcp_invalid_ratelimit";
        std::fs::write(limit, "3600000").map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => Error::NotAdmin { action: "change a setting of the kernel's TCP" },
            _ => Error::System { action: "change a setting of the kernel's TCP", source },
        })?;
        let network = "10.79.0.1/24".parse().expect("a network");
        let config = TunConfig::new().mtu(1_500).address(InterfaceAddress::network(network)).plain();
        let tun = Tun::create(&config)?;
        let listener = TcpListener::bind(PLACE).map_err(failed("listen"))?;
        listener.set_nonblocking(true).map_err(failed("listen"))?;
        Ok(Self { tun, listener, stream: None, taken: 0 })
    }

    fn stream(&mut self) -> &mut TcpStream {
        self.stream.as_mut().expect("it was accepted")
    }
}

/// Tries every millisecond until there is something.
#[expect(clippy::disallowed_methods, reason = "the kernel has a clock of its own")]
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = attempt() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{what} did not happen");
}

impl Subject for Kernel {
    fn take(&mut self, packet: &[u8]) {
        let Self { tun, .. } = self;
        until("room", || match tun.try_send(&OutgoingPacket::whole(packet)) {
            Ok(()) => Some(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        });
        self.taken += 1;
    }

    fn give(&mut self) -> Vec<u8> {
        const TCP: u8 = 6;
        until("a packet of the kernel", || match self.tun.try_recv() {
            // Others are about neighbours and groups.
            Ok(packet) => Some(packet.head.to_vec()).filter(|head| head[0] >> 4 == 4 && head[9] == TCP),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        })
    }

    fn accept(&mut self) {
        let (stream, _) = until("a connection", || self.listener.accept().ok());
        self.stream = Some(stream);
    }

    fn write(&mut self, len: usize) {
        self.stream().write_all(&vec![1; len]).expect("the send buffer has room");
    }

    fn shut(&mut self) {
        self.stream().shutdown(Shutdown::Write).expect("open");
    }

    fn release(&mut self) {
        self.stream = None;
    }

    fn counted(&mut self) -> Counted {
        until("all packets", || {
            let counted = of_the_kernel();
            (counted["TcpInSegs"] >= self.taken).then_some(counted)
        })
    }
}

/// The counters of this thread's namespace.
fn of_the_kernel() -> Counted {
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).expect("readable");
    let text = read("snmp") + &read("netstat");
    let lines: Vec<&str> = text.lines().collect();
    let mut counted = Counted::new();
    // A line of names, and a line of values.
    for pair in lines.chunks(2) {
        let [names, values] = pair else { continue };
        let (group, names) = names.split_once(':').expect("a group");
        let values = values.split_whitespace().skip(1);
        for (name, value) in names.split_whitespace().zip(values) {
            // One of them, MaxConn, is -1.
            counted.insert(format!("{group}{name}"), value.parse().unwrap_or(0));
        }
    }
    counted
}

/// An endpoint in virtual time.
pub(super) struct Virtual {
    endpoint: Endpoint,
    now: Instant,
    accepted: VecDeque<ConnId>,
    conn: Option<ConnId>,
    sent: VecDeque<Vec<u8>>,
}

impl Virtual {
    pub(super) fn start() -> Self {
        let mut config = EndpointConfig::default();
        config.addresses = vec![PLACE.ip()];
        config.max_super_packet = 0;
        let registry = Registry::default();
        let scheduler = registry.sched("fifo").expect("there is one")();
        let mut endpoint = Endpoint::new(config, scheduler, [7; 32]);
        let now = Instant::from_secs(1);
        let accept = AcceptConfig::new(Arc::new(registry.conn_config()));
        endpoint.listen(now, ListenOn::Port(PLACE.port()), accept).expect("a free port");
        Self { endpoint, now, accepted: VecDeque::new(), conn: None, sent: VecDeque::new() }
    }

    /// Lets it send, and takes note of connections.
    fn drain(&mut self) {
        let Self { endpoint, now, accepted, sent, .. } = self;
        let mut emit = |packet: ackline_tcp_core::packet::TxPacket<'_>| {
            sent.push_back([packet.header, packet.payload[0], packet.payload[1]].concat());
            Ok::<_, Infallible>(())
        };
        while endpoint.transmit(*now, TxBudget::packets(64), &mut emit).is_ok_and(|report| report.more) {}
        while let Some(event) = endpoint.poll_event() {
            if let Event::Accepted { conn, .. } = event {
                accepted.push_back(conn);
            }
        }
    }

    fn act(&mut self, act: impl FnOnce(&mut ackline_tcp_core::endpoint::Conn<'_>, Instant)) {
        let conn = self.conn.expect("it was accepted");
        act(&mut self.endpoint.conn(conn).expect("it is there"), self.now);
        self.drain();
    }
}

impl Subject for Virtual {
    fn take(&mut self, packet: &[u8]) {
        self.now += Duration::from_micros(10);
        self.endpoint.ingest(self.now, RxPacket::new(packet));
        self.drain();
    }

    fn give(&mut self) -> Vec<u8> {
        loop {
            if let Some(packet) = self.sent.pop_front() {
                return packet;
            }
            self.now = self.endpoint.poll_timeout().expect("it waits for something").at;
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
    }

    fn accept(&mut self) {
        self.conn = self.accepted.pop_front();
    }

    fn write(&mut self, len: usize) {
        self.act(|conn, now| assert_eq!(conn.write(now, &vec![1; len]), Ok(len)));
    }

    fn shut(&mut self) {
        self.act(|conn, now| conn.shutdown(now));
    }

    fn release(&mut self) {
        self.endpoint.release(self.now, self.conn.take().expect("it was accepted"));
        self.drain();
    }

    fn counted(&mut self) -> Counted {
        self.endpoint.counters().iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
