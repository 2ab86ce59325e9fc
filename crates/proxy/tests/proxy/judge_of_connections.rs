//! A judge of the address translation that TCP clients see: RFC 5382, over the kernel's sockets,
//! SOCKS5 and a second stack.
//!
//! A proxy ends connections and begins others, so some requirements hold by themselves and some
//! cannot: docs/proxy.md has the table. The test plays what is outside; what no socket does it
//! writes to the wire of the second stack.

use crate::servers::socks;
use crate::world::*;
use ackline_proxy::{Config, Exit, Publish};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::device::{Device as _, OutgoingPacket};
use ackline_runtime::{Stack, TcpListener, TcpSocket};
use ackline_tcp_core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, TcpFlags, TcpHeader, Transport, TxChecksumMode,
    Unreachable, emit_icmp, emit_tcp, parse,
};
use ackline_tcp_core::{ListenOn, RxPacket, SeqNum};
use std::collections::HashSet;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net;
use tokio::time::{sleep, timeout};

/// Hosts outside, and the stack by which connections leave.
const A: Ipv4Addr = FAR;
const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const EXIT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PORT: u16 = 443;

/// By what connections leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Kernel,
    Socks,
    Stack,
}

const WAYS: [Way; 3] = [Way::Kernel, Way::Socks, Way::Stack];

trait Both: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Both for T {}

/// A server outside.
enum Server {
    Kernel(net::TcpListener),
    /// With its stack, which has the hosts A and B.
    Stack(TcpListener, Stack),
}

impl Server {
    /// The next connection, and where it comes from.
    async fn accept(&self) -> (Box<dyn Both>, SocketAddr) {
        let accepting = async {
            match self {
                Self::Kernel(listener) => {
                    let (stream, from) = listener.accept().await.expect("a connection");
                    (Box::new(stream) as Box<dyn Both>, from)
                }
                Self::Stack(listener, _) => {
                    let (stream, from) = listener.accept().await.expect("a connection");
                    (Box::new(stream) as Box<dyn Both>, from)
                }
            }
        };
        timeout(PATIENCE, accepting).await.expect("in time")
    }

    /// Whether a host that is no client's peer can connect there, and how not.
    async fn stranger_reaches(&self, to: SocketAddr) -> Result<(), ErrorKind> {
        let trying = async {
            match self {
                Self::Kernel(_) => net::TcpStream::connect(to).await.map(drop),
                Self::Stack(_, far) => {
                    let socket = TcpSocket::new_v4(far)?;
                    socket.bind(address(B, 0))?;
                    socket.connect(to).await.map(drop)
                }
            }
        };
        timeout(PATIENCE, trying).await.expect("an answer").map_err(|error| error.kind())
    }
}

/// A proxy, a server outside, and where clients find it.
async fn behind(way: Way, config: Config) -> (World, Server, SocketAddr) {
    if way == Way::Stack {
        let (near, far) = Channel::pair(ChannelConfig::default());
        let exit = Stack::builder(near).address(EXIT).spawn().expect("a stack");
        let far = Stack::builder(far).address(A).address(B).spawn().expect("a stack");
        let listener = TcpListener::bind(&far, (A, PORT)).await.expect("free");
        let world = world(Config { exit: Exit::Stack(exit), ..config });
        return (world, Server::Stack(listener, far), address(A, PORT));
    }
    let (listener, port) = listener().await;
    if way == Way::Kernel {
        return (world(config), Server::Kernel(listener), address(OWN, port));
    }
    let (upstream, _) = socks().await;
    let rules = through(&format!("socks5://127.0.0.1:{upstream}")).rules;
    (world(Config { rules, ..config }), Server::Kernel(listener), address(A, port))
}

/// REQ-7, and what there is of REQ-1: each connection has a port outside that no other one has,
/// whosever it is.
#[tokio::test]
async fn no_two_connections_share_a_port_outside() {
    for way in WAYS {
        let (world, server, to) = behind(way, Config::default()).await;
        let (mut ports, mut open) = (HashSet::new(), vec![]);
        for number in 0..40 {
            let socket = TcpSocket::new_v4(&world.client).expect("a socket");
            socket.bind(address(if number % 2 == 0 { CLIENT } else { OTHER }, 0)).expect("free");
            let (inside, (outside, from)) = tokio::join!(socket.connect(to), server.accept());
            assert!(ports.insert(from), "{way:?}: {from} twice");
            open.push((inside.expect("connected"), outside));
        }
        for (inside, outside) in open {
            talk(inside, outside).await;
        }
    }
}

