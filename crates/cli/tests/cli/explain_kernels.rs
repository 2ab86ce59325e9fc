//! `ackline explain` beside the sender of two kernels, against the counters of both:
//! docs/explain.md states the bounds.
//!
//! Each kernel is a network namespace with a TUN device. Between the devices is a path that loses
//! packets or stands still by count, and writes a capture of what passes at the sender's end.

use crate::common::{run, scratch, text};
use crate::net::accept;
use ackline::core::wire::{RxChecksum, TxChecksum};
use ackline::core::{Duration, Instant};
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::device::{Device, OutgoingPacket};
use ackline::runtime::netlink::InterfaceAddress;
use ackline::runtime::netns::Namespace;
use ackline::runtime::testing::{isolated, skip};
use ackline::runtime::{Error, timer};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 80, 0, 2);
const PORT: u16 = 5001;
/// Of the path, each way.
const DELAY: Duration = Duration::from_millis(2);
/// Causes are told from times: if packets passed later than this after they fell due, the machine
/// was too busy to judge them.
const LATE: Duration = Duration::from_millis(50);
/// Transfers until one was not late.
const ATTEMPTS: u32 = 5;
/// Octets of a packet that the capture keeps.
const KEPT: usize = 128;

/// What becomes of packets with data on their way to the receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// So many are lost at first,
    first: u64,
    /// and then each of so many; zero: none.
    each: u64,
    /// After so many, nothing passes for some time.
    stands_still: Option<(u64, Duration)>,
    /// They are super-packets.
    joined: bool,
}

/// A packet between the devices.
struct Packet {
    due: Instant,
    bytes: Vec<u8>,
    segment_size: Option<NonZeroU16>,
    checksum: RxChecksum,
}

impl Packet {
    /// Octets of the IP header, and of both headers.
    fn headers(&self) -> (usize, usize) {
        let ip = usize::from(self.bytes[0] & 0xf) * 4;
        (ip, ip + usize::from(self.bytes[ip + 12] >> 4) * 4)
    }

    fn has_data(&self) -> bool {
        self.bytes.len() > self.headers().1
    }

    fn give(&self, device: &mut Tun) -> io::Result<()> {
        let (ip, both) = self.headers();
        let (header, data) = self.bytes.split_at(both);
        let checksum = match self.checksum {
            RxChecksum::Partial => TxChecksum::Partial { start: ip as u16, offset: 16 },
            _ => TxChecksum::Complete,
        };
        device.try_send(
            &OutgoingPacket::new(header, [data, &[]])
                .with_segment_size(self.segment_size)
                .with_checksum(checksum),
        )
    }
}

/// A pcap file with nanoseconds (magic number 0xa1b23c4d) of raw IP packets (link type 101):
/// draft-ietf-opsawg-pcap.
struct Capture(BufWriter<File>);

impl Capture {
    fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, KEPT as u32, 101_u32] {
            file.write_all(&word.to_ne_bytes())?;
        }
        Ok(Self(file))
    }

    fn write(&mut self, at: Instant, packet: &Packet) -> io::Result<()> {
        let kept = &packet.bytes[..packet.bytes.len().min(KEPT)];
        let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        for word in [seconds, nanos, kept.len() as u64, packet.bytes.len() as u64] {
            self.0.write_all(&(word as u32).to_ne_bytes())?;
        }
        self.0.write_all(kept)
    }
}

/// The path between two devices.
struct Wire<'a> {
    near: Tun,
    far: Tun,
    fate: Fate,
    capture: Capture,
    /// Packets with data so far, and those lost of them.
    seen: u64,
    lost: u64,
    /// The longest time that a packet passed after it was due.
    late: Duration,
    still_until: Instant,
    there: VecDeque<Packet>,
    back: VecDeque<Packet>,
    /// Both kernels are done.
    over: &'a AtomicBool,
}

