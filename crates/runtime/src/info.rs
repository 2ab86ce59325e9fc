//! Snapshots: a connection with the variables of its policies, and the scheduler with its own.

use crate::timer;
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::info::Info as TcpInfo;
use ackline_tcp_core::policy::Metric;
use ackline_tcp_core::policy::spec::PolicyKind;
use std::fmt;
use std::ops::Deref;

/// A snapshot of a connection: the [fields of `tcp_info`](TcpInfo), and what its policies show.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Info {
    /// The connection. `info.snd_cwnd` stands for `info.tcp.snd_cwnd`, and so on.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub tcp: TcpInfo,
    /// Metrics of its policies.
    pub metrics: PolicyMetrics,
}

impl Info {
    pub(crate) fn of(conn: &Conn<'_>) -> Self {
        let mut metrics = PolicyMetrics::default();
        conn.metrics(&mut |kind, metric| match kind {
            PolicyKind::Cc => metrics.cc.0.push(metric),
            PolicyKind::Ack => metrics.ack.0.push(metric),
            PolicyKind::Rto => metrics.rto.0.push(metric),
            PolicyKind::Sched => {}
        });
        Self { tcp: conn.info_at(timer::now()), metrics }
    }
}

impl Deref for Info {
    type Target = TcpInfo;

    fn deref(&self) -> &TcpInfo {
        &self.tcp
    }
}

/// What the three policies of a connection show of themselves; empty before the connection is
/// established.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PolicyMetrics {
    /// Of the congestion control.
    pub cc: MetricList,
    /// Of the ACK policy.
    pub ack: MetricList,
    /// Of the response to a timeout.
    pub rto: MetricList,
}

/// A snapshot of the egress scheduler.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SchedulerInfo {
    /// Its name.
    pub name: &'static str,
    /// Its metrics.
    pub metrics: MetricList,
}

impl SchedulerInfo {
    pub(crate) fn of(endpoint: &ackline_tcp_core::Endpoint) -> Self {
        let mut metrics = MetricList::default();
        endpoint.scheduler_metrics(&mut |metric| metrics.0.push(metric));
        Self { name: endpoint.scheduler_name(), metrics }
    }
}

/// The variables of one policy, in its own order. `Display` shows them with their units in one
/// line; serialized, they are a map from name to value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricList(Vec<Metric>);

impl MetricList {
    /// The value of the variable `name`, if the policy shows it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }
}

impl Deref for MetricList {
    type Target = [Metric];

    fn deref(&self) -> &[Metric] {
        &self.0
    }
}

impl fmt::Display for MetricList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, metric) in self.iter().enumerate() {
            write!(f, "{}{metric}", if place > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for MetricList {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|metric| (metric.name, metric.value)))
    }
}
