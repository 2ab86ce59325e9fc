//! Calls that open and close: `socket`, `bind`, `listen`, `accept`, `connect`, `shutdown`, `close`.

use super::zerocopy::ZeroCopy;
use super::{Descriptor, Kind, Socket, Sockets, arg, number};
use crate::host::{Attempt, OpenCall, Progress};
use crate::script::{Call, Expr};
use crate::symbols::{self, O_NONBLOCK};
use crate::world::World;
use ackline_tcp_core::config::FastOpen;
use ackline_tcp_core::error::ConnectError;
use ackline_tcp_core::{AcceptConfig, ConnId, ListenOn, State, Target};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// `listen` with a backlog of n lets n + 1 connections wait (Linux: `sk_acceptq_is_full`).
const BACKLOG_BONUS: u32 = 1;

impl Sockets {
    pub(super) fn socket(&mut self, call: &Call) -> Result<Attempt, String> {
        if let Expr::Names(domain) = arg(call, 0)?
            && !domain
                .iter()
                .all(|name| matches!(name.as_str(), "AF_INET" | "AF_INET6" | "PF_INET" | "PF_INET6"))
        {
            return Err(format!("the address family {}", domain.join("|")));
        }
        let kind = symbols::value(arg(call, 1)?).map_err(|_| "sockets of other types than SOCK_STREAM")?;
        let protocol = arg(call, 2)?;
        let is_tcp = match protocol {
            Expr::Int(number) => matches!(number, 0 | 6),
            other => symbols::name(other)? == "IPPROTO_TCP",
        };
        if kind & 0xf != 1 || !is_tcp {
            return Err("sockets of other protocols than TCP".to_owned());
        }
        let fd = self.number_for(call);
        let socket = Socket::new(self.config.clone(), kind & O_NONBLOCK != 0);
        self.table.insert(fd, Descriptor::Socket(Box::new(socket)));
        Ok(Attempt::Returned(fd))
    }

    pub(super) fn bind(&mut self, fd: i64, call: &Call) -> Result<Attempt, String> {
        let port = port_of(arg(call, 1)?)?.unwrap_or_else(|| self.ends.local.port());
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        if socket.bound.is_some() || !matches!(socket.kind, Kind::Fresh) {
            return Ok(Attempt::Failed("EINVAL"));
        }
        socket.bound = Some(port);
        Ok(Attempt::Returned(0))
    }

    pub(super) fn listen(&mut self, world: &mut World, fd: i64, call: &Call) -> Result<Attempt, String> {
        let backlog = u32::try_from(number(call, 1)?).unwrap_or(0).saturating_add(BACKLOG_BONUS);
        let ip = self.ends.local.ip();
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        match &socket.kind {
            Kind::Fresh => {}
            Kind::Listener { id, .. } => {
                if let Some(accept) = world.endpoint.accept_config(*id) {
                    accept.backlog = backlog;
                }
                return Ok(Attempt::Returned(0));
            }
            _ => return Ok(Attempt::Failed("EINVAL")),
        }
        let on = SocketAddr::new(ip, socket.bound.unwrap_or(0));
        let mut accept = AcceptConfig::new(Arc::new(socket.config.clone()));
        accept.backlog = backlog;
        let Ok(id) = world.endpoint.listen(world.now, ListenOn::Address(on), accept) else {
            return Ok(Attempt::Failed("EADDRINUSE"));
        };
        let on = match world.endpoint.listens_on(id) {
            Some(ListenOn::Address(on)) => on,
            _ => on,
        };
        socket.kind = Kind::Listener { id, queue: VecDeque::new() };
        self.opened.push(OpenCall::Listening(on));
        Ok(Attempt::Returned(0))
    }

