//! ackline with its default policies. Unless the case is about another program, driver and
//! application are on one thread, and data is made and used in place.

use super::watch::Watch;
use super::{CHUNK, Meter, end, first, queues, runtime, some};
use crate::case::{Access, Act, Program, Wait};
use crate::net::{HERE, PEER, PORT};
use crate::results::Metric;
use ackline::{Registry, Stack, TcpStream};
use ackline_runtime::device::Device;
use ackline_runtime::timer;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longer than any measurement.
const FOREVER: Duration = Duration::from_secs(3600);

/// Bytes of a read or a write that copies.
pub(super) const COPY: usize = 64 << 10;

/// The program of all cases that are not about programs.
pub(crate) const SIMPLE: Program = Program { workers: None, access: Access::InPlace };

/// The measured end.
pub(crate) fn connect(
    device: Box<dyn Device>,
    program: Program,
    acks: Option<&str>,
    watch: Option<Watch>,
    act: Act,
    meter: &Arc<Meter>,
) -> io::Result<()> {
    let mut connections = Registry::default().conn_config();
    if let Some(spec) = acks {
        connections.policies.ack = Registry::default().ack(spec).map_err(io::Error::other)?;
    }
    let busy = matches!(act, Act::RoundTrip { here: Wait::Busy, .. });
    let busy_poll = if busy { FOREVER } else { Duration::ZERO };
    let runtime = match program.workers {
        None => runtime()?,
        Some(workers) => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?
        }
    };
    let access = program.access;
    runtime.block_on(async {
        let builder = Stack::builder(device).address(HERE).connections(connections).busy_poll(busy_poll);
        let stack = if access == Access::Queues {
            let thread = queues::thread_of_the_stack()?;
            let _within = thread.enter();
            builder.runtimes([thread.clone()]).spawn()?
        } else {
            builder.spawn()?
        };
        let streams = |count: usize| {
            let stack = &stack;
            async move {
                let mut streams = Vec::with_capacity(count);
                for _ in 0..count {
                    streams.push(stack.connect((PEER, PORT)).await?);
                }
                io::Result::Ok(streams)
            }
        };
        if let Some(watch) = &watch {
            watch.attach(&stack);
        }
        tell(act, stack.clone(), Mutex::new(watch), meter);
        match act {
            Act::Send { flows } => {
                first(streams(flows).await?.into_iter().map(|stream| source(stream, access))).await
            }
            Act::Receive { flows } => {
                let sinks =
                    streams(flows).await?.into_iter().map(|stream| sink(stream, access, meter.clone()));
                first(sinks).await
            }
            Act::RoundTrip { .. } => {
                first(streams(1).await?.into_iter().map(|stream| ping(stream, meter.clone()))).await
            }
            Act::Open { at_once } => first((0..at_once).map(|_| open(stack.clone(), meter.clone()))).await,
        }
    })
}

/// What the stack's counters say of bulk data.
fn tell(act: Act, stack: Stack, watch: Mutex<Option<Watch>>, meter: &Meter) {
    meter.on_end(move || {
        let watch = watch.lock().ok().and_then(|mut watch| watch.take());
        let missing = watch.map(|watch| (Metric::NotObserved, watch.missing() as f64));
        let stats = stack.stats();
        let (counters, share) = (&stats.counters, |part: u64, of: u64| part as f64 / of.max(1) as f64);
        let told = match act {
            // What a receiver sends are its ACKs.
            Act::Receive { .. } => {
                vec![(Metric::AcksPerSegment, share(stats.device.tx_packets, counters.tcp_in_segs))]
            }
            Act::Send { .. } => {
                vec![(Metric::Retransmitted, share(counters.tcp_retrans_segs, counters.tcp_out_segs))]
            }
            _ => Vec::new(),
        };
        told.into_iter().chain(missing).collect()
    });
}

async fn source(mut stream: TcpStream, access: Access) -> io::Result<()> {
    if access == Access::Queues {
        return queues::source(stream).await;
    }
    let data = vec![7; COPY];
    if access == Access::Copies {
        loop {
            stream.write_all(&data).await?;
        }
    }
    loop {
        let fill = |[first, second]: [&mut [u8]; 2]| {
            first.fill(7);
            second.fill(7);
            first.len() + second.len()
        };
        stream.write_with(CHUNK, fill).await?;
    }
}

async fn sink(mut stream: TcpStream, access: Access, meter: Arc<Meter>) -> io::Result<()> {
    if access == Access::Queues {
        return queues::sink(stream, meter).await;
    }
    let mut data = vec![0; COPY];
    if access == Access::Copies {
        loop {
            meter.add(some(stream.read(&mut data).await?)? as u64);
        }
    }
    loop {
        let take = |[first, second]: [&[u8]; 2]| {
            let there = first.len() + second.len();
            (there, there)
        };
        meter.add(some(stream.with_readable(take).await?)? as u64);
    }
}

async fn ping(mut stream: TcpStream, meter: Arc<Meter>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let start = timer::now();
        stream.write_all(&[7]).await?;
        some(stream.read(&mut [0]).await?)?;
        meter.round_trip(timer::now().since(start));
    }
}

async fn open(stack: Stack, meter: Arc<Meter>) -> io::Result<()> {
    loop {
        let mut stream = stack.connect((PEER, PORT)).await?;
        stream.set_nodelay(true)?;
        stream.write_all(&[7]).await?;
        end(stream.read(&mut [0]).await?)?;
        drop(stream);
        meter.add(1);
    }
}
