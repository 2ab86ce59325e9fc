use super::*;
use crate::{Fifo, SCHED};
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::policy::sched::{DescriptorId, SegmentClass};
use ackline_tcp_core::policy::{NewEgressScheduler, conformance};
use alloc::boxed::Box;
use alloc::vec::Vec;

const ANY: LinkView = LinkView::new(u32::MAX);

fn make(params: &str) -> Result<std::sync::Arc<NewEgressScheduler>, SpecError> {
    (SCHED[0].make)(&params.parse()?)
}

fn packet(serial: u64, len: u32, segments: u32) -> Descriptor {
    let id = DescriptorId::new(serial, SeqNum(0), len - 40);
    let mut packet = Descriptor::new(id, Some(ConnId::for_test(0, 0)), SegmentClass::Data, len);
    packet.segments = segments;
    packet
}

/// When each of `count` waiting packets leaves.
fn departures(shaped: &mut dyn EgressScheduler, start: Instant, count: usize) -> Vec<Instant> {
    let (mut now, mut left) = (start, Vec::new());
    while left.len() < count {
        match shaped.pop(now, &ANY) {
            Popped::Packet(_) => left.push(now),
            Popped::NotBefore(at) => now = at,
            Popped::Drop(_) => panic!("a FIFO drops nothing"),
            Popped::Empty => panic!("empty after {} packets", left.len()),
        }
    }
    left
}

#[test]
fn every_entry_keeps_the_rules_with_and_without_a_rate() {
    let specs = ["", "rate=10mbit", "rate=1gbit,burst=0", "rate=100kbit,burst=32k,overhead=38", "rate=8bit"];
    for spec in specs {
        let make = make(spec).unwrap();
        for seed in 0..6 {
            conformance::egress_scheduler(&*make, seed);
        }
    }
}

#[test]
fn a_boxed_scheduler_can_be_shaped() {
    let params =
        ShaperParams { rate: Some(Rate::from_bits_per_second(1_000_000)), ..ShaperParams::default() };
    for seed in 0..5 {
        conformance::egress_scheduler(
            &move || {
                let inner: Box<dyn EgressScheduler> = Box::new(Fifo::default());
                Box::new(Shaped::new(inner, params))
            },
            seed,
        );
    }
}

#[test]
fn packets_leave_at_the_rate_with_their_overhead() {
    // 1462 + 38 bytes at 12 Mbit/s: one per millisecond.
    let mut shaped = make("rate=12mbit,burst=0,overhead=38").unwrap()();
    for serial in 0..4 {
        shaped.push(Instant::ZERO, packet(serial, 1462, 1));
    }
    // A super-packet of 10 wire packets pays the overhead ten times.
    shaped.push(Instant::ZERO, packet(4, 14_620, 10));
    shaped.push(Instant::ZERO, packet(5, 1462, 1));
    let expected = [0, 1, 2, 3, 4, 14].map(Instant::from_millis);
    assert_eq!(departures(&mut *shaped, Instant::ZERO, 6), expected);
    assert_eq!(shaped.pop(Instant::from_millis(14), &ANY), Popped::Empty);
}

#[test]
fn a_burst_in_bytes_or_as_a_time() {
    for burst in ["burst=15000", "burst=10ms"] {
        let mut shaped = make(&alloc::format!("rate=12mbit,{burst}")).unwrap()();
        for serial in 0..20 {
            shaped.push(Instant::ZERO, packet(serial, 1500, 1));
        }
        let left = departures(&mut *shaped, Instant::from_secs(1), 20);
        // 15,000 bytes of burst, and the packet that goes into debt.
        let at_once = left.iter().filter(|at| **at == Instant::from_secs(1)).count();
        assert_eq!(at_once, 11, "{burst}");
        assert_eq!(left[19], Instant::from_secs(1) + Duration::from_millis(9), "{burst}");
    }
}

