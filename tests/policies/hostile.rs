//! Policies that want to stop the connection. None may: the core keeps its own rules.

use crate::path::{Path, PathConfig};
use crate::{MINUTE, config, schedulers};
use ackline::core::policy::ack::{AckPlan, AckPolicy, DataArrival, RecvView, SoftObligations};
use ackline::core::policy::builtin::Fifo;
use ackline::core::policy::cc::{
    AckSample, CongestionControl, CongestionEvent, FlowView, Reaction, Restart, SendDecision, Undo,
};
use ackline::core::policy::sched::{
    Admission, Ask, Backlog, Descriptor, EgressScheduler, Forget, LinkView, Popped, Scope,
};
use ackline::core::{ConnConfig, Duration, Instant, Window};
use std::sync::Arc;

fn defaults() -> ConnConfig {
    config("cubic", "linux-like", "conventional")
}

/// Answers always the same, and has waived what can be waived.
#[derive(Debug)]
struct Stubborn(AckPlan);

impl AckPolicy for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }

    fn waives(&self) -> SoftObligations {
        SoftObligations::ALL
    }

    fn on_data(&mut self, _view: &RecvView, _data: &DataArrival) -> AckPlan {
        self.0
    }

    fn on_timeout(&mut self, _view: &RecvView) -> AckPlan {
        self.0
    }
}

#[test]
fn an_ack_policy_that_never_acknowledges_cannot_stop_a_transfer() {
    let never = Instant::FAR_FUTURE;
    let plans =
        [AckPlan::Withhold { until: never }, AckPlan::Keep, AckPlan::By(never), AckPlan::By(Instant::ZERO)];
    for plan in plans {
        let mut config = defaults();
        config.policies.ack = Arc::new(move |_| Box::new(Stubborn(plan)));
        let lossy = PathConfig { loss: 10, ..PathConfig::default() };
        let mut path = Path::new(lossy, config, 100_000, schedulers("fifo"));
        path.finish_within(MINUTE);
        if let AckPlan::Withhold { .. } = plan {
            assert!(path.server.counters().ack_hold_truncated > 0);
            assert!(path.server.counters().ack_obligations_waived > 0);
        }
    }
}

/// Refuses all data, and never says when it may ask again.
#[derive(Debug, Default)]
struct Refusing(Fifo);

impl EgressScheduler for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn admit(&mut self, _now: Instant, ask: &Ask) -> Admission {
        if ask.class.is_data() { Admission::Deferred } else { Admission::Granted }
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.0.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        self.0.pop(now, link)
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.0.forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.0.backlog(scope)
    }
}

#[test]
fn a_scheduler_that_defers_everything_cannot_stop_a_transfer() {
    let refusing = || -> Box<dyn EgressScheduler> { Box::new(Refusing::default()) };
    let mut path = Path::new(PathConfig::default(), defaults(), 100_000, [refusing(), refusing()]);
    path.finish_within(MINUTE);
}

/// A window that never moves.
#[derive(Debug)]
struct Fixed(Window);

impl CongestionControl for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn decision(&self) -> SendDecision {
        SendDecision::window(self.0, self.0)
    }

    fn on_ack(&mut self, _view: &FlowView, _ack: &AckSample) -> Reaction {
        Reaction::None
    }

    fn on_congestion(&mut self, _view: &FlowView, _event: &CongestionEvent) {}
    fn on_restart(&mut self, _view: &FlowView, _restart: &Restart) {}
    fn checkpoint(&mut self, _view: &FlowView) {}
    fn undo(&mut self, _view: &FlowView, _undo: &Undo) {}
}

fn run_fixed(window: Window, size: u64, limit: Duration) -> Duration {
    let mut config = defaults();
    config.policies.cc = Arc::new(move |_| Box::new(Fixed(window)));
    let mut path = Path::new(PathConfig::default(), config, size, schedulers("fifo"));
    let start = path.now;
    path.finish_within(limit);
    path.now.since(start)
}

#[test]
fn a_window_far_below_a_segment_slows_a_transfer_down_and_does_not_stop_it() {
    let smss = 1448;
    for (window, limit) in [(Window::from_bytes(smss / 4), 60), (Window::from_raw(1), 36_000)] {
        run_fixed(window, 10 * smss, Duration::from_secs(limit));
    }
}

#[test]
fn an_endless_window_is_bounded_by_the_receiver() {
    let time = run_fixed(Window::MAX, 10_000_000, Duration::from_secs(60));
    assert!(time > Duration::from_millis(20));
}
