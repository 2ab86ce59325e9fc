//! `poll` and `epoll`: what a socket is ready for, as Linux says it (`tcp_poll`).

use super::zerocopy::ZeroCopy;
use super::{Descriptor, Kind, Socket, Sockets, arg, number};
use crate::host::{Attempt, Progress};
use crate::script::{Call, Expr};
use crate::symbols::{
    self, EPOLLET, EPOLLONESHOT, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM,
};
use crate::world::World;
use ackline_tcp_core::{Event, State};

/// What has come since `epoll` last reported a socket edge-triggered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edges {
    /// Payload bytes received, at the last report.
    reported_bytes: u64,
    /// Space has become free after a write that was refused in part.
    writable: bool,
    /// The connection was opened or has ended.
    changed: bool,
    /// It has been reported before.
    reported: bool,
    /// What was reported last.
    last: i64,
}

impl Edges {
    /// There is something new on the error queue.
    pub(super) const fn on_report(&mut self) {
        self.changed = true;
    }

    pub(super) const fn hear(&mut self, event: &Event) {
        match event {
            Event::Writable(_) => self.writable = true,
            Event::Connected(_) | Event::Closed { .. } => self.changed = true,
            _ => {}
        }
    }
}

/// An `epoll` descriptor: the sockets that it watches, for what, and what it reports of each.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watched: Vec<WatchedDescriptor>,
}

#[derive(Clone, Debug)]
struct WatchedDescriptor {
    fd: i64,
    events: i64,
    data: Option<Expr>,
    disabled: bool,
}

impl Socket {
    /// What it is ready for.
    fn ready(&mut self, world: &mut World) -> i64 {
        let id = match &self.kind {
            Kind::Fresh => return POLLOUT | POLLWRNORM | POLLHUP,
            Kind::Deferred(_) => return POLLOUT | POLLWRNORM,
            Kind::Listener { queue, .. } => {
                return if queue.is_empty() { 0 } else { POLLIN | POLLRDNORM };
            }
            Kind::Conn(id) => *id,
        };
        let error = self.pending_error(world).is_some();
        let (read_shut, was_error) = (self.read_shut || self.peer_closed, self.error_told);
        let Some(mut conn) = world.endpoint.conn(id) else { return POLLHUP };
        let (state, info) = (conn.state(), conn.info());
        let mut ready = 0;
        let ended = state == State::Closed;
        let read_shut = read_shut || conn.at_end() || ended;
        let send_shut = ended || !state.may_send();
        if error || self.zero_copy.as_ref().is_some_and(ZeroCopy::has_reports) {
            ready |= POLLERR;
        }
        if ended || read_shut && send_shut {
            ready |= POLLHUP;
        }
        if read_shut {
            ready |= POLLIN | POLLRDNORM | POLLRDHUP;
        }
        if state == State::SynSent {
            return ready;
        }
        if info.unread_bytes > 0 || error || was_error {
            ready |= POLLIN | POLLRDNORM;
        }
        if send_shut || conn.is_writable() {
            ready |= POLLOUT | POLLWRNORM;
        }
        ready
    }

    /// The same, if something has come since the last time.
    fn edge(&mut self, world: &mut World, wanted: i64) -> i64 {
        let ready = self.ready(world) & (wanted | POLLERR | POLLHUP);
        let bytes = match self.kind {
            Kind::Conn(id) => world.endpoint.conn(id).map_or(0, |conn| conn.info().bytes_received),
            Kind::Listener { ref queue, .. } => queue.len() as u64,
            _ => 0,
        };
        let Edges { reported_bytes, writable, changed, reported, last } = self.edges;
        let news = !reported || changed || bytes != reported_bytes || writable || ready & !last != 0;
        if ready == 0 {
            // What becomes ready later is news.
            self.edges.last = 0;
            return 0;
        }
        if !news {
            return 0;
        }
        self.edges = Edges { reported_bytes: bytes, reported: true, last: ready, ..Edges::default() };
        ready
    }
}

/// When a call with a timeout in milliseconds gives up; below zero never.
fn deadline(world: &World, progress: &mut Progress, millis: i64) -> Option<u64> {
    let millis = u64::try_from(millis).ok()?;
    Some(*progress.deadline.get_or_insert(world.micros_now() + millis * 1_000))
}

/// Events by name.
fn show(events: i64) -> String {
    let names = [
        (POLLIN, "POLLIN"),
        (POLLOUT, "POLLOUT"),
        (POLLERR, "POLLERR"),
        (POLLHUP, "POLLHUP"),
        (POLLRDHUP, "POLLRDHUP"),
        (POLLRDNORM, "POLLRDNORM"),
        (POLLWRNORM, "POLLWRNORM"),
    ];
    let names: Vec<_> = names.iter().filter(|(bit, _)| events & bit != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "0".to_owned() } else { names.join("|") }
}

