//! What the probability p' means for packets of both kinds (RFC 9332, appendix A.1): L4S traffic is
//! marked with p_CL = k p', classic traffic marked or dropped with p_C = p'². Their windows go with
//! 1/p and 1/sqrt(p), so both get the same rate.

use super::Arithmetic;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves as it is.
    Pass,
    /// It leaves with CE, for which it is capable.
    Mark,
    /// It is lost.
    Drop,
}

/// Turns probabilities into events at even distances (figure 4, `recur`): with random numbers a
/// queue would have to hold more to be as seldom empty.
#[derive(Clone, Copy, Debug, Default)]
struct Recur {
    count: f64,
}

impl Recur {
    /// Adds a packet's probability, and says whether it is picked.
    fn picks(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let picked = self.count > 1.0;
        if picked {
            self.count -= 1.0;
        }
        picked
    }
}

/// The coupling and its counts.
#[derive(Clone, Debug)]
pub struct Coupling {
    /// Ratio of p_CL and p'.
    k: f64,
    arithmetic: Arithmetic,
    marks: Recur,
    /// Packets of L4S are dropped on overload alone, so that has a count of its own: else a drop
    /// would take away what marks have added.
    drops: Recur,
    classic: Recur,
}

impl Coupling {
    /// With the ratio `k` of p_CL and p'.
    #[must_use]
    pub fn new(k: f64, arithmetic: Arithmetic) -> Self {
        let none = Recur::default();
        Self { k, arithmetic, marks: none, drops: none, classic: none }
    }

    /// Uses another ratio from now on.
    pub const fn set_ratio(&mut self, k: f64) {
        self.k = k;
    }

    /// The probability with which L4S traffic is marked.
    #[must_use]
    pub fn p_cl(&self, prob: f64) -> f64 {
        (self.k * prob).min(1.0)
    }

    /// A packet of L4S leaves, which its own queue would mark with the probability `native`
    /// (figure 7, lines 5 to 13). `chance` draws an event with a probability; [`Arithmetic::Real`]
    /// never asks it.
    pub fn l4s(&mut self, mut chance: impl FnMut(f64) -> bool, prob: f64, native: f64) -> Verdict {
        let p_cl = self.p_cl(prob);
        if p_cl < 1.0 {
            let marks = self.picks_mark(chance, native.max(p_cl));
            return if marks { Verdict::Mark } else { Verdict::Pass };
        }
        // Overload: what does not respond to marks is dropped as often as classic traffic.
        if self.picks_drop(&mut chance, prob) {
            return Verdict::Drop;
        }
        if self.picks_mark(chance, 1.0) { Verdict::Mark } else { Verdict::Pass }
    }

    /// A classic packet leaves, which is ECN-capable or not (figure 7, lines 14 to 20). `chance` as
    /// for [`l4s`](Self::l4s).
    pub fn classic(&mut self, mut chance: impl FnMut(f64) -> bool, prob: f64, capable: bool) -> Verdict {
        let picked = match self.arithmetic {
            Arithmetic::Real => self.classic.picks(prob * prob),
            Arithmetic::Linux => chance(prob) && chance(prob),
        };
        let overload = prob * self.k >= 1.0;
        match picked {
            false => Verdict::Pass,
            true if !capable || overload => Verdict::Drop,
            true => Verdict::Mark,
        }
    }

    fn picks_mark(&mut self, mut chance: impl FnMut(f64) -> bool, likelihood: f64) -> bool {
        match self.arithmetic {
            Arithmetic::Real => self.marks.picks(likelihood),
            Arithmetic::Linux => chance(likelihood),
        }
    }

    fn picks_drop(&mut self, mut chance: impl FnMut(f64) -> bool, prob: f64) -> bool {
        match self.arithmetic {
            Arithmetic::Real => self.drops.picks(prob * prob),
            Arithmetic::Linux => chance(prob) && chance(prob),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn picks(likelihood: f64, packets: usize) -> String {
        let mut recur = Recur::default();
        (0..packets).map(|_| if recur.picks(likelihood) { '1' } else { '0' }).collect()
    }

    #[test]
    fn picks_at_even_distances() {
        assert_eq!(picks(0.25, 16), "0000100010001000");
        assert_eq!(picks(0.3, 20), "00010010001001001000");
        assert_eq!(picks(1.0, 5), "01111");
        assert_eq!(picks(0.999, 5), "01111");
    }
}
