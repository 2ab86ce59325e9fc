//! Congestion control: how much may be outstanding, and on what clock.
//!
//! The core detects loss, keeps `pipe` and the scoreboard, takes RTT and delivery-rate samples and
//! runs recovery; the algorithm answers one question after every event: [`SendDecision`]. Windows
//! are fixed-point numbers and may be far below one segment ([`Window`]).
//!
//! ```text
//!  incoming ACK ──► RTT ──► loss detection ──► on_lost (each record)
//!                                         ├──► checkpoint + on_congestion (once per episode)
//!                                         └──► on_ack ──► decision ──► pacer asked again ──► send
//! ```

mod decision;
mod events;
mod flow;

pub use decision::{Clock, EcnUse, Pacing, Recovery, Revise, SendDecision, Validation};
pub use events::{
    AckSample, CongestionEvent, LostRecord, RateSample, Reaction, Restart, RestartCause, SentSegment,
    SsthreshRule, Undo,
};
pub(crate) use flow::longest_paced_rtt;
pub use flow::{FlowView, Phase};

use crate::ecn::Ecn;
use crate::policy::{Metrics, Params, SpecError};
use crate::time::{Duration, Instant};
use crate::units::Window;
use alloc::boxed::Box;
use core::fmt::Debug;

/// The congestion control algorithm of one connection.
///
/// Call order: `on_smss_change` never before the first `decision`; for each incoming ACK first
/// `on_lost` for each record that it shows to be lost, `checkpoint` and `on_congestion` (if it
/// begins an episode), then `on_ack`, and `on_recovery_exit` if it ends one; `on_sent` after each
/// departure of a segment with data. A timer that finds losses calls `on_lost`, `checkpoint` and
/// `on_congestion`. `decision` is pure and read after every event.
pub trait CongestionControl: Debug + Send {
    /// The name under which the algorithm is chosen (`cubic`).
    fn name(&self) -> &'static str;

    /// What may be sent, and on which clock. Pure: without an event in between, it returns the
    /// same.
    fn decision(&self) -> SendDecision;

    /// A segment with data was sent. Called for each, or, if the algorithm does not
    /// [want that](Self::wants_each_departure), at least for a segment that leaves while nothing
    /// else is outstanding.
    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        let _ = (view, sent);
    }

    /// Whether [`on_sent`](Self::on_sent) is to be called for each segment with data. If not, the
    /// departures within a flight cost less. The answer is always the same.
    fn wants_each_departure(&self) -> bool {
        true
    }

    /// An ACK (or a batch of them) acknowledged or SACKed data, or carries ECN feedback.
    ///
    /// Only raise the window if [`FlowView::may_raise`] allows it.
    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction;

    /// A transmission was declared lost: by an ACK, by the timer of the reordering window, or
    /// because an expiry of the retransmission timer marks everything outstanding. Called once for
    /// each, the oldest departure first; not for a probe of the path's MTU.
    fn on_lost(&mut self, view: &FlowView, lost: &LostRecord) {
        let _ = (view, lost);
    }

    /// The network signalled congestion. Called for loss and ECN at most once per window of data;
    /// for timeouts once per expiry.
    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent);

    /// Recovery has ended: everything outstanding at its start has been acknowledged.
    fn on_recovery_exit(&mut self, view: &FlowView) {
        let _ = view;
    }

    /// Sending resumes after a pause, or must restart from a small window.
    fn on_restart(&mut self, view: &FlowView, restart: &Restart);

    /// The segment size of the path has changed (`view.smss` is the new one).
    fn on_smss_change(&mut self, view: &FlowView, old: u32) {
        let _ = (view, old);
    }

    /// Save the state: a congestion episode begins, which [`Self::undo`] may later take back.
    /// Called once per episode, before `on_congestion`.
    fn checkpoint(&mut self, view: &FlowView);

    /// The last episode was spurious.
    fn undo(&mut self, view: &FlowView, undo: &Undo);

    /// When to call [`Self::on_timeout`].
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// The instant of [`Self::next_timeout`] has come.
    fn on_timeout(&mut self, view: &FlowView) {
        let _ = view;
    }

    /// Reports the algorithm's internal variables, by name, for recorders and `info`.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }

    /// Changes parameters of a running connection: all of them or none.
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range, or fixed for the life of a connection.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        params.reject_all(self.name())
    }
}

/// Makes a congestion control for a connection with the initial state `init`.
pub type NewCongestionControl = dyn Fn(&CcInit) -> Box<dyn CongestionControl> + Send + Sync;

/// What is known when a congestion control is created: at the end of the handshake, or in the
/// middle of a connection when the algorithm is replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CcInit {
    /// The time of the call.
    pub now: Instant,
    /// Sender maximum segment size in payload bytes (RFC 5681, section 2).
    pub smss: u32,
    /// Initial window in bytes: the initial window (RFC 6928), or the predecessor's window.
    pub initial_window: Window,
    /// Initial `ssthresh`; [`Window::MAX`] on a new connection.
    pub ssthresh: Window,
    /// Granularity of the driver's clock and timers.
    pub granularity: Duration,
    /// What a decrease starts from if the window is not the limit.
    pub decrease_from: DecreaseFrom,
    /// IW, for the phases of RFC 7661, in which an unused window is kept and at last halved, but not
    /// below IW. `None`: the core restarts an unused window ([`Validation::ByUse`]).
    pub phases: Option<Window>,
    /// Smoothed RTT of RFC 6298; `None` before a sample.
    pub srtt: Option<Duration>,
    /// Smallest RTT sample of the last five minutes; `None` before a sample.
    pub min_rtt: Option<Duration>,
    /// Bytes acknowledged or SACKed since the connection began.
    pub delivered: u64,
    /// For random choices: differs from one connection to the next, and is the same if a run is
    /// repeated.
    pub seed: u64,
    /// The kind of ECN that both sides agreed on.
    pub ecn: Ecn,
}

/// What a congestion control reduces after a loss, a mark or a timeout if the application or the
/// peer's window, and not the congestion window, limits the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DecreaseFrom {
    /// The congestion window, as Linux does. RFC 9438, section 4.6, allows it to a sender whose
    /// window does not grow while less is in flight ([`FlowView::may_raise`]). A flow that has one
    /// segment in flight when it is lost, as most requests and answers do, keeps a window to answer
    /// with.
    #[default]
    Window,
    /// What was in flight, if that is less (RFC 5681, equation 4).
    Flight,
}

impl CcInit {
    /// The start of a new connection: `initial_window` bytes, no `ssthresh`.
    #[must_use]
    pub const fn new(now: Instant, smss: u32, initial_window: Window) -> Self {
        Self {
            now,
            smss,
            initial_window,
            ssthresh: Window::MAX,
            granularity: Duration::from_nanos(1),
            decrease_from: DecreaseFrom::Window,
            phases: None,
            srtt: None,
            min_rtt: None,
            delivered: 0,
            seed: 0,
            ecn: Ecn::Off,
        }
    }
}
