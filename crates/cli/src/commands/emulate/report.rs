//! What passed the path, and whether the machine kept its times.

use super::validity::{self, DirectionRecord, Evidence};
use crate::output::numbers;
use ackline::core::Duration;
use ackline::runtime::stats::Distribution;
use ackline_emulate::stage::RealTime;
use ackline_emulate::{LinkRecord, LinkStats, Load, PathRecord, PortStats};
use serde::Serialize;
use std::fmt::Write as _;

/// The summary of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Length of the run.
    pub(super) seconds: f64,
    pub(super) up: Direction,
    pub(super) down: Direction,
    load: Shares,
    /// What the run depends on and the path does not say.
    pub(super) conditions: Vec<String>,
    /// The machine kept the times of the path.
    valid: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) reasons: Vec<String>,
}

/// Shares of the time, 0 to 1; `null` if the kernel does not tell.
#[derive(Debug, Serialize)]
struct Shares {
    /// The emulator's thread ran. Behind the path it carries the program's connections on, too.
    thread_busy: Option<f64>,
    thread_waiting: Option<f64>,
    machine_busy: Option<f64>,
}

impl From<Load> for Shares {
    fn from(Load { thread_busy, thread_waiting, machine_busy }: Load) -> Self {
        Self { thread_busy, thread_waiting, machine_busy }
    }
}

/// One direction.
#[derive(Debug, Serialize)]
pub(super) struct Direction {
    packets: u64,
    bytes: u64,
    rate_bps: f64,
    overflows: u64,
    aqm_drops: u64,
    lost: u64,
    duplicated: u64,
    marked: u64,
    /// Packets that the emulator lost, not the path: the device before the path was full, or that
    /// behind it.
    overruns: u64,
    refused: u64,
    /// Super-packets that entered the path. If they were split, `packets` and all else counts what
    /// they were split into.
    super_packets: u64,
    /// Waits in the queue.
    wait_p50_ms: f64,
    wait_p99_ms: f64,
    wait_max_ms: f64,
    /// How much later than its instant each packet left the path.
    late_p50_us: f64,
    late_p99_us: f64,
    late_max_us: f64,
    #[serde(skip)]
    pub(super) late: Distribution,
    pub(super) over_time: OverTime,
}

/// A direction over time: equal spans, of which the last one is shorter.
#[derive(Debug, Serialize)]
pub(super) struct OverTime {
    pub(super) span_s: f64,
    pub(super) rate_bps: Vec<f64>,
    /// Most in the queue.
    pub(super) queue_packets: Vec<u64>,
    pub(super) queue_bytes: Vec<u64>,
    /// Longest wait in the queue.
    pub(super) wait_ms: Vec<f64>,
    /// By the queue, its AQM, and impairments.
    pub(super) dropped: Vec<u64>,
}

/// What one direction is made from.
#[derive(Debug)]
pub(super) struct DirectionTraffic<'a> {
    pub(super) link: LinkStats,
    pub(super) record: &'a LinkRecord,
    /// Those that came to the port at its start.
    pub(super) super_packets: u64,
    /// The port at its end.
    pub(super) end: &'a PortStats,
    /// Packets that found the device before the path full.
    pub(super) overruns: u64,
}

impl Direction {
    fn new(passed: &DirectionTraffic<'_>, seconds: f64, span: Duration) -> Self {
        let DirectionTraffic { link, record, super_packets, end, overruns } = passed;
        let (waits, late) = (record.waits(), &end.lateness);
        Self {
            packets: link.delivered,
            bytes: link.delivered_bytes,
            rate_bps: rate(link.delivered_bytes, seconds),
            overflows: link.overflows,
            aqm_drops: link.aqm_drops,
            lost: link.impaired,
            duplicated: link.duplicated,
            marked: link.marked,
            overruns: *overruns,
            refused: end.refused,
            super_packets: *super_packets,
            wait_p50_ms: millis(waits.quantile(0.5)),
            wait_p99_ms: millis(waits.quantile(0.99)),
            wait_max_ms: millis(waits.max()),
            late_p50_us: micros(late.quantile(0.5)),
            late_p99_us: micros(late.quantile(0.99)),
            late_max_us: micros(late.max()),
            late: late.clone(),
            over_time: OverTime::new(record, seconds, span.as_secs_f64()),
        }
    }

