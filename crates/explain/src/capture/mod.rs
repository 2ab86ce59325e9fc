//! Reads captures as a stream: pcap and pcapng, in either byte order, of any resolution of time.
//!
//! Memory is bounded by the largest packet that the format allows, whatever a file says of itself.
//! A file that ends in the middle of a packet, as one does while it is written, is read up to
//! there.

mod pcap;
mod pcapng;

use std::io::{self, Read};
use thiserror::Error;

/// The largest packet or block that is read, bytes; libpcap's largest snap length is 256 KiB.
const MAX_BLOCK: usize = 16 << 20;

/// A packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When: nanoseconds since 1970, or since the start of a simulation.
    pub at_ns: u64,
    /// What `data` begins with, by the numbers of <https://www.tcpdump.org/linktypes.html>.
    pub link_type: u16,
    /// The interface, as counted in the file.
    pub interface: u32,
    /// True if the capture says that the host sent it, false if it received it.
    pub outbound: Option<bool>,
    /// Length on the wire, bytes.
    pub original: u32,
    /// The captured bytes.
    pub data: &'a [u8],
    /// The packet's comment; empty if there is none.
    pub comment: &'a str,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system's reason.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The first bytes are those of no capture.
    #[error(
        "neither a capture nor a trace: it begins with {begin}; pcap and pcapng are read (tcpdump -w, Wireshark, ackline --pcap), and what ackline --trace writes"
    )]
    Unknown {
        /// The first bytes, in hexadecimal digits, or what they are of.
        begin: String,
    },
    /// A part contradicts the format.
    #[error("byte {offset}: {what}")]
    Damaged {
        /// Where the part begins, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads the packets of one file.
#[derive(Debug)]
pub struct Reader<R> {
    source: Source<R>,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Header),
    PcapNg(pcapng::Section),
}

impl<R: Read> Reader<R> {
    /// Reads the start of a file. Reads are small, so `file` should be buffered.
    ///
    /// # Errors
    /// If the file cannot be read, or is no capture.
    pub fn new(file: R) -> Result<Self, ReadError> {
        let mut source = Source { file, offset: 0, block: vec![], cut: false };
        let mut magic = [0; 4];
        let got = source.fill(&mut magic)?;
        let format = if got == 4 && magic == pcapng::SECTION_HEADER.to_le_bytes() {
            Format::PcapNg(pcapng::Section::read(&mut source)?)
        } else if let Some(header) = pcap::Header::read(&mut source, magic)? {
            Format::Pcap(header)
        } else {
            return Err(ReadError::Unknown { begin: describe(&magic[..got]) });
        };
        Ok(Self { source, format })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or contradicts its format.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ReadError> {
        match &mut self.format {
            Format::Pcap(header) => header.next_frame(&mut self.source),
            Format::PcapNg(section) => section.next_frame(&mut self.source),
        }
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.source.offset
    }

    /// True if the file ended in the middle of a packet.
    #[must_use]
    pub const fn is_cut_short(&self) -> bool {
        self.source.cut
    }

    /// Packets that the capture says it has missed (pcapng's interface statistics).
    #[must_use]
    pub fn missed(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::PcapNg(section) => section.missed(),
        }
    }
}

/// What a file that is no capture seems to be.
fn describe(begin: &[u8]) -> String {
    match begin {
        [] => "nothing (the file is empty)".to_owned(),
        [0x1f, 0x8b, ..] => "gzip's magic number; decompress it first: gunzip FILE".to_owned(),
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd's magic number; decompress it first: zstd -d FILE".to_owned(),
        [0xfd, b'7', b'z', b'X'] => "xz's magic number; decompress it first: unxz FILE".to_owned(),
        other => other.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
    }
}

/// A file that is read from start to end, and the part of it that is looked at.
#[derive(Debug)]
struct Source<R> {
    file: R,
    offset: u64,
    block: Vec<u8>,
    /// The file ended where more was promised.
    cut: bool,
}

impl<R: Read> Source<R> {
    /// Fills `buffer` as far as the file goes, and returns how far.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let mut got = 0;
        while got < buffer.len() {
            match self.file.read(&mut buffer[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += got as u64;
        Ok(got)
    }

    /// The next `N` bytes; `None` at the end of the file, also if it comes before the last of them.
    fn array<const N: usize>(&mut self) -> Result<Option<[u8; N]>, ReadError> {
        let mut bytes = [0; N];
        let got = self.fill(&mut bytes)?;
        self.cut |= got > 0 && got < N;
        Ok((got == N).then_some(bytes))
    }

    /// Reads `length` bytes into `block`; false if the file ends before.
    fn block(&mut self, length: usize) -> Result<bool, ReadError> {
        if length > MAX_BLOCK {
            return Err(self.damaged(format!("a packet of {length} bytes; at most {MAX_BLOCK} are read")));
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(length, 0);
        let got = self.fill(&mut block);
        self.block = block;
        let whole = got? == length;
        self.cut |= !whole;
        Ok(whole)
    }

    fn damaged(&self, what: String) -> ReadError {
        ReadError::Damaged { offset: self.offset, what }
    }
}

/// Numbers in a file's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The number at a place of `bytes`; zero past their end.
    fn u16_at(self, bytes: &[u8], at: usize) -> u16 {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| self.u16(*chunk))
    }

    fn u32_at(self, bytes: &[u8], at: usize) -> u32 {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| self.u32(*chunk))
    }
}
