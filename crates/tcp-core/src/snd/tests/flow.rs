//! Windows, Nagle, FIN, reservations, ACK acceptability, delivery rate.

use super::bench::{Bench, ISS, SMSS, Setup, ms};
use crate::config::{HalfRule, Nagle, NagleTest, SunOs};
use crate::events::WakeReason;
use crate::info::Blocked;
use crate::packet::SendReason::{FastRetransmit, Fin, NewData, RtoRetransmit, WindowProbe};
use crate::policy::sched::{ControlKind, SegmentClass};
use crate::seq::SeqNum;
use crate::snd::AckOutcome;
use crate::units::Window;
use std::vec::Vec;

fn nagle(nagle: Nagle) -> Bench {
    let mut setup = Setup::default();
    setup.config.nagle = nagle;
    setup.open()
}

#[test]
fn nagle_of_rfc_896_waits_for_everything() {
    let mut bench = nagle(Nagle::Rfc896);
    bench.write(100);
    assert_eq!(bench.drain(), [(0, 100, NewData)], "nothing is outstanding");
    bench.write(1100);
    assert_eq!(bench.drain(), [(100, 1000, NewData)], "full segments leave");
    assert_eq!(bench.blocked(), Blocked::Nagle);
    bench.ack(100);
    assert_eq!(bench.drain(), []);
    bench.ack(1100);
    assert_eq!(bench.drain(), [(1100, 100, NewData)]);
}

#[test]
fn nagle_of_minshall_waits_for_small_segments_only() {
    let mut bench = nagle(Nagle::Minshall);
    bench.write(1100);
    assert_eq!(bench.drain(), [(0, 1000, NewData), (1000, 100, NewData)]);
    bench.write(50);
    assert_eq!(bench.drain(), []);
    bench.ack(1000);
    assert_eq!(bench.drain(), []);
    bench.ack(1100);
    assert_eq!(bench.drain(), [(1100, 50, NewData)]);
}

#[test]
fn nagle_of_rfc_896_lets_half_the_window_leave_where_nothing_is_outstanding() {
    let mut setup = Setup { wnd: 400, ..Setup::default() };
    setup.config.nagle = Nagle::Rfc896;
    let mut bench = setup.open();
    bench.write(3000);
    assert_eq!(bench.drain(), [(0, 400, NewData)], "RFC 9293, section 3.8.6.2.1, rule 3");
    assert_eq!(bench.blocked(), Blocked::ReceiveWindow);
}

#[test]
fn no_segment_spans_the_end_of_a_record_and_none_waits_for_what_follows() {
    let mut bench = nagle(Nagle::Rfc896);
    bench.write(1400);
    bench.snd.end_record();
    bench.write(1300);
    bench.snd.end_record();
    // 400 and 300 bytes end a record that something follows or not: only the last one waits.
    bench.write(50);
    let segments = [(0, 1000, NewData), (1000, 400, NewData), (1400, 1000, NewData), (2400, 300, NewData)];
    assert_eq!(bench.drain(), segments);
    assert_eq!(bench.blocked(), Blocked::Nagle);
    // What is sent again ends with its record, too.
    bench.ack(1000);
    assert_eq!(bench.fire(), WakeReason::Rto);
    let again = [(1000, 400, RtoRetransmit), (1400, 1000, FastRetransmit), (2400, 300, FastRetransmit)];
    assert_eq!(bench.drain(), again);
    bench.ack(2700);
    assert_eq!(bench.drain(), [(2700, 50, NewData)]);
}

/// A sender with the rules of SunOS, a window of `wnd` bytes and `outstanding` bytes on their way.
fn sunos(test: NagleTest, half: HalfRule, wnd: u32, outstanding: u32) -> Bench {
    let mut setup = Setup { wnd, ..Setup::default() };
    setup.config.nagle = Nagle::SunOs(SunOs { test, half });
    let mut bench = setup.open();
    if outstanding > 0 {
        bench.write(outstanding);
        assert_eq!(bench.drain(), [(0, outstanding, NewData)], "nothing is outstanding");
    }
    bench
}

