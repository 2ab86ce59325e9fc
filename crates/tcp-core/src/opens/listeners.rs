//! Listeners: which one takes a SYN, and how many of its connections may wait.

use crate::config::{AcceptConfig, ListenOn};
use crate::error::ListenError;
use crate::id::ListenerId;
use crate::reserve::Limit;
use alloc::collections::BTreeMap;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU32;

/// All listeners of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// Keyed by address and port; `None` and port; or `None` and 0 for every port.
    places: BTreeMap<(Option<IpAddr>, u16), NonZeroU32>,
    listeners: BTreeMap<NonZeroU32, Listener>,
    /// Listeners created so far; their numbers are never reused.
    made: u32,
}

/// One listener.
#[derive(Debug)]
pub(crate) struct Listener {
    place: (Option<IpAddr>, u16),
    pub(crate) accept: AcceptConfig,
    /// Connections that the application has not accepted yet: the accept queue.
    waiting: u32,
    /// What the endpoints of the host may have of them together.
    backlog: Limit,
}

impl Listener {
    /// True if the backlog may have room for another connection when its handshake is complete.
    pub(crate) fn may_have_room(&mut self) -> bool {
        self.waiting < self.accept.backlog && self.backlog.may_have_room(self.waiting as usize)
    }

    /// True if the backlog has room for another connection.
    pub(crate) fn has_room(&mut self) -> bool {
        self.waiting < self.accept.backlog && self.backlog.has_room(self.waiting as usize)
    }
}

impl Listeners {
    /// Adds a listener.
    pub(crate) fn add(&mut self, on: ListenOn, accept: AcceptConfig) -> Result<ListenerId, ListenError> {
        let place = place(on);
        let number = self.made.checked_add(1).and_then(NonZeroU32::new).ok_or(ListenError::InUse)?;
        if self.places.contains_key(&place) {
            return Err(ListenError::InUse);
        }
        self.made = number.get();
        self.places.insert(place, number);
        let backlog = accept.backlog_of_host();
        self.listeners.insert(number, Listener { place, accept, waiting: 0, backlog });
        Ok(ListenerId(number.get()))
    }

    /// True if no listener has `port` on any address.
    pub(crate) fn is_free(&self, port: u16) -> bool {
        self.places.keys().all(|(_, taken)| *taken != port)
    }

    /// The settings for connections accepted from now on.
    pub(crate) fn accept_config(&mut self, listener: ListenerId) -> Option<&mut AcceptConfig> {
        let number = NonZeroU32::new(listener.0)?;
        self.listeners.get_mut(&number).map(|listener| &mut listener.accept)
    }

    /// The address and port of a listener.
    pub(crate) fn place_of(&self, listener: ListenerId) -> Option<ListenOn> {
        let listener = self.listeners.get(&NonZeroU32::new(listener.0)?)?;
        Some(match listener.place {
            (Some(address), port) => ListenOn::Address(SocketAddr::new(address, port)),
            (None, 0) => ListenOn::Any,
            (None, port) => ListenOn::Port(port),
        })
    }

    /// Removes a listener; returns its number, if there was one.
    pub(crate) fn remove(&mut self, listener: ListenerId) -> Option<NonZeroU32> {
        let number = NonZeroU32::new(listener.0)?;
        let removed = self.listeners.remove(&number)?;
        self.places.remove(&removed.place);
        Some(number)
    }

    /// The listener for `local`: one for the address takes precedence over one for the port, and
    /// that over one for everything.
    pub(crate) fn find(&self, local: SocketAddr) -> Option<NonZeroU32> {
        let at = |place| self.places.get(&place).copied();
        at((Some(local.ip()), local.port())).or_else(|| at((None, local.port()))).or_else(|| at((None, 0)))
    }

    /// The listener found by [`find`](Self::find).
    pub(crate) fn get(&self, number: NonZeroU32) -> Option<&Listener> {
        self.listeners.get(&number)
    }

    /// The same, for one more connection.
    pub(crate) fn get_mut(&mut self, number: NonZeroU32) -> Option<&mut Listener> {
        self.listeners.get_mut(&number)
    }

    /// What had room did not come.
    pub(crate) fn settle(&mut self, number: NonZeroU32) {
        if let Some(listener) = self.listeners.get_mut(&number) {
            listener.backlog.settle(listener.waiting as usize);
        }
    }

    /// Nobody has room any more.
    pub(crate) fn leave_host(&mut self) {
        self.listeners.values_mut().for_each(|listener| listener.backlog = Limit::own(0));
    }

    /// Another connection is waiting.
    pub(crate) fn enter(&mut self, number: NonZeroU32) {
        if let Some(listener) = self.listeners.get_mut(&number) {
            listener.waiting += 1;
        }
    }

    /// A waiting connection was accepted, or is gone.
    pub(crate) fn leave(&mut self, number: NonZeroU32) {
        if let Some(listener) = self.listeners.get_mut(&number) {
            listener.waiting -= 1;
            listener.backlog.settle(listener.waiting as usize);
        }
    }
}

/// The key of an address and port. The unspecified address means every address, as with `bind`.
fn place(on: ListenOn) -> (Option<IpAddr>, u16) {
    match on {
        ListenOn::Address(address) if address.ip().is_unspecified() => (None, address.port()),
        ListenOn::Address(address) => (Some(address.ip()), address.port()),
        ListenOn::Port(port) => (None, port),
        ListenOn::Any => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_most_specific_listener_takes_the_syn() {
        let mut listeners = Listeners::default();
        let mut add = |on| listeners.add(on, AcceptConfig::default()).unwrap().0;
        let any = add(ListenOn::Any);
        let port = add(ListenOn::Port(80));
        let exact = add(ListenOn::Address(at("10.0.0.1:80")));
        let found = |local| listeners.find(at(local)).unwrap().get();
        assert_eq!(found("10.0.0.1:80"), exact);
        assert_eq!(found("10.0.0.2:80"), port);
        assert_eq!(found("[fd00::1]:80"), port);
        assert_eq!(found("10.0.0.1:81"), any);
        assert_eq!(found("10.0.0.1:0"), any);
    }

    #[test]
    fn a_place_is_taken_once_and_free_again_after_removal() {
        let mut listeners = Listeners::default();
        let first = listeners.add(ListenOn::Port(80), AcceptConfig::default()).unwrap();
        let unspecified = ListenOn::Address(at("0.0.0.0:80"));
        assert_eq!(listeners.add(unspecified, AcceptConfig::default()), Err(ListenError::InUse));
        assert!(listeners.remove(first).is_some());
        assert!(listeners.remove(first).is_none());
        assert!(listeners.find(at("10.0.0.1:80")).is_none());
        assert_ne!(listeners.add(unspecified, AcceptConfig::default()).unwrap(), first);
    }
}
