//! Behind the path: TCP connections and UDP flows of the program end in a stack here, and sockets
//! of the kernel carry them on.

use crate::failure::Failure;
use crate::network::program::Addresses;
use crate::network::tunnel::descriptor_limit;
use ackline::runtime::device::channel::{Channel, ChannelConfig};
use ackline::{Registry, Stack};
use ackline_emulate::Offload;
use ackline_proxy::{Config, Limits, NameUse, Proxy, Resolvers};
use std::io;

/// A proxy behind which this machine's network is.
pub(super) struct Outside(Proxy);

impl Outside {
    /// The proxy, and the device at which the path ends, with offload if super-packets pass whole.
    /// Names are resolved by `resolvers`.
    pub(super) fn start(
        addresses: Addresses,
        resolvers: Resolvers,
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
            .configure(|host| host.max_udp_flows = host.max_udp_flows.min(descriptor_limit() / 2))
            .spawn();
        let stack = stack.map_err(|error| Failure::system("start a stack", &io::Error::other(error)))?;
        let config = Config {
            own: vec![addresses.base.into()],
            resolvers,
            names: NameUse::Off,
            resolver_is_near: true,
            loopback: true,
            // There is one client.
            limits: Limits { client_connections: u32::MAX, client_flows: u32::MAX, ..Limits::default() },
            mtu,
            ..Config::default()
        };
        let proxy = Proxy::new(&stack, config);
        let proxy = proxy.map_err(|error| Failure::system("accept connections", &error))?;
        Ok((Self(proxy), end))
    }

    /// Carries connections and flows on, until the stack fails.
    pub(super) async fn run(mut self) -> io::Error {
        self.0.run().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline::core::wire::checksum::checksum;
    use ackline::runtime::device::{Device as _, OutgoingPacket};
    use ackline::runtime::{Pacing, timer};
    use ackline_emulate::{Emulator, LinkSpec, Path};
    use ackline_proxy::{Protocol, Resolver};
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use tokio::net;

    /// The port of DNS.
    const DNS: u16 = 53;

    /// The program's side as a stack; what the kernel's sockets see of it.
    #[tokio::test]
    async fn questions_that_come_together_are_all_answered_and_a_flow_has_one_socket() {
        let addresses =
            Addresses { program: Ipv4Addr::new(100, 64, 0, 2), base: Ipv4Addr::new(100, 64, 0, 1) };
        let server = net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a socket");
        let at = server.local_addr().expect("bound");
        let resolver = Resolver { address: at, protocol: Protocol::Udp };
        let (outside, end) =
            Outside::start(addresses, resolver.into(), Offload::Off, 1_500, &Registry::default())
                .expect("a stack");
        tokio::spawn(outside.run());
        let program = Stack::builder(end).address(addresses.program).spawn().expect("a stack");
        for port in [DNS, at.port()] {
            let socket = program.bind_udp((addresses.program, 0).into()).expect("free");
            socket.connect((addresses.base, port)).await.expect("an address");
            let mut peers = vec![];
            let mut buf = [0; 100];
            for round in 0..100_u8 {
                for kind in [1, 28] {
                    socket.send(&question(round, kind)).await.expect("sent");
                }
                for _ in [1, 28] {
                    let (len, peer) = server.recv_from(&mut buf).await.expect("a question");
                    // An answer.
                    buf[2] |= 0x80;
                    server.send_to(&buf[..len], peer).await.expect("sent");
                    peers.push(peer);
                }
                let mut answers = vec![];
                for _ in [1, 28] {
                    let len = socket.recv(&mut buf).await.expect("an answer");
                    answers.push((buf[1], buf[len - 3]));
                }
                answers.sort_unstable();
                assert_eq!(answers, [(round, 1), (round, 28)]);
            }
            peers.dedup();
            // One to a resolver ends if the machine stands still for a second.
            assert!(peers.len() == 1 || port == DNS, "{peers:?}");
        }
    }

    /// A question for the name `a`, of this number and type (RFC 1035, section 4.1).
    fn question(number: u8, kind: u8) -> Vec<u8> {
        vec![0, number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, kind, 0, 1]
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
        let resolver = "127.0.0.1:53".parse::<Resolver>().expect("right").into();
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
            program.try_send(&OutgoingPacket::whole(&request)).expect("room");
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
