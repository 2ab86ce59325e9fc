//! Packets that are neither TCP nor UDP, for a program that takes them, and packets of its own.

use crate::ip::stray::ping;
use crate::net::{A, host_config, socket};
use crate::opens::half_open::{bytes, peer, syn};
use ackline_tcp_core::error::PacketError;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{HeaderBuf, IcmpEmit, IcmpHeader, emit_icmp};
use ackline_tcp_core::{DropReason, Endpoint, EndpointConfig, Ingested, Instant, RxPacket, TxBudget};
use std::net::IpAddr;

const NOW: Instant = Instant::from_secs(1);
/// Pairs of a client and a host for which the endpoint answers, of both families.
const FOREIGN: [[&str; 2]; 2] = [["10.0.0.9", "203.0.113.5"], ["fd00::9", "2001:db8::5"]];

/// An endpoint that answers for every address, whose program takes packets.
fn taking(change: impl FnOnce(&mut EndpointConfig)) -> Endpoint {
    let mut config = host_config(A);
    config.any_address = true;
    change(&mut config);
    let mut endpoint = Endpoint::new(config, Box::new(Fifo::default()), [7; 32]);
    endpoint.packets().take(NOW, true).unwrap();
    endpoint
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn reply(src: &str, dst: &str, data: &[u8]) -> Vec<u8> {
    let mut header = HeaderBuf::new();
    let message = IcmpEmit::EchoReply { ident: 7, seq: 3 };
    let (src, dst) = (address(src), address(dst));
    emit_icmp(&IcmpHeader { src, dst, ttl: 64, message }, [data, &[]], &mut header).unwrap();
    [header.as_slice(), data].concat()
}

/// A packet of SCTP, as far as the stack can tell.
fn sctp(src: &str, dst: &str) -> Vec<u8> {
    let mut packet = ping(address(src), address(dst), 4);
    if packet[0] >> 4 == 4 {
        packet[9] = 132;
        packet[10..12].fill(0);
        let sum: u32 =
            packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    } else {
        packet[6] = 132;
    }
    packet
}

fn sent(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    let mut packets = vec![];
    let sent = endpoint.transmit(NOW, TxBudget::UNLIMITED, |packet| {
        packets.push([packet.header, packet.payload[0], packet.payload[1]].concat());
        Ok::<_, std::convert::Infallible>(())
    });
    sent.unwrap();
    while endpoint.poll_event().is_some() {}
    packets
}

#[test]
fn a_ping_for_another_address_is_the_programs_and_so_is_the_answer() {
    for [client, host] in FOREIGN {
        for len in [0, 40, 1_400] {
            let mut endpoint = taking(|_| {});
            let request = ping(address(client), address(host), len);
            // Padding is none of the program's business.
            let padded = [&request[..], &[0; 7]].concat();
            assert_eq!(endpoint.ingest(NOW, RxPacket::new(&padded)), Ingested::Packet);
            assert!(endpoint.packets().poll_event() && !endpoint.packets().poll_event(), "told once");
            assert_eq!(endpoint.packets().recv().as_deref(), Some(&request[..]));
            assert_eq!(endpoint.packets().recv(), None);
            let answer = reply(host, client, &vec![0xa5; len]);
            endpoint.packets().send(NOW, &answer).unwrap();
            assert_eq!(sent(&mut endpoint), [answer]);
            let counters = endpoint.counters();
            assert_eq!(
                (counters.packets_taken, counters.packets_sent, counters.icmp_out_echo_reps),
                (1, 1, 0)
            );
        }
    }
}

#[test]
fn the_stacks_own_packets_stay_the_stacks() {
    let mut endpoint = taking(|_| {});
    // Its own pings, TCP and UDP.
    for (client, own) in [("10.0.0.9", "10.0.0.1"), ("fd00::9", "fd00::1")] {
        endpoint.ingest(NOW, RxPacket::new(&ping(address(client), address(own), 8)));
        assert_eq!(sent(&mut endpoint).len(), 1, "a reply");
        // But nobody else has asked for this answer.
        let answer = reply(client, own, b"x");
        assert_eq!(endpoint.ingest(NOW, RxPacket::new(&answer)), Ingested::Packet);
    }
    endpoint.ingest(NOW, RxPacket::new(&bytes(socket(A, 81), &syn(peer(1)))));
    assert_eq!(sent(&mut endpoint).len(), 1, "an RST");
    assert_eq!(std::iter::from_fn(|| endpoint.packets().recv()).count(), 2);
}

#[test]
fn other_protocols_are_handed_over_instead_of_being_refused() {
    for [client, host] in FOREIGN {
        let mut endpoint = taking(|_| {});
        let packet = sctp(client, host);
        assert_eq!(endpoint.ingest(NOW, RxPacket::new(&packet)), Ingested::Packet);
        assert_eq!((endpoint.packets().recv().as_deref(), sent(&mut endpoint).len()), (Some(&packet[..]), 0));
        assert_eq!(endpoint.packets().take(NOW, true), Err(PacketError::InUse));
        endpoint.ingest(NOW, RxPacket::new(&packet));
        endpoint.packets().take(NOW, false).unwrap();
        assert_eq!(endpoint.packets().recv(), None, "what waited is gone");
        assert_eq!(endpoint.ingest(NOW, RxPacket::new(&packet)), Ingested::Handled);
        assert_eq!(sent(&mut endpoint).len(), 1, "an ICMP error");
    }
}

#[test]
fn a_flood_is_bounded_and_counted() {
    let mut endpoint = taking(|config| config.packet_buffer = 10_000);
    endpoint.poll_event();
    let empty = endpoint.memory();
    let request = ping(address("10.0.0.9"), address("203.0.113.5"), 72);
    for number in 0..10_000 {
        let ingested = endpoint.ingest(NOW, RxPacket::new(&request));
        let fits = number < 10_000 / (100 + size_of::<Box<[u8]>>());
        let dropped = Ingested::Dropped(DropReason::PacketQueueFull);
        assert_eq!(ingested, if fits { Ingested::Packet } else { dropped }, "{number}");
        assert_eq!(endpoint.poll_event(), None);
        assert!(endpoint.memory() <= empty + 10_000, "{}", endpoint.memory());
    }
    endpoint.ingest(NOW, RxPacket::new(&ping(address("10.0.0.9"), address("10.0.0.1"), 8)));
    assert_eq!(sent(&mut endpoint).len(), 1, "its own pings are answered");
    let taken = std::iter::from_fn(|| endpoint.packets().recv()).count() as u64;
    let counters = endpoint.counters();
    assert_eq!((counters.packets_taken, counters.packets_dropped), (taken, 10_000 - taken));
    assert_eq!((endpoint.poll_event(), endpoint.memory()), (None, empty));

    let mut poor = taking(|config| config.max_memory = Some(1 << 16));
    let refused = (0..2_000).filter(|_| poor.ingest(NOW, RxPacket::new(&request)) != Ingested::Packet);
    assert!(refused.count() > 1_000);
    assert_eq!(poor.poll_event(), None);
    assert!(poor.memory() <= 1 << 16);
}

#[test]
fn what_a_program_may_send_is_checked() {
    let mut endpoint = taking(|config| config.any_address = false);
    let mut send = |packet: &[u8]| endpoint.packets().send(NOW, packet);
    let good = reply("10.0.0.1", "10.0.0.9", b"fine");
    assert_eq!(send(&good), Ok(()));
    assert_eq!(send(&bytes(peer(1), &syn(socket(A, 80)))), Err(PacketError::Protocol), "no forged segments");
    assert_eq!(send(&reply("203.0.113.5", "10.0.0.9", b"x")), Err(PacketError::NotLocal));
    assert_eq!(send(&reply("10.0.0.1", "224.0.0.1", b"x")), Err(PacketError::BadRemote));
    assert_eq!(send(&reply("10.0.0.1", "10.0.0.9", &[0; 1_473])), Err(PacketError::TooLong));
    assert_eq!(send(&good[..good.len() - 1]), Err(PacketError::Malformed));
    assert_eq!(send(&[&good[..], b"x"].concat()), Err(PacketError::Malformed), "padding");
    assert_eq!(send(&[]), Err(PacketError::Malformed));
    for at in [8, 10, 22, 29] {
        let mut wrong = good.clone();
        wrong[at] ^= 1;
        assert_eq!(send(&wrong), Err(PacketError::Malformed), "{at}");
    }
    assert_eq!(std::iter::repeat_with(|| send(&good)).take_while(Result::is_ok).count(), 255);
    assert_eq!(send(&good), Err(PacketError::NoRoom));
    assert_eq!(sent(&mut endpoint).len(), 256);
    assert_eq!(endpoint.packets().send(NOW, &good), Ok(()));
}
