//! Captures as pcapng files (draft-ietf-opsawg-pcapng): raw IP packets, nanoseconds, and a comment
//! on each packet that says why it was sent, if a host of the simulation has sent it, and, if it
//! was dropped, why.
//!
//! Each capture point is an interface of the file from its first packet on, or two if it sees IPv4
//! and IPv6. The link types are LINKTYPE_IPV4 and LINKTYPE_IPV6, because libpcap 1.10 refuses a
//! second interface of LINKTYPE_RAW.
//!
//! What timeouts, and ACKs after them, do to a connection stands in the comment of the ACK where it
//! is captured as it is delivered, and otherwise in that of the next packet that the connection
//! sends.
//!
//! ```text
//!   Section Header │ Interface Description (before its first packet), Enhanced Packet ...
//! ```

use crate::observe::{Observer, PacketEvent};
use crate::packet::Packet;
use crate::topology::{LinkId, NodeId};
use ackline_observe::labels;
use ackline_observe::pcapng::{self, Blocks, LinkType};
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::{ConnId, Instant};
use std::fmt;
use std::io::{self, Write};
use std::num::NonZeroU32;

/// Where on a link to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before the queue: what comes to the link, also what is dropped there.
    Offered,
    /// When the last bit has left the sending end, before impairments.
    Left,
    /// At the other end.
    Delivered,
    /// What is dropped on the link, when it is dropped.
    Dropped,
}

impl Point {
    const fn name(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Left => "left",
            Self::Delivered => "delivered",
            Self::Dropped => "dropped",
        }
    }

    const fn sees(self, event: PacketEvent) -> bool {
        matches!(
            (self, event),
            (Self::Offered, PacketEvent::Offered)
                | (Self::Left, PacketEvent::Left)
                | (Self::Delivered, PacketEvent::Delivered)
                | (Self::Dropped, PacketEvent::Dropped(_))
        )
    }
}

/// One capture point, which becomes an interface of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePoint {
    /// The link.
    pub link: LinkId,
    /// Where on it.
    pub point: Point,
    /// The interface's name; the point is appended.
    pub name: String,
}

impl CapturePoint {
    /// Each packet of a link once: as its last bit leaves, or as it is dropped before; and again if
    /// it is lost afterwards.
    #[must_use]
    pub fn of_link(link: LinkId, name: &str) -> [Self; 2] {
        [Point::Left, Point::Dropped].map(|point| Self { link, point, name: name.to_owned() })
    }
}

/// Writes what passes some points of a network to a file. While it watches, hosts compute
/// checksums.
pub struct Capture<W> {
    file: W,
    points: Vec<CapturePoint>,
    /// The interfaces in the file: place of the point, link type.
    interfaces: Vec<(usize, LinkType)>,
    snap_length: Option<u32>,
    /// What the file states for the simulation's zero, ns.
    start_ns: u64,
    packets: u64,
    error: Option<io::Error>,
    blocks: Blocks,
    /// What connections did and no comment says yet.
    notes: Vec<Note>,
}

/// Something that a connection did.
#[derive(Debug)]
struct Note {
    at: Instant,
    node: NodeId,
    conn: ConnId,
    text: String,
}

/// Notes that wait for a packet; of a connection that sends no more none is wanted.
const MAX_NOTES: usize = 10_000;