#[test]
fn sunos_sends_a_small_segment_only_alone_or_beyond_half_the_window() {
    for (half, expected) in [(HalfRule::Gt, 601), (HalfRule::Ge, 600), (HalfRule::Off, 1000)] {
        for test in [NagleTest::Unsent, NagleTest::Segment] {
            let mut bench = sunos(test, half, 1200, 100);
            let mut before = 0;
            for waiting in [599, 600, 601, 1000] {
                bench.write(waiting - before);
                before = waiting;
                if waiting < expected {
                    assert_eq!(bench.drain(), [], "{test:?} {half:?} {waiting}");
                    assert_eq!(bench.blocked(), Blocked::Nagle);
                } else {
                    assert_eq!(bench.drain(), [(100, waiting, NewData)], "{test:?} {half:?} {waiting}");
                    break;
                }
            }
        }
    }
}

#[test]
fn sunos_compares_all_that_waits_or_only_what_the_window_takes() {
    // 300 bytes of window are left, and more than a full segment waits.
    let mut bench = sunos(NagleTest::Unsent, HalfRule::Gt, 1200, 900);
    bench.write(2000);
    assert_eq!(bench.drain(), [(900, 300, NewData)], "a sliver of the window is used");
    assert_eq!(bench.blocked(), Blocked::ReceiveWindow);
    let mut bench = sunos(NagleTest::Segment, HalfRule::Gt, 1200, 900);
    bench.write(2000);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.blocked(), Blocked::Nagle);
    bench.ack(900);
    assert_eq!(bench.drain(), [(900, 1000, NewData)]);
}

#[test]
fn sunos_with_nothing_outstanding_uses_any_window() {
    for test in [NagleTest::Unsent, NagleTest::Segment] {
        let mut bench = sunos(test, HalfRule::Off, 400, 0);
        bench.write(3000);
        assert_eq!(bench.drain(), [(0, 400, NewData)], "{test:?}");
        bench.wnd = 700;
        bench.ack(400);
        assert_eq!(bench.drain(), [(400, 700, NewData)], "{test:?}");
    }
}

#[test]
fn sunos_sends_part_of_a_segment_into_the_congestion_window() {
    let mut bench = sunos(NagleTest::Unsent, HalfRule::Gt, 1 << 20, 0);
    bench.decide(|decision| decision.window = Window::from_bytes(2500));
    bench.write(10_000);
    assert_eq!(bench.drain(), [(0, 1000, NewData), (1000, 1000, NewData), (2000, 500, NewData)]);
    assert_eq!(bench.blocked(), Blocked::CongestionWindow);
}

#[test]
fn nagle_off_and_cork() {
    let mut bench = nagle(Nagle::Off);
    bench.write(10);
    bench.drain();
    bench.write(10);
    assert_eq!(bench.drain(), [(10, 10, NewData)]);
    bench.config.cork = true;
    bench.write(1010);
    assert_eq!(bench.drain(), [(20, 1000, NewData)]);
    assert_eq!(bench.blocked(), Blocked::Nagle);
    bench.config.cork = false;
    assert_eq!(bench.drain(), [(1020, 10, NewData)]);
}

/// tcp(7), TCP_CORK: "a 200 millisecond ceiling on the time for which output is corked".
#[test]
fn a_cork_holds_data_back_for_at_most_200_ms() {
    let mut bench = Setup::default().open();
    bench.config.cork = true;
    bench.write(2_500);
    assert_eq!(bench.offsets(), [0, 1_000]);
    bench.pass(ms(300));
    assert!(bench.offsets().is_empty(), "not while something is outstanding");
    bench.ack(2_000);
    assert!(bench.offsets().is_empty());
    assert_eq!(bench.blocked(), Blocked::Nagle);
    let start = bench.now;
    assert_eq!(bench.timer(), Some((ms(200), WakeReason::SwsOverride)));
    bench.pass(ms(50));
    assert!(bench.offsets().is_empty(), "asking again does not start the timer anew");
    bench.fire();
    assert_eq!(bench.now.since(start), ms(200));
    assert_eq!(bench.drain(), [(2_000, 500, NewData)]);
    bench.ack(2_500);
    bench.write(10);
    assert!(bench.offsets().is_empty(), "the cork is still in");
    assert_eq!(bench.timer().map(|timer| timer.0), Some(ms(200)));
    bench.config.cork = false;
    assert_eq!(bench.offsets(), [2_500]);
}

