use super::*;
use ackline_tcp_core::policy::conformance;
use std::format;
use std::string::String;
use std::vec::Vec;

const SMSS: u32 = 1_448;

#[test]
fn keeps_the_rules_with_and_without_accurate_ecn() {
    for params in ["", "alpha0=0,transition=0", "classic=fallback,ai_bytes=1500,ect=0"] {
        let make = (ENTRY.make)(&params.parse().unwrap()).unwrap();
        let inner = make.clone();
        let accurate = move |init: &CcInit| {
            let mut init = *init;
            init.ecn = Ecn::Accurate;
            inner(&init)
        };
        for seed in 0..20 {
            conformance::congestion_control(&*make, seed);
            conformance::congestion_control(&accurate, seed);
        }
    }
}

/// A flow with a constant round trip whose window always limits.
struct Flow {
    prague: Prague,
    view: FlowView,
    rtt: Duration,
    recovers_until: Option<SeqNum>,
}

impl Flow {
    fn new(iw: u64, ssthresh: Option<u64>, micros: u64, transition: u32) -> Self {
        let mut init = CcInit::new(Instant::from_secs(1), SMSS, Window::from_bytes(iw));
        init.ssthresh = ssthresh.map_or(Window::MAX, Window::from_bytes);
        init.ecn = Ecn::Accurate;
        let params = PragueParams { transition, ..PragueParams::default() };
        let rtt = Duration::from_micros(micros);
        let mut view = FlowView::new(init.now, SMSS);
        (view.srtt, view.flight_used) = (Some(rtt), u32::MAX);
        Self { prague: Prague::new(&init, params), view, rtt, recovers_until: None }
    }

    fn outstanding(&mut self) {
        self.view.snd_nxt = self.view.snd_una + (self.prague.w >> 16) as u32;
    }

    fn ack(&mut self, marked: bool) {
        self.view.snd_una += SMSS;
        self.outstanding();
        self.recovers_until.take_if(|until| self.view.snd_una.gt(*until));
        self.view.phase = if self.recovers_until.is_some() { Phase::Recovery } else { Phase::Open };
        let mut ack = AckSample::new(SMSS, 1);
        (ack.ece, ack.ce) = (marked, if marked { SMSS } else { 0 });
        self.prague.on_ack(&self.view, &ack);
    }

    /// Items: `n/c` ACKs, the last c of which are marked, or `x`, a loss.
    fn run(&mut self, items: &str) -> String {
        let mut out = Vec::new();
        for item in items.split(' ') {
            self.view.now += self.rtt;
            if item == "x" {
                self.outstanding();
                self.prague.srtt = self.view.srtt;
                self.prague.on_congestion(&self.view, &CongestionEvent::Loss { prior_pipe: 0 });
                self.recovers_until = Some(self.view.snd_nxt);
                out.push(format!("{}", self.prague.w >> 16));
                continue;
            }
            let (n, marked) = item.split_once('/').expect("two numbers");
            let (n, marked): (u32, u32) = (n.parse().unwrap(), marked.parse().unwrap());
            for i in 0..n {
                self.ack(i >= n - marked);
            }
            out.push(format!("{}:{}", self.prague.w >> 16, self.prague.alpha.get()));
        }
        out.join(" ")
    }
}

#[test]
fn the_first_mark_ends_slow_start_and_halves() {
    assert_eq!(
        Flow::new(14_480, None, 25_000, 500).run("10/0 20/0 40/1 20/1 20/0 20/2 20/0"),
        "28960:0 57920:0 57196:16777216 57888:16777216 58608:16777216 59249:16777216 59953:15780421"
    );
}

#[test]
fn a_mark_per_window_costs_half_of_alpha() {
    assert_eq!(
        Flow::new(57_920, Some(28_960), 25_000, 0).run("40/0 40/1 20/1 20/1 20/0 20/20 20/0 20/0"),
        "59350:0 30356:16777216 31643:16777216 32879:16777216 34131:15801796 18058:15042135 20253:15085042 \
         22232:14142226"
    );
}

#[test]
fn a_short_round_trip_grows_and_responds_as_one_of_25_ms() {
    assert_eq!(
        Flow::new(57_920, Some(28_960), 5_000, 0).run("40/0 40/1 20/0 20/0 20/1 20/0 20/0 20/0 20/0 20/1"),
        "57977:0 29017:16777216 29074:16777216 29132:16777216 29187:16777216 29244:16777216 29301:15754215 \
         29359:15754215 29416:15754215 15633:15754215"
    );
}

#[test]
fn a_loss_and_a_mark_in_one_window_are_one_halving() {
    assert_eq!(
        Flow::new(57_920, Some(28_960), 50_000, 0).run("40/2 x 20/0 20/0 20/0"),
        "29640:16777216 29640 29640:16777216 31024:15778572 32348:15778572"
    );
    assert_eq!(
        Flow::new(57_920, Some(28_960), 50_000, 0).run("40/0 x 20/1 20/0 20/0"),
        "59350:0 29675 29675:16777216 29675:16777216 31057:15776302"
    );
}

#[test]
fn paces_at_the_window_and_twice_that_in_slow_start() {
    for (w, micros, slow, gap, burst) in [
        (1_897_922_560_u64, 25_000, false, 1_250_000, 1),
        (1_897_922_560, 25_000, true, 625_000, 1),
        (94_896_128, 1_000, false, 1_000_000, 1),
        (47_448_064, 1_000, false, 2_000_000, 1),
        (189_792_256_000, 20_000, false, 10_000, 25),
    ] {
        let mut flow = Flow::new(14_480, None, micros, 500);
        flow.prague.srtt = Some(flow.rtt);
        flow.prague.w = w;
        flow.prague.ssthresh = if slow { u64::MAX } else { w };
        let decision = flow.prague.decision();
        let Pacing::Gap { time, over } = decision.pacing else { panic!("it paces") };
        let nanos = u128::from(time.as_nanos()) * (u128::from(SMSS) << 16) / u128::from(over.raw());
        assert_eq!(nanos, gap);
        assert!(decision.window.bytes() >= u64::from(2 * SMSS), "ACKs keep two segments in flight");
        assert_eq!((decision.quantum / SMSS).max(1), burst);
    }
}

/// Marks on every n-th segment: the window that 2 (1 - p) / p says.
#[test]
fn the_rate_follows_its_law() {
    for (every, micros, expected) in [(50_u32, 25_000, 98.0), (10, 25_000, 18.0), (50, 5_000, 98.0 / 5.0)] {
        let mut flow = Flow::new(40 * 1_448, Some(40 * 1_448), micros, 0);
        let (mut number, mut sum, mut samples) = (0_u32, 0.0, 0);
        for round in 0..4_000 {
            flow.view.now += flow.rtt;
            let segments = ((flow.prague.w >> 16) / u64::from(SMSS)).max(1);
            for _ in 0..segments {
                number += 1;
                flow.ack(number % every == 0);
            }
            if round > 2_000 {
                sum += flow.prague.w as f64 / 65_536.0 / f64::from(SMSS);
                samples += 1;
            }
        }
        let mean = sum / f64::from(samples);
        let ratio = mean / expected;
        assert!((0.95..1.35).contains(&ratio), "every {every}, {micros} us: {mean}, not {expected}");
    }
}
