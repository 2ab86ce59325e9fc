//! Each control whose window follows losses and delays, alone before a bottleneck of 12 Mbit/s and
//! 40 ms: a fluid model, in which what exceeds the path's 40 segments is the queue. An ACK tells of
//! the queue that its segment found, a round trip ago.

use ackline_cc_algos::CC;
use ackline_tcp_core::policy::cc::{AckSample, CcInit, CongestionEvent, FlowView};
use ackline_tcp_core::{Duration, Instant, Window};
use std::collections::VecDeque;

const SMSS: u32 = 1_500;
/// Segments that the path holds without a queue, and nanoseconds between two at its rate.
const PATH: f64 = 40.0;
const GAP: f64 = 1e6;

/// Mean queue in segments, and the share of the rate that is used, in the second half of so many
/// seconds before a buffer of so many segments.
fn alone(name: &str, buffer: f64, seconds: u64) -> (f64, f64) {
    let entry = CC.iter().find(|entry| entry.name == name).unwrap();
    let start = Instant::from_secs(1);
    let init = CcInit::new(start, SMSS, Window::from_bytes(10 * u64::from(SMSS)));
    let mut cc = (entry.make)(&"".parse().unwrap()).unwrap()(&init);
    let mut view = FlowView::new(start, SMSS);
    let (middle, end) = (start + Duration::from_secs(seconds / 2), start + Duration::from_secs(seconds));
    // When a loss is noticed, and until where its episode lasts.
    let (mut overflowed, mut recovering) = (None, None);
    // When segments left, and the round trips that they find.
    let mut out = VecDeque::new();
    let mut seen = Duration::from_nanos((PATH * GAP) as u64);
    let (mut weighed, mut delivered) = (0.0, 0_u64);
    while view.now < end {
        let window = cc.decision().window.as_f64() / f64::from(SMSS);
        let queue = (window - PATH).clamp(0.0, buffer);
        let rtt = Duration::from_nanos(((PATH + queue) * GAP) as u64);
        let gap = if window >= PATH { GAP } else { PATH * GAP / window.max(1.0) };
        view.now += Duration::from_nanos(gap as u64);
        out.push_back((view.now, rtt));
        while let Some((_, back)) = out.front().copied().filter(|(left, rtt)| *left + *rtt <= view.now) {
            seen = back;
            out.pop_front();
        }
        view.snd_una += SMSS;
        view.snd_nxt = view.snd_una + cc.decision().window.bytes() as u32;
        view.flight_size = cc.decision().window.bytes() as u32;
        view.flight_used = view.flight_size;
        view.delivered += u64::from(SMSS);
        view.srtt = Some(
            view.srtt.map_or(seen, |srtt| Duration::from_nanos((7 * srtt.as_nanos() + seen.as_nanos()) / 8)),
        );
        if view.now >= middle {
            weighed += queue * gap;
            delivered += 1;
        }
        if window > PATH + buffer && overflowed.is_none() && recovering.is_none() {
            overflowed = Some(view.now + rtt);
        }
        if overflowed.is_some_and(|at| view.now >= at) {
            overflowed = None;
            recovering = Some(view.snd_nxt);
            cc.checkpoint(&view);
            cc.on_congestion(&view, &CongestionEvent::Loss { prior_pipe: view.flight_size });
        }
        if recovering.is_some_and(|until| view.snd_una.ge(until)) {
            recovering = None;
        }
        let mut ack = AckSample::new(SMSS, 1);
        (ack.rtt, ack.rtt_oldest) = (Some(seen), Some(seen));
        cc.on_ack(&view, &ack);
    }
    let time = end.since(middle).as_nanos() as f64;
    (weighed / time, delivered as f64 * GAP / time)
}

/// Control, buffer in segments; bounds of the mean queue in segments, and of the rate that is used.
type Case = (&'static str, f64, std::ops::RangeInclusive<f64>, f64);

#[test]
fn each_keeps_the_queue_that_it_aims_at() {
    let cases: [Case; 8] = [
        // Two to four segments, by definition.
        ("vegas", 80.0, 1.5..=4.5, 0.97),
        // At most 60 ms, which are 60 segments here, less the slowdowns.
        ("ledbat", 160.0, 20.0..=65.0, 0.85),
        // Between none and 2.5 / delta segments (section 3), delta = 0.5.
        ("copa", 80.0, 1.0..=5.0, 0.97),
        // The rest fill the buffer, and give up no more than it holds.
        ("westwood", 40.0, 10.0..=40.0, 0.95),
        ("illinois", 40.0, 10.0..=40.0, 0.95),
        ("htcp", 40.0, 10.0..=40.0, 0.95),
        ("reno", 40.0, 10.0..=40.0, 0.95),
        ("cubic", 40.0, 10.0..=40.0, 0.95),
    ];
    let mut wrong = Vec::new();
    for (name, buffer, queue, used) in cases {
        let is = alone(name, buffer, 120);
        if !queue.contains(&is.0) || !(used..=1.01).contains(&is.1) {
            wrong.push(format!("{name}: a queue of {:.1} segments, {:.3} of the rate", is.0, is.1));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
