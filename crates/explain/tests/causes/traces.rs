//! Traces of the same hosts: what the stack states has to be told, and agree with captures of the
//! same run.

use crate::world::{CaptureLocation, Comments, capture, no_path_changes, scenario, share, story};
use ackline_explain::story::{
    Anomaly, Cause, Connection, Direction, LossDetection, PathPosition, SlowStartEnd, Source,
};
use ackline_explain::{Explainer, Limits, Story, text};
use ackline_lab::simulation;
use ackline_netsim::{NodeId, Observer};
use ackline_observe::trace::{Reader, Trace, TraceOptions};
use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::{ConnId, Duration, Instant};

const BULK: &str = "[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
/// Ends before the 10 s of a run.
const FILE: &str = "[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"3M\"\n";

/// Which host writes a trace.
#[derive(Clone, Copy, Debug)]
enum Host {
    Sender,
    Receiver,
}

/// Passes a host's events to the tracer of a file.
#[derive(Debug)]
struct OneHost(NodeId, Box<dyn Tracer>);

impl Observer for OneHost {
    fn needs_traces(&self) -> bool {
        true
    }

    fn trace(&mut self, now: Instant, node: NodeId, conn: ConnId, event: &TraceEvent) {
        if node == self.0 {
            self.1.trace(now, conn, event);
        }
    }
}

/// The trace of 10 s of a run.
fn trace(lines: &str, host: Host) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.qlog");
    let trace = Trace::start(&path, TraceOptions::new("sim", Instant::ZERO, 0)).expect("a file");
    let mut sim = simulation(&scenario(lines), 0, 0).expect("it was parsed");
    let node = sim.view().hosts()[host as usize];
    sim.add_observer(OneHost(node, trace.tracer()));
    sim.run_until(Instant::ZERO + Duration::from_secs(10));
    let summary = trace.finish();
    assert_eq!((summary.dropped, summary.unwritten), (0, 0));
    std::fs::read(path).expect("a file")
}

fn explained(file: &[u8]) -> Story {
    let mut explainer = Explainer::new(Limits::default());
    explainer.read_trace(&mut Reader::new(file).expect("a trace")).expect("memory");
    explainer.finish()
}

fn of_sender(lines: &str) -> Connection {
    let story = explained(&trace(lines, Host::Sender));
    let connection = story.connections.into_iter().next().expect("a connection");
    no_path_changes(&connection);
    connection
}

fn wire(more: &str) -> String {
    format!(
        "[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\ndelay = \"20ms\"\n\
         queue = {{ kind = \"drop-tail\", limit = \"200ms\" }}\n{more}"
    )
}

/// A window that does not overflow the queue.
fn capped(more: &str) -> String {
    format!("[conn]\ncwnd_cap = \"40k\"\n{BULK}{}", wire(more))
}

/// No time is without a cause, and none counts twice.
fn adds_up(direction: &Direction) {
    let sum: u64 = direction.time.iter().map(|share| share.time_ns).sum();
    assert!(sum <= direction.last_at_ns - direction.first_at_ns, "{:?}", direction.time);
    assert!(sum * 10 >= (direction.last_at_ns - direction.first_at_ns) * 9, "{:?}", direction.time);
}

#[test]
fn random_losses_are_those_of_the_capture_of_the_same_run() {
    let lines = format!("{BULK}{}", wire("impairments = [{ kind = \"loss\", probability = 0.01 }]\n"));
    let traced = of_sender(&lines);
    let file = capture(&scenario(&lines), 0, CaptureLocation::Sender, Duration::from_secs(10));
    let captured = &story(&file, Comments::Kept).connections[0];
    let (ours, theirs) = (&traced.directions[0], &captured.directions[0]);
    assert_eq!((traced.source, traced.vantage.place), (Source::Trace, PathPosition::Client));
    assert_eq!((traced.client, traced.server), (captured.client, captured.server));
    // Offload joins packets: a trace has what left the stack, a capture what is on the wire.
    assert!(ours.packets < theirs.packets && ours.losses.retransmissions <= theirs.losses.retransmissions);
    let counts = |it: &Direction| (it.bytes, it.losses.bytes, it.losses.segments, it.losses.timeouts);
    assert_eq!(counts(ours), counts(theirs));
    assert_eq!(ours.losses.stated, ours.losses.retransmissions);
    assert!(ours.losses.fast > 20);
    let stated = ours.congestion.expect("stated");
    assert!(stated.lost_bytes >= ours.losses.bytes - ours.losses.probes * 1_460, "{stated:?}");
    assert!(stated.recovery_ns > 0 && share(ours, Cause::Recovery) > 0.1, "{:?}", ours.time);
    assert_eq!(ours.slow_start.map(|it| it.end), Some(SlowStartEnd::Loss));
    adds_up(ours);
    // The same distribution, but for round trips of segments that SACK reported.
    let (ours, theirs) = (ours.rtt.expect("samples"), theirs.rtt.expect("samples"));
    assert_eq!(ours.min_ns, theirs.min_ns);
    assert!(ours.median_ns.abs_diff(theirs.median_ns) * 10 < theirs.median_ns, "{ours:?} {theirs:?}");
}

