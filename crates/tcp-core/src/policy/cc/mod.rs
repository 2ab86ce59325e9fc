//! Congestion control: how much may be outstanding, and on what clock.
//!
//! The core detects loss, keeps `pipe` and the scoreboard, takes RTT and delivery-rate samples and runs the
//! recovery of lost data; the algorithm answers one question after every event: [`SendDecision`]. Windows are
//! fixed point and may be far below one segment ([`Window`]).
//!
//! ```text
//!  incoming ACK ──► RTT ──► loss detection ──► checkpoint + on_congestion (once per episode)
//!                                         └──► on_ack ──► decision ──► pacer asked again ──► send
//! ```

use crate::policy::{Metrics, Params, SpecError};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::{Rate, Window};
use alloc::boxed::Box;
use core::fmt::Debug;

/// A congestion control algorithm of one connection.
///
/// The core calls it in this order: `on_smss_change` never before the first `decision`; per incoming ACK
/// first `checkpoint` and `on_congestion` (where the ACK reveals one), then `on_ack`; `on_sent` whenever a
/// segment with data has left. `decision` is pure and is read after every event.
pub trait CongestionControl: Debug + Send {
    /// The name under which the algorithm is chosen (`cubic`).
    fn name(&self) -> &'static str;

    /// What may be sent, on which clock. Pure: two calls without an event between them agree.
    fn decision(&self) -> SendDecision;

    /// A segment with data has left the host.
    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        let _ = (view, sent);
    }

    /// An ACK (or a batch of them) has acknowledged or SACKed data, or carries ECN feedback.
    ///
    /// An algorithm raises its window only if [`FlowView::may_raise`] says so.
    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction;

    /// The network signalled congestion. Loss and ECN come at most once per window of data; time-outs once
    /// per expiry.
    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent);

    /// Recovery has ended: everything outstanding at its start is acknowledged.
    fn on_recovery_exit(&mut self, view: &FlowView) {
        let _ = view;
    }

    /// Sending resumes after a pause, or must restart from a small window.
    fn on_restart(&mut self, view: &FlowView, restart: &Restart);

    /// The segment size of the path has changed (`view.smss` is the new one).
    fn on_smss_change(&mut self, view: &FlowView, old: u32) {
        let _ = (view, old);
    }

    /// Remember the state: a congestion episode begins that [`Self::undo`] may later take back. Called once
    /// per episode, before `on_congestion`.
    fn checkpoint(&mut self, view: &FlowView);

    /// The last episode was spurious.
    fn undo(&mut self, view: &FlowView, undo: &Undo);

    /// When the algorithm wants [`Self::on_timeout`] to be called.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// The instant of [`Self::next_timeout`] has come.
    fn on_timeout(&mut self, view: &FlowView) {
        let _ = view;
    }

    /// Reports the algorithm's own variables, by name, for recorders and `info`.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Takes new parameter values on a running connection. All or nothing.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range or fixed for the life of a connection.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        params.reject_all(self.name())
    }
}

/// Makes a congestion control for a connection whose path is known so far as `init` says.
pub type NewCongestionControl = dyn Fn(&CcInit) -> Box<dyn CongestionControl> + Send + Sync;

/// What is known when a connection gets its congestion control: at the end of the handshake, or in mid-life
/// when the algorithm is swapped.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CcInit {
    /// The time of the call.
    pub now: Instant,
    /// Sender maximum segment size in payload bytes (RFC 5681, section 2).
    pub smss: u32,
    /// Window to start from, in bytes: the initial window (RFC 6928), or the predecessor's window on a swap.
    pub initial_window: Window,
    /// `ssthresh` to start from; [`Window::MAX`] on a new connection.
    pub ssthresh: Window,
    /// Granularity of the driver's clock and timers.
    pub granularity: Duration,
}

impl CcInit {
    /// A new connection's start: `initial_window` bytes, no `ssthresh`.
    #[must_use]
    pub const fn new(now: Instant, smss: u32, initial_window: Window) -> Self {
        Self { now, smss, initial_window, ssthresh: Window::MAX, granularity: Duration::from_nanos(1) }
    }
}

