//! Listeners and connections.

use super::{Host, wrong_kind};
use crate::boundary::copy;
use crate::error::{ACKLINE_ENOTCONN, Failure, code_of};
use crate::sockets::{Name, Socket};
use crate::state::number_of;
use crate::types::{ACKLINE_ENDED, ACKLINE_READABLE, ackline_socket};
use ackline_registry::Change;
use ackline_tcp_core::config::Target;
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::{AcceptConfig, ConnId, ListenOn, ListenerId, State};
use std::mem::MaybeUninit;
use std::net::SocketAddr;

impl Host {
    pub(crate) fn listen(
        &mut self,
        on: ListenOn,
        settings: Option<&str>,
        hold: bool,
        now: u64,
    ) -> Result<ackline_socket, Failure> {
        let mut accept = AcceptConfig::new(self.settings(settings)?);
        accept.hold_syns = hold;
        let now = self.at(now)?;
        let listener = self.endpoint.listen(now, on, accept)?;
        Ok(self.sockets.add(Socket::Listener(listener)))
    }

    pub(crate) fn connect(
        &mut self,
        target: Target,
        settings: Option<&str>,
        now: u64,
    ) -> Result<ackline_socket, Failure> {
        let config = self.settings(settings)?;
        let now = self.at(now)?;
        let conn = self.endpoint.connect(now, target, config)?;
        Ok(self.sockets.add(Socket::Conn(conn)))
    }

    /// The next connection of a listener, or SYN if it holds them.
    pub(crate) fn accept(
        &mut self,
        listener: ackline_socket,
    ) -> Result<(ackline_socket, SocketAddr), Failure> {
        let id = self.listener(listener)?;
        let holds = self.endpoint.accept_config(id).is_some_and(|accept| accept.hold_syns);
        let next = if holds { self.accept_syn_of(id) } else { self.accept_from(id) };
        next.ok_or_else(Failure::not_now)
    }

    fn accept_from(&mut self, listener: ListenerId) -> Option<(ackline_socket, SocketAddr)> {
        loop {
            let id = self.arrived.get_mut(&listener)?.pop_front()?;
            if let Some(conn) = self.endpoint.conn(id) {
                let (_, peer) = conn.addresses();
                let socket = self.sockets.add(Socket::Conn(id));
                self.catch_up(socket, id);
                return Some((socket, peer));
            }
        }
    }

    /// Reports what happened to a connection before it had a handle.
    pub(super) fn catch_up(&mut self, socket: ackline_socket, id: ConnId) {
        let Some(conn) = self.endpoint.conn(id) else { return };
        let readable = conn.at_end() || conn.peek().iter().any(|part| !part.is_empty());
        let ended = matches!(conn.state(), State::Closed | State::TimeWait);
        let events = if readable { ACKLINE_READABLE } else { 0 } | if ended { ACKLINE_ENDED } else { 0 };
        self.sockets.tell(socket, events);
        self.wake.set(self.sockets.has_events());
    }

    fn listener(&self, socket: ackline_socket) -> Result<ListenerId, Failure> {
        match self.sockets.get(socket)? {
            Socket::Listener(id) => Ok(*id),
            _ => Err(wrong_kind("a listener")),
        }
    }