#[test]
fn an_outage_is_a_wait_for_the_timer() {
    let connection = of_sender(&format!(
        "{BULK}{}",
        wire("impairments = [{ kind = \"drop\", from = \"5s\", until = \"7s\" }]\n")
    ));
    let direction = &connection.directions[0];
    assert!(direction.losses.timeouts > 0, "{:?}", direction.losses);
    let stall = direction.stalls.iter().max_by_key(|stall| stall.time_ns).expect("a stall");
    assert_eq!(stall.cause, Cause::Timer, "{:?}", direction.stalls);
    assert!((5_000_000_000..7_500_000_000).contains(&stall.at_ns), "{stall:?}");
    let worst = direction.episodes.iter().max_by_key(|it| it.without_progress_ns).expect("an episode");
    assert!(worst.without_progress_ns > 2_000_000_000 && worst.stated, "{worst:?}");
    assert!(direction.congestion.is_some_and(|stated| stated.loss_ns > 0));
    adds_up(direction);
}

#[test]
fn a_stall_of_the_path_is_a_spurious_timeout_by_the_stacks_verdict() {
    let change = "[[change]]\nat = \"5s\"\nlink = \"wire\"\nstate = \"stall\"\nfor = \"2s\"\n";
    let connection = of_sender(&capped(change));
    let direction = &connection.directions[0];
    let stated = direction.congestion.expect("stated");
    assert!(stated.timeouts_spurious + stated.undone > 0, "{stated:?}");
    assert!(direction.losses.timeouts > 0 && direction.losses.spurious > 0, "{:?}", direction.losses);
    assert_eq!(direction.losses.spurious, direction.losses.spurious_by_stack);
    let episode = direction.episodes.iter().find(|it| it.spurious > 0).expect("an episode");
    assert!(matches!(episode.found, LossDetection::Timeout | LossDetection::Probe), "{episode:?}");
    assert_eq!(direction.losses.spurious, direction.losses.retransmissions);
    assert!(text::page(&connection).contains("found spurious"));
}

#[test]
fn a_small_receive_buffer_is_the_receivers_window() {
    let connection = of_sender(&format!("[conn]\nrecv_buffer = \"24k\"\n{BULK}"));
    let direction = &connection.directions[0];
    assert!(share(direction, Cause::ReceiverWindow) > 0.9, "{:?}", direction.time);
    assert!(direction.window.is_some_and(|window| window.max <= 24 << 10));
    adds_up(direction);
}

#[test]
fn a_reader_that_pauses_makes_zero_windows() {
    let lines =
        format!("[conn]\nrecv_buffer = \"32k\"\n{BULK}reader = {{ bytes = \"32k\", interval = \"1s\" }}\n");
    let connection = of_sender(&lines);
    let direction = &connection.directions[0];
    assert!(share(direction, Cause::ZeroWindow) > 0.6, "{:?}", direction.time);
    assert!(direction.window.is_some_and(|window| window.zero >= 8), "{:?}", direction.window);
    assert!(direction.stalls.iter().any(|stall| stall.cause == Cause::ZeroWindow));
}

#[test]
fn writes_at_intervals_are_the_application() {
    let connection = of_sender(
        "[[app]]\nkind = \"writes\"\nfrom = \"a\"\nto = \"b\"\nsize = \"5000\"\ninterval = \"100ms\"\n",
    );
    let direction = &connection.directions[0];
    assert!(share(direction, Cause::Application) > 0.9, "{:?}", direction.time);
    assert_eq!(direction.slow_start.map(|it| it.end), Some(SlowStartEnd::Application));
}

