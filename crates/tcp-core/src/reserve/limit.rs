//! How many there may be of something, of all endpoints of a host together.
//!
//! An endpoint takes another block when its allotment is used up, and gives blocks back when more
//! than two are unused. Nothing else writes what is shared: not an endpoint that refuses because
//! nothing is left, and not one whose number goes up and down a little.
//!
//! **A block** is one of 64 for each endpoint. So endpoints with nothing to do withhold at most a
//! thirty-second of the limit from the others, and nothing of a limit of less than 128 for each
//! endpoint, where a block is one. With larger blocks each keeps one from the start, whatever the
//! others use.
//!
//! **Nobody is left with nothing for ever.** An endpoint that has less than an equal part, and
//! finds nothing left, says so. Then endpoints give back all that they do not use, and one with
//! more than an equal part that is at its limit as well gives up a place of its own when it next
//! replaces something.

use super::Reserve;
use crate::sync::Arc;

/// What is left of a limit.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Pool {
    reserve: Reserve,
    /// How much is taken at a time.
    block: u32,
    /// An equal part.
    part: u32,
}

impl Pool {
    /// A limit of `whole`, at most `isize::MAX`, for `endpoints` endpoints.
    pub(crate) fn new(whole: u32, endpoints: usize) -> Self {
        let endpoints = u32::try_from(endpoints).unwrap_or(u32::MAX).max(1);
        let block = (whole / endpoints.saturating_mul(64)).max(1);
        Self {
            reserve: Reserve::new(isize::try_from(whole).unwrap_or(isize::MAX), block as isize - 1),
            block,
            part: whole / endpoints,
        }
    }

    /// Takes a block, or what is left of one.
    fn take(&self) -> u32 {
        self.reserve.take(1).unwrap_or(0) as u32
    }

    fn give(&self, places: u32) {
        self.reserve.give(places as isize);
    }

    fn is_wanted(&self) -> bool {
        self.reserve.wanted() > 0
    }

    /// An endpoint keeps so much, whatever others need.
    const fn kept(&self) -> u32 {
        if self.block > 1 { self.block } else { 0 }
    }
}

/// A limit of one endpoint: its own, or its allotment of the host's.
#[derive(Debug)]
pub(crate) struct Limit {
    allotted: u32,
    /// Given up already, and still in use.
    owed: u32,
    pool: Option<Arc<Pool>>,
}

impl Limit {
    /// Of an endpoint alone.
    pub(crate) const fn own(most: u32) -> Self {
        Self { allotted: most, owed: 0, pool: None }
    }

    /// Of one of several endpoints.
    pub(crate) fn of_host(pool: Arc<Pool>) -> Self {
        let allotted = if pool.kept() > 0 { pool.take() } else { 0 };
        Self { allotted, owed: 0, pool: Some(pool) }
    }

    /// True if it is an allotment.
    pub(crate) const fn is_shared(&self) -> bool {
        self.pool.is_some()
    }

    /// True if there may be one more than `used`.
    #[inline]
    pub(crate) fn has_room(&mut self, used: usize) -> bool {
        used < self.allotted as usize || self.grows_beyond(used)
    }

    /// The same as far as one can tell, for one that comes later if at all: takes nothing for it.
    #[inline]
    pub(crate) fn may_have_room(&mut self, used: usize) -> bool {
        used < self.allotted as usize || self.may_grow()
    }

    /// True if there may be `used`.
    #[inline]
    pub(crate) fn covers(&mut self, used: usize) -> bool {
        used.checked_sub(1).is_none_or(|others| self.has_room(others))
    }

    /// True if at least half of the limit is in use, by all endpoints together; this one has
    /// `used`.
    pub(crate) fn is_half_used(&self, used: usize) -> bool {
        match &self.pool {
            None => used >= self.allotted as usize / 2,
            Some(pool) => {
                let unused = (self.allotted as usize).saturating_sub(used);
                let left = pool.reserve.left().unsigned_abs();
                let whole = pool.reserve.whole.unsigned_abs();
                whole.saturating_sub(left.saturating_add(unused)) >= whole / 2
            }
        }
    }

