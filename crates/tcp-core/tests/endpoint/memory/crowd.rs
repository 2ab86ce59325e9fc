//! Peers that do what they like, checked after every event.

use super::{PACKETS, SECOND, host};
use crate::net::{A, B, Link, Net, Wire, host_config, socket};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{TcpFlags, Transport, parse};
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Event, SeqNum, Target};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

const BUDGET: u64 = 512 << 10;

/// A's connections and B's, and what B has promised.
struct Crowd {
    net: Net,
    rng: ChaCha8Rng,
    /// Clients at a time.
    most: usize,
    clients: Vec<ConnId>,
    served: Vec<ConnId>,
    /// By A's port: the furthest right edge of B's window, and the unit that it is expressed in.
    edges: BTreeMap<u16, (SeqNum, u32)>,
    /// Most that B held above its budget, per connection.
    excess: u64,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let make = || Box::new(Fifo::default()) as _;
        let mut net = Net::with(seed, Link::default(), [host_config(A), host(BUDGET)], make);
        net.listen(B, 80, ConnConfig::default());
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let most = [8, 16, 32, 64][seed as usize % 4];
        Self { net, rng, most, clients: vec![], served: vec![], edges: BTreeMap::new(), excess: 0 }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.rng.next_u32() as usize % below
    }

    fn one_of(&mut self, ids: &[ConnId]) -> Option<ConnId> {
        (!ids.is_empty()).then(|| ids[self.draw(ids.len())])
    }

    /// B has done something.
    fn check(&mut self) {
        let endpoint = &self.net.hosts[B].endpoint;
        let (held, connections) = (endpoint.memory(), endpoint.connections() as u64);
        assert!(held <= BUDGET + connections * PACKETS, "{held} bytes for {connections} connections");
        self.excess = self.excess.max(held.saturating_sub(BUDGET) / connections.max(1));
    }

    /// No ACK of B takes back window that another one has promised, but for rounding (RFC 7323,
    /// section 2.4).
    fn check_edge(&mut self, wire: &Wire) {
        let Ok(datagram) = parse(&wire.rx()) else { panic!("B sends packets") };
        let Transport::Tcp(segment) = datagram.transport else { return };
        if segment.flags.contains(TcpFlags::RST) || !segment.flags.contains(TcpFlags::ACK) {
            return;
        }
        if segment.flags.contains(TcpFlags::SYN) {
            let unit = 1 << segment.options.window_scale.unwrap_or(0);
            self.edges.insert(segment.dst_port, (segment.ack + u32::from(segment.window), unit));
            return;
        }
        let Some((edge, unit)) = self.edges.get_mut(&segment.dst_port) else { return };
        let now = segment.ack + (u32::from(segment.window) * *unit);
        assert!((now + (*unit - 1)).ge(*edge), "{} bytes are taken back", edge.distance_from(now));
        *edge = edge.max(now);
    }

    /// Both send what they can; of A's packets some are lost.
    fn exchange(&mut self, lost_of_ten: usize) {
        for _ in 0..3 {
            for wire in self.net.intercept(A) {
                if self.draw(10) >= lost_of_ten {
                    self.net.inject(B, &wire.bytes);
                    self.check();
                }
            }
            for wire in self.net.intercept(B) {
                self.check_edge(&wire);
                self.net.inject(A, &wire.bytes);
            }
            self.check();
            self.take_events();
        }
    }

    fn take_events(&mut self) {
        let now = self.net.now;
        for host in [A, B] {
            while let Some(event) = self.net.endpoint(host).poll_event() {
                match event {
                    Event::Accepted { conn, .. } => {
                        assert!(self.net.endpoint(B).conn(conn).is_some());
                        self.served.push(conn);
                    }
                    Event::Closed { conn, .. } => self.net.endpoint(host).release(now, conn),
                    _ => {}
                }
            }
        }
        let [a, b] = &mut self.net.hosts;
        self.clients.retain(|&id| a.endpoint.conn(id).is_some());
        self.served.retain(|&id| b.endpoint.conn(id).is_some());
        self.check();
    }

    /// Somebody does something.
    fn act(&mut self) {
        let now = self.net.now;
        // More is written than read.
        let data = vec![1; 1 << self.draw(18)];
        let mut buf = vec![0; 1 << self.draw(14)];
        let (client, server) = (self.one_of(&self.clients.clone()), self.one_of(&self.served.clone()));
        match (self.draw(64), client, server) {
            (0..=7, ..) if self.clients.len() < self.most => {
                let mut config = ConnConfig::default();
                config.recv_buffer = 2_048 << self.draw(8);
                let target = Target::from(socket(B, 80));
                let id = self.net.endpoint(A).connect(now, target, Arc::new(config)).expect("can connect");
                self.clients.push(id);
            }
            (8..=31, Some(id), _) => {
                let _ = self.net.endpoint(A).conn(id).expect("open").write(now, &data);
            }
            (32, Some(id), _) => {
                let _ = self.net.endpoint(A).conn(id).expect("open").read(now, &mut buf);
            }
            (33..=60, _, Some(id)) => {
                let mut conn = self.net.endpoint(B).conn(id).expect("open");
                let space = conn.write_space();
                if let Ok(written) = conn.write(now, &data) {
                    assert!(
                        written > 0 || space == 0 || data.is_empty(),
                        "what is said to be free can be written"
                    );
                }
            }
            (61, _, Some(id)) => {
                let _ = self.net.endpoint(B).conn(id).expect("open").read(now, &mut buf);
            }
            (62, _, Some(id)) => {
                self.net.endpoint(B).release(now, id);
                self.served.retain(|&it| it != id);
            }
            (63, Some(id), _) => self.net.endpoint(A).conn(id).expect("open").shutdown(now),
            _ => {}
        }
        self.check();
    }

    fn pass_time(&mut self, most: u64) {
        self.net.now += Duration::from_millis(self.rng.next_u64() % most);
        let now = self.net.now;
        for host in [A, B] {
            self.net.endpoint(host).handle_timeout(now);
        }
        self.check();
    }
}