#[test]
fn the_scheduler_chooses_when_the_packet_leaves_not_before() {
    // A scheduler that lets the latest arrival go first.
    #[derive(Debug, Default)]
    struct Lifo(Vec<Descriptor>);
    impl EgressScheduler for Lifo {
        fn name(&self) -> &'static str {
            "lifo"
        }
        fn push(&mut self, _now: Instant, packet: Descriptor) {
            self.0.push(packet);
        }
        fn pop(&mut self, _now: Instant, _link: &LinkView) -> Popped {
            self.0.pop().map_or(Popped::Empty, Popped::Packet)
        }
        fn forget(&mut self, _now: Instant, _which: Forget) {}
        fn backlog(&self, _scope: Scope) -> Backlog {
            Backlog { packets: self.0.len(), bytes: 0 }
        }
    }
    let params = ShaperParams {
        rate: Some(Rate::from_bits_per_second(12_000_000)),
        burst: Amount::Size(0),
        ..ShaperParams::default()
    };
    let mut shaped = Shaped::new(Lifo::default(), params);
    let at = Instant::from_millis;
    shaped.push(at(0), packet(0, 1500, 1));
    assert_eq!(shaped.pop(at(0), &ANY), Popped::Packet(packet(0, 1500, 1)));
    shaped.push(at(0), packet(1, 1500, 1));
    assert_eq!(shaped.pop(at(0), &ANY), Popped::NotBefore(at(1)));
    shaped.push(Instant::from_micros(900), packet(2, 1500, 1));
    assert_eq!(shaped.pop(at(1), &ANY), Popped::Packet(packet(2, 1500, 1)));
}

#[test]
fn rate_can_be_set_changed_and_taken_off_while_running() {
    let mut shaped = make("").unwrap()();
    let at = Instant::from_millis;
    for serial in 0..10 {
        shaped.push(at(0), packet(serial, 1500, 1));
    }
    departures(&mut *shaped, at(0), 2);
    shaped.configure(&"rate=12mbit,burst=0".parse().unwrap()).unwrap();
    assert_eq!(departures(&mut *shaped, at(5), 3), [at(5), at(6), at(7)]);
    shaped.configure(&"rate=6mbit".parse().unwrap()).unwrap();
    // The debt of the last packet is paid at the new rate, less what idle time saves up without a
    // burst: just under a nanosecond.
    let early = Duration::from_nanos(1);
    assert_eq!(departures(&mut *shaped, at(7), 2), [at(9) - early, at(11) - early]);
    shaped.configure(&"rate=off".parse().unwrap()).unwrap();
    assert_eq!(departures(&mut *shaped, at(11), 3), [at(11); 3]);
}

#[test]
fn a_refused_configure_changes_neither_shaper_nor_scheduler() {
    let mut shaped = Shaped::new(Fifo::default(), ShaperParams::default());
    for text in [
        "rate=1mbit,no=1",
        "rate=0",
        "burst=11s",
        "burst=2g",
        "burst=x",
        "late=2s",
        "late=x",
        "overhead=1001",
    ] {
        let error = shaped.configure(&text.parse().unwrap()).unwrap_err();
        let last = text.rsplit(',').next().unwrap().split('=').next().unwrap();
        assert!(alloc::format!("{error}").contains(last), "{text}: {error}");
        assert_eq!(*shaped.params(), ShaperParams::default(), "{text}");
    }
}

/// What is dropped took no time of the link.
#[test]
fn a_dropped_packet_costs_no_rate() {
    let params = "target=0ms,rate=8mbit,burst=0,limit=5".parse().unwrap();
    let make = (crate::dualpi2::ENTRY.make)(&params).unwrap();
    let mut shaped = make();
    let conn = Some(ConnId::for_test(0, 0));
    let (mut now, mut sent, mut dropped) = (Instant::ZERO, 0_u64, 0_u64);
    let mut serial = 0;
    while now < Instant::from_secs(10) {
        // The limit counts what is dropped as gone, too.
        let ask = Ask::new(conn, SegmentClass::Data, 1_000);
        while shaped.admit(now, &ask) == Admission::Granted {
            serial += 1;
            let mut packet = packet(serial, 1_000, 1);
            packet.queued_at = now;
            shaped.push(now, packet);
        }
        match shaped.pop(now, &ANY) {
            Popped::Packet(_) => sent += 1,
            Popped::Drop(_) => dropped += 1,
            Popped::NotBefore(at) => now = at,
            Popped::Empty => panic!("it had {sent} packets"),
        }
    }
    assert!(dropped > 500, "the test shows nothing: {dropped} dropped");
    assert!(sent.abs_diff(10_000) <= 1, "{sent} packets of 1 ms in 10 s");
}
