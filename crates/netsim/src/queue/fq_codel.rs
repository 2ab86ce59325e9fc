//! FQ-CoDel (RFC 8290): a queue for each of many hash buckets of flows, served in turn by deficit
//! round robin, each controlled by CoDel. Flows that have just begun to send go first.

use super::codel::Control;
use super::{CoDelParams, DropReason, PacketFifo, Queue, QueueCx};
use crate::packet::Packet;
use siphasher::sip::SipHasher13;
use std::collections::VecDeque;
use std::hash::Hasher as _;
use std::net::IpAddr;

/// Settings of [`FqCoDel`]. Defaults are RFC 8290's and Linux's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCoDelParams {
    /// Each flow's CoDel. Its limit is that of all flows together (section 5.2.3: 10,240 packets).
    pub codel: CoDelParams,
    /// Bytes that a flow may send in its turn (section 5.2.4: 1,514).
    pub quantum: u32,
    /// Number of buckets (section 5.2.5: 1,024).
    pub flows: usize,
}

impl Default for FqCoDelParams {
    fn default() -> Self {
        let limit = super::Limit::Packets(10_240);
        Self { codel: CoDelParams { limit, ..CoDelParams::default() }, quantum: 1_514, flows: 1_024 }
    }
}

/// Most packets that an overflow drops (section 4.1, as Linux: half of the longest queue up to
/// this).
const DROP_BATCH: usize = 64;

/// A queue of one bucket.
#[derive(Debug, Default)]
struct Flow {
    fifo: PacketFifo,
    control: Control,
    /// Bytes that it may still send in its turn.
    deficit: i64,
    /// It is in one of the two lists.
    listed: bool,
}

/// The queues of all flows.
#[derive(Debug)]
pub struct FqCoDel {
    params: FqCoDelParams,
    flows: Vec<Flow>,
    /// Buckets of flows that have just begun to send, and of the others, in the order of their
    /// turns.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: u64,
    /// Keys of the hash, drawn with the first packet.
    keys: Option<(u64, u64)>,
}

impl FqCoDel {
    /// Empty queues; at least one. A `quantum` of zero counts as one byte.
    #[must_use]
    pub fn new(mut params: FqCoDelParams) -> Self {
        params.quantum = params.quantum.max(1);
        let mut flows = Vec::new();
        flows.resize_with(params.flows.max(1), Flow::default);
        Self { params, flows, new: VecDeque::new(), old: VecDeque::new(), packets: 0, bytes: 0, keys: None }
    }