/// The override of SWS avoidance waits for a window that is too small; one that closes meanwhile is
/// probed.
#[test]
fn a_window_that_closes_while_the_override_waits_is_probed() {
    for late in [false, true] {
        let mut bench = Setup { wnd: 5_000, ..Setup::default() }.open();
        bench.write(5_500);
        bench.drain();
        bench.wnd = 300;
        bench.ack(5_000);
        assert!(bench.offsets().is_empty());
        assert_eq!(bench.timer().map(|timer| timer.1), Some(WakeReason::SwsOverride));
        if late {
            bench.fire();
        }
        bench.wnd = 0;
        bench.ack(5_000);
        assert!(bench.offsets().is_empty());
        assert_eq!(bench.fire(), WakeReason::Persist);
        assert_eq!(bench.drain()[0].2, WindowProbe, "{late}");
    }
}

#[test]
fn fin_rides_on_the_last_segment_and_ignores_nagle() {
    let mut bench = nagle(Nagle::Rfc896);
    bench.write(1500);
    bench.snd.queue_fin();
    bench.drain();
    assert_eq!(bench.snd.snd_nxt(), ISS + 1 + 1501);
    assert!(!bench.snd.is_empty());
    assert_eq!(bench.snd.write(&bench.config, b"more"), 0);
    let segment = bench.segment(1500, &[]);
    assert_eq!(bench.take(&segment), AckOutcome { acked: 1500, fin_acked: false, freed: true });
    // The FIN is lost: it goes out again, alone.
    bench.fire();
    let out = bench.next().unwrap();
    assert_eq!((out.fin, out.len, out.class), (true, 0, SegmentClass::Retransmit));
    bench.sent(&out);
    let segment = bench.segment(1501, &[]);
    assert_eq!(bench.take(&segment), AckOutcome { acked: 1, fin_acked: true, freed: false });
    assert!(bench.snd.is_empty());
    assert_eq!(bench.take(&segment), AckOutcome { acked: 0, fin_acked: true, freed: false });
}

#[test]
fn fin_alone() {
    let mut bench = Setup::default().open();
    bench.snd.queue_fin();
    let out = bench.next().unwrap();
    assert_eq!((out.class, out.reason), (SegmentClass::Control(ControlKind::Fin), Fin));
    bench.sent(&out);
    assert_eq!(bench.drain(), []);
    assert_eq!(bench.snd.payload(out.seq, 1), [&[] as &[u8], &[]]);
    bench.fire();
    assert_eq!(bench.drain(), [(0, 0, RtoRetransmit)]);
}

#[test]
fn push_marks_the_end_of_what_is_written() {
    let mut bench = Setup::default().open();
    bench.write(1500);
    let first = bench.next().unwrap();
    bench.sent(&first);
    let last = bench.next().unwrap();
    assert_eq!((first.psh, last.psh), (false, true));
}

#[test]
fn super_packets_are_whole_segments_but_for_the_last() {
    let mut bench = Setup { cwnd: Some(13), ..Setup::default() }.open();
    bench.max_payload = 5500;
    bench.write(20_300);
    let sizes: std::vec::Vec<u32> = bench.drain().iter().map(|left| left.1).collect();
    assert_eq!(sizes, [5000, 5000, 3000], "the window ends the last");
    bench.ack(13_000);
    let out = bench.next().unwrap();
    assert_eq!(out.segment_size.map(|size| size.get()), Some(1000));
    bench.set_cwnd(30);
    let sizes: std::vec::Vec<u32> = bench.drain().iter().map(|left| left.1).collect();
    assert_eq!(sizes, [5000, 2300]);
    assert_eq!(bench.info().data_segs_out, 13 + 8);
}

