//! Memory: none is allocated per segment, and an idle connection takes little.

use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{RxChecksum, TxChecksumMode};
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, RxPacket,
    Target, TxBudget, TxId,
};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Most that an idle established connection may take, in bytes.
const IDLE: u64 = 678;

/// Most that a released connection in TIME-WAIT may take, in bytes: a record of 64, up to 12 in the
/// hash table, and spare capacity.
const TIME_WAIT: u64 = 92;

/// Gives everything that the one has to send to the other.
type Pass = fn(Instant, &mut Endpoint, &mut Endpoint) -> usize;

struct Pair {
    now: Instant,
    a: Endpoint,
    b: Endpoint,
}

fn endpoint(host: u8, super_packets: bool) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.addresses = vec![IpAddr::from([10, 0, 0, host])];
    if super_packets {
        config.max_super_packet = 65_535;
        config.tx_checksum = TxChecksumMode::Partial;
    }
    Endpoint::new(config, Box::new(Fifo::default()), [host; 32])
}

/// Gives what `from` has to send to `to`, in place, as far as `budget` goes. The latest packet is
/// noted in `last`.
fn pass_some(
    now: Instant,
    budget: TxBudget,
    from: &mut Endpoint,
    to: &mut Endpoint,
    last: &mut Option<TxId>,
) -> usize {
    let report = from.transmit(now, budget, |packet| {
        *last = Some(packet.id);
        let checksum = match packet.segment_size {
            Some(_) => RxChecksum::Partial,
            None => RxChecksum::Trusted,
        };
        let rx = RxPacket::new(packet.header)
            .with_more(packet.payload)
            .with_segment_size(packet.segment_size)
            .with_checksum(checksum);
        to.ingest(now, rx);
        Ok::<(), ()>(())
    });
    report.map_or(0, |report| report.packets)
}

/// Gives everything that `from` has to send to `to`, in place.
fn pass(now: Instant, from: &mut Endpoint, to: &mut Endpoint) -> usize {
    pass_some(now, TxBudget::UNLIMITED, from, to, &mut None)
}

/// The same, a packet at a time, through the scheduler.
fn pass_one_by_one(now: Instant, from: &mut Endpoint, to: &mut Endpoint) -> usize {
    let (mut packets, mut last) = (0, None);
    while pass_some(now, TxBudget::with_departures(1), from, to, &mut last) > 0 {
        packets += 1;
        if let Some(packet) = last.take() {
            from.departed(now, packet);
        }
    }
    packets
}

impl Pair {
    fn new(super_packets: bool) -> Self {
        let mut b = endpoint(2, super_packets);
        let mut accept = AcceptConfig::default();
        accept.backlog = u32::MAX;
        b.listen(Instant::ZERO, ListenOn::Port(80), accept).unwrap();
        Self { now: Instant::from_secs(1), a: endpoint(1, super_packets), b }
    }

    /// Opens `connections`; returns the last accepted one and its peer.
    fn open(&mut self, connections: u32, config: &Arc<ConnConfig>) -> (ConnId, ConnId) {
        self.open_each(connections, config, |_| {})
    }

    /// The same, and tells each of A's connections.
    fn open_each(
        &mut self,
        connections: u32,
        config: &Arc<ConnConfig>,
        mut opened: impl FnMut(ConnId),
    ) -> (ConnId, ConnId) {
        let mut last = None;
        for number in 0..connections {
            let remote = SocketAddr::from(([10, 0, 0, 2], 80));
            let mut target = Target::from(remote);
            // More connections than ephemeral ports are not needed here, but they should be cheap
            // to name.
            target.local_port = Some(1_000 + number as u16);
            let client = self.a.connect(self.now, target, config.clone()).unwrap();
            opened(client);
            while pass(self.now, &mut self.a, &mut self.b) + pass(self.now, &mut self.b, &mut self.a) > 0 {}
            self.now += Duration::from_micros(10);
            while let Some(event) = self.b.poll_event() {
                if let Event::Accepted { conn, .. } = event {
                    last = Some((client, conn));
                }
            }
            while self.a.poll_event().is_some() {}
        }
        last.expect("connections were accepted")
    }

