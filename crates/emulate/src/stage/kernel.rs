//! A host of the kernel: a network namespace with a thread in it.

use super::apps::{BACKLOG, Listener, Net, Ready, Socket, Task};
use super::failed;
use crate::port::Offload;
use ackline_lab::stage::{KernelSetting, KernelSettings, OutsideEnd, OutsideHost, StageError, cc_name};
use ackline_netsim::record::ConnSample;
use ackline_runtime::Device;
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::kernel::{KernelTcpInfo, set_max_segment};
use ackline_runtime::netlink::InterfaceAddress;
use ackline_runtime::netns::Namespace;
use ackline_tcp_core::config::{ConnConfig, Nagle};
use ackline_tcp_core::{Instant, State};
use ipnet::{IpNet, Ipv4Net};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The name of the host's interface.
const INTERFACE: &str = "ackline0";

/// A namespace, which goes with its thread.
#[derive(Debug)]
pub(super) struct KernelHost {
    name: String,
    /// Time zero, then the end.
    begin: Option<oneshot::Sender<Instant>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KernelHost {
    /// Makes the namespace, in which everything listens that is to listen.
    pub(super) fn start(
        host: OutsideHost,
        tasks: Vec<Task>,
        offload: Offload,
        runtime: &Handle,
    ) -> Result<(Self, Box<dyn Device>), StageError> {
        let (told, ready) = mpsc::sync_channel(1);
        let (begin, begun) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (handle, name) = (runtime.clone(), host.name.clone());
        let thread = std::thread::Builder::new().name(format!("host {name}")).spawn(move || {
            let made = HostThread::make(&host, tasks, offload, &handle);
            let (device, inside) = match made {
                Ok(made) => made,
                Err(error) => {
                    let _ = told.send(Err(error));
                    return;
                }
            };
            if told.send(Ok(device)).is_ok() {
                inside.run(begun, stopped);
            }
        });
        let thread = thread.map_err(failed("start a thread"))?;
        let device = ready.recv().map_err(failed(format!("make host {name}")))?;
        let host = Self { name, begin: Some(begin), stop: Some(stop), thread: Some(thread) };
        Ok((host, Box::new(device?)))
    }

    pub(super) fn begin(&mut self, epoch: Instant) -> Result<(), StageError> {
        let begun = self.begin.take().is_some_and(|begin| begin.send(epoch).is_ok());
        if begun { Ok(()) } else { Err(StageError::Machine(format!("host {} is gone", self.name))) }
    }
}

impl Drop for KernelHost {
    fn drop(&mut self) {
        (self.begin, self.stop) = (None, None);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes what every host has, and leaves nothing behind.
pub(super) fn probe() -> Result<(), StageError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed("start a runtime"))?;
    // A namespace belongs to a thread.
    let thread = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
        Namespace::new_for_thread().map_err(failed("make a host of the kernel"))?;
        let _entered = runtime.enter();
        let tun = Tun::create(&TunConfig::new().plain().name(INTERFACE));
        tun.map(drop).map_err(failed("give a host of the kernel a TUN device"))
    });
    let thread = thread.map_err(failed("start a thread"))?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// State of the host's thread.
struct HostThread {
    runtime: Runtime,
    ready: Vec<Ready<Kernel>>,
}

