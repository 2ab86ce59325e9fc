//! Chunks: memory that the application shares with a connection, or takes from it.

use crate::net::{A, B, Link, Net, Plan, Stream, bytes_from, chunk_from, socket};
use ackline_tcp_core::error::{ConnError, StreamError};
use ackline_tcp_core::{ConnConfig, ConnId, Duration, State};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

const LONG: Duration = Duration::from_secs(3_600);

/// A chunk of the stream's bytes from 0 on, and what counts its owners.
fn chunk(len: usize) -> (Bytes, Arc<Bytes>) {
    struct Owner(Arc<Bytes>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let memory = Arc::new(chunk_from(0, len));
    assert_eq!(memory.len(), len);
    (Bytes::from_owner(Owner(memory.clone())), memory)
}

/// The two ends of a connection between hosts whose applications do nothing.
fn open(net: &mut Net, config: &ConnConfig) -> [ConnId; 2] {
    let idle = Plan { send: u64::MAX, read_size: 0 };
    net.hosts[B].serve = idle;
    net.listen(B, 80, config.clone());
    let client = net.connect(A, socket(B, 80), config.clone(), idle);
    // Nobody writes or reads for them.
    net.hosts[A].streams.clear();
    net.run_until(LONG, |net| !net.hosts[B].streams.is_empty());
    let server = *net.hosts[B].streams.keys().next().expect("it was accepted");
    net.hosts[B].streams.clear();
    net.run(Duration::from_secs(1));
    [client, server]
}

fn transfer(mut net: Net, config: &ConnConfig, seed: u64, up: u64, down: u64) -> Net {
    for host in &mut net.hosts {
        host.mix = Some(seed);
    }
    net.hosts[B].serve = Plan::send(down);
    net.listen(B, 80, config.clone());
    net.connect(A, socket(B, 80), config.clone(), Plan::send(up));
    let ended = |stream: &Stream| stream.ended && stream.written == stream.plan.send;
    let done = net.run_until(LONG, |net| {
        net.hosts.iter().all(|host| host.streams.len() == 1 && host.streams.values().all(ended))
    });
    assert!(done, "stuck at {:?}: {:#?}", net.now, net.hosts.each_ref().map(|host| &host.streams));
    assert_eq!((net.stream(B).read, net.stream(A).read), (up, down));
    net
}

#[test]
fn a_stream_of_chunks_and_copies_arrives_whatever_the_link_does() {
    let clean = Link::default();
    let bad = Link { loss: 30, duplicates: 20, late: 50, refused: 50, ..clean };
    let slow = Link { loss: 10, serialise: Some(Duration::from_micros(20)), ..clean };
    let mut repeated = 0;
    for seed in 0..12 {
        let link = [clean, bad, slow][seed as usize % 3];
        let net = if seed % 2 == 0 { Net::new(seed, link) } else { Net::offloaded(seed, link) };
        let mut config = ConnConfig::default();
        config.sack = seed % 4 < 3;
        let net = transfer(net, &config, seed, 3_000_000, 500_000);
        repeated += net.hosts[A].endpoint.counters().tcp_retrans_segs;
    }
    assert!(repeated > 50, "{repeated} retransmissions");
}

#[test]
fn a_stream_of_chunks_arrives_with_little_memory_and_small_segments() {
    for seed in 100..104 {
        let configs = [A, B].map(|host| {
            let mut config = crate::net::host_config(host);
            config.max_memory = Some(400_000);
            config.mtu = [576, 9_000][seed as usize % 2];
            config
        });
        let link = Link { loss: 20, late: 20, ..Link::default() };
        let fifo = || Box::new(ackline_tcp_core::policy::builtin::Fifo::default()) as _;
        let net = Net::with(seed, link, configs, fifo);
        transfer(net, &ConnConfig::default(), seed, 1_000_000, 300_000);
    }
}

#[test]
fn packets_borrow_from_the_chunk_until_it_is_acknowledged() {
    let mut net = Net::offloaded(7, Link::default());
    let [client, server] = open(&mut net, &ConnConfig::default());
    let (mut data, owners) = chunk(400_000);
    let place: Range<*const u8> = data.as_ptr_range();
    let (mut sent, mut accepted) = (0, 0);
    let mut received = vec![];
    while accepted < 400_000 || received.len() < 400_000 {
        let now = net.now;
        accepted += net.endpoint(A).conn(client).unwrap().write_bytes(now, &mut data).unwrap();
        assert_eq!(data.len(), 400_000 - accepted, "what is left starts where it stopped");
        let mut wires = vec![];
        net.endpoint(A)
            .transmit(now, ackline_tcp_core::TxBudget::UNLIMITED, |packet| {
                for slice in packet.payload.iter().filter(|slice| !slice.is_empty()) {
                    assert!(place.contains(&slice.as_ptr()), "it is not a copy");
                    sent += slice.len();
                }
                wires.push(crate::net::Wire::of(&packet));
                Ok::<(), ()>(())
            })
            .unwrap();
        for wire in wires {
            net.hosts[B].endpoint.ingest(now, wire.rx());
        }
        let mut reader = net.endpoint(B).conn(server).unwrap();
        while let Some(chunk) = reader.read_chunk(now, usize::MAX).unwrap() {
            received.extend_from_slice(&chunk);
        }
        net.run(Duration::from_millis(20));
    }
    assert!(received == chunk_from(0, 400_000));
    assert!(sent > 100_000, "{sent} bytes did not wait for an ACK");
    drop(data);
    net.run(Duration::from_secs(1));
    assert_eq!(Arc::strong_count(&owners), 1, "all is acknowledged");
}

#[test]
fn a_chunk_larger_than_the_send_buffer_is_taken_in_part() {
    let mut net = Net::new(8, Link::default());
    let mut config = ConnConfig::default();
    (config.send_buffer, config.min_send_buffer) = (100_000, None);
    let [client, _] = open(&mut net, &config);
    let now = net.now;
    let (mut data, owners) = chunk(500_000);
    let mut conn = net.endpoint(A).conn(client).unwrap();
    assert_eq!(conn.write_bytes(now, &mut Bytes::new()), Ok(0), "an empty one is nothing");
    assert!(conn.is_writable());
    assert_eq!(conn.write_bytes(now, &mut data), Ok(100_000));
    assert_eq!((data.len(), &data[..9]), (400_000, &bytes_from(100_000 % 65_521)[..9]));
    assert_eq!(conn.write_bytes(now, &mut data), Ok(0));
    assert_eq!((data.len(), conn.write_space(), conn.is_writable()), (400_000, 0, false));
    drop(data);
    assert_eq!(Arc::strong_count(&owners), 2, "the connection holds it");
    conn.abort(now);
    assert_eq!(Arc::strong_count(&owners), 1, "a reset frees it");
    let mut conn = net.endpoint(A).conn(client).unwrap();
    let mut data = Bytes::from_static(b"late");
    let error = conn.write_bytes(now, &mut data);
    assert_eq!((error, data.len()), (Err(StreamError::Connection(ConnError::Aborted)), 4));
}

#[test]
fn a_chunk_may_be_written_while_connecting_and_not_after_closing() {
    let mut net = Net::new(9, Link::default());
    net.hosts[B].serve = Plan { send: u64::MAX, read_size: 0 };
    net.listen(B, 80, ConnConfig::default());
    let client = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 0 });
    net.hosts[A].streams.clear();
    let now = net.now;
    let mut conn = net.endpoint(A).conn(client).unwrap();
    assert_eq!(conn.state(), State::SynSent);
    assert_eq!(conn.read_chunk(now, 100), Err(StreamError::NotConnected));
    let (mut data, owners) = chunk(70_000);
    let early = conn.write_bytes(now, &mut data).expect("it waits for the handshake");
    let mut conn = net.endpoint(A).conn(client).unwrap();
    conn.shutdown(now);
    assert_eq!(conn.write_bytes(now, &mut data), Err(StreamError::SendClosed));
    drop(data);
    net.run(Duration::from_secs(1));
    assert_eq!(Arc::strong_count(&owners), 1);
    let server = *net.hosts[B].streams.keys().next().unwrap();
    let now = net.now;
    let mut conn = net.endpoint(B).conn(server).unwrap();
    let mut read = 0;
    while let Some(chunk) = conn.read_chunk(now, 9_999).unwrap() {
        assert!(chunk.len() <= 9_999 && chunk == bytes_from(read)[..chunk.len()]);
        read += chunk.len() as u64;
    }
    assert_eq!((read, conn.at_end()), (early as u64, true));
    assert_eq!(conn.read_chunk(now, 9_999), Ok(None), "the end stays the end");
}

#[test]
fn what_arrived_before_a_reset_is_read_before_the_error() {
    let mut net = Net::new(10, Link::default());
    let [client, server] = open(&mut net, &ConnConfig::default());
    let now = net.now;
    net.write(A, client, &bytes_from(0)[..40_000]);
    net.run(Duration::from_secs(1));
    net.endpoint(A).conn(client).unwrap().abort(now);
    for wire in net.intercept(A) {
        net.inject(B, &wire.bytes);
    }
    let now = net.now;
    let mut conn = net.endpoint(B).conn(server).unwrap();
    let mut read = 0;
    let error = loop {
        match conn.read_chunk(now, 30_000) {
            Ok(Some(chunk)) => {
                assert_eq!(chunk, bytes_from(read)[..chunk.len()]);
                read += chunk.len() as u64;
            }
            Ok(None) => panic!("the stream has not ended"),
            Err(error) => break error,
        }
    };
    assert_eq!((read, error), (40_000, StreamError::Connection(ConnError::Reset)));
    assert_eq!(conn.read_chunk(now, 0), Ok(None));
}
