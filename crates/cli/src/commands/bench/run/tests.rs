//! How long a test may last, and how long it may stand still.

use super::*;
use crate::commands::bench::report::Style;

fn parameters(length: Length, bitrate: u64) -> TestParameters {
    TestParameters { block: 1 << 20, bitrate, ..TestParameters::plain(length) }
}

/// What comes of a test in which nothing moves, this many seconds after its start.
fn after(seconds: u64, length: Length, bitrate: u64) -> Result<bool, Failure> {
    let runtime = crate::network::tunnel::runtime().expect("a runtime");
    runtime.block_on(async {
        let mut screen = Screen::new(Style::default(), |_| Ok(()));
        let mut running = TestRun::start(Role::Server, &parameters(length, bitrate), None, vec![]);
        running.look(running.started + Duration::from_secs(seconds), &mut screen)
    })
}

#[test]
fn a_test_that_stands_still_is_given_up() {
    assert!(after(119, Length::Seconds(0), 0).is_ok_and(|over| !over));
    let failure = after(120, Length::Seconds(0), 0).expect_err("idle");
    assert!(failure.to_string().contains("moved no data for 120 s"), "{failure}");
    // Blocks of 8 Mibit at 100 kbit/s leave 84 s apart.
    assert!(after(200, Length::Seconds(0), 100_000).is_ok_and(|over| !over));
    after(204, Length::Seconds(0), 100_000).expect_err("idle");
}

#[test]
fn a_client_that_does_not_end_its_test_is_given_up() {
    assert!(after(69, Length::Seconds(10), 0).is_ok_and(|over| !over));
    let failure = after(70, Length::Seconds(10), 0).expect_err("overdue");
    assert!(failure.to_string().contains("did not end the test in time"), "{failure}");
}
