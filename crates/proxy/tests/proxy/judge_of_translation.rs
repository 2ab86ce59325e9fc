//! A judge of the address translation that UDP clients see: RFC 4787, over the kernel's sockets,
//! SOCKS5 and a second stack.
//!
//! What is outside is played by the test, which sees the client's port there and may send from any
//! port and host.

use crate::servers::{reply, request};
use crate::world::*;
use ackline_proxy::{Config, Exit, Filtering};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Stack, UdpSocket};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::net;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

/// Hosts outside, and the stack by which datagrams leave.
const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const EXIT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Ports of theirs.
const ONE: u16 = 1;
const TWO: u16 = 2;
const THREE: u16 = 3;
/// Nobody serves it.
const CLOSED: u16 = 9;
/// The first port of the next world: below those that the kernel picks.
static NEXT: AtomicU16 = AtomicU16::new(17_000);

/// By what datagrams leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Kernel,
    Socks,
    Stack,
}

const WAYS: [Way; 3] = [Way::Kernel, Way::Socks, Way::Stack];

/// A datagram as it is seen outside: from the client's port there, to a host and port.
#[derive(Debug)]
struct Seen {
    from: SocketAddr,
    to: SocketAddr,
    data: Vec<u8>,
}

/// What is outside.
struct Outside {
    seen: UnboundedReceiver<Seen>,
    sockets: HashMap<SocketAddr, Socket>,
    /// Of the SOCKS server, which may send from anybody.
    relay: Option<Arc<net::UdpSocket>>,
    way: Way,
    base: u16,
}

enum Socket {
    Kernel(Arc<net::UdpSocket>),
    Stack(Arc<UdpSocket>),
}

impl Outside {
    /// The next datagram that comes out.
    async fn next(&mut self) -> Seen {
        timeout(PATIENCE, self.seen.recv()).await.expect("in time").expect("a datagram")
    }

    /// Sends to the client's port.
    async fn send(&self, from: SocketAddr, to: SocketAddr, data: &[u8]) {
        if let Some(relay) = &self.relay {
            let IpAddr::V4(ip) = from.ip() else { panic!("{from}") };
            let header = [&[0, 0, 0, 1][..], &ip.octets(), &from.port().to_be_bytes()].concat();
            relay.send_to(&[&header[..], data].concat(), to).await.expect("sent");
            return;
        }
        match &self.sockets[&from] {
            Socket::Kernel(socket) => drop(socket.send_to(data, to).await.expect("sent")),
            Socket::Stack(socket) => drop(socket.send_to(data, to).await.expect("sent")),
        }
    }

    /// The address of a host as clients have it: behind the proxy's own is the kernel's loopback,
    /// which has one host.
    fn inside(&self, host: Ipv4Addr) -> Ipv4Addr {
        if self.way == Way::Kernel && host == A { OWN } else { host }
    }

    fn port(&self, number: u16) -> u16 {
        self.base + number
    }

    fn outside(&self, host: Ipv4Addr) -> Ipv4Addr {
        match (self.way, host) {
            (Way::Kernel, A) => Ipv4Addr::LOCALHOST,
            (Way::Kernel, _) => Ipv4Addr::new(127, 0, 0, 2),
            _ => host,
        }
    }
}

