//! What it costs that policies are trait objects: the same events through `dyn` and through the
//! concrete type.
//!
//! One iteration is what a connection asks per event: an ACK and the decision after it, a
//! departure, an arrival with its plan, a packet through the scheduler.
//! `cargo bench --bench dispatch`

#[path = "support/events.rs"]
mod events;

use ackline::Registry;
use ackline::core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView,
};
use ackline::core::policy::builtin::{DelayedAck, Fifo, NewReno};
use ackline::core::policy::sched::LinkView;
use ackline::core::policy::{NewAckPolicy, NewCongestionControl, NewEgressScheduler};
use ackline::core::{Duration, Instant, SeqNum};
use ackline_ack_policy::LinuxLike;
use ackline_cc_algos::{Cubic, CubicParams};
use criterion::{Criterion, criterion_group, criterion_main};
use events::{SMSS, ack_cycle, flow, packet_cycle};
use std::hint::black_box;

fn congestion_control(criterion: &mut Criterion) {
    let (init, view, ack) = flow();
    let mut group = criterion.benchmark_group("ack and decision");
    let mut reno = NewReno::new(&init);
    let mut at = view;
    group.bench_function("reno static", |bencher| {
        bencher.iter(|| ack_cycle(&mut reno, &mut at, black_box(&ack)));
    });
    let mut cubic = Cubic::new(&init, CubicParams::default());
    let mut at = view;
    group.bench_function("cubic static", |bencher| {
        bencher.iter(|| ack_cycle(&mut cubic, &mut at, black_box(&ack)));
    });
    for name in ["reno", "cubic"] {
        let make: &NewCongestionControl = &*Registry::default().cc(name).expect("it is in the table");
        let mut cc = black_box(make(&init));
        let mut at = view;
        group.bench_function(format!("{name} dyn"), |bencher| {
            bencher.iter(|| ack_cycle(&mut *cc, &mut at, black_box(&ack)));
        });
    }
    group.finish();
}

/// The receiver's part for two arrivals, of which the second is acknowledged.
fn arrival_cycle<A: AckPolicy + ?Sized>(policy: &mut A, view: &mut RecvView) -> u32 {
    let mut acks = 0;
    for _ in 0..2 {
        view.now += Duration::from_micros(10);
        let start = view.rcv_nxt;
        view.rcv_nxt += SMSS;
        view.oldest_unacked.get_or_insert(view.now);
        let plan = policy.on_data(view, &DataArrival::new(start, view.rcv_nxt, DataClass::New));
        if matches!(plan, AckPlan::Now { .. }) {
            let advance = view.unacked();
            view.highest_ack = view.rcv_nxt;
            view.oldest_unacked = None;
            policy.on_ack_sent(view, &AckSent::new(AckCause::Plan, advance));
            acks += 1;
        }
    }
    acks
}

fn ack_policy(criterion: &mut Criterion) {
    let view = RecvView::new(Instant::from_secs(1), SeqNum(1), 1 << 20, SMSS);
    let mut group = criterion.benchmark_group("two arrivals");
    let (mut delayed, mut at) = (DelayedAck::default(), view);
    group.bench_function("delayed static", |bencher| bencher.iter(|| arrival_cycle(&mut delayed, &mut at)));
    let (mut linux, mut at) = (LinuxLike::default(), view);
    group.bench_function("linux-like static", |bencher| bencher.iter(|| arrival_cycle(&mut linux, &mut at)));
    for name in ["delayed", "linux-like"] {
        let make: &NewAckPolicy = &*Registry::default().ack(name).expect("it is in the table");
        let init = AckInit::new(Instant::ZERO, SMSS, None);
        let (mut policy, mut at) = (black_box(make(&init)), view);
        group.bench_function(format!("{name} dyn"), |bencher| {
            bencher.iter(|| arrival_cycle(&mut *policy, &mut at));
        });
    }
    group.finish();
}

fn scheduler(criterion: &mut Criterion) {
    let link = LinkView::new(u32::MAX);
    let mut group = criterion.benchmark_group("packet through the scheduler");
    let (mut fifo, mut serial) = (Fifo::default(), 0);
    group.bench_function("fifo static", |bencher| {
        bencher.iter(|| packet_cycle(&mut fifo, &mut serial, black_box(&link)));
    });
    for spec in
        ["fifo", "fifo:rate=100gbit", "kalampoukas:f=0.5", "kalampoukas:rate=100gbit", "backpressure", "drr"]
    {
        let make: &NewEgressScheduler = &*Registry::default().sched(spec).expect("it is in the table");
        let (mut scheduler, mut serial) = (black_box(make()), 0);
        group.bench_function(format!("{spec} dyn"), |bencher| {
            bencher.iter(|| packet_cycle(&mut *scheduler, &mut serial, black_box(&link)));
        });
    }
    group.finish();
}

criterion_group!(benches, congestion_control, ack_policy, scheduler);
criterion_main!(benches);
