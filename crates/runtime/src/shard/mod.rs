//! One endpoint with its device and timer, behind one lock.
//!
//! Whoever holds the lock may run the stack: the driver task for packets and deadlines, an
//! application task for whatever its own write, read or close allows to be sent. No system call
//! under the lock can block: descriptors are non-blocking.

mod acks;
pub(crate) mod backlog;
mod busy_poll;
pub(crate) mod driver;
pub(crate) mod egress;
mod ending;
mod handover;
pub(crate) mod hub;
mod inbox;
mod lock;
mod port;
mod schedule;
mod slots;
pub(crate) mod state;
mod stint;
pub(crate) mod turns;

use crate::device::Device;
use crate::timer::{self, Timer};
use crate::wakes::Wakes;
use ackline_tcp_core::{Endpoint, Instant};
use hub::HubPort;
use lock::{Lock, Locked};
use state::{Caller, StackState, Waits};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// One endpoint, shared by its driver task and by all handles.
#[derive(Debug)]
pub(crate) struct Shard {
    state: Lock<StackState>,
}

/// A handle's reference to a shard, and so to the stack: when the last one is dropped, the drivers
/// end as soon as no connection needs them.
#[derive(Debug)]
pub(crate) struct Anchor {
    shard: Arc<Shard>,
    pub(crate) host: Arc<Host>,
    /// Which of the stack's shards it is.
    pub(crate) index: usize,
}

/// All shards of a stack.
#[derive(Debug)]
pub(crate) struct Host {
    shards: Box<[Arc<Shard>]>,
    /// Where each shard's driver runs.
    pub(crate) runtimes: Box<[Handle]>,
    /// Closes when no handle is left.
    _end: watch::Sender<()>,
}

impl Host {
    /// The anchors of all shards.
    pub(crate) fn anchors(
        shards: Vec<Arc<Shard>>,
        runtimes: Vec<Handle>,
        end: watch::Sender<()>,
    ) -> Box<[Arc<Anchor>]> {
        let host = Arc::new(Self { shards: shards.into(), runtimes: runtimes.into(), _end: end });
        let anchor = |(index, shard): (usize, &Arc<Shard>)| {
            Arc::new(Anchor { shard: shard.clone(), host: host.clone(), index })
        };
        host.shards.iter().enumerate().map(anchor).collect()
    }
}

impl std::ops::Deref for Anchor {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl Anchor {
    /// Where the shard's driver runs.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.host.runtimes[self.index]
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for shard in &self.shards {
            let waker = {
                let mut state = shard.lock();
                state.ending.orphaned = true;
                state.driver.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Shard {
    pub(crate) fn new(
        endpoint: Endpoint,
        device: Box<dyn Device>,
        timer: Timer,
        waits: Waits,
        hub_port: Option<HubPort>,
    ) -> Self {
        Self { state: Lock::new(StackState::new(endpoint, device, timer, waits, hub_port)) }
    }

    pub(crate) fn lock(&self) -> Locked<'_, StackState> {
        self.state.lock()
    }

    /// For the driver: see [`Lock::poll_lock`].
    pub(crate) fn poll_lock(&self, cx: &Context<'_>) -> Poll<Locked<'_, StackState>> {
        self.state.poll_lock(cx)
    }

    /// The driver runs on a runtime with worker threads: see [`Lock::crowd`].
    pub(crate) fn crowd(&self) {
        self.state.crowd();
    }

    /// Runs `act` for an application under the lock, sends what may leave as a result, and wakes
    /// the affected tasks after the lock is released.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut StackState, Instant, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::default();
        let outcome = {
            let mut state = self.lock();
            let now = timer::now();
            let outcome = act(&mut state, now, &mut wakes);
            let was_full = state.device.is_full();
            let more = state.flush(now, Caller::Application, &mut wakes);
            if let Err(error) = state.arm(now) {
                state.fail(&error, &mut wakes);
            }
            // The driver waits for room in the device, sends the rest of a long queue and what
            // waits for more data, spins, or is waited for.
            let more = more
                || state.corked
                || state.spins()
                || state.busy_poll.goes_on(now)
                || state.turns.are_awaited();
            state.take_turns(&mut wakes, |_| false);
            let more = more && !state.handover.is_open();
            if more || (state.device.is_full() && !was_full) || state.failure().is_some() {
                wakes.extend(state.driver.take());
            }
            outcome
        };
        wakes.wake_all();
        outcome
    }
}
