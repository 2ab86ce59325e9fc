//! What several endpoints of one host have together: numbers, bytes, and events per interval.
//!
//! Of numbers and bytes each endpoint takes a part in advance from a [`Reserve`], counts against
//! that alone, and gives back what it does not need:
//!
//! ```text
//!   limit = left in the reserve + what each endpoint has taken;   used by an endpoint <= taken by it
//! ```
//!
//! So the sum of what is used never exceeds the limit, and what is shared is written once per step.
//! `limit.rs` has numbers, which are never exceeded; `memory.rs` has bytes, which may be overdrawn
//! by a packet's worth in each buffer. Events per interval ([`HostRate`]) are taken one by one.
//!
//! An endpoint that finds nothing left, although it has less than its part, says what it
//! [wants](Reserve::want), and others give back what they do not use.

mod limit;
mod memory;
mod rate;

pub(crate) use limit::{Limit, Pool};
pub(crate) use memory::{HostMemory, MemoryPart};
pub(crate) use rate::{HostRate, MOST};

use crate::sync::{AtomicIsize, AtomicUsize, Ordering};

/// What is left of a limit that several endpoints have together.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// What nobody has taken; negative if it is overdrawn.
    left: AtomicIsize,
    /// The most that an endpoint had no room for although it has less than its part.
    wanted: AtomicUsize,
    /// The limit.
    whole: isize,
    /// How much is taken beyond what is needed.
    step: isize,
}

impl Reserve {
    /// A limit of `whole`, of which a `step` is taken in advance.
    fn new(whole: isize, step: isize) -> Self {
        Self { left: AtomicIsize::new(whole), wanted: AtomicUsize::new(0), whole, step }
    }

    /// What nobody has taken.
    fn left(&self) -> isize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes `needed`, and up to a step more. `None` if that is not left: then nothing is written.
    fn take(&self, needed: isize) -> Option<isize> {
        let mut left = self.left();
        while needed <= left {
            let taken = needed.saturating_add(self.step).min(left);
            match self.left.compare_exchange_weak(left, left - taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(taken),
                Err(now) => left = now,
            }
        }
        None
    }

    /// Takes so much, whether it is left or not.
    fn overdraw(&self, taken: isize) {
        self.left.fetch_sub(taken, Ordering::Relaxed);
    }

    /// Gives back.
    fn give(&self, given: isize) {
        self.left.fetch_add(given, Ordering::Relaxed);
    }

    /// What somebody had no room for.
    #[inline]
    fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Says that there was no room for so much; false if that is known.
    fn want(&self, amount: usize) -> bool {
        self.wanted() < amount && self.wanted.fetch_max(amount, Ordering::Relaxed) < amount
    }

    /// Clears the request for memory: it was met, or cannot be. An endpoint that still needs some
    /// asks again.
    fn end_want(&self) {
        if self.wanted() > 0 {
            self.wanted.store(0, Ordering::Relaxed);
        }
    }
}
