mod memory;
mod out_of_order;

use super::{AckNumbers, DataOutcome, Incoming, OpenParams, Receiver};
use crate::config::ConnConfig;
use crate::config::EndpointConfig;
use crate::counters::Counters;
use crate::ctx::{Ctx, Observe, host_for_test};
use crate::info::Info;
use crate::memory::budget::Budget;
use crate::packet::SendReason;
use crate::policy::ack::{
    AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, NewAckPolicy, RecvView, SoftObligations,
    WindowHint,
};
use crate::rcv;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::Payload;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use proptest::prelude::*;
use std::sync::Mutex;
use std::vec;
use std::vec::Vec;

/// First sequence number of the stream.
const START: SeqNum = SeqNum(1_001);
const RMSS: u32 = 1_000;

/// The byte that stands at `offset` in every test's stream.
fn byte(offset: u32) -> u8 {
    (offset % 251) as u8
}

fn stream(from: u32, to: u32) -> Vec<u8> {
    (from..to).map(byte).collect()
}

/// What the scripted policy was told, and what it answers.
#[derive(Debug, Default)]
struct Script {
    /// Answers of `on_data`; `Keep` when they run out.
    on_data: VecDeque<AckPlan>,
    /// Answer of `on_timeout`.
    on_timeout: Option<AckPlan>,
    /// Answer of `on_app_read`.
    on_app_read: Option<AckPlan>,
    /// Answer of `on_ack_sent`.
    on_ack_sent: Option<AckPlan>,
    seen: Vec<DataArrival>,
    sent: Vec<AckSent>,
    timeouts: Vec<Instant>,
    truncated: u32,
}

/// A policy that does as its script says.
#[derive(Debug)]
struct Scripted {
    script: Arc<Mutex<Script>>,
    waives: SoftObligations,
}

impl AckPolicy for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn waives(&self) -> SoftObligations {
        self.waives
    }
    fn on_data(&mut self, _view: &RecvView, data: &DataArrival) -> AckPlan {
        let mut script = self.script.lock().unwrap();
        script.seen.push(*data);
        script.on_data.pop_front().unwrap_or(AckPlan::Keep)
    }
    fn on_ack_sent(&mut self, _view: &RecvView, sent: &AckSent) -> AckPlan {
        let mut script = self.script.lock().unwrap();
        script.sent.push(*sent);
        script.on_ack_sent.unwrap_or(AckPlan::Keep)
    }
    fn on_app_read(&mut self, _view: &RecvView) -> AckPlan {
        self.script.lock().unwrap().on_app_read.unwrap_or(AckPlan::Keep)
    }
    fn on_timeout(&mut self, view: &RecvView) -> AckPlan {
        let mut script = self.script.lock().unwrap();
        script.timeouts.push(view.now);
        script.on_timeout.unwrap_or(AckPlan::Keep)
    }
    fn on_hold_truncated(&mut self, _view: &RecvView) {
        self.script.lock().unwrap().truncated += 1;
    }
}

/// A receiver whose stream begins at [`START`], at one second.
struct Bench {
    rcv: Receiver,
    config: ConnConfig,
    observe: Observe,
    host: EndpointConfig,
    now: Instant,
    script: Arc<Mutex<Script>>,
}

macro_rules! ctx {
    ($bench:expr) => {
        &mut Ctx {
            now: $bench.now,
            id: crate::ConnId::for_test(0, 0),
            host: &$bench.host,
            observe: &mut $bench.observe,
        }
    };
}

/// Sends nothing on its own account, and 20,000 bytes of buffer that are never tuned.
fn config() -> ConnConfig {
    ConnConfig { recv_buffer: 20_000, initial_recv_window: None, ..ConnConfig::default() }
}

fn params() -> OpenParams {
    OpenParams {
        irs: START - 1,
        wscale: 0,
        rmss: RMSS,
        sack: true,
        handshake_rtt: Some(Duration::from_millis(10)),
        ecn: None,
    }
}

impl Bench {
    /// With the scripted policy, which waives `waives`.
    fn scripted(waives: SoftObligations) -> Self {
        Self::new(config(), params(), waives)
    }

