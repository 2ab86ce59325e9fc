//! What a driver asks of its timer, of each kind of alarm.

#[cfg(target_os = "linux")]
use super::linux::Timerfd;
use super::portable::Sleeper;
use super::{Alarm, Lazy};
use ackline_tcp_core::{Duration, Instant};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

impl<A: Alarm> Lazy<A> {
    async fn expired(&mut self) -> Instant {
        poll_fn(|cx| self.poll_expired(cx)).await.expect("an alarm rings")
    }

    /// How long until expiry, on the timer's own clock.
    async fn wait(&mut self) -> Duration {
        let start = A::now();
        self.expired().await.since(start)
    }

    fn arm_in(&mut self, time: Duration) -> Instant {
        let deadline = A::now() + time;
        self.arm(Some(deadline)).expect("armed");
        deadline
    }
}

fn timer<A: Alarm>() -> Lazy<A> {
    Lazy::new().expect("an alarm")
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Each of these for each alarm.
macro_rules! for_each_alarm {
    ($($test:ident),* $(,)?) => {
        #[cfg(target_os = "linux")]
        mod timerfd {
            $(#[tokio::test] async fn $test() { super::$test::<super::Timerfd>().await; })*
        }
        mod sleeper {
            $(#[tokio::test] async fn $test() { super::$test::<super::Sleeper>().await; })*
        }
    };
}

for_each_alarm!(
    fires_at_the_deadline_and_never_before,
    is_as_fine_as_its_resolution,
    an_earlier_deadline_takes_over,
    a_later_deadline_is_not_served_early,
    without_a_deadline_nothing_comes,
    an_expiry_that_nobody_noticed_is_forgotten,
    a_deadline_in_the_past_fires_at_once,
    a_task_that_waits_is_woken_for_what_another_arms,
);

async fn fires_at_the_deadline_and_never_before<A: Alarm>() {
    let mut timer = timer::<A>();
    for micros in [1, 200, 1_000, 20_000] {
        let deadline = timer.arm_in(Duration::from_micros(micros));
        let at = timer.expired().await;
        assert!(at >= deadline, "fired {:?} early", deadline.since(at));
        // Generous: other processes share the machine.
        assert!(at.since(deadline) < ms(100), "fired {:?} late", at.since(deadline));
    }
}

async fn is_as_fine_as_its_resolution<A: Alarm>() {
    let mut timer = timer::<A>();
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let deadline = timer.arm_in(Duration::from_micros(300));
        best = best.min(timer.expired().await.since(deadline));
    }
    // What a wake-up takes comes on top.
    let bound = A::RESOLUTION + Duration::from_micros(450);
    assert!(best < bound, "at its best {best:?} late");
}

async fn an_earlier_deadline_takes_over<A: Alarm>() {
    let mut timer = timer::<A>();
    timer.arm_in(ms(60_000));
    timer.arm_in(ms(5));
    assert!(timer.wait().await < Duration::from_secs(30));
}

async fn a_later_deadline_is_not_served_early<A: Alarm>() {
    let mut timer = timer::<A>();
    timer.arm_in(ms(2));
    let deadline = timer.arm_in(ms(30));
    assert!(timer.expired().await >= deadline);
    assert_eq!(timer.deadline, None);
}

async fn without_a_deadline_nothing_comes<A: Alarm>() {
    let mut timer = timer::<A>();
    timer.arm_in(ms(1));
    timer.arm(None).expect("disarmed");
    let outcome = tokio::time::timeout(std::time::Duration::from_millis(20), timer.expired()).await;
    assert!(outcome.is_err(), "a disarmed timer fired");
    timer.arm_in(ms(1));
    timer.wait().await;
}

/// The ring of a time that is no longer waited for, noticed late, must neither end the next wait
/// nor hide its ring.
async fn an_expiry_that_nobody_noticed_is_forgotten<A: Alarm>() {
    let mut timer = timer::<A>();
    for _ in 0..20 {
        let unnoticed = timer.arm_in(Duration::from_micros(100));
        while A::now() < unnoticed + Duration::from_micros(100) {
            std::hint::spin_loop();
        }
        // The runtime notices, and the timer is set before it is asked.
        tokio::task::yield_now().await;
        timer.set_to = None;
        let deadline = timer.arm_in(ms(2));
        let expired = tokio::time::timeout(std::time::Duration::from_secs(10), timer.expired()).await;
        let at = expired.expect("the next expiry was hidden");
        assert!(at >= deadline, "fired {:?} early", deadline.since(at));
    }
}

async fn a_deadline_in_the_past_fires_at_once<A: Alarm>() {
    let mut timer = timer::<A>();
    timer.arm(Some(Instant::ZERO)).expect("armed");
    assert!(timer.wait().await < Duration::from_secs(1));
}

/// As an application's write arms the timer of a driver that sleeps: with no deadline before, with
/// a later one, and with one that has passed.
async fn a_task_that_waits_is_woken_for_what_another_arms<A: Alarm + Send + 'static>() {
    let timer = Arc::new(Mutex::new(timer::<A>()));
    for (before, then) in [(None, ms(5)), (Some(ms(60_000)), ms(5)), (None, Duration::ZERO)] {
        if let Some(before) = before {
            timer.lock().expect("no panic").arm_in(before);
        }
        let driver = tokio::spawn({
            let timer = timer.clone();
            poll_fn(move |cx| {
                let Poll::Ready(at) = timer.lock().expect("no panic").poll_expired(cx) else {
                    return Poll::Pending;
                };
                Poll::Ready(at)
            })
        });
        // It sleeps.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let deadline = timer.lock().expect("no panic").arm_in(then);
        let woken = tokio::time::timeout(std::time::Duration::from_secs(10), driver).await;
        let at = woken.expect("nobody woke it").expect("no panic").expect("an alarm rings");
        assert!(at >= deadline);
    }
}

/// A test that pauses tokio's clock does not make the stack's timers fire early, nor never.
#[tokio::test(start_paused = true)]
async fn a_paused_runtime_does_not_stop_the_sleeper() {
    let mut timer = timer::<Sleeper>();
    let deadline = timer.arm_in(ms(20));
    assert!(timer.expired().await >= deadline);
}

#[test]
fn clocks_go_on() {
    fn ticks<A: Alarm>() {
        let start = A::now();
        while A::now() == start {
            std::hint::spin_loop();
        }
        assert!(A::now() > start);
    }
    #[cfg(target_os = "linux")]
    ticks::<Timerfd>();
    ticks::<Sleeper>();
}
