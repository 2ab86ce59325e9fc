//! `dualpi2`: active queue management for the uplink (RFC 9332, appendix A). Packets with ECT(1)
//! wait in a shallow queue L, everything else in a queue C, and a coupling gives flows of both the
//! same rate.
//!
//! It needs a `rate` a little below that of the uplink, so that the queue stands here. Then C aims
//! at a delay of `target`: its data is dropped, or marked if it is ECN-capable, and TCP answers as
//! on any path. L marks from a millisecond on, and more as C's delay grows: flows of `prague` hardly
//! wait.
//!
//! Three things differ from a router. Packets are descriptors, so a mark is written when the packet
//! is built. Only data, datagrams and packets of programs are dropped: the rate of other packets
//! does not depend on their loss, and a lost SYN costs a second. And the queue's limit holds data
//! back instead of dropping it, so it must be longer than the delay that the controller aims at.
//!
//! With `split=on` super-packets are not built, since a mark on one is a mark on all its packets.
//! With `split=off` they are as large as the shaper permits, and count as one packet.

use crate::aqm::{Coupling, Credit, MTU, PiController, PiParams, Ramp, Turns, Verdict, Which};
use crate::entry;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Backlog, Bypass, ControlKind, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties,
    Scope, SegmentClass,
};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
use ackline_tcp_core::policy::{Metrics, NewEgressScheduler, Params, SpecError};
use ackline_tcp_core::wire::Ecn;
use ackline_tcp_core::{Duration, Instant};

pub(crate) const ENTRY: Entry<NewEgressScheduler> = Entry {
    source: "RFC 9332",
    ..entry::keyed::<DualPi2Params, DualPi2>(
        "dualpi2",
        "a shallow queue that marks L4S traffic, coupled with one for all else",
    )
};

/// The longest time of a parameter.
const LONGEST: Duration = Duration::from_secs(10);

/// The parameters of [`DualPi2`]. Defaults are RFC 9332's.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DualPi2Params {
    /// The controller of the coupled probability.
    pub pi: PiParams,
    /// How much more often L4S traffic is marked than the square root of classic traffic's
    /// probability.
    pub coupling: f64,
    /// Wait up to which L itself marks nothing.
    pub mark_from: Duration,
    /// From there, over which its probability rises to 1.
    pub mark_range: Duration,
    /// L itself marks only while it holds more than these packets.
    pub mark_packets: u32,
    /// Percent of the bytes for C if both wait.
    pub classic_share: u32,
    /// Super-packets are not built.
    pub split: bool,
}

impl Default for DualPi2Params {
    fn default() -> Self {
        let ramp = Ramp::default();
        Self {
            pi: PiParams::default(),
            coupling: 2.0,
            mark_from: ramp.min,
            mark_range: ramp.range,
            mark_packets: 1,
            classic_share: 10,
            split: true,
        }
    }
}

impl Keyed for DualPi2Params {
    const KEYS: &'static [Key<Self>] = &[
        Key::time("target", Duration::ZERO..=LONGEST, "delay of the classic queue that it aims at", |it| {
            &mut it.pi.target
        }),
        Key::time(
            "update",
            Duration::from_millis(1)..=LONGEST,
            "time between two updates of the probability",
            |it| &mut it.pi.update,
        ),
        Key::number("alpha", 0.0..=1_000.0, "weight of the distance to target, per second", |it| {
            &mut it.pi.alpha
        }),
        Key::number("beta", 0.0..=1_000.0, "weight of the delay's trend, per second", |it| &mut it.pi.beta),
        Key::number(
            "coupling",
            0.1..=100.0,
            "how much more often L4S traffic is marked than the root of the classic probability",
            |it| &mut it.coupling,
        ),
        Key::time(
            "mark_from",
            Duration::ZERO..=LONGEST,
            "wait up to which the L4S queue itself marks nothing",
            |it| &mut it.mark_from,
        ),
        Key::time(
            "mark_range",
            Duration::ZERO..=LONGEST,
            "from mark_from, over which its probability rises to 1",
            |it| &mut it.mark_range,
        ),
        Key::integer(
            "mark_packets",
            0..=1_000,
            "the L4S queue itself marks only while it holds more than these packets",
            |it| &mut it.mark_packets,
        ),
        Key::integer(
            "classic_share",
            1..=99,
            "percent of the bytes for the classic queue if both wait",
            |it| &mut it.classic_share,
        ),
        Key::switch("split", "no super-packets, so that each packet is marked or dropped by itself", |it| {
            &mut it.split
        }),
    ];
}