    pub(super) fn conn(&mut self, socket: ackline_socket) -> Result<Conn<'_>, Failure> {
        match self.sockets.get(socket)? {
            Socket::Conn(id) => {
                let id = *id;
                self.endpoint.conn(id).ok_or_else(|| Failure::new(ACKLINE_ENOTCONN, "the connection is gone"))
            }
            Socket::Syn(..) => Err(Failure::new(ACKLINE_ENOTCONN, "the SYN has not become a connection yet")),
            Socket::Failed(code) => Err(Failure::new(*code, "the SYN has not become a connection")),
            _ => Err(wrong_kind("a connection")),
        }
    }

    pub(crate) fn write(&mut self, socket: ackline_socket, data: &[u8], now: u64) -> Result<i64, Failure> {
        let now = self.at(now)?;
        let taken = self.conn(socket)?.write(now, data)?;
        if taken == 0 && !data.is_empty() {
            return Err(Failure::not_now());
        }
        Ok(taken as i64)
    }

    pub(crate) fn read(
        &mut self,
        socket: ackline_socket,
        room: &mut [MaybeUninit<u8>],
        now: u64,
    ) -> Result<i64, Failure> {
        let now = self.at(now)?;
        let mut conn = self.conn(socket)?;
        if room.is_empty() {
            return Err(Failure::invalid(
                "there is no room to read into: 0 would mean the end of the stream",
            ));
        }
        let [first, second] = conn.peek();
        let mut taken = copy(first, room);
        if let Some(rest) = room.get_mut(taken..) {
            taken += copy(second, rest);
        }
        if taken > 0 {
            conn.consume(now, taken);
            return Ok(taken as i64);
        }
        // Nothing to read: `read` returns the reason, and arms the event.
        match conn.read(now, &mut [0]) {
            Ok(_) if conn.at_end() => Ok(0),
            Ok(_) => Err(Failure::not_now()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn shutdown(&mut self, socket: ackline_socket, now: u64) -> Result<i32, Failure> {
        let now = self.at(now)?;
        self.conn(socket)?.shutdown(now);
        Ok(0)
    }

    pub(crate) fn abort(&mut self, socket: ackline_socket, now: u64) -> Result<i32, Failure> {
        let now = self.at(now)?;
        self.conn(socket)?.abort(now);
        Ok(0)
    }

    /// Changes settings of a live connection.
    pub(crate) fn set(&mut self, socket: ackline_socket, text: &str, now: u64) -> Result<i32, Failure> {
        let change = Change::parse(&self.registry, text)?;
        let now = self.at(now)?;
        change.apply(&mut self.conn(socket)?, now)?;
        Ok(0)
    }

    pub(crate) fn state(&mut self, socket: ackline_socket) -> Result<i32, Failure> {
        let state = match self.sockets.get(socket)? {
            Socket::Conn(_) => self.conn(socket)?.state(),
            Socket::Listener(_) => State::Listen,
            Socket::Syn(..) => State::SynReceived,
            Socket::Udp(_) => return Err(wrong_kind("of TCP")),
            Socket::Failed(_) => State::Closed,
        };
        Ok(number_of(state))
    }

    /// The code of the error that ended a connection; 0 if it has not ended, or both sides closed.
    pub(crate) fn end(&mut self, socket: ackline_socket) -> Result<i32, Failure> {
        match self.sockets.get(socket)? {
            Socket::Failed(code) => Ok(*code),
            Socket::Syn(..) => Ok(0),
            _ => Ok(self.conn(socket)?.error().map_or(0, code_of)),
        }
    }

    pub(crate) fn is_flushed(&mut self, socket: ackline_socket) -> Result<i32, Failure> {
        Ok(self.conn(socket)?.is_flushed().into())
    }

    pub(crate) fn info(&mut self, socket: ackline_socket) -> Result<Info, Failure> {
        Ok(self.conn(socket)?.info())
    }

    /// Local and remote address; a listener and an unconnected UDP socket have no remote one.
    pub(crate) fn addresses(
        &mut self,
        socket: ackline_socket,
    ) -> Result<(SocketAddr, Option<SocketAddr>), Failure> {
        match self.sockets.get(socket)? {
            Socket::Udp(id) => {
                let id = *id;
                self.endpoint
                    .udp()
                    .addresses(id)
                    .ok_or_else(|| Failure::new(ACKLINE_ENOTCONN, "the socket has ended"))
            }
            Socket::Listener(id) => {
                let on = self.endpoint.listens_on(*id);
                let any = |port| SocketAddr::from(([0, 0, 0, 0], port));
                Ok(match on {
                    Some(ListenOn::Address(address)) => (address, None),
                    Some(ListenOn::Port(port)) => (any(port), None),
                    Some(ListenOn::Any) | None => (any(0), None),
                })
            }
            Socket::Syn(_, [local, remote]) => Ok((*local, Some(*remote))),
            _ => {
                let (local, remote) = self.conn(socket)?.addresses();
                Ok((local, Some(remote)))
            }
        }
    }
}

impl Host {
    /// A SYN will not become a connection.
    pub(super) fn fail(&mut self, name: Name, error: ConnError) {
        if let Some(socket) = self.sockets.replace(name, Socket::Failed(code_of(error))) {
            self.sockets.tell(socket, ACKLINE_ENDED);
        }
    }
}
