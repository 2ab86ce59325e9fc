//! System calls of scripts as the kernel's. Every descriptor is non-blocking; a call that would
//! block is attempted again, unless the script asked for a non-blocking one.

use crate::calls::{Transfer, transfer};
use crate::host::{Attempt, OpenCall, Progress};
use crate::script::{Call, Expr};
use crate::settings::Environment;
use crate::symbols::{self, Errno as Name, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_WAITALL, O_NONBLOCK};
use ackline_runtime::kernel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind, connect,
    getsockname, listen, recv, sendto, shutdown, socket_with, sockopt,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often, and how many times, is looked whether a close that does not linger is done.
const CLOSING: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
const LOOKS: usize = 20;

struct Socket {
    /// `None` while it is being closed.
    fd: Option<OwnedFd>,
    closing: Option<JoinHandle<()>>,
    nonblocking: bool,
    is_listener: bool,
    /// Its ends are known.
    is_open: bool,
}

impl Socket {
    const fn new(fd: OwnedFd, nonblocking: bool) -> Self {
        Self { fd: Some(fd), closing: None, nonblocking, is_listener: false, is_open: false }
    }

    fn fd(&self) -> Result<BorrowedFd<'_>, String> {
        self.fd.as_ref().map(AsFd::as_fd).ok_or_else(|| "a call while the descriptor is closed".to_owned())
    }
}

pub(super) struct Sockets {
    table: BTreeMap<i64, Socket>,
    local: SocketAddr,
    remote: SocketAddr,
    /// That of new sockets.
    pub(super) congestion_control: String,
    pub(super) opened: Vec<OpenCall>,
    /// A connection was closed.
    pub(super) were_closed: bool,
}

/// The error of a failed call, or that it waits.
fn failed(error: Errno, waits: bool) -> Attempt {
    if error == Errno::AGAIN && waits {
        return Attempt::Blocks;
    }
    Attempt::Failed(name_of(error))
}

fn name_of(error: Errno) -> Name {
    const NAMES: &[(Errno, Name)] = &[
        (Errno::AGAIN, "EAGAIN"),
        (Errno::INPROGRESS, "EINPROGRESS"),
        (Errno::ALREADY, "EALREADY"),
        (Errno::ISCONN, "EISCONN"),
        (Errno::NOTCONN, "ENOTCONN"),
        (Errno::CONNREFUSED, "ECONNREFUSED"),
        (Errno::CONNRESET, "ECONNRESET"),
        (Errno::CONNABORTED, "ECONNABORTED"),
        (Errno::PIPE, "EPIPE"),
        (Errno::TIMEDOUT, "ETIMEDOUT"),
        (Errno::HOSTUNREACH, "EHOSTUNREACH"),
        (Errno::NETUNREACH, "ENETUNREACH"),
        (Errno::INVAL, "EINVAL"),
        (Errno::BADF, "EBADF"),
        (Errno::ADDRINUSE, "EADDRINUSE"),
        (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::NOPROTOOPT, "ENOPROTOOPT"),
        (Errno::MSGSIZE, "EMSGSIZE"),
        (Errno::PROTO, "EPROTO"),
        (Errno::NOENT, "ENOENT"),
        (Errno::PERM, "EPERM"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::FAULT, "EFAULT"),
    ];
    NAMES.iter().find(|(known, _)| *known == error).map_or("an error without a name", |(_, name)| name)
}

impl Sockets {
    pub(super) fn new(environment: &Environment, congestion_control: &str) -> Self {
        Self {
            table: BTreeMap::new(),
            local: environment.local,
            remote: environment.remote,
            congestion_control: congestion_control.to_owned(),
            opened: vec![],
            were_closed: false,
        }
    }

