//! The interface goes down, comes up again, or is removed, while data moves.

use crate::support::stream::{read_all, read_to_end, write_all, write_while};
use crate::support::{Ip, Opens, Setup, World};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net;
use tokio::time::Instant;

const MIB: u64 = 1 << 20;
/// Packets wait for so short an interruption,
pub(super) const SHORT: Duration = Duration::from_millis(500);
/// and are lost in this one.
pub(super) const LONG: Duration = Duration::from_millis(2_500);
/// "At once" for people and for slow machines.
const PROMPTLY: Duration = Duration::from_secs(5);

/// CPU time of this thread, on which both ends of a test live.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below 10^9"))
}

/// Sleeps for `time`, within which the stack hardly runs.
async fn nothing_runs(world: &World, time: Duration) {
    let (runs, cpu) = (world.stack.stats().driver_runs, cpu_time());
    tokio::time::sleep(time).await;
    let (runs, cpu) = (world.stack.stats().driver_runs - runs, cpu_time() - cpu);
    assert!(runs < 200, "the driver ran {runs} times in {time:?}");
    assert!(cpu < time / 5, "{cpu:?} of CPU time in {time:?}");
}

/// Waits until the stack has noticed that nothing can be sent.
async fn noticed(world: &World) {
    let begin = Instant::now();
    while !world.stack.stats().device.down {
        assert!(begin.elapsed() < PROMPTLY, "the stack did not notice");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The stack sends, or receives, while the interface is down for a while.
pub(super) async fn down_and_up(world: World, stack_sends: bool, time: Duration) {
    const PART: u64 = 6 * MIB;
    let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
    let done = Cell::new(false);
    let interruption = async {
        world.moves(PART).await;
        world.set_down();
        noticed(&world).await;
        let moved = |world: &World| {
            let device = world.stack.stats().device;
            device.tx_bytes.max(device.rx_bytes)
        };
        let before = moved(&world);
        nothing_runs(&world, time).await;
        assert!(moved(&world) - before < MIB, "{} bytes moved", moved(&world) - before);
        world.set_up();
        let up = Instant::now();
        world.moves(PART).await;
        done.set(true);
        up
    };
    let more = || !done.get();
    let up = if stack_sends {
        tokio::join!(write_while(&mut stack, 1, more), read_to_end(&mut kernel, 1), interruption).2
    } else {
        tokio::join!(write_while(&mut kernel, 1, more), read_to_end(&mut stack, 1), interruption).2
    };
    // The kernel's timer has backed off for as long as the interface was down; the stack's has not.
    assert!(up.elapsed() < if stack_sends { PROMPTLY } else { 4 * PROMPTLY }, "{:?}", up.elapsed());
    let device = world.stack.stats().device;
    assert!(!device.down);
    if stack_sends {
        assert!(device.tx_down > 0, "{device:?}");
    }
    assert!(
        time == LONG || world.stack.stats().device_drops == 0,
        "packets given to an interface that was down"
    );
}

/// One line that names the interface.
fn check_farewell(world: &World, error: &io::Error) {
    assert_eq!(error.kind(), ErrorKind::NetworkDown, "{error}");
    assert_eq!(error.to_string(), format!("the interface {} was removed", world.interface()));
}

/// Everybody who waits for the stack is told.
pub(super) async fn removed(world: World) {
    let (mut kernel, mut sender) = world.connection(Opens::Stack, Ip::V4).await;
    let (_silent, mut reader) = world.connection(Opens::Stack, Ip::V6).await;
    let listener = world.listen(9);
    let sending = async {
        loop {
            if let Err(error) = sender.write(&[0; 65_536]).await {
                break error;
            }
        }
    };
    let receiving = async {
        let mut buffer = vec![0; 65_536];
        // The kernel's socket learns nothing; the test ends first.
        while kernel.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    };
    let reading = async { reader.read(&mut [0; 16]).await.expect_err("removed") };
    let accepting = async { listener.accept().await.map(drop).expect_err("removed") };
    let removal = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.remove_interface();
        Instant::now()
    };
    let told = async { tokio::join!(sending, reading, accepting, removal) };
    let (sent, read, accepted, since) = tokio::select! {
        told = tokio::time::timeout(2 * PROMPTLY, told) => told.expect("everybody is told"),
        () = async { receiving.await; std::future::pending().await } => unreachable!("it waits for ever"),
    };
    assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
    for error in [sent, read, accepted] {
        check_farewell(&world, &error);
    }
    check_farewell(&world, &world.connect((Ip::V4.kernel(), 9)).await.expect_err("removed"));
    nothing_runs(&world, Duration::from_millis(300)).await;
    assert!(world.driver_has_ended().await, "the driver still runs");
}

/// Nothing moves, no timer runs: only the kernel's word can tell.
pub(super) async fn removed_while_idle(world: World) {
    let (_kernel, mut stack) = world.connection(Opens::Kernel, Ip::V4).await;
    let (error, ()) = tokio::join!(
        async {
            let outcome = tokio::time::timeout(PROMPTLY, stack.read(&mut [0; 16])).await;
            outcome.expect("told promptly").expect_err("removed")
        },
        async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            world.remove_interface();
        }
    );
    check_farewell(&world, &error);
}

/// A handshake that began while nothing could be sent goes on when that is over.
pub(super) async fn connects_when_it_is_up(world: World) {
    let listener = net::TcpListener::bind((Ip::V4.kernel(), 7)).await.expect("bound");
    world.set_down();
    let raise = async {
        // The SYN is to leave again 1, 3 and 7 seconds after the first.
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.set_up();
        Instant::now()
    };
    let (accepted, stack, up) = tokio::join!(listener.accept(), world.connect((Ip::V4.kernel(), 7)), raise);
    // A kernel may take a second to notice that the link works again.
    assert!(up.elapsed() < Duration::from_secs(2), "{:?}", up.elapsed());
    let (mut kernel, mut stack) = (accepted.expect("accepted").0, stack.expect("connected"));
    tokio::join!(write_all(&mut stack, 1, MIB), read_all(&mut kernel, 1, MIB));
}

/// RFC 9293, section 3.8.3: R2, which also holds if nothing can be sent.
pub(super) async fn down_for_too_long(world: World) {
    let (_kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
    world.set_down();
    let begin = Instant::now();
    let error = loop {
        if let Err(error) = stack.write(&[0; 65_536]).await {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let took = begin.elapsed();
    assert!((Duration::from_millis(900)..PROMPTLY).contains(&took), "{took:?}");
    assert!(world.stack.stats().device.down);
    nothing_runs(&world, Duration::from_millis(300)).await;
}

pub(super) fn impatient(setup: Setup) -> Setup {
    setup.connections(|config| config.user_timeout = Some(ackline_tcp_core::Duration::from_secs(1)))
}

against_kernel! {
    fn a_tun_is_down_while_the_stack_sends(world) from Setup::offload(); { down_and_up(world, true, SHORT).await; }
    fn a_plain_tun_is_down_while_the_stack_sends(world) from Setup::plain(); { down_and_up(world, true, LONG).await; }
    fn a_tun_is_down_while_the_stack_receives(world) from Setup::offload(); { down_and_up(world, false, SHORT).await; }
    fn a_tun_is_down_while_the_stack_connects(world) from Setup::offload(); { connects_when_it_is_up(world).await; }
    fn a_tun_is_removed(world) from Setup::offload(); { removed(world).await; }
    fn an_idle_tun_is_removed(world) from Setup::plain(); { removed_while_idle(world).await; }
    fn a_tun_is_down_for_too_long(world) from impatient(Setup::offload()); { down_for_too_long(world).await; }
}
