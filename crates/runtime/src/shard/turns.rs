//! Fair turns: how much applications exchange with their connections before the driver runs again.
//!
//! Tasks run one after the other, and a task that always finds room in a send buffer, or data to
//! read, only returns to the scheduler when tokio's budget is used up: after 128 operations of any
//! size. Until then, on the same thread, no packet is received and no other task runs. So
//! operations are charged by bytes: the connections that are busy share a number of bytes for each
//! turn of the driver. Whoever has used up its share waits until the driver has run.
//!
//! A turn has room for a number of [least shares](LEAST_SHARE), and the driver lets no more of
//! those that wait go on than that, in the order in which they began to wait: with a thousand
//! senders a turn is as long as with ten, and the ACKs that it causes fit the device's queue. As in
//! RFC 8290, section 4.2, connections that have exchanged nothing for a turn (a request among bulk
//! data) are not in this line: they go on at once, or, if a turn has too many of them, have a line
//! of their own, which gets half of the places.

use ackline_tcp_core::{ConnId, Instant};
use std::collections::VecDeque;

/// Bytes that all connections may exchange with their applications in one turn of the driver. It
/// costs a single flow less than a hundredth of its rate.
pub(crate) const DEFAULT_TURN: usize = 1 << 20;

/// Bytes that each may exchange, however many are busy: one super-packet, so that a crowd's packets
/// are large.
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
    /// Bytes exchanged in this turn.
    bytes: usize,
    /// Connections whose share is used up and that have more to exchange, first come first.
    old: VecDeque<(ConnId, Side)>,
    /// Connections that found the turn used up and had exchanged nothing in it.
    new: VecDeque<(ConnId, Side)>,
    /// How many of those that wait may go on: of the new ones, and of the old ones.
    going: (usize, usize),
    /// Times that one had to wait.
    waits: u64,
}

/// Bytes that a connection exchanged in a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    turn: u32,
    bytes: u32,
    /// It is among those that wait, for each [`Side`].
    waits: [bool; 2],
}

/// Which of a connection's two directions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Read,
    Write,
}

