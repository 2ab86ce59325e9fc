//! Table entries: combines any scheduler with the [queue](crate::queue) and the
//! [shaper](crate::shaper), and their parameters.
//!
//! A scheduler decides which packet leaves next. [`shaped`] adds what all of them need: a queue
//! limit, the treatment of queued ACKs, and a rate, so that there is a queue in the host at all.
//! The scheduler only sees its own parameters, when it is created and when it is configured at run
//! time. [`COMMON`] describes the others for listings and error messages; [`with_common`] puts a
//! scheduler's own parameters before them.
//!
//! ```
//! use ackline_sched::{Fifo, entry};
//! use ackline_tcp_core::Instant;
//! use ackline_tcp_core::policy::sched::{
//!     Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped, SchedulerProperties, Scope, SegmentClass,
//! };
//! use ackline_tcp_core::policy::spec::{Entry, PolicyKind, resolve};
//! use ackline_tcp_core::policy::{NewEgressScheduler, conformance};
//!
//! /// Repairs of losses leave before everything else.
//! #[derive(Debug, Default)]
//! struct RepairsFirst {
//!     repairs: Fifo,
//!     others: Fifo,
//! }
//!
//! impl EgressScheduler for RepairsFirst {
//!     fn name(&self) -> &'static str {
//!         "repairs-first"
//!     }
//!     fn properties(&self) -> SchedulerProperties {
//!         SchedulerProperties::new().with_bypass(Bypass::UntilDeviceFull)
//!     }
//!     fn push(&mut self, now: Instant, packet: Descriptor) {
//!         let repairs = packet.class == SegmentClass::Retransmit;
//!         if repairs { self.repairs.push(now, packet) } else { self.others.push(now, packet) }
//!     }
//!     fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
//!         match self.repairs.pop(now, link) {
//!             Popped::Empty => self.others.pop(now, link),
//!             popped => popped,
//!         }
//!     }
//!     fn forget(&mut self, now: Instant, which: Forget) {
//!         self.repairs.forget(now, which);
//!         self.others.forget(now, which);
//!     }
//!     fn backlog(&self, scope: Scope) -> Backlog {
//!         self.repairs.backlog(scope) + self.others.backlog(scope)
//!     }
//! }
//!
//! const REPAIRS_FIRST: Entry<NewEgressScheduler> = Entry {
//!     summary: "repairs of losses before everything else",
//!     params: &entry::COMMON,
//!     ..Entry::new("repairs-first", |params| {
//!         entry::shaped(params, |own| {
//!             own.reject_all("repairs-first")?;
//!             Ok(RepairsFirst::default())
//!         })
//!     })
//! };
//!
//! let make = resolve(&[REPAIRS_FIRST], PolicyKind::Sched, "repairs-first:rate=1mbit,limit=50")?;
//! for seed in 0..10 {
//!     conformance::egress_scheduler(&*make, seed);
//! }
//! // They can be configured at run time, too.
//! make().configure(&"rate=2mbit,acks=kept".parse()?)?;
//! # Ok::<(), ackline_tcp_core::policy::SpecError>(())
//! ```

use crate::queue::{LimitedQueue, QueueParams};
use crate::shaper::{Shaped, ShaperParams};
use ackline_tcp_core::policy::sched::EgressScheduler;
use ackline_tcp_core::policy::spec::ParamInfo;
use ackline_tcp_core::policy::{NewEgressScheduler, Params, SpecError};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// The parameters of [`shaped`]: the queue's, then the shaper's.
pub const COMMON: [ParamInfo; QueueParams::TABLE.len() + ShaperParams::TABLE.len()] =
    concat(QueueParams::TABLE, ShaperParams::TABLE);

