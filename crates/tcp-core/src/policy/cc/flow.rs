//! The sender as an algorithm sees it.

use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;

/// The phase of a sender's loss handling, with Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Phase {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate or selective ACKs have come, but no loss is declared.
    Disorder,
    /// Fast recovery: a loss was found from ACKs.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

/// The sender as an algorithm sees it. All sequence-space quantities are in payload bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowView {
    /// The time of the event.
    pub now: Instant,
    /// Sender maximum segment size in payload bytes.
    pub smss: u32,
    /// Oldest unacknowledged sequence number.
    pub snd_una: SeqNum,
    /// Next sequence number to be sent for the first time.
    pub snd_nxt: SeqNum,
    /// The peer's receive window, scaled, in bytes.
    pub snd_wnd: u32,
    /// Bytes believed to be in the network (RFC 6675, section 4).
    pub pipe: u32,
    /// `snd_nxt - snd_una` (RFC 5681, section 2).
    pub flight_size: u32,
    /// Bytes above `snd_una` that SACK blocks report as received.
    pub sacked: u32,
    /// Bytes acknowledged or SACKed since the connection began.
    pub delivered: u64,
    /// When the oldest outstanding segment last left.
    pub oldest_departure: Option<Instant>,
    /// Smoothed RTT from the newest covered segments, free of the receiver's delay. None before a sample.
    pub srtt_pace: Option<Duration>,
    /// Smoothed RTT of RFC 6298, which feeds the RTO. None before a sample.
    pub srtt: Option<Duration>,
    /// Smallest RTT sample of the last five minutes. None before a sample.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout in force, without back-off.
    pub rto: Duration,
    /// Phase of loss handling.
    pub phase: Phase,
    /// The application had nothing to send when there was room.
    pub app_limited: bool,
    /// The window was the limit: what the ACK acknowledges, or what is outstanding, left when the window had no room
    /// for a further segment, or when the window (or, with [`Clock::Departure`](super::Clock::Departure), the clock, or a pace that follows
    /// from the window) held back data.
    pub cwnd_limited: bool,
    /// The largest flight, in bytes, of the window of data that is outstanding or has just been acknowledged.
    pub flight_used: u32,
}

impl FlowView {
    /// A view of a quiet sender at `now`, for tests of algorithms.
    #[must_use]
    pub const fn new(now: Instant, smss: u32) -> Self {
        Self {
            now,
            smss,
            snd_una: SeqNum(0),
            snd_nxt: SeqNum(0),
            snd_wnd: u32::MAX,
            pipe: 0,
            flight_size: 0,
            sacked: 0,
            delivered: 0,
            oldest_departure: None,
            srtt_pace: None,
            srtt: None,
            min_rtt: None,
            rto: Duration::from_secs(1),
            phase: Phase::Open,
            app_limited: false,
            cwnd_limited: true,
            flight_used: 0,
        }
    }

    /// Whether an ACK may raise `window`, because the flow uses it.
    ///
    /// In congestion avoidance the window must have been the limit. In slow start, below `ssthresh`, a window of less
    /// than twice the largest flight is enough: it doubles what the path has carried, and no more (Linux,
    /// `tcp_is_cwnd_limited`; RFC 7661 calls a window validated from half of it on).
    #[must_use]
    pub fn may_raise(&self, window: Window, ssthresh: Window) -> bool {
        let twice = Window::from_bytes(2 * u64::from(self.flight_used));
        self.cwnd_limited || (window < ssthresh && window < twice)
    }
}

impl FlowView {
    /// The longest round trip that a pace should follow: a second, or eight times [`min_rtt`](Self::min_rtt) where that
    /// is longer, up to a minute. [`srtt_pace`](Self::srtt_pace) keeps to it; so should an algorithm that smooths samples itself.
    #[must_use]
    pub fn longest_paced_rtt(&self) -> Duration {
        longest_paced_rtt(self.min_rtt)
    }
}

/// Round trips up to this one set a pace, whatever the path's smallest one: the time that RFC 6298 (2.1) takes for the
/// RTT of an unknown path.
const ORDINARY_RTT: Duration = Duration::from_secs(1);
/// Round trips up to so many times the smallest one of late set a pace.
const PACED_MULTIPLE: u64 = 8;
/// No round trip above this one sets a pace: the least that RFC 6298 (2.5) allows as the limit of the RTO. A peer that holds its
/// first ACKs back for days would otherwise stop the flow for as long.
const LONGEST_RTT: Duration = Duration::from_secs(60);

/// The longest round trip that sets a pace, on a path whose smallest one of late is `min_rtt`.
///
/// A path that stood still for minutes gives samples of minutes, and says nothing of its round trip thereafter. A pace made
/// of them lets one segment out per minute, each of which then gives one sample: the estimate recovers slower than the
/// path by orders of magnitude. A window that is paced too fast costs little, because the window still bounds the flight.
pub(crate) fn longest_paced_rtt(min_rtt: Option<Duration>) -> Duration {
    min_rtt.map_or(LONGEST_RTT, |min| min.saturating_mul(PACED_MULTIPLE).clamp(ORDINARY_RTT, LONGEST_RTT))
}

#[cfg(test)]
mod tests {
    use super::FlowView;
    use crate::time::Instant;
    use crate::units::Window;

    /// Flight, window, `ssthresh`, whether the window was the limit; whether the window may grow.
    #[test]
    fn a_window_grows_while_it_is_less_than_twice_the_flight_in_slow_start() {
        for (flight, window, ssthresh, limited, grows) in [
            (10, 10, u64::MAX, false, true),
            (6, 11, u64::MAX, false, true),
            (5, 10, u64::MAX, false, false),
            (0, 1, u64::MAX, false, false),
            (5, 10, u64::MAX, true, true),
            // At `ssthresh` congestion avoidance begins.
            (10, 10, 11, false, true),
            (10, 10, 10, false, false),
            (10, 10, 10, true, true),
            (u32::MAX, 1 << 32, u64::MAX, false, true),
        ] {
            let mut view = FlowView::new(Instant::ZERO, 1);
            (view.flight_used, view.cwnd_limited) = (flight, limited);
            let ssthresh = if ssthresh == u64::MAX { Window::MAX } else { Window::from_bytes(ssthresh) };
            let case = (flight, window, ssthresh, limited);
            assert_eq!(view.may_raise(Window::from_bytes(window), ssthresh), grows, "{case:?}");
        }
    }
}
