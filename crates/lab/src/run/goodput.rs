//! Goodput over time (RFC 2647, section 3.17): bytes of the stream that reach the receiving host,
//! each counted once, at the instant at which it first arrives.
//!
//! Neither of the two numbers that hosts keep shows what the network delivered when. A cumulative
//! ACK that ends a recovery covers whatever arrived after the hole, and the application reads all
//! of that at once. Both would show several times the rate of the link for one interval, and
//! nothing in the one before. Counted at arrival, an interval of length T on a link of rate R never
//! holds more than R T bits and one packet, whose first bits came in the interval before.

use crate::run::stream::{Arrived, Segment};
use ackline_netsim::{LinkId, NodeId, Observer, Packet, PacketEvent};
use ackline_tcp_core::policy::sched::SegmentClass;
use ackline_tcp_core::{Duration, Instant};
use std::collections::{HashMap, HashSet};

/// Most intervals of a series.
const MAX_INTERVALS: u64 = 2_000;

/// The goodput of flows over time, in intervals of equal length from the beginning of the run on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoodputSeries {
    /// Length of an interval, s.
    pub interval_s: f64,
    /// Of each flow, in the order of [`RunResult::flows`](crate::RunResult::flows) (the first
    /// `measure.flows` of them): bytes that arrived in each interval.
    pub bytes: Vec<Vec<u64>>,
}

impl GoodputSeries {
    /// The goodput of a flow over spans of `intervals` intervals, as time of the span's end in
    /// seconds and bits per second. An incomplete span at the end is left out. Empty for a flow
    /// without a series.
    #[must_use]
    pub fn rates(&self, flow: usize, intervals: usize) -> Vec<(f64, f64)> {
        let length = intervals.max(1);
        let bytes = self.bytes.get(flow).map(Vec::as_slice).unwrap_or_default();
        let spans = bytes.chunks_exact(length).enumerate();
        spans
            .map(|(place, span)| {
                let seconds = length as f64 * self.interval_s;
                ((place + 1) as f64 * seconds, span.iter().sum::<u64>() as f64 * 8.0 / seconds)
            })
            .collect()
    }
}

/// Where a flow's data arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    /// The port that only this flow uses.
    pub(crate) port: u16,
    pub(crate) receiver: NodeId,
}

/// Counts what arrives.
#[derive(Debug)]
pub(crate) struct GoodputMeter {
    interval: Duration,
    flows: Vec<Destination>,
    flow_of_port: HashMap<u16, usize>,
    /// The node at which each link ends, if that is the receiver of a flow.
    ends: Vec<Option<NodeId>>,
    /// By flow, and the port at the flow's other end.
    streams: HashMap<(usize, u16), Arrived>,
    bytes: Vec<Vec<u64>>,
}

impl GoodputMeter {
    /// For a run of length `duration`, with as many whole `sampling` intervals in one as keep the
    /// series short. `ends`: where each link ends.
    pub(crate) fn new(
        duration: Duration,
        sampling: Duration,
        flows: Vec<Destination>,
        ends: impl Iterator<Item = NodeId>,
    ) -> Self {
        let samples = duration.as_nanos().div_ceil(sampling.as_nanos().max(1));
        let interval = sampling.saturating_mul(samples.div_ceil(MAX_INTERVALS).max(1));
        let count = (duration.as_nanos() / interval.as_nanos().max(1)) as usize;
        let flow_of_port = flows.iter().enumerate().map(|(place, flow)| (flow.port, place)).collect();
        let receivers: HashSet<NodeId> = flows.iter().map(|flow| flow.receiver).collect();
        Self {
            interval,
            flow_of_port,
            ends: ends.map(|node| Some(node).filter(|node| receivers.contains(node))).collect(),
            streams: HashMap::new(),
            bytes: vec![vec![0; count]; flows.len()],
            flows,
        }
    }

    pub(crate) fn into_series(self) -> GoodputSeries {
        GoodputSeries { interval_s: self.interval.as_secs_f64(), bytes: self.bytes }
    }
}

impl Observer for GoodputMeter {
    fn watches_departures(&self, _: LinkId) -> bool {
        false
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        if event != PacketEvent::Delivered || packet.origin.class == SegmentClass::PureAck {
            return;
        }
        let Some(Some(node)) = self.ends.get(link.index()) else { return };
        let Some(ports) = packet.ports() else { return };
        let known = |place: usize| Some((*self.flow_of_port.get(&ports[place])?, ports[1 - place]));
        let Some((flow, other)) = known(0).or_else(|| known(1)) else { return };
        if self.flows[flow].receiver != *node {
            return;
        }
        let Some(segment) = Segment::read(packet) else { return };
        if segment.syn {
            let begun = self.streams.get(&(flow, other)).is_some_and(|stream| stream.isn() == segment.seq);
            if !begun {
                self.streams.insert((flow, other), Arrived::after_syn(segment.seq));
            }
            return;
        }
        let Some(stream) = self.streams.get_mut(&(flow, other)) else { return };
        let new = stream.arrive(segment.seq, segment.payload);
        let place = (now.as_nanos() / self.interval.as_nanos().max(1)) as usize;
        // What arrives after the last whole interval has none to be counted in.
        if let Some(bytes) = self.bytes[flow].get_mut(place) {
            *bytes += u64::from(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_whole_spans() {
        let series = GoodputSeries { interval_s: 0.5, bytes: vec![vec![1_000, 3_000, 0, 500, 7]] };
        assert_eq!(series.rates(0, 2), [(1.0, 32_000.0), (2.0, 4_000.0)]);
        assert_eq!(series.rates(0, 0).len(), 5, "a span has at least one interval");
        assert!(series.rates(1, 1).is_empty());
    }

    #[test]
    fn a_series_has_a_bound() {
        let receiver = ackline_netsim::Sim::new(1).add_router();
        let meter = |duration, sampling| {
            let flows = vec![Destination { port: 1, receiver }];
            GoodputMeter::new(duration, sampling, flows, std::iter::empty()).into_series()
        };
        let short = meter(Duration::from_secs(10), Duration::from_millis(10));
        assert_eq!((short.interval_s, short.bytes[0].len()), (0.01, 1_000));
        let long = meter(Duration::from_secs(100), Duration::from_millis(1));
        assert_eq!((long.interval_s, long.bytes[0].len()), (0.05, 2_000));
    }
}
