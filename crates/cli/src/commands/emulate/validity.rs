//! When not to believe a run.
//!
//! What happened to the packets is judged here, and what kept the emulator from its work by
//! [`Load`].

use ackline::core::Duration;
use ackline_emulate::{LATEST, Load};

/// Of the packets of each direction 99 of 100 leave at most so late, µs.
pub(super) const LATEST_US: f64 = LATEST.as_nanos() as f64 / 1e3;

/// What happened to the packets of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectionRecord {
    pub(super) late_p99_us: f64,
    /// Lost before the path.
    pub(super) overruns: u64,
    /// Lost behind it.
    pub(super) refused: u64,
}

/// What a run is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) time: Duration,
    pub(super) up: DirectionRecord,
    pub(super) down: DirectionRecord,
    pub(super) load: Load,
    /// The emulator stayed awake between packets.
    pub(super) spins: bool,
}

/// Why the run is not that of the path; empty if it is.
pub(super) fn reasons(evidence: Evidence) -> Vec<String> {
    let mut reasons = vec![];
    for (name, way) in [("up", evidence.up), ("down", evidence.down)] {
        if way.late_p99_us > LATEST_US {
            reasons.push(format!(
                "{name}: one packet of a hundred left {:.0} us late or later; at most {LATEST_US:.0} us are right",
                way.late_p99_us
            ));
        }
        if way.overruns > 0 {
            let overruns = way.overruns;
            reasons.push(format!("{name}: {overruns} packets found the device before the path full"));
        }
        if way.refused > 0 {
            reasons.push(format!("{name}: {} packets found no room behind the path", way.refused));
        }
    }
    reasons.extend(evidence.load.reasons(evidence.time, evidence.spins));
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(up: DirectionRecord, load: Load) -> Vec<String> {
        let time = Duration::from_secs(10);
        reasons(Evidence { time, up, down: DirectionRecord::default(), load, spins: false })
    }

    #[test]
    fn a_machine_that_keeps_up_is_believed() {
        let up = DirectionRecord { late_p99_us: 999.0, ..DirectionRecord::default() };
        assert_eq!(judged(up, Load::default()), [""; 0]);
    }

    #[test]
    fn each_bound_has_its_reason() {
        let up = DirectionRecord { late_p99_us: 3_210.4, overruns: 7, refused: 2 };
        let load = Load { machine_busy: Some(1.0), ..Load::default() };
        assert_eq!(
            judged(up, load),
            [
                "up: one packet of a hundred left 3210 us late or later; at most 1000 us are right",
                "up: 7 packets found the device before the path full",
                "up: 2 packets found no room behind the path",
                "the whole machine was busy 100 % of the time; at most 95 % are right",
            ]
        );
    }
}