    /// One round: A writes all that fits, B reads all that came. Returns packets from A.
    fn round(&mut self, client: ConnId, server: ConnId, data: &[u8], pass: Pass) -> usize {
        self.now += Duration::from_micros(20);
        let now = self.now;
        for endpoint in [&mut self.a, &mut self.b] {
            if endpoint.poll_timeout().is_some_and(|wakeup| wakeup.at <= now) {
                endpoint.handle_timeout(now);
            }
        }
        let mut writer = self.a.conn(client).expect("open");
        while writer.write(now, data).expect("writable") > 0 {}
        let packets = pass(now, &mut self.a, &mut self.b);
        let mut reader = self.b.conn(server).expect("open");
        let readable = reader.peek().map(<[u8]>::len).iter().sum();
        reader.consume(now, readable);
        pass(now, &mut self.b, &mut self.a);
        for endpoint in [&mut self.a, &mut self.b] {
            while endpoint.poll_event().is_some() {}
        }
        packets
    }
}

fn no_allocation_in_steady_state(super_packets: bool, pass: Pass) {
    let mut pair = Pair::new(super_packets);
    let (client, server) = pair.open(1, &Arc::default());
    let data = vec![0x5a; 1 << 16];
    // Until windows and buffers are as large as they get.
    for _ in 0..200 {
        pair.round(client, server, &data, pass);
    }
    let mut packets = 0;
    let before = pair.b.conn(server).unwrap().info().bytes_received;
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            packets += pair.round(client, server, &data, pass);
        }
    });
    let bytes = pair.b.conn(server).unwrap().info().bytes_received - before;
    assert!(packets >= 100 && bytes > 10_000_000, "{packets} packets, {bytes} bytes");
    assert_eq!(counted.count_total, 0, "{packets} packets, {bytes} bytes: {counted:?}");
}

#[test]
fn segments_allocate_nothing() {
    no_allocation_in_steady_state(false, pass);
}

#[test]
fn scheduled_segments_allocate_nothing() {
    no_allocation_in_steady_state(false, pass_one_by_one);
}

#[test]
fn super_packets_allocate_nothing() {
    no_allocation_in_steady_state(true, pass);
}

/// A reader of chunks takes memory along with the data. That must not cost more of it than there is
/// data: what single packets bring is gathered where it stays, and not in a ring that grows anew
/// for each chunk.
#[test]
fn chunks_of_single_packets_take_little_more_memory_than_they_have_data() {
    let mut pair = Pair::new(false);
    let (client, server) = pair.open(1, &Arc::default());
    let data = vec![0x5a; 1 << 16];
    let (mut bytes, mut chunks) = (0, 0);
    let mut rounds = |count: u32| {
        (bytes, chunks) = (0, 0);
        for _ in 0..count {
            pair.now += Duration::from_micros(20);
            let now = pair.now;
            while pair.a.conn(client).expect("open").write(now, &data).expect("writable") > 0 {}
            pass(now, &mut pair.a, &mut pair.b);
            let mut reader = pair.b.conn(server).expect("open");
            while let Some(chunk) = reader.read_chunk(now, usize::MAX).expect("open") {
                bytes += chunk.len() as u64;
                chunks += 1;
            }
            pass(now, &mut pair.b, &mut pair.a);
            for endpoint in [&mut pair.a, &mut pair.b] {
                while endpoint.poll_event().is_some() {}
            }
        }
        (bytes, chunks)
    };
    // Until windows and buffers are as large as they get.
    rounds(40);
    let counted = allocation_counter::measure(|| _ = rounds(10));
    assert!(bytes > 10_000_000, "{bytes} bytes");
    println!("{bytes} bytes in {chunks} chunks: {counted:?}");
    assert!(counted.bytes_total < bytes * 5 / 4, "{bytes} bytes in {chunks} chunks: {counted:?}");
    // The memory of a chunk, and its count of references.
    assert!(counted.count_total <= 2 * chunks + 10, "{chunks} chunks: {counted:?}");
    assert!(bytes / chunks > 30_000, "{bytes} bytes in {chunks} chunks");
}

#[test]
fn an_idle_connection_is_small() {
    // Neither a power of two (where growing vectors are exactly full) nor just above one.
    const CONNECTIONS: u32 = 6_000;
    let config = Arc::new(ConnConfig::default());
    let mut pair = Pair::new(false);
    let counted = allocation_counter::measure(|| {
        pair.open(CONNECTIONS, &config);
    });
    assert_eq!((pair.a.connections(), pair.b.connections()), (CONNECTIONS as usize, CONNECTIONS as usize));
    let bytes = u64::try_from(counted.bytes_current).unwrap() / u64::from(2 * CONNECTIONS);
    println!("{bytes} bytes per idle established connection");
    assert!(bytes <= IDLE, "{bytes} bytes per idle established connection");
}

