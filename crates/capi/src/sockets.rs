//! The sockets of a stack by handle, and their events that the program has not taken.
//!
//! A handle is a slot of a table and the slot's generation, which each socket increments. So the
//! handle of a closed socket matches no later socket, and any number that C passes can be checked.

use crate::error::{ACKLINE_EBADF, Failure};
use crate::types::ackline_socket;
use ackline_tcp_core::endpoint::SynId;
use ackline_tcp_core::{ConnId, ListenerId, UdpId};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// The endpoint's id of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Conn(ConnId),
    Listener(ListenerId),
    Udp(UdpId),
    Syn(SynId),
}

/// A socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Conn(ConnId),
    Listener(ListenerId),
    Udp(UdpId),
    /// A held SYN, with its local and remote address.
    Syn(SynId, [SocketAddr; 2]),
    /// A held SYN that failed to become a connection: the error code.
    Failed(i32),
}

impl Socket {
    /// `None` if the endpoint no longer has it.
    const fn name(&self) -> Option<Name> {
        Some(match self {
            Self::Conn(id) => Name::Conn(*id),
            Self::Listener(id) => Name::Listener(*id),
            Self::Udp(id) => Name::Udp(*id),
            Self::Syn(id, _) => Name::Syn(*id),
            Self::Failed(_) => return None,
        })
    }
}

#[derive(Debug)]
struct Slot {
    /// Number of sockets that this slot has had, counted from 1 so that no handle is 0.
    generation: u32,
    socket: Option<Socket>,
    /// Events that the program has not taken.
    events: u32,
    /// Whether the slot is in the queue.
    queued: bool,
}

/// All sockets of a stack.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_name: HashMap<Name, u32>,
    /// Slots with events, each once; the socket may have been closed since. No longer than `slots`.
    queue: VecDeque<u32>,
}

impl Sockets {
    /// Adds a socket.
    pub(crate) fn add(&mut self, socket: Socket) -> ackline_socket {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 1, socket: None, events: 0, queued: false });
            self.slots.len() as u32 - 1
        });
        if let Some(name) = socket.name() {
            self.by_name.insert(name, at);
        }
        // A free slot, or the one just pushed.
        let slot = &mut self.slots[at as usize];
        slot.socket = Some(socket);
        handle(at, slot.generation)
    }

    /// The socket with this handle.
    pub(crate) fn get(&self, socket: ackline_socket) -> Result<&Socket, Failure> {
        let found = self.slots.get(socket as u32 as usize).filter(|slot| slot.matches(socket));
        found.and_then(|slot| slot.socket.as_ref()).ok_or_else(|| unknown(socket))
    }

    /// Removes the socket with this handle.
    pub(crate) fn remove(&mut self, socket: ackline_socket) -> Result<Socket, Failure> {
        let at = socket as u32;
        let slot = self.slots.get_mut(at as usize).filter(|slot| slot.matches(socket));
        let slot = slot.ok_or_else(|| unknown(socket))?;
        let removed = slot.socket.take().ok_or_else(|| unknown(socket))?;
        slot.events = 0;
        if let Some(name) = removed.name() {
            self.by_name.remove(&name);
        }
        // A slot whose generations are used up is retired: handles are never reused.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push(at);
        }
        Ok(removed)
    }

    /// Replaces the socket called `name`, and returns its handle, if the program has one.
    pub(crate) fn replace(&mut self, name: Name, socket: Socket) -> Option<ackline_socket> {
        let at = self.by_name.remove(&name)?;
        if let Some(name) = socket.name() {
            self.by_name.insert(name, at);
        }
        let slot = self.slots.get_mut(at as usize)?;
        slot.socket = Some(socket);
        Some(handle(at, slot.generation))
    }

    /// The handle of the socket called `name`, if the program has one.
    pub(crate) fn called(&self, name: Name) -> Option<ackline_socket> {
        let at = *self.by_name.get(&name)?;
        Some(handle(at, self.slots.get(at as usize)?.generation))
    }

    /// Adds events of a socket.
    pub(crate) fn tell(&mut self, socket: ackline_socket, events: u32) {
        let at = socket as u32;
        let Some(slot) = self.slots.get_mut(at as usize) else { return };
        if events == 0 || !slot.matches(socket) {
            return;
        }
        slot.events |= events;
        if !slot.queued {
            slot.queued = true;
            self.queue.push_back(at);
        }
    }

    /// True if some socket may have events.
    pub(crate) fn has_events(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the events of the socket that has waited longest.
    pub(crate) fn take_events(&mut self) -> Option<(ackline_socket, u32)> {
        loop {
            let at = self.queue.pop_front()?;
            let Some(slot) = self.slots.get_mut(at as usize) else { continue };
            slot.queued = false;
            let events = std::mem::take(&mut slot.events);
            if events != 0 {
                return Some((handle(at, slot.generation), events));
            }
        }
    }
}

impl Slot {
    const fn matches(&self, socket: ackline_socket) -> bool {
        self.socket.is_some() && self.generation == (socket >> 32) as u32
    }
}

fn handle(at: u32, generation: u32) -> ackline_socket {
    u64::from(generation) << 32 | u64::from(at)
}

fn unknown(socket: ackline_socket) -> Failure {
    Failure::new(ACKLINE_EBADF, format!("{socket:#x} is not an open socket of this stack"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn(index: u32) -> Socket {
        Socket::Conn(ConnId::for_test(index, 1))
    }

    #[test]
    fn a_handle_matches_its_socket_only() {
        let mut sockets = Sockets::default();
        let first = sockets.add(conn(0));
        assert_ne!(first, 0);
        sockets.tell(first, 1);
        sockets.remove(first).unwrap();
        assert_eq!(sockets.remove(first).unwrap_err().code, ACKLINE_EBADF);
        let second = sockets.add(conn(1));
        assert_ne!(first, second);
        assert_eq!(first as u32, second as u32, "it has the slot of the first");
        for wrong in [0, 1, first, second + 1, second | 1 << 63, u64::MAX] {
            assert_eq!(sockets.get(wrong).unwrap_err().code, ACKLINE_EBADF);
        }
        // Events of the first, before and after, are not the second's.
        sockets.tell(first, 1);
        assert_eq!(sockets.take_events(), None);
    }

    #[test]
    fn events_wait_in_one_slot_however_many_sockets_use_it() {
        let mut sockets = Sockets::default();
        for round in 0..1_000 {
            let socket = sockets.add(conn(round));
            sockets.tell(socket, 1);
            sockets.tell(socket, 2);
            sockets.remove(socket).unwrap();
        }
        assert_eq!((sockets.slots.len(), sockets.queue.len()), (1, 1));
        let (a, b) = (sockets.add(conn(1)), sockets.add(conn(2)));
        for (socket, events) in [(b, 4), (a, 1), (b, 2)] {
            sockets.tell(socket, events);
        }
        let mut told = vec![sockets.take_events().unwrap(), sockets.take_events().unwrap()];
        told.sort_unstable();
        let mut expected = vec![(a, 1), (b, 6)];
        expected.sort_unstable();
        assert_eq!(told, expected);
        assert!(!sockets.has_events());
    }

    #[test]
    fn a_slot_is_retired_rather_than_a_handle_reused() {
        let mut sockets = Sockets::default();
        sockets.slots.push(Slot { generation: u32::MAX, socket: None, events: 0, queued: false });
        sockets.free.push(0);
        let last = sockets.add(conn(0));
        sockets.remove(last).unwrap();
        assert_eq!(sockets.add(conn(1)) as u32, 1);
        assert_eq!(sockets.get(last).unwrap_err().code, ACKLINE_EBADF);
    }
}