    /// Section 4.1: by addresses and ports, perturbed by a random number. Their octets are hashed,
    /// because what `Hash` feeds a hasher depends on the machine.
    fn bucket(&mut self, cx: &mut QueueCx<'_>, packet: &Packet) -> usize {
        let (first, second) = *self.keys.get_or_insert_with(|| (cx.rng.bits(), cx.rng.bits()));
        let mut hasher = SipHasher13::new_with_keys(first, second);
        for address in [packet.source(), packet.destination()].into_iter().flatten() {
            match address {
                IpAddr::V4(address) => hasher.write(&address.octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
        }
        for port in packet.ports().into_iter().flatten() {
            hasher.write(&port.to_be_bytes());
        }
        (hasher.finish() % self.flows.len() as u64) as usize
    }

    /// Section 4.1: the flow with most bytes pays for an overflow, from its head.
    fn make_room(&mut self, cx: &mut QueueCx<'_>) {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.fifo.bytes());
        let Some(flow) = longest else { return };
        let batch = flow.fifo.packets().div_ceil(2).min(DROP_BATCH);
        for _ in 0..batch {
            let Some(packet) = flow.fifo.pop(cx) else { break };
            self.packets -= 1;
            self.bytes -= cx.cost(&packet);
            cx.drop(packet, DropReason::Overflow);
        }
    }
}

impl Queue for FqCoDel {
    fn name(&self) -> &'static str {
        "fq-codel"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        let bucket = self.bucket(cx, &packet);
        let flow = &mut self.flows[bucket];
        self.packets += 1;
        self.bytes += cx.cost(&packet);
        flow.fifo.push(cx, packet);
        if !std::mem::replace(&mut flow.listed, true) {
            flow.deficit = i64::from(self.params.quantum);
            self.new.push_back(bucket);
        }
        if !self.params.codel.limit.holds(cx, self.packets, self.bytes) {
            self.make_room(cx);
        }
    }

    /// Section 4.2.
    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let bucket = *if is_new { self.new.front() } else { self.old.front() }?;
            let flow = &mut self.flows[bucket];
            let spent = flow.deficit <= 0;
            if spent {
                flow.deficit += i64::from(self.params.quantum);
            } else {
                let before = (flow.fifo.packets(), flow.fifo.bytes());
                let packet = flow.control.dequeue(cx, &self.params.codel, &mut flow.fifo);
                self.packets -= before.0 - flow.fifo.packets();
                self.bytes -= before.1 - flow.fifo.bytes();
                if let Some(packet) = packet {
                    flow.deficit -= cx.cost(&packet) as i64;
                    return Some(packet);
                }
            }
            if is_new {
                self.new.pop_front();
            } else {
                self.old.pop_front();
            }
            // An empty new flow waits a turn among the old ones, so that it cannot be new again at
            // once.
            if spent || (is_new && !self.old.is_empty()) {
                self.old.push_back(bucket);
            } else {
                self.flows[bucket].listed = false;
            }
        }
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("flows", self.flows.iter().filter(|flow| flow.fifo.packets() > 0).count() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::super::{Action, Limit};
    use super::*;
    use ackline_tcp_core::Duration;

    fn small(limit: usize) -> FqCoDelParams {
        let codel =
            CoDelParams { limit: Limit::Packets(limit), action: Action::Drop, ..CoDelParams::default() };
        FqCoDelParams { codel, ..FqCoDelParams::default() }
    }

    #[test]
    fn a_sparse_flow_goes_before_those_that_stand() {
        let mut bench = Bench::new(FqCoDel::new(small(1_000)), 8_000_000, 1);
        (0..50).for_each(|_| bench.arrive_from(1, 1_000));
        assert!(bench.leave().is_some());
        assert!(bench.leave().is_some());
        bench.arrive_from(2, 100);
        let next = bench.leave().expect("51 wait");
        assert_eq!(next.len(), 100, "the new flow's");
    }

    /// `aX:n` is a packet of n bytes of flow X, `d` a departure: the flows that leave, `-` for
    /// none.
    fn turns(events: &str) -> String {
        let mut bench = Bench::new(FqCoDel::new(small(1_000)), 8_000_000, 1);
        let mut left = String::new();
        for event in events.split(' ') {
            let Some((flow, len)) = event.strip_prefix('a').and_then(|arrival| arrival.split_once(':'))
            else {
                let host = bench.leave().map(|packet| packet.octets()[15]);
                left += &host.map_or("-".to_owned(), |host| host.to_string());
                continue;
            };
            bench.arrive_from(flow.parse().expect("a flow"), len.parse().expect("bytes"));
        }
        left
    }

    #[test]
    fn takes_turns_as_the_rfc_says() {
        assert_eq!(turns("a1:1514 a1:1514 a1:1514 a2:60 d a3:700 d d d d d"), "12311-");
        assert_eq!(turns("a1:1514 a1:1514 a1:1514 d d a2:60 d d a2:60 d d"), "11212-");
        assert_eq!(turns("a1:100 d a1:100 d a1:100 d d a1:100 d"), "111-1");
    }

    #[test]
    fn a_flow_has_the_same_bucket_on_every_machine() {
        let mut bench = Bench::new(FqCoDel::new(small(1_000)), 8_000_000, 1);
        bench.queue.keys = Some((1, 2));
        bench.arrive_from(1, 1_000);
        bench.arrive_from(2, 1_000);
        // SipHash-1-3 of two addresses and two ports, modulo 1,024, from another implementation.
        assert_eq!(bench.queue.new, [311, 214]);
    }

    #[test]
    fn standing_flows_share_by_bytes() {
        let mut bench = Bench::new(FqCoDel::new(small(10_000)), 8_000_000, 1);
        for _ in 0..900 {
            bench.arrive_from(1, 1_500);
            (0..3).for_each(|_| bench.arrive_from(2, 500));
        }
        let mut bytes = [0_usize; 2];
        for _ in 0..1_000 {
            let packet = bench.leave().expect("more wait");
            bytes[usize::from(packet.len() == 500)] += packet.len();
        }
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((0.98..1.02).contains(&ratio), "{bytes:?}");
    }

    #[test]
    fn the_longest_queue_pays_for_an_overflow() {
        let mut bench = Bench::new(FqCoDel::new(small(100)), 8_000_000, 1);
        (0..10).for_each(|_| bench.arrive_from(2, 1_000));
        (0..300).for_each(|_| bench.arrive_from(1, 1_000));
        assert!(bench.queue.packets() <= 100);
        assert!(bench.dropped.iter().all(|(packet, _)| packet.source() == Some([10, 0, 1, 1].into())));
        let mut left = 0;
        let mut sparse = 0;
        while let Some(packet) = bench.leave() {
            left += 1;
            sparse += usize::from(packet.source() == Some([10, 0, 1, 2].into()));
        }
        assert_eq!((sparse, left + bench.dropped.len()), (10, 310));
        assert_eq!((bench.queue.packets(), bench.queue.bytes()), (0, 0));
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        let mut bench = Bench::new(FqCoDel::new(small(10_000)), 8_000_000, 1);
        (0..400).for_each(|_| bench.arrive_from(1, 1_000));
        for _ in 0..300 {
            bench.now += Duration::from_millis(1);
            bench.arrive_from(2, 100);
            bench.leave();
            bench.leave();
        }
        assert!(!bench.dropped.is_empty());
        assert!(bench.dropped.iter().all(|(packet, _)| packet.len() == 1_000));
    }
}