#[test]
fn a_released_connection_in_time_wait_is_small() {
    const CONNECTIONS: u16 = 6_000;
    let config = Arc::new(ConnConfig::default());
    let mut pair = Pair::new(false);
    // A opens the connection from `port` and closes it, then B.
    let close = |pair: &mut Pair, port: u16| {
        let mut target = Target::from(SocketAddr::from(([10, 0, 0, 2], 80)));
        target.local_port = Some(port);
        let id = pair.a.connect(pair.now, target, config.clone()).unwrap();
        let exchange = |pair: &mut Pair| {
            while pass(pair.now, &mut pair.a, &mut pair.b) + pass(pair.now, &mut pair.b, &mut pair.a) > 0 {}
        };
        exchange(pair);
        pair.a.release(pair.now, id);
        exchange(pair);
        while let Some(event) = pair.b.poll_event() {
            pair.b.release(pair.now, event.conn());
        }
        while pair.a.poll_event().is_some() {}
        exchange(pair);
    };
    // What one connection needs at a time is there.
    close(&mut pair, 999);
    let counted = allocation_counter::measure(|| {
        (0..CONNECTIONS).for_each(|number| close(&mut pair, 1_000 + number));
    });
    assert_eq!((pair.a.connections(), pair.b.connections()), (0, 0));
    assert_eq!(pair.a.time_wait_records(), usize::from(CONNECTIONS) + 1);
    let bytes = u64::try_from(counted.bytes_current).unwrap() / u64::from(CONNECTIONS);
    println!("{bytes} bytes per released connection in TIME-WAIT");
    assert!((64..=TIME_WAIT).contains(&bytes), "{bytes} bytes per released connection in TIME-WAIT");
}

#[test]
fn an_idle_connection_is_small_again_after_use() {
    let mut pair = Pair::new(false);
    let config = Arc::new(ConnConfig::default());
    let data = vec![0x5a; 1 << 16];
    let (client, server) = pair.open(1, &config);
    let mut before = None;
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            pair.round(client, server, &data, pass);
        }
        // Whatever is left is read and acknowledged, and then nothing happens for a while.
        for _ in 0..1_000 {
            let timeouts = [&pair.a, &pair.b].map(|endpoint| endpoint.poll_timeout().map(|wakeup| wakeup.at));
            let Some(at) = timeouts.into_iter().flatten().min() else { break };
            pair.now = pair.now.max(at);
            pair.a.handle_timeout(pair.now);
            pair.b.handle_timeout(pair.now);
            while pass(pair.now, &mut pair.a, &mut pair.b) + pass(pair.now, &mut pair.b, &mut pair.a) > 0 {
                let mut reader = pair.b.conn(server).expect("open");
                let readable = reader.peek().map(<[u8]>::len).iter().sum();
                reader.consume(pair.now, readable);
            }
            before.get_or_insert(pair.now);
        }
    });
    assert!(counted.bytes_current < 4 * IDLE as i64, "{} bytes stay", counted.bytes_current);
}

/// An application that writes all it can costs what its windows can send soon, not the limit of its
/// buffers.
#[test]
fn fast_writers_hold_two_windows() {
    const CONNECTIONS: u32 = 100;
    let mut pair = Pair::new(false);
    let config = Arc::new(ConnConfig::default());
    let data = vec![0x5a; 1 << 16];
    let mut clients = Vec::with_capacity(CONNECTIONS as usize);
    let counted = allocation_counter::measure(|| {
        pair.open_each(CONNECTIONS, &config, |client| clients.push(client));
        for &id in &clients {
            let mut writer = pair.a.conn(id).expect("open");
            while writer.write(pair.now, &data).expect("writable") > 0 {}
            let info = writer.info();
            assert!(u64::from(info.snd_buf) <= (2 * info.snd_cwnd).max(1 << 16), "{info:?}");
            assert_eq!(info.notsent_bytes, info.snd_buf);
        }
    });
    let each = counted.bytes_current / i64::from(CONNECTIONS);
    println!("{each} bytes per connection that writes all it can");
    assert!(each <= (1 << 16) + 3 * IDLE as i64, "{each} bytes per connection that writes all it can");
}

