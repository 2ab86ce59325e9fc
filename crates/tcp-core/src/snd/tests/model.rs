//! Random peers: what the sender believes against a naive model of what is outstanding.

use super::bench::{Bench, SMSS, Setup, ms};
use crate::config::ConnConfig;
use crate::events::WakeReason;
use crate::plan::Plan;
use crate::scoreboard::LostRange;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

/// What happens next.
#[derive(Clone, Debug)]
enum Act {
    Write(u32),
    /// So many packets leave; the bits say which of them are lost.
    Send(u8, u32),
    /// As `Send`, by way of the egress scheduler: reserved, then claimed.
    Queue(u8, u32),
    /// The peer acknowledges what it has; the number picks which SACK ranges it shows.
    Ack(u32),
    /// The oldest segment on the way arrives at the peer.
    Arrive(u8),
    Window(u8),
    /// The path's segment size shrinks.
    Smss(u32),
    /// The device's changes.
    Full(u32),
    /// What was SACKed counts as outstanding again, and what the number says as lost: a response to
    /// a timeout, reneging.
    Forget(u8),
    Close,
    Fire,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => (1_u32..12_000).prop_map(Act::Write),
        4 => (1_u8..12, any::<u32>()).prop_map(|(n, lost)| Act::Send(n, lost & lost >> 1)),
        2 => (1_u8..6, any::<u32>()).prop_map(|(n, lost)| Act::Queue(n, lost & lost >> 1)),
        6 => any::<u32>().prop_map(Act::Ack),
        6 => (1_u8..8).prop_map(Act::Arrive),
        1 => (0_u8..40).prop_map(Act::Window),
        1 => (300_u32..1000).prop_map(Act::Smss),
        1 => (300_u32..2000).prop_map(Act::Full),
        1 => (0_u8..3).prop_map(Act::Forget),
        1 => Just(Act::Fire),
        1 => prop::bool::weighted(0.1).prop_map(|close| if close { Act::Close } else { Act::Fire }),
    ]
}

/// The network and the peer, byte by byte.
struct World {
    bench: Bench,
    written: u32,
    wire: Vec<(u32, u32, bool)>,
    closed: bool,
    /// The FIN, or a copy of it, has arrived.
    got_fin: bool,
    /// Bytes that the peer holds.
    got: Vec<bool>,
    /// Everything before it has arrived at the peer.
    nxt: u32,
    /// Everything before it was acknowledged to the sender.
    una: u32,
    /// Bytes that the sender was told are SACKed.
    sacked: Vec<bool>,
    sack: bool,
    /// Where segments have ended.
    ends: BTreeSet<u32>,
    /// A retransmission has joined segments.
    joined: bool,
}

