//! A congestion control's decision: how much may be outstanding, on what clock, at what spacing.

use crate::time::Duration;
use crate::units::{Rate, Window};

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
    /// Maximum segments of new data released by one ACK; 0: no limit.
    pub burst: u32,
    /// Limit of the sending rate while lost data is being repaired.
    pub recovery: Recovery,
    /// The ECN feedback to deliver.
    pub ecn: EcnUse,
    /// What keeps an unused window from being sent at once.
    pub validation: Validation,
    /// Bytes that one paced departure may carry, in whole segments and at least one; the driver's
    /// resolution may allow more. 0: only that decides.
    pub quantum: u32,
    /// Data leaves with ECT(1) instead of ECT(0) if accurate ECN is in use: queues then give it the
    /// service of L4S, which asks for the response of RFC 9331, section 4.3.
    pub l4s: bool,
}

impl SendDecision {
    /// A window-clocked, unpaced decision, as in classic algorithms.
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
            validation: Validation::ByUse,
            quantum: 0,
            l4s: false,
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
        /// Maximum segments in flight; at least 1.
        max_outstanding: u16,
    },
}

/// The least distance between departures of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Data is sent as soon as the window allows.
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
    /// The pending departure moves to the instant given by the new gap, counted from the last
    /// departure.
    Retroactive,
    /// The pending departure stays; the new gap counts from the next one. A departure pending for
    /// more than eight of the new gaps moves to the end of those.
    NextDeparture,
    /// As `NextDeparture`, and time lost by late departures is made up for: up to the gap of one
    /// packet, or 20 ticks of the driver's timers if that is more. Each departure keeps at least a
    /// quarter of its gap, so there are no bursts. Time in which nothing waited for the pacer is
    /// not made up for.
    Banked,
}

/// Limit of the sending rate while lost data is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The core, with the connection's recovery algorithm (RFC 6675 pipe, or PRR if configured).
    Core,
    /// Only the algorithm's own window.
    Own,
}

/// What keeps a window that the flow does not use from being sent into the network at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Use: an ACK raises the window only if the flow uses it ([`FlowView::may_raise`]), and the
    /// core restarts it after idleness, if the connection asks for that (RFC 5681, section 4.1).
    ///
    /// [`FlowView::may_raise`]: super::FlowView::may_raise
    ByUse,
    /// As [`ByUse`](Self::ByUse), but the algorithm has the phases of RFC 7661: an idle period is
    /// reported to it as a restart, and its window may outlast that.
    ByPhase,
    /// The pace: the window only bounds the flight, follows the algorithm's model of the path, and
    /// outlasts idleness. For algorithms that pace at a rate of their own.
    ByPace,
}

/// How ECN feedback is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnUse {
    /// One [`CongestionEvent::Ecn`](super::CongestionEvent::Ecn) per window of data (RFC 3168,
    /// section 6.1.2).
    PerWindow,
    /// The CE bytes of each [`AckSample`](super::AckSample). The algorithm reacts in `on_ack` (RFC
    /// 8257), and must keep track of which windows it has already reduced: it is told of every
    /// loss.
    PerAck,
}
