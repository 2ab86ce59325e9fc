//! The built-in policies conform, and the suites catch policies that break a rule.

use super::{ack_policy, congestion_control, egress_scheduler, rto_response};
use crate::policy::ack::{AckInit, AckPlan, AckPolicy, DataArrival, RecvView};
use crate::policy::builtin::{Conventional, DelayedAck, Fifo, NewReno};
use crate::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Reaction, Restart, SendDecision,
    SsthreshRule, Undo,
};
use crate::policy::rto::Episode;
use crate::policy::rto::{RtoPhase, RtoResponse, RtoSend, RtoStep, RtoTimer, RtoView};
use crate::policy::sched::{
    Admission, Ask, Backlog, Descriptor, EgressScheduler, Forget, LinkView, Popped, Scope, SegmentClass,
};
use crate::policy::window::WindowControl;
use crate::policy::{Metrics, Params, SpecError};
use crate::time::{Duration, Instant};
use crate::units::Window;
use alloc::boxed::Box;
use alloc::string::String;
use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SEEDS: core::ops::Range<u64> = 0..60;

#[test]
fn new_reno_keeps_the_rules() {
    for seed in SEEDS {
        congestion_control(&|init: &CcInit| Box::new(NewReno::new(init)), seed);
    }
}

#[test]
fn delayed_ack_keeps_the_rules() {
    for seed in SEEDS {
        ack_policy(&|_: &AckInit| Box::new(DelayedAck::default()), seed);
        ack_policy(&|_: &AckInit| Box::new(DelayedAck::new(Duration::from_millis(100), 20)), seed);
    }
}

#[test]
fn fifo_keeps_the_rules() {
    for seed in SEEDS {
        egress_scheduler(&|| Box::new(Fifo::default()), seed);
    }
}

#[test]
fn conventional_keeps_the_rules() {
    for seed in SEEDS {
        rto_response(&|| Box::new(Episode::new(Conventional)), seed);
    }
}

/// Runs a suite on a policy that breaks a rule; some seed must catch it with a message that
/// contains `expected`.
fn assert_caught(expected: &str, suite: impl Fn(u64)) {
    let caught = SEEDS.into_iter().find_map(|seed| catch_unwind(AssertUnwindSafe(|| suite(seed))).err());
    let Some(payload) = caught else {
        panic!("no seed caught the policy that should fail with {expected:?}")
    };
    let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(text.contains(expected), "caught with {text:?} instead of {expected:?}");
}

/// The fault of a broken congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CcFault {
    ImpureDecision,
    EmptyWindow,
    RaisesOnLoss,
    RaisesUnusedWindow,
    IgnoresTheProposal,
    OnlyLowersSsthresh,
    ForgetsToUndo,
    IgnoresRestart,
    ReducedUnasked,
    EndlessTimer,
    NotFinite,
    MisnamesATime,
    CountsItsReaders,
    TakesAnyParameter,
    DiffersPerInstance(bool),
}

#[derive(Debug)]
struct BrokenCc {
    inner: WindowControl<NewReno>,
    fault: CcFault,
    asked: Cell<u64>,
    now: Instant,
}

impl CongestionControl for BrokenCc {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn decision(&self) -> SendDecision {
        let mut decision = self.inner.decision();
        self.asked.set(self.asked.get() + 1);
        match self.fault {
            CcFault::ImpureDecision => {
                decision.window = decision.window.saturating_add(Window::from_raw(self.asked.get()));
            }
            CcFault::EmptyWindow => decision.window = Window::ZERO,
            CcFault::DiffersPerInstance(true) => decision.burst = 1,
            _ => {}
        }
        decision
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        self.now = view.now;
        let mut view = *view;
        view.cwnd_limited |= self.fault == CcFault::RaisesUnusedWindow;
        let reaction = self.inner.on_ack(&view, ack);
        if self.fault == CcFault::ReducedUnasked { Reaction::Reduced } else { reaction }
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match (self.fault, *event) {
            (CcFault::RaisesOnLoss, CongestionEvent::Loss { .. }) => {
                let window = Window::from_bytes(u64::from(view.smss) * 1000);
                self.inner.undo(view, &Undo::To { window, ssthresh: window });
            }
            (CcFault::IgnoresTheProposal, CongestionEvent::Timeout { .. }) => {}
            (
                CcFault::OnlyLowersSsthresh,
                CongestionEvent::Timeout { flight_size, first, window, ssthresh: SsthreshRule::To(value) },
            ) => {
                let ssthresh = SsthreshRule::To(value.min(self.inner.windows().ssthresh()));
                let event = CongestionEvent::Timeout { flight_size, first, window, ssthresh };
                self.inner.on_congestion(view, &event);
            }
            _ => self.inner.on_congestion(view, event),
        }
    }

