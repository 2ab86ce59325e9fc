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

mod decision;
mod events;
mod flow;

pub use decision::{Clock, EcnUse, Pacing, Recovery, Revise, SendDecision};
pub use events::{
    AckSample, CongestionEvent, RateSample, Reaction, Restart, RestartCause, SentSegment, SsthreshRule, Undo,
};
pub(crate) use flow::longest_paced_rtt;
pub use flow::{FlowView, Phase};

use crate::policy::{Metrics, Params, SpecError};
use crate::time::{Duration, Instant};
use crate::units::Window;
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
