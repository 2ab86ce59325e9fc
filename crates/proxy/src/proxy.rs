//! The proxy: what comes to a stack, and where it goes.

use crate::clients::{Clients, LimitReached, Permit};
use crate::connection;
use crate::counters::Stats;
use crate::ends::Client;
use crate::flow;
use crate::mapping::Mappings;
use crate::publish::{self, Arrival, Guard, Publisher};
use crate::shared::{Config, Shared};
use crate::target::Protocol;
use ackline_runtime::{HeldSyn, Incoming, IncomingUdp, Refusal, Stack, TcpStream, UdpFlow};
use ackline_tcp_core::ListenOn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A proxy on a stack that [accepts any address](ackline_runtime::stack::Builder::any_address): it
/// ends the connections and UDP flows that come there, and carries them on.
///
/// A client is answered when its destination has answered. A refusal becomes an RST, an unreachable
/// destination an ICMP error, and silence stays silence. Beyond
/// [`Limits::client_early`](crate::Limits::client_early) and
/// [`Limits::early`](crate::Limits::early), clients are connected first, because a SYN may be
/// forged; each of these outcomes is then an RST. So is a client whose connection only a rule by
/// [`server_names`](crate::Rule::server_names) could let through.
pub struct Proxy {
    shared: Arc<Shared>,
    mappings: Arc<Mappings>,
    clients: Arc<Clients>,
    incoming: Incoming,
    flows: IncomingUdp,
    connections: JoinSet<()>,
    carried: JoinSet<()>,
    stack: Stack,
    published: Guard,
    /// Connections to published ports.
    arrivals: mpsc::Receiver<Arrival>,
}

/// Reads what a proxy has counted, also after its end.
#[derive(Clone)]
pub struct Meter(Arc<Shared>);

impl Meter {
    /// The counters now.
    #[must_use]
    pub fn read(&self) -> Stats {
        self.0.counters.read()
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Meter").field(&self.read()).finish()
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("counters", &self.shared.counters).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Takes all connections and flows of `stack`.
    ///
    /// # Errors
    /// `AddrInUse` if somebody else takes them; `NetworkDown` if the device is gone, `NotConnected`
    /// once the stack shuts down.
    pub fn new(stack: &Stack, config: Config) -> io::Result<Self> {
        let incoming = stack.listen(ListenOn::Any)?.incoming()?;
        let flows = stack.incoming_udp()?;
        let clients = Clients::new(config.limits);
        let shared = Arc::new(Shared::new(config));
        let (publisher, arrivals) = Publisher::new(shared.clone(), stack.clone(), clients.clone());
        Ok(Self {
            mappings: Arc::new(Mappings::new(shared.clone())),
            shared,
            clients,
            incoming,
            flows,
            connections: JoinSet::new(),
            carried: JoinSet::new(),
            stack: stack.clone(),
            published: Guard(publisher),
            arrivals,
        })
    }

    /// What it counts.
    #[must_use]
    pub fn meter(&self) -> Meter {
        Meter(self.shared.clone())
    }

    /// Publishes ports of this machine, while the proxy runs.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.published.0.clone()
    }

    /// Carries connections and flows on, until the stack fails. Dropping the future loses nothing:
    /// another one goes on.
    pub async fn run(&mut self) -> io::Error {
        loop {
            // What goes wrong with one connection or flow its two ends are told.
            tokio::select! {
                syn = self.incoming.next() => match syn {
                    Ok(syn) => self.connection(syn),
                    Err(error) => return error,
                },
                // Others wait in the backlog.
                proved = self.incoming.listener().accept(), if !self.clients.is_full() => match proved {
                    Ok((stream, peer)) => self.proved(stream, peer.ip()),
                    Err(error) => return error,
                },
                flow = self.flows.accept() => match flow {
                    Ok(flow) => self.flow(flow),
                    Err(error) => return error,
                },
                // Others wait in the kernel's backlog.
                Some(arrival) = self.arrivals.recv(), if !self.clients.is_full() => self.arrival(arrival),
                // Nothing is kept of those that have ended.
                Some(_) = self.connections.join_next() => {}
                Some(_) = self.carried.join_next() => {}
            }
        }
    }

