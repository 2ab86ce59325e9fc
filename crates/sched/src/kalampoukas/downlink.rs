//! The rate of the downlink, from the densest stretches of what arrives.
//!
//! A link delivers the packets of a burst at its rate, however little it carries on average. Bursts
//! are frequent: an initial window, a flight in slow start, what a stretched ACK releases. So the
//! highest rate over [`SPAN`] successive arrivals is that of the narrowest link on the way.
//!
//! ```text
//!   arrivals  | | | | | | | | |           |           | | | | | | | | |         |         |
//!             └─ SPAN gaps ──┘ at the link's rate          paced by ACKs ─►   says nothing
//! ```
//!
//! While ACKs are held back, downloads are paced by the uplink, and a lower rate says nothing about
//! the downlink: the estimate only rises. While they are not, it also falls, within seconds.
//!
//! Where it fails: packets that the driver reads in one go arrive at one instant and count as one
//! arrival, but a driver that is late several times in a row sees more than the link's rate. ACKs
//! then get more than they need. The reverse happens if all senders pace their packets below the
//! link's rate.

use ackline_tcp_core::{Instant, Rate};

/// Gaps between arrivals over which the rate is measured. Not more than the packets of an initial
/// window less one (RFC 6928).
const SPAN: usize = 8;
/// The part of the estimate by which it falls at once: 1 / 8.
const FALL: u64 = 8;

/// An estimate of the downlink's rate.
#[derive(Debug, Default)]
pub(super) struct Downlink {
    /// The latest instants at which something arrived, and the bytes that had arrived by then; a
    /// ring.
    latest: [(Instant, u64); SPAN + 1],
    /// Instants put into the ring so far.
    count: usize,
    /// Bytes that arrived.
    bytes: u64,
    /// The highest rate since the last call of [`settle`](Self::settle).
    peak: Rate,
    /// The estimate at that call.
    settled: Rate,
}

impl Downlink {
    /// A packet of `len` bytes arrives.
    pub(super) fn on_arrival(&mut self, now: Instant, len: u32) {
        self.bytes += u64::from(len);
        let places = self.latest.len();
        if self.count == 0 || self.latest[(self.count - 1) % places].0 != now {
            self.count += 1;
        }
        let newest = (self.count - 1) % places;
        self.latest[newest] = (now, self.bytes);
        if self.count >= places {
            // The next place of the ring holds the oldest instant.
            let (at, bytes) = self.latest[(newest + 1) % places];
            self.peak = self.peak.max(Rate::from_bytes_over(self.bytes - bytes, now.since(at)));
        }
    }

    /// The rate; `None` if too little has arrived.
    pub(super) fn rate(&self) -> Option<Rate> {
        Some(self.peak.max(self.settled)).filter(|rate| *rate > Rate::default())
    }

    /// Ends a measurement. `held_back`: ACKs waited for data meanwhile, so that the downlink may
    /// have carried less than it can.
    pub(super) fn settle(&mut self, held_back: bool) {
        let before = self.settled.bytes_per_second();
        let kept = if held_back || self.peak == Rate::default() { before } else { before - before / FALL };
        self.settled = self.peak.max(Rate::from_bytes_per_second(kept));
        self.peak = Rate::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::Duration;

    /// `count` packets of 1,250 bytes, `gap` apart.
    fn arrive(downlink: &mut Downlink, now: &mut Instant, count: u32, gap: Duration) {
        for _ in 0..count {
            downlink.on_arrival(*now, 1_250);
            *now += gap;
        }
    }

    fn mbit(rate: u64) -> Option<Rate> {
        Some(Rate::from_bits_per_second(rate * 1_000_000))
    }

    #[test]
    fn an_initial_window_tells_the_rate_and_pacing_by_acks_does_not() {
        let (mut downlink, mut now) = (Downlink::default(), Instant::from_secs(3));
        // 10 Mbit/s.
        arrive(&mut downlink, &mut now, 8, Duration::from_millis(1));
        assert_eq!(downlink.rate(), None, "seven gaps");
        arrive(&mut downlink, &mut now, 2, Duration::from_millis(1));
        assert_eq!(downlink.rate(), mbit(10));
        for _ in 0..100 {
            arrive(&mut downlink, &mut now, 50, Duration::from_millis(10));
            downlink.settle(true);
        }
        assert_eq!(downlink.rate(), mbit(10));
    }

    #[test]
    fn it_falls_only_while_acks_are_free_to_leave() {
        let (mut downlink, mut now) = (Downlink::default(), Instant::ZERO);
        arrive(&mut downlink, &mut now, 20, Duration::from_millis(1));
        downlink.settle(false);
        downlink.settle(false);
        assert_eq!(downlink.rate(), mbit(10), "nothing arrived");
        now += Duration::from_secs(1);
        let mut rates = [0; 20];
        for rate in &mut rates {
            arrive(&mut downlink, &mut now, 100, Duration::from_millis(5));
            downlink.settle(false);
            *rate = downlink.rate().unwrap().bits_per_second();
        }
        assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
        assert_eq!(rates[0], 8_750_000);
        assert_eq!(downlink.rate(), mbit(2));
        // And it rises at once.
        arrive(&mut downlink, &mut now, 10, Duration::from_micros(100));
        assert_eq!(downlink.rate(), mbit(100));
    }

    #[test]
    fn what_is_read_in_one_go_is_one_arrival() {
        let (mut downlink, mut now) = (Downlink::default(), Instant::ZERO);
        for _ in 0..30 {
            // Four packets each 4 ms.
            arrive(&mut downlink, &mut now, 4, Duration::ZERO);
            now += Duration::from_millis(4);
        }
        assert_eq!(downlink.rate(), mbit(10));
    }
}
