//! What counters count: the same packets come to a socket of the kernel and to an endpoint of
//! ackline, and the same counters rise by as much.

mod client;
mod subject;

use crate::support::watchdog::Watchdog;
use ackline_runtime::testing::isolated;
use ackline_tcp_core::wire::TcpFlags;
use client::{Client, MSS};
use std::time::Duration;
use subject::{Counted, Kernel, Subject, Virtual};

const ACK: TcpFlags = TcpFlags::ACK;
const SYN: TcpFlags = TcpFlags::SYN;
const RST: TcpFlags = TcpFlags::RST;
const FIN: TcpFlags = TcpFlags::FIN;

/// Compared after each scenario.
const COUNTERS: [&str; 10] = [
    "TcpExtTCPFastRetrans",
    "TcpExtTCPSlowStartRetrans",
    "TcpExtTCPOFOQueue",
    "TcpExtTCPOFOMerge",
    "TcpExtTCPACKSkippedSynRecv",
    "TcpExtTCPACKSkippedPAWS",
    "TcpExtTCPACKSkippedSeq",
    "TcpExtTCPACKSkippedFinWait2",
    "TcpExtTCPACKSkippedTimeWait",
    "TcpExtTCPACKSkippedChallenge",
];

/// Far outside any window.
const FAR: i32 = 1 << 30;

/// Says a segment several times.
fn repeat(client: &mut Client<'_>, times: usize, flags: TcpFlags, seq: i32, ack: i32, len: usize) {
    for _ in 0..times {
        client.say_at(flags, seq, ack, len);
    }
}