    fn new(mut config: ConnConfig, params: OpenParams, waives: SoftObligations) -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let policy = script.clone();
        config.policies.ack = Arc::new(move |_: &AckInit| -> Box<dyn AckPolicy> {
            Box::new(Scripted { script: policy.clone(), waives })
        });
        let mut observe = Observe::for_test();
        let host = host_for_test();
        let now = Instant::from_secs(1);
        let mut rcv = Receiver::new(&config);
        rcv.open(
            &mut Ctx { now, id: crate::ConnId::for_test(0, 0), host: &host, observe: &mut observe },
            &config,
            &params,
        );
        Self { rcv, config, observe: Observe::for_test(), host, now, script }
    }

    /// With the built-in delayed ACK.
    fn delayed(mut config: ConnConfig, params: OpenParams) -> Self {
        config.policies = ConnConfig::default().policies;
        let mut bench = Self::new(config.clone(), params, SoftObligations::NONE);
        bench.config = config;
        let make = bench.config.policies.ack.clone();
        bench.rcv.swap_policy(ctx!(bench), &bench.config, &*make);
        bench
    }

    /// The next answer of the policy to data.
    fn answer(&mut self, plan: AckPlan) -> &mut Self {
        self.script.lock().unwrap().on_data.push_back(plan);
        self
    }

    /// RFC 9293, section 3.10.7.4, first check.
    fn acceptable(&self, seq: SeqNum, len: u32) -> bool {
        rcv::acceptable(self.rcv.rcv_nxt(), self.rcv.window(), seq, len)
    }

    /// Bytes `from..to` of the stream arrive in one segment; with a FIN if `fin`.
    fn arrive_with(&mut self, from: u32, to: u32, fin: bool, segments: u32) -> DataOutcome {
        let data = stream(from, to);
        let seq = START + from;
        let len = to - from;
        if !self.acceptable(seq, len + u32::from(fin)) {
            self.rcv.on_unacceptable(ctx!(self), &self.config, seq, len);
            return DataOutcome::default();
        }
        let incoming = Incoming {
            seq,
            payload: Payload::from(&data[..]),
            fin,
            psh: false,
            urg: false,
            ce: false,
            cwr: false,
            segments,
            ts_rtt: None,
            srtt: None,
        };
        self.rcv.on_data(ctx!(self), &self.config, &incoming)
    }

    fn arrive(&mut self, from: u32, to: u32) -> DataOutcome {
        self.arrive_with(from, to, false, 1)
    }

    /// Bytes allocated for data.
    fn allocated(&self) -> usize {
        self.rcv.reassembly.memory()
    }

    /// Those of them that the buffer holds.
    fn buffer_memory(&self) -> usize {
        self.rcv.reassembly.parts().0.memory()
    }

    fn read(&mut self, n: usize) -> Vec<u8> {
        let mut out = vec![0; n];
        let read = self.rcv.read(ctx!(self), &self.config, &mut out);
        out.truncate(read);
        out
    }

    /// Every ACK that is due leaves: reason and numbers.
    fn drain(&mut self) -> Vec<(SendReason, AckNumbers)> {
        let mut sent = Vec::new();
        while let Some(reason) = self.rcv.ack_wanted(0) {
            let numbers =
                self.rcv.ack_numbers(self.now, &self.config, super::AckRoom { options: 40, bare: true });
            self.rcv.ack_sent(ctx!(self), &self.config, true, reason, &numbers);
            sent.push((reason, numbers));
            assert!(sent.len() < 300, "the receiver never falls silent");
        }
        sent
    }

    /// The reasons of the ACKs that are due; they leave.
    fn reasons(&mut self) -> Vec<SendReason> {
        self.drain().into_iter().map(|(reason, _)| reason).collect()
    }

    /// The blocks of the one ACK that is due, as stream offsets.
    fn blocks(&mut self) -> Vec<(u32, u32)> {
        let sent = self.drain();
        assert_eq!(sent.len(), 1);
        sent[0]
            .1
            .sack
            .as_slice()
            .iter()
            .map(|(a, b)| (a.distance_from(START), b.distance_from(START)))
            .collect()
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
    }

    fn timeout(&mut self) {
        self.rcv.on_timeout(ctx!(self), &self.config);
    }

    fn offset(&self) -> u32 {
        self.rcv.rcv_nxt().distance_from(START)
    }
}

const MS: Duration = Duration::from_millis(1);
const OBLIGED: SendReason = SendReason::AckByObligation;

#[test]
fn a_receiver_is_small_and_takes_no_memory_before_data() {
    assert!(size_of::<Receiver>() <= 208, "{}", size_of::<Receiver>());
}

#[test]
fn acceptable_follows_section_3_10_7_4() {
    let mut bench = Bench::scripted(SoftObligations::NONE);
    let at = |offset: i64| SeqNum((i64::from(START.0) + offset) as u32);
    let window = i64::from(bench.rcv.window());
    assert_eq!(window, 20_000);
    // (offset from RCV.NXT, length, acceptable)
    let open = [
        (-1, 0, false),
        (0, 0, true),
        (window - 1, 0, true),
        (window, 0, true),
        (window + 1, 0, false),
        (-1, 1, false),
        (-1, 2, true),
        (-500, 500, false),
        (0, 1, true),
        (window - 1, 1, true),
        (window, 1, false),
        (window - 1, 1_000, true),
        (window + 100_000, 10, false),
        (i64::from(i32::MIN), 10, false),
    ];
    for (offset, len, acceptable) in open {
        assert_eq!(bench.acceptable(at(offset), len), acceptable, "{offset} {len}");
    }
    for from in (0..20_000).step_by(1_000) {
        bench.arrive(from, from + 1_000);
        bench.drain();
    }
    assert_eq!(bench.rcv.window(), 0);
    for (offset, len, acceptable) in
        [(-1, 0, false), (0, 0, true), (1, 0, false), (0, 1, false), (-1, 2, false)]
    {
        assert_eq!(bench.acceptable(at(20_000 + offset), len), acceptable, "closed: {offset} {len}");
    }
}

#[test]
fn data_in_order_is_delivered_and_acknowledged() {
    let mut bench = Bench::delayed(config(), params());
    assert_eq!(bench.arrive(0, 1_000), DataOutcome { readable: true, fin: false });
    assert_eq!(bench.reasons(), []);
    assert_eq!(bench.rcv.next_timeout(&bench.config), Some(bench.now + MS.saturating_mul(40)));
    bench.arrive(1_000, 2_000);
    let sent = bench.drain();
    assert_eq!(sent.len(), 1, "every second full segment");
    assert_eq!((sent[0].1.ack, sent[0].1.window), (START + 2_000, 18_000));
    assert_eq!(bench.rcv.next_timeout(&bench.config), None);
    assert_eq!(bench.read(5_000), stream(0, 2_000));
    assert_eq!(bench.rcv.highest_ack(), START + 2_000);
    assert_eq!(bench.observe.counters.tcp_hp_hits, 2);
}

#[test]
fn a_hole_is_reported_and_filled() {
    let mut bench = Bench::delayed(config(), params());
    assert_eq!(bench.arrive(1_000, 2_000), DataOutcome::default());
    assert_eq!(bench.blocks(), [(1_000, 2_000)]);
    bench.arrive(3_000, 4_000);
    assert_eq!(bench.blocks(), [(3_000, 4_000), (1_000, 2_000)], "RFC 2018: the latest first");
    assert!(bench.rcv.has_out_of_order());
    bench.arrive(1_500, 2_500);
    assert_eq!(
        bench.blocks(),
        [(1_500, 2_000), (1_000, 2_500), (3_000, 4_000)],
        "RFC 2883: the duplicate first"
    );
    assert!(bench.arrive(0, 1_000).readable);
    assert_eq!(bench.offset(), 2_500);
    assert_eq!(bench.blocks(), [(3_000, 4_000)]);
    bench.arrive(2_500, 3_000);
    assert_eq!(bench.blocks(), []);
    assert_eq!(bench.read(9_000), stream(0, 4_000));
    assert_eq!(bench.observe.counters.tcp_ofo_queue, 3);
    assert_eq!(bench.observe.counters.tcp_ofo_merge, 0, "no range came twice as a whole");
    assert_eq!(bench.observe.counters.tcp_dsack_ofo_sent, 1);
}

