//! Packets made by hand: a raw IPv4 header, a TCP header, timestamps. Data is left out, as by a
//! snap length.

use ackline_explain::capture::Frame;
use ackline_explain::story::Connection;
use ackline_explain::{Explainer, Story};

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// A packet. Sequence numbers of data count from 0 for the first octet of the stream; so do
/// acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Microseconds.
    pub(crate) at: u64,
    pub(crate) who: Side,
    pub(crate) flags: &'static str,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) length: u16,
    /// Unscaled: no packet here has a scale.
    pub(crate) window: u16,
    /// The timestamp and its echo; zero: none.
    pub(crate) timestamps: (u32, u32),
    /// Of the IPv4 header.
    pub(crate) id: u16,
    pub(crate) ttl: u8,
}

/// The client's first octet has this number, less one; so has the server's.
const START: u32 = 4_294_967_290;
pub(crate) const MSS: u16 = 1_000;

/// `who` sends at `at` us: octets from `seq` on, or an ACK.
pub(crate) const fn packet(at: u64, who: Side, flags: &'static str, seq: u32, length: u16) -> Packet {
    Packet { at, who, flags, seq, ack: 0, length, window: 60_000, timestamps: (0, 0), id: 0, ttl: 64 }
}

/// The client sends octets from `seq` on.
pub(crate) const fn data(at: u64, seq: u32, length: u16) -> Packet {
    packet(at, Side::Client, "A", seq, length)
}

/// The server acknowledges everything before `ack`.
pub(crate) const fn ack(at: u64, ack: u32) -> Packet {
    Packet { ack, ..packet(at, Side::Server, "A", 0, 0) }
}

/// A handshake over a path of 20 ms, captured at the client: until 20.1 ms.
pub(crate) fn handshake() -> Vec<Packet> {
    vec![
        packet(0, Side::Client, "S", 0, 0),
        packet(20_000, Side::Server, "SA", 0, 0),
        packet(20_100, Side::Client, "A", 0, 0),
    ]
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let syn = self.flags.contains('S');
        let mut options = vec![];
        if syn {
            options.extend([2, 4]);
            options.extend(MSS.to_be_bytes());
        }
        if self.timestamps.0 > 0 {
            options.extend([1, 1, 8, 10]);
            options.extend(self.timestamps.0.to_be_bytes());
            options.extend(self.timestamps.1.to_be_bytes());
        }
        let header = 20 + options.len() as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend((20 + header + self.length).to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend([0x40, 0, self.ttl, 6, 0, 0]);
        let (client, server) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let (client_port, server_port) = (4_000_u16.to_be_bytes(), 80_u16.to_be_bytes());
        let (addresses, ports) = match self.who {
            Side::Client => ([client, server], [client_port, server_port]),
            Side::Server => ([server, client], [server_port, client_port]),
        };
        bytes.extend(addresses.concat());
        bytes.extend(ports.concat());
        let number = |position: u32| START.wrapping_add(1).wrapping_add(position);
        let seq = if syn { START } else { number(self.seq) };
        let has_ack = self.flags.contains('A');
        let ack = if has_ack { number(self.ack) } else { 0 };
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        let flags = self.flags.chars().map(|flag| match flag {
            'F' => 1_u8,
            'S' => 2,
            'R' => 4,
            'P' => 8,
            _ => 16,
        });
        bytes.extend([(header as u8 / 4) << 4, flags.sum()]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        bytes
    }
}

pub(crate) fn story(packets: &[Packet]) -> Story {
    let mut explainer = Explainer::default();
    for packet in packets {
        let data = packet.bytes();
        explainer.packet(&Frame {
            at_ns: 1_000_000_000 + packet.at * 1_000,
            link_type: 101,
            interface: 0,
            outbound: None,
            original: data.len() as u32 + u32::from(packet.length),
            data: &data,
            comment: "",
        });
    }
    explainer.finish()
}

/// The only connection.
pub(crate) fn told(packets: &[Packet]) -> Connection {
    let connections = story(packets).connections;
    let [connection] = <[Connection; 1]>::try_from(connections).expect("one connection");
    connection
}
