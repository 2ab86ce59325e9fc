//! An impairment for a limited time.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::Instant;

/// Applies another impairment between two instants. Before and after, packets pass untouched and no
/// random numbers are drawn.
#[derive(Debug)]
pub struct During {
    from: Instant,
    until: Instant,
    inner: Box<dyn Impairment>,
}

impl During {
    /// Applies `inner` from `from` until before `until`.
    #[must_use]
    pub fn new(from: Instant, until: Instant, inner: Box<dyn Impairment>) -> Self {
        Self { from, until, inner }
    }
}

impl Impairment for During {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, packet: &mut Packet, fate: &mut Fate) {
        if (self.from..self.until).contains(&cx.now) {
            self.inner.apply(cx, packet, fate);
        }
    }

    fn corrupts(&self) -> bool {
        self.inner.corrupts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impair::Loss;
    use crate::packet::test_packets::ipv4;
    use crate::rng::SimRng;

    #[test]
    fn impairs_only_in_its_time() {
        let (from, until) = (Instant::from_secs(1), Instant::from_secs(2));
        let mut during = During::new(from, until, Box::new(Loss::new(1.0)));
        let mut rng = SimRng::new(1, 0);
        let mut lost = |millis| {
            let mut fate = Fate::default();
            let mut cx = ImpairCx { now: Instant::from_millis(millis), rng: &mut rng };
            during.apply(&mut cx, &mut ipv4(0, 40, false), &mut fate);
            fate.lost
        };
        assert_eq!([999, 1_000, 1_999, 2_000].map(&mut lost), [false, true, true, false]);
    }
}
