//! Loss detection and recovery.
//!
//! | file | holds |
//! |---|---|
//! | `rack.rs` | losses detected by time: RACK (RFC 8985) |
//! | `loss.rs` | losses detected from an ACK: RACK or RFC 6675 with SACK, RFC 6582 (NewReno) without |
//! | `tlp.rs` | tail loss probes (RFC 8985) |
//! | `prr.rs` | how fast to send in recovery: PRR (RFC 9937) |
//! | `undo.rs` | undoing an unnecessary reduction |
//! | `next_seg.rs` | what to send in recovery: RFC 6675's NextSeg |
//! | `rto_host.rs` | the host of the RTO response: its state, and the rules it enforces |
//!
//! These types decide. They look at the [scoreboard](crate::scoreboard) and the facts of an ACK,
//! and return what to do; the sender (`snd/`) does it, counts it and tells the policies.
//!
//! ```text
//!            SACK or duplicate ACK             loss found (ACK, or RACK's timer)
//!   Open ───────────────────────► Disorder ───────────────► Recovery
//!    ▲ ▲◄──────────────────────────────┘                       │
//!    │ └──────────── recovery point acknowledged ◄─────────────┤
//!    │                                                         │ retransmission timeout (from any phase)
//!    └────── recovery point acknowledged ◄─── Loss ◄───────────┘
//! ```

pub(crate) mod loss;
mod next_seg;
mod prr;
pub(crate) mod rack;
pub(crate) mod rto_host;
pub(crate) mod tlp;
mod undo;

use crate::policy::cc::Phase;
use crate::seq::SeqNum;
use crate::time::Instant;
pub(crate) use prr::{Progress, Prr};
use rack::{PathMemory, Rack};
pub(crate) use tlp::{Probe, Tlp};
use undo::UndoMark;
pub(crate) use undo::UndoTest;

/// DupThresh (RFC 6675, section 2).
pub(crate) const DUP_THRESH: u32 = 3;

/// The state of loss recovery while data is outstanding.
#[derive(Debug)]
pub(crate) struct LossRecovery {
    pub(crate) phase: Phase,
    /// RecoveryPoint (RFC 6675) or recover (RFC 6582): SND.NXT at the start of the episode. Outside
    /// an episode it is that of the last one, or before SND.UNA.
    pub(crate) recovery_point: SeqNum,
    /// DupAcks: since the last cumulative ACK.
    pub(crate) dup_acks: u32,
    /// HighRxt: all holes before it have been retransmitted in this episode.
    pub(crate) high_rxt: SeqNum,
    /// RescueRxt: RecoveryPoint at the rescue retransmission of this episode.
    pub(crate) rescued: bool,
    /// The next retransmission ignores the window.
    pub(crate) forced: bool,
    /// Departure of the first retransmission of this episode.
    pub(crate) first_retransmission: Option<Instant>,
    pub(crate) rack: Rack,
    pub(crate) tlp: Tlp,
    /// In fast recovery, if it is enabled.
    pub(crate) prr: Option<Prr>,
    /// The current episode, or the last one, if it can still be undone.
    pub(crate) undo: Option<UndoMark>,
}

impl LossRecovery {
    pub(crate) fn new(una: SeqNum, path: PathMemory) -> Self {
        Self {
            phase: Phase::Open,
            recovery_point: una - 1,
            dup_acks: 0,
            high_rxt: una,
            rescued: false,
            forced: false,
            first_retransmission: None,
            rack: Rack::new(una, path),
            tlp: Tlp::new(),
            prr: None,
            undo: None,
        }
    }

    /// `probe` was sent at `now`.
    pub(crate) fn on_probe_sent(&mut self, probe: Probe, now: Instant) {
        let open = self.phase == Phase::Open;
        self.tlp.on_sent(probe, open);
        if open && !probe.new {
            self.first_retransmission = Some(now);
        }
    }

    /// An episode starts: it ends when everything sent so far is acknowledged.
    pub(crate) fn begin(&mut self, phase: Phase, una: SeqNum, nxt: SeqNum) {
        if (self.phase, phase) != (Phase::Loss, Phase::Loss) {
            self.first_retransmission = None;
        }
        if phase == Phase::Loss {
            self.rack.reorder_at = Instant::FAR_FUTURE;
        }
        self.tlp.reset();
        self.prr = None;
        self.phase = phase;
        self.recovery_point = nxt;
        self.dup_acks = 0;
        self.high_rxt = una;
        self.rescued = false;
        self.forced = phase == Phase::Recovery;
    }

    /// The episode has ended, or was undone.
    fn close(&mut self, to: Phase) {
        self.phase = to;
        self.prr = None;
        self.dup_acks = 0;
        self.forced = false;
    }

    /// True in an episode.
    pub(crate) const fn in_episode(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// `bytes` were retransmitted at `now`.
    pub(crate) fn on_retransmitted(&mut self, bytes: u32, now: Instant) {
        self.first_retransmission.get_or_insert(now);
        if self.in_episode()
            && let Some(mark) = &mut self.undo
        {
            mark.on_retransmitted(bytes);
        }
    }

    /// SND.UNA moved: keeps the marks within half the sequence space of it.
    pub(crate) fn on_advance(&mut self, una: SeqNum) {
        self.recovery_point = self.recovery_point.max(una - 1);
        self.high_rxt = self.high_rxt.max(una);
    }
}