#[test]
fn windows_bound_what_is_out() {
    let mut bench = Setup { wnd: 4500, ..Setup::default() }.open();
    bench.write(50 * SMSS);
    assert_eq!(bench.drain().len(), 4, "no small segment into the rest of the window");
    assert_eq!(bench.blocked(), Blocked::ReceiveWindow);
    bench.wnd = 100 * SMSS;
    bench.ack(0);
    assert_eq!(bench.drain().len(), 6);
    assert_eq!(bench.blocked(), Blocked::CongestionWindow);
    bench.config.cwnd_cap = Some(5000);
    bench.ack(6000);
    assert_eq!(bench.drain().len(), 1);
}

#[test]
fn old_segments_do_not_change_the_window() {
    let mut bench = Setup::default().open();
    bench.write(50 * SMSS);
    bench.drain();
    let mut newer = bench.segment(2000, &[]);
    (newer.seq, newer.window) = (SeqNum(100), 7000);
    bench.take(&newer);
    let mut older = bench.segment(2000, &[]);
    (older.seq, older.window) = (SeqNum(50), 9000);
    bench.take(&older);
    assert_eq!(bench.info().snd_wnd, 7000);
}

/// RFC 5961, section 5.2.
#[test]
fn acks_outside_the_acceptable_range() {
    let mut bench = Setup { wnd: 10_000, ..Setup::default() }.open();
    bench.write(30 * SMSS);
    bench.drain();
    let (una, nxt) = (bench.snd.snd_una(), bench.snd.snd_nxt());
    assert!(bench.accepts(una) && bench.accepts(nxt));
    assert!(!bench.accepts(nxt + 1), "never sent");
    assert!(!bench.accepts(una - 1), "nothing was acknowledged yet");
    for (acked, oldest) in [(4_000, 4_000), (14_000, 10_000)] {
        bench.ack(acked);
        bench.drain();
        let una = bench.snd.snd_una();
        assert!(bench.accepts(una - oldest), "{acked}");
        assert!(!bench.accepts(una - oldest - 1), "{acked}");
    }
}

#[test]
fn reserved_packets_count_and_start_nothing() {
    let mut bench = Setup::default().open();
    bench.write(50 * SMSS);
    for serial in 0..10 {
        let out = bench.next().unwrap();
        assert_eq!(Bench::offset(out.seq), serial * 1000);
        bench.snd.reserve(&out, u64::from(serial));
    }
    assert_eq!(bench.next(), None);
    assert_eq!((bench.info().pipe, bench.info().unacked), (10_000, 0));
    assert_eq!(bench.timer(), None, "nothing left");
    bench.pass(ms(500));
    // Popped out of order: the stream leaves in order.
    for serial in [3, 0, 1, 2] {
        let out = bench.snd.claim(serial).unwrap();
        bench.sent(&out);
    }
    assert_eq!(bench.snd.snd_nxt(), ISS + 1 + 4000);
    assert_eq!(bench.snd.claim(3), None, "its slot is used");
    bench.pass(ms(100));
    bench.ack(4000);
    assert_eq!(bench.info().min_rtt, Some(ms(100)), "from the departure");
}

#[test]
fn reserved_retransmission_becomes_void() {
    let mut bench = Setup::default().open();
    bench.write(10 * SMSS);
    bench.drain();
    bench.sack(0, &[(2000, 9000)]);
    let head = bench.next().unwrap();
    bench.snd.reserve(&head, 7);
    let pipe = bench.info().pipe;
    let second = bench.next().unwrap();
    assert_eq!(Bench::offset(second.seq), 1000, "the head is not offered again");
    bench.snd.reserve(&second, 8);
    assert_eq!(bench.info().pipe, pipe + 1000);
    // The head was only late.
    bench.ack(1000);
    assert_eq!(bench.snd.take_voided(), Some(7));
    assert_eq!(bench.snd.take_voided(), None);
    assert_eq!(bench.snd.claim(7), None);
    bench.sack(1000, &[(1000, 2000), (1000, 9000)]);
    assert_eq!(bench.snd.claim(8), Some(second), "a DSACK proves nothing about it");
    bench.ack(10_000);
    assert_eq!(bench.snd.claim(8), None);
    assert_eq!(bench.snd.take_voided(), None, "its slot has left the scheduler");
    assert_eq!(bench.info().pipe, 0);
}

