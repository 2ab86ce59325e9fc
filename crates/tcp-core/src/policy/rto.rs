//! RTO response: what to do when the retransmission timer fires, and how to treat the ACKs that
//! follow.
//!
//! The core enforces three rules regardless of the policy: each expiry sends at most one segment
//! and backs off; after a configured number of timeouts without a verdict the conventional response
//! takes over, starting with the head; new data stays inside the peer's window. Records of sent
//! data are never dropped and SND.NXT is never rewound; only tags change.

mod episode;

pub use episode::{Episode, FirstStep, make};

use crate::policy::cc::{FlowView, SsthreshRule, Undo};
use crate::policy::{Metrics, Params, SpecError};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;
use alloc::boxed::Box;
use core::fmt::Debug;

/// The response of one connection to retransmission timeouts. One that decides at the timeout alone
/// is a [`FirstStep`].
pub trait RtoResponse: Debug + Send {
    /// The name under which the response is chosen (`conventional`).
    fn name(&self) -> &'static str;

    /// The retransmission timer fired with data outstanding.
    fn on_rto(&mut self, view: &RtoView) -> RtoStep;

    /// An acceptable ACK arrived; called before loss detection and congestion control see it. A
    /// step consumes the ACK, unless it [passes](RtoStep::pass) it on. Called from the connection's
    /// first timeout on: for every ACK while data is outstanding, otherwise only for those that
    /// carry a DSACK.
    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        let _ = (view, ack);
        None
    }

    /// The phase of the episode: after [`on_rto`](Self::on_rto) it is not [`RtoPhase::Open`].
    fn phase(&self) -> RtoPhase;

    /// The core took over the last timeout: the conventional response repairs what is outstanding,
    /// and this response is not called before the next timeout. Discard the episode.
    fn on_takeover(&mut self) {}

    /// Reports the response's internal variables, by name.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Changes parameters of a running connection: all of them or none.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range or fixed.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        params.reject_all(self.name())
    }
}

/// Makes an RTO response for a connection.
pub type NewRtoResponse = dyn Fn() -> Box<dyn RtoResponse> + Send + Sync;

/// The phase of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RtoPhase {
    /// No episode.
    #[default]
    Open,
    /// The response is waiting for evidence: no RTT sample, no duplicate-ACK count, no fast
    /// retransmit, no congestion control; the gate is the window.
    Probe,
    /// Losses are known and being repaired: congestion control grows the window, and losses below
    /// the recovery point cause no further reduction.
    Repair,
}

/// The sender as a response sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RtoView {
    /// The flow, with `pipe` before any tag changes.
    pub flow: FlowView,
    /// The congestion window and `ssthresh` in force.
    pub window: Window,
    /// `ssthresh` in force.
    pub ssthresh: Window,
    /// Consecutive timeouts of the segment at SND.UNA, including this one.
    pub expiries: u32,
    /// Bytes of new data that one segment may carry now: the unsent data, at most an SMSS; 0 if
    /// that does not fit completely into the peer's window.
    pub unsent: u32,
    /// A FIN is outstanding.
    pub fin_outstanding: bool,
    /// SACK was negotiated.
    pub sack_permitted: bool,
    /// The peer has sent SACK blocks on this connection.
    pub sack_seen: bool,
    /// Timestamps were negotiated.
    pub timestamps: bool,
    /// First sequence number of the highest outstanding segment with data.
    pub highest: SeqNum,
    /// The sender was repairing losses when the timer fired or the ACK arrived.
    pub in_recovery: bool,
    /// Granularity of the driver's clock: RFC 6298's G.
    pub granularity: Duration,
    /// The initial window in bytes (RFC 6928).
    pub initial_window: u64,
    /// The peer has reported duplicate data on this connection (RFC 2883).
    pub dsack_seen: bool,
    /// The window has been reduced for ECN since SND.UNA was sent: RFC 3168, section 6.1.2, forbids
    /// another reduction.
    pub ecn_reduced: bool,
    /// An unanswered tail loss probe: its first sequence number, and whether it was new data (RFC
    /// 8985, section 7.3).
    pub tlp: Option<(SeqNum, bool)>,
    /// Wire segments retransmitted on this connection.
    pub retransmitted: u64,
}

