//! Use of the congestion window by the flow: the condition for raising it.
//!
//! A window that the flow does not fill says nothing about the path, and must not grow without
//! limit (RFC 7661). A flight that fills it has used it, whether or not more data is waiting. Like
//! Linux (`tcp_cwnd_validate`), the sender keeps two facts about the outstanding window of data: up
//! to which sequence number the window was full, and the largest flight.
//!
//! ```text
//!          una                                    nxt
//!   ────────┬──────────────────────────────────────┬────
//!           │◄────────── largest flight ──────────►│
//!           │              ▲ limited               ▲ until: when this is acknowledged, the next window begins
//! ```

use crate::seq::SeqNum;

/// How the flow uses its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowUse {
    /// Data up to here was sent while the window was full or held back more.
    limited: SeqNum,
    /// The largest flight of the current window of data, in bytes.
    largest: u32,
    /// SND.NXT when the flight was largest; the next window of data starts when this is
    /// acknowledged.
    until: SeqNum,
}

impl WindowUse {
    /// Nothing is outstanding.
    pub(crate) const fn new(una: SeqNum) -> Self {
        Self { limited: una, largest: 0, until: una }
    }

    /// The window limits data before `seq`.
    pub(crate) fn limit(&mut self, seq: SeqNum) {
        self.limited = seq;
    }

    /// New data was sent, so `[una, nxt)` is outstanding; `full`: the window has no room for
    /// another segment.
    pub(crate) fn on_sent(&mut self, una: SeqNum, nxt: SeqNum, full: bool) {
        let flight = nxt.distance_from(una);
        if una.ge(self.until) || flight > self.largest {
            self.largest = flight;
            self.until = nxt;
        }
        if full {
            self.limited = nxt;
        }
    }

    /// SND.UNA moved: keeps the marks within half the sequence space of it.
    pub(crate) fn on_advance(&mut self, una: SeqNum) {
        self.limited = self.limited.max(una);
        self.until = self.until.max(una);
    }

    /// True if the window limited the data that starts at `una`.
    pub(crate) fn is_limited(&self, una: SeqNum) -> bool {
        self.limited.gt(una)
    }

    /// The largest flight of the window of data that is outstanding, or that the current ACK
    /// completes.
    pub(crate) const fn largest_flight(&self) -> u32 {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::WindowUse;
    use crate::seq::SeqNum;

    const UNA: SeqNum = SeqNum(u32::MAX - 10);

    /// (una, nxt) of departures, and the largest flight after each.
    #[test]
    fn the_largest_flight_is_that_of_the_window_of_data() {
        let mut used = WindowUse::new(UNA);
        for (una, nxt, largest) in [
            (0, 3, 3),
            (0, 9, 9),
            (4, 10, 9),
            (8, 16, 9),
            // What left when the flight was 9 is acknowledged one before, and then.
            (8, 17, 9),
            (9, 17, 8),
            (16, 17, 8),
            (17, 18, 1),
            (17, 19, 2),
        ] {
            used.on_advance(UNA + una);
            used.on_sent(UNA + una, UNA + nxt, false);
            assert_eq!(used.largest_flight(), largest, "{una}..{nxt}");
            assert!(!used.is_limited(UNA + una));
        }
    }

    #[test]
    fn what_left_before_the_window_was_full_is_limited_up_to_its_last_byte() {
        let mut used = WindowUse::new(UNA);
        used.on_sent(UNA, UNA + 4, false);
        assert!(!used.is_limited(UNA));
        used.on_sent(UNA, UNA + 8, true);
        assert!(used.is_limited(UNA));
        used.on_advance(UNA + 7);
        used.on_sent(UNA + 7, UNA + 9, false);
        assert!(used.is_limited(UNA + 7), "the last byte of what filled the window");
        used.on_advance(UNA + 8);
        assert!(!used.is_limited(UNA + 8));
    }
}