async fn outside(way: Way, filtering: Filtering) -> (Config, Outside) {
    let (tell, seen) = unbounded_channel();
    let base = NEXT.fetch_add(10, Ordering::Relaxed);
    let mut outside = Outside { seen, sockets: HashMap::new(), relay: None, way, base };
    let places: Vec<SocketAddr> = [(A, ONE), (A, TWO), (A, THREE), (B, ONE)]
        .map(|(host, port)| address(outside.outside(host), outside.port(port)))
        .into();
    let config = Config { filtering, ..Config::default() };
    match way {
        Way::Kernel => {
            for place in places {
                let socket = Arc::new(net::UdpSocket::bind(place).await.expect("free"));
                outside.sockets.insert(place, Socket::Kernel(socket.clone()));
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut buf = [0; 100];
                    while let Ok((length, from)) = socket.recv_from(&mut buf).await {
                        let _ = tell.send(Seen { from, to: place, data: buf[..length].to_vec() });
                    }
                });
            }
            (config, outside)
        }
        Way::Stack => {
            let (near, far) = Channel::pair(ChannelConfig::default());
            let exit = Stack::builder(near).address(EXIT).spawn().expect("a stack");
            let far = Stack::builder(far).address(A).address(B).spawn().expect("a stack");
            for place in places {
                let socket = Arc::new(far.bind_udp(place).expect("free"));
                outside.sockets.insert(place, Socket::Stack(socket.clone()));
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut buf = [0; 100];
                    while let Ok((length, from)) = socket.recv_from(&mut buf).await {
                        let _ = tell.send(Seen { from, to: place, data: buf[..length].to_vec() });
                    }
                });
            }
            (Config { exit: Exit::Stack(exit), ..config }, outside)
        }
        Way::Socks => {
            let (listener, port) = listener().await;
            let relay = net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
            let relay = Arc::new(relay);
            outside.relay = Some(relay.clone());
            let at = relay.local_addr().expect("bound");
            tokio::spawn(async move {
                let mut kept = vec![];
                loop {
                    let (mut stream, request) = request(&listener, false).await;
                    assert_eq!(request.command, 3);
                    reply(&mut stream, 0, at).await;
                    kept.push(stream);
                }
            });
            tokio::spawn(async move {
                let mut buf = [0; 100];
                while let Ok((length, from)) = relay.recv_from(&mut buf).await {
                    let [0, 0, 0, 1, a, b, c, d, high, low, data @ ..] = &buf[..length] else {
                        panic!("{:?}", &buf[..length])
                    };
                    let to = address([*a, *b, *c, *d], u16::from_be_bytes([*high, *low]));
                    let _ = tell.send(Seen { from, to, data: data.to_vec() });
                }
            });
            let rules = through(&format!("socks5://127.0.0.1:{port}")).rules;
            (Config { rules, ..config }, outside)
        }
    }
}

fn client(world: &World, own: Ipv4Addr) -> UdpSocket {
    world.client.bind_udp((own, 0).into()).expect("free")
}

async fn received(client: &UdpSocket) -> (SocketAddr, Vec<u8>) {
    let mut buf = [0; 100];
    let taken = timeout(PATIENCE, client.recv_from(&mut buf)).await.expect("in time");
    let (length, from) = taken.expect("a datagram");
    (from, buf[..length].to_vec())
}

/// REQ-1: the port outside does not depend on whom the client's socket sends to, and is nobody
/// else's.
#[tokio::test]
async fn a_clients_socket_has_one_port_outside_for_all_destinations() {
    for way in WAYS {
        let (config, mut outside) = outside(way, Filtering::default()).await;
        let world = world(config);
        let (one, two) = (client(&world, CLIENT), client(&world, CLIENT));
        let mut ports = HashMap::new();
        for (number, client) in [&one, &two, &one].into_iter().enumerate() {
            // Behind the proxy's own address is one host.
            let hosts = if way == Way::Kernel { vec![A] } else { vec![A, B] };
            for (host, port) in hosts.iter().flat_map(|host| [(*host, ONE), (*host, ONE)]).chain([(A, TWO)]) {
                client.send_to(b"x", address(outside.inside(host), outside.port(port))).await.expect("sent");
                let seen = outside.next().await;
                assert_eq!(seen.to, address(outside.outside(host), outside.port(port)), "{way:?}");
                assert_eq!(seen.data, b"x");
                assert_eq!(*ports.entry(number % 2).or_insert(seen.from), seen.from, "{way:?}");
            }
        }
        assert_ne!(ports[&0], ports[&1], "{way:?}");
        let stats = world.meter.read();
        assert_eq!((stats.mappings, stats.open_mappings), (2, 2), "{way:?}");
    }
}

