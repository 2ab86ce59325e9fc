//! RTO response: what to do when the retransmission timer fires, and what later ACKs make of it.
//!
//! The core keeps three rules that no plug-in can break: each expiry sends at most one segment and backs off;
//! after a configured number of undecided timeouts the conventional response takes over, head first; new data
//! stays inside the peer's window. Records of what was sent are never dropped and SND.NXT is never rewound;
//! only tags are changed.

use crate::policy::cc::{FlowView, SsthreshRule, Undo};
use crate::policy::{Metrics, Params, SpecError};
use crate::seq::SeqNum;
use crate::time::Duration;
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
    /// ACK: no window growth on it. Called from the connection's first expiry on.
    fn on_ack(&mut self, view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        let _ = (view, ack);
        None
    }

    /// Where the episode stands.
    fn phase(&self) -> RtoPhase;

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
    /// Unsent bytes that fit the peer's window.
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
    /// The sender was repairing losses when the timer fired.
    pub in_recovery: bool,
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
    /// The ACK echoes a timestamp older than the first retransmission of the episode (RFC 3522).
    pub echoes_original: Option<bool>,
    /// ECE was set.
    pub ece: bool,
    /// The segment is a pure duplicate: no data, same window, no advance.
    pub duplicate: bool,
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
            echoes_original: None,
            ece: false,
            duplicate: false,
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
    /// The episode's outcome, for counters and traces.
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
            verdict: None,
        }
    }

    /// A step that only consumes the ACK.
    #[must_use]
    pub const fn consume() -> Self {
        Self {
            send: RtoSend::Nothing,
            tags: RtoTags::Keep,
            gate: RtoGate::ByCc,
            cc: RtoCc::Untold,
            rtt: RtoRtt::Skip,
            timer: RtoTimer::Restart,
            cwr: false,
            verdict: None,
        }
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
    /// One segment of new data, or the highest outstanding one where none fits.
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
    /// Lost tags are cleared: nothing was lost.
    Unmark,
}

/// What may be sent until the next step.
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
    /// SRTT := max(SRTT before, sample), RTTVAR := max(RTTVAR before, sample / 2) (RFC 4015, section 3.1).
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
    /// Stopped where nothing is outstanding, restarted otherwise.
    Stop,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoVerdict {
    /// Data was lost.
    Lossy,
    /// The timeout was spurious.
    Spurious,
}
