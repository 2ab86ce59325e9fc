//! Two endpoints of the stack and the network between them, driven by a [`Plan`] and judged by the
//! [`Reference`].

use crate::reference::{Reference, byte, may_follow};
use crate::wire::Segment;
use ackline::Registry;
use ackline::core::error::{ConnError, StreamError};
use ackline::core::events::{TraceEvent, Tracer};
use ackline::core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn,
    ListenerId, RxPacket, State, Target, TxBudget,
};
use ackline_drill::{CapturedPacket, record};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

/// Everything is over within this time of the last step: longer than all back-offs together.
const LIMIT: Duration = Duration::from_secs(6 * 3_600);
/// Nothing is left of a connection after this time.
const QUIET: Duration = Duration::from_secs(3_600);
/// Bytes that an endpoint's empty tables keep for the next connection, and the size of the blocks
/// that it keeps for the next super-packet, of which there are few.
const TABLES: u64 = 4_096;
const BLOCK: u64 = 64 << 10;
const BLOCKS: u64 = 128;
const PORT: u16 = 80;

/// What an application or the clock does next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write { end: usize, bytes: usize },
    Read { end: usize, bytes: usize },
    Shutdown { end: usize },
    Abort { end: usize },
    Wait { micros: u64 },
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    Arrives,
    IsLost,
    /// Later than others, by so many microseconds.
    IsLate(u64),
    /// Again, so many microseconds later.
    ComesTwice(u64),
    /// With this bit inverted, counted from the end.
    IsCorrupted(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Settings of the connection at each end.
    pub(crate) settings: [String; 2],
    pub(crate) mtu: u32,
    /// One way, in microseconds.
    pub(crate) delay: u64,
    /// Both ends connect; otherwise the second listens.
    pub(crate) both_connect: bool,
    /// What happens to the packets of each end, in the order in which they leave; the others arrive.
    pub(crate) fates: [Vec<Fate>; 2],
    pub(crate) steps: Vec<Step>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Both streams are complete.
    Delivered,
    /// One end at least was told of an error.
    Failed,
}

/// A promise that was broken, with the dialogue as a script.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) what: String,
    pub(crate) script: String,
}

/// States that one end went through and nobody has looked at.
#[derive(Clone, Debug, Default)]
struct Changes(Arc<Mutex<Vec<(State, State)>>>);

impl Tracer for Changes {
    fn trace(&mut self, _: Instant, _: ConnId, event: &TraceEvent) {
        if let TraceEvent::State { from, to } = *event {
            self.0.lock().expect("no panic").push((from, to));
        }
    }
}

struct End {
    endpoint: Endpoint,
    conn: Option<ConnId>,
    /// It takes one connection.
    listener: Option<ListenerId>,
    changes: Changes,
    config: Arc<ConnConfig>,
    /// Its connection has ended, and with what error.
    closed: Option<Option<ConnError>>,
    shut: bool,
    aborted: bool,
    /// Packets that it has sent.
    sent: usize,
}

struct Pair<'a> {
    plan: &'a Plan,
    ends: [End; 2],
    now: Instant,
    /// Packets on their way, by when they arrive.
    network: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    numbered: u64,
    reference: Reference,
    /// Packets that the network spoilt.
    spoilt: bool,
    /// What the first end has sent and received.
    seen: Vec<CapturedPacket>,
}

/// Runs a plan to its end.
///
/// # Errors
/// The first promise that was broken.
pub(crate) fn run(plan: &Plan) -> Result<Outcome, Broken> {
    let mut pair = Pair::new(plan);
    pair.play().map_err(|what| Broken { what, script: pair.script() })
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 0, 0, 1 + end as u8).into(), PORT)
}

impl<'a> Pair<'a> {
    fn new(plan: &'a Plan) -> Self {
        let registry = Registry::default();
        let ends = [0, 1].map(|end| {
            let options = registry.options(&plan.settings[end]).expect("settings of the stack");
            let config = options.conn(&registry.conn_config()).expect("settings of a connection");
            let mut host = EndpointConfig::default();
            (host.addresses, host.mtu) = (vec![address(end).ip()], plan.mtu);
            let mut endpoint = Endpoint::new(host, registry.scheduler()(), [end as u8 + 1; 32]);
            let changes = Changes::default();
            endpoint.set_tracer(Some(Box::new(changes.clone())));
            End {
                endpoint,
                conn: None,
                listener: None,
                changes,
                config: Arc::new(config),
                closed: None,
                shut: false,
                aborted: false,
                sent: 0,
            }
        });
        Self {
            plan,
            ends,
            now: Instant::from_secs(10),
            network: BTreeMap::new(),
            numbered: 0,
            reference: Reference::default(),
            spoilt: false,
            seen: vec![],
        }
    }