    pub(super) fn accept(&mut self, world: &mut World, fd: i64, call: &Call) -> Result<Attempt, String> {
        let flags = if call.name == "accept4" { number(call, 3)? } else { 0 };
        let new = self.number_for(call);
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let nonblocking = socket.nonblocking;
        let Kind::Listener { queue, .. } = &mut socket.kind else { return Ok(Attempt::Failed("EINVAL")) };
        let Some(conn) = queue.pop_front() else {
            return Ok(if nonblocking { Attempt::Failed("EAGAIN") } else { Attempt::Blocks });
        };
        // The first look at it accepts it.
        if world.endpoint.conn(conn).is_none() {
            return Ok(Attempt::Failed("ECONNABORTED"));
        }
        let mut accepted = Socket::new(socket.config.clone(), flags & O_NONBLOCK != 0);
        accepted.set = socket.set.clone();
        accepted.linger = socket.linger;
        accepted.zero_copy = socket.zero_copy.as_ref().map(|_| ZeroCopy::default());
        accepted.kind = Kind::Conn(conn);
        (accepted.success_told, accepted.was_open) = (true, true);
        self.table.insert(new, Descriptor::Socket(Box::new(accepted)));
        Ok(Attempt::Returned(new))
    }

    pub(super) fn connect(
        &mut self,
        world: &mut World,
        fd: i64,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let address = arg(call, 1)?;
        if address.field("sa_family").is_some_and(|family| symbols::name(family) == Ok("AF_UNSPEC")) {
            return Ok(self.disconnect(world, fd));
        }
        let to = self.remote(address)?;
        let has_cookie = self.has_cookie;
        let may_fast_open = self.fast_open & 1 != 0;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        match socket.kind {
            Kind::Fresh if socket.fast_open_connect && may_fast_open && !progress.begun => {
                // Without a cookie, the SYN that asks for one leaves at once.
                if has_cookie || !socket.config.fast_open_cookies {
                    socket.kind = Kind::Deferred(to);
                    return Ok(Attempt::Returned(0));
                }
                socket.config.fast_open = FastOpen::Client;
                self.open(world, fd, to)?;
            }
            Kind::Fresh => self.open(world, fd, to)?,
            Kind::Deferred(_) => return Ok(Attempt::Failed("EISCONN")),
            Kind::Listener { .. } => return Ok(Attempt::Failed("EISCONN")),
            Kind::Conn(_) => {}
        }
        let begun = progress.begun;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let Kind::Conn(id) = socket.kind else { return Ok(Attempt::Failed("EADDRNOTAVAIL")) };
        let state = world.endpoint.state(id).unwrap_or(State::Closed);
        if let Some(error) = socket.take_error(world) {
            return Ok(Attempt::Failed(error));
        }
        match state {
            State::SynSent | State::SynReceived if !socket.nonblocking => Ok(Attempt::Blocks),
            State::SynSent | State::SynReceived if socket.connect_told && !begun => {
                Ok(Attempt::Failed("EALREADY"))
            }
            State::SynSent | State::SynReceived => {
                socket.connect_told = true;
                Ok(Attempt::Failed("EINPROGRESS"))
            }
            State::Closed if !socket.was_open => Ok(Attempt::Failed("ECONNABORTED")),
            // The first call after the handshake still says that it succeeded.
            _ if !socket.nonblocking && begun || !socket.success_told => {
                socket.success_told = true;
                Ok(Attempt::Returned(0))
            }
            _ => Ok(Attempt::Failed("EISCONN")),
        }
    }

    /// `connect` to AF_UNSPEC: the socket is as new, and the peer gets a reset (Linux:
    /// `tcp_disconnect`).
    fn disconnect(&mut self, world: &mut World, fd: i64) -> Attempt {
        let Some(socket) = self.get(fd) else { return Attempt::Failed("EBADF") };
        match std::mem::replace(&mut socket.kind, Kind::Fresh) {
            Kind::Conn(id) => {
                world.endpoint.abort(world.now, id);
                world.endpoint.release(world.now, id);
            }
            Kind::Listener { id, .. } => world.endpoint.unlisten(world.now, id),
            Kind::Fresh | Kind::Deferred(_) => {}
        }
        let nonblocking = socket.nonblocking;
        *socket = Socket {
            set: std::mem::take(&mut socket.set),
            bound: socket.bound,
            ..Socket::new(socket.config.clone(), nonblocking)
        };
        Attempt::Returned(0)
    }