/// Section 5: whose datagrams pass is the user's choice, and they come from whom they are from
/// (REQ-8).
#[tokio::test]
async fn a_filter_lets_pass_what_it_says_and_shows_who_it_is_from() {
    for way in WAYS {
        for (filtering, passes) in [
            (Filtering::EndpointIndependent, [true, true, true]),
            (Filtering::AddressDependent, [true, true, false]),
            (Filtering::AddressAndPortDependent, [true, false, false]),
        ] {
            let (config, mut outside) = outside(way, filtering).await;
            let world = world(config);
            let client = client(&world, CLIENT);
            client.send_to(b"x", address(outside.inside(A), outside.port(ONE))).await.expect("sent");
            let port = outside.next().await.from;
            let hosts = [(A, ONE, passes[0]), (A, THREE, passes[1]), (B, ONE, passes[2])];
            let mut filtered = 0;
            for (host, from, passes) in hosts {
                // No client can see another host of the loopback.
                let passes = passes && (way != Way::Kernel || host == A);
                outside.send(address(outside.outside(host), outside.port(from)), port, b"y").await;
                if passes {
                    let (seen, data) = received(&client).await;
                    assert_eq!(
                        (seen, &*data),
                        (address(outside.inside(host), outside.port(from)), &b"y"[..]),
                        "{way:?}"
                    );
                } else {
                    filtered += 1;
                    world.until(|stats| stats.datagrams_filtered == filtered).await;
                }
            }
            assert_eq!(client.try_recv(&mut [0; 9]).expect_err("nothing").kind(), ErrorKind::WouldBlock);
            // What the client answers leaves from the same port.
            client.send_to(b"z", address(outside.inside(A), outside.port(THREE))).await.expect("sent");
            assert_eq!(outside.next().await.from, port, "{way:?} {filtering:?}");
        }
    }
}