    #[cold]
    fn grows_beyond(&mut self, used: usize) -> bool {
        let Some(pool) = &self.pool else { return false };
        while used >= self.allotted as usize {
            let taken = pool.take();
            if taken == 0 {
                self.find_nothing();
                return false;
            }
            self.allotted += taken;
        }
        true
    }

    #[cold]
    fn may_grow(&mut self) -> bool {
        let grows = self.pool.as_ref().is_some_and(|pool| pool.reserve.left() > 0);
        if !grows {
            self.find_nothing();
        }
        grows
    }

    /// Nothing is left in the pool.
    fn find_nothing(&mut self) {
        let Some(pool) = &self.pool else { return };
        if self.allotted < pool.part {
            pool.reserve.want(1);
        } else if self.allotted > pool.part && self.owed == 0 && pool.is_wanted() {
            self.allotted -= 1;
            self.owed = 1;
        }
    }

    /// Gives back what is not needed for the `used` ones.
    #[inline]
    pub(crate) fn settle(&mut self, used: usize) {
        if self.pool.is_some() && used < (self.allotted + self.owed) as usize {
            self.give_back(used as u32);
        }
    }

    fn give_back(&mut self, used: u32) {
        let Some(pool) = &self.pool else { return };
        let mut given = 0;
        if self.owed > 0 && used <= self.allotted {
            given = core::mem::take(&mut self.owed);
        }
        let kept = pool.kept();
        let (most, least) = if pool.is_wanted() { (0, 0) } else { (2 * kept, kept) };
        if self.allotted - used.min(self.allotted) > most {
            let allotted = (used + least).max(kept).min(self.allotted);
            given += self.allotted - allotted;
            self.allotted = allotted;
        }
        if given > 0 {
            pool.give(given);
            // Whoever still finds nothing says so again.
            pool.reserve.end_want();
        }
    }
}

/// What it has been allotted is the others'.
impl Drop for Limit {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(self.allotted + self.owed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limit, Pool};
    use crate::sync::Arc;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// An endpoint that holds so many.
    struct Holder {
        limit: Limit,
        used: usize,
    }

    impl Holder {
        fn enter(&mut self) -> bool {
            let fits = self.limit.has_room(self.used);
            self.used += usize::from(fits);
            fits
        }

        /// Enters, in place of others of its own if need be.
        fn replace(&mut self) -> bool {
            while !self.limit.has_room(self.used) {
                if self.used == 0 {
                    self.limit.settle(0);
                    return false;
                }
                self.used -= 1;
            }
            self.used += 1;
            self.limit.settle(self.used);
            true
        }

        fn leave(&mut self) {
            self.used = self.used.saturating_sub(1);
            self.limit.settle(self.used);
        }

        fn fill(&mut self) -> usize {
            while self.enter() {}
            self.used
        }
    }

    fn holders(whole: u32, endpoints: usize) -> Vec<Holder> {
        let pool = Arc::new(Pool::new(whole, endpoints));
        (0..endpoints).map(|_| Holder { limit: Limit::of_host(pool.clone()), used: 0 }).collect()
    }

    fn sum(holders: &[Holder]) -> usize {
        holders.iter().map(|holder| holder.used).sum()
    }

    #[test]
    fn an_endpoint_alone_has_its_limit() {
        let mut alone = Holder { limit: Limit::own(3), used: 0 };
        assert_eq!(alone.fill(), 3);
        alone.leave();
        assert!(alone.enter() && !alone.enter());
        assert!(!Limit::own(0).has_room(0));
        assert!(!Limit::own(5).is_half_used(1) && Limit::own(5).is_half_used(2));
    }

    #[test]
    fn small_limits_are_exact_whoever_had_them_before() {
        for whole in 0..10 {
            for endpoints in 1..=4 {
                let mut holders = holders(whole, endpoints);
                for first in 0..endpoints {
                    assert_eq!(holders[first].fill(), whole as usize);
                    for holder in &mut holders {
                        assert!(!holder.enter());
                    }
                    (0..whole).for_each(|_| holders[first].leave());
                }
            }
        }
    }

