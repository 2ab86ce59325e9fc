//! A live host: a stack of ackline with the runtime's driver.

use super::apps::{BACKLOG, Listener, Net, Ready, Socket, Task};
use super::{RealTime, failed};
use crate::port::Offload;
use ackline_lab::stage::{OutsideHost, StageError};
use ackline_netsim::record::ConnSample;
use ackline_runtime::device::channel::{Channel, ChannelConfig};
use ackline_runtime::{Device, Stack, TcpListener, TcpSocket, TcpStream};
use ackline_tcp_core::Instant;
use ackline_tcp_core::config::ConnConfig;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// A stack and its applications.
pub(super) struct LiveHost {
    ready: Vec<Ready<Live>>,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for LiveHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveHost").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl LiveHost {
    /// Starts the stack, in which everything listens that is to listen.
    pub(super) fn start(
        host: OutsideHost,
        tasks: Vec<Task>,
        kind: RealTime,
        runtime: &Handle,
    ) -> Result<(Self, Box<dyn Device>), StageError> {
        let _entered = runtime.enter();
        let config = ChannelConfig::default().mtu(host.config.mtu);
        // What would be split at once is better sent as it leaves.
        let config = if kind.offload == Offload::Whole { config } else { config.plain() };
        let (device, end) = Channel::pair(config);
        let (config, scheduler) = (host.config, (host.scheduler)());
        let stack = Stack::builder(device)
            .configure(|own| {
                let determined = own.clone();
                own.clone_from(&config);
                own.max_super_packet = determined.max_super_packet;
                own.tx_checksum = determined.tx_checksum;
            })
            .scheduler(scheduler)
            .pacing(kind.pacing)
            .spawn();
        let stack = stack.map_err(failed(format!("start host {}", host.name)))?;
        let net = Live { stack };
        let ready = tasks.into_iter().map(|task| task.prepare(&net)).collect::<Result<_, _>>()?;
        Ok((Self { ready, tasks: JoinSet::new() }, Box::new(end)))
    }

    pub(super) fn begin(&mut self, runtime: &Handle, epoch: Instant) {
        for ready in self.ready.drain(..) {
            self.tasks.spawn_on(ready.run(epoch), runtime);
        }
    }
}

#[derive(Clone)]
pub(super) struct Live {
    stack: Stack,
}

impl Live {
    fn socket(&self, conn: &ConnConfig) -> io::Result<TcpSocket> {
        let socket = TcpSocket::new_v4(&self.stack)?;
        socket.configure(|own| own.clone_from(conn));
        Ok(socket)
    }
}

impl Net for Live {
    type Socket = TcpStream;
    type Listener = TcpListener;

    async fn connect(&self, to: SocketAddr, conn: &Arc<ConnConfig>) -> io::Result<TcpStream> {
        self.socket(conn)?.connect(to).await
    }

    fn listen(&self, port: u16, conn: &Arc<ConnConfig>) -> io::Result<TcpListener> {
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
        self.info().ok().map(|info| ConnSample::of(at, &info))
    }

    fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.local_addr()?, self.peer_addr()?))
    }
}
