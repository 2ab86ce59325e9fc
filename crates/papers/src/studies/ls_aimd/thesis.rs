//! The thesis' numbers, and those of an independent model without noise.

use super::experiment::{Aqm, Case, EXPERIMENTS, Sender};

/// Tables 9.1 to 9.3: queueing delays in us, a column for each experiment, a row for each statistic
/// of each sender.
const TABLES: &str = include_str!("thesis.csv");
/// Mean and standard deviation in us of a small event model of the same rules.
const MODEL: &str = include_str!("model.csv");

/// Statistics, as the tables have them.
pub(super) const STATISTICS: [&str; 6] = ["min", "max", "mean", "sd", "p95", "p99"];

/// The value of a statistic in Tables 9.1 to 9.3; `None` if it was not run.
pub(super) fn thesis(case: &Case, statistic: &str) -> Option<f64> {
    let column = EXPERIMENTS.iter().position(|of| of.name == case.of.name)?;
    let mut rows = TABLES.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let key = [case.aqm.table(), case.aqm.name(), case.sender.key(), statistic];
    let row = rows.find(|row| row.get(..4) == Some(&key[..]))?;
    row.get(4 + column)?.parse().ok()
}

/// Mean and standard deviation of the model.
pub(super) fn model(case: &Case) -> Option<(f64, f64)> {
    let mut rows = MODEL.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let row =
        rows.find(|row| row.get(..3) == Some(&[case.of.name, case.aqm.name(), case.sender.key()][..]))?;
    Some((row.get(3)?.parse().ok()?, row.get(4)?.parse().ok()?))
}

/// Two columns of the printed tables are not the experiment's own: `DCTCP`, 4G, repeats base RTT
/// 1,000 us, and C = 2^-7, 4E, instantaneous, repeats the step. What the other columns lead one to
/// expect, mean.
pub(super) fn corrected_mean(case: &Case) -> Option<f64> {
    match (case.aqm, case.sender, case.of.name) {
        (Aqm::Step, Sender::Aimd, "4G") => Some(2_888.0),
        (Aqm::Instantaneous, Sender::Slow, "4E") => Some(290.0),
        _ => thesis(case, "mean"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::ls_aimd::experiment::{AQMS, Experiment};
    use crate::studies::ls_aimd::readings::PROTOTYPE;

    fn case(name: &str, aqm: Aqm, sender: Sender) -> Case {
        let of: Experiment = EXPERIMENTS.into_iter().find(|of| of.name == name).unwrap();
        Case { of, aqm, sender, reading: PROTOTYPE }
    }

    #[test]
    fn every_run_of_the_thesis_has_its_six_numbers_on_the_grid() {
        for aqm in AQMS {
            for of in EXPERIMENTS {
                for sender in [Sender::Aimd, Sender::Slow, Sender::Full] {
                    let case = Case { of, aqm, sender, reading: PROTOTYPE };
                    for statistic in STATISTICS {
                        let value = thesis(&case, statistic);
                        assert_eq!(value.is_some(), sender.runs(&of), "{case} {statistic}");
                        let on_grid = |us: f64| (us / 32.768).ceil() * 32.768 - us;
                        if let Some(value) = value.filter(|_| !matches!(statistic, "mean" | "sd")) {
                            // Cut to whole microseconds.
                            assert!(on_grid(value) < 1.0, "{case} {statistic} {value}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_stand_where_the_thesis_has_them() {
        assert_eq!(thesis(&case("4E", Aqm::Step, Sender::Full), "mean"), Some(1630.0));
        assert_eq!(thesis(&case("3B", Aqm::Ramp, Sender::Aimd), "p99"), Some(1507.0));
        assert_eq!(thesis(&case("3B", Aqm::Ramp, Sender::Slow), "p99"), None);
        assert_eq!(thesis(&case("4H", Aqm::Instantaneous, Sender::Slow), "sd"), Some(149.0));
        assert_eq!(model(&case("4H", Aqm::Ramp, Sender::Slow)), Some((222.0, 147.0)));
        assert_eq!(model(&case("4B", Aqm::Step, Sender::Aimd)), None);
    }
}
