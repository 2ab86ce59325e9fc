//! What the sender's time went into.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::events::WakeReason::{Rto, Trim};
use crate::info::{Blocked, Info};
use crate::policy::cc::Phase;
use crate::time::Duration;
use alloc::vec::Vec;

/// Busy, limited by the peer's window, limited by the send buffer; in milliseconds.
fn times(info: &Info) -> (u64, u64, u64) {
    let Info { busy_time, rwnd_limited, sndbuf_limited, .. } = info;
    (busy_time.as_millis(), rwnd_limited.as_millis(), sndbuf_limited.as_millis())
}

#[test]
fn a_sender_is_busy_until_the_last_byte_is_acknowledged() {
    let mut bench = Setup::default().open();
    bench.pass(ms(500));
    assert_eq!(times(&bench.info()), (0, 0, 0), "nothing was written");
    bench.write(12 * SMSS);
    assert_eq!(bench.drain().len(), 10);
    bench.pass(ms(100));
    assert_eq!((bench.blocked(), times(&bench.info())), (Blocked::CongestionWindow, (100, 0, 0)));
    bench.ack(10 * SMSS);
    assert_eq!(bench.drain().len(), 2);
    bench.pass(ms(30));
    assert_eq!((bench.blocked(), times(&bench.info())), (Blocked::App, (130, 0, 0)));
    bench.ack(12 * SMSS);
    assert!(bench.drain().is_empty());
    bench.pass(ms(400));
    assert_eq!(times(&bench.info()), (130, 0, 0));
    // Another message in the same flight.
    bench.write(1);
    bench.drain();
    bench.pass(ms(7));
    bench.ack(12 * SMSS + 1);
    bench.drain();
    assert_eq!(times(&bench.info()), (137, 0, 0));
}

#[test]
fn the_peers_window_limits_while_it_has_no_room() {
    let mut bench = Setup { wnd: 2 * SMSS, ..Setup::default() }.open();
    bench.write(5 * SMSS);
    assert_eq!(bench.drain().len(), 2);
    bench.pass(ms(40));
    assert_eq!((bench.blocked(), times(&bench.info())), (Blocked::ReceiveWindow, (40, 40, 0)));
    // ACKs let some go, and the window is full again at once: the time goes on.
    bench.ack(SMSS);
    assert_eq!(bench.drain().len(), 1);
    bench.pass(ms(10));
    assert_eq!(times(&bench.info()), (50, 50, 0));
    bench.wnd = 100 * SMSS;
    bench.ack(2 * SMSS);
    assert_eq!(bench.drain().len(), 2);
    bench.pass(ms(25));
    assert_eq!(times(&bench.info()), (75, 50, 0));
    // A closed window before anything is outstanding.
    bench.wnd = 0;
    bench.ack(5 * SMSS);
    bench.drain();
    bench.pass(ms(1_000));
    bench.write(10);
    assert!(bench.drain().is_empty());
    bench.pass(ms(5));
    assert_eq!(times(&bench.info()), (80, 55, 0));
}

#[test]
fn the_send_buffer_limits_a_writer_who_has_more() {
    let mut setup = Setup::default();
    setup.config.send_buffer = 4 * SMSS;
    let mut bench = setup.open();
    // The writer has no more than this.
    bench.write(4 * SMSS);
    bench.snd.note_write(true);
    assert_eq!(bench.drain().len(), 4);
    bench.pass(ms(100));
    assert_eq!(times(&bench.info()), (100, 0, 0), "it is limited by the application");
    bench.ack(4 * SMSS);
    bench.drain();
    // Now it has.
    bench.write(4 * SMSS);
    bench.snd.note_write(false);
    assert_eq!(bench.drain().len(), 4);
    bench.pass(ms(60));
    assert_eq!((bench.blocked(), times(&bench.info())), (Blocked::App, (160, 0, 60)));
    // With the congestion window full, that is the limit.
    bench.set_cwnd(4);
    bench.ack(5 * SMSS);
    bench.write(SMSS);
    assert_eq!(bench.drain().len(), 1);
    bench.pass(ms(20));
    assert_eq!(times(&bench.info()), (180, 0, 60));
}

