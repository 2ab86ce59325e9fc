//! A host: an endpoint, its applications, and the loop that drives them by the core's contract.

use crate::app::{App, AppCx, AppEvent, Owners};
use crate::packet::{Origin, Packet, PacketPool};
use crate::rng::SimRng;
use crate::topology::LinkId;
use crate::traces::Traces;
use ackline_tcp_core::packet::SendReason;
use ackline_tcp_core::policy::sched::{ControlKind, SegmentClass};
use ackline_tcp_core::wire::{RxChecksum, TxChecksum};
use ackline_tcp_core::{ConnId, Endpoint, Event, Instant, RxPacket, TxBudget, TxId};
use std::convert::Infallible;

/// How a host's packets reach its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// Everything that TCP sends goes to the link's queue at once.
    #[default]
    Queued,
    /// The link has no queue: it takes one packet when idle and reports its departure, so the
    /// endpoint's egress scheduler decides what waits. For hosts with one outgoing link.
    Fed,
}

/// An application and its random numbers.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) app: Box<dyn App>,
    pub(crate) rng: SimRng,
    /// Its index among all applications of the simulation.
    pub(crate) place: u32,
}

/// The state of a host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) egress: Egress,
    /// Its outgoing links.
    pub(crate) links: Vec<LinkId>,
    pub(crate) apps: Vec<Slot>,
    pub(crate) owners: Owners,
    /// Timers set by applications during the last call.
    pub(crate) timers: Vec<(Instant, u32, u64)>,
    /// Packets sent past TCP by applications during the last call.
    pub(crate) raw: Vec<Vec<u8>>,
    /// When the simulation wakes the endpoint next.
    pub(crate) timer_at: Instant,
    /// Events to deliver after the endpoint has transmitted.
    news: Vec<(u32, ConnId, AppEvent)>,
    /// Packets to be passed to a link.
    pub(crate) outbox: Vec<Packet>,
    /// Trace events of its connections, if an observer wants them.
    pub(crate) traces: Option<Traces>,
    /// Headers of segments remain fields.
    pub(crate) takes_fields: bool,
}

impl Host {
    pub(crate) fn new(endpoint: Endpoint, egress: Egress) -> Self {
        Self {
            endpoint,
            egress,
            links: vec![],
            apps: vec![],
            owners: Owners::default(),
            timers: vec![],
            raw: vec![],
            timer_at: Instant::FAR_FUTURE,
            news: vec![],
            outbox: vec![],
            traces: None,
            takes_fields: false,
        }
    }

    pub(crate) fn ingest(&mut self, now: Instant, packet: &Packet) {
        match packet.received() {
            Some((ip, segment)) => _ = self.endpoint.ingest_segment(now, &ip, &segment),
            None => self.ingest_octets(now, packet),
        }
    }

    fn ingest_octets(&mut self, now: Instant, packet: &Packet) {
        let checksum = if packet.checksummed { RxChecksum::Verify } else { RxChecksum::Trusted };
        let octets = packet.octets();
        let received = RxPacket::new(&octets).with_checksum(checksum);
        // Its own checksum is never complete: each of its packets would have another one.
        let received = packet.super_packet.map_or(received, |one| {
            received.with_segment_size(Some(one.segment_size)).with_checksum(RxChecksum::Partial)
        });
        self.endpoint.ingest(now, received);
    }

    pub(crate) fn departed(&mut self, now: Instant, packet: TxId) {
        self.endpoint.departed(now, packet);
    }

    /// Calls an application.
    pub(crate) fn call(&mut self, now: Instant, app: u32, f: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        let Self { endpoint, apps, owners, timers, raw, .. } = self;
        let Some(slot) = apps.get_mut(app as usize) else { return };
        let mut cx = AppCx { now, app, endpoint, owners, timers, raw, rng: &mut slot.rng };
        f(slot.app.as_mut(), &mut cx);
    }

    /// Follows every input: readers read, TCP sends, then writers write and TCP sends again.
    ///
    /// `room` is the number of packets that the links take: unlimited, or one if an idle link is
    /// fed.
    pub(crate) fn settle(&mut self, now: Instant, mut room: usize, pool: &mut PacketPool, number: &mut u64) {
        self.send_raw(now, pool, number);
        loop {
            self.take_news(now);
            room -= self.transmit(now, room, pool, number);
            if self.news.is_empty() {
                return;
            }
            let mut news = core::mem::take(&mut self.news);
            for (app, conn, event) in news.drain(..) {
                self.call(now, app, |app, cx| app.event(cx, conn, event));
            }
            self.news = news;
        }
    }

    /// Packets that applications sent past TCP.
    fn send_raw(&mut self, now: Instant, pool: &mut PacketPool, number: &mut u64) {
        let pricing = self.endpoint.config().pricing;
        for bytes in self.raw.drain(..) {
            *number += 1;
            let class = SegmentClass::Control(ControlKind::Other);
            let origin = Origin { conn: None, class, reason: Some(SendReason::NewData), tx: TxId(u64::MAX) };
            let mut packet = pool.make(*number, now, origin, [&bytes]);
            packet.price = pricing.price(bytes.len() as u32, bytes.len() as u32, 1);
            self.outbox.push(packet);
        }
    }

    /// Applications are told of readable data before TCP sends, of everything else after.
    fn take_news(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event_before_transmit() {
            let conn = event.conn();
            let event = match event {
                Event::Accepted { listener, conn } => {
                    let Some(app) = self.owners.of_listener(listener) else { continue };
                    self.owners.set(conn, app);
                    self.call(now, app, |app, cx| app.event(cx, conn, AppEvent::Accepted));
                    continue;
                }
                Event::Readable(_) => {
                    if let Some(app) = self.owners.of(conn) {
                        self.call(now, app, |app, cx| app.event(cx, conn, AppEvent::Readable));
                    }
                    continue;
                }
                Event::Connected(_) => AppEvent::Connected,
                Event::Writable(_) => AppEvent::Writable,
                Event::Flushed(_) => AppEvent::Flushed,
                Event::Closed { error, .. } => AppEvent::Closed(error),
                _ => continue,
            };
            if let Some(app) = self.owners.of(conn) {
                self.news.push((app, conn, event));
            }
        }
    }

    fn transmit(&mut self, now: Instant, room: usize, pool: &mut PacketPool, number: &mut u64) -> usize {
        let budget = match self.egress {
            Egress::Queued => TxBudget::packets(room),
            Egress::Fed => TxBudget::with_departures(room),
        };
        let budget = if self.takes_fields { budget.taking_fields() } else { budget };
        let Self { endpoint, outbox, .. } = self;
        let pricing = endpoint.config().pricing;
        let before = outbox.len();
        let sent = endpoint.transmit(now, budget, |tx| {
            *number += 1;
            let origin = Origin { conn: tx.conn, class: tx.class, reason: Some(tx.reason), tx: tx.id };
            let mut packet = match tx.fields {
                Some(header) => pool.make_of_fields(*number, now, origin, header, tx.payload),
                None => pool.make(*number, now, origin, [tx.header, tx.payload[0], tx.payload[1]]),
            };
            let payload = tx.payload[0].len() + tx.payload[1].len();
            packet.checksummed = tx.checksum == TxChecksum::Complete;
            packet.price = pricing.price(packet.len() as u32, payload as u32, 1);
            outbox.push(packet);
            Ok::<(), Infallible>(())
        });
        match sent {
            Ok(_) => outbox.len() - before,
            Err(never) => match never {},
        }
    }
}
