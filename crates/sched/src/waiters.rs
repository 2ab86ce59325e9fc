//! A queue of waiting connections, longest waiting first, without duplicates.

use ackline_tcp_core::ConnId;
use alloc::collections::VecDeque;
use hashbrown::HashMap;

/// A queue of connections with removal from the middle. All operations are amortised O(1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiters {
    /// In order of arrival. An entry counts if its ticket is the one in `tickets`.
    order: VecDeque<(ConnId, u64)>,
    tickets: HashMap<ConnId, u64>,
    next: u64,
}

impl Waiters {
    /// Adds the connection unless it is already waiting.
    pub(crate) fn insert(&mut self, conn: ConnId) {
        let ticket = self.next;
        if self.tickets.try_insert(conn, ticket).is_ok() {
            self.next += 1;
            self.order.push_back((conn, ticket));
        }
    }

    /// Removes the connection; false if it was not waiting.
    pub(crate) fn remove(&mut self, conn: ConnId) -> bool {
        let waited = self.tickets.remove(&conn).is_some();
        if self.order.len() > 2 * self.tickets.len() + 16 {
            let tickets = &self.tickets;
            self.order.retain(|(conn, ticket)| tickets.get(conn) == Some(ticket));
        }
        waited
    }

    /// Removes the one that has waited longest.
    pub(crate) fn pop(&mut self) -> Option<ConnId> {
        loop {
            let (conn, ticket) = self.order.pop_front()?;
            if self.tickets.get(&conn) == Some(&ticket) {
                self.tickets.remove(&conn);
                return Some(conn);
            }
        }
    }

    /// Number of waiting connections.
    pub(crate) fn len(&self) -> usize {
        self.tickets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn(index: u32) -> ConnId {
        ConnId::for_test(index, 0)
    }

    #[test]
    fn whoever_leaves_and_comes_back_waits_at_the_end() {
        let mut waiters = Waiters::default();
        for index in [1, 2, 1, 3] {
            waiters.insert(conn(index));
        }
        assert!(waiters.remove(conn(1)) && !waiters.remove(conn(1)));
        waiters.insert(conn(1));
        assert_eq!(waiters.len(), 3);
        assert_eq!([waiters.pop(), waiters.pop()], [Some(conn(2)), Some(conn(3))]);
        assert_eq!([waiters.pop(), waiters.pop()], [Some(conn(1)), None]);
    }

    #[test]
    fn coming_and_going_takes_no_memory() {
        let mut waiters = Waiters::default();
        waiters.insert(conn(0));
        for _ in 0..10_000 {
            waiters.insert(conn(1));
            waiters.remove(conn(1));
        }
        assert!(waiters.order.len() <= 32, "{} entries", waiters.order.len());
    }
}
