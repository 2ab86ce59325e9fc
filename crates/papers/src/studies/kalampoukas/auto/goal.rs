//! The goals of an adaptive share, and how far a run is from them.

use super::shares::Shares;

/// The uplink's share that neither class can lose: 2 %.
const LEAST: f64 = 0.02;

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    /// Its name in ids.
    pub(super) name: &'static str,
    /// In words.
    pub(super) what: &'static str,
    /// The scheduler's parameter; empty: it is the default.
    pub(super) param: &'static str,
    /// The part that downloads shall have; `None`: as much as uploads.
    down: Option<f64>,
}

pub(super) const GOALS: [Goal; 3] = [
    Goal { name: "equal", what: "equal parts", param: "", down: None },
    Goal { name: "download", what: "90 % for downloads", param: "goal=0.9", down: Some(0.9) },
    Goal { name: "upload", what: "10 % for downloads", param: "goal=0.1", down: Some(0.1) },
];

impl Goal {
    /// By how much the downloads' part misses the goal; or, if that is less, the share of the
    /// uplink that could still be moved towards it: where downloads have too little, what ACKs lack
    /// of all but the least share, and where they have too much, what ACKs have beyond the least
    /// share.
    pub(super) fn miss(&self, run: &Shares) -> f64 {
        let lack = self.down.unwrap_or(run.up) - run.down;
        if lack > 0.0 {
            lack.min((1.0 - LEAST - run.acks).max(0.0))
        } else {
            (-lack).min((run.acks - LEAST).max(0.0))
        }
    }

    /// The fixed share that comes nearest to the goal. With equal parts it is the one whose smaller
    /// part is largest; otherwise that with the largest upload of those that give downloads what
    /// they shall have, or the one with the largest download.
    pub(super) fn best<'a>(&self, fixed: &[(&'a str, Shares)]) -> (&'a str, Shares) {
        let score = |run: &Shares| match self.down {
            None => (0.0, run.up.min(run.down)),
            Some(wanted) if run.down >= wanted => (wanted, run.up),
            Some(_) => (run.down, 0.0),
        };
        let best = fixed.iter().max_by(|a, b| {
            let ((a0, a1), (b0, b1)) = (score(&a.1), score(&b.1));
            a0.total_cmp(&b0).then(a1.total_cmp(&b1))
        });
        *best.expect("there are fixed shares")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(up: f64, down: f64, acks: f64) -> Shares {
        Shares { up, down, acks, f: None, downlink_bps: None }
    }

    #[test]
    fn a_miss_is_what_could_still_be_moved() {
        let [equal, download, upload] = GOALS;
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(equal.miss(&run(0.5, 0.45, 0.5)), 0.05));
        // Downloads have all that ACKs can give.
        assert!(near(equal.miss(&run(0.02, 0.01, 0.98)), 0.0));
        assert!(near(download.miss(&run(0.02, 0.3, 0.98)), 0.0));
        assert!(near(download.miss(&run(0.3, 0.6, 0.7)), 0.28));
        assert!(near(upload.miss(&run(0.95, 0.99, 0.05)), 0.03));
        assert!(near(upload.miss(&run(0.8, 0.15, 0.2)), 0.05));
    }

    #[test]
    fn the_best_fixed_share_is_nearest_to_the_goal() {
        let fixed = [("0.1", run(0.1, 0.95, 0.9)), ("0.5", run(0.5, 0.6, 0.5)), ("0.9", run(0.9, 0.12, 0.1))];
        let best = GOALS.map(|goal| goal.best(&fixed).0);
        assert_eq!(best, ["0.5", "0.1", "0.9"]);
    }
}
