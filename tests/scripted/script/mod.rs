//! Two endpoints, two applications and a network that do what a string of octets tells them to.
//!
//! Every octet is an instruction or a parameter of one, so that any string is a script: a fuzzer
//! can learn to write them, and a property test can draw them at random. While it runs, [`World`]
//! checks what must hold whatever the network does:
//!
//! - nothing panics, and every call returns;
//! - what is emitted is a valid packet, no longer than the device permits;
//! - no timer that has been served is due again at once;
//! - no buffer grows beyond its limit, and no host has more connections than it may;
//! - what is read is what was written, and no application is told the same thing twice.
//!
//! In the end the network becomes perfect, and everything that was written has to arrive. Both hold
//! only until the script forges a packet; from then on it is enough to survive.

mod application;
mod driver;
mod host;
mod network;

use ackline::core::wire::RxChecksum;
use ackline::core::{Duration, Instant};
use host::{Host, chosen_policies};
use network::Flight;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// What became of a script.
#[derive(Clone, Default, Debug)]
pub(crate) struct Outcome {
    /// Octets that applications read.
    pub(crate) read: u64,
    /// Streams that had data.
    pub(crate) streams: usize,
    /// Packets that were delivered.
    pub(crate) delivered: u64,
    /// Virtual time, to the end.
    pub(crate) time: Duration,
    /// The first small packet of each kind that was sent, with what its receiver was told about it.
    pub(crate) packets: BTreeMap<Kind, (Vec<u8>, RxChecksum)>,
}

/// A kind of TCP packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Kind {
    pub(crate) v6: bool,
    /// The control bits.
    pub(crate) flags: u16,
    /// Octets of options.
    pub(crate) options: usize,
    pub(crate) sack_blocks: usize,
    pub(crate) has_data: bool,
}

/// Runs a script to its end.
pub(crate) fn run(script: &[u8]) -> Outcome {
    let mut world = World::new(&mut Script(script));
    let mut script = Script(script.get(SETTINGS..).unwrap_or_default());
    while let Some(instruction) = script.next() {
        world.step(instruction, &mut script);
    }
    world.finish();
    Outcome {
        read: world.streams.values().map(|stream| stream.read).sum(),
        streams: world.streams.values().filter(|stream| stream.read > 0).count(),
        delivered: world.delivered,
        time: world.now.since(START),
        packets: world.packets,
    }
}

/// Octets in front of the instructions.
const SETTINGS: usize = 9;
/// When a script begins.
const START: Instant = Instant::from_secs(1);

/// The rest of a script.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A parameter; zero after the end.
    fn octet(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    /// One of `count` choices.
    fn choice(&mut self, count: usize) -> usize {
        usize::from(self.octet()) % count.max(1)
    }

    /// 0 to about 65,000, small numbers and large ones alike.
    fn size(&mut self) -> usize {
        let octet = usize::from(self.octet());
        let exponent = octet % 17;
        (1 << exponent) - 1 + octet / 17
    }
}

struct World {
    hosts: [Host; 2],
    now: Instant,
    wire: VecDeque<Flight>,
    /// Packets, so far.
    delivered: u64,
    /// Nothing was forged yet.
    honest: bool,
    streams: BTreeMap<StreamId, Stream>,
    packets: BTreeMap<Kind, (Vec<u8>, RxChecksum)>,
}

/// One direction of one connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct StreamId {
    writer: SocketAddr,
    reader: SocketAddr,
}

#[derive(Clone, Copy, Default, Debug)]
struct Stream {
    /// Octets.
    written: u64,
    /// Octets.
    read: u64,
    /// The writer has shut it down.
    ended: bool,
    /// Reset, timed out or let go by either side: some of it may be lost.
    broken: bool,
}

/// The octet at a place of a stream.
fn octet_at(stream: StreamId, place: u64) -> u8 {
    let salt = u64::from(stream.writer.port()) << 16 | u64::from(stream.reader.port());
    ((place ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let v6 = script.octet().is_multiple_of(4);
        let hosts = [0, 1].map(|index| {
            let octets = [script.octet(), script.octet(), script.octet(), script.octet()];
            Host::new(index, v6, octets)
        });
        Self {
            hosts,
            now: START,
            wire: VecDeque::new(),
            delivered: 0,
            honest: true,
            streams: BTreeMap::new(),
            packets: BTreeMap::new(),
        }
    }

    fn step(&mut self, instruction: u8, script: &mut Script<'_>) {
        let host = usize::from(instruction >> 7);
        match instruction & 0x7f {
            0..=3 => self.connect(host),
            4..=19 => self.on_conn(host, script, |world, host, conn, script| {
                world.write(host, conn, script.size());
            }),
            20..=31 => self.on_conn(host, script, |world, host, conn, script| {
                world.read(host, conn, script.size());
            }),
            32 | 33 => self.on_conn(host, script, |world, host, conn, _| world.shut_down(host, conn)),
            34 => self.on_conn(host, script, |world, host, conn, _| world.abort(host, conn)),
            35 | 36 => self.on_conn(host, script, |world, host, conn, _| world.release(host, conn)),
            37 => self.on_conn(host, script, |world, host, conn, script| {
                let on = script.octet().is_multiple_of(2);
                let now = world.now;
                if let Some(mut conn) = world.hosts[host].endpoint.conn(conn) {
                    if script.octet().is_multiple_of(2) {
                        conn.set_nodelay(now, on)
                    } else {
                        conn.set_cork(now, on)
                    }
                }
            }),
            38 => self.toggle_listener(host),
            39 => self.on_conn(host, script, |world, host, conn, script| {
                let (now, policies) = (world.now, chosen_policies(script.octet()));
                if let Some(mut conn) = world.hosts[host].endpoint.conn(conn) {
                    conn.set_congestion_control(now, &*policies.cc);
                    conn.set_ack_policy(now, &*policies.ack);
                    conn.set_rto_response(now, &*policies.rto);
                }
            }),
            40..=63 => self.deliver_all(),
            64..=79 => {
                let index = script.choice(self.wire.len());
                if let Some(flight) = self.wire.remove(index) {
                    self.deliver(&flight);
                }
            }
            80..=83 => {
                let index = script.choice(self.wire.len());
                self.wire.remove(index);
            }
            84..=87 => {
                let index = script.choice(self.wire.len());
                if let Some(flight) = self.wire.get(index).cloned() {
                    self.deliver(&flight);
                }
            }
            88..=91 => self.split(script),
            92..=95 => self.pass(Duration::from_micros(script.size() as u64)),
            96..=99 => self.pass(Duration::from_millis(script.size() as u64)),
            100..=111 => self.next_timeout(),
            112..=115 => self.refuse(host, script),
            116..=119 => self.forge(script),
            120 => self.inject_icmp(script),
            121 => self.inject_noise(host, script),
            122 => self.truncate(script),
            _ => {}
        }
        self.drain();
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// On to the earliest deadline of the two.
    fn next_timeout(&mut self) {
        let wakeups = self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout());
        if let Some(at) = wakeups.map(|wakeup| wakeup.at).min() {
            self.now = self.now.max(at);
            for host in &mut self.hosts {
                host.endpoint.handle_timeout(self.now);
            }
        }
    }
}