/// What a congestion control lets the connection do until the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendDecision {
    /// Congestion window.
    pub window: Window,
    /// Slow-start threshold; [`Window::MAX`] before the first congestion event.
    pub ssthresh: Window,
    /// What releases data: window space, or the time since the last departure.
    pub clock: Clock,
    /// The least distance between departures.
    pub pacing: Pacing,
    /// What a new decision does to a departure that is already pending.
    pub revise: Revise,
    /// Most segments of new data released by one ACK; 0: no limit.
    pub burst: u32,
    /// Who limits the sending rate while lost data is repaired.
    pub recovery: Recovery,
    /// How ECN feedback is wanted.
    pub ecn: EcnUse,
}

impl SendDecision {
    /// A window-clocked, unpaced decision, as classic algorithms make it.
    #[must_use]
    pub const fn window(window: Window, ssthresh: Window) -> Self {
        Self {
            window,
            ssthresh,
            clock: Clock::Ack,
            pacing: Pacing::Unpaced,
            revise: Revise::NextDeparture,
            burst: 0,
            recovery: Recovery::Core,
            ecn: EcnUse::PerWindow,
        }
    }

    /// The same with `pacing`.
    #[must_use]
    pub const fn paced(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self
    }
}

/// What releases data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Window space, opened by ACKs.
    Ack,
    /// The gap since the last departure; at most `max_outstanding` segments are in flight.
    Departure {
        /// Segments that may be in flight at once; at least 1.
        max_outstanding: u16,
    },
}

/// The least distance between departures of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Data leaves as soon as the window allows.
    Unpaced,
    /// `gain * window / srtt`. Gain in 1/256: 256 is one window per round trip, 512 two.
    WindowOverRtt {
        /// Multiplier of the rate in 1/256; 0 counts as 1.
        gain: u16,
    },
    /// A fixed rate.
    AtRate(Rate),
    /// `n` bytes take `n * time / over`, exactly: the remainder is carried.
    Gap {
        /// Time that `over` bytes take.
        time: Duration,
        /// Bytes sent in `time`.
        over: Window,
    },
}

/// What a new decision does to a departure that is already pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revise {
    /// The pending departure moves to the instant that the new gap gives, counted from the last departure.
    Retroactive,
    /// The pending departure stays; the new gap counts from the next one. A departure that is pending for more than eight
    /// of the new gaps moves to their end.
    NextDeparture,
    /// As `NextDeparture`, and what a departure's lateness cost is made up for: up to the gap of one packet, or 20 ticks
    /// of the driver's timers where that is more, by departures that keep a quarter of their gap at least, so that none is
    /// followed by a burst. Time in which nothing waited for the pacer is not made up for.
    Banked,
}

/// Who limits the sending rate while lost data is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The core, by the connection's recovery algorithm (RFC 6675 pipe, or PRR where configured).
    Core,
    /// The algorithm's own window alone.
    Own,
}

/// How ECN feedback is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// One [`CongestionEvent::Ecn`] per window of data (RFC 3168, section 6.1.2).
    PerWindow,
    /// The CE bytes of each [`AckSample`]; the algorithm reacts in `on_ack` (RFC 8257), and keeps account itself of
    /// which windows were reduced: it hears of each loss.
    PerAck,
}

/// What an algorithm did on an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing that the peer must know.
    None,
    /// It reduced its window because of ECN feedback: the core sends CWR.
    Reduced,
}

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
    /// for a further segment, or when the window (or, with [`Clock::Departure`], the clock, or a pace that follows
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

impl FlowView {
    /// The longest round trip that a pace should follow: a second, or eight times [`min_rtt`](Self::min_rtt) where that
    /// is longer, up to a minute. [`srtt_pace`](Self::srtt_pace) keeps to it; so should an algorithm that smooths samples itself.
    #[must_use]
    pub fn longest_paced_rtt(&self) -> Duration {
        longest_paced_rtt(self.min_rtt)
    }
}

/// A departure, for [`CongestionControl::on_sent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentSegment {
    /// First sequence number.
    pub seq: SeqNum,
    /// Payload bytes; more than `smss` for a super-packet.
    pub len: u32,
    /// It carries data that had left before.
    pub retransmission: bool,
}

impl SentSegment {
    /// A departure of `len` bytes at `seq`.
    #[must_use]
    pub const fn new(seq: SeqNum, len: u32, retransmission: bool) -> Self {
        Self { seq, len, retransmission }
    }
}

