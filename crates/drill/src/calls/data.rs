//! Calls that move data. All that is written is zeros, and nothing looks at what is read.

use super::{Kind, Sockets, arg, compare, number};
use crate::host::{Attempt, Progress};
use crate::script::{Call, Expr};
use crate::symbols::{
    self, MSG_DONTWAIT, MSG_EOR, MSG_ERRQUEUE, MSG_FASTOPEN, MSG_MORE, MSG_OOB, MSG_PEEK, MSG_WAITALL,
    MSG_ZEROCOPY,
};
use crate::world::World;
use ackline_tcp_core::State;
use ackline_tcp_core::config::FastOpen;
use ackline_tcp_core::error::StreamError;

static ZEROS: [u8; 65_536] = [0; 65_536];

/// Headers of a SYN with every option: what a fast open SYN has no room for data in (Linux:
/// `MAX_TCP_OPTION_SPACE`).
const SYN_OPTIONS: u32 = 40;

/// How much a call moves, where it stands in its arguments, and its flags.
#[derive(Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) len: usize,
    pub(crate) flags: i64,
}

pub(crate) fn transfer(call: &Call) -> Result<Transfer, String> {
    let (len, flags) = match call.name.as_str() {
        "read" | "write" => (number(call, 2)?, 0),
        "readv" | "writev" => (vector(arg(call, 1)?)?, 0),
        "recvmsg" | "sendmsg" => (message(arg(call, 1)?)?, number(call, 2)?),
        _ => (number(call, 2)?, number(call, 3)?),
    };
    let len = usize::try_from(len).map_err(|_| format!("{} of {len} bytes", call.name))?;
    Ok(Transfer { len, flags })
}

/// The bytes of an I/O vector: `[{..., 100}, {..., 200}]`.
fn vector(expr: &Expr) -> Result<i64, String> {
    let Expr::List(items) = expr else { return Err("an I/O vector that is no list".to_owned()) };
    items.iter().try_fold(0, |sum, item| match item {
        Expr::Struct(fields) => match fields.as_slice() {
            [_, len] => Ok(sum + symbols::value(&len.value)?),
            _ => Err("an I/O vector without a length".to_owned()),
        },
        _ => Err("an I/O vector without a length".to_owned()),
    })
}

fn message(expr: &Expr) -> Result<i64, String> {
    expr.field("msg_iov").map_or_else(|| Err("a message without msg_iov".to_owned()), vector)
}

/// An error if the call has one of these flags, which are not supported.
fn lacks(call: &Call, flags: i64, unsupported: &[(i64, &str)]) -> Result<(), String> {
    let found = unsupported.iter().find(|(flag, _)| flags & flag != 0);
    found.map_or(Ok(()), |(_, name)| Err(format!("{} with {name}", call.name)))
}