    /// The socket of the descriptor that was made last.
    pub(super) fn latest_conn(&self) -> Option<BorrowedFd<'_>> {
        self.table.values().rev().filter(|socket| !socket.is_listener).find_map(|socket| socket.fd().ok())
    }

    pub(super) fn attempt(
        &mut self,
        now: u64,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let number = |at: usize| {
            call.args.get(at).map_or(Err(format!("{} lacks arguments", call.name)), symbols::value)
        };
        let fresh = match call.result {
            Expr::Int(fd) if fd >= 0 && !self.table.contains_key(&fd) => fd,
            _ => (3..).find(|fd| !self.table.contains_key(fd)).unwrap_or(3),
        };
        if call.name == "socket" {
            let kind = number(1)?;
            let family = if self.local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            if kind & 0xf != 1 {
                return Err("sockets of other types than SOCK_STREAM".to_owned());
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let fd =
                socket_with(family, SocketType::STREAM, flags, None).map_err(|error| error.to_string())?;
            sockopt::set_tcp_congestion(&fd, &self.congestion_control)
                .map_err(|_| format!("this kernel has no congestion control {}", self.congestion_control))?;
            let nonblocking = kind & O_NONBLOCK != 0;
            self.table.insert(fresh, Socket::new(fd, nonblocking));
            return Ok(Attempt::Returned(fresh));
        }
        if call.name.starts_with("epoll_") {
            return Err("epoll against the kernel".to_owned());
        }
        if call.name == "poll" {
            return self.poll(now, call, progress);
        }
        let fd = number(0)?;
        let Some(socket) = self.table.get_mut(&fd) else { return Ok(Attempt::Failed("EBADF")) };
        let waits = !socket.nonblocking;
        let done = |result: Result<(), Errno>| match result {
            Ok(()) => Attempt::Returned(0),
            Err(error) => failed(error, waits),
        };
        Ok(match call.name.as_str() {
            "bind" => done(bind(socket.fd()?, &self.local)),
            "listen" => {
                let backlog = i32::try_from(number(1)?).unwrap_or(i32::MAX);
                let listens = listen(socket.fd()?, backlog);
                if listens.is_ok() {
                    socket.is_listener = true;
                    self.opened.push(OpenCall::Listening(self.local));
                }
                done(listens)
            }
            "accept" | "accept4" => {
                let flags = if call.name == "accept4" { number(3)? } else { 0 };
                match accept_with(socket.fd()?, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                    Ok(new) => {
                        let accepted = Socket { is_open: true, ..Socket::new(new, flags & O_NONBLOCK != 0) };
                        self.table.insert(fresh, accepted);
                        Attempt::Returned(fresh)
                    }
                    Err(error) => failed(error, waits),
                }
            }
            "connect" => self.connect(fd, call, progress)?,
            // It may linger, whatever the descriptor's flags, so it has a thread of its own.
            "close" => {
                if let Some(fd) = socket.fd.take() {
                    socket.closing = Some(std::thread::spawn(move || drop(fd)));
                    for _ in 0..LOOKS {
                        let _ = poll(&mut [], Some(&CLOSING));
                        if socket.closing.as_ref().is_some_and(JoinHandle::is_finished) {
                            break;
                        }
                    }
                }
                if socket.closing.as_ref().is_some_and(|thread| !thread.is_finished()) {
                    return Ok(Attempt::Blocks);
                }
                self.table.remove(&fd);
                self.were_closed = true;
                Attempt::Returned(0)
            }
            "shutdown" => {
                let how = match number(1)? {
                    0 => Shutdown::Read,
                    1 => Shutdown::Write,
                    _ => Shutdown::Both,
                };
                done(shutdown(socket.fd()?, how))
            }
            "fcntl" => match symbols::name(call.args.get(1).unwrap_or(&Expr::Ellipsis))? {
                "F_GETFL" => {
                    Attempt::Returned(symbols::O_RDWR | if socket.nonblocking { O_NONBLOCK } else { 0 })
                }
                "F_SETFL" => {
                    socket.nonblocking = number(2)? & O_NONBLOCK != 0;
                    Attempt::Returned(0)
                }
                other => return Err(format!("fcntl with {other}")),
            },
            "read" | "recv" => receive(socket, transfer(call)?, progress)?,
            "write" | "writev" | "send" | "sendto" | "sendmsg" => {
                let sent = send(socket, transfer(call)?, self.remote, progress)?;
                self.note_open(fd)?;
                sent
            }
            "ioctl" => match symbols::name(call.args.get(1).unwrap_or(&Expr::Ellipsis))? {
                name @ ("SIOCINQ" | "FIONREAD") => {
                    let unread =
                        rustix::io::ioctl_fionread(socket.fd()?).map_err(|error| error.to_string())?;
                    let expected =
                        call.args.get(2).map_or(Err("ioctl without a place".to_owned()), symbols::listed)?;
                    crate::calls::compare(name, expected, unread as i64)
                }
                other => return Err(format!("ioctl {other} against the kernel")),
            },
            "setsockopt" => set_option(socket, call)?,
            "getsockopt" => get_option(socket, call)?,
            name => return Err(format!("{name} against the kernel")),
        })
    }

    /// A call may have opened a connection: its port is known from now on.
    fn note_open(&mut self, fd: i64) -> Result<(), String> {
        let Some(socket) = self.table.get_mut(&fd).filter(|socket| !socket.is_open) else { return Ok(()) };
        let local = getsockname(socket.fd()?).ok().and_then(|name| SocketAddr::try_from(name).ok());
        if let Some(local) = local.filter(|local| local.port() != 0) {
            socket.is_open = true;
            self.opened.push(OpenCall::Connecting(local, self.remote));
        }
        Ok(())
    }

    fn connect(&mut self, fd: i64, call: &Call, progress: &mut Progress) -> Result<Attempt, String> {
        let Some(socket) = self.table.get_mut(&fd) else { return Ok(Attempt::Failed("EBADF")) };
        let waits = !socket.nonblocking;
        if progress.begun {
            // The handshake of a call that waits: it is over once the socket is writable.
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::from_borrowed_fd(socket.fd()?, PollFlags::OUT)], Some(&now));
            if ready == Ok(0) {
                return Ok(Attempt::Blocks);
            }
            return Ok(match sockopt::socket_error(socket.fd()?) {
                Ok(Ok(())) => Attempt::Returned(0),
                Ok(Err(error)) | Err(error) => Attempt::Failed(name_of(error)),
            });
        }
        if call.args.get(1).is_some_and(|address| address.field("sa_family").is_some()) {
            return Err("connect to an address of the script against the kernel".to_owned());
        }
        let result = connect(socket.fd()?, &self.remote);
        self.note_open(fd)?;
        Ok(match result {
            Ok(()) => Attempt::Returned(0),
            Err(Errno::INPROGRESS) if waits => Attempt::Blocks,
            Err(error) => Attempt::Failed(name_of(error)),
        })
    }
}

