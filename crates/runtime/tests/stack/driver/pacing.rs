//! Departures that pacing holds back: the timer and the spinning driver.

use crate::common::{FAR, Fixed, NEAR, PORT, assert_same, pattern, read_all, soon, sooner_or_later};
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::stats::Stats;
use ackline_runtime::timer::now;
use ackline_runtime::{Pacing, Stack};
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::{ConnConfig, ListenOn, Rate};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// Sends 250 kB at 10 Mbit/s; how long that took, and what the near driver measured.
async fn paced(pacing: Pacing) -> (Duration, Stats) {
    let mut slow = ConnConfig::default();
    let rate = Rate::from_bits_per_second(10_000_000);
    slow.policies.cc = Arc::new(move |_: &CcInit| Box::new(Fixed::paced(1 << 20, rate)));
    let (near, far) = Channel::pair(ChannelConfig::default().plain());
    let near =
        Stack::builder(near).address(NEAR).connections(slow).pacing(pacing).spawn().expect("a timerfd");
    let far = Stack::builder(far).address(FAR).spawn().expect("a timerfd");
    let listener = far.listen(ListenOn::Port(PORT)).expect("a free port");
    let (opened, accepted) = tokio::join!(near.connect((FAR, PORT)), listener.accept());
    let (mut opened, (mut accepted, _)) = (opened.expect("connected"), accepted.expect("accepted"));

    let sent = pattern(1, 250_000);
    let start = now();
    opened.write_all(&sent).await.expect("written");
    opened.shutdown().await.expect("closed");
    assert_same(&soon(read_all(&mut accepted)).await.expect("read"), &sent);
    (now().since(start).into(), near.stats())
}

/// 250 kB at 10 Mbit/s take 200 ms. The upper limit leaves room for a busy machine.
fn assert_takes_its_time(elapsed: Duration) {
    let limits = Duration::from_millis(185)..Duration::from_secs(5);
    assert!(limits.contains(&elapsed), "{elapsed:?}");
}

#[tokio::test]
async fn paced_data_leaves_at_its_rate() {
    let (elapsed, stats) = paced(Pacing::Timer).await;
    assert_takes_its_time(elapsed);
    assert!(stats.timer_expiries > 20, "{} expiries", stats.timer_expiries);
    assert!(stats.departure_gaps.count() > 150, "{} gaps", stats.departure_gaps.count());
    // Of some 170 segments all but the first wait, but for those that a busy machine lets come
    // late.
    assert!((50..200).contains(&stats.departure_lateness.count()), "{}", stats.departure_lateness.count());
    assert_eq!((stats.awake, stats.wakes_early_by), (Duration::ZERO.into(), Duration::ZERO.into()));
}

#[tokio::test]
async fn a_spinning_driver_serves_departures_itself() {
    sooner_or_later(async || {
        let (elapsed, stats) = paced(Pacing::Spin { longest: Duration::from_millis(10) }).await;
        assert_takes_its_time(elapsed);
        assert!(stats.wakes_early_by > Duration::ZERO.into());
        // It wakes early by some tens of microseconds before each of some 170 departures.
        let (departures, awake) = (stats.departure_lateness.count(), stats.awake);
        let right = (50..200).contains(&departures) && awake > Duration::from_millis(2).into();
        if right { Ok(()) } else { Err(format!("{departures} departures, awake for {awake:?}")) }
    })
    .await;
}

/// Other tasks of a runtime with one thread go on.
#[tokio::test]
async fn spinning_starves_nobody() {
    sooner_or_later(async || {
        let mut turns = 0_u64;
        let others = async {
            loop {
                tokio::task::yield_now().await;
                turns += 1;
            }
        };
        let spin = Pacing::Spin { longest: Duration::from_secs(1) };
        let (elapsed, stats) = tokio::select! {
            outcome = paced(spin) => outcome,
            () = others => unreachable!("it never ends"),
        };
        assert_takes_its_time(elapsed);
        // It wakes early by some tens of microseconds, in which it yields again and again.
        let departures = stats.departure_lateness.count();
        if turns > departures {
            Ok(())
        } else {
            Err(format!("{turns} turns of others, {departures} departures"))
        }
    })
    .await;
}

/// Writer, reader and both drivers on threads of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_spinning_driver_shares_its_stack_with_other_threads() {
    let (elapsed, stats) = tokio::spawn(paced(Pacing::spin())).await.expect("no panic");
    assert_takes_its_time(elapsed);
    assert!(stats.awake > Duration::ZERO.into());
    assert!(stats.departure_lateness.count() > 20, "{}", stats.departure_lateness.count());
}