impl Sockets {
    pub(super) fn poll(
        &mut self,
        world: &mut World,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let Expr::List(polled) = arg(call, 0)? else {
            return Err("poll of something else than a list".to_owned());
        };
        let until = deadline(world, progress, number(call, 2)?);
        let mut found = vec![];
        for entry in polled {
            let fd = entry.field("fd").map_or(Err("poll without fd".to_owned()), symbols::value)?;
            let events = entry.field("events").map_or(Ok(0), symbols::value)?;
            let ready = match self.get(fd) {
                Some(socket) => socket.ready(world) & (events | POLLERR | POLLHUP),
                None => return Err(format!("poll of descriptor {fd}")),
            };
            found.push((fd, ready, entry.field("revents").map_or(Ok(ready), symbols::value)?));
        }
        let count = found.iter().filter(|(_, ready, _)| *ready != 0).count();
        if count == 0 && until.is_none_or(|until| world.micros_now() < until) {
            return Ok(Attempt::Blocks);
        }
        match found.iter().find(|(_, ready, expected)| ready != expected) {
            Some((fd, ready, expected)) => Ok(Attempt::Differs(format!(
                "revents of {fd}: expected {}, got {}",
                show(*expected),
                show(*ready)
            ))),
            None => Ok(Attempt::Returned(count as i64)),
        }
    }

    pub(super) fn epoll_ctl(&mut self, fd: i64, call: &Call) -> Result<Attempt, String> {
        let command = symbols::name(arg(call, 1)?)?.to_owned();
        let watched = number(call, 2)?;
        let known = self.table.contains_key(&watched);
        let Some(Descriptor::Epoll(epoll)) = self.table.get_mut(&fd) else {
            return Ok(Attempt::Failed("EBADF"));
        };
        if !known {
            return Ok(Attempt::Failed("EBADF"));
        }
        let at = epoll.watched.iter().position(|entry| entry.fd == watched);
        let entry = || -> Result<WatchedDescriptor, String> {
            let wanted = arg(call, 3)?;
            let events = wanted.field("events").map_or(Ok(0), symbols::value)?;
            Ok(WatchedDescriptor { fd: watched, events, data: data_of(wanted).cloned(), disabled: false })
        };
        let failed = match (command.as_str(), at) {
            ("EPOLL_CTL_ADD", None) => {
                epoll.watched.push(entry()?);
                None
            }
            ("EPOLL_CTL_MOD", Some(at)) => {
                if let Some(place) = epoll.watched.get_mut(at) {
                    *place = entry()?;
                }
                None
            }
            ("EPOLL_CTL_DEL", Some(at)) => {
                epoll.watched.remove(at);
                None
            }
            ("EPOLL_CTL_ADD", Some(_)) => Some("EEXIST"),
            ("EPOLL_CTL_MOD" | "EPOLL_CTL_DEL", None) => Some("ENOENT"),
            (other, _) => return Err(format!("epoll_ctl with {other}")),
        };
        // What is ready at this moment is reported.
        if let Some(socket) = self.get(watched) {
            socket.edges.reported = false;
        }
        Ok(failed.map_or(Attempt::Returned(0), Attempt::Failed))
    }

    pub(super) fn epoll_wait(
        &mut self,
        world: &mut World,
        fd: i64,
        call: &Call,
        progress: &mut Progress,
    ) -> Result<Attempt, String> {
        let until = deadline(world, progress, number(call, 3)?);
        let Some(Descriptor::Epoll(epoll)) = self.table.get(&fd) else {
            return Ok(Attempt::Failed("EBADF"));
        };
        let entries = epoll.watched.clone();
        let mut found = vec![];
        for entry in entries.iter().filter(|entry| !entry.disabled) {
            let Some(socket) = self.get(entry.fd) else { continue };
            let wanted = entry.events & !(EPOLLET | EPOLLONESHOT);
            let ready = if entry.events & EPOLLET != 0 {
                socket.edge(world, wanted)
            } else {
                socket.ready(world) & (wanted | POLLERR | POLLHUP)
            };
            if ready != 0 {
                found.push((entry, ready));
            }
        }
        if found.is_empty() && until.is_none_or(|until| world.micros_now() < until) {
            return Ok(Attempt::Blocks);
        }
        if let Some(Descriptor::Epoll(epoll)) = self.table.get_mut(&fd) {
            for (entry, _) in &found {
                if entry.events & EPOLLONESHOT != 0
                    && let Some(place) = epoll.watched.iter_mut().find(|watched| watched.fd == entry.fd)
                {
                    place.disabled = true;
                }
            }
        }
        let expected = match arg(call, 1)? {
            Expr::List(items) => items.clone(),
            one @ Expr::Struct(_) => vec![one.clone()],
            _ => vec![],
        };
        for (expected, (entry, ready)) in expected.iter().zip(&found) {
            let events = expected.field("events").map_or(Ok(*ready), symbols::value)?;
            if events != *ready {
                return Ok(Attempt::Differs(format!(
                    "events of {}: expected {}, got {}",
                    entry.fd,
                    show(events),
                    show(*ready)
                )));
            }
            if let (Some(wanted), Some(given)) = (data_of(expected), &entry.data)
                && wanted != given
            {
                return Ok(Attempt::Differs(format!(
                    "data of {}: expected {wanted:?}, got {given:?}",
                    entry.fd
                )));
            }
        }
        Ok(Attempt::Returned(found.len() as i64))
    }
}

/// The data that comes back with an event.
fn data_of(event: &Expr) -> Option<&Expr> {
    ["fd", "ptr", "u32", "u64"].into_iter().find_map(|name| event.field(name))
}
