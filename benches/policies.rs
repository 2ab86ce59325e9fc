//! What each policy takes for each event: all that the registry has, so that a new one is among
//! them.
//!
//! `cargo bench --bench policies`; `-- timeout`, `-- cubic` run what has this in its name.

#[path = "support/events.rs"]
mod events;

use ackline::Registry;
use ackline::core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView,
};
use ackline::core::policy::cc::{CongestionEvent, FlowView, SsthreshRule};
use ackline::core::policy::rto::{AckFacts, RtoView};
use ackline::core::policy::sched::LinkView;
use ackline::core::policy::spec::PolicyKind;
use ackline::core::{Duration, Instant, SeqNum, Window};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use events::{SMSS, ack_cycle, flow, packet_cycle};
use std::hint::black_box;

/// The names of all policies of a kind.
fn names(kind: PolicyKind) -> Vec<&'static str> {
    Registry::default().list(kind).iter().map(|policy| policy.name).collect()
}

/// An ACK of two segments with the decision and the departure after it; the loss that begins an
/// episode, and its end; the first timeout.
fn congestion_controls(criterion: &mut Criterion) {
    let (init, view, ack) = flow();
    let mut group = criterion.benchmark_group("congestion control");
    for name in names(PolicyKind::Cc) {
        let make = Registry::default().cc(name).expect("it is in the table");
        let (mut cc, mut at) = (make(&init), view);
        group.bench_function(format!("ack/{name}"), |bencher| {
            bencher.iter(|| ack_cycle(&mut *cc, &mut at, black_box(&ack)));
        });
        group.bench_function(format!("loss/{name}"), |bencher| {
            bencher.iter_batched_ref(
                || make(&init),
                |cc| {
                    cc.checkpoint(&view);
                    cc.on_congestion(&view, &CongestionEvent::Loss { prior_pipe: view.pipe });
                    cc.on_recovery_exit(&view);
                    cc.decision().window.bytes()
                },
                BatchSize::SmallInput,
            );
        });
        let timeout = CongestionEvent::Timeout {
            flight_size: view.flight_size,
            first: true,
            window: Window::from_bytes(u64::from(SMSS)),
            ssthresh: SsthreshRule::ByCc,
        };
        group.bench_function(format!("timeout/{name}"), |bencher| {
            bencher.iter_batched_ref(
                || make(&init),
                |cc| {
                    cc.checkpoint(&view);
                    cc.on_congestion(&view, black_box(&timeout));
                    cc.decision().window.bytes()
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// A receiver with its policy, and when that wants to be called.
struct Receiver<'a> {
    policy: &'a mut dyn AckPolicy,
    view: RecvView,
    due: Instant,
}

impl Receiver<'_> {
    /// A full segment arrives 10 us after the one before; first the timer, if it is due.
    fn arrival(&mut self) {
        let view = &mut self.view;
        view.now += Duration::from_micros(10);
        if self.due <= view.now {
            self.due = Instant::FAR_FUTURE;
            let plan = self.policy.on_timeout(view);
            self.follow(plan, AckCause::Timer);
        }
        let view = &mut self.view;
        let start = view.rcv_nxt;
        view.rcv_nxt += SMSS;
        view.oldest_unacked.get_or_insert(view.now);
        let plan = self.policy.on_data(view, &DataArrival::new(start, view.rcv_nxt, DataClass::New));
        self.follow(plan, AckCause::Plan);
    }

    fn follow(&mut self, plan: AckPlan, cause: AckCause) {
        match plan {
            AckPlan::Keep => {}
            AckPlan::By(at) | AckPlan::Withhold { until: at } => self.due = at,
            AckPlan::Now { .. } => {
                let advance = self.view.unacked();
                self.view.highest_ack = self.view.rcv_nxt;
                (self.view.oldest_unacked, self.due) = (None, Instant::FAR_FUTURE);
                if let AckPlan::By(at) = self.policy.on_ack_sent(&self.view, &AckSent::new(cause, advance)) {
                    self.due = at;
                }
            }
        }
    }
}

/// The arrival of a segment, with whatever ACK and timer follow from it; a read of the application.
fn ack_policies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ack policy");
    for name in names(PolicyKind::Ack) {
        let make = Registry::default().ack(name).expect("it is in the table");
        let mut policy = make(&AckInit::new(Instant::ZERO, SMSS, Some(Duration::from_millis(20))));
        let view = RecvView::new(Instant::from_secs(1), SeqNum(1), 1 << 20, SMSS);
        let mut receiver = Receiver { policy: &mut *policy, view, due: Instant::FAR_FUTURE };
        group.bench_function(format!("arrival/{name}"), |bencher| bencher.iter(|| receiver.arrival()));
        group.bench_function(format!("read/{name}"), |bencher| {
            bencher.iter(|| receiver.policy.on_app_read(black_box(&receiver.view)));
        });
    }
    group.finish();
}

/// A timeout with 100 segments in flight; the same and the first ACK after it.
fn rto_responses(criterion: &mut Criterion) {
    let (_, mut sender, _) = flow();
    sender.rttvar = Some(Duration::from_millis(2));
    sender.snd_nxt = sender.snd_una + sender.flight_size;
    let view = |flow: FlowView| {
        let window = Window::from_bytes(u64::from(flow.flight_size));
        let mut view = RtoView::new(flow, window, window);
        (view.unsent, view.highest) = (SMSS, flow.snd_nxt - SMSS);
        view
    };
    let expired = view(sender);
    let facts = AckFacts::new(sender.snd_una, sender.snd_una + SMSS);
    let mut heard = sender;
    heard.now += Duration::from_millis(20);
    (heard.snd_una, heard.flight_size) = (facts.ack, sender.flight_size - SMSS);
    let heard = view(heard);
    let mut group = criterion.benchmark_group("rto response");
    for name in names(PolicyKind::Rto) {
        let make = Registry::default().rto(name).expect("it is in the table");
        group.bench_function(format!("timeout/{name}"), |bencher| {
            bencher.iter_batched_ref(
                &*make,
                |response| response.on_rto(black_box(&expired)),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(format!("timeout and ack/{name}"), |bencher| {
            bencher.iter_batched_ref(
                &*make,
                |response| (response.on_rto(black_box(&expired)), response.on_ack(&heard, black_box(&facts))),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// A packet from the question whether it may be built to its departure; with a shaper, where there
/// is one, through the queue.
fn egress_schedulers(criterion: &mut Criterion) {
    let link = LinkView::new(u32::MAX);
    let mut group = criterion.benchmark_group("egress scheduler");
    for policy in Registry::default().list(PolicyKind::Sched) {
        let shaped = policy.params.iter().any(|param| param.name == "rate");
        let shaped = shaped.then(|| format!("{}:rate=100gbit", policy.name));
        for spec in std::iter::once(policy.name.to_owned()).chain(shaped) {
            let make = Registry::default().sched(&spec).expect("it is in the table");
            let (mut scheduler, mut serial) = (make(), 0);
            group.bench_function(format!("packet/{spec}"), |bencher| {
                bencher.iter(|| packet_cycle(&mut *scheduler, &mut serial, black_box(&link)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, congestion_controls, ack_policies, rto_responses, egress_schedulers);
criterion_main!(benches);
