//! System calls over an endpoint: descriptors, sockets, and what each call returns.
//!
//! A call is attempted. If it would block, it is attempted again whenever something has happened,
//! with the state that it keeps meanwhile ([`Progress`]).

mod data;
mod open;
mod options;
mod poll;
mod zerocopy;

#[cfg(all(feature = "kernel", target_os = "linux"))]
pub(crate) use data::{Transfer, transfer};

use crate::host::{Attempt, OpenCall, Progress};
use crate::script::{Call, Expr};
use crate::settings::{Profile, Settings};
use crate::symbols::{self, Errno, O_NONBLOCK, O_RDWR};
use crate::world::World;
use ackline_registry::Registry;
use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Event, ListenerId, State};
use poll::Epoll;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use zerocopy::ZeroCopy;

/// A socket.
#[derive(Debug)]
struct Socket {
    kind: Kind,
    nonblocking: bool,
    /// Settings for the connection to come, or of the one there is.
    config: ConnConfig,
    /// What `getsockopt` returns for options that were set.
    set: BTreeMap<(String, String), i64>,
    /// Bound to a port.
    bound: Option<u16>,
    /// `SO_LINGER`.
    linger: Option<Duration>,
    /// `TCP_FASTOPEN_CONNECT`.
    fast_open_connect: bool,
    /// The last send had `MSG_MORE`.
    has_more: bool,
    /// `SO_ZEROCOPY`.
    zero_copy: Option<ZeroCopy>,
    /// `shutdown(SHUT_RD)`.
    read_shut: bool,
    /// The peer has sent its FIN.
    peer_closed: bool,
    /// So has this side: a reset in LAST-ACK or CLOSING is told by another name than in CLOSE-WAIT.
    write_shut: bool,
    /// The connection's error was returned.
    error_told: bool,
    /// `connect` has returned EINPROGRESS.
    connect_told: bool,
    /// `connect` has returned 0, or `accept` has returned this socket.
    success_told: bool,
    /// The connection was established.
    was_open: bool,
    /// Counts arrivals and new space, for edges.
    edges: poll::Edges,
}

#[derive(Debug)]
enum Kind {
    /// Neither listening nor connected.
    Fresh,
    /// `connect` with `TCP_FASTOPEN_CONNECT`: the first write sends the SYN.
    Deferred(SocketAddr),
    Listener {
        id: ListenerId,
        queue: VecDeque<ConnId>,
    },
    Conn(ConnId),
}

enum Descriptor {
    Socket(Box<Socket>),
    Epoll(Epoll),
}

/// Addresses and ports of both ends.
#[derive(Clone, Copy, Debug)]
struct Ends {
    /// The stack, with the port that `bind` takes.
    local: SocketAddr,
    /// The script, with the port that `connect` takes.
    remote: SocketAddr,
}

/// All descriptors.
pub(crate) struct Sockets {
    table: BTreeMap<i64, Descriptor>,
    /// Settings of new sockets.
    config: ConnConfig,
    /// The ECN for which connects ask, if it is another than the one that listeners accept.
    asked_ecn: Option<Ecn>,
    registry: Arc<Registry>,
    profile: Profile,
    ends: Ends,
    /// `tcp_fastopen`: connects may use it (1), and listeners (2).
    fast_open: i64,
    /// The peer has given a fast open cookie.
    pub(crate) has_cookie: bool,
    /// The MSS in the peer's SYN-ACKs, which limits what a SYN carries.
    pub(crate) peer_mss: u32,
    /// What the calls have done to connections: who is under test now.
    pub(crate) opened: Vec<OpenCall>,
}

impl Sockets {
    /// No descriptors; new sockets have the settings of the run.
    pub(crate) fn new(settings: &Settings, registry: Arc<Registry>) -> Self {
        Self {
            table: BTreeMap::new(),
            config: settings.conn.clone(),
            asked_ecn: settings.asked_ecn,
            registry,
            profile: settings.profile,
            ends: Ends { local: settings.local, remote: settings.remote },
            fast_open: settings.fast_open,
            has_cookie: false,
            peer_mss: u32::from(u16::MAX),
            opened: vec![],
        }
    }

    /// New sockets have these settings from now on.
    pub(crate) fn set_defaults(&mut self, settings: &Settings) {
        self.config = settings.conn.clone();
        (self.asked_ecn, self.fast_open) = (settings.asked_ecn, settings.fast_open);
    }