    /// Opens a connection to `to`, and leaves the socket as it is if there is none to be had.
    pub(super) fn open(&mut self, world: &mut World, fd: i64, to: SocketAddr) -> Result<(), String> {
        let asked_ecn = self.asked_ecn;
        let Some(socket) = self.get(fd) else { return Ok(()) };
        if let Some(ecn) = asked_ecn {
            socket.config.ecn = ecn;
        }
        let mut target = Target::new(to);
        target.local_port = socket.bound;
        match world.endpoint.connect(world.now, target, Arc::new(socket.config.clone())) {
            Ok(id) => {
                socket.kind = Kind::Conn(id);
                if let Some(conn) = world.endpoint.inspect(id) {
                    let (local, remote) = conn.addresses();
                    self.opened.push(OpenCall::Connecting(local, remote));
                }
                Ok(())
            }
            Err(ConnectError::InUse | ConnectError::NoFreePort) => Ok(()),
            Err(error) => Err(format!("connect: {error}")),
        }
    }

    /// The address in a call, or the peer of the script.
    pub(super) fn remote(&self, address: &Expr) -> Result<SocketAddr, String> {
        let port = port_of(address)?.unwrap_or_else(|| self.ends.remote.port());
        Ok(SocketAddr::new(self.ends.remote.ip(), port))
    }

    pub(super) fn shutdown(&mut self, world: &mut World, fd: i64, call: &Call) -> Result<Attempt, String> {
        let how = number(call, 1)?;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let id = match &socket.kind {
            Kind::Conn(id) => *id,
            Kind::Listener { id, .. } => {
                let id = *id;
                socket.kind = Kind::Fresh;
                world.endpoint.unlisten(world.now, id);
                return Ok(Attempt::Returned(0));
            }
            Kind::Fresh | Kind::Deferred(_) => return Ok(Attempt::Failed("ENOTCONN")),
        };
        if matches!(world.endpoint.state(id), None | Some(State::Closed)) {
            return Ok(Attempt::Failed("ENOTCONN"));
        }
        socket.read_shut |= how != 1;
        socket.write_shut |= how != 0;
        if how != 0
            && let Some(mut conn) = world.endpoint.conn(id)
        {
            conn.shutdown(world.now);
        }
        Ok(Attempt::Returned(0))
    }

    pub(super) fn close(
        &mut self,
        world: &mut World,
        fd: i64,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let Some(socket) = self.get(fd) else {
            let was_there = self.table.remove(&fd).is_some();
            return Ok(if was_there { Attempt::Returned(0) } else { Attempt::Failed("EBADF") });
        };
        match (&socket.kind, socket.linger) {
            (Kind::Listener { id, .. }, _) => world.endpoint.unlisten(world.now, *id),
            (Kind::Conn(id), Some(time)) if time.is_zero() => {
                let id = *id;
                world.endpoint.abort(world.now, id);
                world.endpoint.release(world.now, id);
            }
            // The descriptor's flags do not matter (Linux: `tcp_close`).
            (Kind::Conn(id), Some(time)) => {
                let id = *id;
                let deadline = *progress.deadline.get_or_insert(world.micros_now() + time.as_micros());
                if !progress.begun
                    && let Some(mut conn) = world.endpoint.conn(id)
                {
                    conn.shutdown(world.now);
                }
                if !is_flushed(world, id) && world.micros_now() < deadline {
                    return Ok(Attempt::Blocks);
                }
                world.endpoint.release(world.now, id);
            }
            (Kind::Conn(id), _) => world.endpoint.release(world.now, *id),
            (Kind::Fresh | Kind::Deferred(_), _) => {}
        }
        self.table.remove(&fd);
        Ok(Attempt::Returned(0))
    }
}

/// Everything written and the FIN are acknowledged, or nothing will be any more.
fn is_flushed(world: &mut World, id: ConnId) -> bool {
    match world.endpoint.conn(id) {
        Some(conn) => conn.is_flushed() || matches!(conn.state(), State::Closed | State::TimeWait),
        None => true,
    }
}

/// The port in an address; `None` for `...`.
fn port_of(address: &Expr) -> Result<Option<u16>, String> {
    let port = match address.field("sin_port").or_else(|| address.field("sin6_port")) {
        Some(Expr::Apply(function, args)) if function == "htons" => match args.as_slice() {
            [port] => symbols::value(port)?,
            _ => return Err("htons with several arguments".to_owned()),
        },
        Some(other) => symbols::value(other)?,
        None => return Ok(None),
    };
    u16::try_from(port).map(Some).map_err(|_| format!("the port {port}"))
}