    #[test]
    fn one_may_have_nearly_all() {
        // A reserve counts in `isize`: on 32 bits half as many.
        let largest = u32::try_from(isize::MAX).unwrap_or(u32::MAX);
        for whole in [1_000, 16_384, 1 << 20, largest] {
            for endpoints in [2, 3, 64] {
                let pool = Arc::new(Pool::new(whole, endpoints));
                let mut limits: Vec<_> = (0..endpoints).map(|_| Limit::of_host(pool.clone())).collect();
                // All have had many, and have none left.
                for limit in &mut limits {
                    assert!(limit.has_room((whole / endpoints as u32) as usize / 2));
                    limit.settle(0);
                }
                let least = whole as usize - whole as usize / 32;
                assert!(limits[0].has_room(least - 1), "{least} of {whole}, of {endpoints}");
                assert!(!limits[0].has_room(whole as usize));
            }
        }
    }

    #[test]
    fn who_has_less_than_its_part_gets_what_others_replace() {
        // Of a hundred, the first has all; both then replace what they have.
        let mut holders = holders(100, 2);
        assert_eq!(holders[0].fill(), 100);
        assert!(!holders[1].replace(), "it has nothing");
        for _ in 0..500 {
            holders[0].replace();
            holders[1].replace();
            assert!(sum(&holders) <= 100);
        }
        assert_eq!((holders[0].used, holders[1].used), (50, 50));
        // What one leaves, the other may have.
        (0..50).for_each(|_| holders[0].leave());
        assert_eq!(holders[1].fill(), 100);
    }

    #[test]
    fn what_is_wanted_is_not_kept_unused() {
        let mut holders = holders(12_800, 2);
        let mut fill = |at: usize, most: usize| {
            while holders[at].used < most && holders[at].enter() {}
            holders[at].used
        };
        assert_eq!(fill(0, 12_600), 12_600);
        // A block is 100, and each keeps one.
        assert_eq!(fill(1, usize::MAX), 200);
        assert_eq!(fill(0, 12_700), 12_600);
        holders[0].leave();
        assert_eq!((holders[1].fill(), sum(&holders)), (201, 12_800));
        // It may be gone.
        holders.remove(0);
        assert_eq!(holders[0].fill(), 12_800);
    }

    #[test]
    fn half_is_that_of_all() {
        let mut holders = holders(10, 2);
        for (at, half) in [(0, false), (1, false), (0, false), (1, false), (0, true)] {
            assert!(holders[at].enter());
            let seen = holders.iter().map(|holder| holder.limit.is_half_used(holder.used));
            assert!(seen.into_iter().all(|seen| seen == half));
        }
    }

    proptest! {
        /// Whatever they do, together they never have more than the limit; and after that one of
        /// them can have nearly all.
        #[test]
        fn the_sum_is_bounded(
            whole in prop_oneof![0u32..10, 0u32..2_000],
            endpoints in 1usize..5,
            steps in prop::collection::vec((0usize..5, 0u8..4, 1usize..300), 0..300),
        ) {
            let mut holders = holders(whole, endpoints);
            for (at, step, times) in steps {
                let holder = &mut holders[at % endpoints];
                for _ in 0..times {
                    match step {
                        0 => { holder.enter(); }
                        1 => { holder.replace(); }
                        2 => holder.leave(),
                        _ => (0..3).for_each(|_| holder.leave()),
                    }
                }
                prop_assert!(sum(&holders) <= whole as usize);
                let used: Vec<_> = holders.iter().map(|holder| holder.used).collect();
                let allotted = holders.iter().map(|holder| holder.limit.allotted + holder.limit.owed);
                let allotted: Vec<_> = allotted.collect();
                prop_assert!(used.iter().zip(&allotted).all(|(used, allotted)| used <= &(*allotted as usize)));
            }
            let mut least = vec![];
            for first in 0..endpoints {
                for holder in &mut holders {
                    while holder.used > 0 { holder.leave(); }
                    holder.limit.settle(0);
                }
                least.push(holders[first].fill());
            }
            prop_assert!(least.iter().all(|most| *most >= whole as usize - whole as usize / 32));
        }
    }
}
