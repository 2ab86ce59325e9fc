//! What a connection relies on beside the algorithm's steps.

use super::{A3, CSA3};
use ackline_tcp_core::policy::Metrics;
use ackline_tcp_core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView,
};
use ackline_tcp_core::{Duration, Instant, SeqNum};
use std::boxed::Box;
use std::string::ToString;

const MSS: u32 = 1_000;

/// A receiver whose core holds an ACK for 180 ms at most, and whose application reads only when
/// told to.
struct Receiver {
    policy: Box<dyn AckPolicy>,
    view: RecvView,
    /// The rule of the last ACK.
    rule: &'static str,
}

impl Receiver {
    fn new(name: &str, params: &str) -> Self {
        Self::made(name, &[params, "delay=200ms,linger=ipat,quick=0,when=always"].join(","))
    }

    /// With the defaults, but for `params`.
    fn made(name: &str, params: &str) -> Self {
        let entry = if name == "a3" { A3 } else { CSA3 };
        let mut init = AckInit::new(Instant::ZERO, MSS, None);
        init.hold_limit = Duration::from_millis(180);
        let policy = (entry.make)(&params.parse().unwrap()).unwrap()(&init);
        let mut view = RecvView::new(Instant::ZERO, SeqNum(7), 64_000, MSS);
        view.handshake_rtt = Some(Duration::from_millis(100));
        Self { policy, view, rule: "" }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.view.now = Instant::from_millis(ms);
        self
    }

    /// Data in order arrives, as one super-packet of full segments. What the policy plans; an ACK
    /// leaves at once.
    fn data(&mut self, len: u32) -> AckPlan {
        self.arrive(len, |_| ())
    }

    /// The same, pushed, and read completely. What the policy plans when it arrives, or else when
    /// it is read.
    fn message(&mut self, len: u32) -> AckPlan {
        match self.arrive(len, |data| data.psh = true) {
            AckPlan::By(_) => self.read(len),
            plan => {
                self.view.free += len;
                plan
            }
        }
    }

    fn arrive(&mut self, len: u32, change: impl Fn(&mut DataArrival)) -> AckPlan {
        let start = self.view.rcv_nxt;
        self.view.rcv_nxt += len;
        self.view.free -= len;
        self.view.oldest_unacked = self.view.oldest_unacked.or(Some(self.view.now));
        let mut data = DataArrival::new(start, self.view.rcv_nxt, DataClass::New);
        data.segments = len.div_ceil(MSS);
        change(&mut data);
        let plan = self.policy.on_data(&self.view, &data);
        if matches!(plan, AckPlan::Now { .. }) {
            return self.ack(AckCause::Plan);
        }
        plan
    }

    /// An ACK leaves. What the policy plans after it, or `NOW` if it plans nothing.
    fn ack(&mut self, cause: AckCause) -> AckPlan {
        let advance = self.view.unacked();
        self.rule = self.policy.rule(&self.view, cause);
        self.view.highest_ack = self.view.rcv_nxt;
        self.view.edge = self.view.rcv_nxt + self.view.free;
        self.view.oldest_unacked = None;
        match self.policy.on_ack_sent(&self.view, &AckSent::new(cause, advance)) {
            AckPlan::Keep => AckPlan::NOW,
            plan => plan,
        }
    }

    /// The policy's timer runs out, and an ACK leaves.
    fn timer(&mut self) {
        assert_eq!(self.policy.on_timeout(&self.view), AckPlan::NOW);
        self.ack(AckCause::Timer);
    }

    fn read(&mut self, len: u32) -> AckPlan {
        self.view.free += len;
        self.policy.on_app_read(&self.view)
    }

    fn metric(&self, name: &str) -> f64 {
        Metrics::find(name, |report| self.policy.metrics(report)).expect("a metric of that name")
    }

