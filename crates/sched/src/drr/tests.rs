use super::*;
use crate::testing::{ANY, Load, conform};
use ackline_tcp_core::policy::sched::SegmentClass;
use std::string::String;
use std::vec::Vec;

#[test]
fn it_keeps_the_rules() {
    for name in ["drr", "drr:quantum=1", "drr:quantum=65535"] {
        conform(name);
    }
}

/// Who sends the first `packets` packets if connection `i` has many of `sizes[i]` bytes.
fn serve(quantum: u32, sizes: &[u32], packets: usize) -> Vec<u64> {
    let mut load = Load::new(Drr::new(quantum));
    for _ in 0..200 {
        for (conn, len) in (0_u32..).zip(sizes) {
            let packet = load.packet("x", SegmentClass::Data, conn, *len);
            load.scheduler.push(Instant::ZERO, packet);
        }
    }
    let mut bytes: Vec<u64> = sizes.iter().map(|_| 0).collect();
    for _ in 0..packets {
        let Popped::Packet(packet) = load.scheduler.pop(Instant::ZERO, &ANY) else { panic!("empty") };
        bytes[packet.conn.unwrap().index()] += u64::from(packet.len);
    }
    bytes
}

#[test]
fn connections_get_equal_bytes_whatever_their_packets() {
    for (quantum, sizes) in [(1_500, [1_500, 500, 40]), (500, [1_500, 300, 700]), (9_000, [1_500, 1_400, 41])]
    {
        let bytes = serve(quantum, &sizes, 150);
        let most = 2 * u64::from(quantum.max(1_500));
        let spread = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
        assert!(spread <= most, "{sizes:?}: {bytes:?}");
    }
}

#[test]
fn a_new_connection_waits_for_the_end_of_a_turn_not_of_the_queue() {
    let mut load = Load::new(Drr::default());
    load.push("d0 d1 d2 d3", 1500, 40);
    assert_eq!(load.pop_name(), "d0");
    load.push("a0", 1500, 40);
    assert_eq!(load.pop_names(5), "a0 d1 d2 d3 -");
}

#[test]
fn packets_of_no_connection_take_turns_as_one() {
    let mut load = Load::new(Drr::default());
    load.push("d0 d1", 1500, 40);
    let mut ping = load.packet("x0", SegmentClass::Data, 0, 84);
    ping.conn = None;
    load.scheduler.push(Instant::ZERO, ping);
    assert_eq!(load.pop_names(4), "d0 x0 d1 -");
}

#[test]
fn ten_thousand_connections_that_come_and_go_take_the_memory_of_those_that_wait() {
    let mut load = Load::new(Drr::default());
    for conn in 0..10_000 {
        for _ in 0..2 {
            let packet = load.packet("x", SegmentClass::Data, conn, 1500);
            load.scheduler.push(Instant::ZERO, packet);
        }
        let _: String = load.pop_names(2);
    }
    assert_eq!(load.scheduler.backlog(Scope::All), Backlog::default());
    assert_eq!((load.scheduler.flows.len(), load.scheduler.places.len()), (1, 0));
}
