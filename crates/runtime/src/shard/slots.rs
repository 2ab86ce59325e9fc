//! The runtime's record of each connection: tasks that wait for it, and its account.

use super::turns::{Account, Side};
use ackline_tcp_core::{ConnId, Duration};
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::Notify;

/// By [`ConnId::index`]; a slot with another identity belongs to an earlier connection.
#[derive(Debug, Default)]
pub(crate) struct Slots(Vec<Slot>);

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: ConnId,
    /// The turn in which one of its tasks was woken last, unless that has come back.
    pub(super) called: u32,
    pub(super) read: Option<Waker>,
    pub(super) write: Option<Waker>,
    /// Present if there is something in it.
    pub(super) rare: Option<Box<Extras>>,
    pub(super) account: Account,
}

/// Fields that few connections need.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// Wakes the tasks that wait for readiness, any number of them; created for the first.
    pub(super) news: Option<Arc<Notify>>,
    pub(super) linger: Option<Duration>,
}

impl Slots {
    pub(super) fn get(&mut self, conn: ConnId) -> Option<&mut Slot> {
        self.0.get_mut(conn.index()).filter(|slot| slot.id == conn)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.0.iter_mut()
    }

    /// The identity of the connection that is, or was last, at `index`.
    pub(super) fn id_at(&self, index: usize) -> Option<ConnId> {
        self.0.get(index).map(|slot| slot.id)
    }

    /// Allocates the slot for a new connection's wakers.
    pub(super) fn adopt(&mut self, id: ConnId) {
        let slot = Slot::new(id);
        match self.0.get_mut(id.index()) {
            Some(old) => *old = slot,
            None => {
                // Indices are dense: at most one beyond the connections that exist. A gap (a
                // connection that is not established yet) is filled with slots that match no
                // connection's identity.
                while self.0.len() < id.index() {
                    self.0.push(Slot::new(id));
                }
                self.0.push(slot);
            }
        }
    }
}

impl Slot {
    pub(super) fn new(id: ConnId) -> Self {
        Self { id, called: 0, read: None, write: None, rare: None, account: Account::default() }
    }

    pub(super) fn news(&self) -> Option<&Arc<Notify>> {
        self.rare.as_ref()?.news.as_ref()
    }

    pub(super) fn linger(&self) -> Option<Duration> {
        self.rare.as_ref()?.linger
    }

    pub(super) fn rare(&mut self) -> &mut Extras {
        self.rare.get_or_insert_default()
    }

    pub(super) fn waker(&mut self, side: Side) -> &mut Option<Waker> {
        match side {
            Side::Read => &mut self.read,
            Side::Write => &mut self.write,
        }
    }
}
