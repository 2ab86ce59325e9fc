//! The proxy: what comes to a stack, and where it goes.

use crate::backlog::Backlog;
use crate::clients::{Clients, LimitReached, Limits, Permit};
use crate::connection::{self, Client};
use crate::counters::{Counters, Stats};
use crate::dns::{self, DNS, Health, Hosts, Resolver, Resolvers};
use crate::file::FileLimits;
use crate::flow;
use crate::machine::{Interface, Machine};
use crate::mapping::{Filtering, Mappings};
use crate::names::{AddressNames, NameUse, Names};
use crate::notices::{Notices, Say};
use crate::outside::{Exit, WayOut};
use crate::publish::{self, Arrival, Guard, Publisher};
use crate::rules::{Action, Rules, Verdict};
use crate::target::{Protocol, Target, can_be_carried};
use crate::upstream::Upstream;
use ackline_runtime::{HeldSyn, Incoming, IncomingUdp, Refusal, Stack, TcpStream, UdpFlow, timer};
use ackline_tcp_core::ListenOn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Names that are remembered.
const NAMES: usize = 16_384;

/// How a proxy carries on what comes to it.
#[derive(Clone)]
pub struct Config {
    /// Where connections and flows are forwarded. Default: directly to their destinations.
    pub rules: Rules,
    /// The proxy's own addresses. Default: none.
    pub own: Vec<IpAddr>,
    /// Resolvers that answer on port 53 of these. Default: none.
    pub resolvers: Resolvers,
    /// Names that the proxy answers there itself. Default: none.
    pub hosts: Hosts,
    /// What the names in their answers are used for. Default: rules and upstreams.
    pub names: NameUse,
    /// Filtering of datagrams to clients (RFC 4787, section 5). Default: address-dependent.
    pub filtering: Filtering,
    /// How connections and flows leave. Default: by the kernel's sockets.
    pub exit: Exit,
    /// The interface whose packets come to the proxy, if it is of this network namespace: what the
    /// kernel's sockets would send there fails, because it would come back. Default: none.
    pub interface: Option<Interface>,
    /// The resolvers are asked by the kernel's sockets, without an upstream, whatever the rules
    /// say. Default: false.
    pub resolver_is_near: bool,
    /// The other ports of the proxy's own addresses are those of this machine's loopback, and
    /// clients may be carried on straight to this machine's other addresses. Default: false, they
    /// refuse.
    pub loopback: bool,
    /// Limits of what clients may have.
    pub limits: Limits,
    /// Time that an upstream has to connect. Then the client is left without an answer, as by a
    /// destination that does not answer. Less than
    /// [`held_syn_timeout`](ackline_tcp_core::EndpointConfig::held_syn_timeout). Default: 30 s.
    pub connect_timeout: Duration,
    /// Time of that in which an upstream's own server must take a connection, and of SOCKS5 speak.
    /// Then it counts as down. Default: 10 s.
    pub server_timeout: Duration,
    /// Bytes that may wait in the send buffers of all connections together whose receiver is slower
    /// than their sender. A single one holds no more than the stack's settings allow, and may
    /// always hold 64 KiB. Default: 64 MiB.
    pub backlog: u64,
    /// Bytes that the windows of all clients together may let them send, while those send bulk
    /// data: what the device's queue holds, if its packets are few and single. Each may always send
    /// 4 KiB, and as much as its first window says. Default: `u64::MAX`.
    pub windows: u64,
    /// Longest IP packet towards clients, in bytes. Default: 1,500.
    pub mtu: u32,
    /// Called with a line of text about trouble: an upstream that fails, descriptors that are used
    /// up. Default: `None`.
    pub say: Option<Say>,
}

impl Default for Config {
    fn default() -> Self {
        let limits = FileLimits::default();
        Self {
            rules: Rules::all_through(Upstream::Direct),
            own: vec![],
            resolvers: Resolvers::default(),
            hosts: Hosts::default(),
            names: NameUse::default(),
            filtering: Filtering::default(),
            exit: Exit::Kernel,
            interface: None,
            resolver_is_near: false,
            loopback: false,
            limits: limits.clients,
            connect_timeout: limits.connect_timeout.into(),
            server_timeout: limits.server_timeout.into(),
            backlog: limits.backlog,
            windows: limits.windows,
            mtu: 1_500,
            say: None,
        }
    }
}

/// State that all connections and flows share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    direct: Arc<Upstream>,
    machine: Arc<Machine>,
    /// Way out of connections and flows.
    pub(crate) out: WayOut,
    /// By the kernel's sockets.
    near: WayOut,
    pub(crate) counters: Counters,
    pub(crate) backlog: Backlog,
    pub(crate) windows: Backlog,
    pub(crate) names: Names,
    pub(crate) health: Health,
    pub(crate) mappings: Mappings,
    pub(crate) notices: Notices,
}