#[test]
fn duplicates_are_reported_once_by_dsack() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(0, 1_000);
    bench.arrive(1_000, 2_000);
    bench.drain();
    bench.arrive(0, 1_000);
    assert!(bench.rcv.has_out_of_order(), "a pure ACK has room for the block");
    assert_eq!(bench.blocks(), [(0, 1_000)], "RFC 2883, section 4.1");
    assert!(!bench.rcv.has_out_of_order());
    assert_eq!(bench.observe.counters.tcp_dsack_old_sent, 1);
    bench.arrive(2_000, 3_000);
    bench.arrive(3_000, 4_000);
    assert_eq!(bench.blocks(), []);
}

/// RFC 2883, section 4: the report of a duplicate does not wait for more data, even if a part of
/// the segment is new.
#[test]
fn a_duplicate_in_front_of_new_data_is_reported_at_once() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(0, 1_000);
    bench.timeout();
    bench.drain();
    bench.arrive(500, 1_100);
    assert_eq!(bench.blocks(), [(500, 1_000)]);
    assert_eq!(bench.offset(), 1_100);
    // Without SACK nothing is reported, but a peer that repeats data waits for an ACK.
    let mut bench = Bench::delayed(config(), OpenParams { sack: false, ..params() });
    bench.arrive(0, 1_000);
    bench.timeout();
    bench.drain();
    bench.arrive(500, 1_100);
    assert_eq!(bench.reasons(), [OBLIGED]);
}

#[test]
fn what_lies_before_the_stream_is_no_duplicate() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(0, 1_000);
    bench.rcv.on_unacceptable(ctx!(bench), &bench.config, START - 5_000, 4_000);
    assert_eq!(bench.blocks(), [], "answered, but not as received twice");
}

#[test]
fn without_sack_there_are_no_blocks_and_one_duplicate_ack_per_segment() {
    let mut bench = Bench::delayed(config(), OpenParams { sack: false, ..params() });
    bench.arrive_with(1_000, 4_000, false, 3);
    bench.arrive(5_000, 6_000);
    let sent = bench.drain();
    assert_eq!(sent.len(), 4, "RFC 5681, section 3.2: the peer counts them");
    assert!(sent.iter().all(|(_, numbers)| numbers.sack.is_empty()));
    assert!(sent.iter().all(|(_, numbers)| (numbers.ack, numbers.window) == (START, 20_000)));
    bench.arrive_with(7_000, 9_000, false, 2);
    bench.arrive(0, 1_000);
    assert_eq!(bench.drain().len(), 1, "the ACK that moves on says more than the duplicates before it");
}

#[test]
fn with_sack_one_ack_says_all() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive_with(1_000, 3_000, false, 2);
    bench.arrive(4_000, 5_000);
    assert_eq!(bench.blocks(), [(4_000, 5_000), (1_000, 3_000)]);
}

/// RFC 5681, section 2: only an ACK with an unchanged window counts as a duplicate.
#[test]
fn without_sack_a_read_does_not_disturb_duplicate_acks() {
    for sack in [false, true] {
        let mut bench = Bench::delayed(config(), OpenParams { sack, ..params() });
        bench.arrive_with(0, 12_000, false, 12);
        bench.drain();
        let mut windows = vec![];
        for i in 0..3 {
            bench.arrive(13_000 + i * 1_000, 14_000 + i * 1_000);
            windows.extend(bench.drain().iter().map(|(_, numbers)| numbers.window));
            bench.read(4_000);
        }
        windows.extend(bench.drain().iter().map(|(_, numbers)| numbers.window));
        assert_eq!(windows.iter().all(|window| *window == 8_000), !sack, "{windows:?}");
    }
}

#[test]
fn the_window_hint_is_for_one_ack() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    bench.answer(AckPlan::NOW);
    bench.arrive_with(0, 19_100, false, 20);
    bench.drain();
    bench.read(500);
    bench.answer(AckPlan::Now { window: WindowHint::AllFree });
    bench.arrive(19_100, 19_200);
    assert_eq!(bench.drain()[0].1.window, 1_300);
    bench.read(500);
    bench.arrive(19_200, 19_300);
    bench.rcv.oblige(OBLIGED);
    assert_eq!(bench.drain()[0].1.window, 1_200, "600 more are free: less than a segment");
}

#[test]
fn a_window_update_that_is_only_useful_waits_for_a_policy_that_withholds() {
    for plan in [AckPlan::Keep, AckPlan::Withhold { until: Instant::FAR_FUTURE }] {
        let mut bench = Bench::scripted(SoftObligations::ALL);
        bench.answer(AckPlan::NOW);
        bench.arrive_with(0, 15_000, false, 15);
        bench.drain();
        bench.answer(plan);
        bench.arrive(15_000, 15_001);
        bench.read(12_000);
        let expected: &[_] = if plan == AckPlan::Keep { &[SendReason::WindowUpdate] } else { &[] };
        assert_eq!(bench.reasons(), expected);
    }
}

#[test]
fn an_ack_that_waits_in_the_scheduler_is_not_asked_for_again() {
    let mut bench = Bench::delayed(config(), OpenParams { sack: false, ..params() });
    bench.arrive_with(1_000, 3_000, false, 2);
    assert!(bench.rcv.ack_wanted(0).is_some() && bench.rcv.ack_wanted(1).is_some());
    assert_eq!(bench.rcv.ack_wanted(2), None);
}

