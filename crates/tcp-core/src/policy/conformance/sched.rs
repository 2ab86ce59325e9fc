//! The rules of egress schedulers.

use super::rng::Rng;
use super::{check_configure, check_metrics};
use crate::ConnId;
use crate::packet::SendReason;
use crate::policy::NewEgressScheduler;
use crate::policy::sched::{
    Admission, Arrival, Ask, Backlog, ControlKind, Descriptor, DescriptorId, EgressScheduler, Forget,
    LinkView, Popped, QueuedAcks, Scope, SegmentClass,
};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::Ecn;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

const STEPS: u32 = 3_000;
const CONNECTIONS: u32 = 6;
const CLASSES: [SegmentClass; 8] = [
    SegmentClass::PureAck,
    SegmentClass::Data,
    SegmentClass::Retransmit,
    SegmentClass::Control(ControlKind::Syn),
    SegmentClass::Control(ControlKind::Fin),
    SegmentClass::Control(ControlKind::Rst),
    SegmentClass::Control(ControlKind::Probe),
    SegmentClass::Control(ControlKind::Other),
];
/// Maximum waits per queued packet during a full drain.
const MAX_WAITS: u32 = 64;

/// Drives an egress scheduler as an endpoint with a few connections would: packets of all classes
/// and sizes (super-packets too), admitted and forced, a link with varying room, departures,
/// packets and connections that become void; drains it now and then.
///
/// In addition to the rules for [every policy](super):
/// - **conservation**: what is pushed is popped, dropped or forgotten exactly once, unchanged but
///   for a mark; nothing else is popped;
/// - only packets that are ECN-capable are marked;
/// - [`Popped::Drop`] only names data that no retransmission timer sends, ACKs that keep their
///   number and packets without a connection;
/// - data of one connection and class leaves in the order of its pushes;
/// - [`EgressScheduler::backlog`] is correct in every [`Scope`];
/// - only data is deferred; only ACKs that keep their number and packets without a connection are
///   dropped;
/// - a deferred connection is resumed by [`EgressScheduler::poll_resume`] once the queue has
///   drained and everything has departed (or become void), and `poll_resume` only names waiting
///   connections, each once;
/// - [`Popped::NotBefore`] is in the future, and waiting for it leads to packets: no livelock;
/// - [`Popped::Empty`] on a link with unlimited room means that nothing is queued.
///
/// # Panics
/// If a rule is broken.
#[track_caller]
pub fn egress_scheduler(make: &NewEgressScheduler, seed: u64) {
    let mut host = Host::new(make, seed);
    for step in 0..STEPS {
        host.step = step;
        host.run();
        host.check();
    }
    host.drain();
}

struct Host {
    rng: Rng,
    seed: u64,
    step: u32,
    event: &'static str,
    subject: Box<dyn EgressScheduler>,
    twin: Box<dyn EgressScheduler>,
    now: Instant,
    serial: u64,
    queued: Vec<Descriptor>,
    /// Popped but not departed.
    on_wire: Vec<Descriptor>,
    waiting: Vec<ConnId>,
    /// Generation of each connection; forgetting a connection ends it.
    generations: [u32; CONNECTIONS as usize],
    largest: u32,
}

impl Host {
    fn new(make: &NewEgressScheduler, seed: u64) -> Self {
        let (subject, twin) = (make(), make());
        assert!(!subject.name().is_empty(), "a scheduler has no name");
        let mut rng = Rng::new(seed);
        let largest = if rng.one_in(2) { 1_500 } else { 65_575 };
        Self {
            now: Instant::from_nanos(rng.below(1 << 40)),
            rng,
            seed,
            step: 0,
            event: "start",
            subject,
            twin,
            serial: 0,
            queued: Vec::new(),
            on_wire: Vec::new(),
            waiting: Vec::new(),
            generations: [0; CONNECTIONS as usize],
            largest,
        }
    }

    fn who(&self) -> String {
        let Self { seed, step, event, .. } = self;
        alloc::format!("{} (seed {seed}, step {step}, {event})", self.subject.name())
    }

    /// Passes an event to both instances, checks that they agree, and returns their answer.
    fn ask<T: PartialEq + core::fmt::Debug>(
        &mut self,
        event: &'static str,
        ask: impl Fn(&mut dyn EgressScheduler, Instant) -> T,
    ) -> T {
        self.event = event;
        let answer = ask(self.subject.as_mut(), self.now);
        let other = ask(self.twin.as_mut(), self.now);
        assert_eq!(answer, other, "{}: two instances with the same history differ", self.who());
        answer
    }