/// Runs `scenario` against both, each of which counts `expected`, and nothing else of [`COUNTERS`].
fn compare(name: &str, expected: &[(&str, u64)], scenario: impl Fn(Client<'_>) + Send + Sync) {
    let name = format!("statistics::counters::{name}");
    let _watchdog = Watchdog::start(&name, Duration::from_secs(60));
    isolated(&name, || {
        let run = |subject: &mut dyn Subject| -> Vec<(&str, u64)> {
            let before = subject.counted();
            scenario(Client::new(subject));
            let after = subject.counted();
            let rise = |name: &'static str| (name, rise(&before, &after, name));
            COUNTERS.into_iter().map(rise).filter(|(_, rise)| *rise > 0).collect()
        };
        let kernel = run(&mut Kernel::start()?);
        assert_eq!(kernel, expected, "the kernel");
        assert_eq!(run(&mut Virtual::start()), expected, "ackline");
        Ok(())
    });
}

fn rise(before: &Counted, after: &Counted, name: &str) -> u64 {
    after[name] - before.get(name).copied().unwrap_or(0)
}

#[test]
fn a_repeated_syn() {
    compare("a_repeated_syn", &[("TcpExtTCPACKSkippedSynRecv", 3)], |mut client| {
        repeat(&mut client, 5, SYN, 0, 0, 0);
        for _ in 0..2 {
            assert!(client.hear().flags.contains(SYN.union(ACK)));
        }
    });
}

#[test]
fn segments_outside_the_window_of_a_handshake() {
    let name = "segments_outside_the_window_of_a_handshake";
    compare(name, &[("TcpExtTCPACKSkippedSynRecv", 4)], |mut client| {
        client.begin();
        repeat(&mut client, 5, ACK, FAR, 0, 0);
    });
}

#[test]
fn old_timestamps() {
    compare("old_timestamps", &[("TcpExtTCPACKSkippedPAWS", 4)], |client| {
        let mut client = client.stamped();
        client.open();
        client.clock = Some(1_000_000);
        repeat(&mut client, 5, ACK, 0, 0, 0);
        // Segments with data are answered each time.
        repeat(&mut client, 5, ACK, 0, 0, 100);
    });
}

#[test]
fn segments_outside_the_window() {
    compare("segments_outside_the_window", &[("TcpExtTCPACKSkippedSeq", 4)], |mut client| {
        client.open();
        repeat(&mut client, 5, ACK, FAR, 0, 0);
        repeat(&mut client, 5, ACK, FAR, 0, 100);
    });
}

#[test]
fn probes_of_the_peer() {
    compare("probes_of_the_peer", &[("TcpExtTCPACKSkippedSeq", 4)], |mut client| {
        client.open();
        repeat(&mut client, 5, ACK, -1, 0, 0);
    });
}

#[test]
fn syns_on_a_connection() {
    compare("syns_on_a_connection", &[("TcpExtTCPACKSkippedChallenge", 4)], |mut client| {
        client.open();
        repeat(&mut client, 5, SYN, 10, 0, 0);
    });
}

#[test]
fn guessed_resets() {
    compare("guessed_resets", &[("TcpExtTCPACKSkippedChallenge", 4)], |mut client| {
        client.open();
        repeat(&mut client, 5, RST, 10, 0, 0);
        repeat(&mut client, 5, RST, FAR, 0, 0);
    });
}

#[test]
fn acks_that_are_too_old() {
    compare("acks_that_are_too_old", &[("TcpExtTCPACKSkippedChallenge", 4)], |mut client| {
        client.open();
        repeat(&mut client, 5, ACK, 0, -FAR, 0);
    });
}

#[test]
fn segments_outside_the_window_of_a_connection_in_fin_wait_2() {
    let name = "segments_outside_the_window_of_a_connection_in_fin_wait_2";
    compare(name, &[("TcpExtTCPACKSkippedSeq", 4)], |mut client| {
        client.open();
        client.subject.shut();
        client.acknowledge_fin();
        repeat(&mut client, 5, ACK, FAR, 0, 0);
    });
}

#[test]
fn segments_outside_the_window_of_an_orphan_in_fin_wait_2() {
    let name = "segments_outside_the_window_of_an_orphan_in_fin_wait_2";
    compare(name, &[("TcpExtTCPACKSkippedFinWait2", 4)], |mut client| {
        client.open();
        client.subject.release();
        client.acknowledge_fin();
        repeat(&mut client, 5, ACK, FAR, 0, 0);
    });
}

#[test]
fn old_timestamps_for_an_orphan_in_fin_wait_2() {
    let name = "old_timestamps_for_an_orphan_in_fin_wait_2";
    compare(name, &[("TcpExtTCPACKSkippedFinWait2", 4)], |client| {
        let mut client = client.stamped();
        client.open();
        client.subject.release();
        client.acknowledge_fin();
        client.clock = Some(1_000_000);
        repeat(&mut client, 5, ACK, 0, 0, 0);
    });
}

/// Brings the subject into TIME-WAIT.
fn close(client: &mut Client<'_>) {
    client.open();
    client.subject.release();
    client.acknowledge_fin();
    client.say(FIN.union(ACK));
    client.seq += 1;
    client.hear_until(|heard| heard.flags == ACK);
}

#[test]
fn segments_outside_the_window_in_time_wait() {
    compare(
        "segments_outside_the_window_in_time_wait",
        &[("TcpExtTCPACKSkippedTimeWait", 4)],
        |mut client| {
            close(&mut client);
            repeat(&mut client, 5, ACK, -FAR, 0, 0);
            repeat(&mut client, 5, ACK, -FAR, 0, 100);
        },
    );
}

#[test]
fn old_timestamps_in_time_wait() {
    compare("old_timestamps_in_time_wait", &[("TcpExtTCPACKSkippedTimeWait", 4)], |client| {
        let mut client = client.stamped();
        close(&mut client);
        client.clock = Some(1_000_000);
        repeat(&mut client, 5, ACK, 0, 0, 0);
    });
}

#[test]
fn old_syns_in_time_wait() {
    compare("old_syns_in_time_wait", &[("TcpExtTCPACKSkippedTimeWait", 4)], |mut client| {
        close(&mut client);
        repeat(&mut client, 5, SYN, -FAR, 0, 0);
    });
}

#[test]
fn data_out_of_order_that_comes_again() {
    let expected = [("TcpExtTCPOFOQueue", 11), ("TcpExtTCPOFOMerge", 7)];
    compare("data_out_of_order_that_comes_again", &expected, |mut client| {
        client.open();
        let mut data = |start, len| client.say_at(ACK, start, 0, len);
        data(1_000, 100);
        // The same, a part of it, and what overlaps it and the next one.
        data(1_000, 100);
        data(1_050, 20);
        data(1_080, 100);
        data(1_170, 50);
        // Two more, and what covers each of them.
        data(3_000, 100);
        data(3_500, 100);
        data(2_900, 300);
        data(3_400, 300);
        // What covers both.
        data(2_800, 1_200);
        data(2_800, 1_200);
    });
}

#[test]
fn retransmissions_after_a_timeout() {
    const SEGMENTS: u32 = 10;
    compare("retransmissions_after_a_timeout", &[("TcpExtTCPSlowStartRetrans", 9)], |client| {
        let mut client = client.plain();
        client.open();
        client.subject.write(usize::from(MSS) * SEGMENTS as usize);
        let (first, end) = (client.ack, client.ack + u32::from(MSS) * SEGMENTS);
        // None of them arrives, until the first comes again.
        let mut came = 0;
        while came < 2 {
            came += u32::from(client.hear().seq == first);
        }
        // From here on each that is missing arrives, and is acknowledged.
        client.ack = first + u32::from(MSS);
        client.say(ACK);
        while client.ack != end {
            let heard = client.hear();
            assert!(heard.seq.le(client.ack), "{heard:?} after a hole");
            if heard.seq == client.ack {
                client.ack += heard.len;
                client.say(ACK);
            }
        }
    });
}
