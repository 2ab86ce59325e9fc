//! The application's side: connections, their wakers, listeners, and how they end.

use super::accepting::AcceptQueue;
use super::{Alarm, Side, Slot, StackState};
use crate::io_error;
use crate::shard::turns::{Account, Turns};
use crate::wakes::{Wakes, store};
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Instant, ListenOn, ListenerId, State, Target,
};
use std::cmp::Reverse;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

impl StackState {
    pub(super) fn slot(&mut self, conn: ConnId) -> Option<&mut Slot> {
        self.slots.get_mut(conn.index()).filter(|slot| slot.id == conn)
    }

    /// The current turn, and what `conn` exchanged in it.
    pub(in crate::shard) fn account(&mut self, conn: ConnId) -> (&mut Turns, Option<&mut Account>) {
        let slot = self.slots.get_mut(conn.index()).filter(|slot| slot.id == conn);
        (&mut self.turns, slot.map(|slot| &mut slot.account))
    }

    /// Allocates the slot for a new connection's wakers.
    pub(super) fn adopt(&mut self, id: ConnId) {
        let slot = Slot::new(id);
        match self.slots.get_mut(id.index()) {
            Some(old) => *old = slot,
            None => {
                // Indices are dense: at most one beyond the connections that exist. A gap (a
                // connection that is not established yet) is filled with slots that match no
                // connection's identity.
                while self.slots.len() < id.index() {
                    self.slots.push(Slot::new(id));
                }
                self.slots.push(slot);
            }
        }
    }

    /// Registers the task to wake when `side` of `conn` makes progress.
    pub(crate) fn await_side(&mut self, conn: ConnId, side: Side, waker: &Waker) {
        if let Some(slot) = self.slot(conn) {
            store(slot.waker(side), waker);
        }
    }

    /// Notifies all tasks that wait for a connection's readiness.
    pub(crate) fn news(&mut self, conn: ConnId) -> Option<Arc<Notify>> {
        self.slot(conn).map(|slot| slot.rare().news.get_or_insert_default().clone())
    }

