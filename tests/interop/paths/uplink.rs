//! A slow uplink that an upload and a download's ACKs share, with the kernel's TCP on the other
//! side: 100 kbit/s up by the stack's own shaper, 5 Mbit/s down, windows of 64 KiB as in
//! Kalampoukas, Varma and Ramakrishnan (1997).
//!
//! `cargo test --release --test interop uplink -- --nocapture` prints the table. All schedulers run
//! at once, each in a network of its own.

use crate::support::stream::bytes;
use crate::support::watchdog::Watchdog;
use crate::support::{Ip, Opens, Setup, World};
use ackline_runtime::Error;
use ackline_runtime::device::impair::{ImpairConfig, Impairment};
use ackline_runtime::netns::Namespace;
use ackline_runtime::testing::isolated;
use ackline_runtime::timer;
use ackline_tcp_core::queueing::EgressStats;
use ackline_tcp_core::{Duration, Rate};
use std::cell::Cell;
use std::time;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const UP: u64 = 100_000;
const DOWN: u64 = 5_000_000;
const WINDOW: u32 = 64 << 10;
/// Until the queues stand.
const WARM_UP: time::Duration = time::Duration::from_secs(6);
/// Three times what a window takes on the uplink.
const MEASURE: time::Duration = time::Duration::from_secs(16);

/// What one scheduler made of the uplink.
#[derive(Debug)]
struct Row {
    /// Payload that arrived, as shares of the links' rates.
    up: f64,
    down: f64,
    egress: EgressStats,
}

fn setup(scheduler: &'static str) -> Setup {
    let mut path = ImpairConfig::both(Impairment::default(), 0x5109);
    path.incoming.rate = Some(Rate::from_bits_per_second(DOWN));
    path.incoming.delay = Duration::from_millis(5);
    Setup::offload().scheduler(scheduler).impair(path).connections(|connections| {
        (connections.send_buffer, connections.recv_buffer) = (WINDOW, WINDOW);
        connections.initial_recv_window = None;
    })
}

async fn write_on(to: &mut (impl AsyncWrite + Unpin)) {
    while to.write_all(bytes(1, 0, 16 << 10)).await.is_ok() {}
}

async fn count(from: &mut (impl AsyncRead + Unpin), read: &Cell<u64>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(got @ 1..) = from.read(&mut buffer).await {
        read.set(read.get() + got as u64);
    }
}

/// Both directions at once, and what arrives between two instants.
async fn exchange(world: &World) -> Row {
    let (mut up_kernel, mut up_stack) = world.connection(Opens::Stack, Ip::V4).await;
    let (mut down_kernel, mut down_stack) = world.connection(Opens::Kernel, Ip::V4).await;
    let read = [Cell::new(0), Cell::new(0)];
    let measure = async {
        tokio::time::sleep(WARM_UP).await;
        let (begun, before) = (timer::now(), [read[0].get(), read[1].get()]);
        tokio::time::sleep(MEASURE).await;
        let seconds = timer::now().since(begun).as_secs_f64();
        let share =
            |way: usize, rate: u64| (read[way].get() - before[way]) as f64 * 8.0 / seconds / rate as f64;
        Row { up: share(0, UP), down: share(1, DOWN), egress: world.stack.stats().egress }
    };
    tokio::select! {
        row = measure => row,
        _ = async {
            tokio::join!(
                write_on(&mut up_stack),
                count(&mut up_kernel, &read[0]),
                write_on(&mut down_kernel),
                count(&mut down_stack, &read[1]),
            )
        } => panic!("a connection ended"),
    }
}

/// One scheduler, on a thread and in a network of its own.
fn measure(scheduler: &'static str) -> Result<Row, Error> {
    let _namespace = Namespace::new_for_thread()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::System { action: "start tokio", source })?;
    runtime.block_on(async { Ok(exchange(&setup(scheduler).start()?).await) })
}

#[test]
#[ignore = "slow"]
fn a_download_beside_an_upload_is_ten_times_faster_with_shares_than_first_in_first_out() {
    let name =
        "paths::uplink::a_download_beside_an_upload_is_ten_times_faster_with_shares_than_first_in_first_out";
    let _watchdog = Watchdog::start(name, time::Duration::from_secs(90));
    let specs = [
        "fifo:rate=100kbit,burst=0",
        "fifo:rate=100kbit,burst=0,acks=kept",
        "kalampoukas:f=0.5,rate=100kbit,burst=0",
        "kalampoukas:f=0.5,rate=100kbit,burst=0,acks=kept",
        "ack-priority:rate=100kbit,burst=0",
        "backpressure:b=1,rate=100kbit,burst=0",
        "drr:rate=100kbit,burst=0",
    ];
    isolated(name, || {
        let rows = std::thread::scope(|scope| {
            let threads = specs.map(|spec| scope.spawn(move || measure(spec)));
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let rows: Vec<Row> = rows.into_iter().collect::<Result<_, _>>()?;
        let ms = |delay: Duration| delay.as_nanos() as f64 / 1e6;
        println!(
            "| scheduler | upload | download | ACKs | ACK waits, median | at most | data waits, median |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|");
        for (spec, Row { up, down, egress }) in specs.iter().zip(&rows) {
            let [median, most] = [egress.ack.delay_p50, egress.ack.delay_max].map(ms);
            let (acks, data) = (egress.ack.packets, ms(egress.data.delay_p50));
            println!(
                "| {spec} | {:.1} % | {:.1} % | {acks} | {median:.1} ms | {most:.1} ms | {data:.0} ms |",
                up * 100.0,
                down * 100.0,
            );
        }
        let [fifo, fifo_kept, shared, shared_kept, ..] = &rows[..] else { unreachable!("as many as specs") };
        for (fifo, shared) in [(fifo, shared), (fifo_kept, shared_kept)] {
            assert!(shared.down >= 10.0 * fifo.down, "{} is not ten times {}", shared.down, fifo.down);
        }
        assert!(fifo.down < 0.05, "the effect is there: {}", fifo.down);
        // If every ACK leaves, ACKs use all of their half, and the upload has its own.
        let payload = 1_448.0 / 1_500.0;
        assert!(
            (shared_kept.up / payload - 0.5).abs() <= 0.05,
            "the upload has not its half: {}",
            shared_kept.up
        );
        // If the newest ACK says it all, there are few, and the upload also uses what they leave.
        assert!(
            shared.up >= fifo.up - 0.1,
            "the upload lost more than ten points: {} to {}",
            fifo.up,
            shared.up
        );
        Ok(())
    });
}
