//! Behind the path: TCP connections and UDP flows of the program end in a stack here, and sockets of the kernel carry them on.

use crate::failure::Failure;
use crate::program::Addresses;
use ackline::core::ListenOn;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::runtime::{IncomingUdp, UdpFlow};
use ackline::{Registry, Stack, TcpListener, TcpStream};
use ackline_emulate::Offload;
use rustix::process::{Resource, getrlimit};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net;

/// The port of DNS.
const DNS: u16 = 53;

/// How long a flow to a resolver stays when each question has its answer.
const SETTLED: Duration = Duration::from_secs(1);

/// A stack that accepts what comes for any address.
pub(super) struct Outside {
    listener: TcpListener,
    flows: IncomingUdp,
    ways: Ways,
    mtu: u32,
}

impl Outside {
    /// The stack, and the device at which the path ends, with offload if super-packets pass whole. Names are resolved by `resolver`.
    pub(super) fn start(
        addresses: Addresses,
        resolver: SocketAddr,
        offload: Offload,
        mtu: u32,
        registry: &Registry,
    ) -> Result<(Self, Channel), Failure> {
        let config = ChannelConfig::default().mtu(mtu);
        let config = if offload == Offload::Whole { config } else { config.plain() };
        let (device, end) = Channel::pair(config);
        let stack = Stack::builder(device)
            .registry(registry.clone())
            .any_address()
            .configure(|host| host.max_udp_flows = host.max_udp_flows.min(descriptors() / 2))
            .spawn();
        let stack = stack.map_err(|error| Failure::system("start a stack", &io::Error::other(error)))?;
        let refused = |error: io::Error| Failure::system("accept connections", &error);
        let listener = stack.listen(ListenOn::Any).map_err(refused)?;
        let flows = stack.incoming_udp().map_err(refused)?;
        let ways = Ways { base: addresses.base, resolver };
        Ok((Self { listener, flows, ways, mtu }, end))
    }

    /// Carries connections and flows on, until the stack fails.
    pub(super) async fn run(self) -> io::Error {
        let Self { listener, flows, ways, mtu } = self;
        loop {
            // What goes wrong with one connection or flow its two ends are told.
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((inside, _)) => drop(tokio::spawn(async move { carry(inside, ways).await })),
                    Err(error) => return error,
                },
                accepted = flows.accept() => match accepted {
                    Ok(flow) => drop(tokio::spawn(carry_datagrams(flow, ways, mtu))),
                    Err(error) => return error,
                },
            }
        }
    }
}

/// Descriptors that this process may have: each flow takes one, and so does each connection.
fn descriptors() -> u32 {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Where what the program sends really goes.
#[derive(Clone, Copy, Debug)]
struct Ways {
    /// Stands for this machine.
    base: Ipv4Addr,
    /// Stands behind port 53 of it.
    resolver: SocketAddr,
}

impl Ways {
    fn of(&self, wanted: SocketAddr) -> SocketAddr {
        match wanted.ip() {
            IpAddr::V4(address) if address == self.base && wanted.port() == DNS => self.resolver,
            IpAddr::V4(address) if address == self.base => {
                SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.port()))
            }
            _ => wanted,
        }
    }
}

