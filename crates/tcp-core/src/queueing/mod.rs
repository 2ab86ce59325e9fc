//! Statistics of sent packets: how many of each kind, and how long they waited in the egress
//! scheduler.

mod histogram;

pub use histogram::DelayHistogram;

use crate::policy::sched::SegmentClass;
use crate::time::Duration;
use alloc::boxed::Box;

/// What an endpoint has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EgressStats {
    /// Pure ACKs.
    pub ack: ClassStats,
    /// New data.
    pub data: ClassStats,
    /// Retransmitted data.
    pub retransmit: ClassStats,
    /// SYN, FIN, RST, probes, echo replies.
    pub control: ClassStats,
}

impl EgressStats {
    /// Adds what another endpoint of the same host sent. Of the quantiles of delays, the larger one
    /// stands: what both know is not enough for that of all.
    pub fn add(&mut self, other: &Self) {
        let Self { ack, data, retransmit, control } = other;
        let pairs = [
            (&mut self.ack, ack),
            (&mut self.data, data),
            (&mut self.retransmit, retransmit),
            (&mut self.control, control),
        ];
        for (sum, other) in pairs {
            let ClassStats { packets, bytes, queued, delay_p50, delay_p90, delay_p99, delay_max } = *other;
            *sum = ClassStats {
                packets: sum.packets + packets,
                bytes: sum.bytes + bytes,
                queued: sum.queued + queued,
                delay_p50: sum.delay_p50.max(delay_p50),
                delay_p90: sum.delay_p90.max(delay_p90),
                delay_p99: sum.delay_p99.max(delay_p99),
                delay_max: sum.delay_max.max(delay_max),
            };
        }
    }

    /// Name and figures of each kind, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ClassStats)> {
        let Self { ack, data, retransmit, control } = self;
        [("ack", ack), ("data", data), ("retransmit", retransmit), ("control", control)].into_iter()
    }
}

/// What was sent of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClassStats {
    /// Packets on the wire.
    pub packets: u64,
    /// Their IP bytes; a super-packet counts one header.
    pub bytes: u64,
    /// Packets that went through the scheduler's queue, to which the delays apply; a super-packet
    /// counts once. A packet without a connection that found neither queue nor full device does not
    /// count.
    pub queued: u64,
    /// Median delay.
    pub delay_p50: Duration,
    /// 90th percentile of the delay.
    pub delay_p90: Duration,
    /// 99th percentile of the delay.
    pub delay_p99: Duration,
    /// Longest delay.
    pub delay_max: Duration,
}

/// Number of kinds.
const KINDS: usize = 4;

/// Collects the statistics.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Packets and bytes by kind.
    sent: [(u64, u64); KINDS],
    /// Delays by kind; allocated when the first packet is queued.
    delays: Option<Box<[DelayHistogram; KINDS]>>,
}

impl Accounts {
    /// `packets` packets of this kind with `bytes` IP bytes were sent.
    #[inline]
    pub(crate) const fn sent(&mut self, class: SegmentClass, packets: u64, bytes: u64) {
        let sent = &mut self.sent[kind(class)];
        sent.0 += packets;
        sent.1 += bytes;
    }

    /// A packet of this kind was sent after waiting `delay` in the scheduler's queue.
    pub(crate) fn waited(&mut self, class: SegmentClass, delay: Duration) {
        let delays = self.delays.get_or_insert_with(Box::default);
        delays[kind(class)].record(delay);
    }

    /// The figures so far.
    pub(crate) fn stats(&self) -> EgressStats {
        let of = |class| {
            let kind = kind(class);
            let (packets, bytes) = self.sent[kind];
            let mut stats = ClassStats { packets, bytes, ..ClassStats::default() };
            if let Some(delays) = &self.delays {
                let delays = &delays[kind];
                stats.queued = delays.count();
                stats.delay_p50 = delays.percentile(50);
                stats.delay_p90 = delays.percentile(90);
                stats.delay_p99 = delays.percentile(99);
                stats.delay_max = delays.max();
            }
            stats
        };
        EgressStats {
            ack: of(SegmentClass::PureAck),
            data: of(SegmentClass::Data),
            retransmit: of(SegmentClass::Retransmit),
            control: of(SegmentClass::Control(crate::policy::sched::ControlKind::Other)),
        }
    }
}

/// Index of a kind in the tables.
const fn kind(class: SegmentClass) -> usize {
    match class {
        SegmentClass::PureAck => 0,
        SegmentClass::Data => 1,
        SegmentClass::Retransmit => 2,
        SegmentClass::Control(_) => 3,
    }
}
