//! Responses whose decision is made when the timer fires: everything that was outstanding then is
//! repaired, until it is acknowledged.

use super::{AckFacts, NewRtoResponse, RtoPhase, RtoResponse, RtoStep, RtoView};
use crate::policy::spec::{Key, set_keys};
use crate::policy::{Metrics, Params, SpecError};
use crate::seq::SeqNum;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt::Debug;

/// The step at a timeout. [`Episode`] makes a response of it.
pub trait FirstStep: Clone + Debug + Send + Sync + 'static {
    /// The name under which the response is chosen.
    const NAME: &'static str;

    /// Its parameters.
    const KEYS: &'static [Key<Self>] = &[];

    /// The retransmission timer fired. The core sends one segment and backs off, whatever the step
    /// says (RFC 6298, 5.4 to 5.6).
    fn on_rto(&mut self, view: &RtoView) -> RtoStep;

    /// Reports internal variables, by name. Whether losses are being repaired is always reported.
    fn metrics(&self, report: &mut Metrics<'_>) {
        let _ = report;
    }
}

/// The response that takes a [`FirstStep`] at each timeout: it begins or extends an episode, which
/// lasts until what was outstanding is acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Episode<S> {
    step: S,
    /// RecoveryPoint (RFC 6675, section 5): SND.NXT at the last timeout; `None` outside an episode.
    recovery_point: Option<SeqNum>,
}

impl<S: FirstStep> Episode<S> {
    /// No timeout yet.
    #[must_use]
    pub const fn new(step: S) -> Self {
        Self { step, recovery_point: None }
    }
}

impl<S: FirstStep> RtoResponse for Episode<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        self.recovery_point = Some(view.flow.snd_nxt);
        self.step.on_rto(view)
    }

    fn on_ack(&mut self, _view: &RtoView, ack: &AckFacts) -> Option<RtoStep> {
        self.recovery_point.take_if(|point| ack.ack.ge(*point));
        None
    }

    fn phase(&self) -> RtoPhase {
        if self.recovery_point.is_some() { RtoPhase::Repair } else { RtoPhase::Open }
    }

    fn on_takeover(&mut self) {
        self.recovery_point = None;
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        self.step.metrics(report);
        report.flag("repairing", self.recovery_point.is_some());
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut step = self.step.clone();
        set_keys(S::NAME, S::KEYS, &mut step, params)?;
        self.step = step;
        Ok(())
    }
}

/// The maker of the response that takes `step`, with `params`: for an
/// [`Entry`](crate::policy::spec::Entry).
///
/// # Errors
/// Names the parameter that is unknown or out of range.
pub fn make<S: FirstStep>(mut step: S, params: &Params) -> Result<Arc<NewRtoResponse>, SpecError> {
    set_keys(S::NAME, S::KEYS, &mut step, params)?;
    Ok(Arc::new(move || Box::new(Episode::new(step.clone()))))
}