#[test]
fn a_bulk_transfer_is_the_congestion_window_or_a_cap_below_it() {
    for lines in [format!("{BULK}{}", wire("")), capped("")] {
        let connection = of_sender(&lines);
        let direction = &connection.directions[0];
        let open = share(direction, Cause::CongestionWindow) + share(direction, Cause::Recovery);
        assert!(open > 0.95, "{lines}: {:?}", direction.time);
        assert!((0.9..3.0).contains(&direction.acks.segments_per_ack), "{:?}", direction.acks);
        adds_up(direction);
    }
}

#[test]
fn pacing_is_told_from_the_rate_that_is_stated() {
    let pacing = |pacing| {
        let connection = of_sender(&format!("[conn]\ncc = \"cubic:pacing={pacing}\"\n{BULK}"));
        share(&connection.directions[0], Cause::Pacing)
    };
    assert!(pacing("on") > 0.3, "{}", pacing("on"));
    assert_eq!(pacing("off"), 0.0);
}

#[test]
fn the_receivers_trace_tells_what_came_and_not_what_limited_the_peer() {
    let lines = format!("{FILE}{}", wire("impairments = [{ kind = \"loss\", probability = 0.01 }]\n"));
    let story = explained(&trace(&lines, Host::Receiver));
    let connection = &story.connections[0];
    let direction = &connection.directions[0];
    assert_eq!(connection.vantage.place, PathPosition::Server);
    assert_eq!((direction.bytes, connection.directions[1].bytes), (3 << 20, 0));
    assert!(direction.received.is_some_and(|it| it.behind_gap > 5), "{:?}", direction.received);
    assert!(direction.time.is_empty() && direction.rtt.is_none() && direction.window.is_none());
    assert!(connection.end.fin_at_ns[0].is_some() && connection.end.fin_acked[0]);
    let page = text::page(connection);
    for part in ["of the server's stack", "what limited this sender is not in a trace", "not in the trace"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 110), "{page}");
}

#[test]
fn a_trace_that_is_cut_off_is_told_up_to_there() {
    let file = trace(FILE, Host::Sender);
    let whole = explained(&file);
    assert!(!whole.cut_short && text::left_out(&whole).is_empty(), "{}", text::left_out(&whole));
    assert_eq!(whole.connections[0].directions[0].bytes, 3 << 20);
    let cut = explained(&file[..file.len() / 2]);
    assert!(cut.cut_short, "in the middle of an event");
    assert!(text::left_out(&cut).contains("ends within a packet or an event"));
    let connection = &cut.connections[0];
    assert!(connection.directions[0].bytes > 500_000, "{}", connection.directions[0].bytes);
    assert!(connection.anomalies.contains(&Anomaly::NoEnd));
    assert!(text::page(connection).contains("open at the end of the trace"));
}

#[test]
fn events_of_connections_that_began_before_are_counted() {
    let file = trace(FILE, Host::Sender);
    let separators: Vec<usize> =
        file.iter().enumerate().filter_map(|(at, byte)| (*byte == 0x1e).then_some(at)).collect();
    // Without the record of its begin.
    let without = [&file[..separators[1]], &file[separators[2]..]].concat();
    let story = explained(&without);
    assert!(story.connections.is_empty());
    assert_eq!(story.traces.unopened, story.traces.events);
    assert!(text::left_out(&story).contains("whose begin is not in the trace"));
}

#[test]
fn connections_beyond_the_limit_end_early() {
    let app = "[[app]]\nkind = \"writes\"\nfrom = \"a\"\nto = \"b\"\nsize = \"5000\"\ninterval = \"100ms\"\n";
    let file = trace(&app.repeat(12), Host::Sender);
    let mut limits = Limits::default();
    (limits.open, limits.stories) = (4, 6);
    let mut explainer = Explainer::new(limits);
    explainer.read_trace(&mut Reader::new(&file[..]).expect("a trace")).expect("memory");
    let story = explainer.finish();
    assert_eq!((story.connections_seen, story.connections.len()), (12, 6));
    assert!(story.evicted >= 8, "{}", story.evicted);
    assert_eq!(story.left_out, 6);
}
