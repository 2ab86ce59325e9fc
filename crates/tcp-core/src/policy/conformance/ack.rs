//! The rules of ACK policies.

use super::rng::Rng;
use super::{check_configure, check_metrics};
use crate::policy::NewAckPolicy;
use crate::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView, SoftObligations,
};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::string::String;

const STEPS: u32 = 2_000;
/// Plans that may follow each other at one instant without an arrival between them.
const MAX_CHAIN: u32 = 16;
/// The hold limit of this suite's receiver.
const HOLD_LIMIT: Duration = Duration::from_millis(180);

/// Drives an ACK policy through a valid receiver: data in order and out of order, gaps that fill,
/// duplicates, probes, super-packets, CE marks, urgent data, round trips from timestamps, slow and
/// fast readers, piggybacked and forced ACKs, truncated holds, idle times.
///
/// In addition to the rules for [every policy](super):
/// - the instants of [`AckPlan::By`] and [`AckPlan::Withhold`] are not in the past;
/// - [`AckPlan::Withhold`] comes only from a policy that waives something;
/// - plans do not chase each other: after at most 16 of them at one instant, nothing is due;
/// - [`AckPolicy::waives`] does not change during a connection's life.
///
/// # Panics
/// If a rule is broken.
#[track_caller]
pub fn ack_policy(make: &NewAckPolicy, seed: u64) {
    let mut receiver = Receiver::new(make, seed);
    for step in 0..STEPS {
        receiver.step = step;
        receiver.run();
        receiver.check();
    }
}

struct Receiver {
    rng: Rng,
    seed: u64,
    step: u32,
    event: &'static str,
    subject: Box<dyn AckPolicy>,
    twin: Box<dyn AckPolicy>,
    view: RecvView,
    /// Out-of-order data is being held.
    gap: bool,
    timer: Option<Instant>,
    waives: SoftObligations,
}

impl Receiver {
    fn new(make: &NewAckPolicy, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let now = Instant::from_nanos(rng.below(1 << 40));
        let rmss = [1448, 536, 8948, 0, 1][usize::try_from(rng.below(5)).unwrap_or(0)];
        let rtt = (!rng.one_in(3)).then(|| Duration::from_nanos(rng.below(1 << 34)));
        let mut init = AckInit::new(now, rmss, rtt);
        init.hold_limit = HOLD_LIMIT;
        let mut view =
            RecvView::new(now, SeqNum(rng.between32(0, u32::MAX)), rng.between32(1, 1 << 24), rmss);
        view.mss = if rng.one_in(2) { rmss } else { rng.between32(rmss, 0xffff) };
        view.handshake_rtt = rtt;
        view.srtt = rtt.filter(|_| rng.one_in(2));
        let (subject, twin) = (make(&init), make(&init));
        assert!(!subject.name().is_empty(), "an ACK policy has no name");
        let waives = subject.waives();
        Self { rng, seed, step: 0, event: "start", subject, twin, view, gap: false, timer: None, waives }
    }

    fn who(&self) -> String {
        let Self { seed, step, event, .. } = self;
        alloc::format!("{} (seed {seed}, step {step}, {event})", self.subject.name())
    }

    /// Passes an event to both instances, checks that they agree, and returns their plan.
    fn ask(
        &mut self,
        event: &'static str,
        ask: impl Fn(&mut dyn AckPolicy, &RecvView) -> AckPlan,
    ) -> AckPlan {
        self.event = event;
        let plan = ask(self.subject.as_mut(), &self.view);
        let other = ask(self.twin.as_mut(), &self.view);
        assert_eq!(plan, other, "{}: two instances with the same history differ", self.who());
        plan
    }

    fn run(&mut self) {
        let plan = match self.rng.below(16) {
            0..8 => self.data(),
            8 => {
                let read = self.rng.between32(0, self.view.buffer - self.view.free);
                self.view.free += read;
                self.ask("on_app_read", |policy, view| policy.on_app_read(view))
            }
            9 => {
                self.send(AckCause::Piggyback);
                return;
            }
            10 => {
                self.event = "configure";
                let who = self.who();
                check_configure(&who, |params| self.subject.configure(params));
                return;
            }
            11 if self.rng.one_in(4) => {
                let time = Duration::from_secs(self.rng.below(10_000));
                self.pass(time);
                return;
            }
            _ => {
                let time = Duration::from_nanos(self.rng.below(1 << 27));
                self.pass(time);
                return;
            }
        };
        self.follow(plan);
    }