    fn play(&mut self) -> Result<Outcome, String> {
        let plan = self.plan;
        if !plan.both_connect {
            let accept = AcceptConfig::new(self.ends[1].config.clone());
            let on = ListenOn::Address(address(1));
            let here = &mut self.ends[1];
            here.listener = Some(here.endpoint.listen(self.now, on, accept).expect("a free port"));
        }
        for end in 0..if plan.both_connect { 2 } else { 1 } {
            let mut target = Target::new(address(1 - end));
            target.local_port = Some(PORT);
            let here = &mut self.ends[end];
            here.conn =
                Some(here.endpoint.connect(self.now, target, here.config.clone()).expect("a free port"));
        }
        self.settle()?;
        for step in &plan.steps {
            match *step {
                Step::Write { end, bytes } => self.write(end, bytes)?,
                Step::Read { end, bytes } => {
                    self.read(end, bytes)?;
                }
                Step::Shutdown { end } => self.shut_down(end),
                Step::Abort { end } => self.abort(end),
                Step::Wait { micros } => {
                    let until = self.now + Duration::from_micros(micros);
                    while self.advance(until)? {}
                }
            }
            self.settle()?;
        }
        self.finish()
    }

    // Applications.

    fn write(&mut self, end: usize, bytes: usize) -> Result<(), String> {
        let start = self.reference.written(end);
        let data: Vec<u8> = (start..start + bytes as u64).map(|offset| byte(end, offset)).collect();
        let here = &mut self.ends[end];
        let Some(mut conn) = here.conn.and_then(|id| here.endpoint.conn(id)) else { return Ok(()) };
        match conn.write(self.now, &data) {
            Ok(taken) => self.reference.wrote(end, taken),
            Err(StreamError::NotConnected | StreamError::SendClosed) => Ok(()),
            Err(StreamError::Connection(_)) if here.closed.is_some_and(|error| error.is_some()) => Ok(()),
            Err(error) => Err(format!("write at {end}: {error}, of which the application was not told")),
        }
    }

    /// Reads up to `bytes`; returns whether there were any.
    fn read(&mut self, end: usize, bytes: usize) -> Result<bool, String> {
        let here = &mut self.ends[end];
        let Some(mut conn) = here.conn.and_then(|id| here.endpoint.conn(id)) else { return Ok(false) };
        let mut buf = vec![0; bytes];
        let Ok(read) = conn.read(self.now, &mut buf) else { return Ok(false) };
        let at_end = conn.at_end();
        self.reference.read(end, &buf[..read]).map_err(|what| format!("read at {end}: {what}"))?;
        if at_end {
            self.reference.ended(end).map_err(|what| format!("read at {end}: {what}"))?;
        }
        Ok(read > 0)
    }

    fn shut_down(&mut self, end: usize) {
        let here = &mut self.ends[end];
        let Some(mut conn) = here.conn.and_then(|id| here.endpoint.conn(id)) else { return };
        // RFC 9293, section 3.10.4: a close in SYN-SENT is the end of a connection that never was.
        if conn.state() == State::SynSent {
            return;
        }
        here.shut = true;
        conn.shutdown(self.now);
        self.reference.closed(end);
    }

    fn abort(&mut self, end: usize) {
        let here = &mut self.ends[end];
        let Some(id) = here.conn else { return };
        here.aborted = true;
        here.endpoint.abort(self.now, id);
    }

    // Time and packets.

    /// The next thing happens that is due until `limit`; `false`: nothing is, and it is `limit`.
    fn advance(&mut self, limit: Instant) -> Result<bool, String> {
        let arrives = self.network.first_key_value().map(|((at, _), _)| *at);
        let timers = self.ends.iter().filter_map(|end| end.endpoint.timeout_at());
        let Some(next) = timers.chain(arrives).min().filter(|next| *next <= limit) else {
            self.now = self.now.max(limit);
            return Ok(false);
        };
        self.now = self.now.max(next);
        if arrives.is_some_and(|at| at <= self.now)
            && let Some((_, (end, octets))) = self.network.pop_first()
        {
            // What is not intact has not arrived.
            if let Ok(segment) = Segment::read(&octets) {
                self.reference.reaches(end, &segment);
            }
            if end == 0 {
                self.seen.push(CapturedPacket { at_ns: self.now.as_nanos(), octets: octets.clone() });
            }
            self.ends[end].endpoint.ingest(self.now, RxPacket::new(&octets));
        } else {
            for end in &mut self.ends {
                if end.endpoint.timeout_at().is_some_and(|at| at <= self.now) {
                    end.endpoint.handle_timeout(self.now);
                }
            }
        }
        self.settle()?;
        Ok(true)
    }

