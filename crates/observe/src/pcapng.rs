//! The format pcapng (draft-ietf-opsawg-pcapng): blocks with time stamps in nanoseconds and
//! comments.
//!
//! ```text
//!   Section Header │ Interface Description (before its first packet), Enhanced Packet ... │ Interface Statistics
//! ```

/// What a packet of an interface begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An IPv4 or IPv6 header. libpcap 1.10 refuses a file with two such interfaces.
    Raw,
    /// An IPv4 header.
    Ipv4,
    /// An IPv6 header.
    Ipv6,
    /// An Ethernet header.
    Ethernet,
}

impl LinkType {
    /// The number of <https://www.tcpdump.org/linktypes.html>.
    const fn code(self) -> u16 {
        match self {
            Self::Raw => 101,
            Self::Ipv4 => 228,
            Self::Ipv6 => 229,
            Self::Ethernet => 1,
        }
    }
}

/// Direction in which a packet passed its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the host.
    Inbound,
    /// Out of it.
    Outbound,
}

/// A packet for [`Blocks::packet`].
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its interface, as counted from 0 in the section.
    pub interface: u32,
    /// When it passed the interface: nanoseconds since 1970, or since the start of a simulation.
    pub at_ns: u64,
    /// Its length on the wire.
    pub original: u32,
    /// The captured bytes: the packet, or its start.
    pub data: &'a [u8],
    /// Its direction, if the interface is a host's.
    pub direction: Option<Direction>,
    /// What is to be said of it; empty if nothing.
    pub comment: &'a str,
}

/// What an interface counted, for [`Blocks::statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that passed the interface.
    pub received: u64,
    /// Packets among them that are not in the file.
    pub dropped: u64,
}

/// Block types.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Options of all blocks, and of each kind.
const COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
/// An option's length has 16 bits.
const MAX_OPTION: usize = 65_532;

/// Blocks of a file, one after the other, in memory.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    bytes: Vec<u8>,
    /// Where the last block begins.
    start: usize,
}

impl Blocks {
    /// The blocks.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of all blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there is no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Where the last block begins, in bytes from the start of the first.
    #[must_use]
    pub const fn last(&self) -> usize {
        self.start
    }

    /// Forgets all blocks, but keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// Forgets the last block.
    pub fn remove_last(&mut self) {
        self.bytes.truncate(self.start);
    }

    /// The header of a section, with which a file begins. It names this version of ackline as the
    /// program.
    pub fn section(&mut self, comment: &str) {
        self.begin(SECTION_HEADER);
        // Byte order, version 1.0, and a section of unknown length.
        self.bytes.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        self.bytes.extend_from_slice(&[1, 0, 0, 0]);
        self.bytes.extend_from_slice(&u64::MAX.to_le_bytes());
        self.comment(comment);
        self.option(SHB_USERAPPL, concat!("ackline ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.end();
    }

    /// An interface, of whose packets the first `snap_length` bytes are captured; `None` if all
    /// are.
    pub fn interface(&mut self, name: &str, link_type: LinkType, snap_length: Option<u32>) {
        self.begin(INTERFACE_DESCRIPTION);
        self.bytes.extend_from_slice(&link_type.code().to_le_bytes());
        self.bytes.extend_from_slice(&[0; 2]);
        // 0: no limit of the captured length.
        self.bytes.extend_from_slice(&snap_length.unwrap_or(0).to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        // 10^-9 s.
        self.option(IF_TSRESOL, &[9]);
        self.end();
    }

    /// A packet.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        self.begin(ENHANCED_PACKET);
        self.bytes.extend_from_slice(&packet.interface.to_le_bytes());
        self.time(packet.at_ns);
        self.bytes.extend_from_slice(&(packet.data.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&packet.original.to_le_bytes());
        self.bytes.extend_from_slice(packet.data);
        self.pad();
        if let Some(direction) = packet.direction {
            let flags: u32 = match direction {
                Direction::Inbound => 1,
                Direction::Outbound => 2,
            };
            self.option(EPB_FLAGS, &flags.to_le_bytes());
        }
        self.comment(packet.comment);
        self.end();
    }

    /// What an interface has counted until `at_ns`.
    pub fn statistics(&mut self, interface: u32, at_ns: u64, counted: Statistics, comment: &str) {
        self.begin(INTERFACE_STATISTICS);
        self.bytes.extend_from_slice(&interface.to_le_bytes());
        self.time(at_ns);
        self.comment(comment);
        self.option(ISB_IFRECV, &counted.received.to_le_bytes());
        self.option(ISB_IFDROP, &counted.dropped.to_le_bytes());
        self.end();
    }

    fn begin(&mut self, kind: u32) {
        self.start = self.bytes.len();
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        // The length, when it is known.
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn time(&mut self, at_ns: u64) {
        self.bytes.extend_from_slice(&((at_ns >> 32) as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(at_ns as u32).to_le_bytes());
    }

    /// Every block has a multiple of four bytes, so this one's padding is that of all.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(MAX_OPTION)];
        self.bytes.extend_from_slice(&code.to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.pad();
    }

    fn comment(&mut self, comment: &str) {
        if !comment.is_empty() {
            self.option(COMMENT, comment.as_bytes());
        }
    }

    /// Ends the options and the block, which states its length at both ends.
    fn end(&mut self) {
        self.bytes.extend_from_slice(&[0; 4]);
        let length = (self.bytes.len() - self.start + 4) as u32;
        self.bytes[self.start + 4..self.start + 8].copy_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
    }
}
