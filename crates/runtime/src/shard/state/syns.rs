//! Held SYNs: tasks that wait for them, or for what becomes of them.

use super::StackState;
use crate::io_error;
use crate::wakes::Wakes;
use ackline_tcp_core::endpoint::{IncomingSyn, Refusal, SynEvent, SynId};
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::{ConnId, Instant, ListenerId};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

/// The SYNs that the program has, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct HeldSyns(HashMap<SynId, SynWait>);

#[derive(Debug, Default)]
struct SynWait {
    news: Arc<Notify>,
    outcome: Option<Result<ConnId, ConnError>>,
}

impl HeldSyns {
    /// Wakes all waiting tasks.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        for waiting in self.0.values() {
            wakes.everyone(&waiting.news);
        }
    }
}

impl StackState {
    /// Holds the SYNs of a listener from now on.
    pub(crate) fn hold_syns(&mut self, listener: ListenerId) -> io::Result<()> {
        self.check_open()?;
        self.accept_config(listener)?.hold_syns = true;
        if let Some(queue) = self.listeners.get(&listener) {
            queue.hold_syns();
        }
        Ok(())
    }

    /// The next SYN of a listener that the program does not have, or the waker is kept.
    pub(crate) fn next_syn(
        &mut self,
        listener: ListenerId,
        waker: Option<&Waker>,
    ) -> io::Result<Option<(SynId, IncomingSyn, Arc<Notify>)>> {
        self.check_open()?;
        if let Some((id, syn)) = self.endpoint.syns().next(listener) {
            return Ok(Some((id, syn, self.syns.0.entry(id).or_default().news.clone())));
        }
        if let (Some(queue), Some(waker)) = (self.listeners.get(&listener), waker) {
            queue.keep(waker);
        }
        Ok(None)
    }

    /// The connection that a SYN has become, if it has.
    pub(crate) fn syn_outcome(&self, id: SynId) -> io::Result<Option<ConnId>> {
        self.check_device()?;
        match self.syns.0.get(&id).and_then(|waiting| waiting.outcome) {
            None => Ok(None),
            Some(Ok(conn)) => Ok(Some(conn)),
            Some(Err(error)) => Err(io_error::conn(error)),
        }
    }

    /// The program has the connection of a SYN.
    pub(crate) fn forget_syn(&mut self, id: SynId) {
        self.syns.0.remove(&id);
    }

    /// The program refuses a SYN, or does not want it any more: if it has become a connection, that
    /// is reset.
    pub(crate) fn refuse_syn(&mut self, now: Instant, id: SynId, how: Refusal) {
        let Some(waiting) = self.syns.0.remove(&id) else { return };
        match waiting.outcome {
            None => self.endpoint.syns().refuse(now, id, how),
            Some(Ok(conn)) => self.discard(now, conn),
            Some(Err(_)) => {}
        }
    }

    /// The program lets a SYN be answered as those of a listener that holds none.
    pub(crate) fn release_syn(&mut self, now: Instant, id: SynId) {
        if self.syns.0.remove(&id).is_some() {
            self.endpoint.syns().release(now, id);
        }
    }

    /// Passes on what has happened to held SYNs.
    pub(super) fn deliver_syns(&mut self, now: Instant, wakes: &mut Wakes) {
        while let Some(event) = self.endpoint.syns().poll_event() {
            match event {
                SynEvent::Arrived(listener) => {
                    if let Some(queue) = self.listeners.get(&listener) {
                        queue.wake_all(wakes);
                    }
                }
                SynEvent::Connected { syn, conn } => {
                    self.slots.adopt(conn);
                    if !self.decide(syn, Ok(conn), wakes) {
                        self.discard(now, conn);
                    }
                }
                SynEvent::Ended { syn, error } => {
                    self.decide(syn, Err(error), wakes);
                }
                _ => {}
            }
        }
    }

    /// Passes the outcome of a SYN to the task that waits; false if the SYN is unknown.
    fn decide(&mut self, syn: SynId, outcome: Result<ConnId, ConnError>, wakes: &mut Wakes) -> bool {
        let Some(waiting) = self.syns.0.get_mut(&syn) else { return false };
        waiting.outcome = Some(outcome);
        wakes.everyone(&waiting.news);
        true
    }
}
