//! What was lost, how that was found, and what was sent again needlessly.

use crate::world::{CaptureLocation, Comments, EVERYWHERE, capture, explained, scenario, share, story};
use ackline_explain::story::{Cause, LossDetection, Losses};
use ackline_tcp_core::Duration;

const BULK: &str = "[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";

fn wire(more: &str) -> String {
    format!(
        "{BULK}[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\ndelay = \"20ms\"\n\
         queue = {{ kind = \"drop-tail\", limit = \"200ms\" }}\n{more}"
    )
}

/// The same with a window that does not overflow the queue.
fn capped(more: &str) -> String {
    format!("[conn]\ncwnd_cap = \"40k\"\n{}", wire(more))
}

/// What the stack states, and what is inferred from the same capture without its statements.
fn both(lines: &str, at: CaptureLocation) -> (Losses, Losses) {
    let file = capture(&scenario(lines), 0, at, Duration::from_secs(10));
    let of = |comments| story(&file, comments).connections[0].directions[0].losses;
    (of(Comments::Kept), of(Comments::Removed))
}

#[test]
fn random_losses_are_found_as_the_stack_states() {
    let lines = wire("impairments = [{ kind = \"loss\", probability = 0.01 }]\n");
    for at in EVERYWHERE {
        let (stated, inferred) = both(&lines, at);
        assert!(stated.retransmissions > 20, "{at:?}: {stated:?}");
        assert_eq!(inferred.retransmissions, stated.retransmissions, "{at:?}");
        let differs = inferred.fast.abs_diff(stated.fast) + inferred.timeout.abs_diff(stated.timeout);
        assert!(differs * 100 <= stated.retransmissions, "{at:?}: {inferred:?}, stated {stated:?}");
        // The wire loses what it has sent: only the receiver does not see the original.
        let before = if at == CaptureLocation::Receiver { inferred.retransmissions } else { 0 };
        assert!(inferred.before.abs_diff(before) * 50 <= stated.retransmissions, "{at:?}: {inferred:?}");
    }
}

#[test]
fn an_outage_is_a_wait_for_the_timer() {
    let lines = wire("impairments = [{ kind = \"drop\", from = \"5s\", until = \"7s\" }]\n");
    for at in [CaptureLocation::Sender, CaptureLocation::Middle] {
        let connection = explained(&lines, at, Comments::Removed);
        let direction = &connection.directions[0];
        assert!(direction.losses.timeouts > 0, "{at:?}: {:?}", direction.losses);
        let stall = direction.stalls.iter().max_by_key(|stall| stall.time_ns).expect("a stall");
        assert_eq!(stall.cause, Cause::Timer, "{at:?}: {:?}", direction.stalls);
        assert!((5_000_000_000..7_500_000_000).contains(&stall.at_ns), "{at:?}: {stall:?}");
        let worst =
            direction.episodes.iter().max_by_key(|episode| episode.without_progress_ns).expect("an episode");
        assert!(worst.without_progress_ns > 2_000_000_000, "{at:?}: {worst:?}");
    }
}

#[test]
fn a_stall_of_the_path_is_a_spurious_timeout() {
    let change = "[[change]]\nat = \"5s\"\nlink = \"wire\"\nstate = \"stall\"\nfor = \"2s\"\n";
    let lines = capped(change);
    let connection = explained(&lines, CaptureLocation::Sender, Comments::Removed);
    let direction = &connection.directions[0];
    let losses = direction.losses;
    assert!(losses.timeouts > 0, "{losses:?}");
    assert_eq!(losses.spurious, losses.retransmissions, "{losses:?}");
    let episode = direction.episodes.first().expect("an episode");
    assert!(matches!(episode.found, LossDetection::Timeout | LossDetection::Probe), "{episode:?}");
    assert!(episode.without_progress_ns > 1_900_000_000, "{episode:?}");
    // Behind the queue that stood still, nothing passed.
    let connection = explained(&lines, CaptureLocation::Receiver, Comments::Removed);
    let stall = connection.directions[0].stalls.first().expect("a stall");
    assert_eq!(stall.cause, Cause::Path, "{stall:?}");
}

#[test]
fn a_short_stall_is_no_loss() {
    let change = "[[change]]\nat = \"5s\"\nlink = \"wire\"\nstate = \"stall\"\nfor = \"150ms\"\n";
    let lines = format!("[conn]\ncwnd_cap = \"40k\"\ntlp = \"off\"\n{}{change}", wire(""));
    let connection = explained(&lines, CaptureLocation::Sender, Comments::Removed);
    let direction = &connection.directions[0];
    assert_eq!(direction.losses.retransmissions, 0);
    let stall = direction.stalls.first().expect("a stall");
    assert_eq!(stall.cause, Cause::Silence, "{stall:?}");
}

#[test]
fn reordering_is_no_loss() {
    let lines = capped("impairments = [{ kind = \"reorder\", probability = 0.01, by = \"4ms\" }]\n");
    for at in EVERYWHERE {
        let connection = explained(&lines, at, Comments::Removed);
        let losses = connection.directions[0].losses;
        assert_eq!(losses.retransmissions, losses.spurious, "{at:?}: {losses:?}");
        let (there, elsewhere) = match at {
            CaptureLocation::Receiver => (losses.reordered_before, losses.reordered_after),
            _ => (losses.reordered_after, losses.reordered_before),
        };
        assert!(there > 30 && elsewhere == 0, "{at:?}: {losses:?}");
    }
}

#[test]
fn packets_that_the_path_doubles_are_no_retransmissions_of_the_sender() {
    let lines = capped("impairments = [{ kind = \"duplicate\", probability = 0.01 }]\n");
    let connection = explained(&lines, CaptureLocation::Sender, Comments::Removed);
    let losses = connection.directions[0].losses;
    assert!(losses.duplicated > 30, "{losses:?}");
    assert_eq!(losses.retransmissions, 0, "{losses:?}");
}

#[test]
fn overflow_of_the_queue_ends_slow_start_and_is_lost_before_a_capture_behind_it() {
    for at in EVERYWHERE {
        let connection = explained(&wire(""), at, Comments::Removed);
        let direction = &connection.directions[0];
        let losses = direction.losses;
        assert!(losses.fast > 0, "{at:?}: {losses:?}");
        let before = if at == CaptureLocation::Sender { 0 } else { losses.retransmissions };
        assert_eq!(losses.before, before, "{at:?}: {losses:?}");
        assert!(share(direction, Cause::Recovery) > 0.0);
    }
}
