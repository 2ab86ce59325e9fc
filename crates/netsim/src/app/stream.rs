//! Shared by writers and readers of the pattern.

use super::AppCx;
use crate::pattern;
use ackline_tcp_core::ConnId;

/// The outgoing half of a stream: how much was written, and how much there is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outgoing {
    /// Bytes accepted by TCP.
    pub(super) written: u64,
    /// Bytes that the application wants to write.
    pub(super) goal: u64,
}

impl Outgoing {
    /// Writes as much as TCP accepts. False if the connection accepts nothing any more.
    pub(super) fn push(&mut self, cx: &mut AppCx<'_>, id: ConnId) -> bool {
        let now = cx.now();
        let Some(mut conn) = cx.conn(id) else { return false };
        while self.written < self.goal {
            let left = usize::try_from(self.goal - self.written).unwrap_or(usize::MAX);
            match conn.write(now, pattern::piece(self.written, left)) {
                Ok(0) => return true,
                Ok(taken) => self.written += taken as u64,
                Err(_) => return false,
            }
        }
        true
    }
}

/// The incoming half of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Incoming {
    /// Bytes read.
    pub(super) received: u64,
    /// Reads that found an octet that was never sent there.
    pub(super) wrong: u64,
}

impl Incoming {
    /// Reads everything available. True if the stream has ended.
    pub(super) fn pull(&mut self, cx: &mut AppCx<'_>, id: ConnId) -> bool {
        let now = cx.now();
        let Some(mut conn) = cx.conn(id) else { return true };
        let mut read = 0;
        for octets in conn.peek() {
            self.wrong += u64::from(!pattern::check(self.received, octets));
            self.received += octets.len() as u64;
            read += octets.len();
        }
        if read > 0 {
            conn.consume(now, read);
        }
        conn.at_end()
    }
}

/// A value per connection, found by the connection's index.
#[derive(Clone, Debug)]
pub(super) struct PerConn<T>(Vec<Option<(ConnId, T)>>);

impl<T> Default for PerConn<T> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<T> PerConn<T> {
    pub(super) fn insert(&mut self, conn: ConnId, item: T) {
        if self.0.len() <= conn.index() {
            self.0.resize_with(conn.index() + 1, || None);
        }
        self.0[conn.index()] = Some((conn, item));
    }

    pub(super) fn get_mut(&mut self, conn: &ConnId) -> Option<&mut T> {
        self.0.get_mut(conn.index())?.as_mut().filter(|(id, _)| id == conn).map(|(_, item)| item)
    }

    pub(super) fn remove(&mut self, conn: &ConnId) -> Option<T> {
        self.get_mut(conn)?;
        self.0[conn.index()].take().map(|(_, item)| item)
    }
}