    /// Takes the news of connections.
    pub(crate) fn hear(&mut self, world: &mut World) {
        for event in std::mem::take(&mut world.news) {
            if let Event::Accepted { listener, conn } = event {
                let waiting = self.sockets().find_map(|socket| match &mut socket.kind {
                    Kind::Listener { id, queue } if *id == listener => Some(queue),
                    _ => None,
                });
                if let Some(queue) = waiting {
                    queue.push_back(conn);
                }
            }
            for socket in self.sockets() {
                if matches!(socket.kind, Kind::Conn(id) if id == event.conn()) {
                    socket.edges.hear(&event);
                    socket.was_open |= matches!(event, Event::Connected(_));
                }
            }
        }
        self.hear_reports(world);
        for socket in self.sockets() {
            let Kind::Conn(id) = socket.kind else { continue };
            socket.peer_closed |= matches!(
                world.endpoint.state(id),
                Some(State::CloseWait | State::LastAck | State::Closing | State::TimeWait)
            );
        }
    }

    fn sockets(&mut self) -> impl Iterator<Item = &mut Socket> {
        self.table.values_mut().filter_map(|descriptor| match descriptor {
            Descriptor::Socket(socket) => Some(&mut **socket),
            Descriptor::Epoll(_) => None,
        })
    }

    /// The connection of the descriptor that was made last.
    pub(crate) fn latest_conn(&self) -> Option<ConnId> {
        let conn = |descriptor: &Descriptor| match descriptor {
            Descriptor::Socket(socket) => match socket.kind {
                Kind::Conn(id) => Some(id),
                _ => None,
            },
            Descriptor::Epoll(_) => None,
        };
        self.table.values().rev().find_map(conn)
    }

    /// Attempts a call. `expected` is the result in the script: new descriptors take its number.
    pub(crate) fn attempt(&mut self, world: &mut World, call: &Call, progress: &mut Progress) -> Attempt {
        let outcome = self.dispatch(world, call, progress).unwrap_or_else(Attempt::Unsupported);
        progress.begun = true;
        world.settle();
        self.hear(world);
        outcome
    }

    fn dispatch(
        &mut self,
        world: &mut World,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let fd = || call.args.first().map_or(Err("no descriptor".to_owned()), symbols::value);
        match call.name.as_str() {
            "socket" => self.socket(call),
            "bind" => self.bind(fd()?, call),
            "listen" => self.listen(world, fd()?, call),
            "accept" | "accept4" => self.accept(world, fd()?, call),
            "connect" => self.connect(world, fd()?, call, progress),
            "read" | "readv" | "recv" | "recvfrom" | "recvmsg" => self.receive(world, fd()?, call, progress),
            "write" | "writev" | "send" | "sendto" | "sendmsg" => self.send(world, fd()?, call, progress),
            "shutdown" => self.shutdown(world, fd()?, call),
            "close" => self.close(world, fd()?, progress),
            "fcntl" => self.fcntl(fd()?, call),
            "ioctl" => self.ioctl(world, fd()?, call),
            "getsockopt" => self.get_option(world, fd()?, call),
            "setsockopt" => self.set_option(world, fd()?, call),
            "poll" => self.poll(world, call, progress),
            "epoll_create" | "epoll_create1" => {
                let fd = self.number_for(call);
                self.table.insert(fd, Descriptor::Epoll(Epoll::default()));
                Ok(Attempt::Returned(fd))
            }
            "epoll_ctl" => self.epoll_ctl(fd()?, call),
            "epoll_wait" => self.epoll_wait(world, fd()?, call, progress),
            name => Err(format!("the system call {name}")),
        }
    }

    /// The number of a new descriptor: the one that the script expects, or the next that is free.
    fn number_for(&self, call: &Call) -> i64 {
        match call.result {
            Expr::Int(fd) if fd >= 0 && !self.table.contains_key(&fd) => fd,
            _ => (3..).find(|fd| !self.table.contains_key(fd)).unwrap_or(3),
        }
    }

    fn get(&mut self, fd: i64) -> Option<&mut Socket> {
        match self.table.get_mut(&fd) {
            Some(Descriptor::Socket(socket)) => Some(socket),
            _ => None,
        }
    }
}