    fn run(&mut self) {
        match self.rng.below(32) {
            0..14 => self.offer(),
            14..24 => {
                let room = if self.rng.one_in(4) { self.rng.between32(0, self.largest) } else { u32::MAX };
                self.pop(room);
            }
            24..26 => self.now += Duration::from_nanos(self.rng.below(1 << 24)),
            26 => {
                self.resume();
            }
            27 => self.arrive(),
            28 => self.forget_packet(),
            29 if self.rng.one_in(4) => self.forget_connection(),
            30 if self.rng.one_in(8) => self.drain(),
            31 if self.rng.one_in(8) => {
                self.event = "configure";
                let who = self.who();
                check_configure(&who, |params| self.subject.configure(params));
            }
            _ => {}
        }
    }

    fn connection(&mut self) -> ConnId {
        let index = self.rng.between32(0, CONNECTIONS - 1);
        let generation = self.generations.get(index as usize).copied().unwrap_or(0);
        ConnId::for_test(index, generation)
    }

    fn offer(&mut self) {
        let class = match self.rng.below(4) {
            0 => CLASSES[usize::try_from(self.rng.below(8)).unwrap_or(0)],
            1 => SegmentClass::PureAck,
            _ => SegmentClass::Data,
        };
        let conn = self.connection();
        let conn = (class.is_data() || !self.rng.one_in(8)).then_some(conn);
        let len = if class.is_data() { self.rng.between32(41, self.largest) } else { 40 };
        let ask = Ask::new(conn, class, len);
        let forced = self.rng.one_in(8);
        if !forced {
            match self.ask("admit", |scheduler, now| scheduler.admit(now, &ask)) {
                Admission::Granted => {}
                Admission::Deferred => {
                    assert!(class.is_data(), "{}: {class:?} was deferred; only data may be", self.who());
                    if let Some(conn) = conn.filter(|conn| !self.waiting.contains(conn)) {
                        self.waiting.push(conn);
                    }
                    return;
                }
                Admission::Dropped => {
                    let kept = class == SegmentClass::PureAck
                        && self.subject.properties().acks != QueuedAcks::Newest;
                    assert!(kept || conn.is_none(), "{}: a {class:?} was dropped", self.who());
                    return;
                }
            }
            // A connection that was granted something is no longer waiting.
            self.waiting.retain(|waiting| Some(*waiting) != conn || !class.is_data());
        }
        self.serial += 1;
        let id = DescriptorId::new(self.serial, SeqNum(self.rng.between32(0, u32::MAX)), len - 40);
        let mut descriptor = Descriptor::new(id, conn, class, len);
        descriptor.queued_at = self.now;
        // One codepoint for each connection: a queue for L4S and one beside it are two ways.
        descriptor.ecn = Ecn::from_bits(conn.map_or(0, |conn| conn.index() as u8) % 3);
        if class.is_data() && self.serial.is_multiple_of(16) {
            descriptor.id.reason = SendReason::RtoRetransmit;
        }
        descriptor.segments = len.div_ceil(1_500);
        self.ask("push", |scheduler, now| scheduler.push(now, descriptor));
        self.queued.push(descriptor);
    }

    /// Pops once; true if there was a packet.
    fn pop(&mut self, room: u32) -> bool {
        let link = LinkView::new(room);
        match self.ask("pop", |scheduler, now| scheduler.pop(now, &link)) {
            Popped::Packet(packet) => {
                self.take(&packet, room);
                self.on_wire.push(packet);
                if !self.rng.one_in(4) {
                    self.depart();
                }
                true
            }
            Popped::Drop(packet) => {
                let kept = packet.class == SegmentClass::PureAck
                    && self.subject.properties().acks != QueuedAcks::Newest;
                let data = packet.class.is_data() && !packet.id.reason.is_rto();
                assert!(data || kept || packet.conn.is_none(), "{}: {packet:?} was dropped", self.who());
                self.take(&packet, room);
                true
            }
            Popped::NotBefore(at) => {
                assert!(at > self.now, "{}: NotBefore({at:?}) at {:?}", self.who(), self.now);
                assert!(!self.queued.is_empty(), "{}: NotBefore, but nothing is queued", self.who());
                false
            }
            Popped::Empty => {
                assert!(
                    room < self.largest || self.queued.is_empty(),
                    "{}: Empty, but {} packets are queued",
                    self.who(),
                    self.queued.len()
                );
                false
            }
        }
    }

