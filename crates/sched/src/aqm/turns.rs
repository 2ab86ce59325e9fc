//! Turns of the queues in a DualQ Coupled AQM (RFC 9332, figure 1) when both queues have packets: L
//! for traffic with ECT(1) or CE, or C for everything else.

use super::MTU;
use ackline_tcp_core::Duration;

/// How turns are shared when both queues have packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Weighted round robin: of 100 bytes, C gets so many (Linux: 10). It bounds what L4S traffic
    /// that does not respond can take.
    Weighted {
        /// Percent for C, from 1 to 99.
        classic: u8,
    },
    /// Time-shifted FIFO: the older packet leaves, where one of L counts as older by this time
    /// (RFC 9332, appendix A.1: 50 ms).
    Shifted(Duration),
}

impl Default for Turns {
    fn default() -> Self {
        Self::Weighted { classic: 10 }
    }
}

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// That of L4S.
    L,
    /// The classic one.
    C,
}

/// By how much C is ahead of its share of the turns.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    turns: Turns,
    /// Bytes by which C is ahead, times the weights; L may leave while it is not positive.
    credit: i64,
}

impl Credit {
    /// Both queues are empty.
    #[must_use]
    pub const fn new(turns: Turns) -> Self {
        let mut credit = Self { turns, credit: 0 };
        credit.emptied();
        credit
    }

    /// Shares turns like this from now on.
    pub const fn set_turns(&mut self, turns: Turns) {
        self.turns = turns;
    }

    /// Weights of C and L.
    const fn weights(&self) -> (i64, i64) {
        match self.turns {
            Turns::Weighted { classic } => {
                let classic = match classic {
                    0 => 1,
                    1..=99 => classic as i64,
                    _ => 99,
                };
                (classic, 100 - classic)
            }
            Turns::Shifted(_) => (0, 0),
        }
    }

    /// Queue that sends if both have packets, whose heads have waited for these times.
    #[must_use]
    pub fn turn(&self, [l, c]: [Duration; 2]) -> Which {
        let l_goes = match self.turns {
            Turns::Weighted { .. } => self.credit <= 0,
            Turns::Shifted(by) => l + by >= c,
        };
        if l_goes { Which::L } else { Which::C }
    }

    /// A packet of so many bytes leaves while both wait.
    pub const fn left(&mut self, which: Which, bytes: u64) {
        self.credit = self.credit.saturating_add(self.cost(which, bytes));
    }

    /// It was not of `bytes`, but of `real` bytes.
    pub const fn correct(&mut self, which: Which, bytes: u64, real: u64) {
        self.credit = self.credit.saturating_sub(self.cost(which, bytes));
        self.left(which, real);
    }

    const fn cost(&self, which: Which, bytes: u64) -> i64 {
        let (classic, l4s) = self.weights();
        match which {
            Which::L => classic.saturating_mul(bytes as i64),
            Which::C => (-l4s).saturating_mul(bytes as i64),
        }
    }

    /// Both queues are empty now.
    pub const fn emptied(&mut self) {
        let (classic, l4s) = self.weights();
        self.credit = MTU as i64 * (classic - l4s);
    }
}
