//! How the driver waits for departures held back by pacing or a shaper.
//!
//! A sleeping driver leaves all waiting to its [timer], whose wake-ups come some tens of
//! microseconds late (on Linux; milliseconds elsewhere). It sets the timer earlier by the time it
//! takes to make a packet, which it measures. A spinning driver sleeps until shortly before the
//! departure and then stays awake. It also measures how early it must wake:
//!
//! ```text
//!   sleeps             yields to other tasks, again and again     holds on    prepares     departs
//!  ───────────────────┬──────────────────────────────────────────┬───────────┬────────────┬────────►
//!                     │◄───────── as late as wake-ups seldom are ┼───────────┼────────────┤
//!                                                                │◄── as long as yields ──┤
//!                                                                        as it takes to ──┤
//!                                                                        make a packet
//! ```
//!
//! While it yields, other tasks of the runtime run and packets are received as usual. While it
//! holds on, nothing else runs on its thread: at most 20 µs per departure, and without the stack's
//! lock. Then it makes the packet as if its time had come, and holds it back until then: for at
//! most 3 µs, under the lock.

use crate::timer;
use ackline_tcp_core::{Duration, Instant};
use std::pin::pin;
use std::task::Context;

/// If the driver sleeps, segments whose departures are closer than this leave together: it cannot
/// wake up much more often.
const SLEEPING_TICK: Duration = timer::RESOLUTION;

/// The same for a spinning driver: a few times the cost of sending one packet.
const SPINNING_TICK: Duration = Duration::from_micros(5);

/// Longest time for which a spinning driver keeps its thread from other tasks.
const HOLD_LIMIT: Duration = Duration::from_micros(20);

/// Longest time for which a packet is made before its departure.
const PREPARE_LIMIT: Duration = Duration::from_micros(3);

/// How the driver waits for departures held back by pacing or a shaper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pacing {
    /// Sleep until the [timer](crate::timer::Timer) expires. Departures are some tens of
    /// microseconds late on Linux, a millisecond or two elsewhere, and each costs a wake-up.
    #[default]
    Timer,
    /// Sleep until shortly before the departure, then poll the clock between other tasks of the
    /// runtime. Departures are late by less than a microsecond, as long as the machine has a
    /// processor for this thread. It costs processor time: see
    /// [`Stats::awake`](crate::stats::Stats::awake).
    Spin {
        /// Maximum time before a departure at which it wakes. Within this limit it wakes as early
        /// as all but the latest of 256 wake-ups have needed.
        longest: std::time::Duration,
    },
}

impl Pacing {
    /// [`Spin`](Self::Spin), for each departure at most four times what the timer resolves: 200 µs
    /// on Linux, 4 ms elsewhere.
    #[must_use]
    pub const fn spin() -> Self {
        Self::Spin { longest: std::time::Duration::from_nanos(4 * timer::RESOLUTION.as_nanos()) }
    }

    /// Departures closer together than this are treated as one.
    pub(crate) const fn tick(self) -> Duration {
        match self {
            Self::Timer => SLEEPING_TICK,
            Self::Spin { .. } => SPINNING_TICK,
        }
    }
}

/// What to do until a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Sleep until then.
    Sleep(Instant),
    /// Let other tasks run, and look again.
    Yield,
    /// Keep the thread until the first instant, then make what departs at the second.
    Hold(Instant, Instant),
}

/// Decides how to wait, and measures how long waiting takes; for drivers of your own, too.
#[derive(Clone, Debug)]
pub struct Waiter {
    spin: Option<Spin>,
    /// Time from the end of a wait until its packet is made.
    prepare: Bound,
}

#[derive(Clone, Debug)]
struct Spin {
    /// Delay of timer wake-ups.
    wake_up: Bound,
    /// Time of a yield, including what the driver does before and after it.
    turn: Bound,
}

