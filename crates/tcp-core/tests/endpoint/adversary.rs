//! Schedulers that break every rule of their trait, and peers that send rubbish: nothing panics,
//! and nothing grows without bound.

use crate::net::{A, B, Link, Net, Plan, host_config, socket};
use ackline_tcp_core::policy::sched::{
    Admission, Ask, Backlog, Descriptor, DescriptorId, EgressScheduler, Forget, LinkView, Popped, Scope,
    SegmentClass,
};
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Instant, SeqNum};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Loses, repeats, invents and reorders packets, and names connections that do not exist.
#[derive(Debug)]
struct Vandal {
    rng: ChaCha8Rng,
    queue: Vec<Descriptor>,
}

impl EgressScheduler for Vandal {
    fn name(&self) -> &'static str {
        "vandal"
    }

    fn admit(&mut self, _now: Instant, _ask: &Ask) -> Admission {
        [Admission::Granted, Admission::Deferred, Admission::Dropped][self.rng.next_u32() as usize % 3]
    }

    fn push(&mut self, _now: Instant, packet: Descriptor) {
        for _ in 0..self.rng.next_u32() % 3 {
            self.queue.push(packet);
        }
    }

    fn pop(&mut self, now: Instant, _link: &LinkView) -> Popped {
        match self.rng.next_u32() % 8 {
            0 => Popped::Empty,
            1 => Popped::NotBefore(now + Duration::from_micros(10)),
            2 => {
                let conn = ConnId::for_test(self.rng.next_u32() % 4, self.rng.next_u32() % 3);
                let id = DescriptorId::new(self.rng.next_u64(), SeqNum(self.rng.next_u32()), 1_000);
                Popped::Packet(Descriptor::new(id, Some(conn), SegmentClass::Data, 1_040))
            }
            _ if self.queue.is_empty() => Popped::Empty,
            _ => {
                let at = self.rng.next_u32() as usize % self.queue.len();
                Popped::Packet(self.queue.swap_remove(at))
            }
        }
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        Some(ConnId::for_test(self.rng.next_u32() % 4, self.rng.next_u32() % 3))
    }

    fn forget(&mut self, _now: Instant, _which: Forget) {}

    fn backlog(&self, _scope: Scope) -> Backlog {
        Backlog::default()
    }
}

#[test]
fn a_scheduler_without_rules_breaks_nothing_but_itself() {
    for seed in 0..20 {
        for serialise in [None, Some(Duration::from_micros(10))] {
            let make = || Box::new(Vandal { rng: ChaCha8Rng::seed_from_u64(seed), queue: vec![] }) as _;
            let link = Link { serialise, refused: 100, loss: 10, ..Link::default() };
            let mut net = Net::with(seed, link, [host_config(A), host_config(B)], make);
            net.hosts[B].serve = Plan::send(10_000);
            net.listen(B, 80, ConnConfig::default());
            for _ in 0..4 {
                net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(20_000));
            }
            // Bytes that arrive are the right ones: the harness compares each.
            net.run(Duration::from_secs(2));
        }
    }
}

#[test]
fn damaged_packets_never_panic_nor_reach_the_application() {
    for seed in 0..10 {
        let mut net = Net::new(seed, Link { loss: 10, ..Link::default() });
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        net.hosts[B].serve = Plan::send(50_000);
        net.listen(B, 80, ConnConfig::default());
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(50_000));
        for _ in 0..200 {
            net.run_until(Duration::from_millis(3), |_| false);
            for host in [A, B] {
                for wire in net.intercept(host) {
                    let mut bytes = wire.bytes.clone();
                    for _ in 0..1 + rng.next_u32() % 4 {
                        let at = rng.next_u32() as usize % bytes.len();
                        bytes[at] ^= 1 << (rng.next_u32() % 8);
                    }
                    net.inject(1 - host, &bytes);
                    bytes.truncate(rng.next_u32() as usize % bytes.len());
                    net.inject(1 - host, &bytes);
                }
            }
        }
    }
}

/// Segments that pass all checksums, with fields that make no sense, from a peer who knows the
/// four-tuple.
#[test]
fn a_hostile_peer_grows_nothing_and_breaks_nothing() {
    use ackline_tcp_core::wire::{
        HeaderBuf, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps, Transport, TxChecksumMode,
        emit_tcp, parse,
    };
    for seed in 0..20 {
        let mut net = Net::new(seed, Link::default());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        net.hosts[B].serve = Plan::send(50_000);
        net.listen(B, 80, ConnConfig::default());
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(50_000));
        net.run_until(Duration::from_millis(17), |_| false);
        let mut last = None;
        for round in 0..3_000u32 {
            for wire in net.intercept(B) {
                if let Ok(datagram) = parse(&wire.rx())
                    && let Transport::Tcp(segment) = datagram.transport
                {
                    last = Some((segment.seq, segment.ack, segment.dst_port));
                }
            }
            let (seq, ack, port) = last.unwrap_or((SeqNum(rng.next_u32()), SeqNum(rng.next_u32()), 40_000));
            let mut header = TcpHeader::new(socket(A, port), socket(B, 80));
            let near = |rng: &mut ChaCha8Rng, value: SeqNum| match rng.next_u32() % 4 {
                0 => SeqNum(rng.next_u32()),
                1 => value,
                _ => value + rng.next_u32() % 70_000 - 35_000,
            };
            (header.seq, header.ack) = (near(&mut rng, ack), near(&mut rng, seq));
            header.flags = TcpFlags::from_bits(
                (rng.next_u32() & 0x1ff) as u16 & if round % 8 == 0 { 0x1ff } else { 0x1f8 },
            );
            header.window = rng.next_u32() as u16;
            header.options = TcpOptions::NONE;
            if rng.next_u32() % 2 == 0 {
                header.options.timestamps = Some(Timestamps { val: rng.next_u32(), ecr: rng.next_u32() });
            }
            if rng.next_u32() % 2 == 0 {
                header.options.sack = (0..rng.next_u32() % 4)
                    .map(|_| (near(&mut rng, seq), near(&mut rng, seq)))
                    .collect::<SackBlocks>();
            }
            let data = vec![1; rng.next_u32() as usize % 1_400];
            let mut buf = HeaderBuf::new();
            if emit_tcp(&header, [&data, &[]], TxChecksumMode::Complete, &mut buf).is_ok() {
                net.inject(B, &[buf.as_slice(), &data].concat());
            }
            if round % 16 == 0 {
                net.now += Duration::from_millis(u64::from(rng.next_u32() % 500));
                let now = net.now;
                net.endpoint(B).handle_timeout(now);
                while net.endpoint(B).poll_event().is_some() {}
            }
        }
        assert!(net.endpoint(B).connections() <= 1_024, "the backlog is the limit");
    }
}
