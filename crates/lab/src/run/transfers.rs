//! Measures connections one by one if a flow opens many: what each one's window was, and how much
//! came that its receiver had.

use crate::results::TransferResult;
use crate::run::stream::{Arrived, Segment};
use ackline_netsim::{LinkId, NodeId, Observer, Packet, PacketEvent, View};
use ackline_tcp_core::policy::rto::RtoPhase;
use ackline_tcp_core::policy::sched::SegmentClass;
use ackline_tcp_core::{ConnId, Instant};
use std::collections::HashMap;

/// Where a flow's packets are seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPath {
    /// The port by which its packets are known.
    pub(crate) port: u16,
    pub(crate) sender: NodeId,
    pub(crate) receiver: NodeId,
}

/// Watches all connections of all flows.
#[derive(Debug)]
pub(crate) struct Transfers {
    flows: Vec<FlowPath>,
    /// Begin and end of the time in which packets count.
    window: (Instant, Instant),
    flow_of_port: HashMap<u16, usize>,
    /// Both ends of each link.
    links: Vec<(NodeId, NodeId)>,
    transfers: Vec<Transfer>,
    /// The latest transfer of a flow with this other port.
    place_of: HashMap<(usize, u16), usize>,
    /// Those whose sender is looked at.
    active: Vec<usize>,
}

#[derive(Debug)]
struct Transfer {
    flow: usize,
    /// The connection at the host that sent the SYN.
    opener: Option<ConnId>,
    /// The connection at the sender of the data, once it has sent some.
    sender: Option<ConnId>,
    begun: Instant,
    /// What has arrived of the sender's stream.
    arrived: Arrived,
    redundant: u64,
    sent: u64,
    again: u64,
    timeouts: u64,
    /// Sum of the windows seen, in segments.
    windows: f64,
    /// The same with the window before the timeout while the response probes.
    windows_before: f64,
    /// How many windows were seen.
    seen: u64,
    /// The last window seen outside of the Probe phase, in segments.
    last_window: f64,
    mss: u32,
}

impl Transfers {
    pub(crate) fn new(
        window: (Instant, Instant),
        flows: Vec<FlowPath>,
        links: Vec<(NodeId, NodeId)>,
    ) -> Self {
        let flow_of_port = flows.iter().enumerate().map(|(flow, seen)| (seen.port, flow)).collect();
        Self {
            window,
            flows,
            flow_of_port,
            links,
            transfers: vec![],
            place_of: HashMap::new(),
            active: vec![],
        }
    }

    /// What was measured of a flow, in the order in which its connections were opened.
    pub(crate) fn of_flow(&self, flow: usize) -> Vec<TransferResult> {
        self.transfers.iter().filter(|transfer| transfer.flow == flow).map(Transfer::result).collect()
    }

    /// The flow, the transfer and the other port of a packet.
    fn find(&self, ports: [u16; 2]) -> Option<(usize, Option<usize>, u16)> {
        let (flow, other) = match self.flow_of_port.get(&ports[0]) {
            Some(flow) => (*flow, ports[1]),
            None => (*self.flow_of_port.get(&ports[1])?, ports[0]),
        };
        Some((flow, self.place_of.get(&(flow, other)).copied(), other))
    }
}

impl Transfer {
    fn result(&self) -> TransferResult {
        let mean = |sum: f64| (self.seen > 0).then(|| sum / self.seen as f64);
        TransferResult {
            begun_s: self.begun.as_nanos() as f64 / 1e9,
            bytes: self.arrived.bytes(),
            redundant_bytes: self.redundant,
            data_packets: self.sent,
            retransmits: self.again,
            timeouts: self.timeouts,
            cwnd_segments: mean(self.windows),
            cwnd_before_segments: mean(self.windows_before),
            mss: self.mss,
        }
    }

    fn sample(&mut self, node: NodeId, id: ConnId, view: &mut View<'_>) -> bool {
        let Some(mut conn) = view.endpoint(node).and_then(|endpoint| endpoint.conn(id)) else { return false };
        let info = conn.info();
        let probes = conn.rto_response().is_some_and(|response| response.phase() == RtoPhase::Probe);
        self.timeouts = info.timeouts;
        self.mss = info.snd_mss;
        if info.unacked > 0 || info.notsent_bytes > 0 {
            if !probes {
                self.last_window = info.snd_cwnd as f64 / f64::from(info.snd_mss.max(1));
                self.windows += self.last_window;
            }
            self.windows_before += self.last_window;
            self.seen += 1;
        }
        true
    }
}

impl Observer for Transfers {
    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        let Some(&(from, to)) = self.links.get(link.index()) else { return };
        let Some(ports) = packet.ports() else { return };
        let in_window = (self.window.0..self.window.1).contains(&now);
        match event {
            PacketEvent::Offered => {
                let Some((flow, place, other)) = self.find(ports) else { return };
                let seen = self.flows[flow];
                if from != seen.sender && from != seen.receiver {
                    return;
                }
                let Some(segment) = Segment::read(packet) else { return };
                let mut place = place;
                if segment.syn && !segment.ack {
                    let known = place.is_some_and(|place| self.transfers[place].opener == packet.origin.conn);
                    if !known {
                        self.transfers.push(Transfer::new(flow, now, packet.origin.conn));
                        place = Some(self.transfers.len() - 1);
                        self.place_of.insert((flow, other), self.transfers.len() - 1);
                    }
                }
                let Some(place) = place.filter(|_| from == seen.sender) else { return };
                let transfer = &mut self.transfers[place];
                if segment.syn {
                    transfer.arrived = Arrived::after_syn(segment.seq);
                }
                if segment.payload > 0 {
                    if in_window {
                        transfer.sent += 1;
                        transfer.again += u64::from(packet.origin.class == SegmentClass::Retransmit);
                    }
                    if transfer.sender.is_none() {
                        transfer.sender = packet.origin.conn;
                        self.active.push(place);
                    }
                }
            }
            PacketEvent::Delivered => {
                let Some((flow, Some(place), _)) = self.find(ports) else { return };
                if to != self.flows[flow].receiver {
                    return;
                }
                let Some(segment) = Segment::read(packet).filter(|segment| segment.payload > 0) else {
                    return;
                };
                let transfer = &mut self.transfers[place];
                let new = transfer.arrived.arrive(segment.seq, segment.payload);
                if in_window {
                    transfer.redundant += u64::from(segment.payload.saturating_sub(new));
                }
            }
            PacketEvent::Started | PacketEvent::Left | PacketEvent::Dropped(_) => {}
        }
    }

    fn sample(&mut self, _: Instant, view: &mut View<'_>) {
        let Self { flows, transfers, active, .. } = self;
        active.retain(|place| {
            let transfer = &mut transfers[*place];
            let node = flows[transfer.flow].sender;
            transfer.sender.is_some_and(|id| transfer.sample(node, id, view))
        });
    }
}

impl Transfer {
    const fn new(flow: usize, begun: Instant, opener: Option<ConnId>) -> Self {
        Self {
            flow,
            opener,
            sender: None,
            begun,
            arrived: Arrived::after_syn(0),
            redundant: 0,
            sent: 0,
            again: 0,
            timeouts: 0,
            windows: 0.0,
            windows_before: 0.0,
            seen: 0,
            last_window: 0.0,
            mss: 0,
        }
    }
}
