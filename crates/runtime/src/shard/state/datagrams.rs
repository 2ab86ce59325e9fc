//! UDP: tasks that wait for sockets and flows.

use super::StackState;
use crate::io_error;
use crate::shard::turns::Side;
use crate::wakes::{Wakes, store};
use ackline_tcp_core::endpoint::UdpEvent;
use ackline_tcp_core::{Instant, UdpId};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

/// The tasks that wait for UDP.
#[derive(Debug, Default)]
pub(crate) struct UdpWaits {
    sockets: BTreeMap<UdpId, SocketWaits>,
    /// Present while somebody takes flows.
    flows: Option<Flows>,
}

/// The tasks that wait for a socket or flow.
#[derive(Debug, Default)]
struct SocketWaits {
    news: Arc<Notify>,
    read: Option<Waker>,
    write: Option<Waker>,
}

/// The tasks that wait for flows.
#[derive(Debug, Default)]
struct Flows {
    arrivals: Arc<Notify>,
    waker: Option<Waker>,
}

impl UdpWaits {
    fn adopt(&mut self, id: UdpId) -> Arc<Notify> {
        self.sockets.entry(id).or_default().news.clone()
    }

    /// Registers the task to wake when something has happened to a socket.
    pub(crate) fn wait(&mut self, id: UdpId, side: Side, waker: &Waker) {
        if let Some(waiting) = self.sockets.get_mut(&id) {
            let place = match side {
                Side::Read => &mut waiting.read,
                Side::Write => &mut waiting.write,
            };
            store(place, waker);
        }
    }

    /// Wakes all waiting tasks.
    pub(super) fn wake_all(&mut self, wakes: &mut Wakes) {
        for waiting in self.sockets.values_mut() {
            waiting.wake(wakes);
        }
        self.wake_acceptors(wakes);
    }

    /// Wakes the tasks that wait for flows.
    pub(super) fn wake_acceptors(&mut self, wakes: &mut Wakes) {
        if let Some(flows) = &mut self.flows {
            wakes.everyone(&flows.arrivals);
            wakes.extend(flows.waker.take());
        }
    }
}

impl SocketWaits {
    fn wake(&mut self, wakes: &mut Wakes) {
        wakes.everyone(&self.news);
        wakes.extend(self.read.take());
        wakes.extend(self.write.take());
    }
}

impl StackState {
    pub(crate) fn bind_udp(&mut self, now: Instant, local: SocketAddr) -> io::Result<(UdpId, Arc<Notify>)> {
        self.check_open()?;
        let id = self.endpoint.udp().bind(now, local).map_err(io_error::udp)?;
        Ok((id, self.udp.adopt(id)))
    }

    pub(crate) fn close_udp(&mut self, now: Instant, id: UdpId) {
        self.udp.sockets.remove(&id);
        self.endpoint.udp().close(now, id);
    }

    /// Takes flows from now on.
    pub(crate) fn take_flows(&mut self, now: Instant) -> io::Result<Arc<Notify>> {
        self.check_open()?;
        self.endpoint.udp().take_flows(now, true).map_err(io_error::udp)?;
        Ok(self.udp.flows.insert(Flows::default()).arrivals.clone())
    }

    pub(crate) fn stop_flows(&mut self, now: Instant) {
        self.udp.flows = None;
        // Only taking them can fail.
        let _ = self.endpoint.udp().take_flows(now, false);
    }

    /// The next flow to accept; if there is none, keeps the waker.
    pub(crate) fn accept_flow(&mut self, waker: Option<&Waker>) -> io::Result<Option<(UdpId, Arc<Notify>)>> {
        if let Some(id) = self.endpoint.udp().next_flow() {
            return Ok(Some((id, self.udp.adopt(id))));
        }
        self.check_open()?;
        if let (Some(flows), Some(waker)) = (&mut self.udp.flows, waker) {
            store(&mut flows.waker, waker);
        }
        Ok(None)
    }

    /// Passes on what has happened to sockets and flows.
    pub(super) fn deliver_udp(&mut self, wakes: &mut Wakes) {
        while let Some(event) = self.endpoint.udp().poll_event() {
            match event {
                UdpEvent::Socket(id) => {
                    if let Some(waiting) = self.udp.sockets.get_mut(&id) {
                        waiting.wake(wakes);
                    }
                }
                _ => self.udp.wake_acceptors(wakes),
            }
        }
    }
}