/// Connections end with a reset, so that none keeps the namespace until its retransmissions end.
impl Drop for Sockets {
    fn drop(&mut self) {
        for fd in self.table.values().filter_map(|socket| socket.fd.as_ref()) {
            // A listener has nothing to reset.
            let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
        }
    }
}

impl Sockets {
    fn poll(&mut self, now: u64, call: &Call, progress: &mut Progress) -> Result<Attempt, String> {
        let Some(Expr::List(polled)) = call.args.first() else {
            return Err("poll of something else than a list".to_owned());
        };
        let millis = call.args.get(2).map_or(Ok(0), symbols::value)?;
        if let Ok(millis) = u64::try_from(millis) {
            progress.deadline.get_or_insert(now + millis * 1_000);
        }
        let (mut count, mut wrong) = (0, None);
        for entry in polled {
            let number = |name| entry.field(name).map_or(Err(format!("poll without {name}")), symbols::value);
            let Some(socket) = self.table.get(&number("fd")?) else {
                return Err("poll of another descriptor than a socket".to_owned());
            };
            let asked = PollFlags::from_bits_retain(number("events")? as u16);
            let mut entries = [PollFd::from_borrowed_fd(socket.fd()?, asked)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut entries, Some(&at_once)).map_err(|error| error.to_string())?;
            let found = entries.first().map_or(0, |entry| entry.revents().bits());
            let expected = number("revents")?;
            count += i64::from(found != 0);
            if i64::from(found) != expected {
                wrong = Some(format!("revents: expected {expected:#x}, got {found:#x}"));
            }
        }
        if count == 0 && progress.deadline.is_none_or(|deadline| now < deadline) {
            return Ok(Attempt::Blocks);
        }
        Ok(wrong.map_or(Attempt::Returned(count), Attempt::Differs))
    }
}

fn receive(
    socket: &Socket,
    Transfer { len, flags }: Transfer,
    progress: &mut Progress,
) -> Result<Attempt, String> {
    let mut buf = vec![0; len - progress.moved.min(len)];
    let waits = !socket.nonblocking && flags & MSG_DONTWAIT == 0;
    let given = RecvFlags::from_bits_retain(flags as u32 | RecvFlags::DONTWAIT.bits());
    Ok(match recv(socket.fd()?, &mut *buf, given) {
        Ok((read, _)) => {
            progress.moved += read;
            if read > 0 && progress.moved < len && waits && flags & MSG_WAITALL != 0 {
                Attempt::Blocks
            } else {
                Attempt::Returned(progress.moved as i64)
            }
        }
        Err(error) => failed(error, waits),
    })
}

