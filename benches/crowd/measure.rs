//! One measurement: two ends that never stop, and one thread that looks at what comes through.

use crate::board::{Board, jain};
use crate::case::{Act, SHARDS, Who};
use crate::chunks::Chunks;
use crate::descriptors;
use crate::ground::{self, HERE, HERE_VETH, Outcome, PEER, PORT};
use crate::memory::{self, MEGABYTE};
use crate::program::{self, Placed};
use crate::results::{Metric, Sample};
use crate::usage::{Runs, Usage};
use ackline::{Registry, Stack};
use ackline_runtime::device::Device;
use ackline_runtime::device::tun::TunConfig;
use ackline_runtime::netlink::Netlink;
use ackline_runtime::netns::Namespace;
use ackline_runtime::stack::Builder;
use ackline_runtime::timer;
use ipnet::Ipv4Net;
use rustix::fd::AsFd;
use rustix::net::sockopt;
use rustix::process::Signal;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;

/// From the first byte to the measurement: slow start and the growth of buffers are over.
pub(crate) const WARM_UP: Duration = Duration::from_millis(500);
/// For the connections to open and the first byte to come.
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const LOOK: Duration = Duration::from_millis(5);
/// Connections that wait to be accepted.
const BACKLOG: u32 = 4_096;

/// The same as ackline's default, at both ends. One that paces by timers (BBR) would be all that is
/// measured.
const KERNEL_CC: &str = ackline::registry::DEFAULT_CC;

/// Makes and removes everything that a measurement needs.
pub(crate) fn check_rights() -> Outcome<()> {
    ground::gain_rights()?;
    Here::new(Who::Packet, &ground::namespace()?).map(drop)
}

/// Where the measured end is.
pub(crate) enum Here {
    Kernel(Namespace),
    /// The device, and its further queues.
    Device(Box<dyn Device>, Vec<Box<dyn Device>>),
}

impl Here {
    /// All that is not on the network of the two is behind the peer.
    pub(crate) fn new(who: Who, peer: &Namespace) -> Outcome<Self> {
        Ok(match who {
            Who::Kernel => {
                let there = ground::with_kernel(peer)?;
                there.run(|| -> Outcome<()> {
                    let mut netlink = Netlink::open()?;
                    let index = netlink.interface(HERE_VETH)?.index;
                    let everywhere = Ipv4Net::default().into();
                    Ok(netlink.add_route(index, everywhere, Some(PEER.into()))?)
                })??;
                Self::Kernel(there)
            }
            Who::Tun | Who::TunChunks => Self::Device(Box::new(ground::tun(peer, |config| config)?), vec![]),
            Who::TunShards | Who::TunShardsApart => {
                Self::divided(peer, ground::tun(peer, TunConfig::multi_queue)?)?
            }
            Who::Packet | Who::PacketShards => {
                let (packet, there) = ground::packet(peer, |config| config.gateway(PEER.into()))?;
                match who {
                    Who::PacketShards => Self::divided(&there, packet)?,
                    _ => Self::Device(Box::new(packet), vec![]),
                }
            }
        })
    }

    /// A device of that namespace, with its further queues.
    fn divided(namespace: &Namespace, device: impl Device + 'static) -> Outcome<Self> {
        let mut device: Box<dyn Device> = Box::new(device);
        let further =
            namespace.run(|| (1..SHARDS).map(|_| device.open_queue()).collect::<io::Result<_>>())??;
        Ok(Self::Device(device, further))
    }

    /// Runs `kernel` in the kernel's namespace, or `ours` on the device.
    pub(crate) fn run(
        self,
        runtime: &tokio::runtime::Runtime,
        kernel: impl Future<Output = io::Result<()>>,
        ours: impl AsyncFnOnce(Stack) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::Kernel(namespace) => {
                namespace.enter().map_err(io::Error::other)?;
                runtime.block_on(kernel)
            }
            Self::Device(device, further) => runtime.block_on(async {
                let connections = Registry::default().conn_config();
                let builder = Stack::builder(device).address(HERE).connections(connections);
                ours(further.into_iter().fold(builder, Builder::queue).spawn()?).await
            }),
        }
    }
}

/// The process's own part, before anything is measured.
pub(crate) fn prepare() -> Outcome<()> {
    // If the command is killed, its measurements are not to outlive it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    descriptors::allow();
    memory::wait_until_free()?;
    ground::gain_rights()
}