#[test]
fn data_past_the_edge_is_cut() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(19_000, 21_000);
    assert_eq!(bench.blocks(), [(19_000, 20_000)]);
    for from in (0..19_000).step_by(1_000) {
        bench.arrive(from, from + 1_000);
        bench.drain();
    }
    assert_eq!((bench.offset(), bench.rcv.window()), (20_000, 0));
    assert_eq!(bench.read(30_000), stream(0, 20_000));
}

#[test]
fn a_fin_waits_for_the_gap_before_it_and_ends_the_stream() {
    let mut bench = Bench::delayed(config(), params());
    assert_eq!(bench.arrive_with(1_000, 2_000, true, 1), DataOutcome::default());
    assert_eq!(bench.drain()[0].1.ack, START);
    assert_eq!(bench.arrive(2_000, 3_000), DataOutcome::default(), "beyond the FIN");
    assert_eq!(bench.reasons(), [OBLIGED]);
    assert_eq!(bench.arrive(0, 1_500), DataOutcome { readable: true, fin: true });
    assert_eq!(bench.drain()[0].1.ack, START + 2_001);
    assert_eq!(bench.read(9_000), stream(0, 2_000));
    bench.arrive_with(1_500, 2_000, true, 1);
    assert_eq!(bench.drain()[0].1.ack, START + 2_001, "the FIN again");
}

#[test]
fn a_fin_alone_is_acknowledged_at_once() {
    for waives in [SoftObligations::NONE, SoftObligations::ALL] {
        let mut bench = Bench::scripted(waives);
        bench.answer(AckPlan::Withhold { until: Instant::FAR_FUTURE });
        bench.arrive(0, 100);
        assert_eq!(bench.arrive_with(100, 100, true, 1), DataOutcome { readable: false, fin: true });
        assert_eq!(bench.drain()[0].1.ack, START + 101);
    }
}

#[test]
fn a_fin_that_contradicts_earlier_data_is_not_believed() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(1_000, 2_000);
    assert!(!bench.arrive_with(500, 1_000, true, 1).fin);
    assert_eq!(bench.arrive(0, 500), DataOutcome { readable: true, fin: false });
    assert_eq!(bench.offset(), 2_000);
    assert_eq!(bench.arrive_with(2_000, 2_000, true, 1), DataOutcome { readable: false, fin: true });
}

#[test]
fn the_first_fin_counts() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive_with(2_000, 2_000, true, 1);
    assert_eq!(bench.drain()[0].1.ack, START);
    assert_eq!(bench.arrive_with(1_000, 1_500, true, 1), DataOutcome::default());
    assert_eq!(bench.arrive(0, 1_000), DataOutcome { readable: true, fin: false });
    assert_eq!(bench.offset(), 1_500);
    assert_eq!(
        bench.arrive(1_500, 2_000),
        DataOutcome { readable: true, fin: true },
        "with nothing past a hole"
    );
}

#[test]
fn a_fin_may_stand_at_the_edge() {
    let mut bench = Bench::delayed(config(), params());
    for from in (0..19_000).step_by(1_000) {
        bench.arrive(from, from + 1_000);
        bench.drain();
    }
    assert_eq!(bench.arrive_with(19_000, 20_000, true, 1), DataOutcome { readable: true, fin: true });
    let (_, numbers) = bench.drain()[0];
    assert_eq!((numbers.ack, numbers.window), (START + 20_001, 0));
    assert_eq!(bench.read(30_000).len(), 20_000);
    assert_eq!(bench.reasons(), [], "a window that nobody can use is not shown");
}

#[test]
fn what_arrives_out_of_order_is_counted() {
    let mut bench = Bench::delayed(config(), params());
    let mut count = 0;
    // In order, past a hole, again, and filling it.
    for (from, to, segments, more) in
        [(0, 100, 1, 0), (1_000, 2_900, 2, 2), (1_500, 1_600, 1, 1), (100, 1_000, 1, 0)]
    {
        bench.arrive_with(from, to, false, segments);
        let mut info = info();
        bench.rcv.info(&mut info);
        count += more;
        assert_eq!(info.rcv_ooopack, count, "{from}..{to}");
    }
}

#[test]
fn ranges_are_bounded() {
    let mut bench = Bench::delayed(ConnConfig { max_out_of_order_ranges: 3, ..config() }, params());
    for i in 1..10 {
        bench.arrive(2 * i * 100, 2 * i * 100 + 100);
        bench.drain();
    }
    assert_eq!(bench.observe.counters.tcp_ofo_drop, 6);
    let mut info = info();
    bench.rcv.info(&mut info);
    assert_eq!(info.ooo_bytes, 300);
    bench.arrive(0, 200);
    assert_eq!(bench.offset(), 300, "holes still close");
}

#[test]
fn what_was_held_is_given_back_when_idle() {
    let mut bench = Bench::delayed(config(), params());
    bench.arrive(1_000, 2_000);
    bench.arrive(0, 1_000);
    bench.rcv.trim();
    assert!(!bench.rcv.has_spare_memory());
    assert_eq!(bench.read(5_000), stream(0, 2_000), "nothing that is needed");
    bench.drain();
    assert!(bench.rcv.has_spare_memory());
    bench.rcv.trim();
    assert!(bench.rcv.reassembly.parts().1.is_none() && !bench.rcv.has_spare_memory());
    assert_eq!(bench.buffer_memory(), 0);
    bench.arrive(2_000, 3_000);
    assert_eq!(bench.read(5_000), stream(2_000, 3_000));
}

#[test]
fn data_past_the_window_is_cut_off_and_counted() {
    let mut bench = Bench::delayed(config(), params());
    for from in (0..19_000).step_by(1_000) {
        bench.arrive(from, from + 1_000);
        bench.drain();
    }
    bench.arrive(19_000, 20_500);
    assert_eq!(bench.offset(), 20_000);
    assert_eq!(
        (bench.observe.counters.tcp_zero_window_drop, bench.observe.counters.tcp_cut_to_window),
        (0, 1)
    );
}

