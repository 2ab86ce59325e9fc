//! State that all connections and flows share, and the choice of each one's way.

use crate::backlog::Backlog;
use crate::clients::{FileLimits, Limits};
use crate::counters::Counters;
use crate::dns::{DNS, Health, Hosts, Resolver, Resolvers};
use crate::filtering::Filtering;
use crate::names::{AddressNames, NameUse, Names};
use crate::notices::{Notices, Say};
use crate::outside::machine::{Interface, Machine};
use crate::outside::{Exit, WayOut};
use crate::rules::{Action, Rules, Verdict};
use crate::target::{Protocol, Target, can_be_carried};
use crate::upstream::{ConnectError, Upstream};
use ackline_runtime::{Refusal, timer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

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
    pub(crate) notices: Notices,
}

/// The resolvers that a client's questions may go to, each by its way.
pub(crate) type Ways = Vec<(Arc<Upstream>, Resolver)>;

/// Where a connection or flow goes.
pub(crate) enum Way {
    Through(Arc<Upstream>, Target),
    /// To the resolvers.
    Resolvers(Ways),
    Refuse,
    Drop,
}

impl Shared {
    /// The state of a new proxy.
    pub(crate) fn new(config: Config) -> Self {
        let machine = Arc::new(Machine::new(config.interface.clone()));
        Self {
            direct: Arc::new(Upstream::Direct),
            out: WayOut::new(config.exit.clone(), machine.clone()),
            near: WayOut::new(Exit::Kernel, machine.clone()),
            machine,
            counters: Counters::default(),
            backlog: Backlog::new(config.backlog),
            windows: Backlog::of_windows(config.windows),
            names: Names::new(NAMES),
            health: Health::default(),
            notices: Notices::new(config.say.clone()),
            config,
        }
    }

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

    /// What a rule ends.
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

    pub(crate) fn client_is_full(&self, client: IpAddr, of_what: &str) {
        self.notices.trouble("limit", format_args!("{client} has as many {of_what} as a client may have"));
    }

    pub(crate) fn is_full(&self) {
        self.counters.no_descriptor.one();
        let total = self.config.limits.total;
        self.notices.trouble(
            "limit",
            format_args!("{total} connections and flows are all there may be; others wait"),
        );
    }

    /// Counts why a connection or flow could not be carried on, says what concerns who runs the
    /// proxy, and returns what a client is told.
    pub(crate) fn refusal(&self, upstream: &impl std::fmt::Display, error: &ConnectError) -> Refusal {
        let counters = &self.counters;
        let (counter, refusal) = match error {
            ConnectError::Refused => (&counters.upstream_refused, Refusal::Rst),
            ConnectError::Unreachable => (&counters.upstream_unreachable, Refusal::Unreachable),
            ConnectError::TimedOut => (&counters.upstream_timeouts, Refusal::Drop),
            ConnectError::Exhausted(error) => {
                self.notices.trouble(
                    "sockets",
                    format_args!("{error}; connections and flows wait until some have ended"),
                );
                (&counters.no_descriptor, Refusal::Drop)
            }
            ConnectError::Server(what) => {
                self.notices.trouble(&upstream.to_string(), what);
                (&counters.upstream_failed, Refusal::Unreachable)
            }
        };
        counter.one();
        refusal
    }
}
