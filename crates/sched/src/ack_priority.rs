//! `ack-priority`: acknowledgments always leave before data (Kalampoukas, Varma and Ramakrishnan,
//! 1997, section 4).
//!
//! An upload never slows a download. But if an ACK takes as long on the uplink as the data it
//! answers takes on the downlink, there is always an ACK waiting and data starves.
//! [`kalampoukas`](crate::kalampoukas) bounds that.

use crate::class::Class;
use crate::entry;
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::{
    Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties, Scope,
};
use ackline_tcp_core::policy::spec::Entry;
use ackline_tcp_core::policy::{Metrics, NewEgressScheduler};

pub(crate) const ENTRY: Entry<NewEgressScheduler> = Entry {
    source: "Kalampoukas et al. 1997, section 4",
    ..entry::of::<AckPriority>(
        "ack-priority",
        "ACKs before data, without a bound: the fastest downloads, and uploads may starve",
    )
};

/// Strict priority of acknowledgments.
#[derive(Debug, Default)]
pub struct AckPriority {
    /// qa.
    acks: Fifo,
    /// qd.
    data: Fifo,
}

impl EgressScheduler for AckPriority {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull)
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        match Class::of(packet.class) {
            Class::Ack => self.acks.push(now, packet),
            Class::Data => self.data.push(now, packet),
        }
    }

    /// Step 10: the head of qa if there is one, otherwise the head of qd.
    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let queue = if self.acks.is_empty() { &mut self.data } else { &mut self.acks };
        queue.pop(now, link)
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.acks.forget(now, which);
        self.data.forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.acks.backlog(scope) + self.data.backlog(scope)
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.count("ack_packets", self.acks.backlog(Scope::All).packets as u64);
        report.count("data_packets", self.data.backlog(Scope::All).packets as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Load, conform};

    #[test]
    fn it_keeps_the_rules() {
        conform("ack-priority");
    }

    /// Vector K2.
    #[test]
    fn k2_acks_leave_before_data() {
        let mut load = Load::new(AckPriority::default());
        load.push("d0 d1 a0 a1 a2", 1500, 40);
        assert_eq!(load.pop_names(6), "a0 a1 a2 d0 d1 -");
    }
}
