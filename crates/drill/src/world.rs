//! The stack under test and its clock: packets go in, time passes, and what leaves is kept in the
//! order of its departure.

use crate::host::SentPacket;
use ackline_registry::Registry;
use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::{
    ConnId, Duration, Endpoint, EndpointConfig, Event, Ingested, Instant, RxPacket, TxBudget,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// Trace events that are kept for the report of a failure.
const REMEMBERED: usize = 64;

/// A packet that went either way, for captures and reports.
#[derive(Clone, Debug)]
pub(crate) struct ExchangedPacket {
    pub(crate) at: Instant,
    pub(crate) octets: Vec<u8>,
    pub(crate) reason: Option<SendReason>,
}

/// What the stack concluded, the latest last.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<VecDeque<(Instant, TraceEvent)>>>);

impl Tracer for Memory {
    fn trace(&mut self, now: Instant, _: ConnId, event: &TraceEvent) {
        // What the packets and `tcp_info` show is not a conclusion.
        if matches!(
            event,
            TraceEvent::Sent { .. } | TraceEvent::Received { .. } | TraceEvent::Congestion { .. }
        ) {
            return;
        }
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == REMEMBERED {
            events.pop_front();
        }
        events.push_back((now, *event));
    }
}

pub(crate) struct World {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Instant,
    start: Instant,
    /// Packets that nobody has looked at, in the order of their departure.
    pub(crate) sent: VecDeque<SentPacket>,
    /// All packets.
    pub(crate) passed: Vec<ExchangedPacket>,
    /// News of connections for the socket layer.
    pub(crate) news: Vec<Event>,
    memory: Memory,
    /// What became of the last packet that went in.
    pub(crate) last_ingested: Option<Ingested>,
}

impl World {
    pub(crate) fn new(config: EndpointConfig, registry: &Registry) -> Self {
        // Zero is a time like any other; a start above it leaves room for what lies before.
        let start = Instant::from_secs(10);
        let mut endpoint = Endpoint::new(config, registry.scheduler()(), [7; 32]);
        let memory = Memory::default();
        endpoint.set_tracer(Some(Box::new(memory.clone())));
        endpoint.handle_timeout(start);
        Self {
            endpoint,
            now: start,
            start,
            sent: VecDeque::new(),
            passed: vec![],
            news: vec![],
            memory,
            last_ingested: None,
        }
    }

    /// The instant of a time of the script.
    pub(crate) fn at(&self, micros: u64) -> Instant {
        self.start + Duration::from_micros(micros)
    }

    /// The script's time, in microseconds, at an instant.
    pub(crate) fn micros(&self, at: Instant) -> u64 {
        at.since(self.start).as_micros()
    }

    /// The script's time now.
    pub(crate) fn micros_now(&self) -> u64 {
        self.micros(self.now)
    }

    /// The first instant after now at which something happens by itself, if it is not after
    /// `limit`: the clock stands there, and what is due has happened. `false`: the clock stands at
    /// `limit`.
    pub(crate) fn step(&mut self, limit: Instant) -> bool {
        match self.endpoint.timeout_at() {
            Some(at) if at <= limit => {
                self.now = self.now.max(at);
                self.endpoint.handle_timeout(self.now);
                self.settle();
                true
            }
            _ => {
                self.now = self.now.max(limit);
                false
            }
        }
    }

    /// A packet goes in now.
    pub(crate) fn inject(&mut self, octets: Vec<u8>) {
        self.last_ingested = Some(self.endpoint.ingest(self.now, RxPacket::new(&octets)));
        self.passed.push(ExchangedPacket { at: self.now, octets, reason: None });
        self.settle();
    }

    /// Whatever the stack has to send leaves, and what it has to tell is kept.
    pub(crate) fn settle(&mut self) {
        let Self { endpoint, now, sent, passed, news, .. } = self;
        let at = *now;
        let micros = at.since(self.start).as_micros();
        let done = endpoint.transmit(at, TxBudget::UNLIMITED, |packet| {
            let octets = [packet.header, packet.payload[0], packet.payload[1]].concat();
            passed.push(ExchangedPacket { at, octets: octets.clone(), reason: Some(packet.reason) });
            sent.push_back(SentPacket { at: micros, octets });
            Ok::<(), Infallible>(())
        });
        match done {
            Ok(_) => {}
            Err(never) => match never {},
        }
        while let Some(event) = endpoint.poll_event() {
            news.push(event);
        }
    }

    /// What the stack concluded, the latest last.
    pub(crate) fn conclusions(&self) -> Vec<(Instant, TraceEvent)> {
        self.memory.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}
