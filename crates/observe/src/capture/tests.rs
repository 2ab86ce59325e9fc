//! Captures, read by programs that are not ours.

use super::record::PacketRecord;
use super::*;
use crate::background::meter::RecordCounts;
use crate::background::queue::{Batch, Queue};
use crate::background::{Sink as _, run};
use crate::pcapng::Direction;
use ackline_tcp_core::config::EndpointConfig;
use ackline_tcp_core::packet::TxPacket;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{RxChecksum, RxPacket, TxChecksum};
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Endpoint, Instant, ListenOn, Target, TxBudget};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

mod cut;
mod departures;
mod notes;

const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
const HERE: [u8; 4] = [10, 0, 0, 1];
const THERE: [u8; 4] = [10, 0, 0, 2];

#[derive(Debug)]
struct CapturedPacket {
    at_ns: u128,
    flags: u32,
    original: u32,
    data: Vec<u8>,
    comment: String,
}

impl CapturedPacket {
    /// The payload's length, after the checksums were found right.
    fn verified(&self) -> usize {
        let sliced = SlicedPacket::from_ip(&self.data).expect("well-formed");
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("{sliced:?}") };
        match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header().to_header();
                assert_eq!(header.calc_header_checksum(), header.header_checksum);
                assert_eq!(tcp.calc_checksum_ipv4(header.source, header.destination), Ok(tcp.checksum()));
            }
            other => panic!("{other:?}"),
        }
        tcp.payload().len()
    }
}

/// What a file holds.
#[derive(Debug, Default)]
struct Contents {
    link: Option<DataLink>,
    section: Option<String>,
    packets: Vec<CapturedPacket>,
    /// Received, dropped and the comment of the last block.
    end: Option<(u64, u64, Option<String>)>,
}

fn read(path: &Path) -> Contents {
    let file = std::fs::read(path).expect("a file");
    let mut reader = PcapNgReader::new(&file[..]).expect("pcapng");
    let mut contents = Contents {
        section: reader.section().options.iter().find_map(|option| match option {
            SectionHeaderOption::Comment(comment) => Some(comment.to_string()),
            _ => None,
        }),
        ..Contents::default()
    };
    while let Some(block) = reader.next_block() {
        assert!(contents.end.is_none(), "statistics are the last block");
        match block.expect("whole blocks") {
            Block::InterfaceDescription(interface) => contents.link = Some(interface.linktype),
            Block::EnhancedPacket(packet) => {
                let mut captured = CapturedPacket {
                    at_ns: packet.timestamp.as_nanos(),
                    flags: 0,
                    original: packet.original_len,
                    data: packet.data.to_vec(),
                    comment: String::new(),
                };
                for option in &packet.options {
                    match option {
                        EnhancedPacketOption::Comment(comment) => captured.comment = comment.to_string(),
                        EnhancedPacketOption::Flags(flags) => captured.flags = *flags,
                        other => panic!("{other:?}"),
                    }
                }
                contents.packets.push(captured);
            }
            Block::InterfaceStatistics(statistics) => {
                let mut end = (0, 0, None);
                for option in &statistics.options {
                    match option {
                        InterfaceStatisticsOption::IsbIfRecv(count) => end.0 = *count,
                        InterfaceStatisticsOption::IsbIfDrop(count) => end.1 = *count,
                        InterfaceStatisticsOption::Comment(comment) => end.2 = Some(comment.to_string()),
                        other => panic!("{other:?}"),
                    }
                }
                contents.end = Some(end);
            }
            other => panic!("{other:?}"),
        }
    }
    contents
}

/// A packet on its way, with what its sender's device was to do.
struct PacketInFlight {
    bytes: Vec<u8>,
    segment_size: Option<std::num::NonZeroU16>,
    complete: bool,
}

/// Two hosts whose devices segment and complete checksums; the first one's is captured.
struct Hosts {
    here: Endpoint,
    there: Endpoint,
    now: Instant,
    observer: Box<dyn PacketObserver>,
    /// Drops the packet with this number of those that the first host sends.
    lose: Option<usize>,
    sent: usize,
}

