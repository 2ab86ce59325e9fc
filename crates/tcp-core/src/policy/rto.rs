//! RTO response: what to do when the retransmission timer fires, and what later ACKs make of it.
//!
//! The core keeps three rules that no plug-in can break: each expiry sends at most one segment and backs off;
//! after a configured number of undecided timeouts the conventional response takes over, head first; new data
//! stays inside the peer's window. Records of what was sent are never dropped and SND.NXT is never rewound;
//! only tags are changed.

use crate::policy::cc::{FlowView, SsthreshRule, Undo};
use crate::policy::{Metrics, Params, SpecError};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;
use alloc::boxed::Box;
use core::fmt::Debug;

/// A response to retransmission timeouts, of one connection.
pub trait RtoResponse: Debug + Send {
    /// The name under which the response is chosen (`conventional`).
    fn name(&self) -> &'static str;

    /// The retransmission timer fired with data outstanding.
    fn on_rto(&mut self, view: &RtoView) -> RtoStep;

    /// An acceptable ACK arrived, before loss detection and congestion control see it. A step consumes the
    /// ACK, unless it [passes](RtoStep::pass) it on. Called from the connection's first expiry on: while data is
    /// outstanding for every ACK, and otherwise for those that carry a DSACK.
    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        let _ = (view, ack);
        None
    }

    /// Where the episode stands.
    fn phase(&self) -> RtoPhase;

    /// The core took the last expiry out of the response's hands: the conventional response repairs what is
    /// outstanding, and the response hears of nothing before the next expiry. It forgets the episode.
    fn on_takeover(&mut self) {}

    /// Reports the response's own variables, by name.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Takes new parameter values on a running connection. All or nothing.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range or fixed.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        params.reject_all(self.name())
    }
}

/// Makes an RTO response for a connection.
pub type NewRtoResponse = dyn Fn() -> Box<dyn RtoResponse> + Send + Sync;

/// Where an episode stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RtoPhase {
    /// No episode.
    #[default]
    Open,
    /// The response waits for evidence: no RTT sample, no duplicate-ACK count, no fast retransmit, no
    /// congestion control; the gate is the window.
    Probe,
    /// Losses are known and repaired: congestion control grows, and losses below the recovery point reduce
    /// nothing again.
    Repair,
}

/// The sender as a response sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RtoView {
    /// The flow, with `pipe` as it was before any tag is changed.
    pub flow: FlowView,
    /// The congestion window and `ssthresh` in force.
    pub window: Window,
    /// `ssthresh` in force.
    pub ssthresh: Window,
    /// Consecutive expiries for the segment at SND.UNA, this one included.
    pub expiries: u32,
    /// Bytes of new data that one segment may carry at once: what is unsent, at most an SMSS; 0 where that does
    /// not fit the peer's window whole.
    pub unsent: u32,
    /// A FIN is among what is outstanding.
    pub fin_outstanding: bool,
    /// SACK was negotiated.
    pub sack_permitted: bool,
    /// The peer has sent a SACK block on this connection.
    pub sack_seen: bool,
    /// Timestamps were negotiated.
    pub timestamps: bool,
    /// First sequence number of the highest outstanding segment with data.
    pub highest: SeqNum,
    /// The sender was repairing losses when the timer fired, or the ACK came.
    pub in_recovery: bool,
    /// RTTVAR (RFC 6298). None before a sample.
    pub rttvar: Option<Duration>,
    /// Granularity of the driver's clock: RFC 6298's G.
    pub granularity: Duration,
    /// The initial window in bytes (RFC 6928).
    pub initial_window: u64,
    /// The peer has reported duplicate data on this connection (RFC 2883).
    pub dsack_seen: bool,
    /// The window was reduced for ECN since SND.UNA had left: RFC 3168, section 6.1.2, has none follow.
    pub ecn_reduced: bool,
    /// A tail loss probe that nothing answered: first sequence number, and whether it was new data (RFC 8985,
    /// section 7.3).
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
            rttvar: None,
            granularity: Duration::ZERO,
            initial_window: 10 * flow.smss as u64,
            dsack_seen: false,
            ecn_reduced: false,
            tlp: None,
            retransmitted: 0,
        }
    }
}