impl<W> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, packets, error, .. } = self;
        f.debug_struct("Capture")
            .field("points", points)
            .field("packets", packets)
            .field("error", error)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Capture<W> {
    /// Begins a file that captures at `points`: of each packet the first `snap_length` bytes, or
    /// all of it. The file states every packet's original length.
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(file: W, points: Vec<CapturePoint>, snap_length: Option<NonZeroU32>) -> io::Result<Self> {
        let snap_length = snap_length.map(NonZeroU32::get);
        let mut capture = Self {
            file,
            points,
            interfaces: vec![],
            snap_length,
            start_ns: 0,
            packets: 0,
            error: None,
            blocks: Blocks::default(),
            notes: vec![],
        };
        capture.blocks.section("");
        capture.write_blocks()?;
        Ok(capture)
    }

    /// The simulation's zero is `start_ns` nanoseconds after 1970, for a simulation in real time.
    /// By default it is 1970 itself.
    #[must_use]
    pub fn starting_at(self, start_ns: u64) -> Self {
        Self { start_ns, ..self }
    }

    /// Packets written.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error since it was begun.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.file.flush()?;
        Ok(self.file)
    }

    /// What this packet did to the connection that took it in, or what its sender did before.
    fn take_notes(&mut self, now: Instant, event: PacketEvent, packet: &Packet) -> Vec<Note> {
        let delivered = event == PacketEvent::Delivered;
        let wanted = |note: &mut Note| {
            let by_sender = packet.from == Some(note.node) && packet.origin.conn == Some(note.conn);
            by_sender || (delivered && packet.to == Some(note.node) && note.at == now)
        };
        self.notes.extract_if(.., wanted).collect()
    }

    fn write_blocks(&mut self) -> io::Result<()> {
        self.file.write_all(self.blocks.as_bytes())?;
        self.blocks.clear();
        Ok(())
    }

    /// The number of the interface for packets like this at a point, which is described in the file
    /// if it is new.
    fn interface(&mut self, point: usize, packet: &Packet) -> io::Result<u32> {
        let is_ipv6 = packet.is_ipv6();
        let key = (point, if is_ipv6 { LinkType::Ipv6 } else { LinkType::Ipv4 });
        if let Some(known) = self.interfaces.iter().position(|interface| *interface == key) {
            return Ok(known as u32);
        }
        let CapturePoint { point, name, .. } = &self.points[point];
        let name = format!("{name} ({})", point.name());
        self.blocks.interface(&name, key.1, self.snap_length);
        self.interfaces.push(key);
        Ok(self.interfaces.len() as u32 - 1)
    }

    fn write_packet(&mut self, now: Instant, point: usize, packet: &Packet, comment: &str) -> io::Result<()> {
        let interface = self.interface(point, packet)?;
        let octets = packet.octets();
        let original = octets.len() as u32;
        let captured = self.snap_length.map_or(original, |most| original.min(most));
        self.blocks.packet(&pcapng::Packet {
            interface,
            at_ns: self.start_ns.saturating_add(now.as_nanos()),
            original,
            data: &octets[..captured as usize],
            direction: None,
            comment,
        });
        self.write_blocks()
    }
}

impl<W: Write + Send + 'static> Observer for Capture<W> {
    fn needs_checksums(&self) -> bool {
        true
    }

    fn needs_traces(&self) -> bool {
        true
    }

    fn trace(&mut self, now: Instant, node: NodeId, conn: ConnId, event: &TraceEvent) {
        if let Some(text) = labels::trace_event(event)
            && self.notes.len() < MAX_NOTES
        {
            self.notes.push(Note { at: now, node, conn, text });
        }
    }

    fn packet(&mut self, now: Instant, link: LinkId, event: PacketEvent, packet: &Packet) {
        if self.error.is_some() {
            return;
        }
        for index in 0..self.points.len() {
            let point = &self.points[index];
            if point.link != link || !point.point.sees(event) {
                continue;
            }
            let mut comment = comment(event, packet);
            for note in self.take_notes(now, event, packet) {
                comment += "; ";
                comment += &note.text;
            }
            let written = self.write_packet(now, index, packet, &comment);
            match written {
                Ok(()) => self.packets += 1,
                Err(error) => self.error = Some(error),
            }
        }
    }
}

fn comment(event: PacketEvent, packet: &Packet) -> String {
    let origin = &packet.origin;
    let class = labels::segment_class(origin.class);
    let mut text = match event {
        PacketEvent::Dropped(why) => format!("dropped: {}; ", why.as_str()),
        _ => String::new(),
    };
    if let Some(reason) = origin.reason {
        text += &format!("sent: {}; ", labels::send_reason(reason));
    }
    text += &format!("class: {class}; packet: {}", packet.number);
    if let Some(conn) = origin.conn {
        text += &format!("; connection: {}", conn.index());
    }
    text
}