    /// In a sampling that began at 0 and lasts until 150 ms.
    fn sampling(name: &str, params: &str) -> Self {
        let mut receiver = Self::new(name, params);
        assert_eq!(receiver.data(10 * MSS), withhold(150));
        receiver.read(10 * MSS);
        receiver
    }
}

#[test]
fn only_who_waits_for_its_acks_is_sampled() {
    let mut receiver = Receiver::new("a3", "rtt=100ms");
    receiver.policy.configure(&"when=need".parse().unwrap()).unwrap();
    for _ in 0..100 {
        receiver.data(2 * MSS);
        receiver.read(2 * MSS);
    }
    assert_eq!((receiver.metric("samples"), receiver.metric("sampling")), (0.0, 0.0));
    // A segment that waits for its ACK, and then the next arrival.
    assert_eq!(receiver.at(1_000).data(MSS), AckPlan::By(Instant::from_millis(1_180)));
    receiver.at(1_180).timer();
    receiver.read(MSS);
    assert_eq!(receiver.at(1_200).data(MSS), withhold(1_350));
    receiver.read(MSS);
    receiver.at(1_300).data(MSS);
    receiver.read(MSS);
    receiver.at(1_350).timer();
    assert_eq!((receiver.metric("muds"), receiver.metric("isp_cnt")), (1_000.0, 10.0));
    // Each 350 bytes have an ACK: in time it is seen whether so many are needed.
    for i in 0..9 {
        assert_eq!(receiver.at(1_400 + i).data(MSS), AckPlan::NOW);
        receiver.read(MSS);
    }
    assert_eq!(receiver.at(1_500).data(MSS), withhold(1_650));
    receiver.at(1_600).data(20 * MSS);
    receiver.at(1_650).timer();
    receiver.read(21 * MSS);
    assert_eq!(receiver.metric("muds"), 20_000.0);
    for i in 0..100 {
        assert_eq!(receiver.at(1_700 + i).data(2 * MSS), AckPlan::NOW);
        receiver.read(2 * MSS);
    }
    assert_eq!((receiver.metric("samples"), receiver.metric("sampling")), (2.0, 0.0));
}

fn withhold(ms: u64) -> AckPlan {
    AckPlan::Withhold { until: Instant::from_millis(ms) }
}

#[test]
fn nothing_waits_longer_than_the_core_lets_it() {
    let mut receiver = Receiver::new("a3", "");
    assert_eq!(receiver.data(100), AckPlan::By(Instant::from_millis(180)), "not the 200 ms of the policy");
    let mut receiver = Receiver::new("a3", "rtt=333ms");
    assert_eq!(receiver.data(10 * MSS), AckPlan::Withhold { until: Instant::from_micros(499_500) });
    assert_eq!(receiver.at(100).data(MSS), withhold(280));
}

#[test]
fn only_what_goes_beyond_two_segments_is_withheld_from_the_core() {
    let mut receiver = Receiver::new("a3", "cap=off");
    receiver.view.mss = 4 * MSS;
    assert_eq!(
        receiver.data(MSS),
        AckPlan::By(Instant::from_millis(180)),
        "35 % of the buffer, two segments seen"
    );
    let mut receiver = Receiver::new("a3", "mss=announced");
    receiver.view.mss = 4 * MSS;
    assert_eq!(receiver.data(MSS), withhold(180), "two announced segments");
}

#[test]
fn a_sampling_that_the_core_cuts_short_counts_up_to_there() {
    let mut receiver = Receiver::sampling("a3", "");
    assert_eq!(receiver.at(100).data(5 * MSS), withhold(150));
    receiver.policy.on_hold_truncated(&receiver.view);
    receiver.ack(AckCause::Obligation);
    assert_eq!((receiver.metric("muds"), receiver.metric("samples")), (5_000.0, 1.0));
    assert_eq!(receiver.metric("sampling"), 0.0);
}