/// A proxy on a stack that [accepts any address](ackline_runtime::stack::Builder::any_address): it
/// ends the connections and UDP flows that come there, and carries them on.
///
/// A client is answered when its destination has answered. A refusal becomes an RST, an unreachable
/// destination an ICMP error, and silence stays silence. Beyond [`Limits::client_early`] and
/// [`Limits::early`], clients are connected first, because a SYN may be forged; each of these
/// outcomes is then an RST.
pub struct Proxy {
    shared: Arc<Shared>,
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
        let machine = Arc::new(Machine::new(config.interface.clone()));
        let shared = Arc::new(Shared {
            direct: Arc::new(Upstream::Direct),
            out: WayOut::new(config.exit.clone(), machine.clone()),
            near: WayOut::new(Exit::Kernel, machine.clone()),
            machine,
            counters: Counters::default(),
            backlog: Backlog::new(config.backlog),
            windows: Backlog::of_windows(config.windows),
            names: Names::new(NAMES),
            health: Health::default(),
            mappings: Mappings::default(),
            notices: Notices::new(config.say.clone()),
            config,
        });
        let (publisher, arrivals) = Publisher::new(shared.clone(), stack.clone(), clients.clone());
        Ok(Self {
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

    /// Its counters.
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
                let shared = self.shared.clone();
                self.carried.spawn(async move {
                    flow::carry(&shared, flow).await;
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

/// Where a connection or flow goes.
pub(crate) enum Way {
    Through(Arc<Upstream>, Target),
    /// To the resolvers.
    Resolvers(dns::Ways),
    Refuse,
    Drop,
}

impl Shared {
    /// Way out of queries to the resolver.
    pub(crate) const fn out_to_resolver(&self) -> &WayOut {
        if self.config.resolver_is_near { &self.near } else { &self.out }
    }

    /// The way of what `client` sends to `wanted`. Counts what has none.
    pub(crate) fn way(&self, client: IpAddr, wanted: SocketAddr, protocol: Protocol) -> Way {
        let Config { rules, own, resolvers, loopback, names, .. } = &self.config;
        let has_resolvers = !resolvers.servers.is_empty() || !self.config.hosts.is_empty();
        if own.contains(&wanted.ip()) {
            return match wanted.port() {
                DNS if has_resolvers => self.way_to_resolvers(client, protocol),
                _ if *loopback => {
                    let here: IpAddr = match wanted {
                        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                    };
                    Way::Through(self.direct.clone(), SocketAddr::new(here, wanted.port()).into())
                }
                _ => self.refuse_uncarried(),
            };
        }
        if !can_be_carried(wanted.ip()) {
            return self.refuse_uncarried();
        }
        let known = match names {
            NameUse::Off => AddressNames::default(),
            NameUse::Rules | NameUse::Upstreams => self.names.of(timer::now(), client, wanted.ip()),
        };
        if !known.names.is_empty() {
            self.counters.named.one();
            if known.only().is_none() {
                self.counters.several_names.one();
            }
        }
        let (action, by_address) = match rules.verdict(client, wanted, &known, protocol) {
            Verdict::Action { action, by_address } => (action, by_address),
            Verdict::Unknown => return self.refuse_forgotten(client),
        };
        match action {
            Action::Through(upstream) if self.may_carry(wanted.ip(), upstream) => {
                let name = known.only().filter(|_| *names == NameUse::Upstreams && !by_address);
                Way::Through(upstream.clone(), Target { address: wanted, name })
            }
            Action::Through(_) => self.refuse_uncarried(),
            Action::Resolver if has_resolvers => self.way_to_resolvers(client, protocol),
            action => self.end_by_rule(action),
        }
    }

    /// `upstream` may carry a client on to `address`, whether it comes from a packet or from a
    /// name.
    fn may_carry(&self, address: IpAddr, upstream: &Upstream) -> bool {
        // Which addresses are a server's own, only the server knows.
        let is_of_server = *upstream != Upstream::Direct;
        can_be_carried(address) && (is_of_server || self.config.loopback || !self.machine.has(address))
    }

    /// The ways to the resolvers that the rules leave.
    fn way_to_resolvers(&self, client: IpAddr, protocol: Protocol) -> Way {
        let Config { rules, resolvers, resolver_is_near, .. } = &self.config;
        if *resolver_is_near {
            let direct = |resolver: &Resolver| (self.direct.clone(), *resolver);
            return Way::Resolvers(resolvers.servers.iter().map(direct).collect());
        }
        let (mut ways, mut end) = (vec![], &Action::Refuse);
        for resolver in &resolvers.servers {
            // As the question reaches it.
            let by = if protocol == Protocol::Tcp { protocol } else { resolver.protocol };
            let Verdict::Action { action, .. } =
                rules.verdict(client, resolver.address, &AddressNames::default(), by)
            else {
                continue;
            };
            match action {
                Action::Through(upstream) => ways.push((upstream.clone(), *resolver)),
                Action::Resolver => ways.push((self.direct.clone(), *resolver)),
                Action::Refuse | Action::Drop => end = action,
            }
        }
        // Names of the proxy's own need none.
        let has_answer = !ways.is_empty() || !self.config.hosts.is_empty();
        if has_answer { Way::Resolvers(ways) } else { self.end_by_rule(end) }
    }

    /// Refused by a rule.
    fn end_by_rule(&self, action: &Action) -> Way {
        if *action == Action::Drop {
            self.counters.rule_dropped.one();
            return Way::Drop;
        }
        // Nobody resolves, or it says so.
        self.counters.rule_refused.one();
        Way::Refuse
    }

    fn refuse_forgotten(&self, client: IpAddr) -> Way {
        self.counters.forgotten_refused.one();
        self.notices.trouble(
            "names",
            format_args!("{client} has asked for so many that some are forgotten; what a rule by domain may be for is refused"),
        );
        Way::Refuse
    }

    fn refuse_uncarried(&self) -> Way {
        self.counters.not_carried.one();
        Way::Refuse
    }

    fn client_is_full(&self, client: IpAddr, of_what: &str) {
        self.notices.trouble("limit", format_args!("{client} has as many {of_what} as a client may have"));
    }

    fn is_full(&self) {
        self.counters.no_descriptor.one();
        let total = self.config.limits.total;
        self.notices.trouble(
            "limit",
            format_args!("{total} connections and flows are all there may be; others wait"),
        );
    }
}
