//! The task that drives one endpoint: packets in, deadlines, packets out, events, sleep.

use super::Shard;
use super::schedule::DepartureWait;
use super::state::turn::Turn;
use super::stint::Stint;
use crate::pacing::{Wait, let_others_run};
use crate::platform::workers::has_workers;
use crate::timer;
use crate::wakes::{Wakes, store};
use ackline_tcp_core::Instant;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The future that drives a [`Stack`](crate::Stack);
/// [`Builder::spawn`](crate::stack::Builder::spawn) hands it to tokio.
///
/// It ends with `Ok` when the last handle (stack, listener, stream) is dropped and only connections
/// in TIME-WAIT are left, and with the device's error if the device fails. If it is dropped
/// earlier, every handle returns errors.
///
/// On a runtime with worker threads it hands the stack over to the applications that a turn woke:
/// the last of them runs the next turn in the call in which it would wait.
///
/// **Each turn: send what pacing held back until now; receive a batch of packets, all with one time
/// stamp; serve expired deadlines; send; report events; set the timer. Then sleep until the device
/// is readable, the timer expires, a full device is writable, or an application leaves work
/// behind.** Pure ACKs for a turn of small packets wait until the tasks it woke have run, so that
/// they can piggyback on their answers; those for bulk data wait for some microseconds while the
/// device is polled, so that one ACK covers more. An idle stack uses no processor time, unless
/// [`Builder::busy_poll`](crate::stack::Builder::busy_poll) or
/// [`Builder::pacing`](crate::stack::Builder::pacing) say so.
#[derive(Debug)]
#[must_use = "nothing moves unless the driver is polled"]
pub struct Driver {
    shard: Arc<Shard>,
    wakes: Wakes,
    /// Since when the driver has been waiting for a departure without sleeping.
    awake_since: Option<Instant>,
    /// Its runtime has worker threads; known from the first turn on.
    workers: Option<bool>,
    stint: Stint,
}

impl Driver {
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self { shard, wakes: Wakes::default(), awake_since: None, workers: None, stint: Stint::new() }
    }
}

impl Future for Driver {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shard, wakes, awake_since, workers, stint } = self.get_mut();
        if !stint.goes_on(cx, timer::now) {
            return Poll::Pending;
        }
        let mut held = None;
        loop {
            let outcome = {
                let crowded = *workers.get_or_insert_with(|| {
                    let workers = has_workers();
                    if workers {
                        shard.crowd();
                    }
                    workers
                });
                // What departs now is late already.
                let mut state = if held.is_some() { shard.lock() } else { ready!(shard.poll_lock(cx)) };
                if crowded {
                    let now = timer::now();
                    if state.is_handed_over(now, cx) {
                        store(&mut state.driver, cx.waker());
                        return Poll::Pending;
                    }
                    state.handover.on_driver(now, cx.waker());
                }
                if held.is_none()
                    && awake_since.is_none()
                    && stint.is_over(cx, std::mem::take(&mut state.work), timer::now)
                {
                    // A device that is never empty is not asked otherwise, and learns only when it
                    // is asked what has become of its interface. Its errors come again with the
                    // next packet.
                    _ = state.device.device.poll_readable(cx);
                    return Poll::Pending;
                }
                let yielded = awake_since.is_some();
                if let Some(since) = awake_since.take() {
                    let took = timer::now().since(since);
                    state.meters.awake = state.meters.awake.saturating_add(took);
                }
                let decided = state.last;
                let outcome = state.turn(cx, wakes, held);
                if yielded && held.is_none() {
                    state.schedule.waiter.on_turn(timer::now().since(decided));
                }
                outcome
            };
            wakes.wake_all();
            let wait = match outcome {
                Turn::Ended(result) => return Poll::Ready(result),
                Turn::Again => {
                    // After the tasks woken by this turn, so that a flood of packets starves
                    // nobody.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::HandedOver => return Poll::Pending,
                Turn::Wait(wait) => wait,
            };
            match wait {
                Some(Wait::Sleep(_)) | None => return Poll::Pending,
                Some(Wait::Hold(until, departs)) if held.is_none() => {
                    *awake_since = Some(timer::now());
                    held = Some(DepartureWait { ended: timer::spin_until(until), departs });
                }
                Some(Wait::Yield | Wait::Hold(..)) => {
                    *awake_since = Some(timer::now());
                    let_others_run(cx);
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shard.lock().stop("the stack's driver was dropped".to_owned(), &mut self.wakes);
        self.wakes.wake_all();
    }
}
