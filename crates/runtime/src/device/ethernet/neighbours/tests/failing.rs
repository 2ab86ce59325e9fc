//! What a connection learns of its neighbour: a stack, its resolver, and a peer in virtual time.

use super::*;
use crate::device::OutgoingPacket;
use crate::device::ethernet::resolver::{Output, Resolver, Route};
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::events::Event as StackEvent;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{Datagram, IcmpErrorKind, IcmpMessage, Transport, parse as parse_packet};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Endpoint, EndpointConfig, ListenOn, RxPacket, State, TxBudget,
};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

const PORT: u16 = 80;

/// A stack with its resolver, and a peer that is reached without delay while it is there.
struct World {
    now: Instant,
    client: Endpoint,
    resolver: Resolver,
    peer: Endpoint,
    is_there: bool,
    ended: Option<(Instant, Option<ConnError>)>,
    /// ICMP errors that the stack was handed.
    errors: Vec<Vec<u8>>,
}

fn endpoint(addresses: [IpAddr; 2], seed: u8) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.addresses = addresses.to_vec();
    Endpoint::new(config, Box::new(Fifo::default()), [seed; 32])
}

impl World {
    fn new() -> Self {
        let mut config = NeighbourConfig::default();
        (config.claim.probes, config.claim.announcements) = (0, 0);
        let mut resolver = Resolver::new(attachment(), config, [3; 32]).expect("the addresses are good");
        resolver.claim(ms(0));
        let mut peer = endpoint([PEER, PEER_V6], 2);
        let accept = AcceptConfig::new(Arc::new(ConnConfig::default()));
        peer.listen(ms(0), ListenOn::Port(PORT), accept).expect("the port is free");
        let client = endpoint([OURS, OURS_V6], 1);
        Self { now: ms(0), client, resolver, peer, is_there: true, ended: None, errors: Vec::new() }
    }

    fn connect(&mut self, to: IpAddr, config: ConnConfig) -> ConnId {
        let target = SocketAddr::new(to, PORT).into();
        self.client.connect(self.now, target, Arc::new(config)).expect("an attempt begins")
    }

    fn write(&mut self, id: ConnId, bytes: usize) {
        let mut conn = self.client.conn(id).expect("the connection is there");
        assert_eq!(conn.write(self.now, &vec![b'x'; bytes]), Ok(bytes));
    }

    fn state(&mut self, id: ConnId) -> State {
        self.client.conn(id).expect("the connection is there").info().state
    }

    fn acknowledged(&mut self, id: ConnId) -> u64 {
        self.client.conn(id).expect("the connection is there").info().bytes_acked
    }

    /// Everything that happens up to `end`.
    fn run_until(&mut self, end: Instant) {
        loop {
            self.exchange();
            let stacks = [self.client.poll_timeout(), self.peer.poll_timeout()];
            let next = stacks
                .into_iter()
                .flatten()
                .map(|wakeup| wakeup.at)
                .chain(self.resolver.poll_timeout())
                .min();
            match next.filter(|at| *at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.resolver.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
            self.peer.handle_timeout(self.now);
        }
        self.now = end;
    }

    /// Packets go to and fro until nothing more happens at this instant.
    fn exchange(&mut self) {
        for _ in 0..1_000 {
            let mut moved = self.send_waiting();
            let mut out = Vec::new();
            let Self { client, resolver, now, .. } = self;
            let sent = client.transmit(*now, TxBudget::UNLIMITED, |packet| {
                let OutgoingPacket { header, payload, .. } = OutgoingPacket::from(&packet);
                match resolver.route(*now, &OutgoingPacket::from(&packet)) {
                    Route::Send(mac) => out.push((mac, [header, payload[0], payload[1]].concat())),
                    Route::Kept | Route::Refused(_) => {}
                }
                moved = true;
                Ok::<_, Infallible>(())
            });
            let Ok(_) = sent;
            out.into_iter().for_each(|(mac, packet)| self.deliver(mac, &packet));
            moved |= self.send_waiting();
            moved |= self.answer();
            while let Some(error) = self.resolver.next_error() {
                self.client.ingest(self.now, RxPacket::new(&error));
                self.errors.push(error.to_vec());
                moved = true;
            }
            while let Some(event) = self.client.poll_event() {
                if let StackEvent::Closed { error, .. } = event {
                    self.ended = Some((self.now, error));
                }
            }
            while self.peer.poll_event().is_some() {}
            if !moved {
                return;
            }
        }
        panic!("no end of packets at {:?}", self.now);
    }

    fn send_waiting(&mut self) -> bool {
        let mut moved = false;
        while let Some(output) = self.resolver.next_output() {
            let mut packet = None;
            let mut question = None;
            match output {
                Output::Frame(frame) => question = parse(frame).expect("a valid message"),
                Output::Packet(mac, OutgoingPacket { header, payload, .. }) => {
                    packet = Some((mac, [header, payload[0], payload[1]].concat()));
                }
            }
            self.resolver.sent();
            moved = true;
            if let Some((mac, packet)) = packet {
                self.deliver(mac, &packet);
            }
            let reply = match question {
                Some(Incoming::Arp(arp)) if IpAddr::V4(arp.target) == PEER => {
                    Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC }
                }
                Some(Incoming::Solicitation(asked)) if IpAddr::V6(asked.target) == PEER_V6 => {
                    Outgoing::Reply { own: PEER_V6, to: OURS_V6, mac: OUR_MAC }
                }
                _ => continue,
            };
            if self.is_there {
                self.resolver.ingest(self.now, &reply.frame(PEER_MAC));
            }
        }
        moved
    }

