//! What passed the path, and whether the machine kept its times.

use crate::output;
use ackline::core::Duration;
use ackline_emulate::{LinkStats, PortStats};
use serde::Serialize;
use std::fmt::Write as _;

/// With more of the packets later than this, the results are not those of the path: at p99.
const LATEST: Duration = Duration::from_millis(1);

/// The summary of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Length of the run.
    seconds: f64,
    up: Direction,
    down: Direction,
    /// The machine kept the times of the path.
    valid: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

/// One direction.
#[derive(Debug, Serialize)]
struct Direction {
    packets: u64,
    bytes: u64,
    rate_bps: f64,
    overflows: u64,
    aqm_drops: u64,
    lost: u64,
    duplicated: u64,
    marked: u64,
    /// Packets that the device at the end did not take.
    refused: u64,
    late_p50_us: f64,
    late_p99_us: f64,
    late_max_us: f64,
}

impl Direction {
    /// Of a link, and of the port at its end.
    fn new(link: &LinkStats, end: &PortStats, seconds: f64) -> Self {
        Self {
            packets: link.delivered,
            bytes: link.delivered_bytes,
            rate_bps: if seconds > 0.0 { link.delivered_bytes as f64 * 8.0 / seconds } else { 0.0 },
            overflows: link.overflows,
            aqm_drops: link.aqm_drops,
            lost: link.impaired,
            duplicated: link.duplicated,
            marked: link.marked,
            refused: end.refused,
            late_p50_us: micros(end.lateness.quantile(0.5)),
            late_p99_us: micros(end.lateness.quantile(0.99)),
            late_max_us: micros(end.lateness.max()),
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

impl Summary {
    /// Of the links and the ports at their ends: `[up, down]`.
    pub(super) fn new(time: Duration, links: [LinkStats; 2], ends: [&PortStats; 2]) -> Self {
        let seconds = time.as_secs_f64();
        let [up, down] = [0, 1].map(|way| Direction::new(&links[way], ends[way], seconds));
        let mut reasons = vec![];
        for (name, way) in [("up", &up), ("down", &down)] {
            if way.late_p99_us > micros(LATEST) {
                reasons.push(format!(
                    "{name}: one packet of a hundred left {:.0} us late or later; at most {:.0} us are right",
                    way.late_p99_us,
                    micros(LATEST)
                ));
            }
            if way.refused > 0 {
                reasons.push(format!("{name}: {} packets found no room behind the path", way.refused));
            }
        }
        Self { seconds, valid: reasons.is_empty(), up, down, reasons }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("emulated path, {:.1} s\n", self.seconds);
        for (name, way) in [("up", &self.up), ("down", &self.down)] {
            let _ = writeln!(
                text,
                "  {name:<5} {} packets, {} ({}); dropped {} full, {} by the AQM, {} lost; {} marked; late p50 {:.0} us, p99 {:.0} us, most {:.0} us",
                way.packets,
                output::bytes(way.bytes),
                output::bit_rate(way.rate_bps),
                way.overflows,
                way.aqm_drops,
                way.lost,
                way.marked,
                way.late_p50_us,
                way.late_p99_us,
                way.late_max_us
            );
        }
        for reason in &self.reasons {
            let _ = writeln!(text, "  INVALID: {reason}");
        }
        text
    }
}