    const fn kept(&self) -> DirectionRecord {
        DirectionRecord { late_p99_us: self.late_p99_us, overruns: self.overruns, refused: self.refused }
    }
}

impl OverTime {
    fn new(record: &LinkRecord, seconds: f64, span_s: f64) -> Self {
        let spans = record.spans();
        let rates = spans.iter().enumerate().map(|(place, span)| {
            let length = (seconds - place as f64 * span_s).min(span_s);
            rate(span.bytes, length)
        });
        Self {
            span_s,
            rate_bps: rates.collect(),
            queue_packets: spans.iter().map(|span| span.queue_packets).collect(),
            queue_bytes: spans.iter().map(|span| span.queue_bytes).collect(),
            wait_ms: spans.iter().map(|span| millis(span.longest_wait)).collect(),
            dropped: spans.iter().map(|span| span.dropped()).collect(),
        }
    }
}

/// Bits per second; 0 if no time passed.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

impl Summary {
    pub(super) fn new(
        time: Duration,
        [up, down]: [DirectionTraffic<'_>; 2],
        record: &PathRecord,
        load: Load,
        kind: &RealTime,
    ) -> Self {
        let seconds = time.as_secs_f64();
        let [up, down] = [up, down].map(|passed| Direction::new(&passed, seconds, record.length()));
        let spins = kind.spins();
        let reasons = validity::reasons(Evidence { time, up: up.kept(), down: down.kept(), load, spins });
        let conditions = kind.conditions();
        Self { seconds, valid: reasons.is_empty(), up, down, load: load.into(), conditions, reasons }
    }

    /// There is one more reason not to believe it.
    pub(super) fn distrust(&mut self, reason: String) {
        self.valid = false;
        self.reasons.push(reason);
    }

    /// Both directions with their names.
    pub(super) const fn directions(&self) -> [(&'static str, &Direction); 2] {
        [("up", &self.up), ("down", &self.down)]
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("emulated path, {:.1} s\n", self.seconds);
        for (name, way) in self.directions() {
            let _ = writeln!(
                text,
                "  {name:<5} {} packets, {} ({}); dropped {} full, {} by the AQM, {} lost; {} marked; queued p50 {:.1} ms, p99 {:.1} ms; late p50 {:.0} us, p99 {:.0} us, most {:.0} us",
                way.packets,
                numbers::bytes(way.bytes),
                numbers::bit_rate(way.rate_bps),
                way.overflows,
                way.aqm_drops,
                way.lost,
                way.marked,
                way.wait_p50_ms,
                way.wait_p99_ms,
                way.late_p50_us,
                way.late_p99_us,
                way.late_max_us
            );
        }
        let share =
            |name: &str, share: Option<f64>| share.map(|share| format!("{name} {:.0} %", share * 100.0));
        let Shares { thread_busy, thread_waiting, machine_busy } = self.load;
        let shares = [
            share("emulator busy", thread_busy),
            share("waiting for a processor", thread_waiting),
            share("machine busy", machine_busy),
        ];
        let shares: Vec<String> = shares.into_iter().flatten().collect();
        if !shares.is_empty() {
            let _ = writeln!(text, "  load  {}", shares.join(", "));
        }
        let (up, down) = (self.up.super_packets, self.down.super_packets);
        let _ = writeln!(text, "  run   {}; super-packets: {up} up, {down} down", self.conditions.join("; "));
        for reason in &self.reasons {
            let _ = writeln!(text, "  INVALID: {reason}");
        }
        text
    }
}
