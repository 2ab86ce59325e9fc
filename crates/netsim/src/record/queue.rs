//! A link and its queue over time.

use super::RecordOptions;
use super::delay::{DelayRecord, Delays};
use super::series::{self, Metric, Next, Thinning};
use crate::link::LinkStats;
use crate::topology::LinkId;
use crate::view::View;
use ackline_tcp_core::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// A link and its queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRecord {
    /// Index of the link among all links.
    pub link: usize,
    /// Index of the sending node.
    pub from: usize,
    /// Index of the receiving node.
    pub to: usize,
    /// Name of the queue.
    pub queue: String,
    /// Bits per second at the last sample; `None` if it takes no time.
    pub rate_bps: Option<u64>,
    /// The queue at the sampling instants.
    pub samples: Vec<QueueSample>,
    /// Metrics of the queue, one value per sample.
    pub metrics: Vec<Metric>,
    /// Queueing delays within the window.
    pub delay: DelayRecord,
    /// Of a queue with one for L4S traffic: the delays in that, and in the other.
    #[serde(default)]
    pub dual: Option<DualDelays>,
    /// Totals within the window; `None` if it contains fewer than two sampling instants.
    pub window: Option<Window>,
}

/// Queueing delays in the two queues of a DualQ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DualDelays {
    /// In the queue for L4S traffic.
    pub l4s: DelayRecord,
    /// In the other one.
    pub classic: DelayRecord,
}

/// A queue at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSample {
    /// When, ns.
    pub at_ns: u64,
    /// Packets queued.
    pub packets: u64,
    /// Bytes queued, by price and framing.
    pub bytes: u64,
    /// Totals since the start.
    pub total: Counters,
}

/// Totals of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets that arrived at the queue.
    pub offered: u64,
    /// Packets delivered to the far node.
    pub delivered: u64,
    /// Their bytes, by price and framing.
    pub delivered_bytes: u64,
    /// Packets dropped because the buffer was full.
    pub overflows: u64,
    /// Packets dropped by the AQM.
    pub aqm_drops: u64,
    /// Packets lost by an impairment.
    pub impaired: u64,
    /// Copies that an impairment made.
    pub duplicated: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Time spent serialising, ns.
    pub busy_ns: u64,
}

impl From<LinkStats> for Counters {
    fn from(stats: LinkStats) -> Self {
        Self {
            offered: stats.offered,
            delivered: stats.delivered,
            delivered_bytes: stats.delivered_bytes,
            overflows: stats.overflows,
            aqm_drops: stats.aqm_drops,
            impaired: stats.impaired,
            duplicated: stats.duplicated,
            marked: stats.marked,
            busy_ns: stats.busy.as_nanos(),
        }
    }
}

impl Counters {
    /// The difference from `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            offered: self.offered - earlier.offered,
            delivered: self.delivered - earlier.delivered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            overflows: self.overflows - earlier.overflows,
            aqm_drops: self.aqm_drops - earlier.aqm_drops,
            impaired: self.impaired - earlier.impaired,
            duplicated: self.duplicated - earlier.duplicated,
            marked: self.marked - earlier.marked,
            busy_ns: self.busy_ns - earlier.busy_ns,
        }
    }
}

/// Totals between the first and the last sampling instant of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The first instant, ns.
    pub from_ns: u64,
    /// The last instant, ns.
    pub until_ns: u64,
    /// Totals at the first instant.
    pub begin: Counters,
    /// Totals at the last.
    pub end: Counters,
}

impl Window {
    /// The difference of the totals.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.end.since(&self.begin)
    }

    /// Fraction of time in which the link was serialising, 0 to 1.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.counters().busy_ns as f64 / (self.until_ns - self.from_ns) as f64
    }

    /// Bits per second delivered to the far node.
    #[must_use]
    pub fn throughput_bps(&self) -> f64 {
        self.counters().delivered_bytes as f64 * 8e9 / (self.until_ns - self.from_ns) as f64
    }
}

/// The interval between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Its start, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub until_ns: u64,
    /// Fraction of it in which the link was serialising, 0 to 1.
    pub utilisation: f64,
    /// What was added to the totals.
    pub counters: Counters,
}

impl QueueRecord {
    /// The intervals between consecutive samples.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        self.samples.windows(2).map(|pair| {
            let counters = pair[1].total.since(&pair[0].total);
            let (from_ns, until_ns) = (pair[0].at_ns, pair[1].at_ns);
            let utilisation = counters.busy_ns as f64 / (until_ns - from_ns) as f64;
            Bin { from_ns, until_ns, utilisation, counters }
        })
    }
}

/// Collects the samples of one queue.
#[derive(Debug)]
pub(super) struct QueueRecorder {
    record: QueueRecord,
    thinning: Thinning,
    delays: Delays,
    /// Those in the queues for L4S and for classic traffic.
    dual: [Delays; 2],
    /// The first sampling instant of the window.
    begin: Option<(Instant, Counters)>,
}

impl QueueRecorder {
    pub(super) fn new(link: LinkId, options: &RecordOptions) -> Self {
        let record = QueueRecord {
            link: link.index(),
            from: 0,
            to: 0,
            queue: String::new(),
            rate_bps: None,
            samples: vec![],
            metrics: vec![],
            delay: DelayRecord::default(),
            dual: None,
            window: None,
        };
        Self {
            record,
            thinning: Thinning::new(options.max_points),
            delays: Delays::new(options.exact_delays),
            dual: [Delays::new(0), Delays::new(0)],
            begin: None,
        }
    }

    pub(super) fn record(&self) -> QueueRecord {
        let [l4s, classic] = self.dual.each_ref().map(Delays::record);
        let dual = (l4s.count > 0).then_some(DualDelays { l4s, classic });
        QueueRecord { delay: self.delays.record(), dual, ..self.record.clone() }
    }

    pub(super) fn waited(&mut self, now: Instant, delay: Duration, l4s_queue: bool) {
        self.delays.add(now, delay);
        let [l4s, classic] = &mut self.dual;
        if l4s_queue {
            l4s.add(now, delay);
        } else {
            classic.add(now, delay);
        }
    }

    pub(super) fn sample(&mut self, now: Instant, link: LinkId, view: &View<'_>, in_window: bool) {
        let record = &mut self.record;
        let total = Counters::from(view.stats(link));
        if in_window {
            let (from, begin) = *self.begin.get_or_insert((now, total));
            if from < now {
                record.window =
                    Some(Window { from_ns: from.as_nanos(), until_ns: now.as_nanos(), begin, end: total });
            }
        }
        let next = self.thinning.next(record.samples.len());
        if matches!(next, Next::HalveAndKeep | Next::HalveAndSkip) {
            series::halve(&mut record.samples);
            record.metrics.iter_mut().for_each(|metric| series::halve(&mut metric.values));
        }
        if matches!(next, Next::Skip | Next::HalveAndSkip) {
            return;
        }
        let queue = view.queue(link);
        if record.queue.is_empty() {
            let (from, to) = view.ends(link);
            (record.from, record.to) = (from.index(), to.index());
            record.queue = queue.name().to_owned();
        }
        record.rate_bps = Some(view.rate(link)).filter(|rate| *rate < u64::MAX);
        record.samples.push(QueueSample {
            at_ns: now.as_nanos(),
            packets: queue.packets() as u64,
            bytes: queue.bytes(),
            total,
        });
        let place = record.samples.len() - 1;
        let metrics = &mut record.metrics;
        queue.metrics(&mut |name, value| series::report(metrics, place, "queue", name, value));
    }
}
