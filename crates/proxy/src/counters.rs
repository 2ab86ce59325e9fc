//! What a proxy counts.

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident = $nstat:literal,)*) => {
        /// Counters that all tasks of a proxy share.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[doc = $doc])+ pub(crate) $name: Count,)*
        }

        /// What a proxy has counted.
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
            pub fn each(&self) -> impl Iterator<Item = Counted> + use<> {
                [$(Counted {
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

/// One number with its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counted {
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
    /// Connections that were asked for.
    connections: Counter = "AcklineProxyConnections",
    /// Connections that are open now.
    open_connections: Gauge = "AcklineProxyOpenConnections",
    /// Connections of which both directions ended with a FIN.
    finished: Counter = "AcklineProxyFinished",
    /// Connections that one side reset, or that failed.
    reset: Counter = "AcklineProxyReset",
    /// Clients that went away before the upstream had connected.
    abandoned: Counter = "AcklineProxyAbandoned",
    /// Bytes from clients, in connections.
    bytes_up: Counter = "AcklineProxyBytesUp",
    /// Bytes to clients, in connections.
    bytes_down: Counter = "AcklineProxyBytesDown",
    /// UDP flows that were begun.
    flows: Counter = "AcklineProxyFlows",
    /// UDP flows that are open now.
    open_flows: Gauge = "AcklineProxyOpenFlows",
    /// Datagrams from clients.
    datagrams_up: Counter = "AcklineProxyDatagramsUp",
    /// Datagrams to clients.
    datagrams_down: Counter = "AcklineProxyDatagramsDown",
    /// Datagrams to clients that were longer than the device carries.
    datagrams_too_long: Counter = "AcklineProxyDatagramsTooLong",
    /// Datagrams to clients that found no room before the device, or no flow any more.
    datagrams_lost: Counter = "AcklineProxyDatagramsLost",
    /// Datagrams from outside that the filter let pass to no client.
    datagrams_filtered: Counter = "AcklineProxyDatagramsFiltered",
    /// Ports that clients' sockets got outside.
    mappings: Counter = "AcklineProxyMappings",
    /// Those that they have now.
    open_mappings: Gauge = "AcklineProxyOpenMappings",
    /// Connections and flows that a rule refused.
    rule_refused: Counter = "AcklineProxyRuleRefused",
    /// Connections and flows that a rule dropped.
    rule_dropped: Counter = "AcklineProxyRuleDropped",
    /// Connections and flows to an address that is not carried on: loopback, link-local, multicast,
    /// unspecified, or this machine's own.
    not_carried: Counter = "AcklineProxyNotCarried",
    /// Connections refused because their client had as many as it may have.
    client_connections_limit: Counter = "AcklineProxyClientConnectionsLimit",
    /// Flows refused because their client had as many as it may have.
    client_flows_limit: Counter = "AcklineProxyClientFlowsLimit",
    /// SYNs whose clients had to complete their handshake first, because as many others were
    /// unproved as may be.
    proof_first: Counter = "AcklineProxyProofFirst",
    /// Connections and flows that found no descriptor, or as many others as may be; their clients
    /// ask again.
    no_descriptor: Counter = "AcklineProxyNoDescriptor",
    /// Connections and flows that the destination refused.
    upstream_refused: Counter = "AcklineProxyUpstreamRefused",
    /// Connections and flows whose destination could not be reached, or is forbidden there.
    upstream_unreachable: Counter = "AcklineProxyUpstreamUnreachable",
    /// Connections whose destination did not answer in time.
    upstream_timeouts: Counter = "AcklineProxyUpstreamTimeouts",
    /// Connections and flows that the upstream's own server failed to carry on.
    upstream_failed: Counter = "AcklineProxyUpstreamFailed",
    /// Questions to the resolvers.
    dns_questions: Counter = "AcklineProxyDnsQuestions",
    /// Answers of the resolvers that were passed on.
    dns_answers: Counter = "AcklineProxyDnsAnswers",
    /// Messages to clients that answered none of their open questions, or could not be read.
    dns_unasked: Counter = "AcklineProxyDnsUnasked",
    /// Messages of clients that were no question.
    dns_malformed: Counter = "AcklineProxyDnsMalformed",
    /// Questions dropped because too many of the same flow or connection were open.
    dns_too_many: Counter = "AcklineProxyDnsTooMany",
    /// Connections and flows whose destination was known by name.
    named: Counter = "AcklineProxyNamed",
    /// Of those, the ones whose destination had several names, or perhaps others that were
    /// forgotten.
    several_names: Counter = "AcklineProxySeveralNames",
    /// Names that were forgotten for lack of room and may still have been in use.
    names_forgotten: Counter = "AcklineProxyNamesForgotten",
    /// Connections and flows refused because a rule by domain may have been for them, and names of
    /// the client were forgotten.
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
    pub(crate) fn enter(&self) -> Entered<'_> {
        self.one();
        Entered(self)
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of those that are there now.
#[derive(Debug)]
pub(crate) struct Entered<'a>(&'a Count);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
