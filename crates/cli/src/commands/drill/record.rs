//! `--record`: a script from a capture.

use crate::failure::{Exit, Failure};
use crate::output;
use ackline_drill::{CapturedPacket, record};
use ackline_explain::Reader;
use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::Path;

pub(super) fn run(capture: &Path, end: Option<SocketAddr>) -> Result<(), Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::new(Exit::File, format!("{}: {error}", capture.display()));
    let file = File::open(capture).map_err(|error| Failure::file("read", capture.display(), &error))?;
    let mut reader = Reader::new(BufReader::new(file)).map_err(|error| unreadable(&error))?;
    let mut packets = vec![];
    while let Some(frame) = reader.next_frame().map_err(|error| unreadable(&error))? {
        if let Some(packet) = ip_packet(frame.link_type, frame.data) {
            packets.push(CapturedPacket { at_ns: frame.at_ns, octets: packet.to_vec() });
        }
    }
    let script = record(&packets, end).map_err(|error| unreadable(&error))?;
    output::print(&script)
}

/// The IP packet in a frame, by the numbers of <https://www.tcpdump.org/linktypes.html>.
fn ip_packet(link_type: u16, data: &[u8]) -> Option<&[u8]> {
    match link_type {
        // Ethernet, with any number of VLAN tags.
        1 => {
            let mut at = 12;
            while matches!(data.get(at..at + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
                at += 4;
            }
            matches!(data.get(at..at + 2)?, [0x08, 0x00] | [0x86, 0xdd]).then(|| data.get(at + 2..))?
        }
        // Raw IP.
        12 | 101 | 228 | 229 => Some(data),
        // tcpdump -i any, in its two versions.
        113 => data.get(16..),
        276 => data.get(20..),
        _ => None,
    }
}
