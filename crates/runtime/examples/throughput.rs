//! One bulk flow between a stack and the kernel's TCP over a TUN device, measured from the stack's side.
//!
//! ```text
//! throughput send|recv [SECONDS] [current|split|multi] [copy] [plain]
//! ```
//!
//! `current` runs driver and application on one thread, `split` on one thread each, `multi` on two workers of one
//! tokio runtime. `copy` goes through `AsyncRead` and `AsyncWrite`; otherwise data is made and used in place.
//! `plain` is a device without offload. Needs the right to make a network namespace.

use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::netns::Namespace;
use ackline_runtime::timer::now;
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::ListenOn;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::future::Future;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener as KernelListener, TcpStream as KernelStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Builder, Runtime};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const STACK: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PORT: u16 = 9000;
/// Bytes that either application makes or takes at once.
const CHUNK: usize = 256 << 10;

#[derive(Clone, Copy)]
struct Options {
    send: bool,
    copy: bool,
    duration: Duration,
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let seconds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(2.0);
    let options =
        Options { send: !has("recv"), copy: has("copy"), duration: Duration::from_secs_f64(seconds) };

    let _namespace = Namespace::new_for_thread()?;
    let config = TunConfig::new().address(InterfaceAddress::network("10.77.0.1/24".parse()?));
    let tun = Tun::create(&if has("plain") { config.plain() } else { config })?;
    let listener = KernelListener::bind((KERNEL, PORT))?;
    let (listening, wait) = mpsc::channel();
    let peer = std::thread::Builder::new()
        .name("kernel-side".to_owned())
        .spawn(move || kernel(&listener, &wait, options))?;

    let runtime = if has("multi") {
        Builder::new_multi_thread().worker_threads(2).enable_all().build()?
    } else {
        Builder::new_current_thread().enable_all().build()?
    };
    let (stack, driver) = if has("split") { on_own_thread(tun)? } else { (here(&runtime, tun)?, None) };
    let (bytes, elapsed) = on_worker(&runtime, flow(stack.clone(), listening, options))??;
    let peer_cpu = peer.join().expect("no panic")?;
    let cpu = cpu_time(ClockId::ProcessCPUTime).saturating_sub(peer_cpu);

    let stats = stack.stats();
    println!(
        "{:.2} Gbit/s, CPU {:.2} (of the peer {:.2}) s per second",
        bytes as f64 * 8e-9 / elapsed.as_secs_f64(),
        cpu.as_secs_f64() / elapsed.as_secs_f64(),
        peer_cpu.as_secs_f64() / elapsed.as_secs_f64(),
    );
    println!(
        "{} runs, {} expiries, median lateness {:?}; received {} ({} super), sent {} ({} super), {} full",
        stats.driver_runs,
        stats.timer_expiries,
        stats.lateness.quantile(0.5),
        stats.device.rx_packets,
        stats.rx_super_packets,
        stats.device.tx_packets,
        stats.tx_super_packets,
        stats.device.tx_full,
    );
    println!("{} retransmitted, {} timeouts", stats.counters.tcp_retrans_segs, stats.counters.tcp_timeouts);
    drop(stack);
    driver.map_or(Ok(()), |thread| thread.join().expect("no panic"))?;
    Ok(())
}

/// The kernel's end: how much processor time its thread used.
fn kernel(listener: &KernelListener, wait: &mpsc::Receiver<()>, options: Options) -> io::Result<Duration> {
    let mut buffer = vec![7; CHUNK];
    if options.send {
        let (mut stream, _) = listener.accept()?;
        while stream.read(&mut buffer)? > 0 {}
    } else {
        // Where the sender is gone, connecting says why.
        let _ = wait.recv();
        let mut stream = KernelStream::connect((STACK, PORT))?;
        let end = now() + options.duration.into();
        while now() < end {
            stream.write_all(&buffer)?;
        }
    }
    Ok(cpu_time(ClockId::ThreadCPUTime))
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn here(runtime: &Runtime, tun: Tun) -> io::Result<Stack> {
    let _entered = runtime.enter();
    Stack::builder(tun).address(STACK).spawn()
}

type DriverThread = Option<JoinHandle<io::Result<()>>>;

fn on_own_thread(tun: Tun) -> Outcome<(Stack, DriverThread)> {
    let (give, take) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            let (stack, driver) = Stack::builder(tun).address(STACK).build()?;
            // The other end waits.
            let _ = give.send(stack);
            driver.await
        })
    });
    Ok((take.recv()?, Some(thread)))
}

/// Runs `work` where tasks run, which on the multi-threaded runtime is not where `block_on` runs.
fn on_worker<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = T> + Send + 'static,
) -> Outcome<T> {
    Ok(runtime.block_on(async { tokio::spawn(work).await })?)
}

/// Bytes that went through, and how long that took until the last was acknowledged or received.
async fn flow(stack: Stack, listening: mpsc::Sender<()>, options: Options) -> Outcome<(u64, Duration)> {
    if options.send {
        let mut stream = stack.connect((KERNEL, PORT)).await?;
        let start = now();
        let sent = source(&mut stream, options).await?;
        stream.shutdown().await?;
        stream.flushed().await?;
        Ok((sent, now().since(start).into()))
    } else {
        let listener = stack.listen(ListenOn::Port(PORT))?;
        listening.send(())?;
        let (mut stream, _) = listener.accept().await?;
        let start = now();
        let received = sink(&mut stream, options.copy).await?;
        Ok((received, now().since(start).into()))
    }
}

async fn source(stream: &mut TcpStream, options: Options) -> io::Result<u64> {
    let bytes = vec![7; CHUNK];
    let end = now() + options.duration.into();
    let mut sent = 0;
    while now() < end {
        sent += if options.copy {
            stream.write(&bytes).await?
        } else {
            let fill = |[first, second]: [&mut [u8]; 2]| {
                first.fill(7);
                second.fill(7);
                first.len() + second.len()
            };
            stream.write_with(CHUNK, fill).await?
        } as u64;
    }
    Ok(sent)
}

async fn sink(stream: &mut TcpStream, copy: bool) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut received = 0;
    loop {
        let n = if copy {
            stream.read(&mut buffer).await?
        } else {
            let take = |pieces: [&[u8]; 2]| {
                let n = pieces[0].len() + pieces[1].len();
                (n, n)
            };
            stream.with_readable(take).await?
        };
        if n == 0 {
            return Ok(received);
        }
        received += n as u64;
    }
}