/// What an ACK says, with SACK and DSACK apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFacts {
    /// The acknowledgment number.
    pub ack: SeqNum,
    /// SND.UNA before the ACK.
    pub prior_una: SeqNum,
    /// Bytes by which it advances SND.UNA.
    pub acked: u32,
    /// Bytes newly SACKed.
    pub newly_sacked: u32,
    /// SACK blocks without the DSACK; the first `sack_count` are valid.
    pub sack: [(SeqNum, SeqNum); 4],
    /// Valid entries of `sack`.
    pub sack_count: u8,
    /// A DSACK block (RFC 2883).
    pub dsack: Option<(SeqNum, SeqNum)>,
    /// The segment carries a SACK option, whatever is in it.
    pub sack_option: bool,
    /// When the oldest segment left that the ACK newly covers and that left only once; `None` where all that it
    /// newly covers left more than once.
    pub original: Option<Instant>,
    /// The ACK echoes a timestamp older than the first retransmission of the episode (RFC 3522).
    pub echoes_original: Option<bool>,
    /// ECE was set, and ECN is in use.
    pub ece: bool,
    /// The segment is a pure duplicate: no data, same window, no advance.
    pub duplicate: bool,
    /// Every retransmission of the episode, and there was one, has been reported by DSACK.
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

    /// True where the ACK or one of its SACK blocks covers the octet `seq`.
    #[must_use]
    pub fn covers(&self, seq: SeqNum) -> bool {
        self.ack.gt(seq)
            || self.sack.iter().take(usize::from(self.sack_count)).any(|&(start, end)| seq.within(start, end))
    }
}

/// What a response wants done.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RtoStep {
    /// Which segment leaves at once. At most one.
    pub send: RtoSend,
    /// What becomes of the scoreboard's tags.
    pub tags: RtoTags,
    /// What may be sent until the next step.
    pub gate: RtoGate,
    /// What congestion control hears.
    pub cc: RtoCc,
    /// What becomes of the RTT sample of the ACK.
    pub rtt: RtoRtt,
    /// What becomes of the timer.
    pub timer: RtoTimer,
    /// Send CWR with the next new data.
    pub cwr: bool,
    /// A step on an ACK does not consume it: RTT, loss detection and congestion control see it as well (but
    /// nothing of it in [`RtoPhase::Probe`]).
    pub pass: bool,
    /// What the response found out, for counters and traces.
    pub verdict: Option<RtoVerdict>,
}

impl RtoStep {
    /// The conventional response (RFC 6298 section 5.4, RFC 5681 section 3.1): everything not SACKed is lost,
    /// the head goes out again, the window falls to one segment, the timer backs off.
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

    /// A step that only consumes the ACK. Where SND.UNA advances, the core restarts the timer all the same
    /// (RFC 6298, 5.3).
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

    /// A step beside which the ACK goes its usual way.
    #[must_use]
    pub const fn pass() -> Self {
        Self { pass: true, ..Self::consume() }
    }
}

/// Which segment leaves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoSend {
    /// None.
    Nothing,
    /// The oldest unacknowledged one.
    Head,
    /// The one that starts at this sequence number.
    Again(SeqNum),
    /// One segment of new data, [`RtoView::unsent`] bytes; where that is none, the highest outstanding one with
    /// data, which starts at [`RtoView::highest`]. A FIN rides on new data; alone it is no probe.
    NewElseHighest,
}

/// What becomes of the scoreboard's tags.
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
    /// Everything before this sequence number that is not SACKed is lost; what follows is in the network.
    LostBefore(SeqNum),
    /// Lost tags are cleared: nothing was lost.
    Unmark,
}

/// What may be sent until the next step. Without force in [`RtoPhase::Open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoGate {
    /// What congestion control allows.
    ByCc,
    /// Nothing.
    Closed,
    /// New data only.
    NewOnly {
        /// Window for what is counted from `from` on.
        window: Window,
        /// First sequence number that counts.
        from: SeqNum,
    },
}

/// What congestion control hears.
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

/// What becomes of the RTT sample of the ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRtt {
    /// Not taken.
    Skip,
    /// Taken as usual.
    Take,
    /// The newest segment that left only once gives the sample: SRTT := max(SRTT before, sample), RTTVAR :=
    /// max(RTTVAR before, sample / 2), and the back-off ends (RFC 4015, section 3, step 11).
    Rfc4015 {
        /// SRTT to compare with.
        srtt: Duration,
        /// RTTVAR to compare with.
        rttvar: Duration,
    },
}

/// What becomes of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoTimer {
    /// Doubled and restarted (RFC 6298, 5.5 and 5.6).
    Backoff,
    /// Restarted with the value in force.
    Restart,
    /// Not touched.
    Keep,
    /// Stopped where nothing is outstanding, restarted otherwise.
    Stop,
}

/// What a response found out about a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoVerdict {
    /// Data was lost, or may have been.
    Lossy,
    /// The timeout was spurious: the episode is over, and nothing is lost.
    Spurious,
}