impl HostThread {
    /// `emulator`: whose device it will be.
    fn make(
        host: &OutsideHost,
        tasks: Vec<Task>,
        offload: Offload,
        emulator: &Handle,
    ) -> Result<(Tun, Self), StageError> {
        let name = &host.name;
        Namespace::new_for_thread().map_err(failed(format!("make host {name}")))?;
        host.kernel.sysctls.iter().try_for_each(set)?;
        let IpAddr::V4(address) = host.address else {
            return Err(StageError::Machine(format!("host {name} has no IPv4 address")));
        };
        let own = InterfaceAddress::network(IpNet::V4(Ipv4Net::new_assert(address, 32)));
        let everything = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0));
        let config = TunConfig::new().name(INTERFACE).mtu(host.config.mtu);
        let config = if offload == Offload::Off { config.plain() } else { config };
        let tun = {
            let _entered = emulator.enter();
            Tun::create(&config.address(own).route(everything))
        };
        let tun = tun.map_err(failed(format!("give host {name} a TUN device")))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed("start a runtime"))?;
        let net = Kernel::of(&host.kernel);
        let entered = runtime.enter();
        for task in &tasks {
            net.check(name, &task.end)?;
        }
        let ready = tasks.into_iter().map(|task| task.prepare(&net)).collect::<Result<_, _>>()?;
        drop(entered);
        Ok((tun, Self { runtime, ready }))
    }

    fn run(self, begun: oneshot::Receiver<Instant>, stopped: oneshot::Receiver<()>) {
        let Self { runtime, ready } = self;
        runtime.block_on(async move {
            let Ok(epoch) = begun.await else { return };
            let mut tasks: JoinSet<()> = ready.into_iter().map(|ready| ready.run(epoch)).collect();
            let all = async {
                while tasks.join_next().await.is_some() {}
                // What they have told is still asked for.
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = all => {}
                _ = stopped => {}
            }
        });
    }
}

/// Sets one of sysctl(8)'s, in the namespace of the calling thread.
fn set(setting: &KernelSetting) -> Result<(), StageError> {
    let KernelSetting { name, value, place } = setting;
    std::fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value).map_err(|error| {
        StageError::Setting(match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{place}: the kernel has no setting {name} in a network namespace (sysctl -a -r net)")
            }
            _ => format!("{place}: the kernel does not take {value:?}: {}", words(error)),
        })
    })
}

/// An error without its number.
fn words(error: impl Into<io::Error>) -> String {
    let text = error.into().to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// The kernel's TCP, in the namespace of the calling thread.
#[derive(Clone)]
pub(super) struct Kernel {
    /// Instead of that of the flow.
    cc: Option<KernelSetting>,
    /// The namespace has a size of send buffers: the kernel counts the memory of segments, so a
    /// flow's number may not fit it.
    tcp_wmem: bool,
    /// The same of receive buffers.
    tcp_rmem: bool,
}

impl Kernel {
    fn of(settings: &KernelSettings) -> Self {
        let sets = |name: &str| settings.sysctls.iter().any(|setting| setting.name == name);
        Self {
            cc: settings.cc.clone(),
            tcp_wmem: sets("net.ipv4.tcp_wmem"),
            tcp_rmem: sets("net.ipv4.tcp_rmem"),
        }
    }

    /// A socket with what the kernel has of these settings.
    fn socket(&self, conn: &ConnConfig) -> io::Result<TcpSocket> {
        let socket = TcpSocket::new_v4()?;
        let usual = ConnConfig::default();
        if conn.send_buffer != usual.send_buffer && !self.tcp_wmem {
            socket.set_send_buffer_size(conn.send_buffer)?;
        }
        if conn.recv_buffer != usual.recv_buffer && !self.tcp_rmem {
            socket.set_recv_buffer_size(conn.recv_buffer)?;
        }
        if let Some(mss) = conn.mss {
            set_max_segment(&socket, mss)?;
        }
        socket.set_nodelay(conn.nagle == Nagle::Off)?;
        let cc = self.cc(conn);
        // Of an end that only receives it does not matter; one that sends was checked.
        let _ = rustix::net::sockopt::set_tcp_congestion(&socket, &cc);
        Ok(socket)
    }

    fn cc(&self, conn: &ConnConfig) -> String {
        self.cc.as_ref().map_or_else(|| cc_name(conn), |cc| cc.value.clone())
    }

    /// Fails if the kernel lacks the congestion control of an end that sends, or does not take its
    /// MSS.
    fn check(&self, host: &str, end: &OutsideEnd) -> Result<(), StageError> {
        let socket = TcpSocket::new_v4().map_err(failed("open a socket"))?;
        if let Some(mss) = end.conn.mss {
            set_max_segment(&socket, mss).map_err(|error| {
                let why = words(error);
                StageError::Setting(format!("host {host}: the kernel does not take mss={mss}: {why}"))
            })?;
        }
        if !end.sends {
            return Ok(());
        }
        let cc = self.cc(&end.conn);
        rustix::net::sockopt::set_tcp_congestion(&socket, &cc).map_err(|error| {
            let place = self.cc.as_ref().map(|cc| &cc.place).or(end.cc_place.as_ref());
            let place = place.cloned().unwrap_or_else(|| format!("host {host}"));
            if error != Errno::NOENT {
                return StageError::Setting(format!(
                    "{place}: the kernel does not take {cc:?}: {}",
                    words(error)
                ));
            }
            let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            let known = known.unwrap_or_default();
            StageError::Setting(format!(
                "{place}: the kernel has no congestion control {cc:?}; it has {}",
                known.trim()
            ))
        })
    }
}

impl Net for Kernel {
    type Socket = TcpStream;
    type Listener = TcpListener;

    async fn connect(&self, to: SocketAddr, conn: &Arc<ConnConfig>) -> io::Result<TcpStream> {
        self.socket(conn)?.connect(to).await
    }

    fn listen(&self, port: u16, conn: &Arc<ConnConfig>) -> io::Result<TcpListener> {
        // What it accepts inherits its settings.
        let socket = self.socket(conn)?;
        socket.bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))?;
        socket.listen(BACKLOG)
    }
}

