//! Connections that end while a packet of theirs waits, at a shaper or at a device that is full:
//! what they still owe leaves, and nothing of them stays.

use crate::egress::Metronome;
use crate::ip::stray::{numbers, ping, segment};
use crate::net::{A, B, Link, Net, host_config, socket};
use ackline_tcp_core::config::KeepAlive;
use ackline_tcp_core::policy::EgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::sched::Scope;
use ackline_tcp_core::wire::TcpFlags;
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Event, TxBudget};
use std::net::SocketAddr;

/// The shaper lets a packet pass this often.
const INTERVAL: Duration = Duration::from_millis(2);

/// What makes a packet wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    AtTheDevice,
    AtTheShaper,
}

/// The packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    ChallengeAck,
    Ack,
    KeepAlive,
    Data,
}

/// What ends the connection meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Abort,
    /// Data arrives that no application can read any more.
    DataForNobody,
    /// The peer resets it, so that it owes nothing.
    PeersReset,
}

/// A connection of B with a peer that is the test.
struct Dialogue {
    net: Net,
    conn: ConnId,
    peer: SocketAddr,
    /// SND.NXT and RCV.NXT of the peer.
    nxt: (u32, u32),
}

impl Dialogue {
    fn open(waits: Waits) -> Self {
        let make = move || match waits {
            Waits::AtTheDevice => Box::new(Fifo::default()) as Box<dyn EgressScheduler>,
            Waits::AtTheShaper => Box::new(Metronome::new(INTERVAL)),
        };
        let mut net = Net::with(1, Link::default(), [host_config(A), host_config(B)], make);
        let mut config = ConnConfig::default();
        config.timestamps = false;
        config.keep_alive = Some(KeepAlive { idle: Duration::from_secs(1), ..KeepAlive::default() });
        net.listen(B, 80, config);
        let peer = socket(A, 4_000);
        net.inject(B, &segment(peer, socket(B, 80), TcpFlags::SYN, 100, 0, &[]));
        let iss = numbers(&net.intercept(B)[0]).1;
        net.inject(B, &segment(peer, socket(B, 80), TcpFlags::ACK, 101, iss + 1, &[]));
        let Some(Event::Accepted { conn, .. }) = net.endpoint(B).poll_event() else { panic!("it is open") };
        assert!(net.endpoint(B).conn(conn).is_some());
        net.now += INTERVAL;
        Self { net, conn, peer, nxt: (101, iss + 1) }
    }

    fn says(&mut self, flags: TcpFlags, data: &[u8]) {
        let (seq, ack) = self.nxt;
        self.net.inject(B, &segment(self.peer, socket(B, 80), flags, seq, ack, data));
    }

    /// `packet` becomes due, and waits.
    fn let_wait(&mut self, waits: Waits, packet: Packet) {
        match packet {
            Packet::ChallengeAck => self.says(TcpFlags::SYN, &[]),
            // Data behind a hole is acknowledged at once.
            Packet::Ack => {
                self.nxt.0 += 10;
                self.says(TcpFlags::ACK, b"x");
                self.nxt.0 -= 10;
            }
            Packet::KeepAlive => {
                self.net.now += Duration::from_secs(1);
                let now = self.net.now;
                self.net.endpoint(B).handle_timeout(now);
            }
            Packet::Data => self.net.write(B, self.conn, b"answer"),
        }
        let now = self.net.now;
        match waits {
            Waits::AtTheDevice => {
                let sent = self.net.endpoint(B).transmit(now, TxBudget::UNLIMITED, |_| Err::<(), _>("full"));
                assert_eq!(sent, Err("full"), "{packet:?} is due");
            }
            Waits::AtTheShaper => {
                // The answer to somebody's ping goes before it.
                self.net.inject(B, &ping(self.peer.ip(), socket(B, 80).ip(), 10));
                assert_eq!(self.net.intercept(B).len(), 1);
                assert_eq!(
                    self.net.endpoint(B).scheduler().backlog(Scope::All).packets,
                    1,
                    "{packet:?} waits"
                );
            }
        }
    }

    fn end(&mut self, end: End) {
        let (now, conn) = (self.net.now, self.conn);
        match end {
            End::Abort => self.net.endpoint(B).conn(conn).unwrap().abort(now),
            End::DataForNobody => {
                self.net.endpoint(B).release(now, conn);
                self.says(TcpFlags::ACK, b"x");
            }
            End::PeersReset => self.says(TcpFlags::RST, &[]),
        }
        self.net.endpoint(B).release(now, conn);
    }

    /// Flags of what leaves once there is room.
    fn leaves(&mut self) -> Vec<TcpFlags> {
        let mut flags = vec![];
        for _ in 0..4 {
            flags.extend(self.net.intercept(B).iter().map(|wire| numbers(wire).0));
            self.net.now += INTERVAL;
        }
        flags
    }
}

#[test]
fn a_connection_that_ends_while_its_packet_waits_sends_its_reset_and_is_forgotten() {
    for waits in [Waits::AtTheDevice, Waits::AtTheShaper] {
        for packet in [Packet::ChallengeAck, Packet::Ack, Packet::KeepAlive, Packet::Data] {
            for end in [End::Abort, End::DataForNobody, End::PeersReset] {
                let case = format!("{waits:?}, {packet:?}, {end:?}");
                let mut dialogue = Dialogue::open(waits);
                dialogue.let_wait(waits, packet);
                dialogue.end(end);
                let left = dialogue.leaves();
                let resets: &[TcpFlags] = match end {
                    End::Abort | End::DataForNobody => &[TcpFlags::RST.union(TcpFlags::ACK)],
                    End::PeersReset => &[],
                };
                assert_eq!(left, resets, "{case}");
                let endpoint = dialogue.net.endpoint(B);
                assert_eq!((endpoint.connections(), endpoint.orphans()), (0, 0), "{case}");
                assert_eq!(endpoint.poll_timeout(), None, "{case}");
                assert_eq!(endpoint.scheduler().backlog(Scope::All).packets, 0, "{case}");
            }
        }
    }
}
