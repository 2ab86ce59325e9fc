//! A sender on a test bench: the peer is the test.

use crate::config::EndpointConfig;
use crate::config::{ConnConfig, LossDetection, PathMtuProbing};
use crate::ctx::{Observe, host_for_test};
use crate::events::WakeReason;
use crate::info::{Blocked, Info};
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::policy::cc::{
    AckSample, CongestionControl, CongestionEvent, FlowView, LostRecord, Reaction, Restart, SendDecision,
    SentSegment, Undo,
};
use crate::seq::SeqNum;
use crate::snd::ecn::accecn::AccEcnFields;
use crate::snd::{AckOutcome, AckSegment, EarlyData, OpenParams, SendLimits, Sender};
use crate::time::{Duration, Instant};
use crate::units::Window;
use crate::wire::SackBlocks;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

/// Close to the wrap, so that every test crosses it.
pub(super) const ISS: SeqNum = SeqNum(u32::MAX - 5_000);
pub(super) const SMSS: u32 = 1_000;

pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A packet that left: offset in the stream, payload, why.
pub(super) type Left = (u32, u32, SendReason);

/// A congestion control that does what the test says, and records what it hears.
#[derive(Debug)]
pub(super) struct Scripted(pub(super) Arc<Mutex<Script>>);

#[derive(Debug)]
pub(super) struct Script {
    pub(super) decision: SendDecision,
    pub(super) events: Vec<CongestionEvent>,
    pub(super) acks: Vec<(FlowView, AckSample)>,
    pub(super) sent: Vec<SentSegment>,
    pub(super) lost: Vec<LostRecord>,
    pub(super) restarts: Vec<Restart>,
    pub(super) exits: u32,
    pub(super) checkpoints: u32,
    pub(super) undos: Vec<Undo>,
    /// How often the decision was asked for.
    pub(super) asked: u32,
    /// The answer to each ACK.
    pub(super) reaction: Reaction,
}

impl CongestionControl for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn decision(&self) -> SendDecision {
        let mut script = self.0.lock().unwrap();
        script.asked += 1;
        script.decision
    }
    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        let mut script = self.0.lock().unwrap();
        script.acks.push((*view, *ack));
        script.reaction
    }
    fn on_sent(&mut self, _: &FlowView, sent: &SentSegment) {
        self.0.lock().unwrap().sent.push(*sent);
    }
    fn on_lost(&mut self, _: &FlowView, lost: &LostRecord) {
        self.0.lock().unwrap().lost.push(*lost);
    }
    fn on_congestion(&mut self, _: &FlowView, event: &CongestionEvent) {
        self.0.lock().unwrap().events.push(*event);
    }
    fn on_recovery_exit(&mut self, _: &FlowView) {
        self.0.lock().unwrap().exits += 1;
    }
    fn on_restart(&mut self, _: &FlowView, restart: &Restart) {
        self.0.lock().unwrap().restarts.push(*restart);
    }
    fn checkpoint(&mut self, _: &FlowView) {
        self.0.lock().unwrap().checkpoints += 1;
    }
    fn undo(&mut self, _: &FlowView, undo: &Undo) {
        self.0.lock().unwrap().undos.push(*undo);
    }
}

pub(super) struct Bench {
    pub(super) snd: Sender,
    pub(super) config: ConnConfig,
    pub(super) observe: Observe,
    pub(super) now: Instant,
    pub(super) wnd: u32,
    pub(super) max_payload: u32,
    pub(super) host: EndpointConfig,
    pub(super) departure_tick: Duration,
    pub(super) script: Arc<Mutex<Script>>,
    pub(super) serial: u64,
}

macro_rules! ctx {
    ($bench:expr) => {
        crate::ctx::Ctx {
            now: $bench.now,
            id: crate::ConnId::for_test(0, 0),
            host: &$bench.host,
            observe: &mut $bench.observe,
        }
    };
}
pub(super) use ctx;

/// What a bench is opened with. By default with the recovery of RFC 6675 and RFC 3042 alone, and a
/// send buffer that can be filled at once.
pub(super) struct Setup {
    pub(super) config: ConnConfig,
    /// Congestion window in segments; `None`: the built-in NewReno.
    pub(super) cwnd: Option<u32>,
    pub(super) wnd: u32,
    pub(super) sack: bool,
    pub(super) rtt: Option<Duration>,
}

impl Default for Setup {
    fn default() -> Self {
        let config = ConnConfig {
            nagle: crate::config::Nagle::Off,
            loss: LossDetection::DupAck,
            tlp: false,
            prr: false,
            undo: false,
            min_send_buffer: None,
            path_mtu_probing: PathMtuProbing::Off,
            ..ConnConfig::default()
        };
        Self { config, cwnd: Some(10), wnd: 1 << 20, sack: true, rtt: Some(ms(100)) }
    }
}

impl Setup {
    /// Losses are found by time, and nothing else is on.
    pub(super) fn rack() -> Self {
        let mut setup = Self::default();
        setup.config.loss = LossDetection::Rack;
        setup
    }

