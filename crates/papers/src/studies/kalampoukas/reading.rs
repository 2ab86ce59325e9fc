//! What is read of a run: efficiencies, over the window and over time.

use super::formulas::Efficiency;
use crate::reproduction::check::Check;
use ackline_lab::results::{FlowResult, RunResult, Waits};
use ackline_plot::{Chart, Line};

/// The applications of every scenario: data from the near host to the far one, and back.
const APPS: [&str; 2] = ["up", "down"];

/// A run of a scenario with one line, and the rates of its two directions in bits per second.
#[derive(Clone, Debug)]
pub(super) struct Run {
    result: RunResult,
    rates: [f64; 2],
}

impl Run {
    pub(super) const fn new(result: RunResult, slow: f64, fast: f64) -> Self {
        Self { result, rates: [slow, fast] }
    }

    fn flows(&self, direction: usize) -> impl Iterator<Item = &FlowResult> {
        self.result.flows.iter().filter(move |flow| flow.app == APPS[direction])
    }

    /// Bits per second that the download received.
    pub(super) fn download_bps(&self) -> f64 {
        self.flows(1).map(|flow| flow.goodput_bps).sum()
    }

    /// Both efficiencies over the window.
    pub(super) fn efficiency(&self) -> Efficiency {
        let of = |direction: usize| {
            self.flows(direction).map(|flow| flow.goodput_bps).sum::<f64>() / self.rates[direction]
        };
        Efficiency::new(of(0), of(1))
    }

    /// The efficiency of each connection: of uploads, of downloads.
    pub(super) fn connections(&self) -> [Vec<f64>; 2] {
        [0, 1].map(|direction| {
            self.flows(direction).map(|flow| flow.goodput_bps / self.rates[direction]).collect()
        })
    }

    /// Data's share of the bytes of data and ACKs that left on the slow direction.
    pub(super) fn data_share(&self) -> f64 {
        let Some(link) = self.result.queues.first() else { return f64::NAN };
        let [data, ack] = [link.classes.data, link.classes.ack].map(|class| class.bytes as f64);
        data / (data + ack)
    }

    /// ACKs for each data packet that left on the slow direction; `None` if there were no data
    /// packets.
    pub(super) fn acks_per_data(&self) -> Option<f64> {
        let classes = self.result.queues.first()?.classes;
        (classes.data.packets > 0).then(|| classes.ack.packets as f64 / classes.data.packets as f64)
    }

    /// How long ACKs waited in the near host.
    pub(super) fn ack_waits(&self) -> Option<Waits> {
        let near = self.result.hosts.iter().find(|host| host.host == "near")?;
        near.waits.get("ack").copied()
    }

    /// The mean over downloads of their median round trip, s.
    pub(super) fn download_round_trip(&self) -> Option<f64> {
        let medians: Vec<f64> =
            self.flows(1).filter_map(|flow| flow.srtt_s.as_ref()).map(|times| times.p50).collect();
        (!medians.is_empty()).then(|| medians.iter().sum::<f64>() / medians.len() as f64)
    }

    /// Packets that were sent again, and so counted twice on the link.
    pub(super) fn retransmits(&self) -> u64 {
        self.result.flows.iter().map(|flow| flow.retransmits).sum()
    }

    /// Nothing was lost and no timer expired, as the experiments presume.
    pub(super) fn lossless(&self, id: &str) -> Check {
        Check::exactly(format!("{id}/lossless"), "packets sent again", self.retransmits() as f64, 0.0)
    }

    /// The efficiencies in bins over time, a line for each connection.
    pub(super) fn chart(&self, name: String, title: String) -> Chart {
        let bin = self.result.bin_s.unwrap_or(1.0);
        let mut lines = vec![];
        for (direction, app) in APPS.into_iter().enumerate() {
            let several = self.flows(direction).count() > 1;
            for flow in self.flows(direction) {
                let scale = 8.0 / bin / self.rates[direction];
                let points = flow.received_bins.iter().enumerate();
                lines.push(Line {
                    label: if several { flow.name.clone() } else { app.to_owned() },
                    points: points
                        .map(|(place, bytes)| ((place as f64 + 0.5) * bin, *bytes as f64 * scale))
                        .collect(),
                    ..Line::default()
                });
            }
        }
        Chart {
            name,
            title,
            x_label: "time [s]".to_owned(),
            y_label: format!("efficiency in {bin} s"),
            from_zero: true,
            lines,
            ..Chart::default()
        }
    }
}

/// `0.556 / 0.477`.
pub(super) fn both(of: Efficiency) -> String {
    format!("{:.3} / {:.3}", of.slow, of.fast)
}
