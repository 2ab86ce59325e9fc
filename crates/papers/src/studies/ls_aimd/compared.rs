//! The comparison of readings: who sends in it, and in which experiments.

use super::experiment::{AQMS, Case, EXPERIMENTS, Sender};
use super::readings::READINGS;

/// Who sends in the comparison of readings, and in which experiments: jumbo frames with C = 1,
/// where the design misses the thesis; C = 2^-7, where readings that explain too much show; and two
/// experiments at 1,500 bytes.
pub(super) const COMPARED: [(Sender, &[&str]); 2] =
    [(Sender::Full, &["3A", "4A", "4E", "4F", "4G", "4H"]), (Sender::Slow, &["4E", "4H"])];

/// The cases of the comparison.
pub(super) fn compared() -> Vec<Case> {
    let mut cases = vec![];
    for aqm in AQMS {
        for (sender, names) in COMPARED {
            for of in EXPERIMENTS.into_iter().filter(|of| names.contains(&of.name)) {
                // What does nothing to jumbo frames is not tried with others.
                let readings = READINGS.into_iter().filter(|reading| match reading.name {
                    "nine-bits" => of.jumbo() && sender == Sender::Full,
                    "printed-d" => of.jumbo(),
                    _ => true,
                });
                cases.extend(readings.map(|reading| Case { of, aqm, sender, reading }));
            }
        }
    }
    cases
}
