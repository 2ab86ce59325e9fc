//! Random peers against every response: nothing panics, one segment per expiry, nothing beyond what
//! the windows allow, and in the end everything arrives.

use crate::bench::{Bench, SMSS, Setup, ms};
use ackline_tcp_core::ConnConfig;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::rto::RtoPhase;
use proptest::collection::vec;
use proptest::prelude::*;

const RESPONSES: &[&str] = &[
    "dclor",
    "dclor:profile=paper",
    "dclor:stale_policy=revert",
    "dclor:stale_policy=halve,probe_repeat=new,reuse_tlp=on",
    "dclor:stale_policy=decay,sack_reset_on_rto=off,saved_window=flight",
    "dclor:require_sack_seen=on,max_probes=1",
    "linux",
    "linux:frto=off",
    "frto",
    "frto:response=halve",
    "eifel",
    "eifel:restore=full",
    "go-back-n",
    "go-back-n:keep_sack=off",
    "conventional",
];

/// What the peer, the path or the clock does. Positions are parts of 255 of what is outstanding.
#[derive(Clone, Copy, Debug)]
enum Step {
    Expire,
    Ack { part: u8, old: bool, ece: bool },
    Sack { from: u8, to: u8, part: u8 },
    Dsack { at: u8 },
    Window { packets: u8 },
    Write { packets: u8 },
    Pass { ms: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Expire),
        4 => (any::<u8>(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(part, old, ece)| Step::Ack { part, old, ece }),
        4 => (any::<u8>(), any::<u8>(), 0..100_u8).prop_map(|(from, to, part)| Step::Sack { from, to, part }),
        1 => any::<u8>().prop_map(|at| Step::Dsack { at }),
        1 => (0..60_u8).prop_map(|packets| Step::Window { packets }),
        1 => (1..20_u8).prop_map(|packets| Step::Write { packets }),
        2 => any::<u8>().prop_map(|ms| Step::Pass { ms }),
    ]
}

/// A connection, and what the test knows of it.
struct Run {
    bench: Bench,
    /// The window says something about the response only if nothing else holds data back.
    only_window: bool,
    /// Packets that are acknowledged, and that have left.
    acked: u32,
    sent: u32,
    written: u32,
    /// The highest window edge that the peer has shown, in packets.
    edge: u32,
}

impl Run {
    fn new(rto: &'static str, sack: bool, timestamps: bool) -> Self {
        // However often the timer fires in vain, the connection is not given up.
        let tune = |config: &mut ConnConfig| config.user_timeout = None;
        let bench = Setup { rto, sack, timestamps, ecn: true, packets: 30, tune, ..Setup::default() }.open();
        let only_window =
            !rto.starts_with("frto") && !rto.starts_with("linux") && !rto.contains("stale_policy");
        Self { bench, only_window, acked: 0, sent: 20, written: 30, edge: 60 }
    }

    /// What left must have been allowed to.
    fn check(&mut self, left: &[crate::bench::SentSegment]) {
        let info = self.bench.info();
        for segment in left {
            let end = segment.packet + segment.len.div_ceil(SMSS) - 1;
            assert!(end <= self.edge, "{} lies beyond the peer's window: {segment:?}", segment.name);
            self.sent = self.sent.max(end);
        }
        let new_data = left.iter().any(|segment| segment.reason == SendReason::NewData);
        if new_data && self.only_window {
            assert_ne!(self.bench.phase(), RtoPhase::Probe, "new data in Probe: {left:?}");
            let allowed = info.snd_cwnd.max(u64::from(SMSS));
            assert!(u64::from(info.pipe) <= allowed, "pipe {} of {allowed}: {left:?}", info.pipe);
        }
    }

    fn part(&self, part: u8) -> u32 {
        (self.sent - self.acked) * u32::from(part) / 255
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Expire => {
                if self.sent > self.acked {
                    let left = self.bench.expire();
                    assert!(left.len() <= 1, "one segment per expiry: {left:?}");
                    self.check(&left);
                }
            }
            Step::Ack { part, old, ece } => {
                self.acked += self.part(part);
                self.arrive(|ack| if ece { ack.ece() } else { ack }, old);
            }
            Step::Sack { from, to, part } => {
                self.acked += self.part(part / 4);
                let (from, to) = (self.part(from.min(to)), self.part(from.max(to)));
                let (first, last) = (self.acked + from + 2, self.acked + to);
                let fits = last <= self.sent && first <= last;
                self.arrive(|ack| if fits { ack.sack(first, last) } else { ack }, false);
            }
            Step::Dsack { at } => {
                let packet = self.acked * u32::from(at) / 255;
                self.arrive(|ack| if packet > 0 { ack.sack(packet, packet) } else { ack }, false);
            }
            Step::Window { packets } => {
                self.bench.window = Some(u32::from(packets) * SMSS);
                self.arrive(|ack| ack, false);
            }
            Step::Write { packets } => {
                self.bench.write(u32::from(packets));
                self.written += u32::from(packets);
                let left = self.bench.out();
                self.check(&left);
            }
            Step::Pass { ms: time } => self.bench.pass(ms(u64::from(time))),
        }
    }

    /// An ACK arrives; it echoes the first transmission of the packet that it acknowledges if it is
    /// `old`.
    fn arrive(&mut self, with: impl FnOnce(crate::bench::Ack<'_>) -> crate::bench::Ack<'_>, old: bool) {
        let window = self.bench.window.unwrap_or(60 * SMSS) / SMSS;
        self.edge = self.edge.max(self.acked + window);
        let copy = if old && self.acked > 0 { Some(self.bench.tsval(self.acked, 0)) } else { None };
        let ack = with(self.bench.ack(self.acked));
        let ack = if let Some(tsval) = copy { ack.tsecr(tsval) } else { ack };
        let left = ack.arrives_in_full();
        self.check(&left);
    }

    /// The peer has everything that left, and says so; a timer moves on what is stuck.
    fn finish(&mut self) {
        self.bench.window = Some(60 * SMSS);
        self.arrive(|ack| ack, false);
        let mut idle = 0;
        while self.acked < self.written {
            if self.sent > self.acked {
                self.acked = self.sent;
                self.arrive(|ack| ack, false);
                idle = 0;
            } else {
                let wakeup = self.bench.endpoint.poll_timeout().expect("a timer runs");
                self.bench.now = self.bench.now.max(wakeup.at);
                self.bench.endpoint.handle_timeout(self.bench.now);
                let left = self.bench.out();
                self.check(&left);
                idle += 1;
                assert!(idle < 50, "nothing leaves any more: {:?}", self.bench.info());
            }
        }
        assert_eq!(self.bench.phase(), RtoPhase::Open, "nothing is outstanding");
        assert_eq!(self.bench.info().unacked, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_peers_break_nothing(
        rto in prop::sample::select(RESPONSES),
        sack in prop::bool::weighted(0.9),
        timestamps in any::<bool>(),
        steps in vec(step(), 1..60),
    ) {
        let mut run = Run::new(rto, sack, timestamps);
        for step in steps {
            run.take(step);
        }
        run.finish();
    }
}
