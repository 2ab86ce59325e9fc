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
use crate::rules::decision::{Decision, Log, Reason};
use crate::rules::server_name::ServerName;
use crate::rules::{Action, Rules, Verdict};
use crate::target::{Protocol, Target, can_be_carried};
use crate::throttle::{Pace, RuleThrottle};
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
    /// All clients are addresses of one host, so names that one of them has resolved are known to
    /// all: a host asks a resolver over IPv4, and connects over IPv6. Default: false, one client's
    /// answers say nothing to another one.
    pub one_host: bool,
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
    /// Nothing is refused or dropped by rules, or held to a rate: what they would end is carried on
    /// as if no rule matched, or directly if that would end it, too. Default: false.
    pub dry_run: bool,
    /// Called with each decision about a connection or flow, of a connection before its first byte
    /// is carried on. It must not block. Default: `None`.
    pub log: Option<Log>,
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
            one_host: false,
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
            dry_run: false,
            log: None,
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
    /// Of each rule that has a rate.
    throttles: Vec<Option<RuleThrottle>>,
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

/// A way, and why.
pub(crate) struct Choice {
    pub(crate) way: Way,
    pub(crate) decision: Decision,
    /// False if it may be another one once the client has stated the server's name.
    pub(crate) is_final: bool,
}

impl Shared {
    /// The state of a new proxy.
    pub(crate) fn new(config: Config) -> Self {
        let machine = Arc::new(Machine::new(config.interface.clone()));
        let throttles = config.rules.rules.iter().map(|rule| rule.rate.map(RuleThrottle::new)).collect();
        Self {
            direct: Arc::new(Upstream::Direct),
            out: WayOut::new(config.exit.clone(), machine.clone()),
            near: WayOut::new(Exit::Kernel, machine.clone()),
            machine,
            counters: Counters::default(),
            backlog: Backlog::new(config.backlog),
            windows: Backlog::of_windows(config.windows),
            names: Names::new(NAMES),
            throttles,
            health: Health::default(),
            notices: Notices::new(config.say.clone()),
            config,
        }
    }

    /// Way out of queries to the resolver.
    pub(crate) const fn out_to_resolver(&self) -> &WayOut {
        if self.config.resolver_is_near { &self.near } else { &self.out }
    }

    /// The way of a flow from `client` to `wanted`, which is final: counted, and logged.
    pub(crate) fn choose_for_flow(&self, client: SocketAddr, wanted: SocketAddr) -> Choice {
        let choice = self.choose(client, wanted, Protocol::Udp, &ServerName::Absent);
        self.settle(&choice.decision);
        choice
    }

    /// The way of what `client` sends to `wanted`, of a connection whose first bytes state
    /// `server_name`. It is to be [settled](Self::settle) once it is final.
    pub(crate) fn choose(
        &self,
        client: SocketAddr,
        wanted: SocketAddr,
        protocol: Protocol,
        server_name: &ServerName,
    ) -> Choice {
        let decision = Decision {
            protocol,
            client,
            destination: wanted,
            names: vec![],
            has_only_name: false,
            server_name: server_name.name(),
            rule: None,
            action: Action::Refuse,
            rate: None,
            reason: Reason::NotCarried,
            enforced: true,
        };
        let own = &self.config.own;
        let way = if own.contains(&wanted.ip()) {
            self.way_to_itself(client.ip(), wanted, protocol).map(|way| (way, Reason::OwnAddress))
        } else if can_be_carried(wanted.ip()) {
            return self.choose_by_rules(decision, server_name);
        } else {
            None
        };
        let Some((way, reason)) = way else { return Choice { way: Way::Refuse, decision, is_final: true } };
        let action = match &way {
            Way::Through(upstream, _) => Action::Through(upstream.clone()),
            Way::Resolvers(_) => Action::Resolver,
            Way::Refuse => Action::Refuse,
            Way::Drop => Action::Drop,
        };
        Choice { way, decision: Decision { action, reason, ..decision }, is_final: true }
    }

    /// To the proxy's own addresses; `None` if nothing is there.
    fn way_to_itself(&self, client: IpAddr, wanted: SocketAddr, protocol: Protocol) -> Option<Way> {
        match wanted.port() {
            DNS if self.has_resolvers() => Some(self.way_to_resolvers(client, protocol)),
            _ if self.config.loopback => {
                let here: IpAddr = match wanted {
                    SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                    SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
                };
                Some(Way::Through(self.direct.clone(), SocketAddr::new(here, wanted.port()).into()))
            }
            _ => None,
        }
    }

