//! Vectors that an independent model computed from the thesis' equations, and properties.

use super::*;
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::conformance;
use proptest::prelude::*;
use serde_json::Value;
use std::string::String;
use std::vec::Vec;

const VECTORS: &str = include_str!("vectors.jsonl");

/// The vectors of one kind.
fn vectors(kind: &str) -> Vec<Value> {
    let all = VECTORS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let chosen: Vec<Value> = all.filter(|value| value["kind"] == kind).collect();
    assert!(!chosen.is_empty(), "{kind}");
    chosen
}

fn int(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn real(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn params(text: &str) -> LsAimdParams {
    LsAimdParams::from_params("ls-aimd", &text.parse().unwrap()).unwrap()
}

/// A flow with the window `w` (Q9), out of slow start.
fn flow(variant: Variant, smss: u32, w: u64, text: &str) -> LsAimd {
    let mut init = CcInit::new(Instant::from_secs(1), smss, to_window(w));
    init.ssthresh = to_window(w);
    let mut flow = LsAimd::new(&init, variant, params(text));
    flow.srtt_pace = Some(Duration::from_micros(200));
    flow
}

/// An ACK of `n` bytes at the end of what is outstanding, marked or not.
fn acked(flow: &mut LsAimd, view: &mut FlowView, n: u32, marked: bool) -> Reaction {
    view.snd_nxt += n;
    view.snd_una = view.snd_nxt;
    let mut ack = AckSample::new(n, 1);
    if marked {
        (ack.ece, ack.ce) = (true, n);
    }
    flow.on_ack(view, &ack)
}

fn view(smss: u32) -> FlowView {
    let mut view = FlowView::new(Instant::from_secs(1), smss);
    view.srtt_pace = Some(Duration::from_micros(200));
    view
}

#[test]
fn vectors_add() {
    for vector in vectors("add") {
        let (smss, ssthresh) = (int(&vector, "smss") as u32, int(&vector, "ssthresh_q9"));
        let growth = |precision| Growth::powers_of_two(smss, precision);
        assert_eq!(growth(24).constants(), (1 << int(&vector, "K0"), 1 << int(&vector, "K1")), "{vector}");
        assert_eq!(growth(24).unscaled(ssthresh), int(&vector, "q9_p24"), "{vector}");
        assert_eq!(growth(9).unscaled(ssthresh), int(&vector, "q9_p9"), "{vector}");
        let bytes = growth(24).unscaled(ssthresh) as f64 / 512.0;
        assert!((bytes - real(&vector, "real_b")).abs() < 0.003 + 1.0 / 512.0, "{vector}");
    }
}

#[test]
fn vectors_gap() {
    for vector in vectors("gap") {
        let smss = int(&vector, "smss") as u32;
        let mut flow = flow(Variant::Dctcp, smss, int(&vector, "w_q9"), "");
        let srtt = int(&vector, "srtt_pace_ns");
        flow.srtt_pace = Some(Duration::from_nanos(srtt));
        // The window of the vector at the border runs the same arithmetic on the other clock.
        flow.submss = true;
        let Pacing::Gap { time, over } = flow.decision().pacing else { panic!("{vector}") };
        let gap = (u128::from(smss) << Window::FRACTION_BITS) * u128::from(time.as_nanos())
            / u128::from(over.raw());
        assert_eq!(gap, u128::from(int(&vector, "interval_ns")), "{vector}");
        assert_eq!(gap as i64 - srtt as i64, vector["d_ns"].as_i64().unwrap(), "{vector}");
    }
}

#[test]
fn vectors_alpha() {
    for vector in vectors("alpha") {
        let mut marking = Marking::with_upscaled(int(&vector, "alpha_in_up"), 4);
        marking.end_round(int(&vector, "marked"), int(&vector, "acked"));
        assert_eq!(marking.upscaled(), int(&vector, "alpha_out_up"), "{vector}");
        assert!((marking.alpha() as f64 / ONE as f64 - real(&vector, "alpha_out")).abs() < 2e-6, "{vector}");
    }
}

#[test]
fn vectors_decrease_by_alpha() {
    for vector in vectors("md_dctcp") {
        let mut flow = flow(Variant::Dctcp, 1448, int(&vector, "w_q9"), "");
        flow.marking = Marking::with_upscaled(int(&vector, "alpha_up"), 4);
        let s = flow.decreased(flow.w);
        flow.set_ssthresh(s);
        assert_eq!(flow.ssthresh_q9(), int(&vector, "ssthresh_q9"), "{vector}");
        let bytes = flow.ssthresh_q9() as f64 / 512.0;
        assert!((bytes - real(&vector, "real_b")).abs() < 0.06, "{vector}");
    }
}

#[test]
fn vectors_decrease_by_half() {
    for vector in vectors("md_reno") {
        let mut flow = flow(Variant::Reno, 1448, int(&vector, "w_q9"), "");
        assert_eq!(acked_without_growth(&mut flow), Reaction::Reduced);
        assert_eq!(flow.window_q9(), int(&vector, "ssthresh_q9"), "{vector}");
        assert_eq!(flow.ssthresh_q9(), int(&vector, "ssthresh_q9"), "{vector}");
    }
}

/// A mark on an ACK that covers nothing new.
fn acked_without_growth(flow: &mut LsAimd) -> Reaction {
    let mut ack = AckSample::new(0, 0);
    ack.ece = true;
    flow.on_ack(&view(1448), &ack)
}

#[test]
fn vectors_round_of_growth_after_a_decrease() {
    for vector in vectors("reno_round") {
        let mut flow = flow(Variant::Reno, 1448, int(&vector, "w_q9"), "c=1");
        acked_without_growth(&mut flow);
        assert_eq!(flow.window_q9(), int(&vector, "ssthresh_q9"));
        assert_eq!(flow.add_q9(), int(&vector, "add_q9"));
        // One round trip's worth of ACKs: the bytes of the window before.
        flow.grow(1448, flow.window_q9());
        let expected = int(&vector, "w_after_md_and_one_round_ai_q9");
        assert_eq!(flow.window_q9(), expected, "{vector}");
    }
}

#[test]
fn vectors_mode() {
    for vector in vectors("mode") {
        let (smss, delta) = (int(&vector, "smss") as u32, int(&vector, "delta"));
        let mut flow = flow(Variant::Reno, smss, int(&vector, "w_q9"), &std::format!("delta={delta}"));
        flow.submss = vector["was_submss"].as_bool().unwrap();
        flow.update_mode();
        assert_eq!(flow.is_submss(), vector["is_submss"].as_bool().unwrap(), "{vector}");
        let clocked = matches!(flow.decision().clock, Clock::Departure { max_outstanding }
            if u64::from(max_outstanding) == delta);
        assert_eq!(clocked, flow.is_submss(), "{vector}");
        let split = [flow.window_q9() / flow.segment(), flow.window_q9() % flow.segment()];
        assert_eq!(Vec::from(split), int_pair(&vector["split"]), "{vector}");
    }
}

fn int_pair(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

/// Table 5.1's experiments: what one ACK adds against what one mark takes, at the window W of their
/// path.
#[test]
fn vectors_load_of_the_experiments() {
    for vector in vectors("saturation") {
        let smss = if vector["exp"].as_str().unwrap() >= "4E" { 8948.0 } else { 1448.0 };
        let w = real(&vector, "w_b");
        let add = Growth::powers_of_two(smss as u32, 24).unscaled((w / 2.0 * 512.0) as u64) as f64 / 512.0;
        assert!((add - real(&vector, "add_b")).abs() < 0.02, "{vector}");
        // Below one segment an ACK brings the increase of smss / W round trips.
        let ratio = add * (smss / w).max(1.0) / (w / 2.0);
        assert!((ratio - real(&vector, "ratio_c1")).abs() < 2e-4, "{vector}: {ratio}");
        let swift = (w / smss).min(1.0);
        assert!((swift - real(&vector, "adaptive_c")).abs() < 1e-4, "{vector}");
        assert!((ratio * swift - real(&vector, "ratio_adaptive")).abs() < 2e-4, "{vector}");
    }
}

/// If every ACK is marked, the window settles at the root of `W^2 = 4 s add(W / 2)`: the decrease
/// comes first, and the increase is sized with what it leaves. `W^2 = 2 s add(W / 2)` if it is
/// sized with the window before.
#[test]
fn vectors_window_of_permanent_marking() {
    for vector in vectors("saturation_window") {
        let smss = int(&vector, "smss") as u32;
        let growth = Growth::powers_of_two(smss, 24);
        assert_eq!(growth.constants().0, int(&vector, "k0"));
        let (w, factor) = (real(&vector, "w_b"), int(&vector, "factor") as f64);
        let root =
            libm::sqrt(factor * f64::from(smss) * growth.unscaled((w / 2.0 * 512.0) as u64) as f64 / 512.0);
        assert!((root - w).abs() < 0.1, "{vector}: {root}");
        for text in ["c=1", "c=1,divisor=prior"] {
            for variant in [Variant::Reno, Variant::Dctcp] {
                let mut flow = flow(variant, smss, u64::from(3 * smss) << Q9, text);
                let mut view = view(smss);
                for _ in 0..200 {
                    assert_eq!(acked(&mut flow, &mut view, smss, true), Reaction::Reduced);
                }
                let settled = flow.window_q9() as f64 / 512.0;
                assert_eq!(
                    (settled - w).abs() < 1.0,
                    factor == if text == "c=1" { 4.0 } else { 2.0 },
                    "{vector}: {settled}"
                );
            }
        }
    }
}

/// The share p of marked data at which growth and decrease balance, `p^2 = (2 s add / W^2) C(p)`,
/// below one segment.
#[test]
fn vectors_balance_of_growth_and_decrease() {
    for vector in vectors("equilibrium") {
        let (w, add, load) = (real(&vector, "w_b"), real(&vector, "add_b"), real(&vector, "load"));
        assert!((2.0 * 8948.0 * add / (w * w) - load).abs() < 1e-3, "{vector}");
        let balance = |scale: Scale, p: f64| {
            let c = f64::from(scale.at((p * ONE as f64) as u64)) / f64::from(C_ONE);
            load * c - p * p
        };
        assert!(balance(Scale::Auto, real(&vector, "p_cu")).abs() < 1e-3, "{vector}");
        let (saturated, p) = (balance(Scale::Fixed(C_ONE), 1.0) >= 0.0, real(&vector, "p_c1"));
        assert_eq!(saturated, p == 1.0, "{vector}");
        assert!(saturated || balance(Scale::Fixed(C_ONE), p).abs() < 1e-3, "{vector}");
    }
}

#[test]
fn every_vector_has_its_test() {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for line in VECTORS.lines() {
        let kind = serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().into();
        match kinds.iter_mut().find(|entry| entry.0 == kind) {
            Some(entry) => entry.1 += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let counted: Vec<(&str, usize)> = kinds.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
    assert_eq!(
        counted,
        [
            ("add", 26),
            ("gap", 7),
            ("resched", 7),
            ("srtt_pace", 2),
            ("alpha", 7),
            ("md_dctcp", 7),
            ("md_reno", 4),
            ("reno_round", 1),
            ("mode", 6),
            ("saturation", 12),
            ("saturation_window", 4),
            ("equilibrium", 4),
        ]
    );
}

#[test]
fn keeps_the_rules() {
    for text in [
        "",
        "c=1",
        "c=2^-7,delta=1",
        "floor=1448,scale_free=on,mode_hyst=200",
        "precision=9,abc=8",
        "reclock=off,divisor=prior,clock_rtt=thesis",
        "reclock=rtt",
    ] {
        for entry in [&RENO, &DCTCP] {
            let make = (entry.make)(&text.parse().unwrap()).unwrap();
            for seed in 0..20 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }
}

#[test]
fn one_reduction_per_round_and_growth_on_marked_acks() {
    let smss = 1000;
    let mut flow = flow(Variant::Reno, smss, u64::from(10 * smss) << Q9, "c=1");
    let mut view = view(smss);
    view.snd_nxt = view.snd_una + 10 * smss;
    let mut reductions = 0;
    let mut windows = Vec::new();
    for _ in 0..10 {
        view.snd_una += smss;
        let mut ack = AckSample::new(smss, 1);
        (ack.ece, ack.ce) = (true, smss);
        reductions += u32::from(flow.on_ack(&view, &ack) == Reaction::Reduced);
        windows.push(flow.window_q9());
    }
    assert_eq!(reductions, 1);
    assert!(windows.is_sorted(), "marked or not, a round adds");
    assert!(windows[0] > u64::from(5 * smss) << Q9, "also the ACK that reduced");
    view.snd_una += 1;
    view.snd_nxt += 1;
    let mut ack = AckSample::new(1, 1);
    ack.ece = true;
    assert_eq!(flow.on_ack(&view, &ack), Reaction::Reduced, "beyond SND.NXT of the last one");
}

#[test]
fn slow_start_below_a_segment_at_most_doubles() {
    let smss = 1448;
    let mut init = CcInit::new(Instant::from_secs(1), smss, Window::from_bytes(100));
    init.ssthresh = Window::from_bytes(5000);
    let mut flow = LsAimd::new(&init, Variant::Dctcp, params(""));
    let mut view = view(smss);
    let mut bytes = Vec::new();
    for _ in 0..9 {
        acked(&mut flow, &mut view, smss, false);
        bytes.push(flow.window_q9() >> Q9);
    }
    // It doubles up to a segment, then adds segments, and ends at the threshold.
    assert_eq!(bytes[..6], [200, 400, 800, 1600, 3048, 4496]);
    assert_eq!(bytes[6], 5000);
    assert!(bytes[8] > 5000 && bytes[8] < 5000 + 2 * 600, "{bytes:?}");
}

#[test]
fn a_timeout_does_not_raise_a_window_below_a_segment() {
    let timeout = CongestionEvent::Timeout {
        flight_size: 1448,
        first: true,
        window: Window::from_bytes(1448),
        ssthresh: SsthreshRule::ByCc,
    };
    let mut flow = flow(Variant::Dctcp, 1448, 600 << Q9, "");
    flow.on_congestion(&view(1448), &timeout);
    assert_eq!((flow.window_q9(), flow.ssthresh_q9()), (300 << Q9, 300 << Q9));
    let mut flow = super::tests::flow(Variant::Dctcp, 1448, 14_480 << Q9, "");
    flow.on_congestion(&view(1448), &timeout);
    assert_eq!((flow.window_q9(), flow.ssthresh_q9()), (1448 << Q9, 7240 << Q9));
}

#[test]
fn auto_scale_follows_the_unmarked_share() {
    let c = |alpha: f64| f64::from(Scale::Auto.at((alpha * ONE as f64) as u64)) / f64::from(C_ONE);
    for (alpha, expected) in [(0.0, 1.0), (0.5, 1.0), (0.75, 1.0 / 3.0), (0.8, 0.25), (1.0, 0.0)] {
        assert!((c(alpha) - expected).abs() < 1e-4, "{alpha}");
    }
    let mut flow = flow(Variant::Dctcp, 8948, 2000 << Q9, "c=auto");
    let whole = Growth::powers_of_two(8948, 24).unscaled(2000 << Q9);
    flow.marking = Marking::with_upscaled((ONE * 4 / 5) << 4, 4);
    flow.update_add();
    assert!(flow.add_q9().abs_diff(whole / 4) <= 1);
}

/// What the last departure left behind it: W = 724, srtt 200 us, so that the next one is 400 us
/// later.
#[test]
fn a_new_window_or_a_new_rtt_moves_what_is_pending() {
    for (text, halved, slower) in [("", 800, 1200), ("reclock=rtt", 400, 600)] {
        let mut flow = flow(Variant::Reno, 1448, 724 << Q9, text);
        let gap = |flow: &LsAimd| {
            let decision = flow.decision();
            let Pacing::Gap { time, over } = decision.pacing else { panic!("{decision:?}") };
            assert_eq!(decision.revise, Revise::Retroactive);
            (u128::from(time.as_nanos()) * (1448 << Window::FRACTION_BITS) / u128::from(over.raw()) / 1000)
                as u64
        };
        let mut view = view(1448);
        flow.on_sent(&view, &SentSegment::new(view.snd_nxt, 1448, false));
        assert_eq!(gap(&flow), 400, "{text}");
        acked_without_growth(&mut flow);
        assert_eq!(gap(&flow), halved, "{text}: W is halved");
        view.srtt_pace = Some(Duration::from_micros(300));
        flow.on_ack(&view, &AckSample::new(0, 0));
        assert_eq!(gap(&flow), slower, "{text}: the RTT grows by half");
        flow.on_sent(&view, &SentSegment::new(view.snd_nxt, 1448, false));
        assert_eq!(gap(&flow), 1200, "{text}: the next departure has the new window");
    }
    assert_eq!(flow(Variant::Reno, 1448, 724 << Q9, "reclock=off").decision().revise, Revise::NextDeparture);
}

/// Two segments may be in flight; three more while the scoreboard has a hole, or the oldest is
/// late.
#[test]
fn three_more_segments_leave_while_an_ack_is_overdue() {
    let most = |flow: &LsAimd| match flow.decision().clock {
        Clock::Departure { max_outstanding } => max_outstanding,
        Clock::Ack => panic!("{flow:?}"),
    };
    let mut flow = flow(Variant::Dctcp, 1448, 724 << Q9, "");
    let mut view = view(1448);
    let us = |us| view.now + Duration::from_micros(us);
    let (late, later) = (us(400), us(401));
    (view.srtt, view.rttvar) = (Some(Duration::from_micros(200)), Some(Duration::from_micros(50)));
    view.oldest_departure = Some(view.now);
    flow.on_sent(&view, &SentSegment::new(view.snd_nxt, 1448, false));
    assert_eq!((most(&flow), flow.next_timeout()), (2, Some(late)));
    view.now = late;
    flow.on_timeout(&view);
    assert_eq!((most(&flow), flow.next_timeout()), (5, None), "no ACK after SRTT + 4 RTTVAR");
    (view.now, view.oldest_departure) = (later, Some(later));
    acked(&mut flow, &mut view, 1448, false);
    assert_eq!(most(&flow), 2);
    for (phase, segments) in [(Phase::Disorder, 5), (Phase::Recovery, 5), (Phase::Loss, 2), (Phase::Open, 2)]
    {
        view.phase = phase;
        flow.on_ack(&view, &AckSample::new(0, 0));
        assert_eq!(most(&flow), segments, "{phase:?}");
    }
}

/// The model's iteration for a true RTT of 200 us, W half a segment, a receiver that waits for two:
/// the thesis' d is short by a round trip, and the estimate grows by one for ever.
#[test]
fn vectors_rtt_of_the_clock() {
    let rule = |vector: &Value| vector["rule"] == "d = I - SRTT";
    let vector = vectors("srtt_pace").into_iter().find(rule).unwrap();
    let (segment, w) = (1448 << Q9, (real(&vector, "w_b") * 512.0) as u64);
    let clock = Clocked { w, segment, delta: int(&vector, "delta") as u16 };
    let truth = Duration::from_micros(real(&vector, "true_us") as u64);
    let mut srtt = truth;
    for expected in vector["estimates"].as_array().unwrap() {
        // The oldest segment waits for the next one, which leaves an interval later.
        let interval = srtt.saturating_mul(2);
        srtt = clock.without_wait(srtt, truth.saturating_add(interval));
        assert_eq!(srtt.as_micros() as f64, expected.as_f64().unwrap(), "{vector}");
    }
    // A receiver that holds nothing: the estimate is short by d.
    let clock = Clocked { w: 1000, segment: 1500, delta: 2 };
    let rtt = Duration::from_micros(200);
    assert_eq!(clock.without_wait(rtt, rtt), Duration::from_micros(100));
    let mut estimate = ThesisRtt::on_ack(None, rtt, Some(clock));
    for _ in 0..200 {
        estimate = ThesisRtt::on_ack(Some(estimate), rtt, Some(clock));
    }
    // x = 200 - x / 2
    assert_eq!(estimate.get().as_micros(), 133);
}

#[test]
fn undo_restores_what_the_checkpoint_holds() {
    let mut flow = flow(Variant::Reno, 1448, 2000 << Q9, "");
    let view = view(1448);
    let before = (flow.window_q9(), flow.ssthresh_q9(), flow.add_q9());
    flow.checkpoint(&view);
    flow.on_congestion(&view, &CongestionEvent::Loss { prior_pipe: 1448 });
    assert_eq!(flow.window_q9(), 1000 << Q9);
    flow.undo(&view, &Undo::All);
    assert_eq!((flow.window_q9(), flow.ssthresh_q9(), flow.add_q9()), before);
}

#[test]
fn parameters_are_read_and_checked() {
    assert_eq!(params("c=2^-7").c, Scale::Fixed(512));
    assert_eq!(params("c=0.0078125").c, Scale::Fixed(512));
    assert_eq!(params("c=1").c, Scale::Fixed(C_ONE));
    for text in ["g=1/16", "g=0.0625", "g=2^-4"] {
        assert_eq!(params(text).gain, 4, "{text}");
    }
    for (text, part) in [
        ("c=2", "2^-1 to 2^-16"),
        ("c=0", "auto"),
        ("c=fast", "auto"),
        ("g=0.07", "power of two"),
        ("delta=0", "1 to 64"),
        ("gg=1", "did you mean \"g\""),
    ] {
        let error = LsAimdParams::from_params("ls-aimd-reno", &text.parse().unwrap()).unwrap_err();
        assert!(std::format!("{error}").contains(part), "{text}: {error}");
    }
}

proptest! {
    /// Whatever comes, the window stays between its floor and what can be represented, and the mode
    /// follows it.
    #[test]
    fn the_window_stays_in_bounds(
        smss in 100_u32..65_000,
        start in 2_u64..1_000_000,
        text in prop::sample::select(&["", "c=1", "c=2^-7", "floor=100,mode_hyst=50"][..]),
        events in prop::collection::vec((0_u8..6, 1_u32..100_000, any::<bool>()), 1..200),
    ) {
        let mut flow = flow(Variant::Dctcp, smss, start << Q9, text);
        let floor = u64::from(params(text).floor) << Q9;
        let mut view = view(smss);
        for (kind, n, marked) in events {
            match kind {
                0 => flow.on_congestion(&view, &CongestionEvent::Loss { prior_pipe: n }),
                1 => flow.on_congestion(&view, &CongestionEvent::Timeout {
                    flight_size: n,
                    first: marked,
                    window: Window::from_bytes(u64::from(smss)),
                    ssthresh: SsthreshRule::ByCc,
                }),
                _ => { acked(&mut flow, &mut view, n, marked); }
            }
            prop_assert!(flow.window_q9() >= floor && flow.ssthresh_q9() >= floor);
            let border = u64::from(flow.params.delta) * flow.segment();
            prop_assert!(flow.window_q9() >= border.saturating_sub(u64::from(flow.params.mode_hyst) << Q9) || flow.is_submss());
            prop_assert!(flow.window_q9() < border || !flow.is_submss());
        }
    }

    /// The carry loses nothing: growth in many small ACKs is that of their exact sum to within one
    /// unit per step of W.
    #[test]
    fn growth_is_exact_over_many_acks(w in 2_u64..20_000, n in 1_u32..3000, acks in 1_u32..500) {
        let mut flow = flow(Variant::Reno, 1448, w << Q9, "c=1");
        let add = u128::from(flow.add_q9());
        // The same sum without any rounding but the last: w' = w + add * n / w, in 2^-40.
        let mut exact = u128::from(flow.window_q9()) << 40;
        for _ in 0..acks {
            let before = flow.window_q9();
            flow.grow(n, before);
            prop_assert!(flow.window_q9() - before <= u64::from(n) << Q9, "a segment for a segment at most");
            let limited = (((add * (u128::from(n) << Q9)) << 80) / exact).min((u128::from(n) << Q9) << 40);
            exact += limited;
        }
        let error = (flow.window_q9() as f64 - (exact >> 40) as f64).abs();
        prop_assert!(error <= 2.0 + flow.window_q9() as f64 * 1e-6, "{error}");
    }
}
