//! The drivers of both hosts, and what must hold after each of their rounds.

use super::host::{Host, MAX_CONNECTIONS};
use super::network::{Flight, IN_FLIGHT};
use super::{Kind, World};
use ackline::core::wire::{Datagram, IpVersion, Transport};
use ackline::core::{Duration, Event, State, TxBudget, wire};

/// Packets of at most this many octets are kept as examples of their kind.
const SMALL: usize = 200;

/// The kind of a TCP packet.
fn kind(datagram: &Datagram<'_>) -> Option<Kind> {
    let Transport::Tcp(segment) = &datagram.transport else { return None };
    Some(Kind {
        v6: datagram.ip.version == IpVersion::V6,
        flags: segment.flags.bits(),
        options: segment.raw_options.len(),
        sack_blocks: segment.options.sack.len(),
        has_data: !segment.payload.is_empty(),
    })
}

impl World {
    /// What a driver does after its inputs.
    pub(super) fn drain(&mut self) {
        for index in 0..2 {
            self.transmit(index, usize::MAX);
            self.poll_events(index);
            // Reading news may have had consequences.
            self.transmit(index, usize::MAX);
            self.check(index);
        }
    }

    /// Lets `host` send until it has nothing more, or has sent `packets` and the device is full.
    pub(super) fn transmit(&mut self, host: usize, packets: usize) {
        let Host { endpoint, largest_packet, .. } = &mut self.hosts[host];
        let (mut room, mut calls) = (packets, 0);
        loop {
            let (now, wire, packets) = (self.now, &mut self.wire, &mut self.packets);
            let report = endpoint.transmit(now, TxBudget::packets(64), |packet| {
                if room == 0 {
                    return Err(());
                }
                room -= 1;
                let flight = Flight::new(1 - host, now, &packet);
                assert!(flight.octets.len() <= *largest_packet, "{} octets", flight.octets.len());
                let datagram = wire::parse(&flight.received()).expect("a valid packet");
                if let Some(kind) = kind(&datagram).filter(|_| flight.octets.len() <= SMALL) {
                    packets.entry(kind).or_insert_with(|| (flight.octets.clone(), flight.checksum));
                }
                if wire.len() < IN_FLIGHT {
                    wire.push_back(flight);
                }
                Ok(())
            });
            calls += 1;
            assert!(calls < 10_000, "it sends for ever at {now:?}");
            if !report.is_ok_and(|report| report.more) {
                return;
            }
        }
    }

    pub(super) fn poll_events(&mut self, index: usize) {
        let mut events = 0;
        while let Some(event) = self.hosts[index].endpoint.poll_event() {
            events += 1;
            assert!(events < 10_000, "there is always news: {event:?}");
            let host = &mut self.hosts[index];
            match event {
                Event::Accepted { listener, conn } => {
                    assert!(host.listener == Some(listener) || !host.conns.contains(&conn));
                    host.conns.push(conn);
                }
                Event::Closed { conn, error } => {
                    assert!(!host.closed.contains(&conn), "closed twice: {conn:?}");
                    host.closed.push(conn);
                    if error.is_some() {
                        self.break_streams(index, conn);
                    }
                }
                _ => {}
            }
        }
    }

    /// What holds after every step.
    pub(super) fn check(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        assert!(host.endpoint.connections() <= MAX_CONNECTIONS as usize);
        for id in host.conns.clone() {
            let Some(conn) = host.endpoint.conn(id) else { continue };
            let [first, second] = conn.peek();
            let info = conn.info();
            let (send, receive) = host.buffer_limits;
            assert!(first.len() + second.len() + info.ooo_bytes as usize <= receive);
            assert!(conn.write_space() <= send);
            assert!(u64::from(info.unacked) + u64::from(info.notsent_bytes) <= send as u64 + 1, "{info:?}");
        }
        // A deadline that is due is served; then the next one lies in the future, or the host would
        // spin.
        for _ in 0..1_000 {
            let host = &mut self.hosts[index];
            let Some(wakeup) = host.endpoint.poll_timeout() else { return };
            if wakeup.at > self.now {
                return;
            }
            host.endpoint.handle_timeout(self.now);
            self.transmit(index, usize::MAX);
            self.poll_events(index);
        }
        panic!("{:?} is due for ever at {:?}", self.hosts[index].endpoint.poll_timeout(), self.now);
    }

    /// From here on the network loses nothing and the applications read: everything has to arrive.
    pub(super) fn finish(&mut self) {
        for index in 0..2 {
            for conn in self.hosts[index].conns.clone() {
                let now = self.now;
                if let Some(mut conn) = self.hosts[index].endpoint.conn(conn) {
                    conn.set_cork(now, false);
                }
            }
        }
        self.drain();
        let started = self.now;
        // Longer than the largest RTO, and too short for the user timeout to matter.
        while self.now.since(started) < Duration::from_secs(300) {
            for _ in 0..1_000 {
                self.read_all();
                self.drain();
                if self.wire.is_empty() {
                    break;
                }
                self.deliver_all();
                self.pass(Duration::from_micros(50));
                self.drain();
            }
            if self.hosts.iter().all(|host| host.endpoint.poll_timeout().is_none()) {
                break;
            }
            self.next_timeout();
        }
        self.read_all();
        if self.honest {
            self.check_that_all_arrived();
        }
    }

    pub(super) fn read_all(&mut self) {
        for index in 0..2 {
            for conn in self.hosts[index].conns.clone() {
                while self.read(index, conn, 4_096) > 0 {}
            }
        }
    }

    pub(super) fn check_that_all_arrived(&mut self) {
        for index in 0..2 {
            for conn in self.hosts[index].conns.clone() {
                let Some((ours, theirs)) = self.streams(index, conn) else { continue };
                let Some(handle) = self.hosts[index].endpoint.conn(conn) else { continue };
                if handle.error().is_some() || matches!(handle.state(), State::SynSent | State::SynReceived) {
                    continue;
                }
                for id in [ours, theirs] {
                    let stream = self.streams.get(&id).copied().unwrap_or_default();
                    assert!(
                        stream.broken || stream.read == stream.written,
                        "{id:?} lost its way: {stream:?}, {:?}",
                        self.hosts[index].endpoint.conn(conn).map(|conn| conn.info())
                    );
                }
            }
        }
    }
}
