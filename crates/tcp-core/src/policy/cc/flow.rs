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
    /// Duplicate or selective ACKs have arrived, but no loss is declared.
    Disorder,
    /// Fast recovery: a loss was detected from ACKs.
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
    /// Last departure of the oldest outstanding segment.
    pub oldest_departure: Option<Instant>,
    /// Smoothed RTT of the newest covered segments, without the receiver's delay. `None` before a
    /// sample.
    pub srtt_pace: Option<Duration>,
    /// Smoothed RTT of RFC 6298, used for the RTO. `None` before a sample.
    pub srtt: Option<Duration>,
    /// RTTVAR of RFC 6298. `None` before a sample.
    pub rttvar: Option<Duration>,
    /// Smallest RTT sample of the last five minutes. `None` before a sample.
    pub min_rtt: Option<Duration>,
    /// The current retransmission timeout, without back-off.
    pub rto: Duration,
    /// Phase of loss handling.
    pub phase: Phase,
    /// SACK is in use: losses are known one by one.
    pub has_sack: bool,
    /// The application had nothing to send although the window had room.
    pub app_limited: bool,
    /// The window was the limit: the acknowledged or outstanding data was sent when the window had
    /// no room for another segment, or when the window (or, with
    /// [`Clock::Departure`](super::Clock::Departure), the clock, or a pace derived from the window)
    /// held back data.
    pub cwnd_limited: bool,
    /// The largest flight, in bytes, in the window of data that is outstanding or was just
    /// acknowledged.
    pub flight_used: u32,
}

impl FlowView {
    /// A view of an idle sender at `now`, for tests of algorithms.
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
            rttvar: None,
            min_rtt: None,
            rto: Duration::from_secs(1),
            phase: Phase::Open,
            has_sack: true,
            app_limited: false,
            cwnd_limited: true,
            flight_used: 0,
        }
    }

    /// Whether an ACK may raise `window`: only if the flow uses it.
    ///
    /// In congestion avoidance the window must have been the limit. In slow start, below
    /// `ssthresh`, the window may grow while it is less than twice the largest flight: up to double
    /// what the path has carried (Linux, `tcp_is_cwnd_limited`; RFC 7661 considers a window
    /// validated if at least half is used).
    #[must_use]
    pub fn may_raise(&self, window: Window, ssthresh: Window) -> bool {
        let twice = Window::from_bytes(2 * u64::from(self.flight_used));
        self.cwnd_limited || (window < ssthresh && window < twice)
    }
}

impl FlowView {
    /// The longest round trip to pace by: a second, or eight times [`min_rtt`](Self::min_rtt) if
    /// that is longer, up to a minute. [`srtt_pace`](Self::srtt_pace) respects it; an algorithm
    /// that smooths samples itself should, too.
    #[must_use]
    pub fn longest_paced_rtt(&self) -> Duration {
        longest_paced_rtt(self.min_rtt)
    }
}

/// Round trips up to this are always used for pacing: the RTT that RFC 6298 (2.1) assumes for an
/// unknown path.
const ORDINARY_RTT: Duration = Duration::from_secs(1);
/// Round trips up to this multiple of the recent minimum are used for pacing.
const PACED_MULTIPLE: u64 = 8;
/// No longer round trip is used for pacing: the smallest maximum RTO allowed by RFC 6298 (2.5).
/// Otherwise a peer that holds back its first ACKs for days would stop the flow for as long.
const LONGEST_RTT: Duration = Duration::from_secs(60);

/// The longest round trip used for pacing on a path whose recent minimum is `min_rtt`.
///
/// A path that stalled for minutes gives samples of minutes, which say nothing about its round trip
/// afterwards. Pacing by them sends one segment per minute, each of which gives one sample: the
/// estimate recovers slower than the path by orders of magnitude. Pacing a window too fast costs
/// little, because the window still bounds the flight.
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
            // Congestion avoidance starts at `ssthresh`.
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
