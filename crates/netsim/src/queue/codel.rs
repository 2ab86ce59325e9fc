//! CoDel (RFC 8289): drops or marks once the sojourn time has been above a target for an interval,
//! then more often, by the inverse square root of the number of drops.

use super::{Action, DropReason, Limit, PacketFifo, Queue, QueueCx};
use crate::packet::{EcnField, Packet};
use ackline_tcp_core::{Duration, Instant};

/// Settings of [`CoDel`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoDelParams {
    /// Size of the buffer.
    pub limit: Limit,
    /// Acceptable standing sojourn time (RFC 8289, section 4.4: 5 ms).
    pub target: Duration,
    /// Time in which the target must be met (section 4.3: 100 ms).
    pub interval: Duration,
    /// Backlog in bytes up to which nothing is dropped: one full packet.
    pub mtu: u32,
    /// What to do with a selected packet.
    pub action: Action,
    /// Also marks packets that waited longer than this, whatever the interval says.
    pub ce_threshold: Option<CeThreshold>,
}

/// Marking by the sojourn time alone, as L4S needs it (RFC 9332, section 2.5.1.1) and Linux's CoDel
/// and FQ-CoDel have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeThreshold {
    /// The longest time without a mark.
    pub sojourn: Duration,
    /// It holds for packets with ECT(1) alone (Linux: `ce_threshold_selector 0x1/0x3`).
    pub l4s_only: bool,
}

impl CeThreshold {
    fn picks(self, cx: &QueueCx<'_>, packet: &Packet) -> bool {
        cx.now.since(packet.queued_at) > self.sojourn && (!self.l4s_only || packet.ecn() == EcnField::Ect1)
    }
}

impl Default for CoDelParams {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1_000),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1_500,
            action: Action::Mark,
            ce_threshold: None,
        }
    }
}

/// A CoDel queue.
#[derive(Debug)]
pub struct CoDel {
    fifo: PacketFifo,
    params: CoDelParams,
    control: Control,
}

/// What CoDel knows about a queue. Names are those of RFC 8289, section 5.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl CoDel {
    /// An empty queue.
    #[must_use]
    pub fn new(params: CoDelParams) -> Self {
        Self { fifo: PacketFifo::default(), params, control: Control::default() }
    }
}

impl Control {
    /// Section 5.3: the next packet, and whether it may be dropped.
    fn dodequeue(
        &mut self,
        cx: &QueueCx<'_>,
        params: &CoDelParams,
        fifo: &mut PacketFifo,
    ) -> (Option<Packet>, bool) {
        let Some(packet) = fifo.pop(cx) else {
            self.first_above_time = None;
            return (None, false);
        };
        let sojourn = cx.now.since(packet.queued_at);
        if sojourn < params.target || fifo.bytes() <= u64::from(params.mtu) {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(cx.now + params.interval);
                (Some(packet), false)
            }
            Some(first) => (Some(packet), cx.now >= first),
        }
    }

    /// Section 5.2: interval / sqrt(count).
    fn control_law(&self, params: &CoDelParams, from: Instant) -> Instant {
        let nanos = params.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        from + Duration::from_nanos(nanos as u64)
    }

    /// The next packet.
    pub(super) fn dequeue(
        &mut self,
        cx: &mut QueueCx<'_>,
        params: &CoDelParams,
        fifo: &mut PacketFifo,
    ) -> Option<Packet> {
        let mut packet = self.controlled(cx, params, fifo)?;
        if params.ce_threshold.is_some_and(|threshold| threshold.picks(cx, &packet)) {
            cx.mark(&mut packet);
        }
        Some(packet)
    }

    /// Section 5.4: the next packet that is neither dropped nor missing.
    fn controlled(
        &mut self,
        cx: &mut QueueCx<'_>,
        params: &CoDelParams,
        fifo: &mut PacketFifo,
    ) -> Option<Packet> {
        let now = cx.now;
        let (mut packet, mut ok_to_drop) = self.dodequeue(cx, params, fifo);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count = self.count.saturating_add(1);
                if let Some(kept) = cx.signal(packet?, params.action) {
                    self.drop_next = self.control_law(params, self.drop_next);
                    return Some(kept);
                }
                (packet, ok_to_drop) = self.dodequeue(cx, params, fifo);
                if ok_to_drop {
                    self.drop_next = self.control_law(params, self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            match cx.signal(packet?, params.action) {
                Some(kept) => packet = Some(kept),
                None => packet = self.dodequeue(cx, params, fifo).0,
            }
            self.dropping = true;
            // Section 5.4: continue at the rate that controlled the queue before, if that was
            // recent.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now.since(self.drop_next) < params.interval.saturating_mul(16);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(params, now);
            self.lastcount = self.count;
        }
        packet
    }
}