    fn on_restart(&mut self, view: &FlowView, restart: &Restart) {
        if self.fault != CcFault::IgnoresRestart {
            self.inner.on_restart(view, restart);
        }
    }

    fn checkpoint(&mut self, view: &FlowView) {
        self.inner.checkpoint(view);
    }

    fn undo(&mut self, view: &FlowView, undo: &Undo) {
        if self.fault != CcFault::ForgetsToUndo {
            self.inner.undo(view, undo);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        (self.fault == CcFault::EndlessTimer).then_some(self.now)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        match self.fault {
            CcFault::NotFinite => report.number("ratio", f64::NAN),
            CcFault::MisnamesATime => report.millis("delay", Duration::ZERO),
            CcFault::CountsItsReaders => {
                self.asked.set(self.asked.get() + 1);
                report.number("asked", self.asked.get() as f64);
            }
            _ => {}
        }
        self.inner.metrics(report);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        if self.fault == CcFault::TakesAnyParameter { Ok(()) } else { self.inner.configure(params) }
    }
}

#[test]
fn broken_congestion_controls_are_caught() {
    let cases = [
        (CcFault::ImpureDecision, "decision"),
        (CcFault::EmptyWindow, "the window is empty"),
        (CcFault::RaisesOnLoss, "a congestion signal raised the window"),
        (CcFault::RaisesUnusedWindow, "an ACK raised the window"),
        (CcFault::IgnoresTheProposal, "after a timeout that proposed"),
        (CcFault::OnlyLowersSsthresh, "against To("),
        (CcFault::ForgetsToUndo, "undo gave"),
        (CcFault::IgnoresRestart, "after a restart"),
        (CcFault::ReducedUnasked, "Reaction::Reduced"),
        (CcFault::EndlessTimer, "stays due"),
        (CcFault::NotFinite, "metric ratio is NaN"),
        (CcFault::MisnamesATime, "metric delay is in Millis"),
        (CcFault::CountsItsReaders, "metrics differ from those of a moment ago"),
        (CcFault::TakesAnyParameter, "took the unknown parameter"),
    ];
    for (fault, expected) in cases {
        assert_caught(expected, |seed| {
            let make = move |init: &CcInit| -> Box<dyn CongestionControl> {
                Box::new(BrokenCc { inner: NewReno::new(init), fault, asked: Cell::new(0), now: init.now })
            };
            congestion_control(&make, seed);
        });
    }
}

#[test]
fn a_congestion_control_with_hidden_state_is_caught() {
    assert_caught("two instances with the same history differ", |seed| {
        let made = core::sync::atomic::AtomicBool::new(false);
        let make = move |init: &CcInit| -> Box<dyn CongestionControl> {
            let second = made.swap(true, core::sync::atomic::Ordering::Relaxed);
            let fault = CcFault::DiffersPerInstance(second);
            Box::new(BrokenCc { inner: NewReno::new(init), fault, asked: Cell::new(0), now: init.now })
        };
        congestion_control(&make, seed);
    });
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AckFault {
    PlansInThePast,
    WithholdsWithoutWaiving,
    NeverAtRest,
}

#[derive(Debug)]
struct BrokenAck {
    fault: AckFault,
}

impl AckPolicy for BrokenAck {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn on_data(&mut self, view: &RecvView, _data: &DataArrival) -> AckPlan {
        match self.fault {
            AckFault::PlansInThePast => AckPlan::By(view.now - Duration::from_nanos(1)),
            AckFault::WithholdsWithoutWaiving => {
                AckPlan::Withhold { until: view.now + Duration::from_millis(1) }
            }
            AckFault::NeverAtRest => AckPlan::By(view.now),
        }
    }

    fn on_timeout(&mut self, view: &RecvView) -> AckPlan {
        if self.fault == AckFault::NeverAtRest { AckPlan::By(view.now) } else { AckPlan::NOW }
    }
}

#[test]
fn broken_ack_policies_are_caught() {
    let cases = [
        (AckFault::PlansInThePast, "in the past"),
        (AckFault::WithholdsWithoutWaiving, "waives nothing"),
        (AckFault::NeverAtRest, "plans at one instant"),
    ];
    for (fault, expected) in cases {
        assert_caught(expected, |seed| ack_policy(&move |_: &AckInit| Box::new(BrokenAck { fault }), seed));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SchedFault {
    Loses,
    Duplicates,
    LastInFirstOut,
    NeverResumes,
    DefersAcks,
    WaitsForEver,
    MisreportsBacklog,
    ForgetsToForget,
}

#[derive(Debug)]
struct BrokenSched {
    inner: Fifo,
    fault: SchedFault,
    last: Option<Descriptor>,
    pushed: u64,
}

impl EgressScheduler for BrokenSched {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn admit(&mut self, _now: Instant, ask: &Ask) -> Admission {
        match self.fault {
            SchedFault::NeverResumes if ask.class.is_data() && self.pushed > 5 => Admission::Deferred,
            SchedFault::DefersAcks if ask.class == SegmentClass::PureAck => Admission::Deferred,
            _ => Admission::Granted,
        }
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.pushed += 1;
        if self.fault == SchedFault::Loses && self.pushed.is_multiple_of(50) {
            return;
        }
        if self.fault == SchedFault::LastInFirstOut {
            let mut old = core::mem::take(&mut self.inner);
            self.inner.push(now, packet);
            while let Popped::Packet(packet) = old.pop(now, &LinkView::new(u32::MAX)) {
                self.inner.push(now, packet);
            }
            return;
        }
        self.inner.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        if self.fault == SchedFault::WaitsForEver && self.inner.backlog(Scope::All).packets > 0 {
            return Popped::NotBefore(now + Duration::from_nanos(1));
        }
        let popped = self.inner.pop(now, link);
        if let (SchedFault::Duplicates, Popped::Packet(packet)) = (self.fault, popped) {
            if let Some(last) = self.last.filter(|last| last.len <= link.room) {
                return Popped::Packet(last);
            }
            self.last = Some(packet);
        }
        popped
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        if self.fault != SchedFault::ForgetsToForget {
            self.inner.forget(now, which);
        }
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        let mut backlog = self.inner.backlog(scope);
        if self.fault == SchedFault::MisreportsBacklog {
            backlog.bytes += 1;
        }
        backlog
    }
}

#[test]
fn broken_schedulers_are_caught() {
    let cases = [
        (SchedFault::Loses, "backlog"),
        (SchedFault::Duplicates, "was never pushed, or left before"),
        (SchedFault::LastInFirstOut, "overtook"),
        (SchedFault::NeverResumes, "are never resumed"),
        (SchedFault::DefersAcks, "only data may be"),
        (SchedFault::WaitsForEver, "no packet leaves"),
        (SchedFault::MisreportsBacklog, "backlog"),
        (SchedFault::ForgetsToForget, "backlog"),
    ];
    for (fault, expected) in cases {
        assert_caught(expected, |seed| {
            let make = move || -> Box<dyn EgressScheduler> {
                Box::new(BrokenSched { inner: Fifo::default(), fault, last: None, pushed: 0 })
            };
            egress_scheduler(&make, seed);
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RtoFault {
    StopsTheTimer,
    SendsWhatIsNotOutstanding,
    NeverEnds,
    NeverBegins,
}

#[derive(Debug)]
struct BrokenRto {
    fault: RtoFault,
    phase: RtoPhase,
}

impl RtoResponse for BrokenRto {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn on_rto(&mut self, view: &RtoView) -> RtoStep {
        let mut step = RtoStep::conventional(view.flow.smss);
        if self.fault != RtoFault::NeverBegins {
            self.phase = RtoPhase::Repair;
        }
        match self.fault {
            RtoFault::StopsTheTimer => step.timer = RtoTimer::Stop,
            RtoFault::SendsWhatIsNotOutstanding => step.send = RtoSend::Again(view.flow.snd_nxt),
            RtoFault::NeverEnds | RtoFault::NeverBegins => {}
        }
        step
    }

    fn phase(&self) -> RtoPhase {
        self.phase
    }
}

#[test]
fn broken_rto_responses_are_caught() {
    let cases = [
        (RtoFault::StopsTheTimer, "stops the timer"),
        (RtoFault::SendsWhatIsNotOutstanding, "is not outstanding"),
        (RtoFault::NeverEnds, "the episode goes on"),
        (RtoFault::NeverBegins, "the phase is Open after it"),
    ];
    for (fault, expected) in cases {
        assert_caught(expected, |seed| {
            rto_response(&move || Box::new(BrokenRto { fault, phase: RtoPhase::Open }), seed);
        });
    }
}
