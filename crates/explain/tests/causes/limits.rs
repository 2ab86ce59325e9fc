//! What limits a sender.

use crate::world::{CaptureLocation, Comments, EVERYWHERE, explained, share};
use ackline_explain::story::{Cause, Connection, PathPosition, SlowStartEnd};

const BULK: &str = "[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";

fn client(connection: &Connection) -> &ackline_explain::story::Direction {
    &connection.directions[0]
}

#[test]
fn the_place_of_the_capture_is_told_from_the_handshake() {
    for (at, place) in [
        (CaptureLocation::Sender, PathPosition::Client),
        (CaptureLocation::Middle, PathPosition::Middle),
        (CaptureLocation::Receiver, PathPosition::Server),
    ] {
        assert_eq!(explained(BULK, at, Comments::Removed).vantage.place, place, "{at:?}");
    }
}

#[test]
fn a_small_receive_buffer_is_the_receivers_window() {
    let lines = format!("[conn]\nrecv_buffer = \"24k\"\n{BULK}");
    for at in EVERYWHERE {
        let connection = explained(&lines, at, Comments::Removed);
        let window = share(client(&connection), Cause::ReceiverWindow);
        assert!(window > 0.7, "{at:?}: {:?}", client(&connection).time);
        assert_eq!(client(&connection).window.expect("windows").zero, 0);
    }
}

#[test]
fn writes_at_intervals_are_the_application() {
    let lines =
        "[[app]]\nkind = \"writes\"\nfrom = \"a\"\nto = \"b\"\nsize = \"5000\"\ninterval = \"100ms\"\n";
    for at in EVERYWHERE {
        let connection = explained(lines, at, Comments::Removed);
        let application = share(client(&connection), Cause::Application);
        assert!(application > 0.9, "{at:?}: {:?}", client(&connection).time);
    }
}

#[test]
fn requests_are_the_application_at_both_ends() {
    let lines = "[[app]]\nkind = \"request\"\nfrom = \"a\"\nto = \"b\"\nrequest = 300\nresponse = 3000\nthink = \"50ms\"\n";
    for at in EVERYWHERE {
        let connection = explained(lines, at, Comments::Removed);
        for direction in &connection.directions {
            let application = share(direction, Cause::Application);
            assert!(application > 0.9, "{at:?}: {:?}", direction.time);
        }
    }
}

#[test]
fn a_bulk_transfer_is_the_congestion_window_and_its_own_queue() {
    let connection = explained(BULK, CaptureLocation::Sender, Comments::Removed);
    let direction = client(&connection);
    let open = share(direction, Cause::CongestionWindow) + share(direction, Cause::Recovery);
    assert!(open > 0.95, "{:?}", direction.time);
    let rtt = direction.rtt.expect("round trips");
    // 40 ms, and a queue of up to 100 ms.
    assert!((40_000_000..42_000_000).contains(&rtt.min_ns), "{rtt:?}");
    assert!(rtt.own_queue_ns.is_some_and(|queue| (40_000_000..101_000_000).contains(&queue)), "{rtt:?}");
    // From the middle the queue is before the capture.
    let connection = explained(BULK, CaptureLocation::Middle, Comments::Removed);
    let direction = client(&connection);
    let (before, behind) = (direction.rtt_before.expect("timestamps"), direction.rtt.expect("round trips"));
    assert!(before.own_queue_ns.is_some_and(|queue| queue > 40_000_000), "{before:?}");
    assert_eq!(behind.own_queue_ns, None, "{behind:?}");
}