impl Sockets {
    pub(super) fn send(
        &mut self,
        world: &mut World,
        fd: i64,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let Transfer { len, flags } = transfer(call)?;
        lacks(call, flags, &[(MSG_OOB, "MSG_OOB"), (MSG_ERRQUEUE, "MSG_ERRQUEUE")])?;
        let mut most = len;
        if let Some(begun) = self.send_begins(world, fd, call, flags, &mut most)? {
            return Ok(begun);
        }
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let Kind::Conn(id) = socket.kind else { return Ok(Attempt::Failed("EPIPE")) };
        let waits = !socket.nonblocking && flags & MSG_DONTWAIT == 0;
        if progress.moved == 0
            && let Some(error) = socket.take_error(world)
        {
            return Ok(Attempt::Failed(error));
        }
        let before = progress.moved;
        let now = world.now;
        if flags & MSG_MORE != 0
            && let Some(mut conn) = world.endpoint.conn(id)
        {
            conn.set_cork(now, true);
        }
        let mut refused = None;
        while progress.moved < most && refused.is_none() {
            let Some(mut conn) = world.endpoint.conn(id) else { break };
            let chunk = &ZEROS[..(most - progress.moved).min(ZEROS.len())];
            match conn.write(now, chunk) {
                Ok(written) => progress.moved += written,
                Err(error) => refused = Some(error),
            }
            if conn.write_space() == 0 {
                // What can leave does, and may make room (Linux: `tcp_push_pending_frames`).
                world.settle();
                if world.endpoint.conn(id).is_none_or(|conn| conn.write_space() == 0) {
                    break;
                }
            }
        }
        let moved = progress.moved - before;
        if let Some(zero_copy) = &mut socket.zero_copy {
            zero_copy.on_written(moved, flags & MSG_ZEROCOPY != 0);
        }
        if flags & MSG_MORE == 0
            && socket.has_more
            && let Some(mut conn) = world.endpoint.conn(id)
        {
            conn.set_cork(now, socket.config.cork);
        }
        socket.has_more = flags & MSG_MORE != 0;
        if flags & MSG_EOR != 0
            && progress.moved == most
            && let Some(mut conn) = world.endpoint.conn(id)
        {
            conn.end_record(now);
        }
        Ok(match refused {
            _ if progress.moved == most => Attempt::Returned(most as i64),
            Some(StreamError::NotConnected) if waits => Attempt::Blocks,
            None if waits => Attempt::Blocks,
            _ if progress.moved > 0 => Attempt::Returned(progress.moved as i64),
            None | Some(StreamError::NotConnected) => Attempt::Failed("EAGAIN"),
            Some(_) => Attempt::Failed("EPIPE"),
        })
    }

    /// A packet comes: what `MSG_MORE` has held back is sent as if it had been written without, for
    /// the flag only concerns its own call (Linux: `tcp_push`).
    pub(crate) fn release_more(&mut self, world: &mut World) {
        let now = world.now;
        for socket in self.sockets().filter(|socket| socket.has_more) {
            socket.has_more = false;
            if let Kind::Conn(id) = socket.kind
                && let Some(mut conn) = world.endpoint.conn(id)
            {
                conn.set_cork(now, socket.config.cork);
            }
        }
    }

    /// A send that opens its connection itself (RFC 7413), or waits for one to open.
    fn send_begins(
        &mut self,
        world: &mut World,
        fd: i64,
        call: &Call,
        flags: i64,
        most: &mut usize,
    ) -> Result<Option<Attempt>, String> {
        let may_fast_open = self.fast_open & 1 != 0;
        let (has_cookie, peer_mss) = (self.has_cookie, self.peer_mss);
        let address = call.args.get(4).or_else(|| call.args.get(1)?.field("msg_name"));
        let to = self.remote(address.unwrap_or(&Expr::Ellipsis))?;
        let Some(socket) = self.get(fd) else { return Ok(Some(Attempt::Failed("EBADF"))) };
        let waits = !socket.nonblocking && flags & MSG_DONTWAIT == 0;
        let to = match socket.kind {
            Kind::Fresh if flags & MSG_FASTOPEN != 0 && !may_fast_open => {
                return Ok(Some(Attempt::Failed("EOPNOTSUPP")));
            }
            Kind::Fresh if flags & MSG_FASTOPEN != 0 => to,
            Kind::Deferred(to) => to,
            Kind::Fresh | Kind::Listener { .. } => return Ok(Some(Attempt::Failed("EPIPE"))),
            Kind::Conn(_) if flags & MSG_FASTOPEN != 0 && call.name != "write" && !waits => {
                let id = self.latest_conn();
                let state = id.and_then(|id| world.endpoint.state(id));
                return Ok(match state {
                    Some(State::SynSent) => Some(Attempt::Failed("EALREADY")),
                    _ => None,
                });
            }
            Kind::Conn(id) => {
                let opens = matches!(world.endpoint.state(id), Some(State::SynSent));
                if !opens || socket.pending_error(world).is_some() {
                    return Ok(None);
                }
                return Ok(Some(if waits { Attempt::Blocks } else { Attempt::Failed("EAGAIN") }));
            }
        };
        socket.config.fast_open = FastOpen::Client;
        let with_data = has_cookie || !socket.config.fast_open_cookies;
        let mtu = world.endpoint.config().mtu;
        self.open(world, fd, to)?;
        if !with_data {
            return Ok(Some(if waits { Attempt::Blocks } else { Attempt::Failed("EINPROGRESS") }));
        }
        if !waits {
            let headers = if to.is_ipv4() { 40 } else { 60 };
            let mss = mtu.saturating_sub(headers).min(peer_mss);
            *most = (*most).min(mss.saturating_sub(SYN_OPTIONS) as usize);
        }
        Ok(None)
    }