/// A scheduler's own parameters, followed by [`COMMON`]. `N` must be the total number; any other
/// does not compile.
///
/// ```
/// use ackline_sched::entry;
/// use ackline_tcp_core::policy::spec::ParamInfo;
///
/// const OWN: [ParamInfo; 1] =
///     [ParamInfo { name: "quantum", default: "1500", range: "1..65535", summary: "bytes of a turn" }];
/// const PARAMS: [ParamInfo; OWN.len() + entry::COMMON.len()] = entry::with_common(&OWN);
/// assert_eq!((PARAMS[0].name, PARAMS[1].name), ("quantum", "limit"));
/// ```
#[must_use]
pub const fn with_common<const N: usize>(own: &[ParamInfo]) -> [ParamInfo; N] {
    concat(own, &COMMON)
}

const fn concat<const N: usize>(first: &[ParamInfo], second: &[ParamInfo]) -> [ParamInfo; N] {
    assert!(first.len() + second.len() == N, "the table is as long as its two parts");
    let mut all = [ShaperParams::TABLE[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

/// The maker of a scheduler behind queue and shaper: an entry's
/// [`make`](ackline_tcp_core::policy::spec::Entry::make) in full.
///
/// `inner` makes the scheduler itself from those of `params` that are its own. It is called at
/// once, to check them, and then for each host with the same parameters, for which it must not fail
/// again.
///
/// # Errors
/// Those of `inner`; and names the parameter of queue or shaper that is out of range.
pub fn shaped<S: EgressScheduler + 'static>(
    params: &Params,
    inner: impl Fn(&Params) -> Result<S, SpecError> + Send + Sync + 'static,
) -> Result<Arc<NewEgressScheduler>, SpecError> {
    let (shaper, rest) = params.split(ShaperParams::TABLE);
    let (queue, own) = rest.split(QueueParams::TABLE);
    let shaper = ShaperParams::default().with(&shaper)?;
    let queue = QueueParams::default().with(&queue)?;
    inner(&own)?;
    Ok(Arc::new(move || {
        // The parameters were found right above.
        let inner = inner(&own).unwrap_or_else(|error| unreachable!("{error}"));
        Box::new(Shaped::new(LimitedQueue::new(inner, queue), shaper))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fifo;
    use ackline_tcp_core::policy::Metrics;
    use ackline_tcp_core::policy::sched::{
        Arrival, Backlog, Bypass, Descriptor, DescriptorId, Forget, LinkView, Popped, QueuedAcks,
        SchedulerProperties, Scope, SegmentClass,
    };
    use ackline_tcp_core::{ConnId, Duration, Instant, SeqNum};
    use std::string::ToString;
    use std::vec::Vec;

    /// First in, first out; reports what it was told of each packet, and its one parameter.
    #[derive(Debug, Default)]
    struct Told {
        inner: Fifo,
        late: u32,
        repriced: u32,
        departed: u32,
        arrived: u32,
        forgotten: u32,
        depth: u64,
    }

    impl EgressScheduler for Told {
        fn name(&self) -> &'static str {
            "told"
        }
        fn properties(&self) -> SchedulerProperties {
            SchedulerProperties::new()
                .with_bypass(Bypass::Always)
                .with_acks(QueuedAcks::Kept)
                .with_largest_packet(9_000)
                .with_arrivals(true)
        }
        fn push(&mut self, now: Instant, packet: Descriptor) {
            self.inner.push(now, packet);
        }
        fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
            self.inner.pop(now, link)
        }
        fn woke_late(&mut self, _now: Instant, _by: Duration) {
            self.late += 1;
        }
        fn repriced(&mut self, _now: Instant, _packet: &Descriptor, _len: u32) {
            self.repriced += 1;
        }
        fn departed(&mut self, _now: Instant, _packet: &Descriptor) {
            self.departed += 1;
        }
        fn arrived(&mut self, _now: Instant, arrival: &Arrival) {
            self.arrived += arrival.segments;
        }
        fn forget(&mut self, now: Instant, which: Forget) {
            self.forgotten += 1;
            self.inner.forget(now, which);
        }
        fn backlog(&self, scope: Scope) -> Backlog {
            self.inner.backlog(scope)
        }
        fn metrics(&self, report: &mut Metrics<'_>) {
            let told = [self.late, self.repriced, self.departed, self.arrived, self.forgotten];
            let names = ["late", "repriced", "departed", "arrived", "forgotten"];
            for (name, count) in names.into_iter().zip(told) {
                report.number(name, count);
            }
            report.count("depth", self.depth);
        }
        fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
            for param in params.iter() {
                match param.key() {
                    "depth" => self.depth = param.integer(1..=9)?,
                    _ => return Err(param.unknown("told", &[])),
                }
            }
            Ok(())
        }
    }

    fn told(params: &str) -> Result<Box<dyn EgressScheduler>, SpecError> {
        let make = shaped(&params.parse()?, |own| {
            let mut told = Told::default();
            told.configure(own).map(|()| told)
        })?;
        Ok(make())
    }

    fn metrics(scheduler: &dyn EgressScheduler, names: &[&str]) -> Vec<f64> {
        let find = |name: &&str| Metrics::find(name, |report| scheduler.metrics(report)).unwrap();
        names.iter().map(find).collect()
    }

    #[test]
    fn a_scheduler_behind_queue_and_shaper_is_told_all_that_it_would_be_told_alone() {
        for params in ["depth=3", "depth=3,rate=1mbit,limit=50"] {
            let mut scheduler = told(params).unwrap();
            let now = Instant::from_secs(1);
            let id = DescriptorId::new(1, SeqNum(0), 0);
            let packet = Descriptor::new(id, Some(ConnId::for_test(0, 0)), SegmentClass::PureAck, 40);
            scheduler.push(now, packet);
            scheduler.woke_late(now, Duration::from_millis(1));
            assert_eq!(scheduler.pop(now, &LinkView::new(u32::MAX)), Popped::Packet(packet));
            scheduler.repriced(now, &packet, 52);
            scheduler.departed(now, &packet);
            scheduler.arrived(now, &Arrival::new(ConnId::for_test(0, 0), 1_500));
            scheduler.forget(now, Forget::Packet { conn: None, serial: 1 });
            let names = ["late", "repriced", "departed", "arrived", "forgotten", "depth"];
            assert_eq!(metrics(&*scheduler, &names), [1.0, 1.0, 1.0, 1.0, 1.0, 3.0], "{params}");
        }
    }

    #[test]
    fn properties_are_the_schedulers_as_far_as_queue_and_shaper_leave_them() {
        for (params, bypass, acks, largest) in [
            ("", Bypass::Always, QueuedAcks::Kept, 9_000),
            ("thin=on", Bypass::Always, QueuedAcks::Thinned, 9_000),
            // A packet of 1000 bytes takes a millisecond.
            ("rate=8mbit", Bypass::Never, QueuedAcks::Kept, 1_000),
            ("rate=1gbit", Bypass::Never, QueuedAcks::Kept, 9_000),
        ] {
            let expected = SchedulerProperties::new()
                .with_bypass(bypass)
                .with_acks(acks)
                .with_largest_packet(largest)
                .with_arrivals(true);
            assert_eq!(told(params).unwrap().properties(), expected, "{params}");
        }
    }

    #[test]
    fn each_part_takes_its_own_parameters_at_once_and_while_running() {
        let mut scheduler = told("rate=1mbit,depth=2,limit=7").unwrap();
        scheduler.configure(&"limit=9,depth=4,burst=2ms".parse().unwrap()).unwrap();
        assert_eq!(metrics(&*scheduler, &["depth"]), [4.0]);
        for (params, names) in
            [("depth=0", "depth"), ("limit=0", "limit"), ("burst=x", "burst"), ("f=1", "\"f\"")]
        {
            let error = told(params).unwrap_err().to_string();
            assert!(error.contains(names), "{params}: {error}");
        }
    }
}
