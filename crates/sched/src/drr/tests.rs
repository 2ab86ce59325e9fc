use super::*;
use crate::testing::{ANY, Load, conform};
use ackline_tcp_core::policy::sched::SegmentClass;
use std::string::String;
use std::vec::Vec;

#[test]
fn it_keeps_the_rules() {
    for name in ["drr", "drr:quantum=1", "drr:quantum=65535", "flow-queue", "flow-queue:quantum=1"] {
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

#[test]
fn a_sparse_flow_goes_before_the_others_whole_line() {
    let mut load = Load::new(Drr::default().sparse_first());
    for conn in 0..10 {
        for _ in 0..5 {
            let packet = load.packet("d", SegmentClass::Data, conn, 1500);
            load.scheduler.push(Instant::ZERO, packet);
        }
    }
    // Each has had its turn as a new flow.
    let _: String = load.pop_names(15);
    let request = load.packet("r", SegmentClass::Data, 99, 100);
    load.scheduler.push(Instant::ZERO, request);
    // The one that has its turn keeps it; with `drr` it would be the eleventh.
    assert_eq!(load.pop_name(), "r");
}

/// RFC 8290, section 4.2: a flow that sends one packet after the other cannot be new each time.
#[test]
fn a_flow_is_not_new_again_before_the_others_had_their_turn() {
    let mut load = Load::new(Drr::default().sparse_first());
    for conn in 0..3 {
        for _ in 0..50 {
            let packet = load.packet("d", SegmentClass::Data, conn, 1500);
            load.scheduler.push(Instant::ZERO, packet);
        }
    }
    let _: String = load.pop_names(6);
    let mut sent = [0; 4];
    for _ in 0..40 {
        if load.scheduler.backlog(Scope::Conn(ConnId::for_test(3, 0))).packets == 0 {
            let packet = load.packet("r", SegmentClass::Data, 3, 1500);
            load.scheduler.push(Instant::ZERO, packet);
        }
        let Popped::Packet(packet) = load.scheduler.pop(Instant::ZERO, &ANY) else { panic!("empty") };
        sent[packet.conn.unwrap().index()] += 1;
    }
    assert!(sent[3] <= 11, "{sent:?}");
    assert!(sent[..3].iter().all(|sent| *sent >= 9), "{sent:?}");
}

#[test]
fn new_flows_share_too() {
    let bytes = {
        let mut load = Load::new(Drr::new(1_500).sparse_first());
        for _ in 0..100 {
            for conn in 0..4 {
                let packet = load.packet("x", SegmentClass::Data, conn, 1_500 - 400 * conn);
                load.scheduler.push(Instant::ZERO, packet);
            }
        }
        let mut bytes = [0_u64; 4];
        for _ in 0..120 {
            let Popped::Packet(packet) = load.scheduler.pop(Instant::ZERO, &ANY) else { panic!("empty") };
            bytes[packet.conn.unwrap().index()] += u64::from(packet.len);
        }
        bytes
    };
    let spread = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
    assert!(spread <= 3_000, "{bytes:?}");
}