#[test]
fn a_reader_that_pauses_makes_zero_windows() {
    let lines =
        format!("[conn]\nrecv_buffer = \"32k\"\n{BULK}reader = {{ bytes = \"32k\", interval = \"1s\" }}\n");
    for at in EVERYWHERE {
        let connection = explained(&lines, at, Comments::Removed);
        let direction = client(&connection);
        // What is left of the window before it is zero is less than a segment.
        let window = share(direction, Cause::ZeroWindow) + share(direction, Cause::ReceiverWindow);
        assert!(window > 0.9, "{at:?}: {:?}", direction.time);
        assert!(share(direction, Cause::ZeroWindow) > 0.6, "{at:?}: {:?}", direction.time);
        assert!(direction.window.is_some_and(|window| window.zero >= 8), "{at:?}: {:?}", direction.window);
        assert!(direction.stalls.iter().any(|stall| stall.cause == Cause::ZeroWindow), "{at:?}");
    }
}

/// A paced window is spread over a round trip with a gain, so a part of it follows ACKs all the
/// same.
#[test]
fn pacing_is_seen_at_the_sender_alone() {
    let pacing = |pacing, at| {
        let lines = format!("[conn]\ncc = \"cubic:pacing={pacing}\"\n{BULK}");
        share(client(&explained(&lines, at, Comments::Removed)), Cause::Pacing)
    };
    assert!(pacing("on", CaptureLocation::Sender) > 0.3);
    assert!(pacing("off", CaptureLocation::Sender) < 0.01);
    assert_eq!(pacing("on", CaptureLocation::Middle), 0.0);
    assert_eq!(pacing("on", CaptureLocation::Receiver), 0.0);
}

#[test]
fn marks_end_slow_start() {
    let lines = format!(
        "[conn]\necn = \"classic\"\n{BULK}[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\ndelay = \"20ms\"\n\
         queue = {{ kind = \"codel\", limit = \"200ms\", action = \"mark\" }}\n"
    );
    for at in EVERYWHERE {
        let connection = explained(&lines, at, Comments::Removed);
        let direction = client(&connection);
        assert!(direction.marks.echoes > 0 && direction.marks.reductions > 0, "{:?}", direction.marks);
        // The queue is behind a capture at the sender.
        assert_eq!(
            direction.marks.marked > 0,
            at != CaptureLocation::Sender,
            "{at:?}: {:?}",
            direction.marks
        );
        assert_eq!(direction.slow_start.map(|it| it.end), Some(SlowStartEnd::Mark), "{at:?}");
        assert_eq!(direction.losses.retransmissions, 0);
    }
}

/// RFC 9768: three bits of each ACK are a count, and neither an echo nor the sender's reduction.
#[test]
fn accurate_ecn_is_told_as_counts() {
    let lines = format!(
        "[conn]\necn = \"accurate\"\ncc = \"prague\"\n{BULK}[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\n\
         delay = \"20ms\"\nqueue = {{ kind = \"dualpi2\", limit = \"200ms\" }}\n"
    );
    for at in EVERYWHERE {
        let connection = explained(&lines, at, Comments::Removed);
        let (syn, answer) = (connection.handshake.syn.unwrap(), connection.handshake.syn_ack.unwrap());
        assert!(syn.accurate_ecn && answer.accurate_ecn, "{syn:?} {answer:?}");
        assert_eq!(answer.syn_arrived_as, Some("Not-ECT"));
        let direction = client(&connection);
        let marks = direction.marks;
        assert_eq!((marks.echoes, marks.reductions), (0, 0), "{at:?}: ACE is no echo");
        let told = marks.accurate.unwrap();
        assert!(told.told > 10 && told.options > 100, "{at:?}: {told:?}");
        assert!(
            told.ect1_bytes > 1_000_000 && told.ce_bytes > 10_000 && told.ect0_bytes == 0,
            "{at:?}: {told:?}"
        );
        if at == CaptureLocation::Receiver {
            // All that passed with a mark arrived, but for what the last ACKs would have told.
            assert!(marks.marked.abs_diff(told.told) <= 8, "{marks:?}");
        }
        let text = ackline_explain::text::page(&connection);
        assert!(text.contains("accurate ECN, the SYN arrived as Not-ECT"), "{text}");
        assert!(text.contains("accurate: ") && text.contains("ACE tells of "), "{text}");
    }
}