impl RtoView {
    /// A view of the flow with the given window and threshold.
    #[must_use]
    pub const fn new(flow: FlowView, window: Window, ssthresh: Window) -> Self {
        Self {
            flow,
            window,
            ssthresh,
            expiries: 1,
            unsent: 0,
            fin_outstanding: false,
            sack_permitted: true,
            sack_seen: false,
            timestamps: true,
            highest: flow.snd_una,
            in_recovery: false,
            granularity: Duration::ZERO,
            initial_window: 10 * flow.smss as u64,
            dsack_seen: false,
            ecn_reduced: false,
            tlp: None,
            retransmitted: 0,
        }
    }
}

/// The facts of an ACK, with SACK and DSACK separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFacts {
    /// The acknowledgment number.
    pub ack: SeqNum,
    /// SND.UNA before the ACK.
    pub prior_una: SeqNum,
    /// Bytes by which it advanced SND.UNA.
    pub acked: u32,
    /// Bytes newly SACKed.
    pub newly_sacked: u32,
    /// SACK blocks without DSACK; the first `sack_count` are valid.
    pub sack: [(SeqNum, SeqNum); 4],
    /// Valid entries of `sack`.
    pub sack_count: u8,
    /// A DSACK block (RFC 2883).
    pub dsack: Option<(SeqNum, SeqNum)>,
    /// The segment carries a SACK option, with whatever content.
    pub sack_option: bool,
    /// Departure time of the oldest segment newly covered by the ACK that was sent only once;
    /// `None` if all newly covered segments were sent more than once.
    pub original: Option<Instant>,
    /// The ACK echoes a timestamp older than the first retransmission of the episode (RFC 3522).
    pub echoes_original: Option<bool>,
    /// ECE was set, and ECN is in use.
    pub ece: bool,
    /// The segment is a pure duplicate: no data, same window, no advance.
    pub duplicate: bool,
    /// There were retransmissions in the episode, and DSACK has reported them all.
    pub all_dsacked: bool,
}

impl AckFacts {
    /// A plain ACK of `ack`.
    #[must_use]
    pub const fn new(prior_una: SeqNum, ack: SeqNum) -> Self {
        Self {
            ack,
            prior_una,
            acked: ack.saturating_distance_from(prior_una),
            newly_sacked: 0,
            sack: [(SeqNum(0), SeqNum(0)); 4],
            sack_count: 0,
            dsack: None,
            sack_option: false,
            original: None,
            echoes_original: None,
            ece: false,
            duplicate: false,
            all_dsacked: false,
        }
    }

    /// True if the ACK or one of its SACK blocks covers the octet `seq`.
    #[must_use]
    pub fn covers(&self, seq: SeqNum) -> bool {
        self.ack.gt(seq)
            || self.sack.iter().take(usize::from(self.sack_count)).any(|&(start, end)| seq.within(start, end))
    }
}

/// What a response wants to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RtoStep {
    /// The segment to send at once: at most one.
    pub send: RtoSend,
    /// Changes to the scoreboard's tags.
    pub tags: RtoTags,
    /// What may be sent until the next step.
    pub gate: RtoGate,
    /// What to tell congestion control.
    pub cc: RtoCc,
    /// What to do with the ACK's RTT sample.
    pub rtt: RtoRtt,
    /// What to do with the timer.
    pub timer: RtoTimer,
    /// Send CWR with the next new data.
    pub cwr: bool,
    /// On an ACK: do not consume it, so RTT, loss detection and congestion control see it too (but
    /// not in [`RtoPhase::Probe`]).
    pub pass: bool,
    /// The classification of the timeout, for counters and traces.
    pub verdict: Option<RtoVerdict>,
}

