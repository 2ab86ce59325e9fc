//! Loss detection and recovery.
//!
//! | file | holds |
//! |---|---|
//! | `loss.rs` | what an ACK proves lost: RFC 6675 with SACK, RFC 6582 (NewReno) without |
//! | `next_seg.rs` | what goes out in recovery: RFC 6675's NextSeg |
//! | `rto_host.rs` | the retransmission timeout, and the host of the response to it |
//!
//! ```text
//!            SACK or duplicate ACK             loss found
//!   Open ───────────────────────► Disorder ───────────────► Recovery
//!    ▲ ▲◄──────────────────────────────┘                       │
//!    │ └──────────── recovery point acknowledged ◄─────────────┤
//!    │                                                         │ retransmission timeout (from any phase)
//!    └────── recovery point acknowledged ◄─── Loss ◄───────────┘
//! ```

pub(crate) mod loss;
mod next_seg;
pub(crate) mod rto_host;

use crate::policy::cc::Phase;
use crate::seq::SeqNum;
use crate::time::Instant;
use rto_host::RtoHost;

/// DupThresh (RFC 6675, section 2).
pub(crate) const DUP_THRESH: u32 = 3;

/// The state of loss recovery while data is outstanding.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    /// RecoveryPoint (RFC 6675) or recover (RFC 6582): SND.NXT when the episode began. Outside of an episode
    /// it is that of the last one, or before SND.UNA.
    pub(crate) recovery_point: SeqNum,
    /// DupAcks: since the last cumulative ACK.
    pub(crate) dup_acks: u32,
    /// HighRxt: everything before it was retransmitted in this episode where it was a hole.
    pub(crate) high_rxt: SeqNum,
    /// RescueRxt: RecoveryPoint at the rescue retransmission of this episode.
    pub(crate) rescued: bool,
    /// The next retransmission does not wait for the window.
    pub(crate) forced: bool,
    /// Departure of the first retransmission of this episode.
    pub(crate) first_retransmission: Option<Instant>,
    pub(crate) rto: RtoHost,
}

impl Recovery {
    pub(crate) fn new(una: SeqNum) -> Self {
        Self {
            phase: Phase::Open,
            recovery_point: una - 1,
            dup_acks: 0,
            high_rxt: una,
            rescued: false,
            forced: false,
            first_retransmission: None,
            rto: RtoHost::default(),
        }
    }

    /// An episode begins: everything sent so far must be acknowledged before it ends.
    pub(crate) fn begin(&mut self, phase: Phase, una: SeqNum, nxt: SeqNum) {
        if (self.phase, phase) != (Phase::Loss, Phase::Loss) {
            self.first_retransmission = None;
        }
        self.phase = phase;
        self.recovery_point = nxt;
        self.dup_acks = 0;
        self.high_rxt = una;
        self.rescued = false;
        self.forced = phase == Phase::Recovery;
    }

    /// True in an episode.
    pub(crate) const fn in_episode(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// SND.UNA moved: the marks stay within half the sequence space of it.
    pub(crate) fn on_advance(&mut self, una: SeqNum) {
        self.recovery_point = self.recovery_point.max(una - 1);
        self.high_rxt = self.high_rxt.max(una);
    }
}
