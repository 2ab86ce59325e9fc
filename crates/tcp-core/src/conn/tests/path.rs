//! Paths and peers that want segments to be tiny.

use super::{ACK, Bench, IRS, ISS, SYN, believe, config, segment};
use crate::config::ConnConfig;
use crate::conn::icmp::IcmpError;
use crate::ctx::Ctx;
use crate::time::Duration;
use crate::wire::{HeaderBuf, TcpOptions, TcpSegment};
use std::collections::BTreeSet;
use std::vec::Vec;

/// An established connection whose peer announces this MSS, with data to send.
fn established(config: ConnConfig, mss: u16) -> Bench {
    let mut bench = Bench::active(config);
    let options = TcpOptions { mss: Some(mss), ..TcpOptions::NONE };
    bench.arrive(&TcpSegment { options, ..segment(SYN | ACK, IRS, ISS + 1, &[]) });
    bench.conn.write(&[0; 20_000]).unwrap();
    bench
}

/// DF, identification and payload of the packets that leave.
fn leaving(bench: &mut Bench) -> Vec<(bool, u16, u32)> {
    let mut left = Vec::new();
    let mut buf = HeaderBuf::new();
    while let Some(plan) = bench.conn.next(bench.now, &bench.host, 0, false, 1) {
        let sent = bench.emit(&plan, &mut buf);
        let header = buf.as_slice();
        let identification = u16::from_be_bytes([header[4], header[5]]);
        left.push((header[6] & 0x40 != 0, identification, sent.len));
    }
    left
}

#[test]
fn below_552_bytes_packets_may_be_fragmented() {
    let mut bench = established(config(), 1_460);
    assert!(leaving(&mut bench).iter().all(|packet| packet.0), "DF");
    bench.conn.on_icmp(ctx!(bench), IcmpError::TooBig(300), ISS + 1);
    bench.now += Duration::from_secs(1);
    bench.conn.on_timeout(ctx!(bench));
    let left = leaving(&mut bench);
    assert!(left.len() >= 10 && left.iter().all(|packet| !packet.0 && packet.2 <= 552 - 40), "{left:?}");
    let identifications: BTreeSet<u16> = left.iter().map(|packet| packet.1).collect();
    assert_eq!(identifications.len(), left.len(), "RFC 6864: each packet has its own");
    assert_eq!((bench.observe.counters.tcp_mtu_reduced, bench.observe.counters.tcp_mtu_fragmented), (1, 1));

    // The rest of the flight was complained of as well.
    bench.conn.on_icmp(ctx!(bench), IcmpError::TooBig(300), ISS + 1);
    assert_eq!(bench.observe.counters.tcp_mtu_refused, 0);

    // Ten minutes later DF is tried again.
    bench.now += Duration::from_secs(600);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1 + 512, &[]));
    assert!(leaving(&mut bench).iter().all(|packet| packet.0 && packet.2 > 512));
}

#[test]
fn segments_that_are_small_already_may_be_fragmented_too() {
    let mut bench = established(config(), 400);
    leaving(&mut bench);
    assert_eq!(believe(&mut bench, 300), 400, "no reason to send less");
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1 + 400, &[]));
    let left = leaving(&mut bench);
    assert!(!left.is_empty() && left.iter().all(|packet| !packet.0 && packet.2 == 400), "{left:?}");
}

#[test]
fn a_forged_message_does_not_clear_df_unless_the_packet_is_lost() {
    let mut bench = established(config(), 1_460);
    leaving(&mut bench);
    bench.conn.on_icmp(ctx!(bench), IcmpError::TooBig(68), ISS + 1);
    bench.now += Duration::from_millis(20);
    bench.arrive(&segment(ACK, IRS + 1, ISS + 1 + 1_460, &[]));
    let left = leaving(&mut bench);
    assert!(!left.is_empty() && left.iter().all(|packet| packet.0 && packet.2 == 1_460), "{left:?}");
    assert_eq!(bench.observe.counters.tcp_mtu_fragmented, 0);
}

#[test]
fn an_mss_below_the_least_is_raised() {
    let smss = |config, mss| {
        let mut bench = established(config, mss);
        leaving(&mut bench);
        (bench.conn.info(bench.now).snd_mss, bench.observe.counters.tcp_min_snd_mss)
    };
    assert_eq!([0, 1, 47].map(|mss| smss(config(), mss)), [(48, 1); 3]);
    assert_eq!(smss(config(), 48), (48, 0));
    let strict = || ConnConfig { min_snd_mss: 500, ..config() };
    assert_eq!([1, 499, 500, 501].map(|mss| smss(strict(), mss)), [(500, 1), (500, 1), (500, 0), (501, 0)]);
}
