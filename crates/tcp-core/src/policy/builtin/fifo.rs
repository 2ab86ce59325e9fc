//! First in, first out.

use crate::policy::sched::{
    Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties, Scope,
};
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Packets leave in the order in which they were queued.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    queue: VecDeque<Descriptor>,
    /// Sum over `queue`.
    total: Backlog,
}

impl Fifo {
    /// Removes the packet with this serial number; `None` if it is not queued.
    pub fn take(&mut self, serial: u64) -> Option<Descriptor> {
        // Serial numbers grow from push to push.
        let place = self.queue.binary_search_by_key(&serial, |packet| packet.id.serial).ok()?;
        let packet = self.queue.remove(place)?;
        remove(&mut self.total, &packet);
        Some(packet)
    }

    /// The packet that leaves next.
    #[must_use]
    pub fn front(&self) -> Option<&Descriptor> {
        self.queue.front()
    }

    /// Whether no packet waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.total.packets == 0
    }

    /// Keeps the packets for which `keep` is true.
    fn retain(&mut self, keep: impl Fn(&Descriptor) -> bool) {
        let total = &mut self.total;
        self.queue.retain(|packet| {
            let stays = keep(packet);
            if !stays {
                remove(total, packet);
            }
            stays
        });
    }
}

fn remove(total: &mut Backlog, packet: &Descriptor) {
    total.packets = total.packets.saturating_sub(1);
    total.bytes = total.bytes.saturating_sub(u64::from(packet.len));
}

fn add(total: &mut Backlog, packet: &Descriptor) {
    total.packets += 1;
    total.bytes = total.bytes.saturating_add(u64::from(packet.len));
}

impl EgressScheduler for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new().with_bypass(Bypass::Always)
    }

    fn push(&mut self, _now: Instant, packet: Descriptor) {
        add(&mut self.total, &packet);
        self.queue.push_back(packet);
    }

    fn pop(&mut self, _now: Instant, link: &LinkView) -> Popped {
        if self.queue.front().is_some_and(|head| head.len <= link.room)
            && let Some(packet) = self.queue.pop_front()
        {
            remove(&mut self.total, &packet);
            Popped::Packet(packet)
        } else {
            Popped::Empty
        }
    }

    fn forget(&mut self, _now: Instant, which: Forget) {
        match which {
            Forget::Packet { serial, .. } => {
                self.take(serial);
            }
            Forget::Conn(conn) => self.retain(|packet| packet.conn != Some(conn)),
        }
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        let counts = |packet: &Descriptor| match scope {
            Scope::All => true,
            Scope::Conn(conn) => packet.conn == Some(conn),
            Scope::Class(class) => packet.class == class,
        };
        if scope == Scope::All {
            return self.total;
        }
        let mut backlog = Backlog::default();
        for packet in self.queue.iter().filter(|packet| counts(packet)) {
            add(&mut backlog, packet);
        }
        backlog
    }
}