/// The two queues, their coupling, and the controller. O(1) per packet.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    params: DualPi2Params,
    l: Fifo,
    c: Fifo,
    credit: Credit,
    pi: PiController,
    coupling: Coupling,
    /// The packet that left last, if both queues had some, and its queue.
    last: Option<(u64, Which)>,
    counts: Counts,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    l_marked: u64,
    l_dropped: u64,
    c_marked: u64,
    c_dropped: u64,
}

impl Default for DualPi2 {
    fn default() -> Self {
        Self::from(DualPi2Params::default())
    }
}

impl From<DualPi2Params> for DualPi2 {
    fn from(params: DualPi2Params) -> Self {
        Self {
            l: Fifo::default(),
            c: Fifo::default(),
            credit: Credit::new(turns(&params)),
            pi: PiController::new(params.pi),
            coupling: Coupling::new(params.coupling, params.pi.arithmetic),
            last: None,
            counts: Counts::default(),
            params,
        }
    }
}

fn turns(params: &DualPi2Params) -> Turns {
    // At most 99.
    Turns::Weighted { classic: params.classic_share as u8 }
}

/// How long the head of a queue has waited; zero if it is empty.
fn delay(queue: &Fifo, now: Instant) -> Duration {
    queue.front().map_or(Duration::ZERO, |head| now.since(head.queued_at))
}

/// True for a packet of L (RFC 9331, section 5.1).
const fn is_l4s(packet: &Descriptor) -> bool {
    matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce)
}

/// True if loss tells the packet's source to send less, and no expired timer sends it.
fn may_drop(packet: &Descriptor) -> bool {
    match packet.class {
        SegmentClass::Data | SegmentClass::Retransmit => !packet.id.reason.is_rto(),
        SegmentClass::Control(ControlKind::Other) => packet.conn.is_none(),
        SegmentClass::PureAck | SegmentClass::Control(_) => false,
    }
}

impl DualPi2 {
    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &DualPi2Params {
        &self.params
    }

    /// Updates of the probability that were due meanwhile.
    fn catch_up(&mut self, now: Instant) {
        let Self { l, c, pi, .. } = self;
        pi.catch_up(now, |at| delay(l, at).max(delay(c, at)));
    }

    /// The queue that goes next; `None` if both are empty.
    fn turn(&self, now: Instant) -> Option<Which> {
        match (self.l.is_empty(), self.c.is_empty()) {
            (false, false) => Some(self.credit.turn([delay(&self.l, now), delay(&self.c, now)])),
            (false, true) => Some(Which::L),
            (true, false) => Some(Which::C),
            (true, true) => None,
        }
    }

    /// RFC 9332, figure 7, for a packet that has waited `sojourn` in L, which held `packets` with
    /// it.
    fn l4s(&mut self, sojourn: Duration, packets: usize, prob: f64, may_drop: bool) -> Verdict {
        let DualPi2Params { mark_from, mark_range, mark_packets, .. } = self.params;
        let ramp = Ramp { min: mark_from, range: mark_range, min_packets: mark_packets as usize };
        match self.coupling.l4s(never, prob, ramp.probability(sojourn, packets)) {
            Verdict::Drop if !may_drop => Verdict::Mark,
            verdict => verdict,
        }
    }

    /// The same for C.
    fn classic(&mut self, prob: f64, capable: bool, may_drop: bool) -> Verdict {
        // What can neither be marked nor dropped does not count.
        if !capable && !may_drop {
            return Verdict::Pass;
        }
        match self.coupling.classic(never, prob, capable) {
            Verdict::Drop if !may_drop => Verdict::Mark,
            verdict => verdict,
        }
    }