#[test]
fn shrunk_window_voids_reserved_data() {
    let mut bench = Setup::default().open();
    bench.write(3 * SMSS);
    for serial in 0..3 {
        let out = bench.next().unwrap();
        bench.snd.reserve(&out, serial);
    }
    bench.wnd = 1000;
    bench.ack(0);
    let out = bench.snd.claim(0).unwrap();
    bench.sent(&out);
    assert_eq!(bench.snd.claim(1), None);
    assert_eq!(bench.snd.take_voided(), Some(2));
    assert_eq!(bench.info().pipe, 1000);
    bench.wnd = 10_000;
    bench.ack(1000);
    assert_eq!(bench.offsets(), [1000, 2000]);
}

#[test]
fn a_window_that_was_taken_back_bounds_retransmissions_and_empty_segments() {
    let mut bench = Setup { wnd: 8000, ..Setup::default() }.open();
    bench.write(8 * SMSS);
    bench.drain();
    assert_eq!(bench.snd.seq_without_data(1), Bench::seq(8000));

    // The peer has lost everything and ran out of memory.
    bench.set_cwnd(1);
    bench.wnd = 1700;
    bench.ack(0);
    assert_eq!(bench.snd.seq_without_data(1), Bench::seq(1700), "what it would accept");
    assert_eq!(bench.fire(), WakeReason::Rto);
    assert_eq!(bench.drain(), [(0, 1000, RtoRetransmit)]);
    bench.wnd = 700;
    bench.ack(0);
    assert_eq!(bench.fire(), WakeReason::Rto);
    assert_eq!(bench.drain(), [(0, 700, RtoRetransmit)]);
    bench.wnd = 0;
    bench.ack(700);
    assert_eq!(bench.snd.seq_without_data(1), Bench::seq(700));
    assert_eq!(bench.fire(), WakeReason::Rto);
    assert_eq!(bench.drain(), [(700, 300, RtoRetransmit)], "the head probes a closed window");

    // The window opens: the rest follows.
    bench.wnd = 8000;
    let mut acked = 1000;
    while acked < 8000 {
        bench.ack(acked);
        let left = bench.drain();
        assert_eq!(left.first().map(|packet| packet.0), Some(acked), "{left:?}");
        acked += 1000;
    }
    bench.ack(8000);
    assert_eq!(bench.snd.seq_without_data(1), Bench::seq(8000));
}

#[test]
fn a_window_stated_in_coarse_units_does_not_count_as_taken_back() {
    let mut bench = Setup { wnd: 1920, ..Setup::default() }.open();
    bench.write(1920);
    bench.drain();
    // 1,820 bytes are left of the window; the peer can state multiples of 128.
    bench.wnd = 1792;
    bench.ack(100);
    assert_eq!(bench.snd.seq_without_data(128), Bench::seq(1920));
    assert_eq!(bench.snd.seq_without_data(1), Bench::seq(1892));
    // A closed window is meant.
    bench.wnd = 0;
    bench.ack(1880);
    assert_eq!(bench.snd.seq_without_data(128), Bench::seq(1880));
}

#[test]
fn one_paced_packet_is_reserved_at_a_time() {
    let mut bench = Setup::default().open();
    bench.decide(|d| {
        d.pacing = crate::policy::cc::Pacing::AtRate(crate::Rate::from_bytes_per_second(1_000_000))
    });
    bench.write(10 * SMSS);
    let out = bench.next().unwrap();
    bench.snd.reserve(&out, 0);
    bench.pass(ms(100));
    assert_eq!((bench.next(), bench.blocked()), (None, Blocked::Pacing));
}

