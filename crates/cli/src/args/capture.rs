//! The options of live captures, named after tcpdump's and dumpcap's, and of traces.

use super::values;
use clap::{Args, ValueEnum};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// Most files of a rotation.
const MAX_FILES: u32 = 99_999;

/// Where packets are captured, and how much of them; where what happens inside connections is
/// traced.
#[derive(Args, Clone)]
#[command(next_help_heading = "Capture and trace")]
pub(crate) struct CaptureArgs {
    /// Capture the packets of the device as pcapng, with a comment on each that says why it was
    /// sent
    ///
    /// Wireshark and tshark show the comments (frame.comment), times in nanoseconds and directions.
    /// A thread of its own writes the file. A transfer never waits for it: packets that the disk is
    /// too slow for are missing in the file, which says so. If the file cannot be written to its
    /// end, the transfer goes on and keeps its exit status; a warning says what is missing.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Bytes to capture of each packet, as tcpdump -s; 0 is all [default: 0]
    ///
    /// The original length stays in the file. 128 keeps the headers of TCP over IPv6 with all
    /// options.
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pub(crate) pcap_snaplen: Option<u32>,
    /// Write super-packets as the packets that they become on the wire
    ///
    /// Otherwise they stand in the file as the device gets them, of up to 64 KiB.
    #[arg(long, requires = "pcap")]
    pub(crate) pcap_split: bool,
    /// What packets begin with [default: ethernet on an Ethernet (--dev, --socket), raw on a TUN
    /// device]
    #[arg(long, value_name = "HEADER", requires = "pcap", value_enum)]
    pub(crate) pcap_link: Option<PcapLink>,
    /// Largest file: 100M, 1G. The capture ends there, or goes on in the next file with
    /// --pcap-files
    #[arg(long, value_name = "SIZE", requires = "pcap", value_parser = file_size)]
    pub(crate) pcap_size: Option<NonZeroU64>,
    /// Keep the last N files of --pcap-size, as dumpcap -b files:N; FILE is numbered, as in
    /// out_00001.pcapng
    #[arg(long, value_name = "N", requires = "pcap_size", value_parser = files)]
    pub(crate) pcap_files: Option<NonZeroU32>,
    /// Memory for packets that wait to be written, as dumpcap -B [default: 32M]
    #[arg(long, value_name = "SIZE", requires = "pcap", value_parser = buffer)]
    pub(crate) pcap_buffer: Option<usize>,
    /// Trace what happens inside connections as JSON: segments, congestion state, losses, timeouts
    ///
    /// A sequence of JSON texts (RFC 7464) in the container of qlog. A thread of its own writes it,
    /// and a transfer never waits for it, as with --pcap. docs/traces.md lists the events.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Largest trace: 100M, 1G. It ends there
    #[arg(long, value_name = "SIZE", requires = "trace", value_parser = file_size)]
    pub(crate) trace_size: Option<NonZeroU64>,
    /// Memory for events that wait to be written [default: 32M]
    #[arg(long, value_name = "SIZE", requires = "trace", value_parser = buffer)]
    pub(crate) trace_buffer: Option<usize>,
}

/// What packets in a capture begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PcapLink {
    /// The IP header
    Raw,
    /// The Ethernet header
    Ethernet,
}

/// Room for the headers of a file and a packet.
fn file_size(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(values::size(text)?)
        .filter(|size| size.get() >= 4096)
        .ok_or_else(|| "must be at least 4096 bytes".to_owned())
}

fn files(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .ok()
        .filter(|count: &NonZeroU32| count.get() <= MAX_FILES)
        .ok_or_else(|| format!("not a number of files; write 1 to {MAX_FILES}"))
}

/// Room for a super-packet, at least.
fn buffer(text: &str) -> Result<usize, String> {
    let size = values::size(text)?;
    usize::try_from(size)
        .ok()
        .filter(|_| (128 << 10..=16 << 30).contains(&size))
        .ok_or_else(|| "must be from 128K to 16G".to_owned())
}
