//! The algorithm, event by event.
//!
//! `vectors.txt` are the results of an independent model of the algorithm, `derived.txt` those of
//! the steps by hand. In both an event is a line: `S(time, seq, len[, True])` a segment with data
//! [and FIN], `G(time, seq, len, segments)` a super-packet, `O(time)` data of this side's own with
//! an ACK, `T(time)` a look at the timer; then what the policy decides, and its state after that.
//! Times are microseconds. The reader is instant, so that each ACK shows the whole buffer.

mod reader;
mod rules;
mod vectors;

use super::{A3, A3Params, Adaptive, CSA3, Csa3Params, Decision, Why};
use ackline_tcp_core::policy::Params;
use ackline_tcp_core::policy::ack::{
    AckCause, AckInit, AckPlan, AckPolicy, AckSent, DataArrival, DataClass, RecvView, WindowHint,
};
use ackline_tcp_core::{Duration, Instant, SeqNum};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// The stream's first byte; sequence numbers wrap in the longer vectors.
const START: SeqNum = SeqNum(u32::MAX - 30_000);

/// A receiver with an instant reader, as far as the policy sees it.
pub(super) struct Host {
    pub(super) policy: Adaptive,
    pub(super) view: RecvView,
    /// Data that waits past a hole, as offsets from the start.
    ahead: Vec<(u32, u32)>,
    timer: Option<Instant>,
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Host {
    /// A receiver of `buffer` bytes whose peer sends segments of `mss`. `name` and `params` say
    /// what policy it has.
    pub(super) fn new(name: &str, params: &str, buffer: u32, mss: u32, rtt: u64) -> Self {
        let entry = if name == "a3" { A3 } else { CSA3 };
        let params: Params = params.parse().unwrap();
        // The table's maker is what users get; it has to agree with what is tested here.
        let mut init = AckInit::new(Instant::ZERO, mss, Some(us(rtt)));
        init.hold_limit = Duration::from_millis(500);
        let made = (entry.make)(&params).unwrap()(&init);
        let settings = if name == "a3" { A3Params::default().0 } else { Csa3Params::default().0 };
        let policy = Adaptive::new(entry.name, settings.with(&params).unwrap(), &init);
        assert_eq!(format!("{made:?}"), format!("{policy:?}"));
        let mut view = RecvView::new(Instant::ZERO, START, buffer, mss);
        view.handshake_rtt = Some(us(rtt));
        Self { policy, view, ahead: Vec::new(), timer: None }
    }

    fn at(&mut self, micros: u64) {
        self.view.now = Instant::from_micros(micros);
    }

    /// `segments` wire segments with `[seq, seq + len)` arrive as one.
    pub(super) fn segment(&mut self, at: u64, seq: u32, len: u32, fin: bool, segments: u32) -> String {
        self.at(at);
        let (start, end) = (seq, seq + len);
        let next = self.view.rcv_nxt.distance_from(START);
        let class = if end <= next {
            DataClass::Duplicate
        } else if start > next {
            self.ahead.push((start, end));
            self.ahead.sort_unstable();
            DataClass::OutOfOrder
        } else if self.ahead.is_empty() {
            DataClass::New
        } else {
            DataClass::Hole
        };
        if matches!(class, DataClass::New | DataClass::Hole) {
            let mut next = end;
            self.ahead.retain(|&(from, to)| {
                let joins = from <= next;
                next = if joins { next.max(to) } else { next };
                !joins
            });
            self.view.rcv_nxt = START + next + u32::from(fin);
        }
        self.view.oldest_unacked = self.view.oldest_unacked.or(Some(self.view.now));
        let mut data = DataArrival::new(START + start, START + end, class);
        (data.fin, data.segments) = (fin, segments);

        let decision = self.policy.clone().decide(&self.view, &data);
        let plan = self.policy.on_data(&self.view, &data);
        let text = match decision {
            Decision::Delay(due) => format!("DELAY dl={}", due.as_micros()),
            Decision::Hold(until) => format!("HOLD sp={}", until.as_micros()),
            Decision::Ack(why) => {
                assert_eq!(plan, AckPlan::Now { window: WindowHint::AllFree });
                format!("ACK({})", label(why))
            }
        };
        let text = match self.follow(plan, AckCause::Plan) {
            Some(until) if decision == Decision::Ack(Why::SampleStart) => {
                format!("{text} sp={}", until.as_micros())
            }
            _ => text,
        };
        format!("{text}{}", self.state())
    }

    /// Data of this side's own leaves, with an ACK.
    fn own_data(&mut self, at: u64) -> String {
        self.at(at);
        self.acknowledge(AckCause::Piggyback);
        format!("SENT{}", self.state())
    }

    /// A look at the timer.
    pub(super) fn timer(&mut self, at: u64) -> String {
        self.at(at);
        let text = match self.timer {
            Some(due) if due <= self.view.now => {
                self.timer = None;
                let sampling = self.policy.sampling.is_some();
                let plan = self.policy.on_timeout(&self.view);
                self.follow(plan, AckCause::Timer);
                match plan {
                    AckPlan::Now { .. } if sampling => "ACK(sample-end)",
                    AckPlan::Now { .. } => "ACK(timer)",
                    AckPlan::Keep => "DISCARD",
                    AckPlan::By(_) | AckPlan::Withhold { .. } => "LATER",
                }
            }
            _ => "none",
        };
        format!("{text}{}", self.state())
    }

    /// Does what the core does with a plan. Gives the instant that the timer was set to.
    fn follow(&mut self, plan: AckPlan, cause: AckCause) -> Option<Instant> {
        match plan {
            AckPlan::Keep => None,
            AckPlan::Now { .. } => {
                self.acknowledge(cause);
                self.timer
            }
            AckPlan::By(at) | AckPlan::Withhold { until: at } => {
                self.timer = Some(at);
                self.timer
            }
        }
    }

    fn acknowledge(&mut self, cause: AckCause) {
        let advance = self.view.unacked();
        self.view.highest_ack = self.view.rcv_nxt;
        self.view.edge = self.view.rcv_nxt + self.view.buffer;
        self.view.oldest_unacked = None;
        self.timer = None;
        let plan = self.policy.on_ack_sent(&self.view, &AckSent::new(cause, advance));
        assert!(matches!(plan, AckPlan::Keep | AckPlan::Withhold { .. }), "{plan:?}");
        self.follow(plan, cause);
    }

    fn state(&self) -> String {
        let policy = &self.policy;
        let or_none = |value: Option<u64>| value.map_or("None".to_string(), |value| value.to_string());
        let mut text = format!(
            " muds={} thr={} isp_t={} cnt={} ipat={}",
            or_none(policy.muds.map(u64::from)),
            policy.threshold(&self.view),
            policy.interval.length(),
            policy.interval.left(),
            or_none(policy.gaps.mean().map(Duration::as_micros)),
        );
        if let Some(episode) = policy.congestion.episode() {
            text += &format!(" rss={} target={}", episode.r_ss, episode.target);
        }
        text
    }
}

fn label(why: Why) -> &'static str {
    match why {
        Why::Quick => "quick",
        Why::Threshold => "thr",
        Why::Timer => "timer",
        Why::SampleStart => "sample-start",
        Why::SampleEnd => "sample-end",
        Why::SampleFull => "sample-full",
        Why::OutOfOrder => "OOO",
        Why::Hole => "HOLE",
        Why::Duplicate => "DUP",
        Why::Fin => "FIN",
        Why::Urgent => "URG",
        Why::Probe => "PROBE",
        Why::Gain | Why::Read => "read",
    }
}