impl Account {
    /// It goes on.
    pub(super) const fn stop_waiting(&mut self, side: Side) {
        self.waits[side as usize] = false;
    }
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
        Self {
            limit,
            number: 1,
            busy: 0,
            busy_before: 0,
            bytes: 0,
            old: VecDeque::new(),
            new: VecDeque::new(),
            going: (0, 0),
            waits: 0,
        }
    }

    /// Bytes that the connection may still exchange on `side` in this turn.
    pub(super) fn left(&self, account: &Account, side: Side) -> usize {
        let used = match account.turn == self.number {
            true => account.bytes as usize,
            // Twice as much, so that those that waited find room beside those that did not.
            false if self.bytes / 2 >= self.limit => return 0,
            false => 0,
        };
        let busy = self.busy.max(self.busy_before).max(1);
        let share = (self.limit / busy).max(LEAST_SHARE.min(self.limit));
        if account.waits[side as usize] { 0 } else { share.saturating_sub(used) }
    }

    /// The connection has exchanged what `exchange` says.
    pub(super) fn charge(&mut self, account: &mut Account, exchange: &Exchange) {
        let bytes = exchange.bytes;
        if bytes == 0 {
            return;
        }
        if account.turn != self.number {
            account.turn = self.number;
            account.bytes = 0;
            self.busy += 1;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        account.bytes = account.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The connection waits until it may go on.
    pub(super) fn wait(&mut self, account: &mut Account, conn: ConnId, side: Side) {
        if !std::mem::replace(&mut account.waits[side as usize], true) {
            let line = if account.turn == self.number { &mut self.old } else { &mut self.new };
            line.push_back((conn, side));
            self.waits += 1;
        }
    }

    /// Ends the turn: the first of those that wait may [go on](Self::next_to_go).
    pub(super) fn end(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.busy_before = std::mem::take(&mut self.busy);
        self.bytes = 0;
        let places = (self.limit / LEAST_SHARE).max(2);
        let old = self.old.len().min(places - self.new.len().min(places / 2));
        self.going = (self.new.len().min(places - old), old);
    }

    /// The next that may go on after the turn.
    pub(super) fn next_to_go(&mut self) -> Option<(ConnId, Side)> {
        let (new, old) = &mut self.going;
        if *new > 0 {
            *new -= 1;
            self.new.pop_front()
        } else if *old > 0 {
            *old -= 1;
            self.old.pop_front()
        } else {
            None
        }
    }

    /// True if somebody waits for the driver.
    pub(crate) fn are_awaited(&self) -> bool {
        !self.old.is_empty() || !self.new.is_empty()
    }

    /// Times that a connection had used up its share and waited for the driver.
    pub(crate) const fn waits(&self) -> u64 {
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchanged(bytes: usize) -> Exchange {
        Exchange { now: Instant::ZERO, left: 0, bytes }
    }

    #[test]
    fn busy_connections_share_a_turn() {
        let mut turns = Turns::new(DEFAULT_TURN);
        let mut first = Account::default();
        assert_eq!(turns.left(&first, Side::Write), DEFAULT_TURN);
        turns.charge(&mut first, &exchanged(100_000));
        assert_eq!(turns.left(&first, Side::Write), DEFAULT_TURN - 100_000);
        let mut others = [Account::default(); 3];
        for other in &mut others {
            turns.charge(other, &exchanged(1));
        }
        assert_eq!(turns.left(&first, Side::Write), DEFAULT_TURN / 4 - 100_000);
        turns.charge(&mut first, &exchanged(DEFAULT_TURN));
        assert_eq!(turns.left(&first, Side::Write), 0);
        assert_eq!(
            turns.left(&others[0], Side::Write),
            DEFAULT_TURN / 4 - 1,
            "one that took too much takes from nobody"
        );
    }

    #[test]
    fn in_a_crowd_each_still_has_a_super_packet() {
        let mut turns = Turns::new(DEFAULT_TURN);
        for _ in 0..10_000 {
            turns.charge(&mut Account::default(), &exchanged(1));
        }
        assert_eq!(turns.left(&Account::default(), Side::Write), LEAST_SHARE);
        assert_eq!(
            Turns::new(10).left(&Account::default(), Side::Write),
            10,
            "a smaller turn is smaller for all"
        );
    }

    #[test]
    fn what_exchanges_nothing_is_not_busy() {
        let mut turns = Turns::new(DEFAULT_TURN);
        turns.charge(&mut Account::default(), &exchanged(0));
        assert_eq!(turns.left(&Account::default(), Side::Write), DEFAULT_TURN);
    }

    const TWO: usize = 2 * LEAST_SHARE;

    fn conn(index: u32) -> ConnId {
        ConnId::for_test(index, 0)
    }

    /// A connection that has used up its share and waits.
    fn waiting(turns: &mut Turns, index: u32) -> Account {
        let mut account = Account::default();
        turns.charge(&mut account, &exchanged(LEAST_SHARE));
        turns.wait(&mut account, conn(index), Side::Write);
        account
    }

    #[test]
    fn a_turn_lets_as_many_go_on_as_it_has_room_for() {
        let mut turns = Turns::new(TWO);
        for index in 0..5 {
            waiting(&mut turns, index);
        }
        turns.end();
        assert_eq!(turns.going, (0, 2));
        assert_eq!(
            turns.old.front().map(|(conn, _)| *conn),
            Some(conn(0)),
            "in the order in which they came"
        );
    }

    #[test]
    fn who_waits_is_not_let_through_by_a_new_turn() {
        let mut turns = Turns::new(TWO);
        let account = waiting(&mut turns, 1);
        turns.end();
        assert_eq!(turns.left(&account, Side::Write), 0, "until it is its turn");
        assert!(turns.left(&account, Side::Read) > 0, "the other side does not wait");
    }

    #[test]
    fn a_flow_that_was_silent_does_not_queue_behind_the_busy_ones() {
        let mut turns = Turns::new(TWO);
        for index in 0..2 {
            waiting(&mut turns, index);
        }
        let mut silent = Account::default();
        assert_eq!(turns.left(&silent, Side::Write), LEAST_SHARE);
        // Unless the turn has too much already; then it goes on with the next one.
        for index in 2..10 {
            let mut account = waiting(&mut turns, index);
            turns.charge(&mut account, &exchanged(LEAST_SHARE));
        }
        assert_eq!(turns.left(&silent, Side::Write), 0);
        turns.wait(&mut silent, conn(10), Side::Write);
        turns.end();
        assert_eq!(turns.going, (1, 1));
    }
}