#[test]
fn a_closed_window_is_probed_and_reopens() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    for from in (0..20_000).step_by(1_000) {
        bench.answer(AckPlan::NOW);
        bench.arrive(from, from + 1_000);
        bench.drain();
    }
    assert_eq!((bench.rcv.window(), bench.observe.counters.tcp_to_zero_window_adv), (0, 1));
    // The policy would withhold everything; a probe is answered all the same.
    bench.answer(AckPlan::Withhold { until: Instant::FAR_FUTURE });
    bench.arrive(20_000, 20_001);
    let sent = bench.drain();
    assert_eq!((sent[0].0, sent[0].1.ack, sent[0].1.window), (OBLIGED, START + 20_000, 0));
    assert_eq!(bench.script.lock().unwrap().seen.last().unwrap().class, DataClass::Probe);
    assert_eq!(
        (bench.observe.counters.tcp_zero_window_drop, bench.observe.counters.tcp_cut_to_window),
        (1, 0)
    );
    // RFC 9293, section 3.8.6.2.2: not before a segment fits; then at once, whatever the policy
    // says.
    bench.script.lock().unwrap().on_app_read = Some(AckPlan::Withhold { until: Instant::FAR_FUTURE });
    bench.read(999);
    assert_eq!(bench.drain(), []);
    bench.read(1);
    let sent = bench.drain();
    assert_eq!((sent[0].0, sent[0].1.window), (SendReason::WindowUpdate, 1_000));
    assert_eq!(bench.observe.counters.tcp_from_zero_window_adv, 1);
}

/// Each row of the table in [`super::obligations`], with a policy that withholds all.
#[test]
fn hard_obligations_cannot_be_waived() {
    let withhold = AckPlan::Withhold { until: Instant::FAR_FUTURE };
    let bench = || {
        let mut bench = Bench::scripted(SoftObligations::ALL);
        for _ in 0..100 {
            bench.answer(withhold);
        }
        bench.arrive(0, 100);
        assert_eq!(bench.reasons(), []);
        bench
    };
    let mut keep_alive = bench();
    keep_alive.rcv.on_unacceptable(ctx!(keep_alive), &keep_alive.config, START + 99, 0);
    assert_eq!(keep_alive.reasons(), [OBLIGED]);
    let mut keep_alive = bench();
    keep_alive.arrive(99, 100);
    assert_eq!(keep_alive.reasons(), [OBLIGED], "with a byte of garbage");
    let mut outside = bench();
    outside.arrive(30_000, 30_100);
    assert_eq!(outside.reasons(), [OBLIGED]);
    let mut fin = bench();
    fin.arrive_with(100, 200, true, 1);
    assert_eq!(fin.reasons(), [OBLIGED]);
    let mut challenge = bench();
    challenge.rcv.oblige(SendReason::ChallengeAck);
    assert_eq!(challenge.reasons(), [SendReason::ChallengeAck]);
    let mut full = bench();
    full.arrive_with(100, 19_000, false, 19);
    assert_eq!(full.reasons(), [], "min(MSS, R/2) is left");
    full.arrive(19_000, 19_001);
    assert_eq!(full.reasons(), [OBLIGED], "less is left");
    assert_eq!(full.script.lock().unwrap().truncated, 1);
}

#[test]
fn filling_a_gap_up_to_the_edge_is_told_at_once_by_whatever_policy() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    for _ in 0..2 {
        bench.answer(AckPlan::Withhold { until: Instant::FAR_FUTURE });
    }
    bench.arrive_with(1_000, 19_500, false, 19);
    assert_eq!(bench.reasons(), []);
    bench.arrive(0, 1_000);
    assert_eq!((bench.reasons(), bench.rcv.window()), (vec![OBLIGED], 500));
}

#[test]
fn soft_obligations_are_waived_only_by_a_policy_that_said_so_and_withholds() {
    /// Whether an ACK was due, for one arrival of each kind.
    fn due(waives: SoftObligations, plan: AckPlan) -> ([bool; 5], u64) {
        let bench = || {
            let mut bench = Bench::scripted(waives);
            for _ in 0..5 {
                bench.answer(plan);
            }
            bench.arrive(0, 100);
            assert_eq!(bench.reasons(), []);
            bench
        };
        let (mut out, mut hole, mut old, mut part, mut second) =
            (bench(), bench(), bench(), bench(), bench());
        out.arrive(200, 300);
        hole.arrive(200, 300);
        hole.drain();
        hole.observe.counters = Counters::default();
        hole.arrive(100, 200);
        old.arrive(0, 100);
        part.arrive(50, 150);
        second.arrive(100, 2_000);
        let benches = [out, hole, old, part, second];
        let waived = benches.iter().map(|bench| bench.observe.counters.ack_obligations_waived).sum();
        (benches.map(|mut bench| bench.reasons() == [OBLIGED]), waived)
    }
    let withhold = AckPlan::Withhold { until: Instant::FAR_FUTURE };
    let by = AckPlan::By(Instant::FAR_FUTURE);
    assert_eq!(due(SoftObligations::NONE, withhold), ([true; 5], 0));
    assert_eq!(due(SoftObligations::ALL, by), ([true; 5], 0), "`By` waives nothing");
    assert_eq!(due(SoftObligations::ALL, withhold), ([false; 5], 5));
    let only = |set: fn(&mut SoftObligations)| {
        let mut waives = SoftObligations::NONE;
        set(&mut waives);
        due(waives, withhold)
    };
    assert_eq!(only(|waives| waives.out_of_order = true), ([false, true, true, true, true], 1));
    assert_eq!(only(|waives| waives.gap_filling = true), ([true, false, true, true, true], 1));
    assert_eq!(only(|waives| waives.duplicate = true), ([true, true, false, false, true], 2));
    assert_eq!(only(|waives| waives.every_second = true), ([true, true, true, true, false], 1));
}