impl Wire<'_> {
    /// Carries packets until all is over; how many it has lost, and how late others were.
    async fn carry(mut self) -> io::Result<(u64, Duration)> {
        while !self.over.load(Ordering::Relaxed) {
            self.turn()?;
            let patience = if self.there.is_empty() && self.back.is_empty() { 20 } else { 1 };
            let ready = poll_fn(|cx| {
                let both = [self.near.poll_readable(cx), self.far.poll_readable(cx)];
                if both.iter().any(Poll::is_ready) { Poll::Ready(()) } else { Poll::Pending }
            });
            // Packets fall due meanwhile.
            let _ = tokio::time::timeout(std::time::Duration::from_millis(patience), ready).await;
        }
        self.capture.0.flush()?;
        Ok((self.lost, self.late))
    }

    fn turn(&mut self) -> io::Result<()> {
        let now = timer::now();
        while let Some(packet) = take(&mut self.near, now + DELAY)? {
            self.capture.write(now, &packet)?;
            if packet.has_data() && self.loses(now) {
                self.lost += 1;
            } else {
                self.there.push_back(packet);
            }
        }
        while let Some(packet) = take(&mut self.far, now + DELAY)? {
            self.back.push_back(packet);
        }
        while now >= self.still_until
            && let Some(packet) = due(&mut self.there, now)
        {
            self.late = self.late.max(now.since(packet.due.max(self.still_until)));
            packet.give(&mut self.far)?;
        }
        while let Some(packet) = due(&mut self.back, now) {
            self.late = self.late.max(now.since(packet.due));
            self.capture.write(now, &packet)?;
            packet.give(&mut self.near)?;
        }
        Ok(())
    }

    /// One more packet with data comes: whether it is lost.
    fn loses(&mut self, now: Instant) -> bool {
        self.seen += 1;
        if let Some((after, lasts)) = self.fate.stands_still
            && self.seen == after
        {
            self.still_until = now + lasts;
        }
        self.seen <= self.fate.first || self.fate.each > 0 && self.seen.is_multiple_of(self.fate.each)
    }
}

/// Takes out the first packet, if it is due.
fn due(packets: &mut VecDeque<Packet>, now: Instant) -> Option<Packet> {
    if packets.front()?.due <= now { packets.pop_front() } else { None }
}

