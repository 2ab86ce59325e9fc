//! Strangers that say anything, an application that does anything, a device that is often full:
//! after two quiet hours nothing of it is left, and the next honest client is served.
//!
//! A leak needs no lie that is believed: a packet that waits while its connection ends, or a place
//! that is taken twice and returned once, is enough. So everything that holds a place is among the
//! settings: half-open connections, held SYNs, fast open, orphans, TIME-WAIT, shards that have
//! their limits together.

use crate::egress::Metronome;
use crate::ip::stray::ping;
use crate::net::{A, host_config, socket};
use crate::opens::half_open::{ACK, FIN, RST, SYN, Segment, bytes, syn};
use ackline_tcp_core::config::{FastOpen, KeepAlive};
use ackline_tcp_core::endpoint::{Host, Refusal, SynEvent};
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::Scope;
use ackline_tcp_core::steering::Steering;
use ackline_tcp_core::wire::{TcpFlags, TcpOptions, Transport, parse};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, Event, Ingested, Instant, ListenOn, ListenerId,
    RxPacket, SeqNum, TxBudget,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

const STEPS: usize = 400;
const QUIET: Duration = Duration::from_secs(2 * 3_600);

/// A stranger's last view of its connection: what the endpoint sends next, and expects next.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    nxt: SeqNum,
    expected: SeqNum,
}