/// An orphan's send buffer shrinks with what the peer has yet to acknowledge.
#[test]
fn an_orphan_keeps_what_is_not_acknowledged() {
    const LEFT: usize = 100_000;
    let mut pair = Pair::new(false);
    let mut config = ConnConfig::default();
    config.recv_buffer = 1 << 16;
    let config = Arc::new(config);
    let data = vec![0x5a; 1 << 16];
    let mut buf = vec![0; 1 << 16];
    let counted = allocation_counter::measure(|| {
        let (client, server) = pair.open(1, &config);
        let mut writer = pair.b.conn(server).expect("open");
        writer.set_min_send_buffer(pair.now, None);
        let mut left = 0;
        while let Ok(written @ 1..) = writer.write(pair.now, &data) {
            left += written;
        }
        assert_eq!(left, ConnConfig::default().send_buffer as usize);
        pair.b.release(pair.now, server);
        while left > LEFT {
            pair.now += Duration::from_millis(1);
            pair.b.handle_timeout(pair.now);
            while pass(pair.now, &mut pair.b, &mut pair.a) + pass(pair.now, &mut pair.a, &mut pair.b) > 0 {}
            left -= pair.a.conn(client).expect("open").read(pair.now, &mut buf).expect("open");
        }
        assert_eq!((pair.b.orphans(), pair.b.connections()), (1, 1));
    });
    // The records of both sides, and the peer's receive buffer.
    let rest = (4 * IDLE + (1 << 16)) as i64;
    let allowed = 4 * LEFT as i64 + rest;
    assert!(counted.bytes_current <= allowed, "{} bytes for {LEFT}", counted.bytes_current);
}

/// What came out of order, and will never be read, goes at once.
#[test]
fn an_orphan_has_no_receive_buffer() {
    let mut pair = Pair::new(false);
    let (client, server) = pair.open(1, &Arc::default());
    let now = pair.now;
    pair.a.conn(client).expect("open").write(now, &[0x5a; 14_000]).expect("open");
    let mut first = true;
    let sent = pair.a.transmit(now, TxBudget::UNLIMITED, |packet| {
        if !std::mem::take(&mut first) {
            pair.b.ingest(now, RxPacket::new(packet.header).with_more(packet.payload));
        }
        Ok::<(), ()>(())
    });
    assert!(sent.is_ok_and(|report| report.packets == 10));
    let info = pair.b.conn(server).expect("open").info();
    assert!(info.ooo_bytes > 12_000 && info.unread_bytes == 0, "{info:?}");
    let counted = allocation_counter::measure(|| pair.b.release(now, server));
    assert!(counted.bytes_current < -16_384 + IDLE as i64, "{counted:?}");
    assert_eq!(pair.b.orphans(), 1, "nothing was lost yet that the peer was told of");
}

/// What the endpoints say they hold is what the allocator has given them.
#[test]
fn the_account_of_memory_is_that_of_the_allocator() {
    let mut pair = Pair::new(false);
    let config = Arc::new(ConnConfig::default());
    let data = vec![0x5a; 1 << 16];
    let mut before = 0;
    let mut check = |pair: &Pair, held: i64, what: &str| {
        let charged = (pair.a.memory() + pair.b.memory()) as i64;
        println!("{what}: {charged} bytes charged of {held}");
        let spare = held / 5 + 2_048;
        assert!(charged <= held + 512 && charged + spare > held, "{what}: {charged} bytes charged of {held}");
        assert_ne!(charged, std::mem::replace(&mut before, charged), "{what} changes something");
    };
    let mut held = 0;
    let mut measure = |work: &mut dyn FnMut()| {
        held += allocation_counter::measure(work).bytes_current;
        held
    };

    let mut last = None;
    let total = measure(&mut || last = Some(pair.open(500, &config)));
    check(&pair, total, "idle connections");

    let (client, server) = last.expect("they were opened");
    let total = measure(&mut || {
        for _ in 0..50 {
            pair.round(client, server, &data, pass);
        }
    });
    check(&pair, total, "a bulk transfer");

    let now = pair.now;
    let total = measure(&mut || {
        let mut number = 0;
        while pair.a.conn(client).expect("open").write(now, &data).expect("open") > 0 {}
        let sent = pair.a.transmit(now, TxBudget::UNLIMITED, |packet| {
            number += 1;
            if number % 3 != 0 {
                pair.b.ingest(now, RxPacket::new(packet.header).with_more(packet.payload));
            }
            Ok::<(), ()>(())
        });
        assert!(sent.is_ok_and(|report| report.packets > 100));
        pass(now, &mut pair.b, &mut pair.a);
    });
    assert!(pair.b.conn(server).expect("open").info().ooo_bytes > 100_000);
    check(&pair, total, "data out of order, and SACK");

    let total = measure(&mut || {
        pair.a.abort(now, client);
        pair.a.release(now, client);
        while pass(now, &mut pair.a, &mut pair.b) + pass(now, &mut pair.b, &mut pair.a) > 0 {}
        pair.b.release(now, server);
        while pair.a.poll_event().is_some() || pair.b.poll_event().is_some() {}
    });
    check(&pair, total, "the end of one");
}