    pub(super) fn receive(
        &mut self,
        world: &mut World,
        fd: i64,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let Transfer { len, flags } = transfer(call)?;
        if flags & MSG_ERRQUEUE != 0 {
            return self.receive_report(world, fd, call);
        }
        lacks(call, flags, &[(MSG_OOB, "MSG_OOB")])?;
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        let Kind::Conn(id) = socket.kind else { return Ok(Attempt::Failed("ENOTCONN")) };
        let waits = !socket.nonblocking && flags & MSG_DONTWAIT == 0;
        let Some(mut conn) = world.endpoint.conn(id) else { return Ok(Attempt::Failed("ENOTCONN")) };
        let mut wrong = None;
        if flags & MSG_PEEK != 0 {
            let [first, second] = conn.peek();
            progress.moved = len.min(first.len() + second.len());
        } else {
            let mut buf = vec![0; len.min(ZEROS.len())];
            while progress.moved < len {
                let most = buf.len().min(len - progress.moved);
                match conn.read(world.now, &mut buf[..most]) {
                    Ok(0) => break,
                    Ok(read) => progress.moved += read,
                    Err(error) => {
                        wrong = Some(error);
                        break;
                    }
                }
            }
        }
        let (at_end, state) = (conn.at_end(), conn.state());
        let moved = progress.moved;
        let wants_more = flags & MSG_WAITALL != 0 && moved < len && !at_end && wrong.is_none();
        if moved > 0 && !(wants_more && waits) || len == 0 {
            return self.received(world, fd, call, moved as i64);
        }
        let Some(socket) = self.get(fd) else { return Ok(Attempt::Failed("EBADF")) };
        if let Some(error) = socket.take_error(world) {
            return Ok(Attempt::Failed(error));
        }
        if at_end || socket.read_shut || socket.error_told || state == State::Closed {
            socket.peer_closed |= at_end;
            return self.received(world, fd, call, moved as i64);
        }
        Ok(if waits { Attempt::Blocks } else { Attempt::Failed("EAGAIN") })
    }

    /// Data was read: what else `recvmsg` tells.
    fn received(&mut self, world: &mut World, fd: i64, call: &Call, moved: i64) -> Result<Attempt, String> {
        let control = call.args.get(1).and_then(|message| message.field("msg_control"));
        let Some(Expr::List(control)) = control else { return Ok(Attempt::Returned(moved)) };
        for item in control {
            let kind = item.field("cmsg_type").map_or(Err("a control message".to_owned()), symbols::name)?;
            if !matches!(kind, "TCP_INQ" | "TCP_CM_INQ") {
                return Err(format!("the control message {kind}"));
            }
            let expected =
                item.field("cmsg_data").map_or(Err("TCP_INQ without a value".to_owned()), symbols::value)?;
            let Some(Kind::Conn(id)) = self.get(fd).map(|socket| &socket.kind) else { continue };
            let Some(conn) = world.endpoint.conn(*id) else { continue };
            // At the end of the stream it is one, so that the application reads on (Linux:
            // `tcp_inq_hint`).
            let unread = i64::from(conn.info().unread_bytes);
            let actual = if unread == 0 && conn.at_end() { 1 } else { unread };
            if let differs @ Attempt::Differs(_) = compare("TCP_INQ", expected, actual) {
                return Ok(differs);
            }
        }
        Ok(Attempt::Returned(moved))
    }
}