/// REQ-5: two minutes at least, five by default; REQ-6: as long as the client sends. Then nothing
/// is left.
#[tokio::test]
async fn a_mapping_lives_as_long_as_a_flow_of_it_and_leaves_nothing() {
    let usual = ackline_tcp_core::EndpointConfig::default().udp_flow_timeout;
    assert_eq!(usual, ackline_tcp_core::Duration::from_secs(300));
    for way in WAYS {
        let (device, end) = Channel::pair(ChannelConfig::default());
        let stack = Stack::builder(device)
            .any_address()
            .configure(|host| host.udp_flow_timeout = ackline_tcp_core::Duration::from_millis(1_000))
            .spawn()
            .expect("a stack");
        let (config, mut outside) = outside(way, Filtering::default()).await;
        let near = Stack::builder(end).address(CLIENT).spawn().expect("a stack");
        let world = between(near, &stack, config);
        let client = client(&world, CLIENT);
        let mut ports = vec![];
        client.send_to(b"x", address(outside.inside(A), outside.port(TWO))).await.expect("sent");
        ports.push(outside.next().await.from);
        for _ in 0..15 {
            client.send_to(b"x", address(outside.inside(A), outside.port(ONE))).await.expect("sent");
            ports.push(outside.next().await.from);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        ports.dedup();
        assert_eq!(ports.len(), 1, "{way:?}: {ports:?}");
        world.until(|stats| stats.open_flows == 0 && stats.open_mappings == 0).await;
    }
}

/// REQ-12: an ICMP error passes, and ends no mapping.
#[tokio::test]
async fn a_closed_port_is_told_and_the_mapping_stays() {
    for way in [Way::Kernel, Way::Stack] {
        let (config, mut outside) = outside(way, Filtering::default()).await;
        let world = world(config);
        let local = address(CLIENT, 40_001);
        let client = world.client.bind_udp(local).expect("free");
        client.send_to(b"x", address(outside.inside(A), outside.port(ONE))).await.expect("sent");
        let port = outside.next().await.from;
        client.connect(address(outside.inside(A), outside.port(CLOSED))).await.expect("an address");
        for _ in 0..2 {
            client.send(b"x").await.expect("sent");
            let refused = timeout(PATIENCE, client.recv(&mut [0; 9])).await.expect("in time");
            assert_eq!(refused.expect_err("refused").kind(), ErrorKind::ConnectionRefused, "{way:?}");
        }
        assert_eq!(world.meter.read().upstream_refused, 2);
        client.connect(address(outside.inside(A), outside.port(TWO))).await.expect("an address");
        client.send(b"y").await.expect("sent");
        assert_eq!(outside.next().await.from, port, "{way:?}");
    }
}

/// REQ-9: two clients reach each other by their ports outside. A SOCKS server does that itself, or
/// not.
#[tokio::test]
async fn clients_reach_each_other_by_their_ports_outside() {
    for way in [Way::Kernel, Way::Stack] {
        let (config, mut outside) = outside(way, Filtering::default()).await;
        let world = world(config);
        let (one, two) = (client(&world, CLIENT), client(&world, OTHER));
        let mut ports = vec![];
        for client in [&one, &two] {
            client.send_to(b"x", address(outside.inside(A), outside.port(ONE))).await.expect("sent");
            ports.push(outside.next().await.from);
        }
        let seen_at = |port: SocketAddr| match way {
            Way::Kernel => address(OWN, port.port()),
            _ => address(EXIT, port.port()),
        };
        let (first, second) = (seen_at(ports[0]), seen_at(ports[1]));
        // Each has sent to the other one's host before.
        one.send_to(b"to two", second).await.expect("sent");
        if way == Way::Stack {
            world.until(|stats| stats.datagrams_filtered == 1).await;
            two.send_to(b"to one", first).await.expect("sent");
            assert_eq!(received(&one).await, (second, b"to one".to_vec()));
            one.send_to(b"to two", second).await.expect("sent");
        }
        assert_eq!(received(&two).await, (first, b"to two".to_vec()), "{way:?}");
        two.send_to(b"to one", first).await.expect("sent");
        assert_eq!(received(&one).await, (second, b"to one".to_vec()), "{way:?}");
    }
}

/// The same through SOCKS5, where the server takes back what is for a port of its own: the proxy
/// lets it pass, with the port outside as its sender.
#[tokio::test]
async fn what_a_socks_server_takes_back_reaches_the_other_client() {
    let (config, mut outside) = outside(Way::Socks, Filtering::default()).await;
    let world = world(config);
    let (one, two) = (client(&world, CLIENT), client(&world, OTHER));
    // Their ports as the server has them outside: on its host B.
    let (first, second) = (address(B, 40_001), address(B, 40_002));
    let mut associations = vec![];
    for (client, to) in [(&one, second), (&two, first)] {
        client.send_to(b"hello", to).await.expect("sent");
        let seen = outside.next().await;
        assert_eq!((seen.to, &*seen.data), (to, &b"hello"[..]));
        associations.push(seen.from);
    }
    for (sender, to, from, taker, association) in
        [(&one, second, first, &two, associations[1]), (&two, first, second, &one, associations[0])]
    {
        sender.send_to(b"across", to).await.expect("sent");
        let seen = outside.next().await;
        assert_eq!(seen.to, to);
        outside.send(from, association, &seen.data).await;
        assert_eq!(received(taker).await, (from, b"across".to_vec()));
    }
}

/// REQ-12 through SOCKS5, which has no word for an ICMP error of the destination (RFC 1928, section
/// 7). One of the relay itself, which stands still for a moment, ends no association.
#[tokio::test]
async fn a_relay_that_is_gone_for_a_moment_ends_no_association() {
    let (listener, port) = listener().await;
    let world = world(through(&format!("socks5://127.0.0.1:{port}")));
    let client = client(&world, CLIENT);
    let relay = net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
    let at = relay.local_addr().expect("bound");
    client.send_to(b"one", address(A, ONE)).await.expect("sent");
    let (mut stream, _) = timeout(PATIENCE, request(&listener, false)).await.expect("in time");
    reply(&mut stream, 0, at).await;
    let mut buf = [0; 100];
    let next = async |relay: &net::UdpSocket, buf: &mut [u8]| {
        timeout(PATIENCE, relay.recv_from(buf)).await.expect("in time").expect("a datagram")
    };
    let (_, from) = next(&relay, &mut buf).await;
    drop(relay);
    for sent in 2..4 {
        client.send_to(b"two", address(A, ONE)).await.expect("sent");
        world.until(|stats| stats.datagrams_up == sent).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let relay = net::UdpSocket::bind(at).await.expect("free");
    client.send_to(b"six", address(A, TWO)).await.expect("sent");
    let (length, again) = next(&relay, &mut buf).await;
    assert_eq!((&buf[length - 3..length], again), (&b"six"[..], from), "the same association");
    let stats = world.meter.read();
    assert_eq!((stats.mappings, stats.open_mappings), (1, 1));
}
