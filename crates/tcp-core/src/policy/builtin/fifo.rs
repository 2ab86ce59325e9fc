//! First in, first out.

use crate::policy::sched::{Backlog, Descriptor, EgressScheduler, Forget, LinkView, Popped, Scope};
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Packets leave in the order in which they were queued.
#[derive(Debug, Default)]
pub struct Fifo {
    queue: VecDeque<Descriptor>,
}

impl EgressScheduler for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn push(&mut self, _now: Instant, packet: Descriptor) {
        self.queue.push_back(packet);
    }

    fn pop(&mut self, _now: Instant, link: &LinkView) -> Popped {
        match self.queue.front() {
            Some(head) if head.len <= link.room => {
                self.queue.pop_front().map_or(Popped::Empty, Popped::Packet)
            }
            _ => Popped::Empty,
        }
    }

    fn forget(&mut self, _now: Instant, which: Forget) {
        match which {
            Forget::Packet(serial) => self.queue.retain(|packet| packet.id.serial != serial),
            Forget::Conn(conn) => self.queue.retain(|packet| packet.conn != Some(conn)),
        }
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        let mut backlog = Backlog::default();
        for packet in &self.queue {
            let counts = match scope {
                Scope::All => true,
                Scope::Conn(conn) => packet.conn == Some(conn),
                Scope::Class(class) => packet.class == class,
            };
            if counts {
                backlog.packets += 1;
                backlog.bytes += u64::from(packet.len);
            }
        }
        backlog
    }
}