#[test]
fn hostile_peers_stay_within_the_budget() {
    let (mut pruned, mut evicted, mut refused) = (0, 0, 0);
    for seed in 0..12 {
        let mut crowd = Crowd::new(seed);
        for _ in 0..600 {
            crowd.act();
            let lost = crowd.draw(4) * crowd.draw(3);
            crowd.exchange(lost);
            if crowd.draw(4) == 0 {
                crowd.pass_time(300);
            }
        }
        let counters = crowd.net.endpoint(B).counters().clone();
        assert!(counters.tcp_memory_pressures > 0, "memory was short");
        pruned += counters.ofo_pruned;
        evicted += counters.tcp_memory_evictions;
        refused += counters.tcp_rcv_q_drop + counters.tcp_ofo_drop + counters.memory_refusals;

        // The attack is over: everybody goes.
        for id in std::mem::take(&mut crowd.served) {
            let now = crowd.net.now;
            crowd.net.endpoint(B).release(now, id);
        }
        let end = crowd.net.now + SECOND.saturating_mul(200);
        while crowd.net.now < end {
            crowd.exchange(10);
            crowd.pass_time(5_000);
        }
        let endpoint = crowd.net.endpoint(B);
        assert_eq!((endpoint.connections(), endpoint.time_wait_records()), (0, 0));
        assert!(endpoint.memory() < 8_192, "{} bytes are left", endpoint.memory());
        assert!(!endpoint.is_under_memory_pressure());
        assert!(endpoint.counters().tcp_memory_pressures_chrono > 0);
        let (above, most) = (crowd.excess, crowd.most);
        println!("at most {above} bytes above the budget for each of {most}, {pruned} {evicted} {refused}");
    }
    println!("{pruned} pruned, {evicted} evicted, {refused} refused");
    assert!(pruned > 0 && evicted > 0 && refused > 0, "every means was needed");
}