impl Queue for CoDel {
    fn name(&self) -> &'static str {
        "codel"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        if self.params.limit.admits(cx, &self.fifo, &packet) {
            self.fifo.push(cx, packet);
        } else {
            cx.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        self.control.dequeue(cx, &self.params, &mut self.fifo)
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("count", f64::from(self.control.count));
        report("dropping", f64::from(u8::from(self.control.dropping)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;

    /// Packets of 1,000 bytes through 8 Mbit/s, 1 ms each, behind a standing queue: when each drop
    /// happens.
    fn drop_times(seconds: u64) -> Vec<Instant> {
        let params = CoDelParams { limit: Limit::Unlimited, action: Action::Drop, ..CoDelParams::default() };
        let mut bench = Bench::new(CoDel::new(params), 8_000_000, 0);
        let mut times = vec![];
        (0..200).for_each(|_| bench.arrive(1_000, false));
        for _ in 0..seconds * 1_000 {
            bench.now += Duration::from_millis(1);
            bench.arrive(1_000, false);
            bench.leave();
            // What was dropped is made up for, so that the queue stands.
            for _ in 0..bench.dropped.len() - times.len() {
                times.push(bench.now);
                bench.arrive(1_000, false);
            }
        }
        times
    }

    #[test]
    fn drops_by_the_control_law() {
        let times = drop_times(3);
        // Sojourn time passes the target at 6 ms or before; the first drop is an interval later.
        let first = times[0].as_millis();
        assert!((100..=107).contains(&first), "{first}");
        // Then intervals of 100 ms / sqrt(count), to the next departure of a packet.
        let mut expected = times[0].as_nanos() as f64;
        for (count, time) in times.iter().enumerate().skip(1).take(40) {
            expected += 100e6 / libm::sqrt(count as f64);
            let late = time.as_nanos() as f64 - expected;
            assert!((-1e3..=1.01e6).contains(&late), "drop {count}: {late} ns late");
        }
    }

    #[test]
    fn a_threshold_marks_what_has_waited_longer() {
        let sojourn = Duration::from_millis(1);
        for (l4s_only, marked) in [(false, 2), (true, 1)] {
            let ce_threshold = Some(CeThreshold { sojourn, l4s_only });
            let params = CoDelParams { ce_threshold, ..CoDelParams::default() };
            let mut bench = Bench::new(CoDel::new(params), 8_000_000, 0);
            for micros in [1_000, 1_001] {
                (0..3).for_each(|ecn| bench.arrive_with_ecn(1_000, ecn));
                bench.now += Duration::from_micros(micros);
                (0..3).for_each(|_| drop(bench.leave()));
            }
            assert_eq!((bench.marked, bench.dropped.len()), (marked, 0), "L4S alone: {l4s_only}");
        }
    }

    #[test]
    fn leaves_a_short_queue_alone() {
        let mut bench = Bench::new(CoDel::new(CoDelParams::default()), 8_000_000, 0);
        for _ in 0..10_000 {
            bench.now += Duration::from_millis(1);
            bench.arrive(1_000, true);
            bench.leave();
        }
        assert_eq!((bench.marked, bench.dropped.len()), (0, 0));
    }
}
