//! The rule by which a live cell and its simulated twin agree.

use serde::{Deserialize, Serialize};

/// One number of a cell, live and simulated: means over the seeds whose live runs are not void.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Which number.
    pub measure: String,
    /// By the real clock.
    pub live: f64,
    /// Simulated.
    pub twin: f64,
    /// The two agree from here.
    pub least: f64,
    /// Up to here.
    pub most: f64,
    /// True if they do.
    pub agrees: bool,
}

/// What is compared: the measure, its word in tables, and by how much a number may differ from its
/// twin.
pub(super) type Rule = (&'static str, &'static str, fn(f64) -> f64);

/// Fill within 10 %, the own share within 0.1 of the link, the median queueing delay within 2 ms
/// and 15 %.
pub(super) const RULES: [Rule; 3] = [
    ("fill", "fill", |twin| 0.1 * twin.abs()),
    ("share", "share", |_| 0.1),
    ("q50", "queue", |twin| 2.0 + 0.15 * twin.abs()),
];

impl Agreement {
    pub(super) fn of((measure, _, slack): Rule, live: f64, twin: f64) -> Self {
        let (least, most) = ((twin - slack(twin)).max(0.0), twin + slack(twin));
        let agrees = (least..=most).contains(&live);
        Self { measure: measure.to_owned(), live, twin, least, most, agrees }
    }

    /// Its word in tables.
    pub(super) fn word(&self) -> &str {
        RULES.iter().find(|(measure, ..)| *measure == self.measure).map_or(&self.measure, |rule| rule.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_share_and_queue_have_room_of_their_own() {
        let agrees = |place: usize, live, twin| Agreement::of(RULES[place], live, twin).agrees;
        assert!(agrees(0, 0.90, 0.99) && !agrees(0, 0.88, 0.99));
        // A tenth of little is little.
        assert!(!agrees(0, 0.05, 0.06));
        assert!(agrees(1, 0.55, 0.46) && !agrees(1, 0.57, 0.46));
        assert!(agrees(2, 2.0, 0.0) && agrees(2, 24.9, 20.0) && !agrees(2, 25.1, 20.0));
    }
}