/// Chunks that the application has handed over count as what they keep from being freed, and so do
/// blocks until their last byte is read.
#[test]
fn the_account_of_chunks_is_that_of_the_allocator() {
    const CHUNK: usize = 700_000;
    let mut pair = Pair::new(true);
    let mut config = ConnConfig::default();
    (config.min_send_buffer, config.initial_recv_window) = (None, None);
    let (client, server) = pair.open(1, &Arc::new(config));
    let base = (pair.a.memory() + pair.b.memory()) as i64;
    let check = |pair: &Pair, held: i64, what: &str| {
        let charged = (pair.a.memory() + pair.b.memory()) as i64 - base;
        println!("{what}: {charged} bytes charged of {held}");
        assert!(
            (charged - held).abs() <= held.abs() / 20 + 4_096,
            "{what}: {charged} bytes charged of {held}"
        );
    };
    let mut held = 0;
    let mut measure = |work: &mut dyn FnMut()| {
        held += allocation_counter::measure(work).bytes_current;
        held
    };
    let (mut kept, mut acknowledged) = (vec![], 0);
    kept.reserve(64);

    let total = measure(&mut || {
        let now = pair.now;
        let mut chunk = Bytes::from(vec![0x5a; CHUNK]);
        let mut writer = pair.a.conn(client).expect("open");
        assert_eq!(writer.write_bytes(now, &mut chunk), Ok(CHUNK));
        while pair.a.poll_event().is_some() {}
    });
    assert!(total >= CHUNK as i64);
    check(&pair, total, "a chunk");

    // The first chunk from a ring, the others from blocks; the application drops them at once.
    let total = measure(&mut || {
        for _ in 0..8 {
            pair.now += Duration::from_millis(1);
            let now = pair.now;
            pass(now, &mut pair.a, &mut pair.b);
            let mut reader = pair.b.conn(server).expect("open");
            while reader.read_chunk(now, usize::MAX).expect("open").is_some() {}
            pass(now, &mut pair.b, &mut pair.a);
            acknowledged = pair.a.conn(client).expect("open").info().bytes_acked;
            if acknowledged > CHUNK as u64 / 2 {
                break;
            }
        }
    });
    assert!(acknowledged > CHUNK as u64 / 2 && acknowledged < CHUNK as u64, "{acknowledged}");
    check(&pair, total, "a chunk of which much is acknowledged");
    assert!(total >= CHUNK as i64, "it is held whole");

    let total = measure(&mut || {
        while pair.b.conn(server).expect("open").info().bytes_received < CHUNK as u64 {
            pair.now += Duration::from_millis(1);
            pass(pair.now, &mut pair.a, &mut pair.b);
            pass(pair.now, &mut pair.b, &mut pair.a);
            while pair.a.poll_event().is_some() {}
        }
    });
    let unread = pair.b.conn(server).expect("open").info().unread_bytes as i64;
    assert!(unread > 100_000, "{unread}");
    check(&pair, total, "blocks that wait to be read");

    // What the application keeps is not the connection's.
    let total = measure(&mut || {
        let mut reader = pair.b.conn(server).expect("open");
        while let Some(chunk) = reader.read_chunk(pair.now, usize::MAX).expect("open") {
            kept.push(chunk);
        }
        while pair.b.poll_event().is_some() {}
        pass(pair.now, &mut pair.b, &mut pair.a);
    });
    let taken: usize = kept.iter().map(Bytes::len).sum();
    assert_eq!(taken as i64, unread);
    let of_application = kept.len() as i64 * (1 << 16);
    println!("{} chunks with {taken} bytes; {total} bytes are allocated", kept.len());
    let charged = (pair.a.memory() + pair.b.memory()) as i64 - base;
    assert!(charged <= (1 << 16) + 4_096, "{charged} bytes charged");
    assert!(total <= of_application + 4_096, "{total} bytes for {of_application}");

    let total = measure(&mut || kept.clear());
    check(&pair, total, "nothing left but a block");
}