impl Waiter {
    /// Nothing has been measured yet.
    #[must_use]
    pub fn new(pacing: Pacing) -> Self {
        let spin = match pacing {
            Pacing::Timer => None,
            Pacing::Spin { longest } => Some(Spin {
                wake_up: Bound::new(Duration::from_micros(100), longest.into()),
                turn: Bound::new(Duration::from_micros(5), HOLD_LIMIT.min(longest.into())),
            }),
        };
        Self { spin, prepare: Bound::new(Duration::from_micros(1), PREPARE_LIMIT) }
    }

    /// How to wait for a departure at `at`.
    #[must_use]
    pub fn wait(&self, now: Instant, at: Instant) -> Wait {
        let (left, prepare) = (at.since(now), self.prepare.get());
        match &self.spin {
            // If woken early, it goes back to sleep.
            None => Wait::Sleep(if left > prepare { at - prepare } else { at }),
            Some(Spin { wake_up, .. }) if left > wake_up.get() => Wait::Sleep(at - wake_up.get()),
            Some(Spin { turn, .. }) if left > turn.get() + prepare => Wait::Yield,
            Some(_) => Wait::Hold(at - prepare, at),
        }
    }

    /// A sleeping driver woke `late` after the intended time.
    pub fn on_wake_up(&mut self, late: Duration) {
        if let Some(spin) = &mut self.spin {
            spin.wake_up.take(late);
        }
    }

    /// `took` passed from one decision to yield until the next one can be acted on.
    pub fn on_turn(&mut self, took: Duration) {
        if let Some(spin) = &mut self.spin {
            spin.turn.take(took);
        }
    }

    /// The packet was ready `took` after the end of a wait.
    pub fn on_ready(&mut self, took: Duration) {
        self.prepare.take(took);
    }

    /// How long before a departure the driver wakes; zero if it does not spin.
    pub(crate) fn lead(&self) -> Duration {
        self.spin.as_ref().map_or(Duration::ZERO, |spin| spin.wake_up.get())
    }
}

/// Reschedules the task to run after other tasks, and after the tokio runtime has polled I/O and
/// timers.
pub fn let_others_run(cx: &mut Context<'_>) {
    // A waker alone would run before the runtime polls.
    let again = pin!(tokio::task::yield_now()).poll(cx);
    debug_assert!(again.is_pending(), "a yield waits for the runtime");
}

/// A bound that holds for all but one of [`Bound::SELDOM`] measured times, capped by its own limit.
///
/// A time above it raises it by an eighth; one below lowers it by less, such that both balance when
/// one of `SELDOM` is above. So one number tracks the quantile, and a single outlier, however long,
/// moves it no more than any other time.
#[derive(Clone, Copy, Debug)]
struct Bound {
    picos: u64,
    most: u64,
}

impl Bound {
    const SELDOM: u64 = 256;
    const PICOS_PER_NANO: u64 = 1000;
    /// Half a microsecond: anything less is not worth waiting for.
    const LEAST: u64 = 500 * Self::PICOS_PER_NANO;

    fn new(start: Duration, most: Duration) -> Self {
        let most = most.as_nanos().saturating_mul(Self::PICOS_PER_NANO).max(Self::LEAST);
        let picos = start.as_nanos().saturating_mul(Self::PICOS_PER_NANO).min(most);
        Self { picos, most }
    }

    const fn get(&self) -> Duration {
        Duration::from_nanos(self.picos / Self::PICOS_PER_NANO)
    }

    fn take(&mut self, time: Duration) {
        let step = self.picos / 8;
        self.picos = if time > self.get() {
            self.picos.saturating_add(step).min(self.most)
        } else {
            (self.picos - step / (Self::SELDOM - 1)).max(Self::LEAST)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Instant = Instant::from_secs(9);

    fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    fn spinning(longest: u64) -> Waiter {
        Waiter::new(Pacing::Spin { longest: std::time::Duration::from_micros(longest) })
    }

    /// Evenly distributed numbers below `below`, always the same.
    fn draws(below: u64) -> impl Iterator<Item = u64> {
        let mut state = 1_u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        })
    }

