//! What the probability p' means for packets of both kinds (RFC 9332, appendix A.1): L4S traffic is
//! marked with p_CL = k p', classic traffic marked or dropped with p_C = p'². Their windows go with
//! 1/p and 1/sqrt(p), so both get the same rate.

use super::pi_controller::Arithmetic;
use super::{DropReason, QueueCx};
use crate::packet::{EcnField, Packet};
use crate::rng::SimRng;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl Verdict {
    /// Does that to a packet that leaves; `None` if it is dropped.
    pub(super) fn carry_out(self, cx: &mut QueueCx<'_>, mut packet: Packet) -> Option<Packet> {
        match self {
            Self::Drop => {
                cx.drop(packet, DropReason::Aqm);
                return None;
            }
            Self::Mark => cx.mark(&mut packet),
            Self::Pass => {}
        }
        Some(packet)
    }
}

/// Turns probabilities into events at even distances (figure 4, `recur`): with random numbers a
/// queue would have to hold more to be as seldom empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recur {
    count: f64,
}

impl Recur {
    /// Adds a packet's probability, and says whether it is picked.
    pub(super) fn picks(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let picked = self.count > 1.0;
        if picked {
            self.count -= 1.0;
        }
        picked
    }
}

/// The coupling and its counts.
#[derive(Debug)]
pub(super) struct Coupling {
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
    pub(super) fn new(k: f64, arithmetic: Arithmetic) -> Self {
        let none = Recur::default();
        Self { k, arithmetic, marks: none, drops: none, classic: none }
    }

    /// The probability with which L4S traffic is marked.
    pub(super) fn p_cl(&self, prob: f64) -> f64 {
        (self.k * prob).min(1.0)
    }

    /// A packet of L4S leaves, which its own queue would mark with the probability `native`
    /// (figure 7, lines 5 to 13).
    pub(super) fn l4s(&mut self, rng: &mut SimRng, prob: f64, native: f64) -> Verdict {
        let p_cl = self.p_cl(prob);
        if p_cl < 1.0 {
            let marks = self.picks_mark(rng, native.max(p_cl));
            return if marks { Verdict::Mark } else { Verdict::Pass };
        }
        // Overload: what does not respond to marks is dropped as often as classic traffic.
        if self.picks_drop(rng, prob) {
            return Verdict::Drop;
        }
        if self.picks_mark(rng, 1.0) { Verdict::Mark } else { Verdict::Pass }
    }

    /// A classic packet leaves (figure 7, lines 14 to 20).
    pub(super) fn classic(&mut self, rng: &mut SimRng, prob: f64, ecn: EcnField) -> Verdict {
        let picked = match self.arithmetic {
            Arithmetic::Real => self.classic.picks(prob * prob),
            Arithmetic::Linux => rng.chance(prob) && rng.chance(prob),
        };
        let overload = prob * self.k >= 1.0;
        match ecn {
            _ if !picked => Verdict::Pass,
            EcnField::NotEct => Verdict::Drop,
            _ if overload => Verdict::Drop,
            _ => Verdict::Mark,
        }
    }

    fn picks_mark(&mut self, rng: &mut SimRng, likelihood: f64) -> bool {
        match self.arithmetic {
            Arithmetic::Real => self.marks.picks(likelihood),
            Arithmetic::Linux => rng.chance(likelihood),
        }
    }

    fn picks_drop(&mut self, rng: &mut SimRng, prob: f64) -> bool {
        match self.arithmetic {
            Arithmetic::Real => self.drops.picks(prob * prob),
            Arithmetic::Linux => rng.chance(prob) && rng.chance(prob),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