impl Listener for TcpListener {
    type Socket = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        Ok(Self::accept(self).await?.0)
    }
}

impl Socket for TcpStream {
    fn sample(&self, at: Instant) -> Option<ConnSample> {
        let info = KernelTcpInfo::of(self).ok()?;
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let state = info.state?;
        Some(ConnSample {
            at_ns: at.as_nanos(),
            state: state.name().into(),
            ca_state: info.ca_state.into(),
            blocked: "".into(),
            cwnd: u64::from(info.snd_cwnd) * u64::from(info.snd_mss),
            ssthresh: info.snd_ssthresh.map(|segments| u64::from(segments) * u64::from(info.snd_mss)),
            pipe: info.unacked.saturating_mul(info.snd_mss),
            snd_wnd: info.snd_wnd,
            rcv_wnd: info.rcv_wnd,
            srtt_ns: Some(nanos(info.rtt)).filter(|rtt| *rtt > 0 && state != State::SynSent),
            min_rtt_ns: info.min_rtt.map(nanos),
            rto_ns: nanos(info.rto),
            pacing_bps: info.pacing_rate.map(|rate| rate.bits_per_second()),
            delivery_bps: info.delivery_rate.map(|rate| rate.bits_per_second()),
            bytes_sent: info.bytes_sent,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            bytes_retrans: info.bytes_retrans,
            retransmits: info.total_retrans.into(),
            timeouts: info.total_rto.into(),
            acks_out: (info.segs_out.saturating_sub(info.data_segs_out)).into(),
        })
    }

    fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.local_addr()?, self.peer_addr()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_the_namespace_come_before_those_of_a_flow() {
        let mut conn = ConnConfig::default();
        (conn.send_buffer, conn.recv_buffer) = (20_000, 30_000);
        let sizes = |names: &[&str]| {
            let setting = |name: &&str| KernelSetting {
                name: (*name).to_owned(),
                value: String::new(),
                place: String::new(),
            };
            let settings = KernelSettings { sysctls: names.iter().map(setting).collect(), cc: None };
            let socket = Kernel::of(&settings).socket(&conn).unwrap();
            (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap())
        };
        // The kernel doubles what is asked for.
        let (send, receive) = sizes(&["net.ipv4.tcp_sack"]);
        assert_eq!((send, receive), (40_000, 60_000));
        let (own, same) = sizes(&["net.ipv4.tcp_wmem"]);
        assert!(own != send && same == receive, "{own} {same}");
        let (same, own) = sizes(&["net.ipv4.tcp_rmem"]);
        assert!(same == send && own != receive, "{same} {own}");
    }
}
