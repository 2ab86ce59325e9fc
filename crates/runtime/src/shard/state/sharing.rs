//! Operations of connections within their [turns](crate::shard::turns).

use super::StackState;
use crate::shard::turns::{Account, Exchange, Side, Turns};
use crate::wakes::Wakes;
use ackline_tcp_core::ConnId;

impl StackState {
    /// The current turn, and what `conn` exchanged in it.
    fn account(&mut self, conn: ConnId) -> (&mut Turns, Option<&mut Account>) {
        (&mut self.turns, self.slots.get(conn).map(|slot| &mut slot.account))
    }

    /// Bytes that `conn` may exchange on `side` in this turn. If that is nothing, it is woken after
    /// the driver's next turn. Without a device, what was received can be read at once.
    pub(crate) fn share(&mut self, conn: ConnId, side: Side) -> usize {
        let alive = self.failure().is_none();
        let (turns, Some(account)) = self.account(conn) else { return usize::MAX };
        let left = turns.left(account, side);
        if left == 0 && alive {
            turns.wait(account, conn, side);
        }
        if alive { left } else { usize::MAX }
    }

    /// True if an operation of `conn` on `side` would have to wait.
    pub(crate) fn would_wait(&mut self, conn: ConnId, side: Side) -> bool {
        if let (turns, Some(account)) = self.account(conn)
            && turns.left(account, side) == 0
        {
            return true;
        }
        let Ok(mut conn) = self.remains(conn) else { return false };
        match side {
            Side::Read => {
                conn.error().is_none() && !conn.at_end() && conn.peek().iter().all(|piece| piece.is_empty())
            }
            Side::Write => conn.error().is_none() && !conn.is_writable(),
        }
    }

    /// Charges what an operation of `conn` exchanged.
    pub(crate) fn charge(&mut self, conn: ConnId, exchange: &Exchange) {
        if let (turns, Some(account)) = self.account(conn) {
            turns.charge(account, exchange);
        }
    }

    /// The driver has run: the first of those that wait may go on.
    pub(in crate::shard) fn next_turn(&mut self, wakes: &mut Wakes) {
        self.turns.end();
        while let Some((conn, side)) = self.turns.next_to_go() {
            if let (_, Some(account)) = self.account(conn) {
                account.stop_waiting(side);
            }
            self.wake(conn, &[side], wakes);
        }
    }
}
