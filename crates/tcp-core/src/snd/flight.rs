//! The state of a sender with outstanding data.
//!
//! ```text
//!   Stream ──► ┌ Flight ──────────────────────────────────────────────────────────┐
//!    snd       │ board      recovery: RACK, probes, PRR, undo      rto: the host of  │
//!              │            phase, recovery point                  the response      │
//!              │ decision   pacer, window use                      reservations      │
//!              └───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It exists from the first departure until the connection has been idle for a while. Its methods
//! are in the files on their subject.

use super::measure::ack_delay::AckDelay;
use super::measure::chrono::Chrono;
use super::measure::min_rtt::Successors;
use super::measure::rate::DeliveryClock;
use super::pacer::Pacer;
use super::reservations::Reservations;
use super::stream::Stream;
use super::window::wait::WindowWait;
use crate::config::{ConnConfig, LossDetection};
use crate::policy::cc::SendDecision;
use crate::recovery::LossRecovery;
use crate::recovery::rto_host::RtoHost;
use crate::scoreboard::Scoreboard;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::window_use::WindowUse;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Flight {
    /// What was sent.
    pub(super) board: Scoreboard,
    pub(super) recovery: LossRecovery,
    pub(super) rto: RtoHost,
    pub(super) reserved: Reservations,
    pub(super) pacer: Pacer,
    /// Congestion control's decision after the last event.
    pub(super) decision: SendDecision,
    /// The congestion control has changed since, other than by an event.
    pub(super) decision_is_stale: bool,
    /// When the retransmission timer expires; [`Instant::FAR_FUTURE`] if it is off.
    pub(super) rto_at: Instant,
    /// Since when SND.UNA has not moved although data is outstanding.
    pub(super) progress_at: Instant,
    /// What the sender waits for because of the peer's window.
    pub(super) wait: WindowWait,
    /// When the pacer permits what waits for it; [`Instant::FAR_FUTURE`] if nothing does.
    pub(super) pace_at: Instant,
    /// When the peer counts as reneging; [`Instant::FAR_FUTURE`] unless the head is SACKed.
    pub(super) reneging_at: Instant,
    pub(super) window_use: WindowUse,
    /// For the next sample of the delivery rate.
    pub(super) delivery: DeliveryClock,
    /// Candidates to replace the smallest RTT when it expires.
    pub(super) min_rtt: Successors,
    /// Recognises ACKs that the peer's delayed-ACK timer released.
    pub(super) ack_delay: AckDelay,
    /// Payload bytes of the largest packet known to have arrived.
    pub(super) largest_acked: u16,
    /// End of the last segment smaller than the SMSS (Minshall's `snd_sml`).
    pub(super) small_end: SeqNum,
    /// Segments of new data since the last ACK.
    pub(super) released: u32,
    /// Duplicate ACKs without SACK blocks since the latest one with blocks, although SACK is in use.
    pub(super) unreported: u32,
    /// Everything written had left before the pacer's next slot.
    pub(super) ran_dry: bool,
    /// What the time of this flight goes into.
    pub(super) chrono: Chrono,
}

impl Flight {
    /// Nothing is outstanding so far.
    pub(super) fn new(snd: &Stream, config: &ConnConfig) -> Self {
        let timed = snd.sack && config.loss == LossDetection::Rack;
        Self {
            board: Scoreboard::new(snd.una, timed),
            recovery: LossRecovery::new(snd.una, snd.path),
            rto: RtoHost::default(),
            reserved: Reservations::default(),
            pacer: Pacer::default(),
            decision: snd.ask_for_decision(),
            decision_is_stale: false,
            rto_at: Instant::FAR_FUTURE,
            progress_at: snd.last_sent,
            wait: WindowWait::NONE,
            pace_at: Instant::FAR_FUTURE,
            reneging_at: Instant::FAR_FUTURE,
            window_use: WindowUse::new(snd.una),
            delivery: DeliveryClock::default(),
            min_rtt: Successors::default(),
            ack_delay: AckDelay::default(),
            largest_acked: 0,
            small_end: snd.una,
            released: 0,
            unreported: 0,
            ran_dry: false,
            chrono: Chrono::NEW,
        }
    }

    /// Bytes allocated, with those of this struct.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.board.memory() + self.reserved.memory()
    }

    /// True if nothing is outstanding, and nothing is in the egress scheduler.
    pub(super) fn is_idle(&self) -> bool {
        self.board.is_empty() && self.reserved.is_empty()
    }

    /// Bytes believed to be in the network, and those reserved.
    pub(super) fn pipe(&self) -> u32 {
        self.board.pipe().saturating_add(self.reserved.new_bytes())
    }
}
