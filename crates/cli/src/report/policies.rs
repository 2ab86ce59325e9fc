//! What the policies of a connection show of themselves, for people and for programs.

use ackline::runtime::info::{MetricList, PolicyMetrics};
use ackline::runtime::{Info, TcpStream};
use ackline_lab::wrap;
use serde::Serialize;

/// The policies of a connection; all `None` if there was none.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ConnPolicies {
    cc: Option<&'static str>,
    ack: Option<&'static str>,
    rto: Option<&'static str>,
    pub(crate) metrics: Option<PolicyMetrics>,
}

impl From<&Info> for ConnPolicies {
    fn from(info: &Info) -> Self {
        Self {
            cc: Some(info.cc),
            ack: Some(info.ack_policy),
            rto: Some(info.rto_response),
            metrics: Some(info.metrics.clone()),
        }
    }
}

impl ConnPolicies {
    /// Of a connection, as it is.
    pub(crate) fn of(stream: &TcpStream) -> Self {
        // Without the device there is nothing to ask.
        stream.info().map(|info| Self::from(&info)).unwrap_or_default()
    }

    /// The policies with their variables.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self { cc: Some(cc), ack: Some(ack), rto: Some(rto), metrics: Some(metrics) } = self else {
            return vec![];
        };
        let all = [(cc, &metrics.cc), (ack, &metrics.ack), (rto, &metrics.rto)];
        all.into_iter().flat_map(|(name, metrics)| lines(name, metrics)).collect()
    }
}

/// A policy with its variables, wrapped; nothing if it shows none.
pub(crate) fn lines(name: &str, metrics: &MetricList) -> Vec<String> {
    if metrics.is_empty() {
        return vec![];
    }
    wrap(&format!("{name}: {metrics}"), 2).lines().map(str::to_owned).collect()
}
