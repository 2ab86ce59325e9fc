//! The application's side: connections, their wakers, listeners, and how they end.

use super::StackState;
use super::accepting::AcceptQueue;
use crate::io_error;
use crate::shard::schedule::Alarm;
use crate::shard::turns::Side;
use crate::wakes::store;
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::{AcceptConfig, ConnConfig, ConnId, Duration, Instant, ListenOn, ListenerId, Target};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

impl StackState {
    /// Registers the task to wake when `side` of `conn` makes progress.
    pub(crate) fn await_side(&mut self, conn: ConnId, side: Side, waker: &Waker) {
        if let Some(slot) = self.slots.get(conn) {
            store(slot.waker(side), waker);
        }
    }

    /// Notifies all tasks that wait for a connection's readiness.
    pub(crate) fn news(&mut self, conn: ConnId) -> Option<Arc<Notify>> {
        self.slots.get(conn).map(|slot| slot.rare().news.get_or_insert_default().clone())
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
        self.slots.adopt(id);
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

    /// The address of each listener, and its connections of this shard that are not accepted yet.
    pub(crate) fn listeners(&self) -> Vec<(SocketAddr, usize)> {
        let place = |on| match on {
            ListenOn::Address(address) => address,
            ListenOn::Port(port) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
            ListenOn::Any => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
        };
        let shard = self.hub_port.as_ref().map_or(0, |hub_port| hub_port.index);
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
            queue.forget(self.hub_port.as_ref().map_or(0, |hub_port| hub_port.index));
            // Also resets the queued connections: nobody has accepted them.
            self.endpoint.unlisten(now, listener);
        }
    }

    pub(crate) fn set_linger(&mut self, id: ConnId, linger: Option<Duration>) {
        if let Some(slot) = self.slots.get(id) {
            // Without a linger time there is nothing to keep.
            if linger.is_some() || slot.rare.is_some() {
                slot.rare().linger = linger;
            }
        }
    }

    pub(crate) fn linger(&mut self, id: ConnId) -> Option<Duration> {
        self.slots.get(id).and_then(|slot| slot.linger())
    }

    /// The application dropped its handle to a connection.
    pub(crate) fn release(&mut self, now: Instant, id: ConnId) {
        self.give_back(id);
        let linger = self.slots.get(id).and_then(|slot| {
            slot.read = None;
            slot.write = None;
            slot.rare.take().and_then(|rare| rare.linger)
        });
        match linger {
            Some(limit) if limit.is_zero() => self.discard(now, id),
            limit => {
                self.endpoint.release(now, id);
                if let Some(limit) = limit {
                    self.schedule.set(now + limit, Alarm::Linger(id));
                }
            }
        }
    }

    /// Resets a connection that no handle owns.
    pub(super) fn discard(&mut self, now: Instant, id: ConnId) {
        self.endpoint.abort(now, id);
        self.endpoint.release(now, id);
    }
}
