//! Dialogues with other hosts in virtual time.

use super::*;
use message::{Advertisement, Arp, Solicitation, parse};
use std::net::{Ipv4Addr, Ipv6Addr};

mod arp;
mod choosing;
mod claims;
mod discovery;
mod failing;
mod hostile;
mod queueing;

const OUR_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PEER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const OTHER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);

const OURS: IpAddr = v4(1);
const PEER: IpAddr = v4(2);
const GATEWAY: IpAddr = v4(254);
/// Behind the gateway.
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

const OURS_V6: IpAddr = v6(1);
const PEER_V6: IpAddr = v6(2);

const fn v4(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, host))
}

const fn v6(host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host))
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// A host with an address of each version and an IPv4 gateway.
fn attachment() -> Attachment {
    Attachment::new(OUR_MAC)
        .address(IpNet::new(OURS, 24).expect("a prefix length"))
        .address(IpNet::new(OURS_V6, 64).expect("a prefix length"))
        .gateway(GATEWAY)
}

/// The frame with a good ICMPv6 checksum, computed apart from smoltcp: RFC 4443, section 2.3.
fn checksummed(mut frame: Vec<u8>) -> Vec<u8> {
    frame[56..58].fill(0);
    let mut sum: u64 = u64::from(frame.len() as u16 - 54) + 58;
    for pair in frame[22..].chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[56..58].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame
}

/// The machine with what it sent.
struct Bench {
    machine: Neighbours,
}

impl Bench {
    /// Its addresses are claimed at time 0, without probes or announcements.
    fn new() -> Self {
        Self::with(NeighbourConfig::default())
    }

    fn with(mut config: NeighbourConfig) -> Self {
        config.claim.probes = 0;
        config.claim.announcements = 0;
        let mut bench = Self::unclaimed(config);
        bench.machine.claim(ms(0));
        assert_eq!(bench.events(), [Event::Claimed { ip: OURS }, Event::Claimed { ip: OURS_V6 }]);
        bench
    }

    fn unclaimed(config: NeighbourConfig) -> Self {
        let machine = Neighbours::new(attachment(), config, [7; 32]).expect("the addresses are good");
        Self { machine }
    }

    /// Another host's message arrives.
    fn hear(&mut self, now: Instant, from: MacAddress, message: Outgoing) {
        assert!(self.machine.ingest(now, &message.frame(from)), "{message:?} is neighbour resolution");
    }

    /// What the machine sent, as another host reads it.
    fn sent(&mut self) -> Vec<(MacAddress, Incoming)> {
        let mut sent = Vec::new();
        while let Some(frame) = self.machine.poll_transmit() {
            let to = MacAddress(*frame.first_chunk().expect("a destination"));
            let read = parse(&frame).expect("a valid message").expect("neighbour resolution");
            sent.push((to, read));
        }
        sent
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.machine.poll_event()).collect()
    }

    /// Time passes until `end`, deadline by deadline; what was sent when.
    fn run_until(&mut self, end: Instant) -> Vec<(u64, MacAddress, Incoming)> {
        let mut sent = Vec::new();
        while let Some(at) = self.machine.poll_timeout().filter(|at| *at <= end) {
            self.machine.handle_timeout(at);
            sent.extend(self.sent().into_iter().map(|(to, message)| (at.as_millis(), to, message)));
        }
        sent
    }

    /// The neighbour is known and reachable at `now`.
    fn resolved(&mut self, now: Instant, ip: IpAddr, own: IpAddr, mac: MacAddress) {
        assert_eq!(self.machine.resolve(now, ip), NextHop::Pending(ip));
        assert_eq!(self.sent().len(), 1);
        self.hear(now, mac, Outgoing::Reply { own: ip, to: own, mac: OUR_MAC });
        assert_eq!(self.events(), [Event::Resolved { ip, mac }]);
    }

    fn state(&self, ip: IpAddr) -> Option<NeighbourState> {
        let slot = self.machine.table.find(ip)?;
        self.machine.table.get(slot).map(|entry| entry.state)
    }
}
