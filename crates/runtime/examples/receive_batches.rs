//! How many frames one system call of the Ethernet device should take at most: one connection with
//! the kernel's TCP over a veth pair, for several sizes of the batch in turn.
//!
//! ```text
//! cargo run --release -p ackline-runtime --example receive_batches [ROUNDS [SECONDS]]
//! ```
//!
//! Prints medians over the rounds. Processor time is that of the stack's thread and of the kernel's
//! sender. Needs the right to make network namespaces.

use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::netlink::{Interface, InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::timer::now;
use ackline_runtime::{Stack, TcpStream};
use rustix::net::sockopt;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener as KernelListener, TcpStream as KernelStream};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const STACK: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
const PORT: u16 = 9000;
/// Bytes that the kernel's sender writes at once.
const CHUNK: usize = 256 << 10;
const BATCHES: [usize; 4] = [1, 4, 16, 64];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// The kernel sends as much as it can.
    Bulk,
    /// One byte to and fro.
    RoundTrip,
}

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().map_or(Ok(5), |arg| arg.parse())?;
    let length = Duration::from_secs_f64(args.next().map_or(Ok(1.0), |arg| arg.parse())?);
    let mut samples = BATCHES.map(|_| [const { Vec::new() }; 4]);
    for _ in 0..rounds {
        for (batch, samples) in BATCHES.into_iter().zip(&mut samples) {
            let [rate, stack, kernel] = measure(Work::Bulk, batch, length)?;
            let [trip, ..] = measure(Work::RoundTrip, batch, length)?;
            for (values, value) in samples.iter_mut().zip([rate, stack, kernel, trip]) {
                values.push(value);
            }
        }
    }
    println!("| frames per call | Gbit/s | stack, s per 10^9 bytes | kernel | 1-byte round trip, us |");
    println!("|---:|---:|---:|---:|---:|");
    for (batch, samples) in BATCHES.into_iter().zip(samples) {
        let [rate, stack, kernel, trip] = samples.map(median);
        println!("| {batch} | {rate:.1} | {stack:.3} | {kernel:.3} | {trip:.1} |");
    }
    Ok(())
}

/// Bulk: Gbit/s, and processor seconds per 10^9 bytes of stack and kernel. Round trip: the median
/// in microseconds.
fn measure(work: Work, batch: usize, length: Duration) -> Outcome<[f64; 3]> {
    // A thread of its own, for what it makes goes away with the namespaces.
    std::thread::spawn(move || {
        let _here = Namespace::new_for_thread()?;
        let there = std::thread::spawn(Namespace::new_for_thread).join().expect("no panic")?;
        Netlink::open()?.add_veth("near0", "far0", &there)?;
        let far = there.run(|| up("far0", true))??;
        let station = up("near0", false)?.mac.ok_or("a veth without an Ethernet address")?;
        there.run(|| Netlink::open()?.add_neighbour(far.index, STACK.into(), station))??;
        let mut config = AfPacketConfig::new("near0").address("10.79.0.2/24".parse()?);
        config.receive_batch = batch;
        let device = AfPacket::open(&config)?;

        let listener = there.run(|| KernelListener::bind((KERNEL, PORT)))??;
        // The machine's default may pace by timers (BBR), which would be what is measured.
        sockopt::set_tcp_congestion(&listener, "cubic")?;
        let kernel = std::thread::spawn(move || -> io::Result<Duration> {
            kernel_end(work, listener.accept()?.0, length)?;
            Ok(thread_time())
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let before = thread_time();
        let outcome = runtime.block_on(async {
            let stack = Stack::builder(device).address(STACK).spawn()?;
            let mut stream = stack.connect((KERNEL, PORT)).await?;
            match work {
                Work::Bulk => receive(&mut stream).await,
                Work::RoundTrip => round_trips(&mut stream, length).await.map(|median| (median, 1.0)),
            }
        });
        let own = thread_time() - before;
        drop(runtime);
        let peer = kernel.join().expect("no panic");
        let (value, nanos) = outcome?;
        Ok(match work {
            Work::Bulk => {
                [value * 8.0 / nanos, own.as_secs_f64() / value * 1e9, peer?.as_secs_f64() / value * 1e9]
            }
            Work::RoundTrip => [value / 1e3, 0.0, 0.0],
        })
    })
    .join()
    .expect("no panic")
}

fn up(name: &str, address: bool) -> Outcome<Interface> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(name)?.index;
    if address {
        netlink.add_address(index, InterfaceAddress::network("10.79.0.1/24".parse()?))?;
    }
    netlink.set_up(index)?;
    Ok(netlink.interface(name)?)
}

fn kernel_end(work: Work, mut stream: KernelStream, length: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match work {
        Work::Bulk => {
            let (data, end) = (vec![7; CHUNK], now() + length.into());
            while now() < end {
                stream.write_all(&data)?;
            }
        }
        Work::RoundTrip => {
            let mut byte = [0];
            while stream.read(&mut byte)? > 0 {
                stream.write_all(&byte)?;
            }
        }
    }
    Ok(())
}

/// Bytes, and nanoseconds.
async fn receive(stream: &mut TcpStream) -> Outcome<(f64, f64)> {
    let (start, mut received) = (now(), 0);
    loop {
        let take = |pieces: [&[u8]; 2]| {
            let length = pieces[0].len() + pieces[1].len();
            (length, length)
        };
        match stream.with_readable(take).await? {
            0 => return Ok((received as f64, now().since(start).as_nanos() as f64)),
            length => received += length,
        }
    }
}

/// The median in nanoseconds.
async fn round_trips(stream: &mut TcpStream, length: Duration) -> Outcome<f64> {
    stream.set_nodelay(true)?;
    let (end, mut times) = (now() + length.into(), Vec::new());
    while now() < end {
        let before = now();
        stream.write_all(&[7]).await?;
        stream.read_exact(&mut [0]).await?;
        times.push(now().since(before).as_nanos() as f64);
    }
    Ok(median(times))
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Zero without values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