    /// Completes a decision about an address that may be carried on.
    fn choose_by_rules(&self, decision: Decision, server_name: &ServerName) -> Choice {
        let Config { rules, names, dry_run, .. } = &self.config;
        let Decision { client, destination: wanted, protocol, .. } = decision;
        let known = match names {
            NameUse::Off => AddressNames::default(),
            NameUse::Rules | NameUse::Upstreams => {
                self.names.of(timer::now(), self.resolving(client.ip()), wanted.ip())
            }
        };
        let verdict = rules.verdict(client.ip(), wanted, &known, server_name, protocol);
        let refused = |reason| (&Action::Refuse, None, None, true, true, reason);
        let (action, rate, rule, by_address, is_final, reason) = match verdict {
            Verdict::Action { action, rate, rule, by_address, is_final } => {
                let reason = if rule.is_some() { Reason::Rule } else { Reason::Default };
                (action, rate, rule, by_address, is_final, reason)
            }
            Verdict::NameForgotten => refused(Reason::NamesForgotten),
            Verdict::ServerNameUnreadable => refused(Reason::ServerNameUnreadable),
        };
        let is_spared = *dry_run && matches!(action, Action::Refuse | Action::Drop);
        let enforced = !*dry_run || (!is_spared && rate.is_none());
        let carried = if is_spared { self.spared() } else { action.clone() };
        let name = known.only();
        let mut decision = Decision {
            has_only_name: name.is_some(),
            names: known.names,
            rule,
            action: action.clone(),
            rate,
            reason,
            enforced,
            ..decision
        };
        let way = match carried {
            Action::Through(upstream) if self.may_carry(wanted.ip(), &upstream) => {
                let name = name.filter(|_| *names == NameUse::Upstreams && !by_address);
                Way::Through(upstream, Target { address: wanted, name })
            }
            Action::Through(_) => {
                (decision.action, decision.reason) = (Action::Refuse, Reason::NotCarried);
                (decision.rate, decision.enforced) = (None, true);
                Way::Refuse
            }
            Action::Resolver if self.has_resolvers() => {
                let way = self.way_to_resolvers(client.ip(), protocol);
                match way {
                    Way::Refuse => decision.action = Action::Refuse,
                    Way::Drop => decision.action = Action::Drop,
                    Way::Through(..) | Way::Resolvers(_) => {}
                }
                way
            }
            Action::Drop => Way::Drop,
            // Nobody resolves, or it says so.
            Action::Resolver | Action::Refuse => {
                decision.action = Action::Refuse;
                Way::Refuse
            }
        };
        Choice { way, decision, is_final }
    }

    /// The client whose resolved names `client` knows.
    pub(crate) const fn resolving(&self, client: IpAddr) -> IpAddr {
        if self.config.one_host { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { client }
    }

    /// The rates of what was decided so.
    pub(crate) fn pace(&self, decision: &Decision) -> Pace<'_> {
        Pace::new(&self.counters, self.throttle(decision))
    }

    /// Those of the rule that decided.
    pub(crate) fn throttle(&self, decision: &Decision) -> Option<&RuleThrottle> {
        let rule = decision.rule.filter(|_| decision.enforced && decision.rate.is_some())?;
        self.throttles.get(rule - 1)?.as_ref()
    }

    /// Counts and logs a decision that is final.
    pub(crate) fn settle(&self, decision: &Decision) {
        let Decision { client, names, action, reason, enforced, .. } = decision;
        let counters = &self.counters;
        if !names.is_empty() {
            counters.named.one();
            if !decision.has_only_name {
                counters.several_names.one();
            }
        }
        match (reason, action) {
            _ if !enforced => counters.not_enforced.one(),
            (Reason::NotCarried, _) => counters.not_carried.one(),
            (Reason::NamesForgotten, _) => {
                counters.forgotten_refused.one();
                let client = client.ip();
                self.notices.trouble(
                    "names",
                    format_args!("{client} has asked for so many that some are forgotten; what a rule by domain may be for is refused"),
                );
            }
            (Reason::ServerNameUnreadable, _) => counters.server_name_unreadable.one(),
            (_, Action::Refuse) => counters.rule_refused.one(),
            (_, Action::Drop) => counters.rule_dropped.one(),
            (_, Action::Through(_) | Action::Resolver) => {}
        }
        if self.config.log.as_ref().is_some_and(|log| !log(decision)) {
            counters.decisions_lost.one();
        }
    }

    /// What a dry run does with what a rule would refuse or drop.
    fn spared(&self) -> Action {
        match &self.config.rules.otherwise {
            through @ Action::Through(_) => through.clone(),
            _ => Action::Through(self.direct.clone()),
        }
    }

    fn has_resolvers(&self) -> bool {
        !self.config.resolvers.servers.is_empty() || !self.config.hosts.is_empty()
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
            let known = AddressNames::default();
            let verdict = rules.verdict(client, resolver.address, &known, &ServerName::Absent, by);
            let Verdict::Action { action, .. } = verdict else { continue };
            let spared = (self.config.dry_run && matches!(action, Action::Refuse | Action::Drop))
                .then(|| self.spared());
            match spared.as_ref().unwrap_or(action) {
                Action::Through(upstream) => ways.push((upstream.clone(), *resolver)),
                Action::Resolver => ways.push((self.direct.clone(), *resolver)),
                Action::Refuse | Action::Drop => end = action,
            }
        }
        match end {
            // Names of the proxy's own need none.
            _ if !ways.is_empty() || !self.config.hosts.is_empty() => Way::Resolvers(ways),
            Action::Drop => Way::Drop,
            _ => Way::Refuse,
        }
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
