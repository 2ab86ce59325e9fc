//! SYNs that a listener holds: the program takes one with `accept`, and answers or refuses it.

use super::{Host, wrong_kind};
use crate::error::Failure;
use crate::sockets::{Name, Socket};
use crate::types::{ACKLINE_READABLE, ACKLINE_WRITABLE, ackline_socket};
use ackline_tcp_core::ListenerId;
use ackline_tcp_core::endpoint::{Refusal, SynEvent, SynId};
use std::net::SocketAddr;

impl Host {
    pub(super) fn accept_syn_of(&mut self, listener: ListenerId) -> Option<(ackline_socket, SocketAddr)> {
        let (id, syn) = self.endpoint.syns().next(listener)?;
        Some((self.sockets.add(Socket::Syn(id, [syn.local, syn.remote])), syn.remote))
    }

    fn syn(&self, socket: ackline_socket) -> Result<SynId, Failure> {
        match self.sockets.get(socket)? {
            Socket::Syn(id, _) => Ok(*id),
            Socket::Failed(code) => Err(Failure::new(*code, "the client no longer waits")),
            _ => Err(wrong_kind("a SYN that waits for an answer")),
        }
    }

    /// Answers a SYN with a SYN-ACK.
    pub(crate) fn answer(&mut self, socket: ackline_socket, now: u64) -> Result<i32, Failure> {
        let id = self.syn(socket)?;
        let now = self.at(now)?;
        self.endpoint.syns().accept(now, id)?;
        Ok(0)
    }

    /// Refuses a SYN, and closes its socket.
    pub(crate) fn refuse(&mut self, socket: ackline_socket, how: Refusal, now: u64) -> Result<i32, Failure> {
        let id = self.syn(socket)?;
        let now = self.at(now)?;
        self.endpoint.syns().refuse(now, id, how);
        self.sockets.remove(socket)?;
        Ok(0)
    }

    pub(super) fn collect_syns(&mut self) {
        while let Some(event) = self.endpoint.syns().poll_event() {
            match event {
                SynEvent::Arrived(listener) => self.tell(Name::Listener(listener), ACKLINE_READABLE),
                SynEvent::Connected { syn, conn } => {
                    let became = self.sockets.replace(Name::Syn(syn), Socket::Conn(conn));
                    if let Some(socket) = became {
                        self.sockets.tell(socket, ACKLINE_WRITABLE);
                        self.catch_up(socket, conn);
                    } else {
                        // The program closed it in the same instant.
                        self.endpoint.abort(self.now, conn);
                        self.endpoint.release(self.now, conn);
                    }
                }
                SynEvent::Ended { syn, error } => self.fail(Name::Syn(syn), error),
                _ => {}
            }
        }
    }
}