    /// What the ends have to send leaves, what they have to tell is heard, and how they stand is
    /// looked at.
    fn settle(&mut self) -> Result<(), String> {
        for end in 0..2 {
            let mut left = vec![];
            let done = self.ends[end].endpoint.transmit(self.now, TxBudget::UNLIMITED, |packet| {
                left.push([packet.header, packet.payload[0], packet.payload[1]].concat());
                Ok::<(), Infallible>(())
            });
            done.expect("infallible");
            for octets in left {
                self.depart(end, octets)?;
            }
            self.hear(end)?;
        }
        self.look()
    }

    fn depart(&mut self, end: usize, octets: Vec<u8>) -> Result<(), String> {
        let segment = Segment::read(&octets).map_err(|what| format!("a packet of {end}: {what}"))?;
        self.reference
            .sends(end, &segment)
            .map_err(|what| format!("a segment of {end}: {what}: {segment:?}"))?;
        if end == 0 {
            self.seen.push(CapturedPacket { at_ns: self.now.as_nanos(), octets: octets.clone() });
        }
        let fate = self.plan.fates[end].get(self.ends[end].sent).copied().unwrap_or(Fate::Arrives);
        self.ends[end].sent += 1;
        self.spoilt |= !matches!(fate, Fate::Arrives);
        let after = |micros: u64| Duration::from_micros(self.plan.delay + micros);
        let mut copies = vec![(after(0), octets)];
        match fate {
            Fate::Arrives => {}
            Fate::IsLost => copies.clear(),
            Fate::IsLate(by) => copies[0].0 = after(by),
            Fate::ComesTwice(by) => copies.push((after(by), copies[0].1.clone())),
            Fate::IsCorrupted(bit) => {
                let octets = &mut copies[0].1;
                let at = octets.len() - 1 - bit / 8 % octets.len();
                octets[at] ^= 1 << (bit % 8);
            }
        }
        for (after, octets) in copies {
            self.numbered += 1;
            self.network.insert((self.now + after, self.numbered), (1 - end, octets));
        }
        Ok(())
    }