#[test]
fn an_ack_that_the_core_sends_ends_the_silence_without_an_estimate() {
    for cause in [AckCause::Obligation, AckCause::WindowUpdate, AckCause::Piggyback] {
        let mut receiver = Receiver::sampling("a3", "");
        receiver.at(100).data(5 * MSS);
        receiver.ack(cause);
        let metrics = ["sampling", "samples", "aborted_samples", "isp_cnt"].map(|name| receiver.metric(name));
        assert_eq!(metrics, [0.0, 0.0, 1.0, 10.0], "{cause:?}");
    }
}

#[test]
fn a_read_in_a_sampling_asks_for_no_window_update() {
    let mut receiver = Receiver::sampling("a3", "");
    receiver.at(100).data(5 * MSS);
    assert_eq!(receiver.read(5 * MSS), AckPlan::Keep);
    assert_eq!(receiver.metric("sampling"), 1.0);
}

#[test]
fn a_read_is_worth_an_ack_where_the_edge_moves_by_the_threshold() {
    let mut receiver = Receiver::new("a3", "");
    receiver.data(4 * MSS);
    assert_eq!(receiver.read(1_999), AckPlan::Keep);
    assert_eq!(receiver.read(1), AckPlan::NOW);
    receiver.ack(AckCause::Plan);
    assert_eq!(receiver.read(MSS), AckPlan::Keep);
}

#[test]
fn no_sampling_begins_with_a_full_buffer() {
    let mut receiver = Receiver::new("a3", "");
    assert_eq!(receiver.data(63_500), AckPlan::NOW);
    assert_eq!((receiver.metric("sampling"), receiver.metric("isp_cnt")), (0.0, 0.0));
    receiver.read(63_500);
    assert_eq!(receiver.at(100).data(MSS), withhold(250), "it begins as soon as there is room");
}

#[test]
fn a_probe_is_answered_and_is_no_sign_of_congestion() {
    let mut receiver = Receiver::sampling("csa3", "");
    receiver.at(100).data(20 * MSS);
    receiver.at(150).timer();
    assert_eq!(receiver.metric("muds"), 20_000.0);
    let nxt = receiver.view.rcv_nxt;
    let probe = DataArrival::new(nxt - 1, nxt, DataClass::Probe);
    receiver.at(9_000);
    assert_eq!(receiver.policy.on_data(&receiver.view, &probe), AckPlan::NOW);
    assert_eq!((receiver.metric("muds"), receiver.metric("recovering")), (20_000.0, 0.0));
    // The pause that ends with data is one.
    receiver.at(9_001).data(100);
    assert_eq!((receiver.metric("recovering"), receiver.metric("reductions_by_pauses")), (1.0, 1.0));
}