    fn take(&mut self, packet: &Descriptor, room: u32) {
        assert!(packet.len <= room, "{}: {} bytes on a link with room for {room}", self.who(), packet.len);
        let is_it = |queued: &Descriptor| {
            let marked = packet.ecn == Ecn::Ce && queued.ecn != Ecn::NotEct;
            let ecn = if marked { Ecn::Ce } else { queued.ecn };
            Descriptor { ecn, ..*queued } == *packet
        };
        let Some(at) = self.queued.iter().position(is_it) else {
            panic!("{}: {packet:?} was never pushed, or left before", self.who());
        };
        if packet.class.is_data() {
            let earlier = self
                .queued
                .iter()
                .take(at)
                .find(|queued| queued.conn == packet.conn && queued.class == packet.class);
            assert!(
                earlier.is_none(),
                "{}: {packet:?} overtook {earlier:?} of the same connection",
                self.who()
            );
        }
        self.queued.remove(at);
    }

    /// A segment with payload arrives, alone or merged from several.
    fn arrive(&mut self) {
        let segments = self.rng.between32(1, 45);
        let conn = self.connection();
        let arrival = Arrival { segments, ..Arrival::new(conn, segments * self.rng.between32(41, 1_518)) };
        self.ask("arrived", |scheduler, now| scheduler.arrived(now, &arrival));
    }

    /// The oldest packet on the wire departs, or becomes void.
    fn depart(&mut self) {
        if self.on_wire.is_empty() {
            return;
        }
        let packet = self.on_wire.remove(0);
        if self.rng.one_in(16) {
            let void = Forget::Packet { conn: packet.conn, serial: packet.id.serial };
            self.ask("forget", |scheduler, now| scheduler.forget(now, void));
        } else {
            self.ask("departed", |scheduler, now| scheduler.departed(now, &packet));
        }
    }

    /// Takes all resumed connections; true if there was one.
    fn resume(&mut self) -> bool {
        let mut any = false;
        while let Some(conn) = self.ask("poll_resume", |scheduler, _| scheduler.poll_resume()) {
            let Some(at) = self.waiting.iter().position(|waiting| *waiting == conn) else {
                panic!("{}: {conn:?} is resumed, but it is not waiting", self.who());
            };
            self.waiting.remove(at);
            any = true;
        }
        any
    }

    fn forget_packet(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let at = usize::try_from(self.rng.below(self.queued.len() as u64)).unwrap_or(0);
        let packet = self.queued.remove(at);
        let void = Forget::Packet { conn: packet.conn, serial: packet.id.serial };
        self.ask("forget", |scheduler, now| scheduler.forget(now, void));
        // Forgetting a packet that is not queued is harmless.
        self.ask("forget", |scheduler, now| scheduler.forget(now, void));
    }

    fn forget_connection(&mut self) {
        let conn = self.connection();
        self.ask("forget", |scheduler, now| scheduler.forget(now, Forget::Conn(conn)));
        self.queued.retain(|queued| queued.conn != Some(conn));
        self.waiting.retain(|waiting| *waiting != conn);
        if let Some(generation) = self.generations.get_mut(conn.index()) {
            *generation += 1;
        }
    }

    /// Lets everything leave, and every waiting connection ask again.
    fn drain(&mut self) {
        let mut waits = 0;
        while !self.queued.is_empty() {
            let before = self.queued.len();
            if self.pop(u32::MAX) {
                waits = 0;
                continue;
            }
            assert_eq!(before, self.queued.len());
            let link = LinkView::new(u32::MAX);
            if let Popped::NotBefore(at) = self.ask("pop", |scheduler, now| scheduler.pop(now, &link)) {
                self.now = at;
            }
            waits += 1;
            assert!(waits < MAX_WAITS, "{}: {waits} waits, and no packet leaves", self.who());
        }
        while !self.on_wire.is_empty() {
            self.depart();
        }
        self.resume();
        assert!(
            self.waiting.is_empty(),
            "{}: nothing is queued, but {:?} are never resumed",
            self.who(),
            self.waiting
        );
    }

    fn check(&self) {
        let who = self.who();
        let mut scopes = Vec::from([Scope::All]);
        scopes.extend(CLASSES.map(Scope::Class));
        for (index, generation) in self.generations.iter().enumerate() {
            scopes.push(Scope::Conn(ConnId::for_test(u32::try_from(index).unwrap_or(0), *generation)));
        }
        for scope in scopes {
            let mut expected = Backlog::default();
            for packet in &self.queued {
                let counts = match scope {
                    Scope::All => true,
                    Scope::Conn(conn) => packet.conn == Some(conn),
                    Scope::Class(class) => packet.class == class,
                };
                if counts {
                    expected.packets += 1;
                    expected.bytes += u64::from(packet.len);
                }
            }
            assert_eq!(self.subject.backlog(scope), expected, "{who}: backlog({scope:?})");
        }
        check_metrics(&who, |report| self.subject.metrics(report));
    }
}