impl Hosts {
    fn new(capture: &Capture, offload: bool) -> Self {
        let host = |address: [u8; 4]| {
            let mut config = EndpointConfig::default();
            config.addresses = vec![address.into()];
            if offload {
                config.max_super_packet = 65_535;
                config.tx_checksum = ackline_tcp_core::wire::TxChecksumMode::Partial;
            }
            Endpoint::new(config, Box::new(Fifo::default()), [7; 32])
        };
        let mut here = host(HERE);
        here.set_tracer(Some(capture.tracer()));
        let now = Instant::from_millis(1);
        Self { here, there: host(THERE), now, observer: capture.observer(), lose: None, sent: 0 }
    }

    /// Exchanges packets until there are none, and takes 1 ms for each flight.
    fn settle(&mut self) {
        loop {
            let mut out = VecDeque::new();
            let Self { here, observer, now, lose, sent, .. } = self;
            let done = here.transmit(*now, TxBudget::UNLIMITED, |packet| {
                observer.sent(*now, &[], &packet);
                if *lose != Some(*sent) {
                    out.push_back(flying(&packet));
                }
                *sent += 1;
                Ok::<_, Infallible>(())
            });
            assert!(done.is_ok());
            self.now += Duration::from_millis(1);
            for packet in &out {
                self.there.ingest(self.now, packet.arrived());
            }
            let mut back = VecDeque::new();
            let done = self.there.transmit(self.now, TxBudget::UNLIMITED, |packet| {
                back.push_back(flying(&packet));
                Ok::<_, Infallible>(())
            });
            assert!(done.is_ok());
            for packet in &back {
                self.observer.received(self.now, &[], &packet.arrived());
                self.here.ingest(self.now, packet.arrived());
            }
            while self.here.poll_event().is_some() || self.there.poll_event().is_some() {}
            if out.is_empty() && back.is_empty() {
                return;
            }
        }
    }

    /// Connects and writes `bytes`.
    fn send(&mut self, bytes: usize) -> ConnId {
        let config = Arc::new(ConnConfig::default());
        self.there
            .listen(self.now, ListenOn::Port(80), ackline_tcp_core::AcceptConfig::new(config.clone()))
            .expect("listens");
        let target = Target::new(std::net::SocketAddr::from((THERE, 80)));
        let id = self.here.connect(self.now, target, config).expect("connects");
        self.settle();
        let written = self.here.conn(id).expect("alive").write(self.now, &vec![0x5a; bytes]);
        assert_eq!(written, Ok(bytes));
        self.settle();
        id
    }

    /// Lets the first host's next timer fire.
    fn expire(&mut self) {
        let wakeup = self.here.poll_timeout().expect("a timer");
        self.now = self.now.max(wakeup.at);
        self.here.handle_timeout(self.now);
        self.settle();
    }
}

fn flying(packet: &TxPacket<'_>) -> PacketInFlight {
    let [first, second] = packet.payload;
    PacketInFlight {
        bytes: [packet.header, first, second].concat(),
        segment_size: packet.segment_size,
        complete: packet.checksum == TxChecksum::Complete,
    }
}

impl PacketInFlight {
    fn arrived(&self) -> RxPacket<'_> {
        let checksum = if self.complete { RxChecksum::Verify } else { RxChecksum::Partial };
        RxPacket::new(&self.bytes).with_segment_size(self.segment_size).with_checksum(checksum)
    }
}

/// The path of a capture in a folder of its own, and its options.
fn place() -> (tempfile::TempDir, PathBuf, CaptureOptions) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.pcapng");
    (folder, path, CaptureOptions::new("ack0", EPOCH_NS))
}

