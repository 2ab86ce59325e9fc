//! NewReno under Prague's name: for peers without accurate ECN, whose feedback tells of one mark
//! per round trip at most.

use ackline_tcp_core::policy::builtin::NewReno;
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Reaction, Restart, SendDecision,
    SentSegment, Undo,
};
use ackline_tcp_core::policy::spec::Keyed as _;
use ackline_tcp_core::policy::window::WindowControl;
use ackline_tcp_core::policy::{Metrics, Params, SpecError};

/// NewReno that calls itself `prague`.
#[derive(Debug)]
pub(super) struct Fallback(WindowControl<NewReno>);

impl Fallback {
    pub(super) fn new(init: &CcInit) -> Self {
        Self(NewReno::new(init))
    }
}

impl CongestionControl for Fallback {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn decision(&self) -> SendDecision {
        self.0.decision()
    }

    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        self.0.on_sent(view, sent);
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        self.0.on_ack(view, ack)
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        self.0.on_congestion(view, event);
    }

    fn on_restart(&mut self, view: &FlowView, restart: &Restart) {
        self.0.on_restart(view, restart);
    }

    fn on_smss_change(&mut self, view: &FlowView, old: u32) {
        self.0.on_smss_change(view, old);
    }

    fn checkpoint(&mut self, view: &FlowView) {
        self.0.checkpoint(view);
    }

    fn undo(&mut self, view: &FlowView, undo: &Undo) {
        self.0.undo(view, undo);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        self.0.metrics(report);
        report.flag("fallback", true);
    }

    /// Parameters of Prague have no effect, but must be right.
    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        super::PragueParams::from_params("prague", params).map(|_| ())
    }
}