/// Both directions of a connection, each to its own end. A failure on one side resets the other.
async fn carry(mut inside: TcpStream, ways: Ways) -> io::Result<()> {
    let to = ways.of(inside.local_addr()?);
    let mut outside = match net::TcpStream::connect(to).await {
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

/// Both directions of a flow, until it has been idle for too long: one to a resolver for [`SETTLED`] if each question has its answer. A
/// port that nobody serves refuses the program.
async fn carry_datagrams(inside: UdpFlow, ways: Ways, mtu: u32) {
    let outside = async {
        let to = ways.of(inside.local_addr()?);
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let outside = net::UdpSocket::bind((any, 0)).await?;
        outside.connect(to).await?;
        io::Result::Ok(outside)
    };
    let Ok(outside) = outside.await else { return inside.refuse() };
    // A longer datagram would not pass the path, and is lost. One byte more tells which those are.
    let mut there = vec![0; mtu as usize];
    let mut back = vec![0; mtu as usize + 1];
    let resolves = inside.local_addr().is_ok_and(|address| address.port() == DNS);
    let (mut questions, mut answers) = (0_u64, 0_u64);
    loop {
        // Another question may be on its way, and would be lost if it came to a flow that ends just then.
        let settled = resolves && questions > 0 && answers >= questions;
        let failed = tokio::select! {
            taken = inside.recv(&mut there) => match taken {
                Ok(len) => {
                    questions += 1;
                    outside.send(&there[..len]).await.err()
                }
                // It has ended, or the program has closed its socket.
                Err(_) => return,
            },
            taken = outside.recv(&mut back) => match taken {
                Ok(len) => {
                    answers += 1;
                    match inside.send(&back[..len]).await {
                        // It is longer than the path carries.
                        Err(error) if error.kind() != ErrorKind::InvalidInput => return,
                        _ => None,
                    }
                }
                Err(error) => Some(error),
            },
            () = tokio::time::sleep(SETTLED), if settled => return,
        };
        if failed.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            return inside.refuse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline::core::wire::checksum::checksum;
    use ackline::runtime::device::{Device as _, TxChecksum};
    use ackline::runtime::{Pacing, timer};
    use ackline_emulate::{Emulator, LinkSpec, Path};
    use std::future::poll_fn;

    #[test]
    fn the_machine_and_its_resolver_stand_behind_one_address() {
        let ways =
            Ways { base: Ipv4Addr::new(100, 64, 0, 1), resolver: "127.0.0.53:5353".parse().expect("right") };
        for (wanted, to) in [
            ("100.64.0.1:80", "127.0.0.1:80"),
            ("100.64.0.1:53", "127.0.0.53:5353"),
            ("192.0.2.7:53", "192.0.2.7:53"),
            ("[2001:db8::1]:53", "[2001:db8::1]:53"),
        ] {
            let at = |text: &str| text.parse().expect("right");
            assert_eq!(ways.of(at(wanted)), at(to));
        }
    }

    /// The program's side as a stack; what the kernel's sockets see of it.
    #[tokio::test]
    async fn questions_that_come_together_are_all_answered_and_a_flow_has_one_socket() {
        let addresses =
            Addresses { program: Ipv4Addr::new(100, 64, 0, 2), base: Ipv4Addr::new(100, 64, 0, 1) };
        let server = net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        let at = server.local_addr().expect("bound");
        let (outside, end) =
            Outside::start(addresses, at, Offload::Off, 1_500, &Registry::default()).expect("a stack");
        tokio::spawn(outside.run());
        let program = Stack::builder(end).address(addresses.program).spawn().expect("a stack");
        for port in [DNS, at.port()] {
            let socket = program.bind_udp((addresses.program, 0).into()).expect("free");
            socket.connect((addresses.base, port)).await.expect("an address");
            let mut peers = vec![];
            let mut buf = [0; 100];
            for round in 0..100_u8 {
                for question in [1, 2] {
                    socket.send(&[round, question]).await.expect("sent");
                }
                for _ in [1, 2] {
                    let (len, peer) = server.recv_from(&mut buf).await.expect("a question");
                    server.send_to(&buf[..len], peer).await.expect("sent");
                    peers.push(peer);
                }
                let mut answers = vec![];
                for _ in [1, 2] {
                    let len = socket.recv(&mut buf).await.expect("an answer");
                    answers.push(buf[..len].to_vec());
                }
                assert_eq!(answers, [[round, 1], [round, 2]]);
            }
            peers.dedup();
            // One to a resolver ends if the machine stands still for a second.
            assert!(peers.len() == 1 || port == DNS, "{peers:?}");
        }
    }

    /// An echo request of IPv4 from one address to another.
    fn echo_request(from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let mut packet = vec![0; 36];
        (packet[0], packet[3], packet[8], packet[9]) = (0x45, 36, 64, 1);
        packet[12..16].copy_from_slice(&from.octets());
        packet[16..20].copy_from_slice(&to.octets());
        // An echo request with an identifier.
        (packet[20], packet[25]) = (8, 7);
        for range in [0..20, 20..36] {
            let sum = checksum(&packet[range.clone()]).to_be_bytes();
            let at = range.start + if range.start == 0 { 10 } else { 2 };
            packet[at..at + 2].copy_from_slice(&sum);
        }
        packet
    }

    #[tokio::test]
    async fn pings_of_any_address_pass_both_ways_and_are_answered_for_it() {
        const DELAY: ackline::core::Duration = ackline::core::Duration::from_millis(10);
        let addresses =
            Addresses { program: Ipv4Addr::new(100, 64, 0, 2), base: Ipv4Addr::new(100, 64, 0, 1) };
        let resolver = "127.0.0.1:53".parse().expect("right");
        let (outside, end) =
            Outside::start(addresses, resolver, Offload::Off, 1_500, &Registry::default()).expect("a stack");
        tokio::spawn(outside.run());
        let (mut program, near) = Channel::pair(ChannelConfig::default().plain());
        let link = || LinkSpec::new(1_000_000_000, DELAY);
        let mut path = Path::new([addresses.program.into()], link(), link(), 1);
        let mut emulator = Emulator::new(Pacing::Timer).expect("descriptors are left");
        emulator.attach(&path.sim, path.inside, Box::new(near)).expect("a port");
        emulator.attach(&path.sim, path.outside, Box::new(end)).expect("a port");
        for to in [Ipv4Addr::new(192, 0, 2, 7), addresses.base] {
            let sent = timer::now();
            let request = echo_request(addresses.program, to);
            program.try_send(&request, [&[], &[]], None, TxChecksum::Complete).expect("room");
            let answer = async {
                poll_fn(|cx| program.poll_readable(cx)).await.expect("the other end is there");
                program.try_recv().expect("a packet").head.to_vec()
            };
            let answer = tokio::select! {
                ended = emulator.run(&mut path.sim) => panic!("{ended:?}"),
                answer = answer => answer,
            };
            assert!(timer::now().since(sent) >= DELAY.saturating_mul(2), "both directions");
            assert_eq!(answer[12..20], [to.octets(), addresses.program.octets()].concat());
            assert_eq!((answer[20], &answer[24..]), (0, &request[24..]), "an echo reply");
        }
        let view = path.sim.view();
        assert_eq!([path.up, path.down].map(|link| view.stats(link).delivered), [2, 2]);
    }
}
