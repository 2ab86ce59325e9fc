//! Two hosts and a wire in the simulator, captured somewhere, and explained.

use ackline_explain::capture::Frame;
use ackline_explain::story::{Cause, Connection, Direction};
use ackline_explain::{Explainer, Reader, Story};
use ackline_lab::{Scenario, simulation};
use ackline_netsim::pcapng::{Capture, CapturePoint, Point};
use ackline_tcp_core::{Duration, Instant};

/// Where a capture is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureLocation {
    Sender,
    /// Behind the bottleneck's queue, and the receiver's: as `sim --pcap`.
    Middle,
    Receiver,
}

pub(crate) const EVERYWHERE: [CaptureLocation; 3] =
    [CaptureLocation::Sender, CaptureLocation::Middle, CaptureLocation::Receiver];

/// What packets say of themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comments {
    Kept,
    /// As in a capture of another stack.
    Removed,
}

/// Two hosts `a` and `b`, and a link `wire` of 10 Mbit/s and 20 ms each way unless `lines` has
/// another.
pub(crate) fn scenario(lines: &str) -> Scenario {
    let wire = "[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\ndelay = \"20ms\"\n\
        queue = { kind = \"drop-tail\", limit = \"100ms\" }\n";
    let wire = if lines.contains("[[link]]") { "" } else { wire };
    let text = format!("duration = \"60s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n{wire}{lines}");
    Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The capture of a run at a point of the scenario's sweep.
pub(crate) fn capture(scenario: &Scenario, point: usize, at: CaptureLocation, time: Duration) -> Vec<u8> {
    let mut sim = simulation(scenario, point, 0).expect("it was parsed");
    let links = sim.view().links();
    let (there, back) = match at {
        CaptureLocation::Sender => (Point::Offered, Point::Delivered),
        CaptureLocation::Middle => (Point::Left, Point::Left),
        CaptureLocation::Receiver => (Point::Delivered, Point::Offered),
    };
    let points = [(links[0], there, "there"), (links[1], back, "back")];
    let points = points.map(|(link, point, name)| CapturePoint { link, point, name: name.to_owned() });
    let capture = Capture::new(Vec::new(), points.to_vec(), None).expect("memory");
    let capture = sim.add_observer(capture);
    sim.run_until(Instant::ZERO + time);
    sim.take_observer::<Capture<Vec<u8>>>(capture).expect("it is there").finish().expect("memory")
}

pub(crate) fn story(file: &[u8], comments: Comments) -> Story {
    let mut explainer = Explainer::default();
    let mut reader = Reader::new(file).expect("a capture");
    while let Some(frame) = reader.next_frame().expect("whole") {
        let comment = if comments == Comments::Kept { frame.comment } else { "" };
        explainer.packet(&Frame { comment, ..frame });
    }
    explainer.finish()
}

/// The first connection of a run of `lines`, of which 10 s are captured.
pub(crate) fn explained(lines: &str, at: CaptureLocation, comments: Comments) -> Connection {
    let file = capture(&scenario(lines), 0, at, Duration::from_secs(10));
    let story = story(&file, comments);
    let connection = story.connections.into_iter().next().expect("a connection");
    // Whatever else happens to them.
    no_path_changes(&connection);
    connection
}

pub(crate) fn no_path_changes(connection: &Connection) {
    for direction in &connection.directions {
        assert_eq!(direction.path_changes, []);
    }
}

/// The share of a direction's time that went for a cause.
pub(crate) fn share(direction: &Direction, cause: Cause) -> f64 {
    direction.time.iter().find(|share| share.cause == cause).map_or(0.0, |share| share.share)
}