fn send(
    socket: &Socket,
    Transfer { len, flags }: Transfer,
    remote: SocketAddr,
    progress: &mut Progress,
) -> Result<Attempt, String> {
    let waits = !socket.nonblocking && flags & MSG_DONTWAIT == 0;
    let given = SendFlags::from_bits_retain((flags | MSG_NOSIGNAL | MSG_DONTWAIT) as u32);
    let data = vec![0; len - progress.moved.min(len)];
    let sent = if flags & symbols::MSG_FASTOPEN != 0 {
        sendto(socket.fd()?, &data, given, &remote)
    } else {
        rustix::net::send(socket.fd()?, &data, given)
    };
    Ok(match sent {
        Ok(sent) => {
            progress.moved += sent;
            if progress.moved < len && waits {
                Attempt::Blocks
            } else {
                Attempt::Returned(progress.moved as i64)
            }
        }
        Err(error) => failed(error, waits),
    })
}

/// Numbers of levels and options on Linux.
const OPTIONS: &[(&str, i32, i32)] = &[
    ("SO_REUSEADDR", 1, 2),
    ("SO_SNDBUF", 1, 7),
    ("SO_RCVBUF", 1, 8),
    ("SO_KEEPALIVE", 1, 9),
    ("SO_OOBINLINE", 1, 10),
    ("TCP_NODELAY", 6, 1),
    ("TCP_MAXSEG", 6, 2),
    ("TCP_CORK", 6, 3),
    ("TCP_KEEPIDLE", 6, 4),
    ("TCP_KEEPINTVL", 6, 5),
    ("TCP_KEEPCNT", 6, 6),
    ("TCP_SYNCNT", 6, 7),
    ("TCP_LINGER2", 6, 8),
    ("TCP_DEFER_ACCEPT", 6, 9),
    ("TCP_WINDOW_CLAMP", 6, 10),
    ("TCP_QUICKACK", 6, 12),
    ("TCP_USER_TIMEOUT", 6, 18),
    ("TCP_FASTOPEN", 6, 23),
    ("TCP_NOTSENT_LOWAT", 6, 25),
    ("TCP_FASTOPEN_CONNECT", 6, 30),
    ("TCP_FASTOPEN_NO_COOKIE", 6, 34),
    ("TCP_INQ", 6, 36),
    ("IP_TOS", 0, 1),
    ("IP_TTL", 0, 2),
    ("IP_MTU_DISCOVER", 0, 10),
    ("IPV6_UNICAST_HOPS", 41, 16),
    ("IPV6_TCLASS", 41, 67),
];

fn set_option(socket: &Socket, call: &Call) -> Result<Attempt, String> {
    let (Some(name), Some(value)) = (call.args.get(2), call.args.get(3)) else {
        return Err("setsockopt without a value".to_owned());
    };
    let name = symbols::name(name)?;
    let done = |result: std::io::Result<()>| match result {
        Ok(()) => Attempt::Returned(0),
        Err(error) => Attempt::Failed(name_of(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    };
    if let ("TCP_CONGESTION", Expr::Text(text)) = (name, value) {
        return Ok(done(sockopt::set_tcp_congestion(socket.fd()?, text).map_err(Into::into)));
    }
    if name == "SO_LINGER" {
        let field = |name| value.field(name).map_or(Ok(0), symbols::value);
        let time = Duration::from_secs(u64::try_from(field("linger")?).unwrap_or(0));
        let time = (field("onoff")? != 0).then_some(time);
        return Ok(done(sockopt::set_socket_linger(socket.fd()?, time).map_err(Into::into)));
    }
    let Some((_, level, option)) = OPTIONS.iter().find(|(known, _, _)| *known == name) else {
        return Err(format!("the socket option {name} against the kernel"));
    };
    Ok(done(kernel::set_option(socket.fd()?, *level, *option, symbols::listed(value)? as i32)))
}

fn get_option(socket: &Socket, call: &Call) -> Result<Attempt, String> {
    let (Some(name), Some(value)) = (call.args.get(2), call.args.get(3)) else {
        return Err("getsockopt without a place".to_owned());
    };
    let name = symbols::name(name)?;
    if name == "SO_ERROR" {
        let error = match sockopt::socket_error(socket.fd()?) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(name_of(error)),
        };
        return Ok(crate::calls::compare_error(value, error));
    }
    let Some((_, level, option)) = OPTIONS.iter().find(|(known, _, _)| *known == name) else {
        return Err(format!("the socket option {name} against the kernel"));
    };
    match kernel::option(socket.fd()?, *level, *option) {
        Ok(_) if *value == Expr::Ellipsis => Ok(Attempt::Returned(0)),
        Ok(actual) => Ok(crate::calls::compare(name, symbols::listed(value)?, actual.into())),
        Err(error) => Ok(Attempt::Failed(name_of(Errno::from_io_error(&error).unwrap_or(Errno::IO)))),
    }
}
