//! Table entries: combines any scheduler with the [queue](crate::queue) and the
//! [shaper](crate::shaper), and their parameters.
//!
//! A scheduler decides which packet leaves next. [`shaped`] adds what all of them need: a queue
//! limit, the treatment of queued ACKs, and a rate, so that there is a queue in the host at all.
//! The scheduler only sees its own parameters, when it is created and when it is configured at run
//! time. [`of`] and [`keyed`] make an entry of a scheduler without and with parameters.
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
//! const REPAIRS_FIRST: Entry<NewEgressScheduler> =
//!     entry::of::<RepairsFirst>("repairs-first", "repairs of losses before everything else");
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
use ackline_tcp_core::policy::spec::{Entry, Keyed, ParamRow};
use ackline_tcp_core::policy::{NewEgressScheduler, Params, SpecError};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The parameters of `P` and those of [`shaped`]: the queue's, then the shaper's.
#[must_use]
pub fn rows<P: Keyed>() -> Vec<ParamRow> {
    [ParamRow::of::<P>(), ParamRow::of::<QueueParams>(), ParamRow::of::<ShaperParams>()].concat()
}

/// The scheduler `S`, which has no parameters of its own.
#[must_use]
pub const fn of<S>(name: &'static str, summary: &'static str) -> Entry<NewEgressScheduler>
where
    S: EgressScheduler + Default + 'static,
{
    let make = |params: &Params| {
        shaped(params, |own| {
            let scheduler = S::default();
            own.reject_all(scheduler.name()).map(|()| scheduler)
        })
    };
    Entry { summary, keys: rows::<()>, ..Entry::new(name, make) }
}

/// The scheduler `S`, which is made from its parameters `P`.
///
/// ```
/// use ackline_sched::{Fifo, entry};
/// use ackline_tcp_core::policy::NewEgressScheduler;
/// use ackline_tcp_core::policy::spec::{Entry, Key, Keyed};
///
/// #[derive(Clone, Debug, Default)]
/// struct Depth(u32);
///
/// impl Keyed for Depth {
///     const KEYS: &'static [Key<Self>] = &[Key::integer("depth", 0..=9, "packets", |it| &mut it.0)];
/// }
///
/// # #[derive(Debug)]
/// # struct Deep(Fifo);
/// # use ackline_tcp_core::{Instant, policy::sched::*};
/// # impl EgressScheduler for Deep {
/// #     fn name(&self) -> &'static str { "deep" }
/// #     fn push(&mut self, now: Instant, packet: Descriptor) { self.0.push(now, packet) }
/// #     fn pop(&mut self, now: Instant, link: &LinkView) -> Popped { self.0.pop(now, link) }
/// #     fn forget(&mut self, now: Instant, which: Forget) { self.0.forget(now, which) }
/// #     fn backlog(&self, scope: Scope) -> Backlog { self.0.backlog(scope) }
/// # }
/// impl From<Depth> for Deep {
///     fn from(_: Depth) -> Self {
///         Self(Fifo::default())
///     }
/// }
///
/// const DEEP: Entry<NewEgressScheduler> = entry::keyed::<Depth, Deep>("deep", "a queue of some depth");
/// let names: Vec<_> = DEEP.rows().iter().map(|row| row.name).collect();
/// assert_eq!(names, ["depth", "limit", "acks", "thin", "rate", "burst", "late", "overhead"]);
/// ```
#[must_use]
pub const fn keyed<P, S>(name: &'static str, summary: &'static str) -> Entry<NewEgressScheduler>
where
    P: Keyed,
    S: EgressScheduler + From<P> + 'static,
{
    let make = |params: &Params| {
        shaped(params, |own| {
            let mut chosen = P::default();
            let scheduler = S::from(chosen.clone());
            chosen.set(scheduler.name(), own).map(|()| S::from(chosen))
        })
    };
    Entry { summary, keys: rows::<P>, ..Entry::new(name, make) }
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
    let (shaper, rest) = params.split::<ShaperParams>();
    let (queue, own) = rest.split::<QueueParams>();
    let shaper = ShaperParams::from_params("the shaper", &shaper)?;
    let queue = QueueParams::from_params("the queue", &queue)?;
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
                    _ => return Err(param.unknown("told", ["depth"].into_iter())),
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