#[test]
fn a_connection_counts_what_its_policy_waives() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    for _ in 0..3 {
        bench.answer(AckPlan::Withhold { until: Instant::FAR_FUTURE });
    }
    bench.arrive(200, 300);
    bench.arrive(0, 100);
    bench.arrive(100, 200);
    let mut info = info();
    bench.rcv.info(&mut info);
    assert_eq!((info.acks_waived, bench.observe.counters.ack_obligations_waived), (3, 3));
}

/// A policy that withholds for ever, or never asks for anything, is cut short at the hold limit,
/// and told so.
#[test]
fn no_policy_holds_longer_than_the_limit() {
    for plan in
        [AckPlan::Keep, AckPlan::Withhold { until: Instant::FAR_FUTURE }, AckPlan::By(Instant::FAR_FUTURE)]
    {
        let mut bench = Bench::scripted(SoftObligations::ALL);
        let arrived = bench.now;
        for i in 0..10 {
            bench.answer(plan);
            bench.arrive(i * 10, i * 10 + 10);
            bench.advance(MS);
        }
        assert_eq!(bench.reasons(), []);
        let limit = bench.config.ack_hold_limit;
        assert_eq!(bench.rcv.next_timeout(&bench.config), Some(arrived + limit), "from the first byte held");
        bench.now = arrived + limit;
        bench.timeout();
        assert_eq!(bench.reasons(), [OBLIGED]);
        assert_eq!(bench.rcv.next_timeout(&bench.config), None);
        assert_eq!(
            (bench.script.lock().unwrap().truncated, bench.observe.counters.ack_hold_truncated),
            (1, 1)
        );
    }
}

#[test]
fn out_of_order_and_duplicate_data_are_held_no_longer_either() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    bench.answer(AckPlan::NOW);
    bench.arrive(0, 100);
    bench.drain();
    for (from, to) in [(500, 600), (0, 100)] {
        bench.answer(AckPlan::Withhold { until: Instant::FAR_FUTURE });
        bench.arrive(from, to);
        assert_eq!(bench.reasons(), []);
        bench.now += bench.config.ack_hold_limit;
        bench.timeout();
        assert_eq!(bench.blocks()[0], (from, to));
    }
}

#[test]
fn at_a_tie_the_policys_timer_runs_before_the_hold_limit() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    let limit = bench.now + bench.config.ack_hold_limit;
    bench.answer(AckPlan::Withhold { until: limit });
    bench.arrive(0, 100);
    bench.now = limit;
    bench.script.lock().unwrap().on_timeout = Some(AckPlan::NOW);
    bench.timeout();
    assert_eq!(bench.reasons(), [SendReason::AckByTimer]);
    let script = bench.script.lock().unwrap();
    assert_eq!((script.timeouts.as_slice(), script.truncated), (&[limit][..], 0));
    assert_eq!(bench.observe.counters.delayed_acks, 1);
}

#[test]
fn a_timer_may_run_with_nothing_held_but_sends_nothing_twice() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    bench.script.lock().unwrap().on_ack_sent = Some(AckPlan::By(bench.now + MS));
    bench.script.lock().unwrap().on_timeout = Some(AckPlan::NOW);
    bench.answer(AckPlan::NOW);
    bench.arrive(0, 100);
    assert_eq!(bench.reasons(), [SendReason::AckByPolicy]);
    bench.advance(MS);
    assert_eq!(bench.rcv.next_timeout(&bench.config), Some(bench.now));
    bench.timeout();
    assert_eq!(bench.reasons(), [], "RFC 5681, section 4.2: nothing new to say");
    assert_eq!(bench.script.lock().unwrap().timeouts.len(), 1);
    assert_eq!(bench.rcv.next_timeout(&bench.config), None);
}

/// Policies that answer every event with the same plan, also with instants that have passed.
#[test]
fn a_policy_that_repeats_itself_stops_nothing() {
    let past = Instant::from_nanos(1);
    let plans = [
        AckPlan::NOW,
        AckPlan::Now { window: WindowHint::AllFree },
        AckPlan::Keep,
        AckPlan::By(past),
        AckPlan::Withhold { until: past },
        AckPlan::Withhold { until: Instant::FAR_FUTURE },
    ];
    for plan in plans {
        let mut bench = Bench::scripted(SoftObligations::ALL);
        {
            let mut script = bench.script.lock().unwrap();
            (script.on_timeout, script.on_app_read, script.on_ack_sent) =
                (Some(plan), Some(plan), Some(plan));
            script.on_data = vec![plan; 1_000].into();
        }
        let mut acked = Vec::new();
        let end = bench.now + Duration::from_secs(5);
        let mut next = bench.now;
        let mut at = 0;
        while bench.now < end {
            if bench.now >= next {
                bench.arrive(at, at + 500);
                at = bench.offset();
                next = bench.now + MS.saturating_mul(50);
                bench.read(500);
            }
            let mut turns = 0;
            while bench.rcv.next_timeout(&bench.config).is_some_and(|due| due <= bench.now) {
                bench.timeout();
                turns += 1;
                assert!(turns < 5, "{plan:?}: the timer stands still");
            }
            acked.extend(bench.drain().into_iter().map(|(_, numbers)| (bench.now, numbers.ack)));
            let woken = bench.rcv.next_timeout(&bench.config).unwrap_or(next).min(next);
            // A policy that asks for every nanosecond gets it; the test takes larger steps.
            bench.now = woken.max(bench.now + MS);
        }
        let last = acked.last().expect("something was acknowledged");
        assert!(end.since(last.0) <= Duration::from_millis(250), "{plan:?}: {last:?}");
        assert!(acked.len() <= 200, "{plan:?}: {} ACKs for 100 segments", acked.len());
    }
}

