//! A congestion control of one's own, in one file: the algorithm, its table entry, the check that
//! it keeps the rules, and a run beside the built-in ones over the same bottleneck, in virtual
//! time.
//!
//! `gentle` watches the queue instead of waiting for it to overflow: once per round trip it
//! compares the bytes it has queued, `window * (1 - min_rtt / rtt)`, with a target, and adds a
//! segment or takes half of the excess.
//!
//! It implements the whole seam, to show it. A control that only grows and shrinks a window needs
//! less: `small_cc`.
//!
//! `cargo run --release --example custom_cc`

use ackline::Registry;
use ackline::core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Phase, Reaction, Restart, SendDecision,
    SsthreshRule, Undo,
};
use ackline::core::policy::spec::{Entry, Key, Keyed, ParamRow, SpecError};
use ackline::core::policy::{NewCongestionControl, Params, conformance};
use ackline::core::{
    AcceptConfig, ConnConfig, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, Rate, RxPacket,
    SeqNum, TxBudget, Window,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

/// Keeps about `queue` segments of its own in the bottleneck's queue.
#[derive(Clone, Debug)]
struct Gentle {
    window: Window,
    ssthresh: Window,
    settings: Settings,
    /// The round ends when this is acknowledged.
    round_end: Option<SeqNum>,
    /// Smallest RTT of the round.
    round_rtt: Option<Duration>,
    saved: (Window, Window),
}

impl Gentle {
    fn new(init: &CcInit, settings: Settings) -> Self {
        let (window, ssthresh) = (init.initial_window, init.ssthresh);
        Self { window, ssthresh, settings, round_end: None, round_rtt: None, saved: (window, ssthresh) }
    }

    fn cut(&mut self, view: &FlowView) {
        let least = Window::from_bytes(2 * u64::from(view.smss));
        self.ssthresh = self.window.mul_ratio(7, 10).max(least);
        self.window = self.window.min(self.ssthresh);
    }

    /// Once per round trip: is the queue shorter or longer than wanted?
    fn end_round(&mut self, view: &FlowView) {
        let (Some(rtt), Some(min)) = (self.round_rtt.take(), view.min_rtt) else { return };
        let waiting = rtt.saturating_sub(min).as_nanos();
        let queued = self.window.mul_ratio(waiting, rtt.as_nanos().max(1));
        let smss = Window::from_bytes(u64::from(view.smss));
        let target = smss.mul_ratio(self.settings.queue, 1);
        if queued > target {
            // Half of the excess: what the other half does shows only a round trip later.
            let excess = queued.saturating_sub(target).mul_ratio(1, 2);
            self.window = self.window.saturating_sub(excess).max(smss.mul_ratio(2, 1));
            self.ssthresh = self.ssthresh.min(self.window);
        } else if self.window >= self.ssthresh && view.may_raise(self.window, self.ssthresh) {
            self.window = self.window.saturating_add(smss);
        }
    }
}

impl CongestionControl for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }

    fn decision(&self) -> SendDecision {
        SendDecision::window(self.window, self.ssthresh)
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        if let Some(rtt) = ack.rtt {
            self.round_rtt = Some(self.round_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if view.phase == Phase::Recovery {
            return Reaction::None;
        }
        if self.window < self.ssthresh && view.may_raise(self.window, self.ssthresh) {
            self.window = self.window.saturating_add(Window::from_bytes(u64::from(ack.acked)));
        }
        if self.round_end.is_none_or(|end| view.snd_una.ge(end)) {
            self.round_end = Some(view.snd_nxt);
            self.end_round(view);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            CongestionEvent::Loss { .. } | CongestionEvent::Ecn => self.cut(view),
            CongestionEvent::Timeout { first, window, ssthresh, .. } => {
                match ssthresh {
                    SsthreshRule::ByCc if first => self.cut(view),
                    SsthreshRule::To(value) => self.ssthresh = value,
                    SsthreshRule::ByCc | SsthreshRule::Keep => {}
                }
                self.window = self.window.min(window);
            }
            _ => {}
        }
    }

    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        self.window = self.window.min(restart.window);
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        self.saved = (self.window, self.ssthresh);
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let (window, ssthresh) = match *undo {
            Undo::All => self.saved,
            Undo::To { window, ssthresh } => (window, ssthresh),
        };
        self.window = self.window.max(window);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.settings.set("gentle", params)
    }
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    /// Segments to keep in the queue.
    queue: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { queue: 4 }
    }
}

impl Keyed for Settings {
    const KEYS: &'static [Key<Self>] =
        &[Key::count("queue", 1..=1000, "segments to keep in the queue", |settings| &mut settings.queue)];
}

