//! When the driver stands aside, so that its runtime goes round.
//!
//! tokio looks for I/O and timers, and on a runtime with one thread at the future of `block_on`,
//! when no task is ready, or after 61 polls of tasks. With bulk data some task always is: the
//! driver wakes applications, and they have more for the driver. If each poll moves 1 MiB, whoever
//! waits for the runtime itself waits for 61 MiB. So the stack works for a *stint*; then the driver
//! asks the runtime to wake it after its next round ([`tokio::task::yield_now`]), and does nothing
//! before, whoever else wakes it. Its applications use up their shares meanwhile, and no task is
//! ready.
//!
//! A round costs a look for I/O that finds little. A stint is over only if both [`TIME`] and
//! [`WORK`] have passed, so a stack that is mostly idle, with a round in each sleep, seldom asks
//! for another.
//!
//! Turns handed to applications count as well. Shorter turns would do the same only at 16 µs each,
//! and cost bulk data its batches.

use crate::pacing::let_others_run;
use ackline_tcp_core::{Duration, Instant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// How long a stint lasts, at least.
pub(super) const TIME: Duration = Duration::from_micros(200);

/// How long one lasts at most. Tasks that are always ready keep the runtime from going round until
/// the 61 polls are over. So that the stack is not left with too little of the time, a stint lasts
/// a [`PART`] of the round before it.
const MOST_TIME: Duration = Duration::from_millis(1);

/// See [`MOST_TIME`].
const PART: u64 = 4;

/// Minimum that a stint sends and receives; see [`work`].
const WORK: u64 = 256 << 10;

/// Cost of packets and bytes, in bytes of bulk data.
pub(super) const fn work(packets: usize, bytes: u64) -> u64 {
    bytes.saturating_add((packets as u64) << 10)
}

/// The stack's current stint.
#[derive(Debug)]
pub(super) struct Stint {
    /// When it began: the runtime has gone round, as far as the driver knows.
    began: Instant,
    /// How long it lasts.
    time: Duration,
    /// Work of the stack in it.
    work: u64,
    /// Since when the driver has stood aside, if it does.
    aside: Option<Instant>,
    round: Arc<Round>,
    /// Wakes `round`.
    waker: Waker,
}

/// The runtime's next round.
#[derive(Debug, Default)]
struct Round {
    /// The driver that waits for it.
    driver: Mutex<Option<Waker>>,
}

impl Round {
    fn driver(&self) -> MutexGuard<'_, Option<Waker>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Round {
    fn wake(self: Arc<Self>) {
        let driver = self.driver().take();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl Stint {
    pub(super) fn new() -> Self {
        let round = Arc::new(Round::default());
        let waker = Waker::from(round.clone());
        Self { began: Instant::ZERO, time: TIME, work: 0, aside: None, round, waker }
    }

    /// The driver was woken: false if it still stands aside.
    pub(super) fn goes_on(&mut self, cx: &Context<'_>, clock: impl FnOnce() -> Instant) -> bool {
        let Some(since) = self.aside else { return true };
        if let Some(driver) = &mut *self.round.driver() {
            driver.clone_from(cx.waker());
            return false;
        }
        let now = clock();
        let took = now.since(since);
        self.aside = None;
        self.began = now;
        self.time = took.div(PART).max(TIME).min(MOST_TIME);
        self.work = 0;
        true
    }

    /// The driver is about to run a turn, and the stack has done `work` since the last one: true if
    /// the driver stands aside instead. It is woken after a round.
    pub(super) fn is_over(&mut self, cx: &Context<'_>, work: u64, clock: impl FnOnce() -> Instant) -> bool {
        self.work = self.work.saturating_add(work);
        if self.work < WORK {
            return false;
        }
        let now = clock();
        if now.since(self.began) < self.time {
            return false;
        }
        self.aside = Some(now);
        *self.round.driver() = Some(cx.waker().clone());
        let_others_run(&mut Context::from_waker(&self.waker));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::task::Poll;
    use tokio::runtime::{Builder, Runtime};

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().expect("a runtime")
    }

    fn at(micros: u64) -> impl Fn() -> Instant {
        move || Instant::from_micros(1_000_000 + micros)
    }

    #[test]
    fn a_stint_ends_after_time_and_work_and_the_next_one_begins_after_a_round() {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let cx = &Context::from_waker(&waker);
        let mut stint = Stint { began: at(0)(), ..Stint::new() };
        runtime().block_on(async {
            assert!(!stint.is_over(cx, WORK - 1, at(10_000)), "it is mostly idle");
            assert!(!stint.is_over(cx, 1, at(199)));
            assert!(stint.goes_on(cx, at(199)) && stint.is_over(cx, 0, at(200)));
            assert!(!stint.goes_on(cx, at(201)), "whoever wakes it");
            assert_eq!(bell.0.load(Ordering::Relaxed), 0);
            tokio::task::yield_now().await;
            assert_eq!(bell.0.load(Ordering::Relaxed), 1);
            assert!(stint.goes_on(cx, at(300)) && !stint.is_over(cx, WORK, at(499)));
            assert!(stint.is_over(cx, 0, at(500)));
            tokio::task::yield_now().await;
            assert!(stint.goes_on(cx, at(2_500)));
            assert!(!stint.is_over(cx, WORK, at(2_999)), "others take long: a quarter of that");
            assert!(stint.is_over(cx, 0, at(3_000)));
            tokio::task::yield_now().await;
            assert!(stint.goes_on(cx, at(90_000)));
            assert!(stint.is_over(cx, WORK, at(91_000)), "but not for longer than this");
        });
    }

    /// tokio would look at it after 61 polls of tasks only, which here are as many turns.
    #[test]
    fn the_future_of_block_on_waits_for_no_more_than_a_stint() {
        /// Turns of a stint: each takes half of its time, and does half of its work.
        const TURNS: u64 = 2;
        /// The turn that had something for the future, and the future's waker.
        type Mail = Arc<Mutex<(Option<u64>, Option<Waker>)>>;
        let (turns, mail) = (Arc::new(AtomicU64::new(0)), Mail::default());
        let (count, post, mut stint) = (turns.clone(), mail.clone(), Stint::new());
        let driver = poll_fn(move |cx| {
            let clock = || at(count.load(Ordering::Relaxed) * TIME.as_micros() / TURNS)();
            if !stint.goes_on(cx, clock) || stint.is_over(cx, WORK / TURNS, clock) {
                return Poll::Pending;
            }
            let turn = count.fetch_add(1, Ordering::Relaxed) + 1;
            let (letter, waker) = &mut *post.lock().unwrap();
            if let Some(waker) = waker.take() {
                *letter = Some(turn);
                waker.wake();
            }
            // There is always more to do.
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let longest = runtime().block_on(async {
            tokio::spawn(driver);
            let mut longest = 0;
            for _ in 0..1_000 {
                let posted = poll_fn(|cx| {
                    let (letter, waker) = &mut *mail.lock().unwrap();
                    *waker = Some(cx.waker().clone());
                    letter.take().map_or(Poll::Pending, Poll::Ready)
                });
                let posted = posted.await;
                longest = longest.max(turns.load(Ordering::Relaxed) - posted);
            }
            longest
        });
        assert!(longest <= TURNS, "{longest} turns");
    }

    #[test]
    fn without_a_runtime_there_is_nothing_to_wait_for() {
        let cx = &Context::from_waker(Waker::noop());
        let mut stint = Stint::new();
        assert!(stint.is_over(cx, WORK, at(0)) && stint.goes_on(cx, at(0)));
    }
}