/// 1000 bytes per 10 ms: the rate at which ACKs come back.
#[test]
fn delivery_rate() {
    let mut bench = Setup::default().open();
    bench.write(40 * SMSS);
    bench.drain();
    bench.pass(ms(90));
    for i in 1..=30 {
        bench.pass(ms(10));
        bench.ack(i * 1000);
        bench.drain();
    }
    assert_eq!(bench.info().delivery_rate, Some(crate::Rate::from_bytes_per_second(100_000)));
    let acks = bench.script.lock().unwrap().acks.clone();
    let (view, sample) = acks.last().unwrap();
    assert!(!sample.rate.unwrap().app_limited);
    assert_eq!((view.delivered, sample.newly_delivered, sample.segments), (30_000, 1000, 1));
    assert_eq!(sample.rtt, Some(ms(100)));
    assert!(view.cwnd_limited);
}

/// A flight limits the flow once the window takes no further segment; a cap or a clock in the
/// window's place, and a burst, are no limit of the window.
#[test]
fn a_flight_that_fills_the_window_is_limited_by_it() {
    use crate::policy::cc::{Clock, SendDecision};
    type Tune = fn(&mut crate::ConnConfig, &mut SendDecision);
    let cases: [(u32, Tune, bool); 9] = [
        (10, |_, _| {}, true),
        (9, |_, _| {}, false),
        (10, |_, d| d.window = Window::from_bytes(10_999), true),
        (10, |_, d| d.window = Window::from_bytes(11_000), false),
        (10, |_, d| d.window = Window::from_bytes(9_001), true),
        (10, |config, _| config.cwnd_cap = Some(10_000), true),
        (10, |config, d| (config.cwnd_cap, d.window) = (Some(10_000), Window::from_bytes(10_001)), false),
        (5, |_, d| d.burst = 5, false),
        (10, |_, d| d.clock = Clock::Departure { max_outstanding: 10 }, false),
    ];
    for (i, (packets, tune, limited)) in cases.into_iter().enumerate() {
        let mut bench = Setup::default().open();
        let mut decision = SendDecision::window(Window::from_bytes(10_000), Window::MAX);
        tune(&mut bench.config, &mut decision);
        bench.decide(|d| *d = decision);
        bench.write(packets * SMSS);
        // A window that is not a multiple of the segment leaves the rest behind.
        let left = bench.drain().len() as u32;
        assert!(left == packets || decision.window.bytes() < 10_000, "case {i}: {left}");
        bench.ack(left * SMSS);
        let script = bench.script.lock().unwrap();
        let (view, _) = script.acks.last().unwrap();
        assert_eq!((view.cwnd_limited, view.flight_used), (limited, left * SMSS), "case {i}");
    }
}

/// The flight that an ACK reports is that of the window of data to which what it acknowledges
/// belongs.
#[test]
fn the_flight_used_is_that_of_the_last_window_of_data() {
    let mut bench = Setup { cwnd: Some(20), ..Setup::default() }.open();
    let mut told = Vec::new();
    for (write, ack) in [(8, 8), (3, 9), (0, 11), (2, 12), (0, 13)] {
        bench.write(write * SMSS);
        bench.drain();
        bench.ack(ack * SMSS);
        told.push(bench.script.lock().unwrap().acks.last().unwrap().0.flight_used / SMSS);
    }
    assert_eq!(told, [8, 3, 3, 2, 2]);
}

#[test]
fn app_limited_flow_is_told_from_a_limited_window() {
    let mut bench = Setup::default().open();
    bench.write(4 * SMSS);
    bench.drain();
    assert_eq!(bench.blocked(), Blocked::App);
    bench.pass(ms(100));
    bench.write(4 * SMSS);
    bench.drain();
    bench.ack(4000);
    bench.drain();
    bench.pass(ms(100));
    bench.ack(8000);
    let acks = bench.script.lock().unwrap().acks.clone();
    assert!(acks.iter().all(|(view, _)| !view.cwnd_limited));
    assert!(acks[1].1.rate.unwrap().app_limited);
}