const MINE: Entry<NewCongestionControl> = Entry {
    summary: "keeps a fixed number of its own segments in the queue",
    source: "this file",
    keys: ParamRow::of::<Settings>,
    ..Entry::new("gentle", |params| {
        let settings = Settings::from_params("gentle", params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(Gentle::new(init, settings))))
    })
};

const RATE: Rate = Rate::from_bits_per_second(20_000_000);
const DELAY: Duration = Duration::from_millis(20);
/// What the bottleneck's queue holds before it drops.
const BUFFER: Duration = Duration::from_millis(100);
const SECONDS: u64 = 20;
/// The queue is measured from here on, when slow start is over.
const SETTLED: Instant = Instant::from_secs(5);

/// One direction of the path: a link of [`RATE`] with a drop-tail queue, then [`DELAY`].
#[derive(Default)]
struct Link {
    free_at: Instant,
    flying: VecDeque<(Instant, Vec<u8>)>,
    /// The longest wait in the queue.
    worst: Duration,
    dropped: u32,
}

impl Link {
    fn send(&mut self, now: Instant, packet: Vec<u8>) {
        let wait = self.free_at.since(now);
        if wait > BUFFER {
            self.dropped += 1;
            return;
        }
        if now >= SETTLED {
            self.worst = self.worst.max(wait);
        }
        self.free_at = self.free_at.max(now) + RATE.time_for(packet.len() as u64);
        self.flying.push_back((self.free_at + DELAY, packet));
    }
}

/// Sends for [`SECONDS`] under `cc` and says what became of it.
fn run(cc: &Arc<NewCongestionControl>) -> Result<String, Box<dyn Error>> {
    let server = SocketAddr::from(([10, 0, 0, 2], 80));
    let mut hosts = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|address| {
        let mut config = EndpointConfig::default();
        config.addresses.push(address.into());
        Endpoint::new(config, Box::new(ackline::core::policy::builtin::Fifo::default()), [address[3]; 32])
    });
    let mut config: ConnConfig = Registry::default().conn_config();
    config.policies.cc = cc.clone();
    let config = Arc::new(config);
    let mut links = [Link::default(), Link::default()];
    let mut now = Instant::ZERO;
    hosts[1].listen(now, ListenOn::Address(server), AcceptConfig::new(config.clone()))?;
    let client = hosts[0].connect(now, server.into(), config)?;

    let (data, mut received) = ([7; 65_536], 0_u64);
    while now < Instant::from_secs(SECONDS) {
        for (side, tcp) in hosts.iter_mut().enumerate() {
            while links[side].flying.front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, packet)) = links[side].flying.pop_front()
            {
                tcp.ingest(now, RxPacket::new(&packet));
            }
            tcp.handle_timeout(now);
            while let Some(event) = tcp.poll_event() {
                let Some(mut conn) = tcp.conn(event.conn()) else { continue };
                match event {
                    Event::Connected(_) | Event::Writable(_) => while conn.write(now, &data)? > 0 {},
                    Event::Readable(_) => {
                        let unread: usize = conn.peek().iter().map(|part| part.len()).sum();
                        conn.consume(now, unread);
                        received += unread as u64;
                    }
                    _ => {}
                }
            }
            let link = &mut links[1 - side];
            tcp.transmit(now, TxBudget::UNLIMITED, |packet| {
                link.send(now, [packet.header, packet.payload[0], packet.payload[1]].concat());
                Ok::<_, Infallible>(())
            })?;
        }
        let arrivals = links.iter().filter_map(|link| link.flying.front().map(|(at, _)| *at));
        let timeouts = hosts.iter().filter_map(|tcp| tcp.poll_timeout().map(|wakeup| wakeup.at));
        now = arrivals.chain(timeouts).min().ok_or("the hosts fell silent")?;
    }
    let info = hosts[0].conn(client).ok_or("the connection is gone")?.info();
    Ok(format!(
        "{:8} {:5.2} Mbit/s, longest wait {:5.1} ms, {:4} dropped, {:4} retransmitted",
        info.cc,
        received as f64 * 8.0 / SECONDS as f64 / 1e6,
        links[1].worst.as_secs_f64() * 1e3,
        links[1].dropped,
        info.total_retrans,
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::default().with_cc(MINE);
    let mine = registry.cc("gentle:queue=8")?;
    for seed in 0..20 {
        conformance::congestion_control(&*mine, seed);
    }
    println!("gentle keeps the rules of its seam; 20 Mbit/s, 40 ms, {SECONDS} s of virtual time:");
    for cc in ["gentle:queue=8", "cubic", "reno"] {
        println!("{}", run(&registry.cc(cc)?)?);
    }
    Ok(())
}