#[test]
fn packets_stand_in_the_file_with_time_direction_and_reason() {
    let (_folder, path, mut options) = place();
    options.comment = "policies: built in".to_owned();
    let capture = Capture::start(&path, options).expect("started");
    Hosts::new(&capture, true).send(20_000);
    let summary = capture.finish();
    let contents = read(&path);
    assert_eq!(contents.section.as_deref(), Some("policies: built in"));
    assert_eq!(contents.link, Some(DataLink::RAW));
    assert_eq!(contents.packets.len() as u64, summary.packets);
    assert_eq!(contents.end, Some((summary.packets, 0, None)));
    assert!(summary.cut_short.is_none());
    let [syn, syn_ack, ..] = &contents.packets[..] else { panic!("{contents:?}") };
    assert_eq!(syn.at_ns, u128::from(EPOCH_NS) + 1_000_000);
    assert_eq!((syn.flags, &*syn.comment), (2, "sent: syn; class: syn; connection: 0"));
    assert_eq!((syn_ack.at_ns - syn.at_ns, syn_ack.flags, &*syn_ack.comment), (1_000_000, 1, ""));
    let data: Vec<_> = contents.packets.iter().filter(|packet| packet.verified() > 0).collect();
    assert_eq!(data.iter().map(|packet| packet.verified()).sum::<usize>(), 20_000);
    assert!(data[0].verified() > 1460, "a super-packet, whose checksum the device was to complete");
    let comment = &data[0].comment;
    assert!(comment.starts_with("sent: new-data; class: data; connection: 0; super-packet: "), "{comment}");
}

#[test]
fn super_packets_can_be_split_as_on_the_wire() {
    let (_folder, path, mut options) = place();
    options.split = true;
    let capture = Capture::start(&path, options).expect("started");
    Hosts::new(&capture, true).send(20_000);
    let summary = capture.finish();
    let contents = read(&path);
    assert_eq!(contents.packets.len() as u64, summary.packets);
    let lengths: Vec<_> = contents.packets.iter().map(CapturedPacket::verified).collect();
    assert_eq!(lengths.iter().sum::<usize>(), 20_000);
    assert!(lengths.iter().all(|length| *length <= 1460), "{lengths:?}");
    let first = contents.packets.iter().find(|packet| packet.verified() > 0).expect("data");
    assert!(first.comment.contains("; segment 1 of "), "{}", first.comment);
}

#[test]
fn what_is_cut_keeps_its_length() {
    for split in [false, true] {
        let (_folder, path, mut options) = place();
        options.snap_length = NonZeroU32::new(60);
        options.split = split;
        let capture = Capture::start(&path, options).expect("started");
        Hosts::new(&capture, true).send(20_000);
        drop(capture);
        let contents = read(&path);
        let payload =
            |packet: &CapturedPacket| packet.original as usize - usize::min(packet.original as usize, 52);
        assert!(contents.packets.iter().all(|packet| packet.data.len() <= 60));
        let data: usize = contents.packets.iter().filter(|packet| packet.flags == 2).map(payload).sum();
        assert!(data >= 20_000, "{data}");
    }
}

#[test]
fn a_loss_and_a_timeout_are_told_where_they_show() {
    let (_folder, path, options) = place();
    let capture = Capture::start(&path, options).expect("started");
    let mut hosts = Hosts::new(&capture, false);
    let id = hosts.send(1_000);
    // The first of several segments: RACK finds it lost.
    hosts.lose = Some(hosts.sent);
    assert_eq!(hosts.here.conn(id).expect("alive").write(hosts.now, &[1; 10_000]), Ok(10_000));
    hosts.settle();
    hosts.expire();
    // A lone one: neither a probe nor an ACK tells of it.
    for _ in 0..2 {
        hosts.lose = Some(hosts.sent);
        if hosts.here.conn(id).expect("alive").info().unacked == 0 {
            assert_eq!(hosts.here.conn(id).expect("alive").write(hosts.now, &[2; 100]), Ok(100));
            hosts.settle();
        } else {
            hosts.expire();
        }
    }
    hosts.expire();
    drop(capture);
    let contents = read(&path);
    let comments: Vec<_> = contents.packets.iter().map(|packet| (packet.flags, &*packet.comment)).collect();
    let any = |flags, text: &str| comments.iter().any(|(of, comment)| *of == flags && comment.contains(text));
    assert!(any(2, "sent: fast-retransmit; class: retransmit"), "{comments:#?}");
    assert!(any(1, "lost: ") || any(2, "lost by the reordering timer: "), "{comments:#?}");
    assert!(any(2, "sent: tail-loss-probe"), "{comments:#?}");
    assert!(any(2, "sent: rto-retransmit") && any(2, "timeout 1, the next after"), "{comments:#?}");
}

/// A packet of `length` bytes that is nothing.
fn blob(length: usize) -> Vec<u8> {
    vec![0; length]
}

