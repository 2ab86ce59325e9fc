//! TCP without I/O: two hosts in one process and in virtual time, 20 ms apart, no threads, no
//! clock, no tokio.
//!
//! The loop in `main` is the whole driving contract: give inputs, all stamped with the same
//! instant; then drain `transmit`, then `poll_event`; then sleep until `poll_timeout` or the next
//! input. Here, sleeping is an assignment.
//!
//! `cargo run --example sans_io`

use ackline::Registry;
use ackline::core::{
    AcceptConfig, Duration, Endpoint, EndpointConfig, Event, Instant, ListenOn, RxPacket, TxBudget,
};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const DELAY: Duration = Duration::from_millis(20);
const SIZE: usize = 1 << 20;

/// Packets on their way to a host, with the instant of their arrival.
type Wire = VecDeque<(Instant, Vec<u8>)>;

fn host(address: IpAddr, seed: u8) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.addresses.push(address);
    Endpoint::new(config, Box::new(ackline::core::policy::builtin::Fifo::default()), [seed; 32])
}

fn transmit(from: &mut Endpoint, now: Instant, wire: &mut Wire) {
    let sent = from.transmit(now, TxBudget::UNLIMITED, |packet| {
        wire.push_back((now + DELAY, [packet.header, packet.payload[0], packet.payload[1]].concat()));
        Ok::<_, Infallible>(())
    });
    sent.unwrap_or_else(|never| match never {});
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = SocketAddr::from(([10, 0, 0, 2], 80));
    let mut hosts = [host([10, 0, 0, 1].into(), 1), host(server.ip(), 2)];
    let mut wires = [Wire::new(), Wire::new()];
    let mut now = Instant::ZERO;
    let config = Arc::new(Registry::default().conn_config());
    hosts[1].listen(now, ListenOn::Address(server), AcceptConfig::new(config.clone()))?;
    hosts[0].connect(now, server.into(), config)?;

    let data: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8).collect();
    let (mut written, mut received, mut buffer) = (0, Vec::new(), [0; 65_536]);
    loop {
        for (side, tcp) in hosts.iter_mut().enumerate() {
            while wires[side].front().is_some_and(|(at, _)| *at <= now)
                && let Some((_, packet)) = wires[side].pop_front()
            {
                tcp.ingest(now, RxPacket::new(&packet));
            }
            tcp.handle_timeout(now);
            transmit(tcp, now, &mut wires[1 - side]);
            while let Some(event) = tcp.poll_event() {
                println!("{now:?} host {side}: {event:?}");
                let Some(mut conn) = tcp.conn(event.conn()) else { continue };
                match event {
                    Event::Connected(_) | Event::Writable(_) => {
                        written += conn.write(now, &data[written..])?;
                        if written == SIZE {
                            conn.shutdown(now);
                        }
                    }
                    Event::Readable(_) => {
                        while let n @ 1.. = conn.read(now, &mut buffer)? {
                            received.extend_from_slice(&buffer[..n]);
                        }
                        if conn.at_end() {
                            conn.shutdown(now);
                        }
                    }
                    Event::Closed { conn, .. } => tcp.release(now, conn),
                    _ => {}
                }
            }
            transmit(tcp, now, &mut wires[1 - side]); // what the application has written
        }
        let arrivals = wires.iter().filter_map(|wire| wire.front().map(|(at, _)| *at));
        let timeouts = hosts.iter().filter_map(|tcp| tcp.poll_timeout().map(|wakeup| wakeup.at));
        match arrivals.chain(timeouts).min() {
            Some(next) => now = next,
            None => break, // nothing will ever happen again: TIME-WAIT is over too
        }
    }
    assert_eq!(received, data);
    println!("{} bytes arrived as they were sent", received.len());
    Ok(())
}
