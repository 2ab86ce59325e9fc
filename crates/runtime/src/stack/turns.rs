//! Fair turns: how much applications exchange with their connections before the driver runs again.
//!
//! Tasks run one after the other, and a task that always finds room in a send buffer, or data to read, only
//! returns to the scheduler when tokio's budget is used up: after 128 operations of any size. Until then, on
//! the same thread, no packet is received and no other task runs. So operations are charged by bytes: the
//! connections that are busy share a number of bytes for each turn of the driver. Whoever has used up its share
//! waits until the driver has run, which wakes all of them in the order in which they began to wait.

use super::shard::Wakes;
use super::state::{Side, StackState};
use ackline_tcp_core::{ConnId, Instant};

/// Bytes that all connections may exchange with their applications in one turn of the driver. It costs a
/// single flow less than a hundredth of its rate.
pub(super) const DEFAULT_TURN: usize = 1 << 20;

/// Bytes that each may exchange, however many are busy: one super-packet, so that a crowd's packets are large.
const LEAST_SHARE: usize = 64 << 10;

/// The current turn of the driver.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Bytes that the busy connections share.
    limit: usize,
    /// Of the current turn, from 1. An account of another turn is unused.
    number: u32,
    /// Connections that exchanged something in this turn, and in the one before.
    busy: usize,
    busy_before: usize,
    /// Connections whose share is used up and that have more to exchange, first come first.
    waiting: Vec<(ConnId, Side)>,
    /// Times that one had to wait.
    waits: u64,
}

/// What a connection exchanged in a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    turn: u32,
    bytes: u32,
    /// It is among those that wait, for each [`Side`].
    waits: [bool; 2],
}

/// What one operation may exchange, and what it exchanged.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) now: Instant,
    /// Bytes that it may still copy.
    left: usize,
    bytes: usize,
}

impl Exchange {
    /// Of at most `left` bytes.
    pub(crate) const fn new(now: Instant, left: usize) -> Self {
        Self { now, left, bytes: 0 }
    }

    /// Bytes that may still be copied. What is used in place may be more.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// `bytes` were exchanged.
    pub(crate) const fn add(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
        self.bytes += bytes;
    }
}

impl Turns {
    /// `limit`: bytes that the busy connections share in a turn.
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, number: 1, busy: 0, busy_before: 0, waiting: Vec::new(), waits: 0 }
    }

    /// Bytes that the connection may still exchange in this turn.
    fn left(&self, account: &Account) -> usize {
        let used = if account.turn == self.number { account.bytes as usize } else { 0 };
        let busy = self.busy.max(self.busy_before).max(1);
        (self.limit / busy).max(LEAST_SHARE.min(self.limit)).saturating_sub(used)
    }

    fn charge(&mut self, account: &mut Account, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if account.turn != self.number {
            account.turn = self.number;
            account.bytes = 0;
            self.busy += 1;
        }
        account.bytes = account.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    fn wait(&mut self, account: &mut Account, conn: ConnId, side: Side) {
        if !std::mem::replace(&mut account.waits[side as usize], true) {
            self.waiting.push((conn, side));
            self.waits += 1;
        }
    }

    /// True if somebody waits for the driver.
    pub(crate) const fn are_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Times that a connection had used up its share and waited for the driver.
    pub(crate) const fn waits(&self) -> u64 {
        self.waits
    }
}

impl StackState {
    /// Bytes that `conn` may exchange on `side` in this turn. If that is nothing, it is woken after the driver's
    /// next turn. Without a device, what was received can be read at once.
    pub(crate) fn share(&mut self, conn: ConnId, side: Side) -> usize {
        let alive = self.failure().is_none();
        let (turns, Some(account)) = self.account(conn) else { return usize::MAX };
        let left = turns.left(account);
        if left == 0 && alive {
            turns.wait(account, conn, side);
        }
        if alive { left } else { usize::MAX }
    }

    /// Charges what an operation of `conn` exchanged.
    pub(crate) fn charge(&mut self, conn: ConnId, exchange: &Exchange) {
        if let (turns, Some(account)) = self.account(conn) {
            turns.charge(account, exchange.bytes);
        }
    }

    /// The driver has run: everybody may go on.
    pub(super) fn next_turn(&mut self, wakes: &mut Wakes) {
        let turns = &mut self.turns;
        turns.number = turns.number.wrapping_add(1);
        turns.busy_before = std::mem::take(&mut turns.busy);
        // Put back to keep its allocation.
        let mut waiting = std::mem::take(&mut turns.waiting);
        for (conn, side) in waiting.drain(..) {
            if let (_, Some(account)) = self.account(conn) {
                account.waits[side as usize] = false;
            }
            self.wake(conn, &[side], wakes);
        }
        self.turns.waiting = waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_connections_share_a_turn() {
        let mut turns = Turns::new(DEFAULT_TURN);
        let mut first = Account::default();
        assert_eq!(turns.left(&first), DEFAULT_TURN);
        turns.charge(&mut first, 100_000);
        assert_eq!(turns.left(&first), DEFAULT_TURN - 100_000);
        let mut others = [Account::default(); 3];
        for other in &mut others {
            turns.charge(other, 1);
        }
        assert_eq!(turns.left(&first), DEFAULT_TURN / 4 - 100_000);
        turns.charge(&mut first, DEFAULT_TURN);
        assert_eq!(turns.left(&first), 0);
        assert_eq!(turns.left(&others[0]), DEFAULT_TURN / 4 - 1, "one that took too much takes from nobody");
    }

    #[test]
    fn in_a_crowd_each_still_has_a_super_packet() {
        let mut turns = Turns::new(DEFAULT_TURN);
        for _ in 0..10_000 {
            turns.charge(&mut Account::default(), 1);
        }
        assert_eq!(turns.left(&Account::default()), LEAST_SHARE);
        assert_eq!(Turns::new(10).left(&Account::default()), 10, "a smaller turn is smaller for all");
    }

    #[test]
    fn what_exchanges_nothing_is_not_busy() {
        let mut turns = Turns::new(DEFAULT_TURN);
        turns.charge(&mut Account::default(), 0);
        assert_eq!(turns.left(&Account::default()), DEFAULT_TURN);
    }
}