struct Crowd {
    rng: ChaCha8Rng,
    now: Instant,
    endpoints: Vec<Endpoint>,
    listener: ListenerId,
    steering: Steering,
    views: BTreeMap<SocketAddr, View>,
    /// What the application holds, and of which endpoint.
    conns: Vec<(usize, ConnId)>,
    full: bool,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut one_in = |n: u32| rng.next_u32().is_multiple_of(n);
        let shards = if one_in(2) { 2 } else { 1 };
        let shaper = one_in(2);
        let mut config = ConnConfig::default();
        config.timestamps = false;
        config.fast_open = if one_in(2) { FastOpen::Server } else { FastOpen::Off };
        // So that strangers have no need of one.
        config.fast_open_cookies = false;
        if one_in(3) {
            config.keep_alive = Some(KeepAlive { idle: Duration::from_secs(2), ..KeepAlive::default() });
        }
        if one_in(3) {
            config.user_timeout = None;
        }
        let mut host = host_config(A);
        (host.max_connections, host.max_half_open, host.max_held_syns) = (40, 10, 10);
        (host.fast_open_queue, host.max_orphans, host.max_time_wait) = (4, 10, 10);
        let mut accept = AcceptConfig::new(Arc::new(config));
        (accept.backlog, accept.max_held_syns) = (8, 8);
        accept.hold_syns = one_in(3);
        println!("seed {seed}: {shards} shards, shaper {shaper}, {accept:?}");
        let steering = Steering::new(shards, &[7; 32]);
        let (together, accept) = (Host::new(&host, steering), accept.share(shards));
        let now = Instant::from_secs(1);
        let mut listener = None;
        let endpoints = (0..shards)
            .map(|index| {
                let scheduler: Box<dyn EgressScheduler> = match shaper {
                    true => Box::new(Metronome::new(Duration::from_millis(20))),
                    false => Box::new(Fifo::default()),
                };
                let mut endpoint = Endpoint::new(host.share(shards), scheduler, [index as u8; 32]);
                listener = endpoint.listen(now, ListenOn::Port(80), accept.clone()).ok();
                endpoint.join(&together, index);
                endpoint
            })
            .collect();
        let listener = listener.expect("a free port");
        Self { rng, now, endpoints, listener, steering, views: BTreeMap::new(), conns: vec![], full: false }
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.rng.next_u32() % limit
    }

    fn arrive(&mut self, segment: &Segment<'_>) -> Ingested {
        let shard = self.steering.shard_of(segment.from, 80);
        self.endpoints[shard].ingest(self.now, RxPacket::new(&bytes(socket(A, 80), segment)))
    }

    /// Somebody says something.
    fn hear(&mut self) {
        let from = SocketAddr::from(([192, 0, 2, self.below(4) as u8], 4_000 + self.below(10) as u16));
        let view = self.views.get(&from).copied().unwrap_or_default();
        let data = &[7; 1_000][..[0, 0, 1, 1_000][self.below(4) as usize]];
        let mut segment = Segment { from, ack: view.nxt, data, ..syn(from) };
        segment.options = TcpOptions::NONE;
        segment.seq = match self.below(8) {
            0 => view.expected - 1,
            1 => view.expected + 1,
            2 => SeqNum(self.rng.next_u32()),
            _ => view.expected,
        };
        segment.ack = match self.below(6) {
            0 => view.nxt - 1,
            1 => view.nxt + 1,
            _ => view.nxt,
        };
        let kinds = [SYN, SYN, SYN, ACK, ACK, ACK, ACK, ACK, FIN | ACK, FIN | ACK, RST, SYN | ACK];
        segment.flags = kinds[self.below(kinds.len() as u32) as usize];
        if segment.flags == SYN && self.below(4) > 0 {
            segment.seq = SeqNum(self.rng.next_u32());
        }
        self.arrive(&segment);
    }

    /// The application does something.
    fn act(&mut self) {
        let (now, choice) = (self.now, self.below(8));
        if choice == 0 {
            let shard = self.below(self.endpoints.len() as u32) as usize;
            let Some((syn, _)) = self.endpoints[shard].syns().next(self.listener) else { return };
            match self.below(4) {
                0 => self.endpoints[shard].syns().refuse(now, syn, Refusal::Rst),
                1 => self.endpoints[shard].syns().refuse(now, syn, Refusal::Unreachable),
                // It refuses what it cannot accept by itself, or in the end by time.
                _ => {
                    let _ = self.endpoints[shard].syns().accept(now, syn);
                }
            }
            return;
        }
        if self.conns.is_empty() {
            return;
        }
        let at = self.below(self.conns.len() as u32) as usize;
        let (shard, id) = self.conns[at];
        let endpoint = &mut self.endpoints[shard];
        match (choice, endpoint.conn(id)) {
            (1, Some(mut conn)) => conn.abort(now),
            (2, Some(mut conn)) => conn.shutdown(now),
            (3 | 4, Some(mut conn)) => {
                let _ = conn.write(now, &[1; 3_000]);
            }
            (5, Some(mut conn)) => {
                let _ = conn.read(now, &mut [0; 500]);
            }
            _ => {
                endpoint.release(now, id);
                self.conns.swap_remove(at);
            }
        }
    }

    fn transmit(&mut self) {
        for endpoint in &mut self.endpoints {
            loop {
                let mut sent = vec![];
                let full = self.full;
                let report = endpoint.transmit(self.now, TxBudget::packets(16), |packet| {
                    if full {
                        return Err(());
                    }
                    sent.push([packet.header, packet.payload[0], packet.payload[1]].concat());
                    Ok(())
                });
                for packet in sent {
                    let Ok(datagram) = parse(&RxPacket::new(&packet)) else { continue };
                    let Transport::Tcp(tcp) = datagram.transport else { continue };
                    let to = SocketAddr::new(datagram.ip.dst, tcp.dst_port);
                    let view = self.views.entry(to).or_default();
                    view.nxt = tcp.seq + tcp.seg_len();
                    if tcp.flags.contains(TcpFlags::ACK) {
                        view.expected = tcp.ack;
                    }
                }
                if !report.is_ok_and(|report| report.more) {
                    break;
                }
            }
        }
    }

    /// What a driver does after inputs. `holds`: the application takes new connections.
    fn drain(&mut self, holds: bool) {
        self.transmit();
        for (shard, endpoint) in self.endpoints.iter_mut().enumerate() {
            let mut new = vec![];
            while let Some(event) = endpoint.poll_event() {
                if let Event::Accepted { conn, .. } = event
                    && endpoint.conn(conn).is_some()
                {
                    new.push((shard, conn));
                }
            }
            while let Some(event) = endpoint.syns().poll_event() {
                if let SynEvent::Connected { conn, .. } = event {
                    new.push((shard, conn));
                }
            }
            if holds {
                self.conns.append(&mut new);
            }
            for (_, conn) in new {
                endpoint.release(self.now, conn);
            }
        }
        self.transmit();
    }

    /// Time passes up to `end`; every deadline on the way is served.
    fn pass(&mut self, end: Instant, holds: bool) {
        self.drain(holds);
        for round in 0.. {
            assert!(
                round < 200_000,
                "there is always a next deadline: {:?}",
                self.endpoints[0].poll_timeout()
            );
            let next = self.endpoints.iter().filter_map(|it| it.poll_timeout()).map(|it| it.at).min();
            let Some(at) = next.filter(|at| *at <= end && !self.full) else { break };
            self.now = self.now.max(at);
            for endpoint in &mut self.endpoints {
                endpoint.handle_timeout(self.now);
            }
            self.drain(holds);
        }
        self.now = self.now.max(end);
        for endpoint in &mut self.endpoints {
            endpoint.handle_timeout(self.now);
        }
        self.drain(holds);
    }

    fn step(&mut self) {
        match self.below(20) {
            0..11 => self.hear(),
            11..16 => self.act(),
            16 => self.full = self.below(2) == 0,
            17 => {
                let answer_to = [192, 0, 2, 250].into();
                self.endpoints[0].ingest(self.now, RxPacket::new(&ping(answer_to, socket(A, 80).ip(), 10)));
            }
            18 => self.pass(self.now + Duration::from_millis(25), true),
            _ => {
                let time = [1, 100, 1_000, 3_000, 65_000][self.below(5) as usize];
                self.pass(self.now + Duration::from_millis(time), true);
            }
        }
        // Some inputs come together.
        if self.below(3) > 0 {
            self.drain(true);
        }
    }

    /// Everybody leaves. Nothing may be left.
    fn fall_quiet(&mut self) {
        for (shard, id) in std::mem::take(&mut self.conns) {
            self.endpoints[shard].release(self.now, id);
        }
        self.full = false;
        self.pass(self.now + QUIET, false);
        for endpoint in &mut self.endpoints {
            let left = [
                ("connections", endpoint.connections()),
                ("half-open", endpoint.half_open()),
                ("held SYNs", endpoint.held_syns()),
                ("fast open", endpoint.fast_open_pending()),
                ("orphans", endpoint.orphans()),
                ("TIME-WAIT", endpoint.time_wait_records()),
                ("packets", endpoint.scheduler().backlog(Scope::All).packets),
            ];
            assert!(left.iter().all(|(_, count)| *count == 0), "{left:?}");
            assert_eq!(endpoint.poll_timeout(), None, "nothing is waited for");
        }
    }

    /// An honest client of each shard is accepted, and as many of them as there are places.
    fn serve(&mut self, port: u16) {
        for number in 0..8 {
            let from = SocketAddr::from(([198, 51, 100, number], port));
            let shard = self.steering.shard_of(from, 80);
            let first = syn(from);
            let asked = self.arrive(&first);
            if asked == Ingested::HeldSyn {
                let (held, _) = self.endpoints[shard].syns().next(self.listener).expect("it is held");
                self.endpoints[shard].syns().accept(self.now, held).expect("there is room");
            } else {
                assert_eq!(asked, Ingested::HalfOpen, "client {number}");
            }
            self.pass(self.now + Duration::from_millis(400), false);
            let view = self.views[&from];
            assert_eq!(view.expected, first.seq + 1, "the SYN-ACK");
            let ack =
                Segment { flags: ACK, seq: view.expected, ack: view.nxt, options: TcpOptions::NONE, ..first };
            assert!(matches!(self.arrive(&ack), Ingested::Accepted(_)), "client {number}");
        }
    }
}

#[test]
fn after_two_quiet_hours_the_endpoint_is_empty() {
    let setting = |name, default: u64| {
        std::env::var(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let (first, count) = (setting("ACKLINE_SEED", 1), setting("ACKLINE_SCRIPTS", 100));
    for seed in first..first + count {
        let mut crowd = Crowd::new(seed);
        // Places that are not returned add up.
        for round in 0..3 {
            for _ in 0..STEPS {
                crowd.step();
            }
            crowd.fall_quiet();
            crowd.serve(5_000 + round);
            crowd.fall_quiet();
        }
    }
}
