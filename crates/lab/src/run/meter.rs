//! Counts packets: those with data of each flow where they leave its sender, and those of each kind
//! where they leave a link.

use crate::results::Classes;
use ackline_netsim::{LinkId, Observer, Packet, PacketEvent};
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::sched::SegmentClass;
use std::collections::HashMap;

/// Packets with data, and retransmissions among them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) data: u64,
    pub(crate) again: u64,
}

/// Counts within a window.
#[derive(Debug)]
pub(crate) struct Meter {
    from: Instant,
    until: Instant,
    /// Which links leave a host: packets are counted on the first one only.
    first: Vec<bool>,
    flow_of_port: HashMap<u16, usize>,
    sent: Vec<Sent>,
    /// Bytes of framing of each measured link, and what left it.
    left: Vec<Option<(u32, Classes)>>,
}

impl Meter {
    /// `framing`: of the links, in order, `None` if a link is not measured; `ports`: of the flows.
    pub(crate) fn new(
        from: Instant,
        until: Instant,
        first: Vec<bool>,
        framing: &[Option<u32>],
        ports: &[u16],
    ) -> Self {
        let flow_of_port = ports.iter().enumerate().map(|(flow, port)| (*port, flow)).collect();
        let left = framing.iter().map(|framing| framing.map(|bytes| (bytes, Classes::default()))).collect();
        Self { from, until, first, flow_of_port, sent: vec![Sent::default(); ports.len()], left }
    }

    /// What left a link.
    pub(crate) fn left(&self, link: LinkId) -> Classes {
        self.left.get(link.index()).copied().flatten().map(|(_, classes)| classes).unwrap_or_default()
    }

    fn count(&mut self, link: LinkId, packet: &Packet) {
        let Some(Some((framing, classes))) = self.left.get_mut(link.index()) else { return };
        let amount = match packet.origin.class {
            SegmentClass::Data | SegmentClass::Retransmit => &mut classes.data,
            SegmentClass::PureAck => &mut classes.ack,
            SegmentClass::Control(_) => &mut classes.control,
        };
        amount.packets += 1;
        amount.bytes += u64::from(packet.price) + u64::from(*framing);
    }

    pub(crate) fn sent(&self, flow: usize) -> Sent {
        self.sent.get(flow).copied().unwrap_or_default()
    }
}

impl Observer for Meter {
    fn watches_departures(&self, link: LinkId) -> bool {
        self.left.get(link.index()).is_some_and(Option::is_some)
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        if !(self.from..self.until).contains(&now) {
            return;
        }
        if event == PacketEvent::Left {
            self.count(link, packet);
        }
        if event != PacketEvent::Offered || !self.first.get(link.index()).is_some_and(|first| *first) {
            return;
        }
        let again = packet.origin.class == SegmentClass::Retransmit;
        if !again && packet.origin.class != SegmentClass::Data {
            return;
        }
        let Some(ports) = packet.ports() else { return };
        let flow = ports.iter().find_map(|port| self.flow_of_port.get(port));
        if let Some(sent) = flow.and_then(|flow| self.sent.get_mut(*flow)) {
            sent.data += 1;
            sent.again += u64::from(again);
        }
    }
}