/// The threads go on when this returns: the process is to end.
pub(crate) fn run(who: Who, act: Act, length: Duration) -> Outcome<Sample> {
    prepare()?;
    let peer = ground::namespace()?;
    let here = Here::new(who, &peer)?;
    let board = Arc::new(Board::new(act.connections()));
    let (report, ended) = mpsc::channel();
    let resident = memory::resident()?;
    // Both here, while all threads have the same descriptors: runtimes share some.
    let (peers_runtime, runtime) = (program::runtime()?, program::runtime()?);

    let (listens, listening) = mpsc::channel();
    spawn("peer", &report, {
        let board = board.clone();
        move || {
            peer.enter().map_err(io::Error::other)?;
            descriptors::own()?;
            peers_runtime.block_on(serve(act, board, &listens))
        }
    })?;
    // If it has failed, the report says why.
    let peers_thread = listening.recv().ok();
    spawn("here", &report, {
        let board = board.clone();
        move || {
            let kernel = program::connect(act, board.clone(), connect);
            here.run(&runtime, kernel, async |stack| {
                let open = async || {
                    let stream = stack.connect((PEER, PORT)).await?;
                    let home = match who {
                        Who::TunShardsApart => Handle::current(),
                        _ => stream.runtime().clone(),
                    };
                    Ok((stream, home))
                };
                match who {
                    Who::TunChunks => {
                        let open = async || open().await.map(|(stream, home)| (Chunks(stream), home));
                        program::connect(act, board, open).await
                    }
                    _ => program::connect(act, board, open).await,
                }
            })
        }
    })?;

    warm_up(&ended, || board.total() > 0, "nothing came through")?;
    let usage = || peers_thread.map(|peer| Usage::read(Runs::Threads, peer)).transpose();
    let before = usage()?;
    let start = timer::now();
    board.start(start);
    pause(&ended, act.length(length))?;
    let (end, bytes) = (timer::now(), board.bytes());
    let elapsed = end.since(start).as_secs_f64();

    let mut sample = Sample::default();
    if let (Some(before), Some(after)) = (before, usage()?) {
        let used = after.since(before);
        for (metric, seconds) in
            [(Metric::Here, used.here), (Metric::Peer, used.peer), (Metric::Machine, used.machine)]
        {
            sample.set(metric, seconds / used.elapsed);
        }
    }
    sample.set(Metric::GbitPerSecond, bytes.iter().sum::<u64>() as f64 * 8e-9 / elapsed);
    sample.set(Metric::Resident, (memory::most_resident()?.saturating_sub(resident)) as f64 / MEGABYTE);
    sample.set(Metric::KernelMemory, memory::of_kernel()? as f64 / MEGABYTE);
    match act {
        Act::Send { .. } | Act::Receive { .. } => {
            sample.set(Metric::Jain, jain(&bytes));
            sample.set(Metric::LongestWait, board.longest_wait(end).as_nanos() as f64 / 1e6);
        }
        Act::RoundTrip { .. } => {
            set_times(&mut sample, &board.times()).ok_or("no byte came back")?;
        }
        Act::Write { .. } => {}
    }
    Ok(sample)
}

/// Of times, shortest first; `None` if there are none.
pub(crate) fn set_times(sample: &mut Sample, times: &[ackline::core::Duration]) -> Option<()> {
    for (metric, share) in [(Metric::MedianMicros, 0.5), (Metric::P99Micros, 0.99)] {
        let time = times.get((times.len() as f64 * share) as usize)?;
        sample.set(metric, time.as_nanos() as f64 / 1e3);
    }
    Some(())
}

/// The kernel's end that listens; `listens` is told when it does, and the thread.
async fn serve(act: Act, board: Arc<Board>, listens: &Sender<i32>) -> io::Result<()> {
    let socket = socket()?;
    socket.bind(SocketAddr::from((PEER, PORT)))?;
    let listener = socket.listen(BACKLOG)?;
    // Whoever waits for it is there, or the process ends.
    let _ = listens.send(rustix::thread::gettid().as_raw_nonzero().get());
    program::serve(act, board, async || prompt(listener.accept().await?.0)).await
}

/// A connection of the kernel's.
async fn connect() -> io::Result<Placed<TcpStream>> {
    prompt(socket()?.connect(SocketAddr::from((PEER, PORT))).await?)
}

/// Before it is connected, for a connection that began with BBR stays paced. What a listener
/// accepts has it too.
fn socket() -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    sockopt::set_tcp_congestion(socket.as_fd(), KERNEL_CC)
        .map_err(|errno| io::Error::other(format!("the kernel's TCP does not take {KERNEL_CC}: {errno}")))?;
    Ok(socket)
}

/// A connection that sends at once, and ends with the process: what nobody will acknowledge would
/// hold the kernel's memory for minutes, and slow down the measurements after this one.
fn prompt(stream: TcpStream) -> io::Result<Placed<TcpStream>> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_linger(stream.as_fd(), Some(Duration::ZERO))?;
    Ok((stream, Handle::current()))
}

/// Starts an end. Its end, which is an error, goes to `report`.
pub(crate) fn spawn(
    name: &str,
    report: &Sender<String>,
    end: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Outcome<()> {
    let (label, report) = (name.to_owned(), report.clone());
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let why = end().map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
        // Whoever waits for it is there, or the process ends.
        let _ = report.send(format!("{label}: {why}"));
    })?;
    Ok(())
}

/// Waits until it has begun, and some time longer. `otherwise` says what is wrong if it never does.
pub(crate) fn warm_up(
    ended: &Receiver<String>,
    has_begun: impl Fn() -> bool,
    otherwise: &'static str,
) -> Outcome<()> {
    let mut waited = Duration::ZERO;
    while !has_begun() {
        pause(ended, LOOK)?;
        waited += LOOK;
        if waited > PATIENCE {
            return Err(otherwise.into());
        }
    }
    pause(ended, WARM_UP)
}

/// The kernel's end that listens where the measured end is, if that is the kernel's: what becomes
/// of its connections is up to `serve`.
pub(crate) async fn accept_in_kernel(serve: impl Fn(TcpStream)) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((HERE, PORT)))?;
    let listener = socket.listen(BACKLOG)?;
    loop {
        serve(listener.accept().await?.0);
    }
}

/// Waits; an end that ends meanwhile is an error.
pub(crate) fn pause(ended: &Receiver<String>, length: Duration) -> Outcome<()> {
    match ended.recv_timeout(length) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Ok(why) => Err(why.into()),
        Err(RecvTimeoutError::Disconnected) => Err("both ends are gone".into()),
    }
}
