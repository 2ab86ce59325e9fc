//! Vectors that an independent model computed from the draft: every event with what is left after
//! it.

use super::super::*;
use super::SMSS;
use ackline_tcp_core::policy::cc::SsthreshRule;
use ackline_tcp_core::seq::SeqNum;
use ackline_tcp_core::{Duration, Instant};
use probe_bw::AckPhase;
use serde_json::{Value, json};
use std::string::{String, ToString};
use std::vec::Vec;

const VECTORS: &str = include_str!("vectors.jsonl");

/// A flow as one vector drives it.
struct Flow {
    bbr: Bbr,
    view: FlowView,
}

fn int(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn int32(value: &Value) -> u32 {
    u32::try_from(int(value)).unwrap()
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_else(|| panic!("{value} is not a flag"))
}

impl Flow {
    fn new(init: &Value) -> Self {
        assert_eq!(int32(&init["smss"]), SMSS);
        let mut cc = CcInit::new(Instant::ZERO, SMSS, Window::from_bytes(int(&init["iw"])));
        let srtt = int(&init["srtt"]);
        cc.srtt = (srtt > 0).then(|| Duration::from_nanos(srtt));
        // The model draws the wait whole.
        let wait = Duration::from_nanos(int(&init["rnd"][1]) - 2_000_000_000);
        let mut draws = Draws::new(0);
        draws.fixed = Some((int(&init["rnd"][0]), wait));
        let bbr = Bbr::with_draws(&cc, BbrParams::default(), draws);
        let mut view = FlowView::new(Instant::ZERO, SMSS);
        view.has_sack = flag(&init["sack"]);
        Self { bbr, view }
    }

    fn tell(&mut self, event: &Value) {
        self.view.now = Instant::from_nanos(int(&event["t"]));
        if let Some(delivered) = event["delivered"].as_u64() {
            self.view.delivered = delivered;
        }
        if let Some(pipe) = event["inflight"].as_u64() {
            self.view.pipe = u32::try_from(pipe).unwrap();
        }
        let kind = event["e"].as_str().unwrap();
        match kind {
            "ack" => self.ack(event),
            "lost" => {
                let mut lost =
                    LostRecord::new(SeqNum(int32(&event["seq"])), int32(&event["size"]), int32(&event["tx"]));
                lost.lost_since_sent = int32(&event["lost"]);
                lost.app_limited = flag(&event["app"]);
                self.bbr.on_lost(&self.view, &lost);
            }
            "episode" => {
                self.view.phase = Phase::Recovery;
                self.bbr.checkpoint(&self.view);
                self.bbr.on_congestion(&self.view, &CongestionEvent::Loss { prior_pipe: self.view.pipe });
            }
            "exit" => {
                self.view.phase = Phase::Open;
                self.bbr.on_recovery_exit(&self.view);
            }
            "undo" => {
                self.view.phase = Phase::Open;
                self.bbr.undo(&self.view, &Undo::All);
            }
            "rto" => {
                self.view.phase = Phase::Loss;
                self.bbr.checkpoint(&self.view);
                let event = CongestionEvent::Timeout {
                    flight_size: self.view.pipe,
                    first: true,
                    window: Window::MAX,
                    ssthresh: SsthreshRule::ByCc,
                };
                self.bbr.on_congestion(&self.view, &event);
            }
            "transmit" => {
                self.view.app_limited = flag(&event["app"]);
                let mut sent = SentSegment::new(self.view.snd_nxt, SMSS, false);
                sent.prior_pipe = self.view.pipe;
                self.bbr.on_sent(&self.view, &sent);
            }
            "ecn" => {
                self.view.app_limited = flag(&event["app"]);
                self.view.pipe = int32(&event["tx"]);
                self.bbr.on_congestion(&self.view, &CongestionEvent::Ecn);
            }
            other => panic!("unknown event {other:?}"),
        }
    }

    fn ack(&mut self, event: &Value) {
        self.view.cwnd_limited = flag(&event["limited"]);
        let mut seen = AckSample::new(int32(&event["acked"]), 1);
        seen.prior_pipe = int32(&event["prior"]);
        seen.rtt = Some(Duration::from_nanos(int(&event["rtt"])));
        let rs = &event["rs"];
        let mut rate = RateSample::new(int(&rs[0]), Duration::from_nanos(int(&rs[1])), int(&rs[2]));
        (rate.tx_in_flight, rate.lost) = (int32(&rs[3]), int32(&rs[4]));
        rate.app_limited = flag(&rs[5]);
        seen.rate = Some(rate);
        assert_eq!(self.bbr.on_ack(&self.view, &seen), Reaction::None);
    }

    /// Every variable that the vectors hold, under their names.
    fn shown(&self) -> Value {
        let Bbr { state, model, rounds, aggregation, full_pipe, cycle, control, .. } = &self.bbr;
        let bound = |value| if value == UNSET { Value::Null } else { json!(value) };
        let state = match state {
            State::ProbeRtt => "ProbeRTT".to_string(),
            state => std::format!("{state:?}"),
        };
        let ack_phase = match cycle.ack_phase {
            AckPhase::Init => "Init",
            AckPhase::Refilling => "Refilling",
            AckPhase::Starting => "Starting",
            AckPhase::Feedback => "Feedback",
            AckPhase::Stopping => "Stopping",
        };
        json!({
            "state": state,
            "rate": control.pacing_rate,
            "cwnd": control.cwnd.bytes(),
            "quantum": control.quantum,
            "max_bw": model.max_bw.get(),
            "bw": model.bw,
            "min_rtt": model.min_rtt.get().map(Duration::as_nanos),
            "lt": bound(model.inflight_longterm),
            "st": bound(model.inflight_shortterm),
            "bw_st": bound(model.bw_shortterm),
            "extra": aggregation.extra_acked(),
            "rounds": rounds.count,
            "ack_phase": ack_phase,
            "full": full_pipe.reached,
        })
    }
}

/// The events of each vector, by name.
fn vectors() -> Vec<(String, Flow, Vec<Value>)> {
    let mut all: Vec<(String, Flow, Vec<Value>)> = Vec::new();
    for line in VECTORS.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        match (value.get("init"), all.last_mut()) {
            (Some(init), _) => {
                let name = value["name"].as_str().unwrap().to_string();
                all.push((name, Flow::new(init), Vec::new()));
            }
            (None, Some((_, _, events))) => events.push(value),
            (None, None) => panic!("an event before any flow"),
        }
    }
    all
}

#[test]
fn every_variable_follows_the_vectors() {
    let all = vectors();
    assert_eq!((all.len(), all.iter().map(|(_, _, events)| events.len()).sum::<usize>()), (26, 519));
    let mut wrong = Vec::new();
    for (name, mut flow, events) in all {
        for (i, event) in events.iter().enumerate() {
            flow.tell(event);
            let (shown, wanted) = (flow.shown(), &event["out"]);
            if shown != *wanted {
                wrong.push(std::format!("{name}, event {i}: {event}\n  is     {shown}\n  wanted {wanted}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
