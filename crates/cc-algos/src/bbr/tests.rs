//! Vectors that an independent model computed from the draft, the rules of the seam, and the
//! machine's transitions.

mod transitions;
mod vectors;

use super::*;
use ackline_tcp_core::policy::conformance;
use ackline_tcp_core::{Duration, Instant};

pub(super) const SMSS: u32 = 1_000;

#[test]
fn it_keeps_the_rules_of_its_seam() {
    for spec in ["", "loss_thresh=0.3", "min_loss_ranges=2,beta=0.1", "probe_wait=100ms,probe_rounds=1"] {
        let make = (ENTRY.make)(&spec.parse().unwrap()).unwrap();
        for seed in 0..100 {
            conformance::congestion_control(&*make, seed);
        }
    }
}

#[test]
fn wrong_parameters_are_refused() {
    for wrong in ["loss_thresh=0.6", "beta=1", "up_gain=1", "probe_wait=1ms", "gain=2", "margin=-1"] {
        assert!((ENTRY.make)(&wrong.parse().unwrap()).is_err(), "{wrong}");
    }
}

/// A path that stalls for an hour gives one sample of a byte per second: the flow must find its
/// rate again in a few round trips.
#[test]
fn a_stall_does_not_stop_the_flow() {
    let init = CcInit::new(Instant::ZERO, SMSS, Window::from_bytes(10_000));
    let mut bbr = Bbr::new(&init, BbrParams::default());
    let mut view = FlowView::new(Instant::from_secs(3_600), SMSS);
    view.delivered = 1_000;
    let mut seen = AckSample::new(1_000, 1);
    seen.rtt = Some(Duration::from_secs(3_600));
    seen.rate = Some(RateSample::new(1_000, Duration::from_secs(3_600), 0));
    bbr.on_ack(&view, &seen);
    let Pacing::AtRate(rate) = bbr.decision().pacing else { panic!("not paced at a rate") };
    assert!(rate.bytes_per_second() >= u64::from(SMSS), "{rate:?}");
}

#[test]
fn draws_differ_with_the_seed_and_stay_in_range() {
    let most = Duration::from_secs(1);
    let draw = |seed| {
        let mut draws = Draws::new(seed);
        (draws.rounds(), draws.below(most))
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    let mean: u64 = (0..1_000).map(|seed| draw(seed).1.as_millis()).sum::<u64>() / 1_000;
    assert!((450..550).contains(&mean), "{mean} ms");
    assert!((0..1_000).all(|seed| draw(seed).0 < 2 && draw(seed).1 < most));
    let early = (0..1_000).filter(|seed| draw(*seed).0 == 1).count();
    assert!((450..550).contains(&early), "{early}");
}
