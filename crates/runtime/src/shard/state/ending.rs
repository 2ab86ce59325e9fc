//! How a stack ends: closed, or stopped because its device is gone.

use super::StackState;
use super::closed_queue::ClosedQueue;
use crate::shard::schedule::Alarm;
use crate::wakes::Wakes;
use ackline_tcp_core::{Duration, Instant, State};
use std::io;
use std::task::Waker;

impl StackState {
    /// Fails if the device is gone.
    pub(crate) fn check_device(&self) -> io::Result<()> {
        self.failure().map_or(Ok(()), Err)
    }

    /// Fails if the device is gone or the stack is shutting down.
    pub(crate) fn check_open(&self) -> io::Result<()> {
        self.check_device()?;
        if self.ending.closing {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the stack is shutting down"));
        }
        Ok(())
    }

    /// Stops listening and refuses new connections; after `within`, aborts the remaining
    /// connections.
    pub(crate) fn begin_shutdown(&mut self, now: Instant, within: Duration, wakes: &mut Wakes) {
        self.ending.closing = true;
        let listeners: Vec<_> = self.listeners.keys().copied().collect();
        for listener in listeners {
            if let Some(queue) = self.listeners.get(&listener) {
                queue.wake_all(wakes);
            }
            self.unlisten(now, listener);
        }
        self.udp.wake_acceptors(wakes);
        self.packets.wake_all(wakes);
        self.schedule.set(now + within, Alarm::Shutdown);
    }

    /// True if no connection is left that could lose data; otherwise `waker` is woken when that may
    /// have changed.
    pub(crate) fn poll_drained(&mut self, waker: &Waker) -> bool {
        if self.ending.failure.is_some() || self.is_drained() {
            return true;
        }
        if !self.ending.closers.iter().any(|known| known.will_wake(waker)) {
            self.ending.closers.push(waker.clone());
        }
        false
    }

    /// True if no connection is open and their last packets (resets, behind a shaper) have left, or
    /// the time for that is over. Connections in TIME-WAIT (RFC 9293, section 3.3.2) have nothing
    /// left to send. Only called when no connection can be opened any more, so each slot is checked
    /// once.
    pub(crate) fn is_drained(&mut self) -> bool {
        while let Some(id) = self.slots.id_at(self.ending.witness) {
            if self.endpoint.state(id).is_some_and(is_open) {
                return false;
            }
            self.ending.witness += 1;
        }
        self.ending.overdue || !self.endpoint.has_packets_waiting()
    }

    /// The time for a shutdown is over: aborts everything.
    pub(super) fn abort_all(&mut self, now: Instant) {
        self.ending.overdue = true;
        for slot in self.slots.iter() {
            if self.endpoint.state(slot.id).is_some_and(is_open) {
                self.endpoint.abort(now, slot.id);
            }
        }
    }

    /// The device is gone: every handle gets an error from here on.
    pub(crate) fn fail(&mut self, error: &io::Error, wakes: &mut Wakes) {
        // A device that reports why it carries nothing provides the text.
        let known = error.kind() == io::ErrorKind::NetworkDown;
        self.stop(if known { error.to_string() } else { format!("the device failed: {error}") }, wakes);
    }

    /// Fails all handles from now on, with `text` as the reason.
    pub(crate) fn stop(&mut self, text: String, wakes: &mut Wakes) {
        if self.ending.failure.is_some() {
            return;
        }
        self.ending.failure = Some(text);
        for slot in self.slots.iter_mut() {
            wakes.extend(slot.read.take());
            wakes.extend(slot.write.take());
            if let Some(news) = slot.news() {
                wakes.everyone(news);
            }
        }
        for queue in self.listeners.values() {
            queue.wake_all(wakes);
        }
        self.udp.wake_all(wakes);
        self.syns.wake_all(wakes);
        self.packets.wake_all(wakes);
        wakes.extend(self.ending.closers.drain(..));
        wakes.extend(self.driver.take());
        if let Some(hub_port) = &mut self.hub_port {
            hub_port.stop();
            self.endpoint.leave();
            // The queue is closed, so that the kernel puts nothing into it any more: the others
            // take that.
            self.device.device = Box::new(ClosedQueue::of(&*self.device.device));
        }
    }

    /// Why the stack stopped, if it did.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        let text = self.ending.failure.as_ref()?;
        Some(io::Error::new(io::ErrorKind::NetworkDown, text.clone()))
    }
}

/// True if data or a FIN may still be transferred in either direction.
const fn is_open(state: State) -> bool {
    !matches!(state, State::TimeWait | State::Closed)
}