    pub(super) fn open(self) -> Bench {
        let script = Arc::new(Mutex::new(Script {
            decision: SendDecision::window(
                Window::from_bytes(u64::from(self.cwnd.unwrap_or(0) * SMSS)),
                Window::MAX,
            ),
            events: Vec::new(),
            acks: Vec::new(),
            sent: Vec::new(),
            lost: Vec::new(),
            restarts: Vec::new(),
            exits: 0,
            checkpoints: 0,
            undos: Vec::new(),
            asked: 0,
            reaction: Reaction::None,
        }));
        let mut config = self.config;
        if self.cwnd.is_some() {
            let script = script.clone();
            config.policies.cc = Arc::new(move |_| Box::new(Scripted(script.clone())));
        }
        let mut bench = Bench {
            snd: Sender::new(&config, ISS),
            config,
            observe: Observe::for_test(),
            now: Instant::from_secs(1),
            wnd: self.wnd,
            max_payload: SMSS,
            host: host_for_test(),
            departure_tick: Duration::from_nanos(1),
            script,
            serial: 0,
        };
        let ctx = ctx!(bench);
        bench.snd.open(
            &ctx,
            &bench.config,
            &OpenParams {
                smss: SMSS,
                least_smss: 1,
                snd_wnd: self.wnd,
                wl1: SeqNum(1),
                sack: self.sack,
                timestamps: false,
                handshake_rtt: self.rtt,
                syn_timed_out: false,
                syn_lost: false,
                ecn: None,
                path: None,
                early: EarlyData::default(),
            },
        );
        bench
    }
}

impl Bench {
    pub(super) fn seq(offset: u32) -> SeqNum {
        ISS + 1 + offset
    }

    pub(super) fn offset(seq: SeqNum) -> u32 {
        seq.distance_from(ISS + 1)
    }

    pub(super) fn set_cwnd(&mut self, segments: u32) {
        self.decide(|decision| decision.window = Window::from_bytes(u64::from(segments * SMSS)));
    }

    /// Congestion control decides otherwise, as after new values of its parameters.
    pub(super) fn decide(&mut self, change: impl FnOnce(&mut SendDecision)) {
        self.snd.cc();
        change(&mut self.script.lock().unwrap().decision);
    }

    /// The path's segment size is `smss` from here on.
    pub(super) fn set_smss(&mut self, smss: u32) {
        let ctx = ctx!(self);
        match self.snd.in_flight() {
            Some((snd, flight)) => flight.set_smss(snd, &ctx, &self.config, smss),
            None => self.snd.stream.set_smss(smss),
        }
    }

    /// The device and the peer permit segments of `full` bytes from here on.
    pub(super) fn set_full_size(&mut self, full: u32) {
        let mut ctx = ctx!(self);
        self.snd.set_full_size(&mut ctx, &self.config, full);
    }

    pub(super) fn events(&self) -> Vec<CongestionEvent> {
        self.script.lock().unwrap().events.clone()
    }

    pub(super) fn write(&mut self, len: u32) {
        let data: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        assert_eq!(self.snd.write(&self.config, &data), len as usize, "the send buffer takes it");
    }

    pub(super) fn next(&mut self) -> Option<Plan> {
        let max_payload = self.max_payload.max(self.snd.smss());
        let limits = SendLimits { max_payload, max_run: max_payload, departure_tick: self.departure_tick };
        self.snd.next(self.now, &self.config, &limits)
    }

    pub(super) fn sent(&mut self, out: &Plan) {
        let mut ctx = ctx!(self);
        self.snd.sent(&mut ctx, &self.config, out);
    }

    /// One packet leaves.
    pub(super) fn step(&mut self) -> Option<Left> {
        let out = self.next()?;
        assert_eq!(self.next(), Some(out), "asking changes nothing");
        self.sent(&out);
        Some((Self::offset(out.seq), out.len, out.reason))
    }

    /// Everything leaves that may.
    pub(super) fn drain(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        while let Some(packet) = self.step() {
            left.push(packet);
            assert!(left.len() < 10_000, "the sender does not stop");
        }
        left
    }

    /// Offsets of what leaves.
    pub(super) fn offsets(&mut self) -> Vec<u32> {
        self.drain().iter().map(|packet| packet.0).collect()
    }

    pub(super) fn segment(&self, ack: u32, blocks: &[(u32, u32)]) -> AckSegment {
        AckSegment {
            seq: SeqNum(1),
            ack: Self::seq(ack),
            rcv_nxt: SeqNum(1),
            window: self.wnd,
            sack: blocks.iter().map(|&(a, b)| (Self::seq(a), Self::seq(b))).collect::<SackBlocks>(),
            tsecr: None,
            ts_now: 0,
            ece: false,
            accecn: AccEcnFields::default(),
            payload_len: 0,
            fin: false,
        }
    }

    pub(super) fn take(&mut self, segment: &AckSegment) -> AckOutcome {
        let mut ctx = ctx!(self);
        self.snd.on_ack(&mut ctx, &self.config, segment)
    }

    /// The acknowledgment number is acceptable (RFC 5961, section 5.2).
    pub(super) fn accepts(&self, ack: SeqNum) -> bool {
        ack.ge(self.snd.oldest_ack()) && ack.le(self.snd.snd_nxt())
    }

    pub(super) fn ack(&mut self, ack: u32) {
        self.sack(ack, &[]);
    }

    pub(super) fn sack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let segment = self.segment(ack, blocks);
        assert!(self.accepts(segment.ack));
        self.take(&segment);
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Time passes up to the next deadline, which is served.
    pub(super) fn fire(&mut self) -> WakeReason {
        let (at, reason) = self.snd.next_timeout().expect("a timer runs");
        // A driver may be late.
        self.now = self.now.max(at);
        let mut ctx = ctx!(self);
        self.snd.on_timeout(&mut ctx, &self.config);
        reason
    }

    pub(super) fn timer(&self) -> Option<(Duration, WakeReason)> {
        self.snd.next_timeout().map(|(at, reason)| (at.since(self.now), reason))
    }

    pub(super) fn info(&self) -> Info {
        let mut info = blank_info();
        info.now = self.now;
        self.snd.info(&self.config, &mut info);
        info
    }

    pub(super) fn blocked(&self) -> Blocked {
        self.info().blocked
    }
}

fn blank_info() -> Info {
    let nowhere = "192.0.2.1:1".parse().unwrap();
    Info::empty(crate::State::Established, nowhere, nowhere)
}