/// REQ-5: the proxy has no limit for connections that are silent, half closed or not; and REQ-2:
/// each half ends when its side says so.
#[tokio::test]
async fn a_silent_connection_outlives_all_limits_of_time_and_so_does_half_of_one() {
    const LIMIT: Duration = Duration::from_millis(200);
    for way in WAYS {
        let config = Config { connect_timeout: LIMIT, server_timeout: LIMIT, ..Config::default() };
        let (world, server, to) = behind(way, config).await;
        let (inside, (mut outside, _)) = tokio::join!(world.connect_to(to), server.accept());
        let mut inside = inside.expect("connected");
        sleep(5 * LIMIT).await;
        talk(&mut inside, &mut outside).await;
        inside.shutdown().await.expect("closed");
        let exchange = async {
            assert_eq!(outside.read(&mut [0; 9]).await.expect("the end"), 0, "{way:?}");
            sleep(5 * LIMIT).await;
            outside.write_all(b"late").await.expect("sent");
            outside.shutdown().await.expect("closed");
            let mut rest = vec![];
            inside.read_to_end(&mut rest).await.expect("the end");
            assert_eq!(rest, b"late", "{way:?}");
        };
        timeout(PATIENCE, exchange).await.expect("in time");
        world.until(|stats| stats.finished == 1 && stats.open_connections == 0).await;
    }
}

/// REQ-3 and REQ-4: a SYN of somebody else for a port outside reaches no client, and disturbs
/// nobody's connection. It is answered as a closed port's is.
#[tokio::test]
async fn a_stranger_at_a_clients_port_outside_is_refused_and_disturbs_nothing() {
    for way in [Way::Kernel, Way::Stack] {
        let (world, server, to) = behind(way, Config::default()).await;
        let any = world.client.listen(ListenOn::Any).expect("a listener");
        let (inside, (outside, from)) = tokio::join!(world.connect_to(to), server.accept());
        assert_eq!(server.stranger_reaches(from).await, Err(ErrorKind::ConnectionRefused), "{way:?}");
        talk(inside.expect("connected"), outside).await;
        assert!(timeout(Duration::from_millis(50), any.accept()).await.is_err(), "{way:?}");
    }
}

/// REQ-8: two clients reach each other by addresses outside; which ports are theirs there is
/// stated.
#[tokio::test]
async fn a_client_reaches_another_one_by_its_published_port() {
    let world = world(Config::default());
    let guest = world.client.listen(ListenOn::Address((OTHER, 80).into())).expect("free");
    let publish: Publish = "127.0.0.1:0:100.64.0.3:80".parse().expect("ports");
    let at = world.publisher.add(&publish).expect("published")[0];
    let socket = TcpSocket::new_v4(&world.client).expect("a socket");
    socket.bind(address(CLIENT, 0)).expect("free");
    let accepting = async { timeout(PATIENCE, guest.accept()).await.expect("in time") };
    let (there, accepted) = tokio::join!(socket.connect(address(OWN, at.port())), accepting);
    let (back, from) = accepted.expect("a connection");
    assert_eq!(from.ip(), OWN, "as from outside, not as from the neighbour (REQ-8a)");
    talk(there.expect("connected"), back).await;
}

/// What is at the other end of the exit's device: the test.
struct Wire(Channel);

/// A segment from the exit.
struct Came {
    from: SocketAddr,
    seq: SeqNum,
    flags: TcpFlags,
    data: usize,
    bytes: Vec<u8>,
}

impl Wire {
    /// The next segment that satisfies `is_it`.
    async fn next(&mut self, is_it: impl Fn(&Came) -> bool) -> Came {
        let taking = poll_fn(|cx| {
            loop {
                let came = match self.0.try_recv() {
                    Ok(packet) => read(&packet),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                    Err(error) => panic!("{error}"),
                };
                match came {
                    Some(came) if is_it(&came) => return Poll::Ready(came),
                    Some(_) => {}
                    None => match self.0.poll_readable(cx) {
                        Poll::Ready(ready) => ready.expect("a device"),
                        Poll::Pending => return Poll::Pending,
                    },
                }
            }
        });
        timeout(PATIENCE, taking).await.expect("in time")
    }

    /// Sends a segment of the server to `to`, with this number and ACK.
    fn send(&mut self, to: SocketAddr, flags: TcpFlags, seq: u32, ack: SeqNum, data: &[u8]) {
        let mut header = TcpHeader::new(address(A, PORT), to);
        (header.seq, header.ack, header.flags, header.window) = (SeqNum(seq), ack, flags, 65_535);
        let mut buf = HeaderBuf::new();
        emit_tcp(&header, [data, &[]], TxChecksumMode::Complete, &mut buf).expect("a segment");
        self.0.try_send(&OutgoingPacket::new(buf.as_slice(), [data, &[]])).expect("room");
    }

