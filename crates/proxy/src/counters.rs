//! Counters of a proxy.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident = $nstat:literal,)*) => {
        /// Counters that all tasks of a proxy share.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[doc = $doc])+ pub(crate) $name: Count,)*
        }

        /// Counters of a proxy.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* }
            }
        }

        impl Stats {
            /// Each of them, in a fixed order.
            pub fn each(&self) -> impl Iterator<Item = Counter> + use<> {
                [$(Counter {
                    name: $nstat,
                    metric: concat!("proxy_", stringify!($name)),
                    meaning: concat!($($doc),+).trim_ascii(),
                    kind: Kind::$kind,
                    value: self.$name,
                },)*]
                .into_iter()
            }
        }
    };
}

/// A counter's value with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counter {
    /// As counters of stacks are named: `AcklineProxyBytesUp`.
    pub name: &'static str,
    /// As metrics are: `proxy_bytes_up`.
    pub metric: &'static str,
    /// In a sentence.
    pub meaning: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// The number.
    pub value: u64,
}

/// How a number behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is what is so now.
    Gauge,
}

counters! {
    /// Connections requested by clients.
    connections: Counter = "AcklineProxyConnections",
    /// Connections open now.
    open_connections: Gauge = "AcklineProxyOpenConnections",
    /// Connections closed by a FIN in both directions.
    finished: Counter = "AcklineProxyFinished",
    /// Connections that one side reset, or that failed.
    reset: Counter = "AcklineProxyReset",
    /// Connections whose client gave up before the upstream had connected.
    abandoned: Counter = "AcklineProxyAbandoned",
    /// Bytes from clients, in connections.
    bytes_up: Counter = "AcklineProxyBytesUp",
    /// Bytes to clients, in connections.
    bytes_down: Counter = "AcklineProxyBytesDown",
    /// UDP flows started.
    flows: Counter = "AcklineProxyFlows",
    /// UDP flows open now.
    open_flows: Gauge = "AcklineProxyOpenFlows",
    /// Datagrams from clients.
    datagrams_up: Counter = "AcklineProxyDatagramsUp",
    /// Datagrams to clients.
    datagrams_down: Counter = "AcklineProxyDatagramsDown",
    /// Datagrams to clients larger than the device's MTU allows.
    datagrams_too_long: Counter = "AcklineProxyDatagramsTooLong",
    /// Datagrams to clients dropped because the queue was full or the flow had expired.
    datagrams_lost: Counter = "AcklineProxyDatagramsLost",
    /// Inbound datagrams rejected by `--udp-filtering`.
    datagrams_filtered: Counter = "AcklineProxyDatagramsFiltered",
    /// External ports allocated for clients' sockets.
    mappings: Counter = "AcklineProxyMappings",
    /// External ports in use now.
    open_mappings: Gauge = "AcklineProxyOpenMappings",
    /// Connections and flows to published ports.
    published: Counter = "AcklineProxyPublished",
    /// Of those, the ones that the guest refused or did not answer.
    published_failed: Counter = "AcklineProxyPublishedFailed",
    /// Connections and flows that a rule refused.
    rule_refused: Counter = "AcklineProxyRuleRefused",
    /// Connections and flows that a rule dropped.
    rule_dropped: Counter = "AcklineProxyRuleDropped",
    /// Connections refused because a rule by `server_name` could have matched a name that is not
    /// readable.
    server_name_unreadable: Counter = "AcklineProxyServerNameUnreadable",
    /// Connections that were to take another way once the client had stated the server's name,
    /// although data had come back already: they were reset.
    server_name_late: Counter = "AcklineProxyServerNameLate",
    /// Connections and flows that `--dry-run` did not refuse, drop or hold to a rate.
    not_enforced: Counter = "AcklineProxyNotEnforced",
    /// Waits of connections and flows for their turn at the rate of their rule.
    rate_waits: Counter = "AcklineProxyRateWaits",
    /// Connections and flows that wait for their turn now.
    rate_waiting: Gauge = "AcklineProxyRateWaiting",
    /// Datagrams dropped because too many of their flow were waiting for their turn.
    rate_lost: Counter = "AcklineProxyRateLost",
    /// Decisions that `--decisions` could not write, because the file was too slow or failed.
    decisions_lost: Counter = "AcklineProxyDecisionsLost",
    /// Connections and flows to an address that is never forwarded: loopback, link-local,
    /// multicast, unspecified, or this machine's own.
    not_carried: Counter = "AcklineProxyNotCarried",
    /// Connections refused because their client was at its limit.
    client_connections_limit: Counter = "AcklineProxyClientConnectionsLimit",
    /// Flows refused because their client was at its limit.
    client_flows_limit: Counter = "AcklineProxyClientFlowsLimit",
    /// SYNs whose client had to complete its handshake first, because of the limits of `early`.
    proof_first: Counter = "AcklineProxyProofFirst",
    /// Connections and flows not served for lack of a descriptor or because of `total`; clients
    /// retransmit.
    no_descriptor: Counter = "AcklineProxyNoDescriptor",
    /// Connections and flows that the destination refused.
    upstream_refused: Counter = "AcklineProxyUpstreamRefused",
    /// Connections and flows whose destination is unreachable or prohibited.
    upstream_unreachable: Counter = "AcklineProxyUpstreamUnreachable",
    /// Connections whose destination did not answer in time.
    upstream_timeouts: Counter = "AcklineProxyUpstreamTimeouts",
    /// Connections and flows that the upstream server failed to forward.
    upstream_failed: Counter = "AcklineProxyUpstreamFailed",
    /// Queries sent to resolvers.
    dns_questions: Counter = "AcklineProxyDnsQuestions",
    /// Answers forwarded to clients.
    dns_answers: Counter = "AcklineProxyDnsAnswers",
    /// Messages dropped because they answered no outstanding query or could not be parsed.
    dns_unasked: Counter = "AcklineProxyDnsUnasked",
    /// Messages from clients that were not queries.
    dns_malformed: Counter = "AcklineProxyDnsMalformed",
    /// Queries dropped because too many of the same flow or connection were outstanding.
    dns_too_many: Counter = "AcklineProxyDnsTooMany",
    /// Connections and flows whose destination had a known name.
    named: Counter = "AcklineProxyNamed",
    /// Of those, destinations with several names, or with names that may have been forgotten.
    several_names: Counter = "AcklineProxySeveralNames",
    /// Names evicted from the full table that may still have been in use.
    names_forgotten: Counter = "AcklineProxyNamesForgotten",
    /// Connections and flows refused because a rule by `domain` could have matched a forgotten
    /// name.
    forgotten_refused: Counter = "AcklineProxyForgottenRefused",
}

/// One number.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    /// One more, until the result is dropped.
    pub(crate) fn enter(&self) -> GaugeGuard<'_> {
        self.one();
        GaugeGuard(self)
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts one of what exists at present, until it is dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard<'a>(&'a Count);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