/// What waits in the scheduler fills the peer's window, but the window is not what it waits for.
#[test]
fn time_in_the_scheduler_is_not_the_windows() {
    let mut bench = Setup { wnd: 3 * SMSS, ..Setup::default() }.open();
    bench.write(5 * SMSS);
    let mut queued = Vec::new();
    while let Some(out) = bench.next() {
        bench.snd.reserve(&out, queued.len() as u64);
        queued.push(out);
    }
    assert_eq!(queued.len(), 3);
    let limited = |bench: &Bench| {
        let info = bench.info();
        (info.blocked, times(&info), info.sched_limited.as_millis())
    };
    bench.pass(ms(40));
    assert_eq!(limited(&bench), (Blocked::Scheduler, (40, 0, 0), 40));
    bench.sent(&queued[0]);
    bench.pass(ms(10));
    assert_eq!(limited(&bench), (Blocked::Scheduler, (50, 0, 0), 50), "two are still in the queue");
    bench.sent(&queued[1]);
    bench.sent(&queued[2]);
    // All of the window is in the network.
    bench.pass(ms(30));
    assert_eq!(limited(&bench), (Blocked::ReceiveWindow, (80, 30, 0), 50));
    bench.ack(3 * SMSS);
    let last = bench.next().expect("there is room");
    bench.snd.on_deferred(bench.now);
    bench.pass(ms(7));
    assert_eq!(limited(&bench).1, (87, 30, 0));
    assert_eq!(bench.info().sched_limited.as_millis(), 57, "it was deferred");
    bench.sent(&last);
    bench.drain();
    bench.ack(5 * SMSS);
    bench.drain();
    bench.pass(ms(2_000));
    assert_eq!(bench.fire(), Trim);
    assert_eq!(bench.info().sched_limited.as_millis(), 57, "it outlives the flight");
}

#[test]
fn times_outlive_the_flight() {
    let mut setup = Setup { wnd: 2 * SMSS, ..Setup::default() };
    setup.config.send_buffer = 4 * SMSS;
    let mut bench = setup.open();
    bench.write(3 * SMSS);
    bench.drain();
    bench.pass(ms(300));
    bench.wnd = 100 * SMSS;
    bench.ack(2 * SMSS);
    bench.write(3 * SMSS);
    bench.snd.note_write(false);
    bench.drain();
    bench.pass(ms(200));
    bench.ack(6 * SMSS);
    bench.drain();
    let before = times(&bench.info());
    assert_eq!(before, (500, 300, 200));
    bench.pass(ms(2_000));
    assert_eq!(bench.fire(), Trim);
    assert!(bench.snd.flight.is_none());
    let after = times(&bench.info());
    assert!((499..=501).contains(&after.0), "{after:?}");
    assert_eq!((after.1, after.2), (300, 200), "to the nanosecond");
    bench.write(SMSS);
    bench.drain();
    bench.pass(ms(50));
    assert_eq!(bench.info().busy_time.as_millis(), after.0 + 50);
    bench.snd.discard(bench.now);
    bench.pass(ms(50));
    assert!((548..=552).contains(&times(&bench.info()).0), "the end stops the clock");
}

/// Requests of a third of a millisecond, each in a flight of its own.
#[test]
fn many_short_times_add_up() {
    let mut bench = Setup::default().open();
    let mut acked = 0;
    for _ in 0..1_000 {
        bench.write(100);
        bench.drain();
        bench.pass(Duration::from_nanos(333_333));
        acked += 100;
        bench.ack(acked);
        bench.drain();
        assert_eq!(bench.fire(), Trim);
        bench.pass(Duration::from_nanos(77_777_777));
    }
    let busy = bench.info().busy_time.as_millis();
    assert!((300..=366).contains(&busy), "{busy} ms instead of 333");
}

#[test]
fn the_time_of_a_recovery_by_timeout_ends_with_it() {
    let mut bench = Setup::default().open();
    bench.write(3 * SMSS);
    bench.drain();
    let total = |bench: &Bench| bench.info().total_rto_time.as_millis();
    for _ in 0..3 {
        assert_eq!(bench.fire(), Rto);
        bench.drain();
    }
    assert_eq!((total(&bench), bench.info().retransmits), (600 + 1200, 3), "from the first expiry on");
    bench.pass(ms(100));
    assert_eq!((total(&bench), bench.info().ca_state), (1_900, Phase::Loss));
    bench.ack(SMSS);
    bench.drain();
    assert_eq!(bench.info().retransmits, 0);
    bench.pass(ms(50));
    bench.ack(3 * SMSS);
    assert_eq!((total(&bench), bench.info().ca_state), (1_950, Phase::Open));
    bench.pass(ms(5_000));
    assert_eq!(total(&bench), 1_950);
    // The next one adds to it, and the end of the connection ends it.
    bench.write(SMSS);
    bench.drain();
    assert_eq!(bench.fire(), Rto);
    bench.pass(ms(70));
    assert_eq!(total(&bench), 2_020);
    bench.snd.discard(bench.now);
    bench.pass(ms(70));
    assert_eq!((total(&bench), bench.info().total_rto_recoveries), (2_020, 2));
}

#[test]
fn a_window_that_stays_closed_is_probed_and_counted() {
    let mut bench = Setup { wnd: 0, ..Setup::default() }.open();
    bench.write(SMSS);
    bench.drain();
    for probes in 1..=3 {
        bench.fire();
        assert_eq!((bench.drain().len(), bench.info().probes), (1, probes));
    }
    bench.wnd = 10 * SMSS;
    bench.ack(0);
    bench.drain();
    assert_eq!(bench.info().probes, 0);
}
