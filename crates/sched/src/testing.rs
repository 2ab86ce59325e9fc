//! Test loads: packets with names, and the order in which they leave.

use crate::SCHED;
use ackline_tcp_core::policy::conformance;
use ackline_tcp_core::policy::sched::{
    Descriptor, DescriptorId, EgressScheduler, LinkView, Popped, SegmentClass,
};
use ackline_tcp_core::policy::spec::{PolicyKind, resolve};
use ackline_tcp_core::{ConnId, Instant, SeqNum};
use std::string::{String, ToString};
use std::vec::Vec;

/// A link that takes any packet.
pub(crate) const ANY: LinkView = LinkView::new(u32::MAX);

/// Conformance of every scheduler in the table: alone, shaped, with a short queue, with kept and
/// thinned ACKs.
pub(crate) fn conform(name: &str) {
    let common =
        ["limit=1000", "rate=10mbit", "rate=100kbit,burst=0,limit=2", "limit=1,acks=kept", "thin=on,limit=5"];
    for params in common {
        let spec = std::format!("{name}{}{params}", if name.contains(':') { ',' } else { ':' });
        let make = resolve(SCHED, PolicyKind::Sched, &spec).unwrap();
        for seed in 0..4 {
            conformance::egress_scheduler(&*make, seed);
        }
    }
}

/// A scheduler under test and the names of its packets. Names that start with `d` or `e` are data
/// of connection 0, those with `a`, `b` or `A` are ACKs of connection 1.
pub(crate) struct Load<S> {
    pub(crate) scheduler: S,
    names: Vec<String>,
}

impl<S: EgressScheduler> Load<S> {
    pub(crate) fn new(scheduler: S) -> Self {
        Self { scheduler, names: Vec::new() }
    }

    /// Creates a packet of the given class, connection and length.
    pub(crate) fn packet(&mut self, name: &str, class: SegmentClass, conn: u32, len: u32) -> Descriptor {
        let serial = self.names.len() as u64;
        self.names.push(name.to_string());
        Descriptor::new(DescriptorId::new(serial, SeqNum(0), 0), Some(ConnId::for_test(conn, 0)), class, len)
    }

    /// Queues the packets of these names, separated by blanks.
    pub(crate) fn push(&mut self, names: &str, data: u32, ack: u32) {
        for name in names.split_whitespace() {
            let packet = if name.starts_with(['d', 'e']) {
                self.packet(name, SegmentClass::Data, 0, data)
            } else {
                self.packet(name, SegmentClass::PureAck, 1, ack)
            };
            self.scheduler.push(Instant::ZERO, packet);
        }
    }

    /// Queues `count` packets called `letter0`, `letter1` and so on.
    pub(crate) fn push_many(&mut self, letter: &str, count: u32, len: u32) {
        for number in 0..count {
            self.push(&std::format!("{letter}{number}"), len, len);
        }
    }

    /// The name of the packet that leaves next; `-` if none does.
    pub(crate) fn pop_name(&mut self) -> String {
        match self.scheduler.pop(Instant::ZERO, &ANY) {
            Popped::Packet(packet) => {
                self.scheduler.departed(Instant::ZERO, &packet);
                self.names[packet.id.serial as usize].clone()
            }
            _ => "-".to_string(),
        }
    }

    /// The names of the next `count` packets that leave.
    pub(crate) fn pop_names(&mut self, count: usize) -> String {
        let names: Vec<String> = (0..count).map(|_| self.pop_name()).collect();
        names.join(" ")
    }
}
