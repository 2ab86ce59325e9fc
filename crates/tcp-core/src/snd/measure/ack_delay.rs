//! ACKs that the peer's delayed-ACK timer released. Their round-trip times contain that timer, and
//! do not set the pace.
//!
//! ```text
//!   ▼ segment                  ▼ segment, ▼ segment
//!   ├────── round trip ─────┤          ├── round trip ──┤
//!   ├────── round trip ─────┼──── timer, 40 ms or more ────┤     one where two are usual, and late
//! ```
//!
//! Such an ACK covers fewer segments than the peer's ACKs usually do, nothing else explains that it
//! came at once, and it is late. A path that has become longer looks the same for a while: after
//! [`MOST_IN_A_ROW`] the sample counts, and the estimate of what is usual begins anew.

use crate::scoreboard::AckCx;
use crate::time::Duration;

/// A sample is late if it is longer than the smoothed one by this, or by four mean deviations if
/// that is more.
const LEAST_DELAY: Duration = Duration::from_millis(5);
/// Number of late ACKs in a row that may be the timer's.
const MOST_IN_A_ROW: u8 = 8;

/// Recognises ACKs of the timer by the ACKs before.
#[derive(Debug, Default)]
pub(in crate::snd) struct AckDelay {
    /// The most segments that an ACK has covered.
    usual: u32,
    /// Late ACKs of fewer segments since the last other one.
    late: u8,
    /// The last ACK carried ECE.
    ece: bool,
    /// Mean deviation of the samples from the smoothed one, in ns, times 4.
    deviation: u64,
}

impl AckDelay {
    /// True if the peer's timer released `ack`, whose newest segment gives the sample `rtt`. `pace`
    /// is the smoothed one; `fin`: the ACK covers a FIN, which a peer acknowledges at once.
    pub(in crate::snd) fn is_timer(
        &mut self,
        ack: &AckCx,
        rtt: Duration,
        pace: Option<Duration>,
        fin: bool,
    ) -> bool {
        // RFC 8257, section 3.2: a receiver acknowledges at once when the mark changes.
        let marked = core::mem::replace(&mut self.ece, ack.facts.ece) != ack.facts.ece;
        let Some(pace) = pace else { return false };
        let deviation = Duration::from_nanos(self.deviation);
        let is_late = rtt > pace.saturating_add(deviation.max(LEAST_DELAY));
        let explained = marked || fin || ack.facts.sack_option;
        if is_late && ack.segments < self.usual && !explained {
            self.late += 1;
            if self.late <= MOST_IN_A_ROW {
                return true;
            }
            self.usual = 0;
        }
        self.usual = self.usual.max(ack.segments);
        self.late = 0;
        let error = rtt.as_nanos().abs_diff(pace.as_nanos());
        self.deviation = (self.deviation - (self.deviation >> 2)).saturating_add(error);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::SeqNum;
    use crate::time::Instant;

    fn ack(segments: u32) -> AckCx {
        let mut ack = AckCx::new(Instant::from_secs(1), SeqNum(0), SeqNum(1));
        ack.segments = segments;
        ack
    }

    const RTT: Duration = Duration::from_millis(1);
    const HELD: Duration = Duration::from_millis(41);

    /// A peer that acknowledges every second segment.
    fn steady() -> AckDelay {
        let mut delay = AckDelay::default();
        assert!(!delay.is_timer(&ack(2), RTT, Some(RTT), false));
        delay
    }

    #[test]
    fn one_late_segment_where_two_are_usual_waited_for_the_timer() {
        assert!(steady().is_timer(&ack(1), HELD, Some(RTT), false));
        assert!(!steady().is_timer(&ack(2), HELD, Some(RTT), false), "as many as usual: the path");
        assert!(!steady().is_timer(&ack(1), RTT, Some(RTT), false), "not late");
        let within = RTT.saturating_add(LEAST_DELAY);
        assert!(!steady().is_timer(&ack(1), within, Some(RTT), false), "5 ms are no timer");
        assert!(!AckDelay::default().is_timer(&ack(1), HELD, Some(RTT), false), "a peer that holds nothing");
    }

    #[test]
    fn what_makes_a_peer_acknowledge_at_once_explains_few_segments() {
        assert!(!steady().is_timer(&ack(1), HELD, Some(RTT), true), "a FIN");
        let mut marked = ack(1);
        marked.facts.ece = true;
        let mut delay = steady();
        assert!(!delay.is_timer(&marked, HELD, Some(RTT), false), "the mark changes");
        delay.deviation = 0;
        assert!(delay.is_timer(&marked, HELD, Some(RTT), false), "and stays");
        let mut sacked = ack(1);
        sacked.facts.sack_option = true;
        assert!(!steady().is_timer(&sacked, HELD, Some(RTT), false), "a hole");
    }

    #[test]
    fn a_longer_path_is_believed_after_eight_late_acks() {
        let mut delay = steady();
        for n in 1..=MOST_IN_A_ROW {
            assert!(delay.is_timer(&ack(1), HELD, Some(RTT), false), "{n}");
        }
        for _ in 0..3 {
            assert!(!delay.is_timer(&ack(1), HELD, Some(RTT), false));
        }
    }

    #[test]
    fn what_varies_widely_is_late_later() {
        let mut delay = AckDelay::default();
        // 1 ms and 9 ms in turn around 5: the mean deviation is 4 ms.
        for n in 0..100 {
            let rtt = Duration::from_millis(1 + 8 * (n % 2));
            assert!(!delay.is_timer(&ack(2), rtt, Some(Duration::from_millis(5)), false));
        }
        let after = |millis: u64| Duration::from_millis(5 + millis);
        assert!(!delay.is_timer(&ack(1), after(15), Some(after(0)), false));
        assert!(delay.is_timer(&ack(1), after(60), Some(after(0)), false));
    }
}
