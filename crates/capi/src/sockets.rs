//! The sockets of a stack by handle, and which of them have news.
//!
//! A handle is a number: the place of a socket in a table, and how many sockets had that place
//! before. So a closed socket matches no later one, and whatever number C passes is looked up, not
//! believed.

use crate::error::{ACKLINE_EBADF, Failure};
use crate::types::ackline_socket;
use ackline_tcp_core::endpoint::SynId;
use ackline_tcp_core::{ConnId, ListenerId, UdpId};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// What the endpoint calls a socket.
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
    /// A SYN that the program has, with its local and remote address.
    Syn(SynId, [SocketAddr; 2]),
    /// A SYN that has not become a connection: the code of the error.
    Failed(i32),
}

impl Socket {
    /// `None` if the endpoint has nothing of it any more.
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
struct Place {
    /// How many sockets were here before, and 1, so that no handle is 0.
    generation: u32,
    socket: Option<Socket>,
    /// What the program has not been told.
    news: u32,
    /// It is in the queue.
    queued: bool,
}

/// All sockets of a stack.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    places: Vec<Place>,
    free: Vec<u32>,
    by_name: HashMap<Name, u32>,
    /// Places with news, each once; the socket may be gone meanwhile. No longer than `places`.
    queue: VecDeque<u32>,
}

impl Sockets {
    /// Adds a socket.
    pub(crate) fn add(&mut self, socket: Socket) -> ackline_socket {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 1, socket: None, news: 0, queued: false });
            self.places.len() as u32 - 1
        });
        if let Some(name) = socket.name() {
            self.by_name.insert(name, at);
        }
        // It is a free place, or the one just made.
        let place = &mut self.places[at as usize];
        place.socket = Some(socket);
        handle(at, place.generation)
    }

    /// The socket with this handle.
    pub(crate) fn get(&self, socket: ackline_socket) -> Result<&Socket, Failure> {
        let found = self.places.get(socket as u32 as usize).filter(|place| place.matches(socket));
        found.and_then(|place| place.socket.as_ref()).ok_or_else(|| unknown(socket))
    }

    /// Removes the socket with this handle.
    pub(crate) fn remove(&mut self, socket: ackline_socket) -> Result<Socket, Failure> {
        let at = socket as u32;
        let place = self.places.get_mut(at as usize).filter(|place| place.matches(socket));
        let place = place.ok_or_else(|| unknown(socket))?;
        let removed = place.socket.take().ok_or_else(|| unknown(socket))?;
        place.news = 0;
        if let Some(name) = removed.name() {
            self.by_name.remove(&name);
        }
        // A place whose generations are used up is given up: handles are never used again.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(at);
        }
        Ok(removed)
    }

    /// The socket called `name` is another one from now on; returns its handle, if the program has
    /// it.
    pub(crate) fn become_another(&mut self, name: Name, socket: Socket) -> Option<ackline_socket> {
        let at = self.by_name.remove(&name)?;
        if let Some(name) = socket.name() {
            self.by_name.insert(name, at);
        }
        let place = self.places.get_mut(at as usize)?;
        place.socket = Some(socket);
        Some(handle(at, place.generation))
    }

    /// The socket called `name`, if the program has it.
    pub(crate) fn called(&self, name: Name) -> Option<ackline_socket> {
        let at = *self.by_name.get(&name)?;
        Some(handle(at, self.places.get(at as usize)?.generation))
    }

    /// There is `news` of a socket.
    pub(crate) fn tell(&mut self, socket: ackline_socket, news: u32) {
        let at = socket as u32;
        let Some(place) = self.places.get_mut(at as usize) else { return };
        if news == 0 || !place.matches(socket) {
            return;
        }
        place.news |= news;
        if !place.queued {
            place.queued = true;
            self.queue.push_back(at);
        }
    }

    /// True if some socket may have news.
    pub(crate) fn has_news(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes the news of the socket that has waited longest.
    pub(crate) fn take_news(&mut self) -> Option<(ackline_socket, u32)> {
        loop {
            let at = self.queue.pop_front()?;
            let Some(place) = self.places.get_mut(at as usize) else { continue };
            place.queued = false;
            let news = std::mem::take(&mut place.news);
            if news != 0 {
                return Some((handle(at, place.generation), news));
            }
        }
    }
}

impl Place {
    const fn matches(&self, socket: ackline_socket) -> bool {
        self.socket.is_some() && self.generation == (socket >> 32) as u32
    }
}

fn handle(at: u32, generation: u32) -> ackline_socket {
    u64::from(generation) << 32 | u64::from(at)
}

fn unknown(socket: ackline_socket) -> Failure {
    Failure::new(ACKLINE_EBADF, format!("{socket:#x} is no socket of this stack, or it is closed"))
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
        assert_eq!(first as u32, second as u32, "it has the place of the first");
        for wrong in [0, 1, first, second + 1, second | 1 << 63, u64::MAX] {
            assert_eq!(sockets.get(wrong).unwrap_err().code, ACKLINE_EBADF);
        }
        // News of the first, before and after, are not the second's.
        sockets.tell(first, 1);
        assert_eq!(sockets.take_news(), None);
    }

    #[test]
    fn news_wait_in_one_place_per_socket_however_many_come_and_go() {
        let mut sockets = Sockets::default();
        for round in 0..1_000 {
            let socket = sockets.add(conn(round));
            sockets.tell(socket, 1);
            sockets.tell(socket, 2);
            sockets.remove(socket).unwrap();
        }
        assert_eq!((sockets.places.len(), sockets.queue.len()), (1, 1));
        let (a, b) = (sockets.add(conn(1)), sockets.add(conn(2)));
        for (socket, news) in [(b, 4), (a, 1), (b, 2)] {
            sockets.tell(socket, news);
        }
        let mut told = vec![sockets.take_news().unwrap(), sockets.take_news().unwrap()];
        told.sort_unstable();
        let mut expected = vec![(a, 1), (b, 6)];
        expected.sort_unstable();
        assert_eq!(told, expected);
        assert!(!sockets.has_news());
    }

    #[test]
    fn a_place_is_given_up_rather_than_a_handle_used_again() {
        let mut sockets = Sockets::default();
        sockets.places.push(Place { generation: u32::MAX, socket: None, news: 0, queued: false });
        sockets.free.push(0);
        let last = sockets.add(conn(0));
        sockets.remove(last).unwrap();
        assert_eq!(sockets.add(conn(1)) as u32, 1);
        assert_eq!(sockets.get(last).unwrap_err().code, ACKLINE_EBADF);
    }
}