    /// Sends an ICMP error about what came.
    fn unreachable(&mut self, about: &Came, reason: Unreachable, code: u8) {
        let message = IcmpEmit::Error(IcmpErrorKind::DestinationUnreachable { reason, code });
        let header = IcmpHeader { src: A.into(), dst: about.from.ip(), ttl: 64, message };
        let quoted = &about.bytes[..28];
        let mut buf = HeaderBuf::new();
        emit_icmp(&header, [quoted, &[]], &mut buf).expect("a message");
        self.0.try_send(&OutgoingPacket::new(buf.as_slice(), [quoted, &[]])).expect("room");
    }
}

fn read(packet: &RxPacket<'_>) -> Option<Came> {
    let datagram = parse(packet).ok()?;
    let Transport::Tcp(segment) = datagram.transport else { return None };
    Some(Came {
        from: address(datagram.ip.src, segment.src_port),
        seq: segment.seq,
        flags: segment.flags,
        data: segment.payload.len(),
        bytes: [packet.head, packet.more[0], packet.more[1]].concat(),
    })
}

fn on_a_wire() -> (World, Wire) {
    let (near, far) = Channel::pair(ChannelConfig::default());
    let exit = Stack::builder(near).address(EXIT).spawn().expect("a stack");
    (world(Config { exit: Exit::Stack(exit), ..Config::default() }), Wire(far))
}

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;

/// REQ-2a: both sides open at once (RFC 9293, figure 8). The client's own SYN is the proxy's to
/// answer, which does it once its destination has connected.
#[tokio::test]
async fn a_simultaneous_open_outside_connects_the_client() {
    let (world, mut wire) = on_a_wire();
    let opening = async {
        let syn = wire.next(|came| came.flags.contains(SYN)).await;
        assert!(!syn.flags.contains(ACK));
        wire.send(syn.from, SYN, 500, SeqNum(0), &[]);
        let both = wire.next(|came| came.flags.contains(SYN | ACK)).await;
        assert_eq!((both.from, both.seq), (syn.from, syn.seq), "the same connection");
        wire.send(syn.from, SYN | ACK, 500, syn.seq + 1, &[]);
        syn
    };
    let (inside, syn) = tokio::join!(world.connect_to(address(A, PORT)), opening);
    let mut inside = inside.expect("connected");
    inside.write_all(b"there").await.expect("sent");
    let data = wire.next(|came| came.data > 0).await;
    assert_eq!((data.seq, data.data), (syn.seq + 1, 5));
    wire.send(syn.from, ACK, 501, syn.seq + 6, b"back!");
    let mut back = [0; 5];
    timeout(PATIENCE, inside.read_exact(&mut back)).await.expect("in time").expect("an answer");
    assert_eq!(&back, b"back!");
}

/// REQ-9: a client whose connection cannot be opened is told why. REQ-10: ICMP errors do not end
/// one that is open.
#[tokio::test]
async fn an_icmp_error_refuses_a_connection_that_is_not_open_and_ends_none_that_is() {
    let (world, mut wire) = on_a_wire();
    for (reason, code, kind) in [
        (Unreachable::Port, 3, ErrorKind::ConnectionRefused),
        (Unreachable::Host, 1, ErrorKind::HostUnreachable),
    ] {
        let refusing = async {
            let syn = wire.next(|came| came.flags.contains(SYN)).await;
            wire.unreachable(&syn, reason, code);
        };
        let (inside, ()) = tokio::join!(world.connect_to(address(A, PORT)), refusing);
        assert_eq!(inside.expect_err("refused").kind(), kind, "{reason:?}");
    }
    let opening = async {
        let syn = wire.next(|came| came.flags.contains(SYN)).await;
        wire.send(syn.from, SYN | ACK, 500, syn.seq + 1, &[]);
        syn
    };
    let (inside, syn) = tokio::join!(world.connect_to(address(A, PORT)), opening);
    let mut inside = inside.expect("connected");
    inside.write_all(b"there").await.expect("sent");
    let data = wire.next(|came| came.data > 0).await;
    for (reason, code) in [(Unreachable::Port, 3), (Unreachable::Host, 1), (Unreachable::Protocol, 2)] {
        wire.unreachable(&data, reason, code);
    }
    wire.send(syn.from, ACK, 501, data.seq + 5, b"back!");
    let mut back = [0; 5];
    timeout(PATIENCE, inside.read_exact(&mut back)).await.expect("in time").expect("an answer");
    assert_eq!(world.meter.read().open_connections, 1);
}
