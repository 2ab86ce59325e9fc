//! The simple interface for congestion controls: a window that grows and shrinks, and nothing else.
//!
//! Most congestion controls consist of a rule for growth and a rule for decrease. [`WindowGrowth`]
//! asks for these two; [`WindowControl`] turns them into a complete
//! [`CongestionControl`](super::cc::CongestionControl). Reno in its shortest form:
//!
//! ```
//! use ackline_tcp_core::policy::conformance;
//! use ackline_tcp_core::policy::window::{self, DecreaseCx, GrowthCx, WindowGrowth, Windows};
//!
//! #[derive(Clone, Debug, Default)]
//! struct Reno;
//!
//! impl WindowGrowth for Reno {
//!     const NAME: &'static str = "short-reno";
//!
//!     /// RFC 5681, equation 3: one segment per round trip.
//!     fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
//!         w.grow(f64::from(w.smss()) * f64::from(cx.acked) / w.bytes());
//!     }
//!     /// RFC 5681, equation 4.
//!     fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
//!         w.reduce_to(cx.base(w) / 2.0);
//!     }
//! }
//!
//! let make = window::make(Reno, &"".parse()?)?;
//! for seed in 0..20 {
//!     conformance::congestion_control(&*make, seed);
//! }
//! # Ok::<(), ackline_tcp_core::policy::SpecError>(())
//! ```
//!
//! The [`Entry`](super::spec::Entry) of such a control is [`Entry::growth`], which refuses
//! parameters that are not among [`WindowGrowth::KEYS`].
//!
//! [`Entry::growth`]: super::spec::Entry::growth
//!
//! # What the adapter does
//!
//! - **Slow start** below `ssthresh`, by at most two segments per ACK (RFC 3465), unless the
//!   control has its own.
//! - **No growth** if the flow does not use its window ([`FlowView::may_raise`]), while losses are
//!   being repaired, and on an ACK with ECE (RFC 3168, section 6.1.2).
//! - **Loss and ECN**: one call of [`WindowGrowth::decrease`] per window of data. It cannot raise
//!   the window, nor reduce it below one segment.
//! - **Timeouts**: `ssthresh` by the control's own decrease or as the RTO response says, once per
//!   episode; then the window that the response proposes, if smaller.
//! - **Restart** after idleness (RFC 5681, section 4.1) with `ssthresh` raised to three quarters of
//!   the window (RFC 2861).
//! - **Phases** (RFC 7661) instead of that restart, if the connection asks for them: a window that
//!   is not used is kept for five minutes, and a loss then counts from what was used.
//! - **Undo** of a spurious episode: restores the windows and the control's own state.
//! - **`configure`** at run time, all or nothing: the parameters are set in a copy, which replaces
//!   the control if all of them are valid.
//!
//! Implement [`CongestionControl`](super::cc::CongestionControl) itself for a control that paces at
//! a rate of its own, counts segments on a departure clock, or wants another recovery.

mod control;
mod phases;
#[cfg(test)]
mod tests;
mod windows;

pub use control::{WindowControl, make};
pub use windows::Windows;

use super::cc::{AckSample, CcInit, DecreaseFrom, EcnUse, FlowView, Pacing, Phase, Revise, Undo};
use super::spec::{Key, set_keys};
use super::{Metrics, Params, SpecError};
use crate::time::Instant;
use crate::units::Window;
use core::fmt::Debug;