#[test]
fn a_policy_is_swapped_on_a_live_connection() {
    let mut bench = Bench::scripted(SoftObligations::ALL);
    bench.answer(AckPlan::Withhold { until: bench.now + MS });
    bench.arrive(0, 100);
    let make: Box<NewAckPolicy> = Box::new(|init: &AckInit| -> Box<dyn AckPolicy> {
        assert_eq!((init.rmss, init.handshake_rtt), (536, Some(Duration::from_millis(10))));
        Box::new(crate::policy::builtin::DelayedAck::default())
    });
    bench.rcv.swap_policy(ctx!(bench), &bench.config, &*make);
    assert_eq!(bench.rcv.policy().unwrap().name(), "delayed");
    assert_eq!(bench.reasons(), [OBLIGED], "what the old one held");
    assert_eq!(bench.rcv.next_timeout(&bench.config), None, "its timer is void");
    bench.arrive(100, 200);
    assert_eq!(bench.rcv.next_timeout(&bench.config), Some(bench.now + MS.saturating_mul(40)));
}

#[test]
fn a_policy_chosen_before_the_handshake_stays() {
    let config = config();
    let mut observe = Observe::for_test();
    let mut rcv = Receiver::new(&config);
    let mut ctx = Ctx {
        now: Instant::ZERO,
        id: crate::ConnId::for_test(0, 0),
        host: &host_for_test(),
        observe: &mut observe,
    };
    assert!(rcv.policy().is_none());
    let script = Arc::new(Mutex::new(Script::default()));
    let make: Box<NewAckPolicy> = Box::new(move |_: &AckInit| -> Box<dyn AckPolicy> {
        Box::new(Scripted { script: script.clone(), waives: SoftObligations::NONE })
    });
    rcv.swap_policy(&mut ctx, &config, &*make);
    rcv.open(&mut ctx, &config, &params());
    assert_eq!(rcv.policy().unwrap().name(), "scripted");
}

#[test]
fn the_peers_segment_size_is_what_it_sends() {
    let size = |segments: &[(u32, u32)]| {
        let mut bench = Bench::scripted(SoftObligations::NONE);
        let mut at = 0;
        for &(len, count) in segments {
            bench.arrive_with(at, at + len, false, count);
            at += len;
        }
        let mut info = info();
        bench.rcv.info(&mut info);
        info.rcv_mss
    };
    assert_eq!(size(&[]), 536);
    assert_eq!(size(&[(10, 1), (100, 1)]), 536, "small segments tell nothing");
    assert_eq!(size(&[(700, 1)]), 700);
    assert_eq!(size(&[(1_000, 1), (600, 1)]), 1_000);
    assert_eq!(size(&[(7_500, 10)]), 750, "a super-packet of ten");
    assert_eq!(size(&[(5_000, 1)]), RMSS, "a merged one that does not say so");
}

#[test]
fn ack_sent_tells_cause_and_advance() {
    use crate::policy::ack::AckCause;
    let mut bench = Bench::scripted(SoftObligations::NONE);
    bench.answer(AckPlan::NOW);
    bench.arrive(0, 100);
    bench.drain();
    bench.arrive(100, 300);
    let numbers = bench.rcv.ack_numbers(bench.now, &bench.config, super::AckRoom { options: 0, bare: false });
    bench.rcv.ack_sent(ctx!(bench), &bench.config, false, SendReason::NewData, &numbers);
    bench.arrive(400, 500);
    bench.drain();
    let sent: Vec<_> =
        bench.script.lock().unwrap().sent.iter().map(|sent| (sent.cause, sent.advance)).collect();
    assert_eq!(sent, [(AckCause::Plan, 100), (AckCause::Piggyback, 200), (AckCause::Obligation, 0)]);
    assert_eq!(bench.rcv.acks_out, 2);
}

#[test]
fn the_receive_window_grows_with_what_is_read() {
    let tuned =
        ConnConfig { recv_buffer: 1 << 20, initial_recv_window: Some(20_000), ..ConnConfig::default() };
    let mut bench = Bench::delayed(tuned, OpenParams { wscale: 5, ..params() });
    let mut at = 0;
    let mut windows = vec![];
    // The peer uses the whole window in each round trip of 10 ms.
    for _ in 0..8 {
        let window = bench.rcv.window();
        windows.push(window);
        for _ in 0..window / 1_000 {
            bench.arrive(at, at + 1_000);
            at += 1_000;
            bench.drain();
            bench.read(1_000);
        }
        bench.drain();
        bench.advance(Duration::from_millis(10));
    }
    assert!(windows.windows(2).all(|pair| pair[1] >= 2 * pair[0] || pair[1] > 1_000_000), "{windows:?}");
    assert!(bench.buffer_memory() <= 4_096, "memory follows what waits, not the window");
}