    fn deliver(&mut self, to: MacAddress, packet: &[u8]) {
        if self.is_there {
            assert_eq!(to, PEER_MAC);
            self.peer.ingest(self.now, RxPacket::new(packet));
        }
    }

    /// What the peer sends.
    fn answer(&mut self) -> bool {
        let mut answers = Vec::new();
        let Ok(_) = self.peer.transmit(self.now, TxBudget::UNLIMITED, |packet| {
            answers.push([packet.header, packet.payload[0], packet.payload[1]].concat());
            Ok::<_, Infallible>(())
        });
        for packet in answers.iter().filter(|_| self.is_there) {
            self.client.ingest(self.now, RxPacket::new(packet));
        }
        !answers.is_empty()
    }
}

#[test]
fn a_connection_waits_for_the_resolution_and_no_longer() {
    for to in [PEER, PEER_V6] {
        let mut world = World::new();
        let id = world.connect(to, ConnConfig::default());
        world.run_until(ms(0));
        assert_eq!(world.state(id), State::Established, "the SYN left as soon as the answer was there");
        assert_eq!(world.resolver.stats().waited, 1);
    }
}

/// RFC 5461, section 4: an attempt ends with the error, as Linux's does with EHOSTUNREACH.
#[test]
fn an_attempt_ends_when_the_neighbour_does_not_answer() {
    for (to, code) in [(PEER, (3, 1)), (PEER_V6, (1, 3))] {
        let mut world = World::new();
        world.is_there = false;
        let id = world.connect(to, ConnConfig::default());
        world.run_until(ms(2_999));
        assert_eq!((world.state(id), world.ended), (State::SynSent, None));
        world.run_until(ms(60_000));
        assert_eq!(world.ended, Some((ms(3_000), Some(ConnError::Unreachable))));
        // RFC 792: host unreachable. RFC 4443, section 3.1: address unreachable.
        let error = world.errors.first().expect("the stack was told");
        let at = if to.is_ipv4() { 20 } else { 40 };
        assert_eq!((error[at], error[at + 1]), code);
        let Ok(Datagram { transport: Transport::Icmp(IcmpMessage::Error(error)), .. }) =
            parse_packet(&RxPacket::new(error))
        else {
            panic!("an error of ICMP with a good checksum");
        };
        assert!(matches!(error.kind, IcmpErrorKind::DestinationUnreachable { .. }));
        assert_eq!((error.quoted.dst, error.quoted.dst_port), (to, PORT));
    }
}

#[test]
fn an_attempt_without_a_route_ends_at_once() {
    let mut world = World::new();
    world.connect("2001:db8:9::1".parse().expect("an address"), ConnConfig::default());
    world.run_until(ms(0));
    assert_eq!(world.ended, Some((ms(0), Some(ConnError::Unreachable))));
    assert_eq!(world.errors[0][40..42], [1, 0], "RFC 4443, section 3.1: no route");
}

/// RFC 1122, section 4.2.3.9: the error must not end an established connection.
#[test]
fn an_established_connection_outlives_the_loss_of_its_neighbour() {
    let mut world = World::new();
    let id = world.connect(PEER, ConnConfig::default());
    // Long enough for the neighbour to be stale.
    world.run_until(ms(60_000));
    world.is_there = false;
    let before = world.acknowledged(id);
    world.write(id, 5_000);
    world.run_until(ms(120_000));
    assert_eq!((world.state(id), world.ended), (State::Established, None));
    let stats = *world.resolver.stats();
    assert!(stats.failures >= 2 && stats.waiting_failed >= 1, "{stats:?}");
    assert!(!world.errors.is_empty());
    assert_eq!(world.acknowledged(id), before);

    world.is_there = true;
    // The retransmission timer's next expiry, at most 2 minutes away.
    world.run_until(ms(240_000));
    assert_eq!((world.state(id), world.acknowledged(id)), (State::Established, before + 5_000));
}

/// RFC 1122, section 4.2.3.9: when the connection is given up, the soft error says why.
#[test]
fn the_user_timeout_names_the_neighbour_for_its_reason() {
    let mut world = World::new();
    let mut config = ConnConfig::default();
    config.user_timeout = Some(Duration::from_secs(40));
    let id = world.connect(PEER, config);
    world.run_until(ms(60_000));
    world.is_there = false;
    world.write(id, 100);
    world.run_until(ms(200_000));
    assert_eq!(world.ended, Some((ms(100_000), Some(ConnError::Unreachable))));
}