fn record(length: usize) -> Record {
    Record::Packet(PacketRecord {
        at: Instant::from_millis(1),
        direction: Direction::Inbound,
        link: 0,
        original: length as u32,
        snap_length: u32::MAX,
        incomplete_checksum: false,
        segment_size: None,
        split: None,
        sent: None,
    })
}

/// A packet arrives at the queue.
fn arrive(queue: &Queue<Record>, length: usize) {
    queue.push(record(length), 1, length, |bytes| bytes.extend(blob(length)));
}

#[test]
fn a_full_queue_takes_no_more_and_the_file_says_so() {
    // Before the thread runs, so that what fits does not depend on it.
    let (_folder, path, options) = place();
    let queue = Queue::new(64 << 10);
    for _ in 0..100 {
        arrive(&queue, 10_000);
    }
    queue.close();
    arrive(&queue, 10);
    assert_eq!(
        queue.meter().read(),
        RecordCounts { dropped: 94, ..RecordCounts::default() },
        "before the file knows"
    );
    let summary = run(Writer::new(Files::create(path.clone(), options).expect("created"), 0), &queue);
    assert_eq!((summary.packets, summary.dropped, summary.unwritten), (6, 94, 0));
    assert_eq!(queue.meter().read(), RecordCounts { written: 6, dropped: 94, unwritten: 0 });
    let contents = read(&path);
    assert_eq!(contents.packets.len(), 6);
    let said = "94 packets are missing: the capture's queue was full";
    assert_eq!(contents.end, Some((100, 94, Some(said.to_owned()))));
}

#[test]
fn what_is_being_written_counts_and_the_packet_after_a_gap_tells_of_it() {
    let (_folder, path, options) = place();
    let queue = Queue::new(64 << 10);
    let push = |count: usize| (0..count).for_each(|_| arrive(&queue, 10_000));
    push(6);
    let mut writer = Writer::new(Files::create(path.clone(), options).expect("created"), 0);
    let mut batch = Batch::default();
    assert!(queue.take(&mut batch));
    writer.write(&mut batch);
    push(2);
    queue.written(&mut batch);
    push(1);
    queue.close();
    let summary = run(writer, &queue);
    assert_eq!((summary.packets, summary.dropped), (7, 2));
    let packets = read(&path).packets;
    assert_eq!(packets[5].comment, "");
    assert_eq!(packets[6].comment, "before this, 2 packets are missing: the capture's queue was full");
}

#[test]
fn files_rotate_and_the_oldest_goes() {
    let (folder, path, mut options) = place();
    options.file_size = NonZeroU64::new(8192);
    options.files = NonZeroU32::new(2);
    let capture = Capture::start(&path, options).expect("started");
    for _ in 0..50 {
        arrive(capture.background.queue(), 1_000);
    }
    let summary = capture.finish();
    assert_eq!((summary.packets, summary.dropped), (50, 0));
    assert!(summary.cut_short.is_none());
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    let last = summary.files;
    assert_eq!(names, [format!("out_{:05}.pcapng", last - 1), format!("out_{last:05}.pcapng")]);
    for name in &names {
        let file = folder.path().join(name);
        assert!(std::fs::metadata(&file).expect("a file").len() <= 8192);
        assert!(read(&file).end.is_some());
    }
}

#[test]
fn a_single_file_ends_at_its_size() {
    let (_folder, path, mut options) = place();
    options.file_size = NonZeroU64::new(8192);
    let capture = Capture::start(&path, options).expect("started");
    let meter = capture.meter();
    for _ in 0..50 {
        arrive(capture.background.queue(), 1_000);
    }
    let summary = capture.finish();
    assert_eq!(meter.read(), RecordCounts { written: 7, dropped: 0, unwritten: 43 });
    assert!(matches!(summary.cut_short, Some(EarlyEnd::FileSize)), "{summary:?}");
    assert_eq!((summary.packets, summary.unwritten), (7, 43));
    let contents = read(&path);
    assert_eq!(contents.packets.len(), 7);
    let (received, _, comment) = contents.end.expect("an end");
    assert_eq!((received, comment.as_deref()), (7, Some("cut short: the file has reached its size")));
}

#[test]
fn a_full_disk_at_the_start_is_an_error() {
    if Path::new("/dev/full").exists() {
        let error = Capture::start("/dev/full", CaptureOptions::new("ack0", 0)).map(drop).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
