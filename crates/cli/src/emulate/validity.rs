//! When not to believe a run.
//!
//! Lateness is measured where packets leave the path. It does not see what happens before the path: a packet that waits until the
//! emulator reads it enters late, and nobody knows when it came. So what keeps the emulator from reading has bounds of its own.

use super::load::Load;

/// Of the packets of each direction 99 of 100 leave at most so late, µs.
pub(super) const LATEST_US: f64 = 1_000.0;

/// The emulator's thread runs at most for this share of the time, unless it spins: without a pause it has more to do than it can, and
/// packets wait before the path.
const MOST_BUSY: f64 = 0.95;

/// The thread waits for a processor at most for this share of the time. While it waits, it reads nothing.
const MOST_WAITING: f64 = 0.1;

/// All processors together are busy at most for this share of the time. Beyond, the ends of the path do not get theirs: what
/// the program and its kernel do then depends on the machine, not on the path.
const MACHINE_BUSIEST: f64 = 0.95;

/// Shorter runs are not judged by shares of time: starting the program is most of what they do, and the kernel counts in hundredths of a second.
const JUDGED_FROM_S: f64 = 1.0;

/// What happened to the packets of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    pub(super) late_p99_us: f64,
    /// Lost before the path.
    pub(super) overruns: u64,
    /// Lost behind it.
    pub(super) refused: u64,
}

/// What a run is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) seconds: f64,
    pub(super) up: Kept,
    pub(super) down: Kept,
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
    if evidence.seconds < JUDGED_FROM_S {
        return reasons;
    }
    let Load { thread_busy, thread_waiting, machine_busy } = evidence.load;
    for (what, share, most) in [
        ("the emulator was busy", thread_busy.filter(|_| !evidence.spins), MOST_BUSY),
        ("the emulator waited for a processor", thread_waiting, MOST_WAITING),
        ("the whole machine was busy", machine_busy, MACHINE_BUSIEST),
    ] {
        if let Some(share) = share.filter(|share| *share > most) {
            reasons.push(format!(
                "{what} {:.0} % of the time; at most {:.0} % are right",
                share * 100.0,
                most * 100.0
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Load = Load { thread_busy: Some(0.9), thread_waiting: Some(0.05), machine_busy: Some(0.9) };

    fn judged(seconds: f64, up: Kept, load: Load, spins: bool) -> Vec<String> {
        reasons(Evidence { seconds, up, down: Kept::default(), load, spins })
    }

    #[test]
    fn a_machine_that_keeps_up_is_believed() {
        let up = Kept { late_p99_us: 999.0, ..Kept::default() };
        assert_eq!(judged(10.0, up, CALM, false), [""; 0]);
        assert_eq!(
            judged(10.0, up, Load::default(), false),
            [""; 0],
            "what is not known is not held against it"
        );
    }

    #[test]
    fn each_bound_has_its_reason() {
        let up = Kept { late_p99_us: 3_210.4, overruns: 7, refused: 2 };
        assert_eq!(
            judged(10.0, up, CALM, false),
            [
                "up: one packet of a hundred left 3210 us late or later; at most 1000 us are right",
                "up: 7 packets found the device before the path full",
                "up: 2 packets found no room behind the path",
            ]
        );
        let loaded = Load { thread_busy: Some(0.99), thread_waiting: Some(0.4), machine_busy: Some(1.0) };
        let told = judged(10.0, Kept::default(), loaded, false);
        assert_eq!(
            told,
            [
                "the emulator was busy 99 % of the time; at most 95 % are right",
                "the emulator waited for a processor 40 % of the time; at most 10 % are right",
                "the whole machine was busy 100 % of the time; at most 95 % are right",
            ]
        );
        assert_eq!(judged(10.0, Kept::default(), loaded, true), told[1..], "who spins is always busy");
        assert_eq!(judged(0.9, Kept::default(), loaded, false), [""; 0], "too short for shares");
    }
}
