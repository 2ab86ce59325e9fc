//! Connections to a published port.

use super::header::header;
use super::spec::ProxyHeader;
use super::{Base, source};
use crate::ends::{OutsideStream, StackStream};
use crate::first_flight::FirstFlight;
use crate::outside::{Stream, keep_alive};
use crate::relay::relay;
use crate::shared::Shared;
use crate::throttle::Pace;
use ackline_runtime::{Stack, TcpStream};
use ackline_tcp_core::Target;
use bytes::Bytes;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Without a descriptor, the next try comes after this.
const BREATH: Duration = Duration::from_millis(100);

/// A connection that the kernel has accepted.
pub(crate) struct Arrival {
    stream: net::TcpStream,
    client: SocketAddr,
    guest: SocketAddr,
    header: Option<ProxyHeader>,
}

impl Arrival {
    pub(crate) const fn client(&self) -> SocketAddr {
        self.client
    }

    /// Resets it.
    pub(crate) fn refuse(self) {
        Stream::Kernel(self.stream).abort();
    }
}

/// Listens at `address`, whose connections are for `guest`. Returns where it listens.
pub(super) fn listen(
    base: Base,
    address: SocketAddr,
    guest: SocketAddr,
    header: Option<ProxyHeader>,
    tasks: &mut JoinSet<()>,
) -> io::Result<SocketAddr> {
    let socket = if address.is_ipv4() { net::TcpSocket::new_v4()? } else { net::TcpSocket::new_v6()? };
    // As servers do, so that ports of connections in TIME-WAIT can be published again.
    socket.set_reuseaddr(true)?;
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    }
    socket.bind(address)?;
    let listener = socket.listen(1_024)?;
    let at = listener.local_addr()?;
    tasks.spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, client)) => {
                    let arrival = Arrival { stream, client, guest, header };
                    if base.arrivals.send(arrival).await.is_err() {
                        return;
                    }
                }
                // The connection has ended before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    base.shared.counters.no_descriptor.one();
                    base.shared.notices.trouble(&format!("published port {at}"), error);
                    sleep(BREATH).await;
                }
            }
        }
    });
    Ok(at)
}

/// Carries a connection to the guest, and on to its end.
pub(crate) async fn carry(shared: &Shared, stack: &Stack, arrival: Arrival) {
    let Arrival { stream, client, guest, header: version } = arrival;
    let counters = &shared.counters;
    let at = stream.local_addr();
    keep_alive(&stream);
    let mut outside = OutsideStream { stream: Stream::Kernel(stream), is_over: false };
    let Some(from) = source(shared, client, guest) else {
        counters.published_failed.one();
        let what =
            format_args!("{client} cannot reach {guest}: the proxy has no address of this IP version there");
        return shared.notices.trouble("published ports", what);
    };
    // A box of its own keeps what connecting takes out of the task.
    let connected = Box::pin(connect(shared, stack, from, guest, &outside.stream)).await;
    let mut inside = match connected {
        Ok(stream) => StackStream { stream, is_over: false },
        Err(error) => {
            // The client is reset: it has been accepted, and that is all that can be told.
            counters.published_failed.one();
            if error.kind() == ErrorKind::AddrInUse {
                shared.notices.trouble("published ports", format_args!("{client} to {guest}: {error}"));
            }
            return;
        }
    };
    let _open = counters.open_connections.enter();
    let told = match (version, at) {
        (Some(version), Ok(at)) => inside.stream.write_all(&header(version, client, at)).await,
        _ => Ok(()),
    };
    let outcome = match told {
        Ok(()) => {
            let first = FirstFlight::Read(Bytes::new());
            let pace = Pace::new(counters, None);
            relay(&mut inside.stream, &mut outside.stream, first, vec![], shared, &pace).await
        }
        Err(error) => Err(error),
    };
    (inside.is_over, outside.is_over) = (outcome.is_ok(), outcome.is_ok());
    if outcome.is_ok() { counters.finished.one() } else { counters.reset.one() }
}

/// Connects to the guest, unless the client goes away before.
async fn connect(
    shared: &Shared,
    stack: &Stack,
    from: SocketAddr,
    guest: SocketAddr,
    client: &Stream,
) -> io::Result<TcpStream> {
    let mut target = Target::new(guest);
    target.local_address = Some(from.ip());
    target.local_port = Some(from.port()).filter(|port| *port != 0);
    let connecting = stack.connect_to(target, stack.connections().clone());
    let gone = async {
        let Stream::Kernel(client) = client else { return std::future::pending().await };
        client.ready(Interest::ERROR).await.and(Err(ErrorKind::ConnectionReset.into()))
    };
    tokio::select! {
        connected = timeout(shared.config.connect_timeout, connecting) => {
            connected.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
        }
        gone = gone => gone,
    }
}