    /// Ends it: nothing is accepted any more, flows end, and connections have `limit` to end by
    /// themselves. The others are reset.
    pub async fn finish(self, limit: Duration) {
        let Self { incoming, flows, mut connections, mut carried, published, arrivals, .. } = self;
        drop((incoming, flows, published, arrivals));
        carried.shutdown().await;
        let all = async { while connections.join_next().await.is_some() {} };
        // Whoever has not ended by then is reset, by dropping it.
        let _ = timeout(limit, all).await;
        connections.shutdown().await;
    }

    fn connection(&mut self, syn: HeldSyn) {
        let client = syn.peer_addr().ip();
        let permit = match self.permit(client) {
            Ok(permit) => permit,
            Err(LimitReached::Client) => return syn.refuse(Refusal::Rst),
            Err(LimitReached::Total) => return syn.refuse(Refusal::Drop),
        };
        // Beyond its limits it is connected first, and costs nothing until then.
        let Some(early) = self.clients.begin_early(client) else {
            self.shared.counters.proof_first.one();
            return syn.release();
        };
        self.shared.counters.connections.one();
        // Beside the client's shard, where the other end's socket is made, too.
        let beside = syn.runtime().clone();
        self.carry(Client::Held(Box::new(syn), early), permit, &beside);
    }

    /// A client has completed its handshake whose SYN was not to be held.
    fn proved(&mut self, stream: TcpStream, client: IpAddr) {
        let Ok(permit) = self.permit(client) else { return stream.abort() };
        self.shared.counters.connections.one();
        let beside = stream.runtime().clone();
        self.carry(Client::Proved(Box::new(stream)), permit, &beside);
    }

    /// A client has connected to a published port.
    fn arrival(&mut self, arrival: Arrival) {
        let Ok(permit) = self.permit(arrival.client().ip()) else { return arrival.refuse() };
        self.shared.counters.connections.one();
        self.shared.counters.published.one();
        let (shared, stack) = (self.shared.clone(), self.stack.clone());
        self.connections.spawn(async move {
            publish::carry(&shared, &stack, arrival).await;
            drop(permit);
        });
    }

    /// A permit for a connection of `client`. Counts and reports a refusal.
    fn permit(&self, client: IpAddr) -> Result<Permit, LimitReached> {
        let permit = self.clients.enter(client, Protocol::Tcp);
        match permit {
            Ok(_) => {}
            Err(LimitReached::Client) => {
                self.shared.counters.connections.one();
                self.shared.counters.client_connections_limit.one();
                self.shared.client_is_full(client, "connections");
            }
            Err(LimitReached::Total) => {
                self.shared.counters.connections.one();
                self.shared.is_full();
            }
        }
        permit
    }

    fn carry(&mut self, client: Client, permit: Permit, beside: &Handle) {
        let shared = self.shared.clone();
        let carry = async move {
            connection::carry(&shared, client).await;
            drop(permit);
        };
        self.connections.spawn_on(carry, beside);
    }

    fn flow(&mut self, flow: UdpFlow) {
        let counters = &self.shared.counters;
        counters.flows.one();
        let Ok(client) = flow.peer_addr().map(|peer| peer.ip()) else { return };
        match self.clients.enter(client, Protocol::Udp) {
            Ok(permit) => {
                let mappings = self.mappings.clone();
                self.carried.spawn(async move {
                    flow::carry(&mappings, flow).await;
                    drop(permit);
                });
            }
            Err(LimitReached::Client) => {
                counters.client_flows_limit.one();
                self.shared.client_is_full(client, "UDP flows");
                flow.refuse();
            }
            Err(LimitReached::Total) => self.shared.is_full(),
        }
    }
}