/// The next packet that the kernel has given to the device, which falls due then.
fn take(device: &mut Tun, due: Instant) -> io::Result<Option<Packet>> {
    loop {
        match device.try_recv() {
            Ok(received) => {
                let bytes = [received.head, received.more[0], received.more[1]].concat();
                // What is not IPv4 and TCP is the kernel's own.
                if bytes[0] >> 4 == 4 && bytes[9] == 6 {
                    let (segment_size, checksum) = (received.segment_size, received.checksum);
                    return Ok(Some(Packet { due, bytes, segment_size, checksum }));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// The counters of the thread's namespace, by their names in `/proc/net/snmp` and `netstat`.
fn counters() -> HashMap<String, u64> {
    let mut counters = HashMap::new();
    for file in ["snmp", "netstat"] {
        let all = fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("counters");
        let lines: Vec<&str> = all.lines().collect();
        // A line of names, and a line of values.
        for pair in lines.chunks_exact(2).filter(|pair| pair[0].starts_with("Tcp")) {
            let both = pair[0].split(' ').zip(pair[1].split(' ')).skip(1);
            counters.extend(both.map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(0))));
        }
    }
    counters
}

/// What a transfer left behind.
struct Outcome {
    /// What `explain` tells of the sender's data.
    told: Value,
    /// The counters of both kernels.
    near: HashMap<String, u64>,
    far: HashMap<String, u64>,
    /// Packets that the path lost, and how late others were.
    lost: u64,
    late: Duration,
}

impl Outcome {
    fn told(&self, name: &str) -> u64 {
        self.told["losses"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", self.told))
    }

    fn sender(&self, name: &str) -> u64 {
        *self.near.get(name).unwrap_or_else(|| panic!("no counter {name}"))
    }

    fn receiver(&self, name: &str) -> u64 {
        *self.far.get(name).unwrap_or_else(|| panic!("no counter {name}"))
    }

    fn all(&self) -> String {
        let names = [
            "RetransSegs",
            "TCPTimeouts",
            "TCPLossProbes",
            "TCPLossProbeRecovery",
            "TCPLostRetransmit",
            "TCPSpuriousRTOs",
            "TCPDSACKRecv",
            "TCPDSACKOfoRecv",
            "TCPFastRetrans",
            "TCPSlowStartRetrans",
            "TCPDSACKOldSent",
            "TCPDSACKOfoSent",
            "TCPSynRetrans",
        ];
        let values = names.map(|name| format!("{name} {}/{}", self.sender(name), self.receiver(name)));
        format!(
            "late {:?}; lost {}; {}; told {}",
            self.late,
            self.lost,
            values.join(", "),
            self.told["losses"]
        )
    }
}

/// The calling thread's kernel sends so many octets to another one.
fn transfer(octets: usize, fate: Fate) -> Result<Outcome, Error> {
    let device = |address: Ipv4Addr| {
        let network = InterfaceAddress::network(format!("{address}/24").parse().expect("a network"));
        let config = TunConfig::new().address(network);
        Tun::create(&if fate.joined { config } else { config.plain() })
    };
    let far_place =
        std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
    let (near, far) = (device(NEAR)?, far_place.run(|| device(FAR))??);
    let (folder, _) = scratch("");
    let file = folder.path().join("two-kernels.pcap");
    let over = AtomicBool::new(false);
    let wire = Wire {
        near,
        far,
        fate,
        capture: Capture::create(&file).expect("a file"),
        seen: 0,
        lost: 0,
        late: Duration::ZERO,
        still_until: Instant::ZERO,
        there: VecDeque::new(),
        back: VecDeque::new(),
        over: &over,
    };
    let listener = far_place.run(|| TcpListener::bind((FAR, PORT)).expect("a free port"))?;
    let (lost, late) = std::thread::scope(|scope| {
        let carrying = scope.spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(wire.carry()).expect("the devices carry")
        });
        let receiving = scope.spawn(|| io::copy(&mut accept(&listener).0, &mut io::sink()));
        let sent = send(octets);
        let received = receiving.join().expect("no panic");
        over.store(true, Ordering::Relaxed);
        let carried = carrying.join().expect("no panic");
        sent.expect("it is sent");
        assert_eq!(received.expect("it is received"), octets as u64);
        carried
    });
    let story = run(&["explain", text(&file), "--json"]).json();
    let told = story["connections"][0]["directions"][0].clone();
    Ok(Outcome { told, near: counters(), far: far_place.run(counters)?, lost, late })
}

fn send(octets: usize) -> io::Result<()> {
    let mut stream = TcpStream::connect((FAR, PORT))?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(std::time::Duration::from_secs(60)))?;
    stream.write_all(&vec![b'Z'; octets])?;
    stream.shutdown(Shutdown::Write)?;
    stream.read(&mut [0; 16]).map(drop)
}

/// Runs a transfer in namespaces of its own, and looks at what it left behind.
fn between_kernels(name: &str, octets: usize, fate: Fate, check: impl Fn(&Outcome) + Sync) {
    let name = format!("explain_kernels::{name}");
    for _ in 0..ATTEMPTS {
        let mut late = Duration::ZERO;
        isolated(&name, || {
            let outcome = transfer(octets, fate)?;
            // What follows from sequence numbers alone.
            assert_eq!(outcome.told["bytes"], octets, "{}", outcome.told);
            for none in ["uncaptured", "unacknowledged"] {
                assert_eq!(outcome.told[none], 0, "{}", outcome.told);
            }
            agrees(&outcome, outcome.told("segments"), outcome.sender("RetransSegs"));
            late = outcome.late;
            if late <= LATE {
                check(&outcome);
            }
            Ok(())
        });
        if late <= LATE {
            return;
        }
    }
    skip(&name, &"the machine is too busy to keep times");
}

/// What is told differs from what was counted by at most a hundredth, or one.
fn agrees(outcome: &Outcome, told: u64, counted: u64) {
    assert!(
        told.abs_diff(counted) <= (counted / 100).max(1),
        "{told} told, {counted} counted: {}",
        outcome.all()
    );
}

/// What a direction is told of agrees with what its sender counts.
fn agrees_with_sender(outcome: &Outcome) {
    agrees(outcome, outcome.told("timeouts"), outcome.sender("TCPTimeouts"));
    // The kernel counts probes with new data as well, which are no retransmissions.
    agrees(outcome, outcome.told("probes"), outcome.told("probes").min(outcome.sender("TCPLossProbes")));
    agrees(outcome, outcome.told("spurious"), outcome.sender("TCPDSACKRecv"));
    agrees(outcome, outcome.told("spurious"), outcome.receiver("TCPDSACKOldSent"));
}

/// The first window is lost with its probe, so that the timer fires; then each sixtieth packet,
/// retransmissions among them.
#[test]
fn losses_are_those_that_the_kernels_count() {
    let fate = Fate { first: 11, each: 60, ..Fate::default() };
    between_kernels("losses_are_those_that_the_kernels_count", 20_000_000, fate, |outcome| {
        assert!(outcome.lost > 200 && outcome.sender("TCPTimeouts") > 0, "{}", outcome.all());
        agrees_with_sender(outcome);
    });
}

#[test]
fn super_packets_are_counted_in_segments() {
    let fate = Fate { each: 15, joined: true, ..Fate::default() };
    between_kernels("super_packets_are_counted_in_segments", 20_000_000, fate, |outcome| {
        assert!(outcome.lost > 10 && outcome.sender("RetransSegs") > outcome.lost * 2, "{}", outcome.all());
        assert!(outcome.told("retransmissions") < outcome.told("segments"), "{}", outcome.all());
        agrees_with_sender(outcome);
    });
}

#[test]
fn what_was_late_was_sent_again_needlessly() {
    let fate = Fate { stands_still: Some((800, Duration::from_millis(450))), ..Fate::default() };
    between_kernels("what_was_late_was_sent_again_needlessly", 3_000_000, fate, |outcome| {
        assert!(outcome.lost == 0 && outcome.sender("TCPDSACKRecv") > 0, "{}", outcome.all());
        assert_eq!(outcome.told("spurious"), outcome.told("retransmissions"), "{}", outcome.all());
        agrees_with_sender(outcome);
    });
}
