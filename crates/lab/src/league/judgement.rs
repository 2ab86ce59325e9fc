//! From numbers over seeds to a verdict: an interval is inside a bar, outside of it, or across it.

use super::statistics::Interval;
use serde::{Deserialize, Serialize};

/// What an interval says of its bars. From best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole 95 % interval is inside the bar.
    Pass,
    /// The interval lies across a bar: more seeds would tell.
    Undecided,
    /// The whole 95 % interval is outside the bar, and not worse than the second one.
    Warn,
    /// The whole 99 % interval is beyond the second bar; or the run did not end as it should.
    Fail,
}

impl Verdict {
    /// Its sign in tables.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Pass => "+",
            Self::Undecided => "~",
            Self::Warn => "!",
            Self::Fail => "x",
        }
    }
}

/// One comparison: values of one per seed, and two bars. Several are alternatives: the best counts.
#[derive(Clone, Debug)]
pub(super) struct Test {
    /// One value per seed.
    pub(super) values: Vec<f64>,
    /// Ratios and times: intervals are of logarithms.
    pub(super) log: bool,
    pub(super) bars: Bars,
}

/// Up to where a value passes, and up to where it only warns.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bars {
    AtLeast(f64, f64),
    AtMost(f64, f64),
    /// Between two numbers; between two others it warns.
    Within((f64, f64), (f64, f64)),
}

impl Bars {
    /// True if the whole of an interval is inside the first bar.
    fn passes(self, (low, high): (f64, f64)) -> bool {
        match self {
            Self::AtLeast(pass, _) => low >= pass,
            Self::AtMost(pass, _) => high <= pass,
            Self::Within((from, until), _) => low >= from && high <= until,
        }
    }

    /// True if the whole of an interval is outside the first bar.
    fn misses(self, (low, high): (f64, f64)) -> bool {
        match self {
            Self::AtLeast(pass, _) => high < pass,
            Self::AtMost(pass, _) => low > pass,
            Self::Within((from, until), _) => high < from || low > until,
        }
    }

    /// True if the whole of an interval is beyond the second bar.
    fn fails(self, (low, high): (f64, f64)) -> bool {
        match self {
            Self::AtLeast(_, warn) => high < warn,
            Self::AtMost(_, warn) => low > warn,
            Self::Within(_, (from, until)) => high < from || low > until,
        }
    }
}

impl Test {
    /// Of intervals; with `by_mean` of the mean alone, which is no verdict.
    pub(super) fn verdict(&self, by_mean: bool) -> Option<Verdict> {
        let Interval { mean, ci95, ci99, .. } = Interval::of(&self.values, self.log)?;
        let (ci95, ci99) = if by_mean { ((mean, mean), (mean, mean)) } else { (ci95, ci99) };
        Some(if self.bars.passes(ci95) {
            Verdict::Pass
        } else if self.bars.fails(ci99) {
            Verdict::Fail
        } else if self.bars.misses(ci95) {
            Verdict::Warn
        } else {
            Verdict::Undecided
        })
    }
}

/// The best verdict of alternatives.
pub(super) fn best(tests: &[Test], by_mean: bool) -> Option<Verdict> {
    tests.iter().filter_map(|test| test.verdict(by_mean)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(values: &[f64], bars: Bars) -> Verdict {
        Test { values: values.to_vec(), log: false, bars }.verdict(false).unwrap()
    }

    #[test]
    fn intervals_are_inside_across_or_outside() {
        let bars = Bars::AtLeast(0.95, 0.90);
        assert_eq!(verdict(&[0.97, 0.98, 0.97, 0.98], bars), Verdict::Pass);
        assert_eq!(verdict(&[0.94, 0.97, 0.95, 0.96], bars), Verdict::Undecided);
        assert_eq!(verdict(&[0.92, 0.93, 0.92, 0.93], bars), Verdict::Warn);
        assert_eq!(verdict(&[0.85, 0.86, 0.85, 0.86], bars), Verdict::Fail);
        // The mean is beyond the second bar, but not the whole 99 % interval.
        assert_eq!(verdict(&[0.85, 0.89, 0.91, 0.87], bars), Verdict::Warn);
        assert_eq!(verdict(&[2.0], Bars::AtMost(1.0, 3.0)), Verdict::Warn);
        assert_eq!(verdict(&[0.5], Bars::Within((-0.5, 1.4), (-1.0, 1.7))), Verdict::Pass);
    }

    #[test]
    fn the_best_of_alternatives_counts() {
        let test = |value: f64, bars| Test { values: vec![value; 3], log: false, bars };
        let tests = [test(0.8, Bars::AtLeast(0.95, 0.9)), test(0.99, Bars::AtLeast(0.98, 0.95))];
        assert_eq!(best(&tests, false), Some(Verdict::Pass));
        assert_eq!(best(&[], false), None);
    }
}
