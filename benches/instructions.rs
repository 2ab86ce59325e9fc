//! Bulk transfer in memory through an egress scheduler, or connections of one byte, a given number
//! of times: for counting instructions, which other work on the machine does not change.
//!
//! ```text
//! cargo bench --bench instructions --no-run        # says where the program is
//! for batches in 200 1200; do valgrind --tool=callgrind --callgrind-out-file=$batches.out PROGRAM kalampoukas $batches; done
//! callgrind_annotate 1200.out        # which functions take them
//! ```
//!
//! The difference, divided by 1000, is what both ends take for a batch of 16 segments of 1,460
//! bytes and one ACK. With `super` as a third argument a batch is a super-packet of 44 segments and
//! its ACK; with `turn`, a segment of one byte that is acknowledged at once, which is what a turn of
//! both ends costs whatever it carries; with `buffers`, segments have timestamps and lie in buffers
//! of their own between the ends, and with `buffers-checksums`, checksums too, both for `smoltcp`
//! in place of a scheduler as well; with `open`, a connection that is opened, carries one byte and
//! is closed. A fourth argument names the congestion control; without it there is NewReno. The copies
//! of the payload are inside `memcpy`, which valgrind counts byte by byte.

#[path = "support/ours.rs"]
#[expect(dead_code, reason = "other benches use the rest")]
mod ours;
#[path = "support/smol.rs"]
mod smol;

use ackline::Registry;
use ackline::core::config::{ConnConfig, Target};
use ackline::core::events::Event;
use ackline::core::policy::Policies;
use std::net::SocketAddr;
use std::sync::Arc;

fn main() {
    // Cargo adds options of its own.
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let spec = args.next().unwrap_or_else(|| ackline::registry::DEFAULT_SCHED.to_owned());
    let batches: u32 = args.next().map_or(1_000, |text| text.parse().expect("a number of batches"));
    let what = args.next().unwrap_or_default();
    let super_packets = what == "super";
    let (buffers, checksums) = (what.starts_with("buffers"), what == "buffers-checksums");
    if spec == "smoltcp" {
        let mut pair = smol::Pair::new(checksums, buffers, 16 * 1_460);
        pair.warm_up();
        (0..batches).for_each(|_| _ = pair.batch());
        return;
    }
    let make = Registry::default().sched(&spec).unwrap_or_else(|error| panic!("{error}"));
    let link = ours::Link { checksums, super_packets, buffers };
    let bytes = match what.as_str() {
        "super" => 44 * 1_460,
        "turn" => 1,
        _ => 16 * 1_460,
    };
    let mut policies = Policies::default();
    if what == "turn" {
        policies.ack = Registry::default().ack("immediate").unwrap_or_else(|error| panic!("{error}"));
    }
    if let Some(cc) = args.next() {
        policies.cc = Registry::default().cc(&cc).unwrap_or_else(|error| panic!("{error}"));
    }
    let mut pair = ours::Pair::scheduled(link, bytes, policies, &*make);
    if what == "open" {
        let config = Arc::new(ConnConfig::default());
        (0..batches).for_each(|_| open(&mut pair, config.clone()));
        return;
    }
    pair.warm_up();
    for _ in 0..batches {
        pair.batch();
    }
}

/// Another connection: the client opens it and sends one byte, the server closes, then the client.
fn open(pair: &mut ours::Pair, config: Arc<ConnConfig>) {
    let target = Target::new(SocketAddr::new(ours::SERVER, ours::PORT));
    let from = pair.client.connect(pair.now, target, config).expect("there is an address");
    pair.settle();
    let accepted = std::iter::from_fn(|| pair.server.poll_event()).find_map(|event| match event {
        Event::Accepted { conn, .. } => Some(conn),
        _ => None,
    });
    let to = accepted.expect("the handshake is over");
    pair.client.conn(from).expect("it lives").write(pair.now, &[7]).expect("it is open");
    pair.settle();
    assert_eq!(pair.server.conn(to).expect("it lives").read(pair.now, &mut [0]), Ok(1));
    pair.server.release(pair.now, to);
    pair.settle();
    pair.client.release(pair.now, from);
    pair.settle();
    while pair.server.poll_event().is_some() {}
    while pair.client.poll_event().is_some() {}
}