impl World {
    fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for byte in self.nxt..self.got.len() as u32 {
            if !self.got[byte as usize] {
                continue;
            }
            match ranges.last_mut() {
                Some(range) if range.1 == byte => range.1 += 1,
                _ => ranges.push((byte, byte + 1)),
            }
        }
        // The FIN has a number, too.
        match ranges.last_mut() {
            Some(range) if range.1 == self.written && self.got_fin => range.1 += 1,
            _ => {}
        }
        ranges
    }

    fn put(&mut self, out: &Plan, lost: bool) {
        // A window probe carries nothing.
        if out.seq_len() == 0 {
            return;
        }
        let start = Bench::offset(out.seq);
        assert!(start + out.len <= self.written, "only what was written leaves");
        let segment = out.segment_size.map_or(out.len, |size| size.get().into());
        assert!(segment <= self.bench.snd.stream.full_smss(), "what leaves fits the device");
        assert!(!out.fin || (self.closed && start + out.len == self.written), "the FIN is the end");
        self.joined |= self.ends.range(start + 1..start + out.len.max(1)).next().is_some();
        self.ends.insert(start + out.len);
        if !lost {
            self.wire.push((start, out.len, out.fin));
        }
    }

    fn send(&mut self, n: u8, lost: u32) {
        for i in 0..n {
            let Some(out) = self.bench.next() else { break };
            self.bench.sent(&out);
            self.put(&out, lost >> i & 1 == 1);
        }
    }

    fn queue(&mut self, n: u8, lost: u32) {
        let mut queued = Vec::new();
        for _ in 0..n {
            let Some(out) = self.bench.next() else { break };
            self.bench.serial += 1;
            self.bench.snd.reserve(&out, self.bench.serial);
            queued.push(self.bench.serial);
        }
        // An ACK while they wait.
        self.ack(lost);
        while let Some(voided) = self.bench.snd.take_voided() {
            queued.retain(|serial| *serial != voided);
        }
        // A scheduler that pops in another order.
        if lost & 1 == 1 {
            queued.reverse();
        }
        for (i, serial) in queued.into_iter().enumerate() {
            let Some(out) = self.bench.snd.claim(serial) else { continue };
            assert_eq!(self.bench.snd.claim(serial), Some(out), "the device may refuse it");
            self.bench.sent(&out);
            self.put(&out, lost >> i & 1 == 1);
        }
    }

    fn arrive(&mut self, n: u8) {
        for _ in 0..n {
            if self.wire.is_empty() {
                break;
            }
            let (start, len, fin) = self.wire.remove(0);
            self.got_fin |= fin;
            let end = (start + len) as usize;
            self.got.resize(self.got.len().max(end), false);
            self.got[start as usize..end].fill(true);
            while self.got.get(self.nxt as usize) == Some(&true) {
                self.nxt += 1;
            }
        }
    }

    fn ack(&mut self, pick: u32) {
        let end = self.got_fin && self.nxt == self.written;
        let nxt = self.nxt + u32::from(end);
        let mut blocks = Vec::new();
        if self.sack {
            let ranges = self.ranges();
            for i in 0..ranges.len().min(3) {
                let block = ranges[(pick as usize + i) % ranges.len()];
                self.sacked.resize(self.sacked.len().max(block.1 as usize), false);
                self.sacked[block.0 as usize..block.1 as usize].fill(true);
                blocks.push(block);
            }
        }
        self.bench.pass(ms(5));
        self.bench.sack(nxt, &blocks);
        self.una = nxt;
        let acked = self.sacked.len().min(nxt as usize);
        self.sacked[..acked].fill(false);
        let space = (4 << 20) - (self.written - self.nxt);
        let space = if self.closed { 0 } else { space };
        assert_eq!(self.bench.snd.write_space(&self.bench.config), space as usize);
    }

    fn close(&mut self) {
        self.closed = true;
        self.bench.snd.queue_fin();
    }

    fn shrink(&mut self, smss: u32) {
        if smss < self.bench.snd.smss() {
            self.bench.set_smss(smss);
        }
    }

    fn forget(&mut self, lost: u8) {
        let Some(flight) = self.bench.snd.flight.as_deref_mut() else { return };
        match lost {
            0 => flight.board.forget_sacked(),
            1 => flight.board.retag(false, LostRange::None, &mut |_| {}),
            _ => flight.board.retag(false, LostRange::All, &mut |_| {}),
        }
        self.sacked.clear();
    }

    /// What the sender believes, against what it was told.
    fn check(&self) {
        let info = self.bench.info();
        assert_eq!(Bench::offset(self.bench.snd.snd_una()), self.una);
        assert_eq!(info.unacked, Bench::offset(self.bench.snd.snd_nxt()) - self.una);
        assert_eq!(info.notsent_bytes, self.written.saturating_sub(self.una + info.unacked));
        if self.sack {
            let told = self.sacked.iter().filter(|told| **told).count();
            assert!(info.sacked as usize <= told);
            // Segments of an old size, or as they were before they were joined, may arrive late and
            // cover others in part.
            if self.bench.snd.smss() == SMSS && !self.joined {
                assert_eq!(info.sacked as usize, told, "every SACKed byte is tagged once");
            }
            let queued = self
                .bench
                .snd
                .flight
                .as_deref()
                .map_or(0, |flight| flight.reserved.new_bytes() + flight.board.tally().reserved);
            assert_eq!(info.pipe, info.unacked - info.sacked - info.lost + info.retrans + queued);
        }
        assert!(info.lost + info.sacked <= info.unacked && info.retrans <= info.unacked);
        let flight = self.bench.snd.flight.as_deref();
        flight.inspect(|flight| flight.board.check());
        // Each byte is delivered once, however often it is reported; so no more is than was sent.
        let reported = flight.map_or(0, |flight| flight.board.ever_sacked());
        assert_eq!(self.bench.snd.stream.delivery.delivered, u64::from(self.una + reported));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the network does, beliefs agree with the model; once it behaves, everything
    /// arrives.
    #[test]
    fn beliefs_and_delivery(
        acts in prop::collection::vec(act(), 1..120),
        sack: bool,
        modern: bool,
        max_payload in 1_u32..12,
    ) {
        let today = ConnConfig {
            nagle: crate::config::Nagle::Off,
            min_send_buffer: None,
            ..ConnConfig::default()
        };
        let config = if modern { today } else { Setup::default().config };
        let mut bench = Setup { config, cwnd: None, sack, ..Setup::default() }.open();
        bench.max_payload = max_payload * SMSS;
        let mut world = World {
            bench,
            written: 0,
            wire: Vec::new(),
            closed: false,
            got_fin: false,
            got: Vec::new(),
            nxt: 0,
            una: 0,
            sacked: Vec::new(),
            sack,
            ends: BTreeSet::new(),
            joined: false,
        };
        for act in acts {
            match act {
                Act::Write(len) => {
                    if !world.closed {
                        world.bench.write(len);
                        world.written += len;
                    }
                }
                Act::Smss(smss) => world.shrink(smss),
                Act::Full(full) => world.bench.set_full_size(full),
                Act::Forget(lost) => world.forget(lost),
                Act::Close => world.close(),
                Act::Send(n, lost) => world.send(n, lost),
                Act::Queue(n, lost) => world.queue(n, lost),
                Act::Ack(pick) => world.ack(pick),
                Act::Arrive(n) => world.arrive(n),
                Act::Window(segments) => world.bench.wnd = u32::from(segments) * SMSS,
                Act::Fire => {
                    if world.bench.timer().is_some() {
                        world.bench.fire();
                    }
                }
            }
            world.check();
        }
        // The network behaves from here on.
        world.close();
        world.bench.wnd = 1 << 20;
        world.ack(0);
        for round in 0..10_000 {
            if world.una == world.written + 1 {
                break;
            }
            prop_assert!(round < 9_999, "the transfer stands still: {:?}", world.bench.info());
            world.send(100, 0);
            if world.wire.is_empty() {
                prop_assert!(world.bench.timer().is_some(), "nothing on the way, and no timer");
                let reason = world.bench.fire();
                prop_assert!(reason != WakeReason::Trim);
            }
            while !world.wire.is_empty() {
                world.arrive(2);
                world.ack(round);
                world.check();
                world.send(100, 0);
            }
        }
        world.check();
        prop_assert!(world.bench.snd.is_empty());
        prop_assert_eq!(world.bench.info().pipe, 0);
    }
}
