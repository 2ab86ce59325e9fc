//! What the applications do.

use super::host::{OPENED, PORT};
use super::{Script, StreamId, World, octet_at};
use ackline::core::{ConnId, State, Target};
use std::net::SocketAddr;

impl World {
    pub(super) fn connect(&mut self, from: usize) {
        let to = SocketAddr::new(self.hosts[1 - from].address, PORT);
        let host = &mut self.hosts[from];
        if host.conns.len() >= OPENED {
            return;
        }
        let config = host.conn_config.clone();
        if let Ok(conn) = host.endpoint.connect(self.now, Target::new(to), config) {
            host.conns.push(conn);
        }
    }

    /// Does something to a connection that the script chooses.
    pub(super) fn on_conn(
        &mut self,
        host: usize,
        script: &mut Script<'_>,
        act: impl FnOnce(&mut Self, usize, ConnId, &mut Script<'_>),
    ) {
        let conns = &self.hosts[host].conns;
        let choice = script.choice(conns.len());
        if let Some(&conn) = conns.get(choice) {
            act(self, host, conn, script);
        }
    }

    /// The streams that the connection writes and reads.
    pub(super) fn streams(&mut self, host: usize, conn: ConnId) -> Option<(StreamId, StreamId)> {
        let (local, remote) = self.hosts[host].endpoint.conn(conn)?.addresses();
        let ours = StreamId { writer: local, reader: remote };
        Some((ours, StreamId { writer: remote, reader: local }))
    }

    pub(super) fn break_streams(&mut self, host: usize, conn: ConnId) {
        if let Some((ours, theirs)) = self.streams(host, conn) {
            self.streams.entry(ours).or_default().broken = true;
            self.streams.entry(theirs).or_default().broken = true;
        }
    }

    pub(super) fn write(&mut self, host: usize, conn: ConnId, size: usize) {
        let Some((ours, _)) = self.streams(host, conn) else { return };
        let stream = self.streams.entry(ours).or_default();
        let octets: Vec<_> = (0..size as u64).map(|index| octet_at(ours, stream.written + index)).collect();
        let Some(mut handle) = self.hosts[host].endpoint.conn(conn) else { return };
        let space = handle.write_space();
        if let Ok(written) = handle.write(self.now, &octets) {
            assert!(written <= octets.len() && written <= space.max(written));
            stream.written += written as u64;
        }
    }

    /// Reads and compares.
    pub(super) fn read(&mut self, host: usize, conn: ConnId, size: usize) -> usize {
        let Some((_, theirs)) = self.streams(host, conn) else { return 0 };
        let Some(mut handle) = self.hosts[host].endpoint.conn(conn) else { return 0 };
        let mut octets = vec![0; size];
        let Ok(count) = handle.read(self.now, &mut octets) else { return 0 };
        let stream = self.streams.entry(theirs).or_default();
        if self.honest {
            for (index, octet) in octets[..count].iter().enumerate() {
                let place = stream.read + index as u64;
                assert_eq!(*octet, octet_at(theirs, place), "octet {place} of {theirs:?}");
            }
            assert!(stream.read + count as u64 <= stream.written, "more than was written");
            if handle.at_end() {
                let all = stream.read + count as u64 == stream.written;
                assert!(stream.broken || (stream.ended && all), "an end before the end: {stream:?}");
            }
        }
        stream.read += count as u64;
        count
    }

    pub(super) fn shut_down(&mut self, host: usize, conn: ConnId) {
        let Some((ours, _)) = self.streams(host, conn) else { return };
        self.streams.entry(ours).or_default().ended = true;
        let Some(mut handle) = self.hosts[host].endpoint.conn(conn) else { return };
        // RFC 9293, section 3.10.4: CLOSE in SYN-SENT ends the connection.
        let never_opened = handle.state() == State::SynSent;
        handle.shutdown(self.now);
        if never_opened {
            self.break_streams(host, conn);
        }
    }

    pub(super) fn abort(&mut self, host: usize, conn: ConnId) {
        self.break_streams(host, conn);
        if let Some(mut conn) = self.hosts[host].endpoint.conn(conn) {
            conn.abort(self.now);
        }
    }

    /// The application lets go: what it has not read is lost, and what comes later is answered with
    /// RST.
    pub(super) fn release(&mut self, index: usize, conn: ConnId) {
        if let Some((ours, _)) = self.streams(index, conn) {
            self.streams.entry(ours).or_default().ended = true;
        }
        self.break_streams(index, conn);
        let host = &mut self.hosts[index];
        host.endpoint.release(self.now, conn);
        host.conns.retain(|other| *other != conn);
        assert!(host.endpoint.conn(conn).is_none(), "a handle outlives its release");
    }

    pub(super) fn toggle_listener(&mut self, index: usize) {
        let now = self.now;
        let host = &mut self.hosts[index];
        match host.listener.take() {
            Some(listener) => {
                host.endpoint.unlisten(now, listener);
                // Whom it had not accepted yet, it resets: their peers may have written.
                for stream in self.streams.values_mut() {
                    stream.broken = true;
                }
            }
            None => host.listen(now),
        }
    }

    /// A device that is full after a few packets.
    pub(super) fn refuse(&mut self, host: usize, script: &mut Script<'_>) {
        self.on_conn(host, script, |world, host, conn, script| world.write(host, conn, script.size()));
        let room = script.choice(4);
        self.transmit(host, room);
    }
}