#[test]
fn initial_window_after_a_lost_syn() {
    use crate::snd::{EarlyData, OpenParams, Sender};
    use crate::time::{Duration, Instant};
    let config = crate::ConnConfig::default();
    let mut observe = crate::ctx::Observe::for_test();
    let ctx = crate::ctx::Ctx {
        now: Instant::from_secs(1),
        id: crate::ConnId::for_test(0, 0),
        host: &crate::ctx::host_for_test(),
        observe: &mut observe,
    };
    let open = |smss, syn_timed_out, syn_lost| {
        let mut snd = Sender::new(&config, ISS);
        let params = OpenParams {
            smss,
            least_smss: 1,
            path: None,
            snd_wnd: 1 << 20,
            wl1: SeqNum(0),
            sack: true,
            timestamps: false,
            handshake_rtt: None,
            syn_timed_out,
            syn_lost,
            ecn: None,
            early: EarlyData::default(),
        };
        snd.open(&ctx, &config, &params);
        (snd.cc().unwrap().decision().window.bytes(), snd.stream.rtt.rto())
    };
    assert_eq!(open(1460, false, false), (14_600, Duration::from_secs(1)), "RFC 6928");
    assert_eq!(open(536, false, false), (5_360, Duration::from_secs(1)));
    assert_eq!(open(9000, false, false).0, 18_000);
    // RFC 5681, section 3.1; RFC 6298, 5.7.
    assert_eq!(open(1460, true, true), (1_460, Duration::from_secs(3)));
    assert_eq!(open(1460, true, false), (14_600, Duration::from_secs(3)), "it was late, not lost");
}

#[test]
fn idle_sender_is_small() {
    assert!(size_of::<crate::snd::Sender>() <= 296);
}

/// A super-packet of which a part was SACKed before the tags were cleared leaves again whole: that
/// part counts no second time, wherever the next report ends.
#[test]
fn a_byte_is_delivered_once() {
    for end in [2500, 3000, 3500, 10_000] {
        let mut bench = Setup { cwnd: Some(20), ..Setup::rack() }.open();
        bench.max_payload = 10 * SMSS;
        bench.write(10 * SMSS);
        bench.drain();
        bench.pass(ms(100));
        bench.sack(0, &[(2000, 4000)]);
        bench.snd.flight.as_deref_mut().unwrap().board.retag(
            false,
            crate::scoreboard::LostRange::All,
            &mut |_| {},
        );
        let left = bench.drain();
        assert_eq!((left.len(), left[0].1), (1, 10_000));
        bench.pass(ms(100));
        bench.ack(end);
        assert_eq!(bench.snd.stream.delivery.delivered, u64::from(end.max(4000)), "an ACK of {end}");
        bench.snd.flight.as_deref().unwrap().board.check();
        bench.ack(10_000);
        assert_eq!(bench.snd.stream.delivery.delivered, 10_000);
    }
}

/// A flight asks when it begins, and after each event that congestion control was told of; what an
/// application may have changed is asked for before the next event.
#[test]
fn the_decision_is_asked_for_once_after_each_event() {
    let mut bench = Setup::default().open();
    let asked = |bench: &Bench| core::mem::take(&mut bench.script.lock().unwrap().asked);
    bench.write(3 * SMSS);
    assert_eq!(asked(&bench), 0);
    assert_eq!(bench.drain().len(), 3);
    assert_eq!(asked(&bench), 1 + 3, "the flight, and three departures");
    bench.pass(ms(100));
    bench.ack(SMSS);
    assert_eq!(asked(&bench), 1);
    assert_eq!((bench.next(), asked(&bench)), (None, 0));
    bench.snd.cc();
    assert_eq!((bench.next(), asked(&bench)), (None, 1));
    assert_eq!((bench.next(), asked(&bench)), (None, 0));
}