fn info() -> Info {
    let nowhere = "192.0.2.1:1".parse().unwrap();
    Info::empty(crate::State::Established, nowhere, nowhere)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A segment near RCV.NXT: signed distance of its start, length, wire segments.
    Arrive(i32, u16, u32),
    /// A segment anywhere.
    Wild(u32, u16),
    Read(u16),
    Drain,
    Wait(u8),
    Trim,
    /// The application gives the buffer another limit.
    Resize(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (-3_000i32..6_000, 0u16..3_000, 1u32..4).prop_map(|(at, len, n)| Step::Arrive(at, len, n)),
        3 => (0u16..3_000, 1u32..4).prop_map(|(len, n)| Step::Arrive(0, len, n)),
        1 => (any::<u32>(), any::<u16>()).prop_map(|(at, len)| Step::Wild(at, len)),
        3 => (0u16..5_000).prop_map(Step::Read),
        3 => Just(Step::Drain),
        1 => any::<u8>().prop_map(Step::Wait),
        1 => Just(Step::Trim),
        1 => (500u32..60_000).prop_map(Step::Resize),
    ];
    proptest::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(512)))]

    /// Whatever arrives in whatever order, overlapping and repeated: the application reads exactly
    /// the stream, a model of single bytes agrees with what was taken, the edge never moves back,
    /// and memory is bounded, also while the limit of the buffer changes.
    #[test]
    fn the_stream_is_delivered_exactly(
        steps in steps(),
        buffer in 500u32..30_000,
        initial in proptest::option::of(500u32..30_000),
        ranges in 1u16..8,
        sack: bool,
        wscale in 0u8..5,
        irs: u32,
        fin_at in 0u32..40_000,
    ) {
        let config = ConnConfig {
            recv_buffer: buffer,
            initial_recv_window: initial,
            max_out_of_order_ranges: ranges,
            ..ConnConfig::default()
        };
        let mut bench = Bench::delayed(
            config,
            OpenParams { irs: SeqNum(irs), sack, wscale, ..params() },
        );
        let start = SeqNum(irs) + 1;
        // Which bytes of the stream the receiver must have, and how much was read.
        let mut held = vec![false; 200_000];
        let (mut read, mut fins, mut largest) = (0u32, 0u32, buffer);
        for step in steps {
            let edge = bench.rcv.window.edge();
            let rcv_nxt = bench.rcv.rcv_nxt();
            match step {
                Step::Arrive(..) | Step::Wild(..) => {
                    let (seq, mut len, segments) = match step {
                        Step::Arrive(at, len, n) => (SeqNum(rcv_nxt.0.wrapping_add_signed(at)), u32::from(len), n),
                        Step::Wild(at, len) => (SeqNum(at), u32::from(len), 1),
                        _ => unreachable!(),
                    };
                    // The stream ends at `fin_at`; nothing is sent from before its start.
                    let offset = seq.0.wrapping_sub(start.0) as i32;
                    if offset < 0 || offset as u32 > fin_at {
                        if !bench.acceptable(seq, len) {
                            bench.rcv.on_unacceptable(ctx!(bench), &bench.config, seq, len);
                            prop_assert_eq!(bench.rcv.rcv_nxt(), rcv_nxt);
                        }
                        continue;
                    }
                    let offset = offset as u32;
                    let fin = offset + len >= fin_at;
                    len = len.min(fin_at - offset);
                    let data = stream(offset, offset + len);
                    if !bench.acceptable(seq, len + u32::from(fin)) {
                        bench.rcv.on_unacceptable(ctx!(bench), &bench.config, seq, len);
                        prop_assert_eq!(bench.rcv.rcv_nxt(), rcv_nxt);
                        prop_assert!(bench.rcv.ack_wanted(0).is_some(), "an ACK is owed");
                        continue;
                    }
                    let drops = bench.observe.counters.tcp_ofo_drop;
                    let (first, second) = data.split_at(data.len() / 3);
                    let received = bench.rcv.on_data(ctx!(bench), &bench.config, &Incoming {
                        seq,
                        payload: Payload::new([first, second, &[]]),
                        fin,
                        psh: false,
                        urg: false,
                        ce: false, cwr: false,
                        segments,
                        ts_rtt: None,
                        srtt: None,
                    });
                    if bench.observe.counters.tcp_ofo_drop == drops {
                        let last = (offset + len).min(edge.distance_from(start));
                        for i in offset..last {
                            held[i as usize] = true;
                        }
                    }
                    fins += u32::from(received.fin);
                    let moved = bench.rcv.rcv_nxt() != rcv_nxt;
                    prop_assert_eq!(received.readable || received.fin, moved);
                }
                Step::Read(n) => {
                    let got = bench.read(usize::from(n));
                    prop_assert_eq!(&got, &stream(read, read + got.len() as u32));
                    read += got.len() as u32;
                }
                Step::Drain => {
                    for (_, numbers) in bench.drain() {
                        prop_assert_eq!(numbers.ack, bench.rcv.rcv_nxt());
                        let shown = numbers.ack + (u32::from(numbers.window) << wscale);
                        prop_assert!(edge.saturating_distance_from(shown) < 1 << wscale || fins > 0);
                        for (from, to) in numbers.sack.as_slice() {
                            prop_assert!(from.lt(*to));
                            for i in from.distance_from(start)..to.distance_from(start) {
                                prop_assert!(held[i as usize], "SACK of a byte that never came");
                            }
                        }
                    }
                }
                Step::Wait(ms) => {
                    bench.advance(Duration::from_millis(u64::from(ms)));
                    while bench.rcv.next_timeout(&bench.config).is_some_and(|due| due <= bench.now) {
                        bench.timeout();
                        bench.drain();
                    }
                }
                Step::Trim => {
                    bench.rcv.trim();
                    prop_assert!(!bench.rcv.has_spare_memory(), "or its timer would never rest");
                    let waits = bench.rcv.reassembly.out_of_order_bytes() as usize;
                    let span = bench.rcv.readable() + 4 * waits;
                    prop_assert!(bench.buffer_memory() <= 256.max(4 * span), "{:?}", bench.rcv.reassembly);
                    // A range and up to two pieces each, and twice what the pieces hold.
                    let apart = bench.allocated() - bench.buffer_memory();
                    prop_assert!(apart <= 2 * waits + usize::from(ranges) * 200 + 512, "{apart} bytes apart");
                }
                Step::Resize(limit) => {
                    bench.config.recv_buffer = limit;
                    bench.rcv.on_buffer_change(&bench.config);
                    largest = largest.max(limit);
                }
            }
            // The model: RCV.NXT stands at the first byte that is not there, past the FIN once it
            // is reached.
            let expected = held.iter().position(|held| !held).unwrap_or(held.len()) as u32;
            prop_assert_eq!(bench.rcv.rcv_nxt(), start + expected + fins);
            prop_assert_eq!(bench.rcv.readable() as u32, expected - read);
            prop_assert!(bench.rcv.window.edge().ge(edge), "the edge never moves back");
            let (buf, waiting) = bench.rcv.reassembly.parts();
            prop_assert!(buf.len() + buf.ahead() <= largest as usize);
            prop_assert!(fins <= 1);
            if let Some(waiting) = waiting {
                prop_assert!(waiting.iter().count() <= usize::from(ranges));
            }
        }
    }
}