    /// What happens to a packet that has been taken out of one of the queues, which then held
    /// `packets` and both together `bytes` with it.
    fn verdict(
        &mut self,
        now: Instant,
        which: Which,
        packet: &Descriptor,
        packets: usize,
        bytes: u64,
    ) -> Verdict {
        // Appendix A.1: a queue of less than two packets is none to control.
        let prob = if bytes < 2 * MTU { 0.0 } else { self.pi.prob() };
        let verdict = match which {
            Which::L => self.l4s(now.since(packet.queued_at), packets, prob, may_drop(packet)),
            Which::C => self.classic(prob, packet.ecn != Ecn::NotEct, may_drop(packet)),
        };
        let Counts { l_marked, l_dropped, c_marked, c_dropped } = &mut self.counts;
        match (which, verdict) {
            (_, Verdict::Pass) => {}
            (Which::L, Verdict::Mark) => *l_marked += 1,
            (Which::L, Verdict::Drop) => *l_dropped += 1,
            (Which::C, Verdict::Mark) => *c_marked += 1,
            (Which::C, Verdict::Drop) => *c_dropped += 1,
        }
        verdict
    }
}

/// The chance of an event for [`Arithmetic::Real`](crate::aqm::Arithmetic::Real), which picks packets
/// at even distances and not at random.
const fn never(_: f64) -> bool {
    false
}

impl EgressScheduler for DualPi2 {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn properties(&self) -> SchedulerProperties {
        let properties = SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull);
        if self.params.split { properties.with_largest_packet(0) } else { properties }
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.catch_up(now);
        let queue = if is_l4s(&packet) { &mut self.l } else { &mut self.c };
        queue.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        self.catch_up(now);
        let Some(which) = self.turn(now) else { return Popped::Empty };
        let both = !self.l.is_empty() && !self.c.is_empty();
        let (packets, bytes) = (self.l.backlog(Scope::All).packets, self.backlog(Scope::All).bytes);
        let queue = match which {
            Which::L => &mut self.l,
            Which::C => &mut self.c,
        };
        let Popped::Packet(mut packet) = queue.pop(now, link) else { return Popped::Empty };
        self.last = both.then_some((packet.id.serial, which));
        if both {
            self.credit.left(which, packet.len.into());
        }
        if self.l.is_empty() && self.c.is_empty() {
            self.credit.emptied();
            self.last = None;
        }
        match self.verdict(now, which, &packet, packets, bytes) {
            Verdict::Pass => Popped::Packet(packet),
            Verdict::Mark => {
                packet.ecn = Ecn::Ce;
                Popped::Packet(packet)
            }
            Verdict::Drop => Popped::Drop(packet),
        }
    }

    fn repriced(&mut self, _now: Instant, packet: &Descriptor, len: u32) {
        if let Some((serial, which)) = self.last
            && serial == packet.id.serial
        {
            self.credit.correct(which, packet.len.into(), len.into());
            self.last = None;
        }
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.l.forget(now, which);
        self.c.forget(now, which);
        if self.l.is_empty() && self.c.is_empty() {
            self.credit.emptied();
            self.last = None;
        }
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.l.backlog(scope) + self.c.backlog(scope)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        let prob = self.pi.prob();
        report.number("p", prob);
        report.number("p_c", prob * prob);
        report.number("p_cl", self.coupling.p_cl(prob));
        report.bytes("l_bytes", self.l.backlog(Scope::All).bytes as f64);
        report.bytes("c_bytes", self.c.backlog(Scope::All).bytes as f64);
        let Counts { l_marked, l_dropped, c_marked, c_dropped } = self.counts;
        report.count("l_marked", l_marked);
        report.count("l_dropped", l_dropped);
        report.count("c_marked", c_marked);
        report.count("c_dropped", c_dropped);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut new = self.params.clone();
        new.set(self.name(), params)?;
        self.credit.set_turns(turns(&new));
        self.pi.set_params(new.pi);
        self.coupling.set_ratio(new.coupling);
        self.params = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