#[test]
fn a_running_connection_takes_new_parameters() {
    let mut receiver = Receiver::sampling("csa3", "");
    receiver.at(100).data(20 * MSS);
    receiver.at(150).timer();
    assert_eq!(receiver.data(2 * MSS), AckPlan::NOW, "the cap of two segments");
    receiver.policy.configure(&"cap=off,pause=off".parse().unwrap()).unwrap();
    assert!(matches!(receiver.data(2 * MSS), AckPlan::Withhold { .. }), "35 % of 20,000");
    receiver.policy.configure(&"profile=default".parse().unwrap()).unwrap();
    assert_eq!(receiver.data(10), AckPlan::NOW);
    let before = std::format!("{:?}", receiver.policy);
    for (params, expected) in [
        ("cap=4,sampling=paper", "fixed for the life of a connection"),
        ("cap=4,interval=9", "interval must be a whole number from 10 to 65535"),
        ("cap=0", "cap must be a whole number from 1 to 1000, or off"),
        (
            "rtt=2s",
            "rtt must be a time from 1ms to 333ms (units: ns, us, ms, s, m, h, d), or auto or handshake or timestamps",
        ),
        (
            "pause=never",
            "pause must be a time from 1ms to 60s (units: ns, us, ms, s, m, h, d), or auto or off",
        ),
        ("dupack=on", "csa3 has no parameter \"dupack\"; did you mean \"dupacks\"?"),
    ] {
        let error = receiver.policy.configure(&params.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(std::format!("{:?}", receiver.policy), before, "{params} changed something");
    }
    let error = Receiver::new("a3", "").policy.configure(&"pause=off".parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("a3 has no parameter \"pause\""), "{error}");
}

#[test]
fn pushed_data_that_was_read_is_acknowledged_at_once() {
    let mut receiver = Receiver::made("a3", "quick=0");
    assert_eq!(receiver.message(700), AckPlan::NOW);
    receiver.ack(AckCause::Plan);
    assert_eq!(receiver.data(700), AckPlan::By(Instant::from_millis(40)), "not pushed");
    assert_eq!(receiver.read(700), AckPlan::Keep);
    assert_eq!(receiver.message(700), AckPlan::NOW);
    receiver.ack(AckCause::Plan);
    receiver.arrive(700, |data| data.psh = true);
    assert_eq!(receiver.read(600), AckPlan::Keep, "100 bytes are not read");
}

#[test]
fn pushed_data_has_no_effect_with_push_off() {
    let mut receiver = Receiver::made("a3", "quick=0,push=off");
    assert_eq!(receiver.message(700), AckPlan::Keep);
}

#[test]
fn pushed_data_waits_for_a_64th_of_a_round_trip_if_it_is_less_than_a_64th_of_what_arrives_in_one() {
    let mut receiver = Receiver::made("a3", "quick=0,rtt=64ms");
    // 64,000 bytes in 64 ms.
    for i in 0..=32 {
        receiver.at(2 * i).data(2 * MSS);
        receiver.read(2 * MSS);
    }
    assert_eq!(receiver.message(1_001), AckPlan::NOW);
    receiver.ack(AckCause::Plan);
    assert_eq!(receiver.message(900), AckPlan::By(Instant::from_millis(65)));
    // More arrives meanwhile.
    receiver.at(64);
    assert_eq!(receiver.message(100), AckPlan::By(Instant::from_millis(65)));
    assert_eq!(receiver.message(1), AckPlan::NOW);
    receiver.ack(AckCause::Plan);
    assert_eq!(receiver.message(1), AckPlan::By(Instant::from_millis(65)));
    receiver.at(65).timer();
    receiver.at(66).data(10);
    assert_eq!(receiver.metric("sampling"), 0.0, "a wait of a 64th is no reason for a sampling");
}

#[test]
fn each_rule_has_its_words() {
    for name in ["a3", "csa3"] {
        let mut receiver = Receiver::made(name, "");
        receiver.data(MSS);
        assert_eq!(receiver.rule, "quick ACK");

        let mut receiver = Receiver::new(name, "");
        receiver.data(2 * MSS);
        assert_eq!(receiver.rule, "35 % of what the sender can have outstanding");

        let mut receiver = Receiver::new(name, "");
        receiver.data(100);
        receiver.at(180).timer();
        assert_eq!(receiver.rule, "delay");
        let mut receiver = Receiver::new(name, "");
        receiver.data(100);
        assert_eq!((receiver.at(181).data(100), receiver.rule), (AckPlan::NOW, "delay"), "the timer is late");

        let mut receiver = Receiver::sampling(name, "");
        assert_eq!(receiver.rule, "a sampling begins");
        receiver.at(100).data(5 * MSS);
        receiver.at(150).timer();
        assert_eq!(receiver.rule, "a sampling ends");
        let mut receiver = Receiver::sampling(name, "");
        receiver.at(100).data(53_500);
        assert_eq!(receiver.rule, "a sampling has used up the window");

        let mut receiver = Receiver::new(name, "");
        receiver.data(4 * MSS);
        assert_eq!(receiver.read(4 * MSS), AckPlan::NOW);
        receiver.ack(AckCause::Plan);
        assert_eq!(receiver.rule, "the window opens by the threshold");
        let mut receiver = Receiver::made(name, "quick=0");
        assert_eq!(receiver.message(700), AckPlan::NOW);
        receiver.ack(AckCause::Plan);
        assert_eq!(receiver.rule, "pushed data was read");

        for (class, expected) in [
            (DataClass::OutOfOrder, "out of order"),
            (DataClass::Hole, "a hole is filled"),
            (DataClass::Duplicate, "duplicate"),
            (DataClass::Probe, "probe"),
            (DataClass::Unacceptable, "probe"),
        ] {
            let mut receiver = Receiver::new(name, "");
            assert_eq!(receiver.arrive(100, |data| data.class = class), AckPlan::NOW);
            assert_eq!(receiver.rule, expected);
        }
        let mut receiver = Receiver::new(name, "");
        receiver.arrive(100, |data| data.fin = true);
        assert_eq!(receiver.rule, "FIN");
        receiver.arrive(100, |data| data.urg = true);
        assert_eq!(receiver.rule, "urgent");
    }
}

#[test]
fn quick_acks_come_back_after_a_pause_a_duplicate_and_a_mark() {
    let mut receiver = Receiver::made("a3", "quick=3,rtt=100ms");
    let quick = |receiver: &mut Receiver| {
        let number = (0..10).take_while(|_| receiver.data(100) == AckPlan::NOW).count();
        receiver.ack(AckCause::Piggyback);
        number
    };
    receiver.view.edge = receiver.view.rcv_nxt + 64_000;
    assert_eq!(quick(&mut receiver), 3);
    assert_eq!(quick(receiver.at(199)), 0);
    assert_eq!(quick(receiver.at(399)), 3, "a pause of two round trips");
    let nxt = receiver.view.rcv_nxt;
    let old = DataArrival::new(nxt - 100, nxt, DataClass::Duplicate);
    assert_eq!(receiver.policy.on_data(&receiver.view, &old), AckPlan::NOW);
    assert_eq!(quick(&mut receiver), 3, "a duplicate");
    assert_eq!(receiver.arrive(100, |data| data.ce = true), AckPlan::NOW);
    assert_eq!(quick(&mut receiver), 2, "a mark");
    receiver.view.free = 5 * MSS;
    receiver.ack(AckCause::WindowUpdate);
    assert_eq!(quick(receiver.at(1_000)), 2, "one for two segments of the window");
}

#[test]
fn a_sampling_ends_before_the_senders_probe() {
    // The gaps between arrivals are 200 ms, but an arrival prolongs the sampling by half a round
    // trip only.
    let mut receiver = Receiver::made("a3", "quick=0,when=always,push=off,rtt=20ms");
    for i in 0..9 {
        receiver.at(200 * i).data(100);
        receiver.at(200 * i + 40).timer();
    }
    assert_eq!(receiver.at(1_800).data(100), withhold(1_830));
    assert_eq!(receiver.at(1_825).data(100), withhold(1_835));
    let mut receiver = Receiver::made("a3", "quick=0,when=always,push=off,rtt=20ms,linger=ipat");
    for i in 0..9 {
        receiver.at(200 * i).data(100);
        receiver.at(200 * i + 40).timer();
    }
    assert_eq!(receiver.at(1_800).data(100), withhold(1_830));
    assert_eq!(receiver.at(1_825).data(100), withhold(1_865), "1.3 IPAT, up to the delay of 40 ms");
}

#[test]
fn no_sampling_is_longer_than_the_wait_that_it_may_save() {
    for (rtt, sampled) in [("26ms", 1.0), ("27ms", 0.0)] {
        let mut receiver = Receiver::made("a3", &["quick=0,rtt=", rtt].concat());
        for i in 0..9 {
            receiver.at(100 * i).data(100);
            receiver.at(100 * i + 40).timer();
        }
        receiver.at(900).data(100);
        assert_eq!(receiver.metric("sampling"), sampled, "{rtt}");
    }
}