impl RtoStep {
    /// The conventional response (RFC 6298 section 5.4, RFC 5681 section 3.1): everything not
    /// SACKed is lost, the head is retransmitted, the window falls to one segment, the timer backs
    /// off.
    #[must_use]
    pub const fn conventional(smss: u32) -> Self {
        Self {
            send: RtoSend::Head,
            tags: RtoTags::UnsackedLost,
            gate: RtoGate::ByCc,
            cc: RtoCc::Timeout { window: Window::from_bytes(smss as u64), ssthresh: SsthreshRule::ByCc },
            rtt: RtoRtt::Skip,
            timer: RtoTimer::Backoff,
            cwr: false,
            pass: false,
            verdict: None,
        }
    }

    /// A step that only consumes the ACK. If SND.UNA advances, the core restarts the timer all the
    /// same (RFC 6298, 5.3).
    #[must_use]
    pub const fn consume() -> Self {
        Self {
            send: RtoSend::Nothing,
            tags: RtoTags::Keep,
            gate: RtoGate::ByCc,
            cc: RtoCc::Untold,
            rtt: RtoRtt::Skip,
            timer: RtoTimer::Keep,
            cwr: false,
            pass: false,
            verdict: None,
        }
    }

    /// A step that lets the ACK be processed as usual.
    #[must_use]
    pub const fn pass() -> Self {
        Self { pass: true, ..Self::consume() }
    }
}

/// The segment to send at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoSend {
    /// None.
    Nothing,
    /// The oldest unacknowledged one.
    Head,
    /// The one that starts at this sequence number.
    Again(SeqNum),
    /// One segment of new data, [`RtoView::unsent`] bytes; if that is 0, the highest outstanding
    /// segment with data, which starts at [`RtoView::highest`]. A FIN rides on new data; it is no
    /// probe by itself.
    NewElseHighest,
}

/// Changes to the scoreboard's tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoTags {
    /// Nothing changes.
    Keep,
    /// SACKed and lost tags are cleared (RFC 2018, section 8).
    ClearSack,
    /// Everything outstanding is lost, SACKed or not.
    AllLost,
    /// Everything that is not SACKed is lost.
    UnsackedLost,
    /// Everything before this sequence number that is not SACKed is lost; the rest is in the
    /// network.
    LostBefore(SeqNum),
    /// Lost tags are cleared: nothing was lost.
    Unmark,
}

/// What may be sent until the next step. Ignored in [`RtoPhase::Open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoGate {
    /// What congestion control allows.
    ByCc,
    /// Nothing.
    Closed,
    /// New data only.
    NewOnly {
        /// Window for the data from `from` on.
        window: Window,
        /// First sequence number that counts.
        from: SeqNum,
    },
}

/// What to tell congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoCc {
    /// Nothing.
    Untold,
    /// A timeout that lost data.
    Timeout {
        /// Proposed window.
        window: Window,
        /// Proposed rule for `ssthresh`.
        ssthresh: SsthreshRule,
    },
    /// A timeout that lost nothing, but the flow restarts from `window`.
    CleanTimeout {
        /// Window to restart from.
        window: Window,
    },
    /// The episode was spurious.
    Undo(Undo),
}

/// What to do with the ACK's RTT sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRtt {
    /// Not taken.
    Skip,
    /// Taken as usual.
    Take,
    /// The newest segment that was sent only once gives the sample: SRTT := max(SRTT before,
    /// sample), RTTVAR := max(RTTVAR before, sample / 2), and the back-off ends (RFC 4015, section
    /// 3, step 11).
    Rfc4015 {
        /// SRTT to compare with.
        srtt: Duration,
        /// RTTVAR to compare with.
        rttvar: Duration,
    },
}

/// What to do with the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoTimer {
    /// Double and restart it (RFC 6298, 5.5 and 5.6).
    Backoff,
    /// Restart it with the current value.
    Restart,
    /// Leave it alone.
    Keep,
    /// Stop it if nothing is outstanding, else restart it.
    Stop,
}

/// A response's classification of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoVerdict {
    /// Data was lost, or may have been.
    Lossy,
    /// The timeout was spurious: the episode is over, and nothing is lost.
    Spurious,
}
