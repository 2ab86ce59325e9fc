//! Step 21 with a reader that reads, or does not read, between the arrival of data and the ACK.

use super::{Host, us};
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::ack::{
    AckCause, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, WindowHint,
};

const BUFFER: u32 = 16_384;
const MSS: u32 = 9_148;

/// A full segment brings the count to 0. The buffer, which has 7,236 bytes left, held nothing
/// before; when the ACK leaves, `free` bytes are free.
fn tenth_segment(free: u32) -> (Host, AckPlan) {
    let mut host = Host::new("a3", "profile=paper", BUFFER, MSS, 200_000);
    for at in 0..9 {
        host.segment(at * 200_000, at as u32 * 100, 100, false, 1);
    }
    host.view.now = Instant::ZERO + us(1_800_000);
    let start = host.view.rcv_nxt;
    host.view.rcv_nxt = start + MSS;
    host.view.free = BUFFER - MSS;
    host.view.oldest_unacked = Some(host.view.now);
    let plan = host.policy.on_data(&host.view, &DataArrival::new(start, start + MSS, DataClass::New));
    assert_eq!(plan, AckPlan::Now { window: WindowHint::AllFree });
    let advance = host.view.unacked();
    host.view.free = free;
    host.view.highest_ack = host.view.rcv_nxt;
    host.view.edge = host.view.rcv_nxt + free;
    host.view.oldest_unacked = None;
    let plan = host.policy.on_ack_sent(&host.view, &AckSent::new(AckCause::Plan, advance));
    (host, plan)
}

#[test]
fn a_reader_that_empties_the_buffer_before_the_ack_lets_the_sampling_begin() {
    let (host, plan) = tenth_segment(BUFFER);
    assert!(matches!(plan, AckPlan::Withhold { .. }), "{plan:?}");
    assert!(host.policy.sampling.is_some());
}

#[test]
fn an_ack_that_shows_no_room_begins_no_sampling_and_the_count_stays_at_zero() {
    let (host, plan) = tenth_segment(BUFFER - MSS);
    assert_eq!(plan, AckPlan::Keep);
    assert!(host.policy.sampling.is_none());
    assert_eq!((host.policy.interval.left(), host.policy.aborted), (0, 0));
}
