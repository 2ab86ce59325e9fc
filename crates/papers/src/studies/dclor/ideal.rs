//! The floor: what a download takes over the impaired path where nothing is dropped, and the sender
//! never believes that something was.
//!
//! A model of its own, which shares nothing with the simulator and the stack but the stalls. One
//! connection at a time; the sender is clocked by its ACKs, in slow start from the initial window
//! on, up to the receive window; every segment is acknowledged when it arrives, as they come 240 ms
//! apart and a delayed ACK would not wait so long.

use ackline_netsim::stis::{Stalls, StisParams};
use ackline_netsim::{SimRng, serialisation};
use ackline_tcp_core::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is varied.
#[derive(Clone, Debug)]
pub(super) struct Ideal {
    pub(super) path: StisParams,
    /// Segments.
    pub(super) initial_window: u64,
    /// The longest wait after a download, s; waits are uniform from zero on.
    pub(super) wait_s: f64,
}

/// The largest payload of a segment, and the bytes of a header, of a SYN, and of an ACK.
const MSS: u64 = 1_460;
const HEADER: u64 = 40;
const SYN: u64 = 48;
const RECEIVE_WINDOW: u64 = 65_535 / MSS;
/// The interface on which data arrives at the path.
const INTERFACE: u64 = 10_000_000;

const FORWARD: usize = 0;
const BACK: usize = 1;

/// The path with what it remembers.
struct Path<'a> {
    params: &'a StisParams,
    stalls: Stalls,
    rng: SimRng,
    last_departure: [Instant; 2],
    takes_longer: [bool; 2],
}

impl Path<'_> {
    /// When a packet of `bytes` that is sent at `at` arrives. Calls of one direction are in the
    /// order of their times.
    fn cross(&mut self, way: usize, at: Instant, bytes: u64) -> Instant {
        let params = self.params;
        let arrival = self.stalls.released(at + serialisation(INTERFACE, bytes));
        let begin = arrival.max(self.last_departure[way]);
        let work = serialisation(params.rate, bytes);
        let departure =
            if params.stall_stops_service { self.stalls.finish(begin, work) } else { begin + work };
        self.last_departure[way] = departure;
        self.takes_longer[way] ^= self.rng.chance(params.route_switch);
        let route = if self.takes_longer[way] { params.route_delay } else { Duration::ZERO };
        departure + params.delay + route
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A segment arrives at the receiver, by its number.
    Data(u64),
    /// An ACK for so many segments arrives at the sender.
    Ack(u64),
}

impl Ideal {
    /// Times of `files` downloads of `bytes`, s.
    pub(super) fn times(&self, bytes: u64, files: usize, seed: u64) -> Vec<f64> {
        let stalls = Stalls::new(self.path.stalls.clone(), self.path.stall_every, SimRng::new(seed, 1));
        let mut path = Path {
            params: &self.path,
            stalls,
            rng: SimRng::new(seed, 2),
            last_departure: [Instant::ZERO; 2],
            takes_longer: [false; 2],
        };
        let mut waits = SimRng::new(seed, 3);
        let mut now = Instant::ZERO;
        let mut times = vec![];
        for _ in 0..files {
            path.stalls.forget_before(now);
            let end = self.download(&mut path, now, bytes);
            times.push(end.since(now).as_secs_f64());
            let wait = Duration::from_nanos((waits.unit() * self.wait_s * 1e9) as u64);
            now = end + wait;
        }
        times
    }

    fn download(&self, path: &mut Path<'_>, begin: Instant, bytes: u64) -> Instant {
        let segments = bytes.div_ceil(MSS);
        let size = |number: u64| HEADER + (bytes - number * MSS).min(MSS);
        let at = path.cross(BACK, begin, SYN);
        let at = path.cross(FORWARD, at, SYN);
        let accepted = path.cross(BACK, at, HEADER);

        let mut future = BinaryHeap::new();
        let (mut sent, mut acked, mut window) = (0, 0, self.initial_window);
        let mut arrived = vec![false; segments as usize];
        let mut in_order = 0;
        let mut now = accepted;
        loop {
            while sent < segments && sent < acked + window.min(RECEIVE_WINDOW) {
                let at = path.cross(FORWARD, now, size(sent));
                future.push(Reverse((at, Event::Data(sent))));
                sent += 1;
            }
            let Some(Reverse((at, event))) = future.pop() else { return now };
            now = at;
            match event {
                Event::Data(number) => {
                    arrived[number as usize] = true;
                    while arrived.get(in_order).is_some_and(|arrived| *arrived) {
                        in_order += 1;
                    }
                    if in_order as u64 == segments {
                        return now;
                    }
                    let at = path.cross(BACK, now, HEADER);
                    future.push(Reverse((at, Event::Ack(in_order as u64))));
                }
                Event::Ack(segments) => {
                    window += segments.saturating_sub(acked);
                    acked = acked.max(segments);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> Ideal {
        let path = StisParams { stalls: vec![], route_switch: 0.0, ..StisParams::default() };
        Ideal { path, initial_window: 3, wait_s: 0.0 }
    }

    /// Two SYNs and an ACK, and then as many full segments as it takes, one behind the other: the
    /// fourth segment's ACK clock is faster than the line.
    #[test]
    fn without_stalls_the_line_alone_counts() {
        let line = |bytes: u64| (8 * bytes) as f64 / 50e3;
        let interface = |bytes: u64| (8 * bytes) as f64 / 10e6;
        let handshake = 2.0 * (line(48) + interface(48)) + line(40) + interface(40) + 0.6;
        for (bytes, segments) in [(5_120, 4), (10_240, 8), (102_400, 71)] {
            let time = calm().times(bytes, 1, 1)[0];
            let data = interface(1_500) + line(bytes + 40 * segments) + 0.2;
            assert!((time - handshake - data).abs() < 1e-6, "{bytes}: {time} {}", handshake + data);
        }
    }

    #[test]
    fn a_stall_in_the_middle_costs_what_it_lasts() {
        let mut ideal = calm();
        // From the first second on: five seconds, then one second up.
        ideal.path.stalls =
            vec![ackline_netsim::stis::StallKind { probability: 1.0, lasts: Duration::from_secs(5) }];
        let calm = calm().times(5_120, 1, 1)[0];
        let stalled = ideal.times(5_120, 1, 1)[0];
        assert!(calm > 1.2 && calm < 2.0, "{calm}");
        assert!((stalled - calm - 5.0).abs() < 1e-6, "{stalled}");
    }
}