    #[test]
    fn a_sleeping_driver_sleeps_until_it_must_make_the_packet() {
        let mut waiter = Waiter::new(Pacing::Timer);
        for late in [0, 50, 5000] {
            waiter.on_wake_up(micros(late));
            assert_eq!(waiter.wait(AT - micros(100), AT), Wait::Sleep(AT - micros(1)));
            assert_eq!(waiter.wait(AT - micros(1), AT), Wait::Sleep(AT), "woken early");
            assert_eq!(waiter.wait(AT + micros(1), AT), Wait::Sleep(AT), "it is due");
        }
        for _ in 0..1000 {
            waiter.on_ready(micros(2));
        }
        let Wait::Sleep(until) = waiter.wait(AT - micros(100), AT) else { panic!("it sleeps") };
        assert!((1800..2500).contains(&AT.since(until).as_nanos()), "{:?} before", AT.since(until));
        assert_eq!(waiter.lead(), Duration::ZERO);
    }

    #[test]
    fn a_spinning_driver_sleeps_then_yields_then_holds() {
        let waiter = spinning(1000);
        assert_eq!(waiter.wait(AT - micros(1000), AT), Wait::Sleep(AT - micros(100)));
        assert_eq!(waiter.wait(AT - micros(101), AT), Wait::Sleep(AT - micros(100)));
        assert_eq!(waiter.wait(AT - micros(100), AT), Wait::Yield);
        assert_eq!(waiter.wait(AT - micros(7), AT), Wait::Yield);
        // It may take 5 us until the next decision, and 1 us to make a packet.
        assert_eq!(waiter.wait(AT - micros(6), AT), Wait::Hold(AT - micros(1), AT));
        assert_eq!(waiter.wait(AT + micros(1), AT), Wait::Hold(AT - micros(1), AT), "it is due");
    }

    #[test]
    fn it_wakes_as_early_as_all_but_the_latest_wake_ups_need() {
        let mut waiter = spinning(1000);
        // Evenly from 20 to 40 us: the 255th of 256 is late by 39.9 us.
        for late in draws(20_000).take(20_000) {
            waiter.on_wake_up(Duration::from_nanos(20_000 + late));
        }
        let lead = waiter.lead();
        assert!((micros(38)..micros(46)).contains(&lead), "{lead:?}");
        // The machine gets slower.
        for late in draws(20_000).take(2_000) {
            waiter.on_wake_up(Duration::from_nanos(120_000 + late));
        }
        let lead = waiter.lead();
        assert!((micros(136)..micros(160)).contains(&lead), "{lead:?}");
    }

    #[test]
    fn a_wake_up_that_is_far_too_late_moves_it_no_more_than_another() {
        let (mut once, mut far) = (spinning(1000), spinning(1000));
        once.on_wake_up(micros(101));
        far.on_wake_up(Duration::from_secs(10));
        assert_eq!(once.lead(), far.lead());
        assert!(far.lead() < micros(120), "{:?}", far.lead());
    }

    #[test]
    fn it_wakes_no_earlier_than_it_may_and_holds_no_longer() {
        let mut waiter = spinning(300);
        for _ in 0..1000 {
            waiter.on_wake_up(micros(5000));
            waiter.on_turn(micros(5000));
            waiter.on_ready(micros(5000));
        }
        assert_eq!(waiter.lead(), micros(300));
        assert_eq!(waiter.wait(AT - micros(24), AT), Wait::Yield);
        let longest = HOLD_LIMIT + PREPARE_LIMIT;
        assert_eq!(waiter.wait(AT - longest, AT), Wait::Hold(AT - PREPARE_LIMIT, AT));
        // Nor is it ever too late to hold on for what a yield takes at least.
        let least = Duration::from_nanos(500);
        for _ in 0..100_000 {
            waiter.on_turn(Duration::ZERO);
            waiter.on_ready(Duration::ZERO);
        }
        assert_eq!(waiter.wait(AT - micros(1), AT), Wait::Hold(AT - least, AT));
        assert_eq!(waiter.wait(AT - Duration::from_nanos(1001), AT), Wait::Yield);
    }
}