    /// The connection, as long as the device works.
    pub(crate) fn conn(&mut self, id: ConnId) -> io::Result<Conn<'_>> {
        self.check_device()?;
        self.endpoint.conn(id).ok_or_else(io_error::gone)
    }

    /// The connection, even if the device is gone: received data can still be read, and whether all
    /// was delivered still holds.
    pub(crate) fn remains(&mut self, id: ConnId) -> io::Result<Conn<'_>> {
        self.endpoint.conn(id).ok_or_else(io_error::gone)
    }

    /// Fails if the device is gone.
    pub(crate) fn check_device(&self) -> io::Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.error()))
    }

    /// Fails if the device is gone or the stack is shutting down.
    pub(crate) fn check_open(&self) -> io::Result<()> {
        self.check_device()?;
        if self.closing {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the stack is shutting down"));
        }
        Ok(())
    }

    /// Connects, and writes as much of `data` as the send buffer takes before the SYN leaves.
    /// Returns how much that was.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        to: Target,
        config: Arc<ConnConfig>,
        data: &[u8],
    ) -> io::Result<(ConnId, usize)> {
        self.check_open()?;
        let id = self.endpoint.connect(now, to, config).map_err(io_error::connect)?;
        self.adopt(id);
        // It is new, so that a write cannot fail; what is not taken is written when it is
        // connected.
        let written = self.endpoint.conn(id).and_then(|mut conn| conn.write(now, data).ok());
        Ok((id, written.unwrap_or(0)))
    }

    pub(crate) fn listen(
        &mut self,
        now: Instant,
        on: ListenOn,
        config: AcceptConfig,
        queue: Arc<AcceptQueue>,
    ) -> io::Result<(ListenerId, ListenOn)> {
        self.check_open()?;
        let id = self.endpoint.listen(now, on, config).map_err(io_error::listen)?;
        let on = self.endpoint.listens_on(id).unwrap_or(on);
        self.listeners.insert(id, queue);
        Ok((id, on))
    }

    /// Where each listener listens, and its connections of this shard that nobody has accepted.
    pub(crate) fn listeners(&self) -> Vec<(SocketAddr, usize)> {
        let place = |on| match on {
            ListenOn::Address(address) => address,
            ListenOn::Port(port) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
            ListenOn::Any => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
        };
        let shard = self.links.as_ref().map_or(0, |links| links.index);
        let listeners = self.listeners.iter();
        listeners
            .filter_map(|(id, queue)| Some((place(self.endpoint.listens_on(*id)?), queue.len(shard))))
            .collect()
    }

    /// Fails if the listener's connections will not come any more.
    pub(crate) fn check_listener(&self, listener: ListenerId) -> io::Result<()> {
        self.check_open()?;
        if self.listeners.contains_key(&listener) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotConnected, "the listener is closed"))
    }

    /// The settings of a listener.
    pub(crate) fn accept_config(&mut self, listener: ListenerId) -> io::Result<&mut AcceptConfig> {
        let config = self.endpoint.accept_config(listener);
        config.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "the listener is closed"))
    }

    pub(crate) fn unlisten(&mut self, now: Instant, listener: ListenerId) {
        if let Some(queue) = self.listeners.remove(&listener) {
            queue.forget(self.links.as_ref().map_or(0, |links| links.index));
            // Also resets the queued connections: nobody has accepted them.
            self.endpoint.unlisten(now, listener);
        }
    }

    pub(crate) fn set_linger(&mut self, id: ConnId, linger: Option<Duration>) {
        if let Some(slot) = self.slot(id) {
            // Without a linger time there is nothing to keep.
            if linger.is_some() || slot.rare.is_some() {
                slot.rare().linger = linger;
            }
        }
    }

    pub(crate) fn linger(&mut self, id: ConnId) -> Option<Duration> {
        self.slot(id).and_then(|slot| slot.linger())
    }

    /// The application dropped its handle to a connection.
    pub(crate) fn release(&mut self, now: Instant, id: ConnId) {
        self.give_back(id);
        let linger = self.slot(id).and_then(|slot| {
            slot.read = None;
            slot.write = None;
            slot.rare.take().and_then(|rare| rare.linger)
        });
        match linger {
            Some(limit) if limit.is_zero() => self.discard(now, id),
            limit => {
                self.endpoint.release(now, id);
                if let Some(limit) = limit {
                    self.alarms.push(Reverse((now + limit, Alarm::Linger(id))));
                }
            }
        }
    }

    /// Resets a connection that no handle owns.
    pub(super) fn discard(&mut self, now: Instant, id: ConnId) {
        self.endpoint.abort(now, id);
        self.endpoint.release(now, id);
    }

    /// Stops listening and refuses new connections; after `within`, aborts the remaining
    /// connections.
    pub(crate) fn begin_shutdown(&mut self, now: Instant, within: Duration, wakes: &mut Wakes) {
        self.closing = true;
        let listeners: Vec<_> = self.listeners.keys().copied().collect();
        for listener in listeners {
            if let Some(queue) = self.listeners.get(&listener) {
                queue.wake_all(wakes);
            }
            self.unlisten(now, listener);
        }
        self.udp.wake_acceptors(wakes);
        self.packets.wake_all(wakes);
        self.alarms.push(Reverse((now + within, Alarm::Shutdown)));
    }

    /// True if no connection is left that could lose data; otherwise `waker` is woken when that may
    /// have changed.
    pub(crate) fn poll_drained(&mut self, waker: &Waker) -> bool {
        if self.failure.is_some() || self.is_drained() {
            return true;
        }
        if !self.closers.iter().any(|known| known.will_wake(waker)) {
            self.closers.push(waker.clone());
        }
        false
    }

    /// True if no connection is open and their last packets (resets, behind a shaper) have left, or
    /// the time for that is over. Connections in TIME-WAIT (RFC 9293, section 3.3.2) have nothing
    /// left to send. Only called when no connection can be opened any more, so each slot is checked
    /// once.
    pub(crate) fn is_drained(&mut self) -> bool {
        while let Some(slot) = self.slots.get(self.witness) {
            if self.endpoint.state(slot.id).is_some_and(is_open) {
                return false;
            }
            self.witness += 1;
        }
        self.overdue || !self.endpoint.has_packets_waiting()
    }

    /// The time for a shutdown is over: aborts everything.
    pub(super) fn abort_all(&mut self, now: Instant) {
        self.overdue = true;
        for slot in &self.slots {
            if self.endpoint.state(slot.id).is_some_and(is_open) {
                self.endpoint.abort(now, slot.id);
            }
        }
    }
}

/// True if data or a FIN may still be transferred in either direction.
const fn is_open(state: State) -> bool {
    !matches!(state, State::TimeWait | State::Closed)
}