    fn data(&mut self) -> AckPlan {
        let rmss = self.view.rmss.max(1);
        let segments = if self.rng.one_in(4) { self.rng.between32(1, 44) } else { 1 };
        let len = match self.rng.below(3) {
            0 => self.rng.between32(1, rmss),
            _ => rmss.saturating_mul(segments),
        };
        let nxt = self.view.rcv_nxt;
        let fits = len <= self.view.free;
        let (class, start) = match self.rng.below(8) {
            0 => (DataClass::OutOfOrder, nxt + rmss),
            1 => (DataClass::Duplicate, nxt - len),
            2 => (DataClass::Probe, nxt - 1),
            _ if !fits => (DataClass::Unacceptable, nxt),
            _ if self.gap => (DataClass::Hole, nxt),
            _ => (DataClass::New, nxt),
        };
        let mut data = DataArrival::new(start, start + len, class);
        data.segments = segments;
        data.psh = self.rng.one_in(4);
        data.ce = self.rng.one_in(4);
        data.urg = self.rng.one_in(50);
        data.ts_rtt = self.rng.one_in(2).then(|| Duration::from_nanos(self.rng.below(1 << 36)));
        match class {
            DataClass::New | DataClass::Hole => {
                self.view.rcv_nxt += len;
                self.view.free -= len;
                self.view.oldest_unacked = self.view.oldest_unacked.or(Some(self.view.now));
                self.gap = self.gap && self.rng.one_in(2);
            }
            DataClass::OutOfOrder => self.gap = true,
            DataClass::Duplicate | DataClass::Probe | DataClass::Unacceptable => {}
        }
        self.ask("on_data", |policy, view| policy.on_data(view, &data))
    }

    /// Executes a plan as a core does, until nothing is due.
    fn follow(&mut self, mut plan: AckPlan) {
        for _ in 0..MAX_CHAIN {
            match plan {
                AckPlan::Keep => {}
                AckPlan::Now { .. } => {
                    plan = self.acknowledge(AckCause::Plan);
                    continue;
                }
                AckPlan::By(at) => self.arm(at),
                AckPlan::Withhold { until } => {
                    assert!(
                        self.waives != SoftObligations::NONE,
                        "{}: Withhold from a policy that waives nothing",
                        self.who()
                    );
                    self.arm(until);
                }
            }
            match self.timer {
                Some(due) if due <= self.view.now => {
                    self.timer = None;
                    plan = self.ask("on_timeout", |policy, view| policy.on_timeout(view));
                }
                _ => return,
            }
        }
        panic!("{}: more than {MAX_CHAIN} plans at one instant", self.who());
    }

    fn arm(&mut self, at: Instant) {
        assert!(
            at >= self.view.now,
            "{}: the plan's instant {at:?} is in the past, it is {:?}",
            self.who(),
            self.view.now
        );
        self.timer = Some(at);
    }

    fn acknowledge(&mut self, cause: AckCause) -> AckPlan {
        let advance = self.view.unacked();
        self.view.highest_ack = self.view.rcv_nxt;
        self.view.edge = self.view.rcv_nxt + self.view.free;
        self.view.oldest_unacked = None;
        self.timer = None;
        let sent = AckSent::new(cause, advance);
        self.ask("on_ack_sent", |policy, view| policy.on_ack_sent(view, &sent))
    }

    fn send(&mut self, cause: AckCause) {
        let plan = self.acknowledge(cause);
        self.follow(plan);
    }

    /// Lets time pass; the policy's timer and the hold limit are served on the way.
    fn pass(&mut self, time: Duration) {
        let end = self.view.now + time;
        for _ in 0..64 {
            let hold = self.view.oldest_unacked.map(|oldest| oldest + HOLD_LIMIT);
            match (self.timer, hold) {
                // At a tie the policy's timer runs before the hold limit.
                (Some(due), hold) if due <= end && hold.is_none_or(|hold| due <= hold) => {
                    self.view.now = self.view.now.max(due);
                    self.follow(AckPlan::Keep);
                }
                (_, Some(hold)) if hold <= end => {
                    self.view.now = self.view.now.max(hold);
                    self.event = "on_hold_truncated";
                    self.subject.on_hold_truncated(&self.view);
                    self.twin.on_hold_truncated(&self.view);
                    self.send(AckCause::Obligation);
                }
                _ => break,
            }
        }
        self.view.now = self.view.now.max(end);
        if self.timer.is_some_and(|due| due <= self.view.now) {
            self.follow(AckPlan::Keep);
        }
    }

    fn check(&self) {
        let who = self.who();
        assert_eq!(self.subject.waives(), self.waives, "{who}: waives is not constant");
        check_metrics(&who, |report| self.subject.metrics(report));
    }
}
