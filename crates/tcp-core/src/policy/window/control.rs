//! The adapter: a complete congestion control from rules for growth and decrease.

use super::phases::Phases;
use super::{DecreaseCx, GrowthCx, MovedBy, Signal, WindowGrowth, Windows};
use crate::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, EcnUse, FlowView, LostRecord, Phase, Reaction,
    Restart, RestartCause, SendDecision, SentSegment, SsthreshRule, Undo, Validation,
};
use crate::policy::{Metrics, NewCongestionControl, Params, SpecError};
use crate::seq::SeqNum;
use crate::units::Window;
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A congestion control whose window follows the rules of `G`. See the [module
/// documentation](super).
#[derive(Clone, Debug)]
pub struct WindowControl<G> {
    growth: G,
    windows: Windows,
    rare: Option<Box<Rare<G>>>,
}

/// State that most connections never have, behind one pointer to save their memory.
#[derive(Clone, Debug)]
struct Rare<G> {
    /// `None` before the first congestion.
    saved: Option<Saved<G>>,
    /// RFC 7661, if the connection asks for it.
    phases: Option<Phases>,
}

fn phases_of<G>(rare: &mut Option<Box<Rare<G>>>) -> Option<&mut Phases> {
    rare.as_deref_mut().and_then(|rare| rare.phases.as_mut())
}

fn saved_of<G>(rare: &mut Option<Box<Rare<G>>>) -> Option<&mut Saved<G>> {
    rare.as_deref_mut().and_then(|rare| rare.saved.as_mut())
}

/// State saved by a congestion episode.
#[derive(Clone, Debug)]
struct Saved<G> {
    /// The state before the last episode.
    growth: G,
    /// The windows before the last episode.
    windows: Windows,
    /// With [`EcnUse::PerAck`]: SND.NXT at the last decrease, until something beyond it is
    /// acknowledged.
    reduced_until: Option<SeqNum>,
}

/// Makes congestion controls that grow as `growth` does with `params`.
///
/// # Errors
/// Those of [`WindowGrowth::configure`].
pub fn make<G>(mut growth: G, params: &Params) -> Result<Arc<NewCongestionControl>, SpecError>
where
    G: WindowGrowth + Sync + 'static,
{
    growth.configure(params)?;
    Ok(Arc::new(move |init: &CcInit| Box::new(WindowControl::new(init, growth.clone()))))
}

impl<G: WindowGrowth> WindowControl<G> {
    /// A flow that starts from `init` and follows the rules of `growth`.
    #[must_use]
    pub fn new(init: &CcInit, mut growth: G) -> Self {
        growth.start(init);
        let rare =
            init.phases.map(|initial| Box::new(Rare { saved: None, phases: Some(Phases::new(initial)) }));
        Self { growth, windows: Windows::new(init), rare }
    }

    /// The growth, with its state.
    #[must_use]
    pub const fn growth(&self) -> &G {
        &self.growth
    }

    /// The growth, with its state.
    pub const fn growth_mut(&mut self) -> &mut G {
        &mut self.growth
    }

    /// The windows.
    #[must_use]
    pub const fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The windows.
    pub const fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    /// True if the flow uses its window.
    fn may_raise(&self, view: &FlowView) -> bool {
        // RFC 7661, section 4.4: in the non-validated phase only a window that is the limit grows.
        if self.phases().is_some_and(|phases| !phases.is_validated()) {
            return view.cwnd_limited;
        }
        view.may_raise(self.windows.cwnd(), self.windows.ssthresh())
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>) {
        self.close_window(cx.view);
        let before = self.windows;
        let loses = cx.signal == Signal::Loss;
        let phases = phases_of(&mut self.rare);
        let used = phases.and_then(|phases| phases.on_congestion(cx.view, cx.flight, loses));
        if let Some(used) = used {
            self.windows.limit(Window::from_bytes(used));
        }
        self.growth.decrease(cx, &mut self.windows);
        if let Some(used) = used.filter(|_| loses) {
            // RFC 7661, section 4.4: max(pipeACK, LossFlightSize) / 2.
            self.windows.halve_to(Window::from_bytes(used / 2));
        }
        self.windows.hold_below(&before);
    }

    /// RFC 7661: notes what was acknowledged, and ends a phase that has lasted too long.
    fn validate(&mut self, view: &FlowView, acked: u32) {
        let Some(phases) = phases_of(&mut self.rare) else { return };
        if acked > 0 && !matches!(view.phase, Phase::Recovery | Phase::Loss) {
            phases.on_ack(view, acked);
        }
        phases.judge(view, self.windows.cwnd());
        let before = self.windows;
        if let Some((cwnd, ssthresh)) = phases.expire(view.now, before.cwnd(), before.ssthresh()) {
            self.windows.limit(cwnd);
            self.windows.set_ssthresh(ssthresh);
            self.growth.moved(MovedBy::Restart, &before, &self.windows);
        }
    }

    /// With [`EcnUse::PerAck`]: outstanding data can no longer cause another decrease.
    fn close_window(&mut self, view: &FlowView) {
        if self.growth.ecn() == EcnUse::PerAck {
            self.saved().reduced_until = Some(view.snd_nxt);
        }
    }

    /// With [`EcnUse::PerAck`]: true for the first ACK with ECE in a window of data.
    fn decreases_on(&mut self, view: &FlowView, ack: &AckSample) -> bool {
        if self.growth.ecn() != EcnUse::PerAck {
            return false;
        }
        let reduced = saved_of(&mut self.rare).is_some_and(|saved| {
            saved.reduced_until.take_if(|until| view.snd_una.gt(*until));
            saved.reduced_until.is_some()
        });
        let repairs = matches!(view.phase, Phase::Recovery | Phase::Loss);
        ack.ece && !repairs && !reduced
    }

    /// True if data outstanding at the last decrease is not fully acknowledged.
    fn is_reduced(&self, view: &FlowView) -> bool {
        let reduced_until = self.saved_ref().and_then(|saved| saved.reduced_until);
        reduced_until.is_some_and(|until| view.snd_una.lt(until))
    }

    fn saved(&mut self) -> &mut Saved<G> {
        let Self { growth, windows, rare } = self;
        let rare = rare.get_or_insert_with(|| Box::new(Rare { saved: None, phases: None }));
        rare.saved.get_or_insert_with(|| Saved {
            growth: growth.clone(),
            windows: *windows,
            reduced_until: None,
        })
    }

    fn saved_ref(&self) -> Option<&Saved<G>> {
        self.rare.as_deref().and_then(|rare| rare.saved.as_ref())
    }

    pub(super) fn phases(&self) -> Option<&Phases> {
        self.rare.as_deref().and_then(|rare| rare.phases.as_ref())
    }

    fn on_expiry(&mut self, cx: &DecreaseCx<'_>, first: bool, window: Window, ssthresh: SsthreshRule) {
        self.close_window(cx.view);
        let before = self.windows;
        match ssthresh {
            SsthreshRule::Keep => {}
            SsthreshRule::To(value) => self.windows.set_ssthresh(value),
            SsthreshRule::ByCc if first => {
                self.growth.decrease(cx, &mut self.windows);
                // The window is proposed by the response.
                self.windows.set_cwnd_of(&before);
            }
            SsthreshRule::ByCc => {}
        }
        self.windows.restart(window);
        self.growth.moved(MovedBy::Timeout { first }, &before, &self.windows);
    }
}

impl<G: WindowGrowth> CongestionControl for WindowControl<G> {
    fn name(&self) -> &'static str {
        G::NAME
    }

    fn decision(&self) -> SendDecision {
        let mut decision = SendDecision::window(self.windows.cwnd(), self.windows.ssthresh());
        (decision.pacing, decision.revise) = self.growth.pacing(&self.windows);
        decision.ecn = self.growth.ecn();
        if self.phases().is_some() {
            decision.validation = Validation::ByPhase;
        }
        decision
    }

    fn on_sent(&mut self, view: &FlowView, sent: &SentSegment) {
        if !sent.retransmission && view.flight_size <= sent.len {
            self.growth.idle(view.now);
        }
    }

    fn wants_each_departure(&self) -> bool {
        false
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        self.validate(view, ack.newly_delivered);
        // RFC 3168, section 6.1.2: an ACK with ECE does not raise the window.
        let grows = view.phase != Phase::Recovery && ack.acked > 0 && !ack.ece;
        let mut cx = GrowthCx { view, ack, acked: ack.acked };
        if grows && self.windows.in_slow_start() {
            if !self.may_raise(view) {
                cx.acked = 0;
            }
            cx.acked = self.growth.slow_start(&cx, &mut self.windows);
        }
        self.growth.observe(&cx, &self.windows);
        if self.decreases_on(view, ack) {
            self.decrease(&DecreaseCx {
                view,
                signal: Signal::Ecn,
                flight: view.flight_size,
                pipe: view.pipe,
                from: self.windows.decrease_from(),
            });
            return Reaction::Reduced;
        }
        if grows && cx.acked > 0 && !self.windows.in_slow_start() {
            if self.may_raise(view) {
                self.growth.increase(&cx, &mut self.windows);
            } else {
                self.growth.unused(&cx, &self.windows);
            }
        }
        Reaction::None
    }

    fn on_lost(&mut self, _view: &FlowView, lost: &LostRecord) {
        if let Some(phases) = phases_of(&mut self.rare) {
            phases.on_lost(lost);
        }
    }

    fn on_recovery_exit(&mut self, view: &FlowView) {
        let Some(safe) = phases_of(&mut self.rare).and_then(Phases::on_recovery_exit) else { return };
        // RFC 7661, section 4.4: (max(pipeACK, LossFlightSize) - R) / 2, and at least a segment.
        let before = self.windows;
        self.windows.limit(Window::from_bytes(safe.max(u64::from(view.smss))));
        self.windows.set_ssthresh(self.windows.cwnd());
        self.growth.moved(MovedBy::Restart, &before, &self.windows);
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        let (flight, from) = (view.flight_size, self.windows.decrease_from());
        match *event {
            // RFC 8257, section 3.5: once per window of data, whatever the signals. Lost data was
            // sent after the decrease if everything before it is acknowledged.
            CongestionEvent::Loss { .. } if self.is_reduced(view) => {}
            CongestionEvent::Loss { prior_pipe } => {
                self.decrease(&DecreaseCx { view, signal: Signal::Loss, flight, pipe: prior_pipe, from });
            }
            CongestionEvent::Ecn => {
                self.decrease(&DecreaseCx { view, signal: Signal::Ecn, flight, pipe: view.pipe, from });
            }
            CongestionEvent::Timeout { flight_size, first, window, ssthresh } => {
                let (flight, pipe) = (flight_size, flight_size);
                let cx = DecreaseCx { view, signal: Signal::Timeout, flight, pipe, from };
                // RFC 7661, section 4.4: a timeout ends the phase, and is answered as any other.
                if let Some(phases) = phases_of(&mut self.rare) {
                    phases.forget();
                }
                self.on_expiry(&cx, first, window, ssthresh);
            }
        }
    }

    fn on_restart(&mut self, view: &FlowView, restart: &Restart) {
        if restart.cause == RestartCause::Idle && self.phases().is_some() {
            return self.validate(view, 0);
        }
        let before = self.windows;
        match restart.cause {
            RestartCause::Idle => self.windows.limit(restart.window),
            RestartCause::CleanTimeout => self.windows.restart(restart.window),
        }
        if self.windows.cwnd() == before.cwnd() {
            return;
        }
        if restart.cause == RestartCause::Idle && before.ssthresh() != Window::MAX {
            self.windows.set_ssthresh(self.growth.ssthresh_after_idle(&before));
        }
        self.growth.moved(MovedBy::Restart, &before, &self.windows);
    }

    fn on_smss_change(&mut self, view: &FlowView, _old: u32) {
        let saved = saved_of(&mut self.rare).map(|saved| (&mut saved.growth, &mut saved.windows));
        for (growth, windows) in [(&mut self.growth, &mut self.windows)].into_iter().chain(saved) {
            let before = *windows;
            windows.set_smss(view.smss);
            growth.moved(MovedBy::SegmentSize, &before, windows);
        }
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        let Self { growth, windows, rare } = self;
        match saved_of(rare) {
            Some(saved) => {
                saved.growth.clone_from(growth);
                saved.windows = *windows;
            }
            None => {
                self.saved();
            }
        }
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let before = self.windows;
        if let Some(phases) = phases_of(&mut self.rare) {
            phases.forget();
        }
        if let Some(saved) = saved_of(&mut self.rare) {
            self.growth.undo(&saved.growth);
            saved.reduced_until = None;
        }
        match (*undo, saved_of(&mut self.rare)) {
            (Undo::To { window, ssthresh }, _) => {
                self.windows.raise(window);
                self.windows.set_ssthresh(before.ssthresh().max(ssthresh));
            }
            (Undo::All, Some(saved)) => self.windows.raise_to(&saved.windows),
            (Undo::All, None) => {}
        }
        self.growth.moved(MovedBy::Undo(*undo), &before, &self.windows);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.bytes("cwnd", self.windows.bytes());
        report.window("ssthresh", self.windows.ssthresh());
        if let Some(phases) = self.phases() {
            report.flag("validated", phases.is_validated());
            if let Some(pipe_ack) = phases.last_pipe_ack() {
                report.bytes("pipe_ack", pipe_ack as f64);
            }
        }
        self.growth.metrics(&self.windows, report);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut growth = self.growth.clone();
        growth.configure(params)?;
        if let Some(saved) = saved_of(&mut self.rare) {
            // An undo does not restore parameters that were changed in the meantime.
            let mut before = saved.growth.clone();
            before.configure(params)?;
            saved.growth = before;
        }
        self.growth = growth;
        Ok(())
    }
}