    fn hear(&mut self, end: usize) -> Result<(), String> {
        while let Some(event) = self.ends[end].endpoint.poll_event() {
            let here = &mut self.ends[end];
            match event {
                Event::Accepted { conn, .. } if here.conn.is_none() => {
                    here.conn = Some(conn);
                    // The first look accepts it.
                    here.endpoint.conn(conn);
                    // An old SYN that comes once the connection is over opens no other one.
                    if let Some(listener) = here.listener.take() {
                        here.endpoint.unlisten(self.now, listener);
                    }
                }
                Event::Flushed(conn) if Some(conn) == here.conn => {
                    self.reference.is_delivered(end).map_err(|what| format!("flushed at {end}: {what}"))?;
                }
                Event::Closed { conn, error } if Some(conn) == here.conn => here.closed = Some(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What must hold at any time.
    fn look(&mut self) -> Result<(), String> {
        let idle = self.network.is_empty();
        let mut states = [State::Closed; 2];
        for (number, end) in self.ends.iter_mut().enumerate() {
            for (from, to) in end.changes.0.lock().expect("no panic").drain(..) {
                if !may_follow(from, to) {
                    return Err(format!("{number} went from {from} to {to}"));
                }
            }
            let timer = end.endpoint.timeout_at().is_some();
            if end.endpoint.half_open() > 0 {
                states[number] = State::SynReceived;
            } else if number == 1 && !self.plan.both_connect && end.conn.is_none() {
                states[number] = State::Listen;
            }
            let Some(id) = end.conn else { continue };
            let Some(state) = end.endpoint.state(id) else { continue };
            states[number] = state;
            let Some(conn) = end.endpoint.inspect(id) else { continue };
            let info = conn.info();
            // RFC 6675, section 4: what is outstanding and neither arrived nor lost, and what was sent
            // again. Without SACK, duplicate ACKs say that something arrived, and not what.
            let recount = i64::from(info.unacked) - i64::from(info.sacked) - i64::from(info.lost)
                + i64::from(info.retrans);
            let pipe = i64::from(info.pipe);
            let counts = if info.sack { pipe == recount } else { pipe <= recount };
            if !counts && state != State::Closed {
                return Err(format!(
                    "pipe at {number} is {}, its scoreboard has {} - {} - {} + {}",
                    info.pipe, info.unacked, info.sacked, info.lost, info.retrans
                ));
            }
            let waits = info.unacked > 0
                || info.notsent_bytes > 0
                || matches!(
                    state,
                    State::SynSent | State::SynReceived | State::FinWait1 | State::Closing | State::LastAck
                );
            if idle && waits && state != State::Closed && !timer {
                return Err(format!(
                    "{number} in {state} waits for nothing: no packet is on its way, no timer runs"
                ));
            }
        }
        if self.ends.iter().any(|end| end.closed.is_some()) {
            return Ok(());
        }
        self.reference.states(states)
    }

    // The end.

    /// Both applications read what comes, and close; everything ends.
    fn finish(&mut self) -> Result<Outcome, String> {
        let limit = self.now + LIMIT;
        loop {
            for end in 0..2 {
                while self.read(end, 64 << 10)? {}
                if !self.ends[end].shut {
                    self.shut_down(end);
                }
            }
            self.settle()?;
            let open = self.ends.iter().any(|end| end.conn.is_some() && end.closed.is_none());
            if !open && self.network.is_empty() {
                break;
            }
            if !self.advance(limit)? {
                // RFC 9293, section 3.6: who waits for the other's FIN has nothing to send, and cannot
                // know that the other is gone. Its application gives up.
                let gone = [0, 1].map(|end| self.ends[end].closed.is_some());
                if let Some(waits) = [0, 1].into_iter().find(|end| gone[1 - end] && self.is_silent(*end)) {
                    self.abort(waits);
                    self.settle()?;
                    break;
                }
                let states = self.states();
                return Err(format!("it does not end: {states:?} after {} s", LIMIT.as_millis() / 1_000));
            }
        }
        self.judge()?;
        self.vanish()?;
        let failed = self.ends.iter().any(|end| !matches!(end.closed, Some(None)));
        Ok(if failed { Outcome::Failed } else { Outcome::Delivered })
    }

    /// It waits for the other's FIN, and has nothing outstanding.
    fn is_silent(&mut self, end: usize) -> bool {
        let here = &mut self.ends[end];
        let conn = here.conn.and_then(|id| here.endpoint.inspect(id));
        conn.is_some_and(|conn| conn.state() == State::FinWait2)
    }

    fn states(&self) -> [Option<State>; 2] {
        [0, 1].map(|end| self.ends[end].conn.and_then(|id| self.ends[end].endpoint.state(id)))
    }

    /// An error where something was not delivered, and nowhere else.
    fn judge(&self) -> Result<(), String> {
        let aborted = self.ends.iter().any(|end| end.aborted);
        for (number, end) in self.ends.iter().enumerate() {
            match end.closed {
                Some(None) => {
                    let wrong = |what| format!("{number} closed without an error: {what}");
                    self.reference.is_delivered(number).map_err(wrong)?;
                    if !self.reference.has_read_all(number) {
                        return Err(wrong("it has not read everything".to_owned()));
                    }
                }
                Some(Some(error)) if !aborted && !self.spoilt => {
                    return Err(format!("{number} failed on a perfect network: {error}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Nothing is left.
    fn vanish(&mut self) -> Result<(), String> {
        for end in &mut self.ends {
            if let Some(id) = end.conn {
                end.endpoint.release(self.now, id);
            }
        }
        self.settle()?;
        let until = self.now + QUIET;
        while self.advance(until)? {}
        for (number, end) in self.ends.iter().enumerate() {
            let endpoint = &end.endpoint;
            let left = [
                endpoint.connections() as u64,
                endpoint.half_open() as u64,
                endpoint.orphans() as u64,
                endpoint.time_wait_records() as u64,
                (endpoint.memory() % BLOCK).saturating_sub(TABLES),
                (endpoint.memory() / BLOCK).saturating_sub(BLOCKS),
            ];
            if left != [0; 6] {
                return Err(format!(
                    "{number} keeps {left:?}: connections, half-open ones, orphans, TIME-WAIT, bytes, blocks"
                ));
            }
        }
        Ok(())
    }

    /// The dialogue of the first end as a script.
    fn script(&self) -> String {
        let lines = record(&self.seen, Some(address(0)));
        let settings = &self.plan.settings[0];
        let option = if settings.is_empty() { String::new() } else { format!("--ackline={settings}\n") };
        lines.map_or_else(|error| format!("// {error}\n"), |lines| format!("{option}{lines}"))
    }
}