/// How a window-based congestion control grows and decreases.
///
/// A name and two methods are required. The others are for controls that measure the path, keep state
/// between decreases, or have parameters; leave out those that you do not need. The value is the
/// control's state on one connection, and undo restores a clone of it.
///
/// For each ACK, [`WindowControl`] calls in this order:
///
/// 1. [`slow_start`](Self::slow_start), if the window is below `ssthresh` and no loss is being
///    repaired;
/// 2. [`observe`](Self::observe), always;
/// 3. [`increase`](Self::increase), if acknowledged bytes are left for congestion avoidance and the
///    flow uses its window; [`unused`](Self::unused), if bytes are left and it does not.
///
/// The [module documentation](self) shows a complete control, and lists what the adapter takes care
/// of.
pub trait WindowGrowth: Clone + Debug + Send + 'static {
    /// The name under which the control is chosen (`reno`).
    const NAME: &'static str;

    /// Its parameters.
    const KEYS: &'static [Key<Self>] = &[];

    /// An ACK in congestion avoidance, from a flow that uses its window: raise the window with
    /// [`Windows::grow`] by what `cx.acked` bytes are worth. A delay-based control may also lower
    /// it, with [`Windows::set_bytes`].
    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows);

    /// A loss, a mark or a timeout, once per window of data: lower window and `ssthresh`, usually
    /// with [`Windows::reduce_to`] from [`DecreaseCx::base`]. At a timeout only `ssthresh` counts;
    /// the RTO response proposes the window.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows);

    /// An ACK in slow start. Grow by at most `cx.acked` bytes, with [`Windows::open`], and return
    /// how many are left for congestion avoidance. `cx.acked` is 0 if the flow does not use its
    /// window. To leave slow start, set `ssthresh` to the window.
    ///
    /// The default grows by at most two segments per ACK, and by one after a timeout (RFC 3465,
    /// section 2.3).
    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        if cx.acked == 0 {
            return 0;
        }
        let most = cx.at_most(if cx.view.phase == Phase::Loss { 1 } else { 2 });
        let rest = w.open(f64::from(most));
        cx.acked - (f64::from(most) - rest) as u32
    }

    /// An ACK arrived, in any phase: the place for measurements. Slow start has already used it,
    /// congestion avoidance has not; `cx.acked` is what is left for that.
    fn observe(&mut self, cx: &GrowthCx<'_>, w: &Windows) {
        let _ = (cx, w);
    }

    /// The connection starts, or switches to this control.
    fn start(&mut self, init: &CcInit) {
        let _ = init;
    }

    /// Replaces [`increase`](Self::increase) for an ACK in congestion avoidance if the flow does
    /// not use its window.
    fn unused(&mut self, cx: &GrowthCx<'_>, w: &Windows) {
        let _ = (cx, w);
    }

    /// New data is sent at `now` with nothing else outstanding: the flow was idle since the last
    /// ACK.
    fn idle(&mut self, now: Instant) {
        let _ = now;
    }

    /// Something other than growth and decrease changed the windows, from `before` to `w`.
    fn moved(&mut self, by: MovedBy, before: &Windows, w: &Windows) {
        let _ = (by, before, w);
    }

    /// The last congestion episode was spurious; `before` is the state at its start. The default
    /// returns to it.
    fn undo(&mut self, before: &Self) {
        self.clone_from(before);
    }

    /// `ssthresh` for the restart after an idle period, given the windows before it. The default is
    /// at least three quarters of the window, so that slow start regains most of what the flow
    /// could use (RFC 2861, section 3.1).
    fn ssthresh_after_idle(&self, w: &Windows) -> Window {
        w.ssthresh().max(w.cwnd().mul_ratio(3, 4))
    }

    /// The least distance between departures, and what changing it does to a pending one. By
    /// default data is sent as soon as the window allows.
    fn pacing(&self, w: &Windows) -> (Pacing, Revise) {
        let _ = w;
        (Pacing::Unpaced, Revise::NextDeparture)
    }

    /// The ECN feedback to deliver. With [`EcnUse::PerAck`] the control reads marks in
    /// [`observe`](Self::observe), and the first ACK with ECE in each window of data leads to
    /// [`decrease`](Self::decrease) (RFC 8257).
    fn ecn(&self) -> EcnUse {
        EcnUse::PerWindow
    }

    /// Reports the control's internal variables, by name. `cwnd` and `ssthresh` are always
    /// reported.
    fn metrics(&self, w: &Windows, report: &mut Metrics<'_>) {
        let _ = (w, report);
    }

    /// Sets parameters. If it fails, values already set are discarded. The default sets
    /// [`KEYS`](Self::KEYS).
    ///
    /// # Errors
    /// Names the parameter that is unknown, out of range or fixed for the life of a connection.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        set_keys(Self::NAME, Self::KEYS, self, params)
    }
}

/// An ACK, as growth sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GrowthCx<'a> {
    /// The flow.
    pub view: &'a FlowView,
    /// The ACK.
    pub ack: &'a AckSample,
    /// Newly acknowledged bytes to grow by.
    pub acked: u32,
}

impl GrowthCx<'_> {
    /// [`acked`](Self::acked), capped at `segments` segments per ACK. An ACK that covers many
    /// segments counts as one ACK per two segments, as a receiver without offloads would have sent.
    #[must_use]
    pub fn at_most(&self, segments: u32) -> u32 {
        let acks = self.ack.segments.div_ceil(2).max(1);
        self.acked.min(segments.saturating_mul(acks).saturating_mul(self.view.smss))
    }
}

/// A decrease.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DecreaseCx<'a> {
    /// The flow.
    pub view: &'a FlowView,
    /// The cause.
    pub signal: Signal,
    /// FlightSize in bytes (RFC 5681, section 2); at a timeout, that at the expiry.
    pub flight: u32,
    /// Bytes in the network before anything was marked lost.
    pub pipe: u32,
    /// The connection's choice of what a decrease starts from.
    pub from: DecreaseFrom,
}

impl DecreaseCx<'_> {
    /// The bytes that a decrease should start from: the window, or with [`DecreaseFrom::Flight`]
    /// what is in flight, unless the window limits the flow.
    #[must_use]
    pub fn base(&self, w: &Windows) -> f64 {
        if self.is_from_window() { w.bytes() } else { w.bytes().min(f64::from(self.flight)) }
    }

    /// True if a decrease should start from the window. One that limits the flow is used in place
    /// of the flight, too: an ACK that covers many segments leaves a small flight until the window
    /// is filled again.
    #[must_use]
    pub const fn is_from_window(&self) -> bool {
        self.view.cwnd_limited || matches!(self.from, DecreaseFrom::Window)
    }
}

/// The cause of a decrease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Data was declared lost.
    Loss,
    /// Data was marked by ECN.
    Ecn,
    /// The first timeout of an episode, if its response leaves `ssthresh` to the control.
    Timeout,
}

/// What changed the windows other than growth and decrease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovedBy {
    /// The retransmission timer fired.
    Timeout {
        /// The first one in this episode. If the response left `ssthresh` to the control,
        /// [decrease](WindowGrowth::decrease) was called just before.
        first: bool,
    },
    /// Sending restarts from a smaller window.
    Restart,
    /// An episode was undone, after [`WindowGrowth::undo`].
    Undo(Undo),
    /// The segment size changed. The windows keep their size in bytes.
    SegmentSize,
}
