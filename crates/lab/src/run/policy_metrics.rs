//! What the policies of each flow show at one instant.

use crate::results::PolicyMetrics;
use crate::run::network::{FlowPlace, Network};
use ackline_netsim::{NodeId, View};
use ackline_tcp_core::ConnId;
use ackline_tcp_core::policy::Metric;
use ackline_tcp_core::policy::spec::PolicyKind;
use std::collections::{BTreeMap, HashMap};

/// Reads each flow's policies: those that [`FlowResult`](crate::results::FlowResult) names, of the
/// flow's first connection that is there. `None` if there is none.
pub(crate) fn of_flows(net: &mut Network) -> Vec<Option<PolicyMetrics>> {
    let Network { sim, flows, .. } = net;
    let mut view = sim.view();
    let conns = Conns::of(&view);
    flows.iter().map(|flow| of_flow(&mut view, &conns, flow)).collect()
}

fn of_flow(view: &mut View<'_>, conns: &Conns, flow: &FlowPlace) -> Option<PolicyMetrics> {
    let [sender, receiver] = [flow.sender, flow.receiver].map(|end| conns.first(end));
    // What is outside the simulation shows nothing.
    let missing = |end: (NodeId, u32), conn: Option<ConnId>| conn.is_none() && view.is_host(end.0);
    if missing(flow.sender, sender) || missing(flow.receiver, receiver) {
        return None;
    }
    let mut shown = PolicyMetrics::default();
    if let Some(sender) = sender {
        visit(view, flow.sender.0, sender, &mut |kind, metric| match kind {
            PolicyKind::Cc => insert(&mut shown.cc, metric),
            PolicyKind::Rto => insert(&mut shown.rto, metric),
            PolicyKind::Ack | PolicyKind::Sched => {}
        });
    }
    if let Some(receiver) = receiver {
        visit(view, flow.receiver.0, receiver, &mut |kind, metric| {
            if kind == PolicyKind::Ack {
                insert(&mut shown.ack, metric);
            }
        });
    }
    Some(shown)
}

fn visit(view: &mut View<'_>, node: NodeId, id: ConnId, visit: &mut dyn FnMut(PolicyKind, Metric)) {
    if let Some(conn) = view.endpoint(node).and_then(|endpoint| endpoint.conn(id)) {
        conn.metrics(visit);
    }
}

/// Adds a variable by its name.
pub(crate) fn insert(metrics: &mut BTreeMap<String, f64>, metric: Metric) {
    metrics.insert(metric.name.to_owned(), metric.value);
}

/// The first connection of each application.
struct Conns(HashMap<(NodeId, u32), ConnId>);

impl Conns {
    fn of(view: &View<'_>) -> Self {
        let mut first = HashMap::new();
        for node in view.hosts() {
            for (id, app) in view.conns(node) {
                first.entry((node, app)).or_insert(id);
            }
        }
        Self(first)
    }

    fn first(&self, app: (NodeId, u32)) -> Option<ConnId> {
        self.0.get(&app).copied()
    }
}
