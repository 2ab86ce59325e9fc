//! Small writes coalesce while applications run, and a lone one leaves at once.

use crate::net::{A, B, Link, Net, Plan, Wire, host_config, socket};
use ackline_tcp_core::config::Nagle;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{ConnConfig, ConnId, Duration, EndpointConfig, TxBudget};

/// A call after an application's write.
const CORKING: TxBudget = TxBudget::UNLIMITED.corking();
/// A call of the driver.
const DRIVING: TxBudget = TxBudget::UNLIMITED;

/// IPv4 and TCP headers with timestamps.
const HEADERS: usize = 52;

/// The packets that A sends, and whether data waits.
fn packets(net: &mut Net, budget: TxBudget) -> (Vec<Wire>, bool) {
    let (now, mut packets) = (net.now, vec![]);
    let report = net.endpoint(A).transmit(now, budget, |packet| {
        packets.push(Wire::of(&packet));
        Ok::<(), ()>(())
    });
    (packets, report.unwrap().corked)
}

/// The same as lengths of payload.
fn sends(net: &mut Net, budget: TxBudget) -> (Vec<usize>, bool) {
    let (packets, corked) = packets(net, budget);
    (packets.iter().map(|packet| packet.bytes.len() - HEADERS).collect(), corked)
}

/// A connection from A to B that writes without Nagle's algorithm, over a device with super-packets
/// if `offload`.
fn opened(offload: bool, change: impl Fn(&mut EndpointConfig)) -> (Net, ConnId) {
    let configs = [A, B].map(|host| {
        let mut config = host_config(host);
        config.max_super_packet = if offload { 65_535 } else { 0 };
        change(&mut config);
        config
    });
    let mut net = Net::with(21, Link::default(), configs, || Box::new(Fifo::default()));
    net.listen(B, 80, ConnConfig::default());
    let mut config = ConnConfig::default();
    config.nagle = Nagle::Off;
    config.send_buffer = 1 << 20;
    let id = net.connect(A, socket(B, 80), config, Plan::default());
    for (from, to) in [(A, B), (B, A), (A, B)] {
        for wire in net.intercept(from) {
            net.inject(to, &wire.bytes);
        }
    }
    (net, id)
}

#[test]
fn the_first_write_leaves_at_once_and_the_others_together() {
    let (mut net, id) = opened(true, |_| ());
    net.write(A, id, &[7; 100]);
    assert_eq!(sends(&mut net, CORKING), (vec![100], false));
    for _ in 0..3 {
        net.write(A, id, &[7; 100]);
        assert_eq!(sends(&mut net, CORKING), (vec![], true));
    }
    assert_eq!(sends(&mut net, DRIVING), (vec![300], false));
    assert_eq!(net.endpoint(A).counters().tcp_auto_corking, 3);
    // Somebody who writes so much goes on.
    net.write(A, id, &[7; 100]);
    assert_eq!(sends(&mut net, CORKING), (vec![], true));
    assert_eq!(sends(&mut net, DRIVING), (vec![100], false));
    // After a pause of a turn it is as at first.
    assert_eq!(sends(&mut net, DRIVING), (vec![], false));
    net.write(A, id, &[7; 100]);
    assert_eq!(sends(&mut net, CORKING), (vec![100], false));
}

#[test]
fn a_write_on_an_idle_connection_never_waits() {
    let (mut net, id) = opened(true, |_| ());
    // More often than the numbers of turns come again.
    for _ in 0..600 {
        net.write(A, id, &[7; 100]);
        let (data, corked) = packets(&mut net, CORKING);
        assert_eq!((data.len(), corked), (1, false));
        net.inject(B, &data[0].bytes);
        net.now += Duration::from_secs(1);
        let now = net.now;
        net.endpoint(B).handle_timeout(now);
        for ack in net.intercept(B) {
            net.inject(A, &ack.bytes);
        }
    }
}

#[test]
fn what_fills_a_packet_does_not_wait() {
    let (mut net, id) = opened(true, |_| ());
    net.write(A, id, &[7; 1]);
    sends(&mut net, CORKING);
    // The initial window is ten segments; the whole of it is less than a super-packet.
    net.write(A, id, &[7; 63_712]);
    assert_eq!(sends(&mut net, CORKING), (vec![9 * 1_448], false), "the window has no room for more");
}

#[test]
fn a_device_without_super_packets_waits_for_a_segment() {
    let (mut net, id) = opened(false, |_| ());
    net.write(A, id, &[7; 100]);
    assert_eq!(sends(&mut net, CORKING), (vec![100], false));
    net.write(A, id, &[7; 1_447]);
    assert_eq!(sends(&mut net, CORKING), (vec![], true));
    net.write(A, id, &[7; 1]);
    assert_eq!(sends(&mut net, CORKING).0, [1_448]);
}

#[test]
fn a_fin_does_not_wait() {
    let (mut net, id) = opened(true, |_| ());
    net.write(A, id, &[7; 100]);
    sends(&mut net, CORKING);
    net.write(A, id, &[7; 100]);
    let now = net.now;
    net.endpoint(A).conn(id).unwrap().shutdown(now);
    assert_eq!(sends(&mut net, CORKING), (vec![100], false));
}

#[test]
fn connections_do_not_wait_for_each_other() {
    let (mut net, id) = opened(true, |_| ());
    net.write(A, id, &[7; 100]);
    sends(&mut net, CORKING);
    let other = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::default());
    for (from, to) in [(A, B), (B, A)] {
        for wire in net.intercept(from) {
            net.inject(to, &wire.bytes);
        }
    }
    net.write(A, id, &[7; 10]);
    assert_eq!(sends(&mut net, CORKING).0.iter().sum::<usize>(), 10, "a new turn");
    net.write(A, id, &[7; 20]);
    net.write(A, other, &[7; 30]);
    assert_eq!(sends(&mut net, CORKING), (vec![30], true));
}

#[test]
fn it_can_be_switched_off() {
    let (mut net, id) = opened(true, |config| config.autocorking = false);
    for _ in 0..3 {
        net.write(A, id, &[7; 100]);
        assert_eq!(sends(&mut net, CORKING), (vec![100], false));
    }
}
