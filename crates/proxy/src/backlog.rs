//! How much connections hold for clients that take less than their destinations send.
//!
//! A send buffer follows the congestion window, so it is as large as the path to one client
//! deserves. A thousand such buffers hold what no client could have sooner: they all wait for the
//! same device, or the same processor. So those that wait for room share a number of bytes. While
//! few wait, each has what TCP gives it. The windows of clients that send share what the device's
//! queue holds in the same way.

use std::sync::atomic::{AtomicU32, Ordering};

/// What a send buffer may hold, however many wait: a super-packet.
const LEAST: u32 = 64 << 10;

/// What a client may send, however many do: two segments, so that the second is acknowledged at
/// once.
const LEAST_WINDOW: u32 = 4 << 10;

/// The connections that have more for their clients than there is room for, or whose clients send
/// bulk data.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Bytes that they share.
    limit: u64,
    /// What each may have, however many there are.
    least: u32,
    waiting: AtomicU32,
}

impl Backlog {
    /// Send buffers.
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, least: LEAST, waiting: AtomicU32::new(0) }
    }

    /// Receive windows.
    pub(crate) const fn of_windows(limit: u64) -> Self {
        Self { limit, least: LEAST_WINDOW, waiting: AtomicU32::new(0) }
    }

    /// Adds a connection that waits for room.
    pub(crate) fn wait(&self) -> BacklogShare<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        BacklogShare(self)
    }

    /// What one of them may hold in its buffer, in bytes: a power of two, as memory for buffers is.
    /// It has held `before` at most: a little more is not worth a change.
    pub(crate) fn share(&self, before: u32) -> u32 {
        let waiting = u64::from(self.waiting.load(Ordering::Relaxed)).max(1);
        let share = u32::try_from(self.limit / waiting).unwrap_or(u32::MAX).max(self.least);
        let share = 1 << share.ilog2();
        if share > before && share / 4 < before { before } else { share }
    }
}

/// Counts a connection that waits for room, until it is dropped.
#[derive(Debug)]
pub(crate) struct BacklogShare<'a>(&'a Backlog);

impl Drop for BacklogShare<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    #[test]
    fn those_that_wait_share_evenly_and_none_has_less_than_a_super_packet() {
        let backlog = Backlog::new(4 << 20);
        assert_eq!(backlog.share(u32::MAX), 4 * MIB);
        let mut waiting: Vec<_> = (0..4).map(|_| backlog.wait()).collect();
        assert_eq!(backlog.share(4 * MIB), MIB);
        waiting.extend((4..1_000).map(|_| backlog.wait()));
        assert_eq!(backlog.share(MIB), LEAST);
        // Not at once as much again, and then all.
        waiting.truncate(3);
        assert_eq!(backlog.share(LEAST), MIB);
        assert_eq!(backlog.share(MIB / 2), MIB / 2);
        drop(waiting);
        assert_eq!(backlog.share(MIB), 4 * MIB);
    }
}
