//! What limits a sender: the kernel and the stack say the same of themselves under the same limit
//! (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`, `tcpi_total_rto_time`).

use crate::support::stream::{self, read, write};
use crate::support::{Ip, Opens, Setup, World};
use ackline_runtime::device::impair::{ImpairConfig, Impairment, Stall};
use ackline_runtime::kernel::KernelTcpInfo;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::sleep;

const MIB: u64 = 1 << 20;

/// Of both senders.
const SMALL_BUFFER: u32 = 64 << 10;
/// One way.
const DELAY: Duration = Duration::from_millis(20);
/// A path that passes packets for so long, and then stands still for so long.
const PASSES: Duration = Duration::from_millis(800);
const STANDS: Duration = Duration::from_millis(1_400);
/// Messages of an application that mostly waits, each of four full segments, so that no ACK of them
/// is delayed.
const MESSAGES: u32 = 50;
const MESSAGE: u64 = 4 * 1448;

/// What a sender's time went into.
#[derive(Debug)]
struct Spent {
    busy: Duration,
    /// Parts of the busy time.
    by_window: f64,
    by_buffer: f64,
}

impl Spent {
    fn new(busy: Duration, by_window: Duration, by_buffer: Duration) -> Self {
        let share = |part: Duration| part.as_secs_f64() / busy.as_secs_f64();
        Self { busy, by_window: share(by_window), by_buffer: share(by_buffer) }
    }
}

/// The kernel's and the stack's.
async fn both(
    world: &World,
    transfer: impl AsyncFn(&mut (dyn AsyncWrite + Unpin), &mut (dyn AsyncRead + Unpin)),
) -> [Spent; 2] {
    let small = |socket: &tokio::net::TcpSocket| {
        socket.set_send_buffer_size(SMALL_BUFFER).expect("set");
        socket.set_recv_buffer_size(SMALL_BUFFER).expect("set");
    };
    let (mut kernel, mut stack) = world.connection_with(Opens::Stack, Ip::V4, small).await;
    transfer(&mut kernel, &mut stack).await;
    transfer(&mut stack, &mut kernel).await;
    // For the last ACKs.
    sleep(4 * DELAY).await;
    let theirs = KernelTcpInfo::of(&kernel).expect("a TCP socket");
    let ours = stack.info().expect("connected");
    let spent = [
        Spent::new(theirs.busy_time, theirs.rwnd_limited, theirs.sndbuf_limited),
        Spent::new(ours.busy_time.into(), ours.rwnd_limited.into(), ours.sndbuf_limited.into()),
    ];
    println!("{spent:?}");
    spent
}

/// A reader that takes a little from time to time.
async fn read_slowly(from: &mut (dyn AsyncRead + Unpin), len: u64) {
    let mut buffer = vec![0; 32 << 10];
    let mut got = 0;
    while got < len {
        sleep(Duration::from_millis(10)).await;
        let more = from.read(&mut buffer).await.expect("the stream goes on");
        stream::check(&buffer[..more], 1, got);
        got += more as u64;
    }
}

async fn a_slow_reader_limits_by_its_window(world: World) {
    let spent = both(&world, async |to, mut from| {
        let len = 3 * MIB;
        tokio::join!(
            async { write(&mut &mut *to, 1, len).await.expect("written") },
            read_slowly(&mut from, len)
        );
    })
    .await;
    for sender in &spent {
        assert!(sender.by_window > 0.7 && sender.by_buffer < 0.1, "{spent:?}");
    }
    assert!((spent[0].by_window - spent[1].by_window).abs() < 0.2, "{spent:?}");
    assert!(spent[0].busy < spent[1].busy * 2 && spent[1].busy < spent[0].busy * 2, "{spent:?}");
}

async fn a_small_buffer_limits_on_a_long_path(world: World) {
    let spent = both(&world, async |mut to, mut from| {
        // The kernel's window must reach twice the buffer before it is not the limit.
        let len = 5 * MIB;
        tokio::join!(async { write(&mut to, 1, len).await.expect("written") }, read(&mut from, 1, len));
    })
    .await;
    for sender in &spent {
        assert!(sender.by_buffer > 0.5 && sender.by_window < 0.2, "{spent:?}");
    }
    assert!((spent[0].by_buffer - spent[1].by_buffer).abs() < 0.45, "{spent:?}");
}

async fn an_application_that_waits_limits_itself(world: World) {
    let spent = both(&world, async |mut to, mut from| {
        for _ in 0..MESSAGES {
            tokio::join!(
                async { write(&mut to, 1, MESSAGE).await.expect("written") },
                read(&mut from, 1, MESSAGE)
            );
            sleep(3 * DELAY).await;
        }
    })
    .await;
    let round_trips = 2 * DELAY * MESSAGES;
    for sender in &spent {
        assert_eq!((sender.by_window, sender.by_buffer), (0.0, 0.0), "{spent:?}");
        assert!((round_trips * 9 / 10..round_trips * 2).contains(&sender.busy), "{spent:?}");
    }
}

/// What both ends send gets stuck for most of a second.
async fn timeouts_last_as_long(world: World) {
    let (mut kernel, mut stack) = world.connection(Opens::Stack, Ip::V4).await;
    sleep(PASSES + PASSES / 4).await;
    write(&mut kernel, 1, MESSAGE).await.expect("written");
    write(&mut stack, 1, MESSAGE).await.expect("written");
    tokio::join!(read(&mut stack, 1, MESSAGE), read(&mut kernel, 1, MESSAGE));
    sleep(PASSES / 4).await;
    let theirs = KernelTcpInfo::of(&kernel).expect("a TCP socket");
    let ours = stack.info().expect("connected");
    println!("kernel: {theirs:?}\nstack: {ours:?}");
    let likely = STANDS / 4..STANDS;
    assert!(ours.timeouts > 0 && ours.total_rto_recoveries == 1);
    assert!(likely.contains(&ours.total_rto_time.into()), "{:?}", ours.total_rto_time);
    // Older kernels do not say.
    if theirs.total_rto > 0 {
        assert_eq!(theirs.total_rto_recoveries, 1);
        assert!(likely.contains(&theirs.total_rto_time), "{:?}", theirs.total_rto_time);
    }
}

against_kernel! {
    fn window(world) from Setup::offload().connections(|config| config.recv_buffer = SMALL_BUFFER); {
        a_slow_reader_limits_by_its_window(world).await;
    }
    fn window_plain(world) from Setup::plain().connections(|config| config.recv_buffer = SMALL_BUFFER); {
        a_slow_reader_limits_by_its_window(world).await;
    }
    fn send_buffer(world) from Setup::offload().impair(delayed()).connections(|config| config.send_buffer = SMALL_BUFFER); {
        a_small_buffer_limits_on_a_long_path(world).await;
    }
    fn application(world) from Setup::offload().impair(delayed()); {
        an_application_that_waits_limits_itself(world).await;
    }
    fn timeouts(world) from Setup::offload().impair(stalling()); { timeouts_last_as_long(world).await; }
}

fn delayed() -> ImpairConfig {
    ImpairConfig::both(Impairment { delay: DELAY.into(), ..Impairment::default() }, 1)
}

fn stalling() -> ImpairConfig {
    let stall = Stall { every: PASSES.into(), lasts: STANDS.into() };
    ImpairConfig::both(Impairment { stall, ..Impairment::default() }, 1)
}