/// What one incoming ACK (or a batch that arrived as one) says.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct AckSample {
    /// Bytes by which SND.UNA advanced.
    pub acked: u32,
    /// Bytes newly covered by SACK blocks.
    pub newly_sacked: u32,
    /// Segments newly covered by either.
    pub segments: u32,
    /// Bytes of `acked + newly_sacked` that SACK had not reported before: what was newly delivered.
    pub newly_delivered: u32,
    /// Bytes newly declared lost on this ACK.
    pub newly_lost: u32,
    /// Bytes that the peer reports as CE-marked: with DCTCP's and with classic ECN `newly_delivered` where `ece` is
    /// set.
    pub ce: u32,
    /// ECE was set, where ECN is in use. RFC 3168, section 6.1.2: such an ACK does not raise the window.
    pub ece: bool,
    /// The ACK advanced nothing (a duplicate in the sense of RFC 5681).
    pub duplicate: bool,
    /// RTT of the newest covered segment never retransmitted.
    pub rtt: Option<Duration>,
    /// RTT of the oldest covered segment never retransmitted.
    pub rtt_oldest: Option<Duration>,
    /// `pipe` just before the ACK was processed.
    pub prior_pipe: u32,
    /// Delivery rate over the last flight.
    pub rate: Option<RateSample>,
}

impl AckSample {
    /// An ACK that advanced SND.UNA by `acked` bytes, for tests of algorithms.
    #[must_use]
    pub fn new(acked: u32, segments: u32) -> Self {
        Self { acked, segments, newly_delivered: acked, ..Self::default() }
    }
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the ACK interval.
    pub interval: Duration,
    /// Bytes delivered when the sampled segment left (`rs.prior_delivered`).
    pub prior_delivered: u64,
    /// The sampled segment left while the application limited the flow.
    pub app_limited: bool,
    /// The sampled segment was a retransmission.
    pub retransmission: bool,
}

impl RateSample {
    /// A sample of `delivered` bytes over `interval`.
    #[must_use]
    pub const fn new(delivered: u64, interval: Duration, prior_delivered: u64) -> Self {
        Self { delivered, interval, prior_delivered, app_limited: false, retransmission: false }
    }

    /// The rate that the sample shows.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered, self.interval)
    }
}

/// Signals of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionEvent {
    /// Data was found lost and fast recovery begins; once per window.
    Loss {
        /// `pipe` before the loss was marked.
        prior_pipe: u32,
    },
    /// ECE under [`EcnUse::PerWindow`]; once per window.
    Ecn,
    /// The retransmission timer fired and the RTO response asked for a reduction.
    Timeout {
        /// Flight size at the expiry (RFC 5681, equation 4).
        flight_size: u32,
        /// First expiry for this data; repeated ones must not lower `ssthresh` again.
        first: bool,
        /// The window that the response proposes; the algorithm takes the smaller of this and its own.
        window: Window,
        /// What the response proposes for `ssthresh`.
        ssthresh: SsthreshRule,
    },
}

/// What a response to a timeout proposes for `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshRule {
    /// Leave it.
    Keep,
    /// This, which the response took from the flight at the expiry, in place of the algorithm's own rule (which
    /// might give more or less than what it is): the algorithm may take less, not more.
    AtMost(Window),
    /// The algorithm's own rule.
    ByCc,
}

/// Sending resumes, from a window that must not exceed `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// Why.
    pub cause: RestartCause,
    /// The largest window that the rule behind `cause` permits.
    pub window: Window,
    /// How long nothing was sent.
    pub idle: Duration,
}

impl Restart {
    /// A restart from at most `window`.
    #[must_use]
    pub const fn new(cause: RestartCause, window: Window, idle: Duration) -> Self {
        Self { cause, window, idle }
    }
}

/// Why sending restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartCause {
    /// Nothing was sent for longer than the RTO (RFC 5681, section 4.1).
    Idle,
    /// A timeout proved to have lost nothing.
    CleanTimeout,
}

/// What to restore when an episode proves spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Everything that the checkpoint holds; the window never falls below what it is.
    All,
    /// The given values.
    To {
        /// New window.
        window: Window,
        /// New `ssthresh`.
        ssthresh: Window,
    },
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
