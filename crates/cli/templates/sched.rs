//! `{{name}}`: what carries no data leaves first.

use ackline::core::Instant;
use ackline::core::policy::NewEgressScheduler;
use ackline::core::policy::builtin::Fifo;
use ackline::core::policy::sched::{
    Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties, Scope,
};
use ackline::core::policy::spec::Entry;
use ackline::sched::entry;

pub const ENTRY: Entry<NewEgressScheduler> =
    entry::of::<ControlFirst>("{{name}}", "packets without data before those with data");

/// Two queues.
#[derive(Debug, Default)]
struct ControlFirst {
    control: Fifo,
    data: Fifo,
}

impl EgressScheduler for ControlFirst {
    fn name(&self) -> &'static str {
        "{{name}}"
    }

    /// While nothing waits, packets may leave without being queued here.
    fn properties(&self) -> SchedulerProperties {
        SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull)
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        let queue = if packet.class.is_data() { &mut self.data } else { &mut self.control };
        queue.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        let queue = if self.control.is_empty() { &mut self.data } else { &mut self.control };
        queue.pop(now, link)
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.control.forget(now, which);
        self.data.forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.control.backlog(scope) + self.data.backlog(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::conformance;

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let registry = Registry::default().with_sched(ENTRY);
        for spec in ["{{name}}", "{{name}}:rate=1mbit,limit=50", "{{name}}:rate=5mbit,acks=kept,thin=on"] {
            let make = registry.sched(spec).unwrap();
            for seed in 0..20 {
                conformance::egress_scheduler(&*make, seed);
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let registry = Registry::default().with_sched(ENTRY);
        for wrong in ["rate=0", "limit=-1", "gamma=1"] {
            assert!(registry.sched(&format!("{{name}}:{wrong}")).is_err(), "{wrong}");
        }
    }
}