/// The argument at `at`.
fn arg(call: &Call, at: usize) -> Result<&Expr, String> {
    call.args.get(at).ok_or_else(|| format!("{} with {} arguments", call.name, call.args.len()))
}

fn number(call: &Call, at: usize) -> Result<i64, String> {
    symbols::value(arg(call, at)?)
}

impl Socket {
    fn new(config: ConnConfig, nonblocking: bool) -> Self {
        Self {
            kind: Kind::Fresh,
            nonblocking,
            config,
            set: BTreeMap::new(),
            bound: None,
            linger: None,
            fast_open_connect: false,
            has_more: false,
            zero_copy: None,
            read_shut: false,
            peer_closed: false,
            write_shut: false,
            error_told: false,
            connect_told: false,
            success_told: false,
            was_open: false,
            edges: poll::Edges::default(),
        }
    }

    /// The error that waits to be told (Linux: `sk_err`).
    fn pending_error(&self, world: &mut World) -> Option<Errno> {
        let Kind::Conn(id) = self.kind else { return None };
        if self.error_told {
            return None;
        }
        world.endpoint.conn(id)?.error().map(|error| self.errno(error))
    }

    /// The same, which is told with that.
    fn take_error(&mut self, world: &mut World) -> Option<Errno> {
        let error = self.pending_error(world)?;
        self.error_told = true;
        Some(error)
    }

    /// Linux's name for the end of a connection (`tcp_reset`, `tcp_write_err`).
    const fn errno(&self, error: ConnError) -> Errno {
        match error {
            ConnError::Refused => "ECONNREFUSED",
            ConnError::Reset if self.peer_closed && !self.write_shut => "EPIPE",
            ConnError::TimedOut => "ETIMEDOUT",
            ConnError::Unreachable => "EHOSTUNREACH",
            ConnError::Aborted => "ECONNABORTED",
            ConnError::OutOfMemory => "ENOMEM",
            _ => "ECONNRESET",
        }
    }
}

impl Sockets {
    fn fcntl(&mut self, fd: i64, call: &Call) -> Result<Attempt, String> {
        let command = symbols::name(arg(call, 1)?)?;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        match command {
            "F_GETFL" => Ok(Attempt::Returned(O_RDWR | if socket.nonblocking { O_NONBLOCK } else { 0 })),
            "F_SETFL" => {
                socket.nonblocking = number(call, 2)? & O_NONBLOCK != 0;
                Ok(Attempt::Returned(0))
            }
            other => Err(format!("fcntl with {other}")),
        }
    }

    fn ioctl(&mut self, world: &mut World, fd: i64, call: &Call) -> Result<Attempt, String> {
        let command = symbols::name(arg(call, 1)?)?;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let Kind::Conn(id) = socket.kind else { return Ok(Attempt::Failed("EINVAL")) };
        let Some(conn) = world.endpoint.conn(id) else { return Ok(Attempt::Failed("EBADF")) };
        let info = conn.info();
        let value = match command {
            "SIOCINQ" | "FIONREAD" => i64::from(info.unread_bytes),
            "SIOCOUTQ" | "TIOCOUTQ" => i64::from(info.unacked) + i64::from(info.notsent_bytes),
            "SIOCOUTQNSD" => i64::from(info.notsent_bytes),
            other => return Err(format!("ioctl with {other}")),
        };
        match arg(call, 2)? {
            Expr::Ellipsis => Ok(Attempt::Returned(0)),
            expected => Ok(compare(command, symbols::listed(expected)?, value)),
        }
    }
}

/// What a call has written to an argument, beside what the script expects there.
pub(crate) fn compare(what: &str, expected: i64, actual: i64) -> Attempt {
    if expected == actual {
        Attempt::Returned(0)
    } else {
        Attempt::Differs(format!("{what}: expected [{expected}], got [{actual}]"))
    }
}

/// The same for `SO_ERROR`.
pub(crate) fn compare_error(expected: &Expr, actual: Option<Errno>) -> Attempt {
    let expected = match expected {
        Expr::List(items) => items.first(),
        other => Some(other),
    };
    let expected = match expected {
        Some(Expr::Names(names)) => names.first().map(String::as_str),
        _ => None,
    };
    if expected == actual {
        return Attempt::Returned(0);
    }
    let show = |error: Option<&str>| error.unwrap_or("0").to_owned();
    Attempt::Differs(format!("SO_ERROR: expected {}, got {}", show(expected), show(actual)))
}
