//! The scenarios of the study, and its jobs.

use super::equations::Buffers;
use super::numbers::{self, Matrix};
use crate::job::identity_of_all;
use crate::{Job, Outputs, ReproduceError, ScenarioText, scenario};
use ackline_lab::Outcome;
use serde::{Deserialize, Serialize};

const BUFFERS: ScenarioText = scenario!("a3/buffers");
const LOOPBACK: ScenarioText = scenario!("a3/loopback");
const CONGESTION: ScenarioText = scenario!("a3/congestion");

/// The columns of Table 15.2, in the order of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// (1): delayed acknowledgments.
    Delayed,
    /// (2): A3.
    A3,
    /// (3): A3 with fewer samplings.
    Fewer,
}

impl Policy {
    pub(super) const ALL: [Self; 3] = [Self::Delayed, Self::A3, Self::Fewer];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::A3 => "a3",
            Self::Fewer => "fewer",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Delayed => "delayed acknowledgments",
            Self::A3 => "A3",
            Self::Fewer => "A3 with fewer samplings",
        }
    }

    /// The paper's numbers, KB/s.
    pub(super) const fn paper(self) -> &'static Matrix {
        match self {
            Self::Delayed => &numbers::THROUGHPUT_DELAYED,
            Self::A3 => &numbers::THROUGHPUT_A3,
            Self::Fewer => &numbers::THROUGHPUT_FEWER,
        }
    }

    /// The independent model's numbers, KB/s.
    pub(super) const fn model(self, copies: Copies) -> &'static Matrix {
        match (copies, self) {
            (Copies::Whole, Self::Delayed) => &numbers::MODEL_WHOLE_DELAYED,
            (Copies::Whole, Self::A3) => &numbers::MODEL_WHOLE_A3,
            (Copies::Whole, Self::Fewer) => &numbers::MODEL_WHOLE_FEWER,
            (Copies::Partial, Self::Delayed) => &numbers::MODEL_PARTIAL_DELAYED,
            (Copies::Partial, Self::A3) => &numbers::MODEL_PARTIAL_A3,
            (Copies::Partial, Self::Fewer) => &numbers::MODEL_PARTIAL_FEWER,
        }
    }
}

/// When the sender's socket layer copies (section 15.2 and figure 15.1 of the paper leave it open).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// 4096 bytes at once, or nothing.
    Whole,
    /// From 512 free bytes on.
    Partial,
}

impl Copies {
    pub(super) const ALL: [Self; 2] = [Self::Whole, Self::Partial];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Partial => "partial",
        }
    }

    fn set(self) -> String {
        format!("app.stream.copy={}", self.id())
    }
}

/// KB per second of a transfer, from its start to its last acknowledgment; `None` if it did not
/// end.
fn rate(outcome: &Outcome) -> Option<f64> {
    let flow = outcome.result.flows.first()?;
    let seconds = flow.app_metrics.get("completion_s")?;
    Some(flow.received_bytes as f64 / 1_024.0 / seconds)
}

/// A matrix of numbers that jobs gave.
pub(super) fn matrix(outputs: &Outputs, id: impl Fn(Buffers) -> String) -> Result<Matrix, ReproduceError> {
    let mut matrix = [[f64::NAN; 8]; 8];
    for (place, buffers) in Buffers::all().enumerate() {
        let number: Option<f64> = outputs.get(&id(buffers))?;
        matrix[place / 8][place % 8] = number.unwrap_or(f64::NAN);
    }
    Ok(matrix)
}

fn throughput_id(copies: Copies, policy: Policy, buffers: Buffers) -> String {
    format!("15.2/{}/{}/{}", copies.id(), policy.id(), buffers.id())
}

/// The cells of Table 15.2.
pub(super) fn throughput_jobs(copies: Copies) -> Result<Vec<Job>, ReproduceError> {
    let scenario = BUFFERS.with_set([copies.set()])?;
    let cells = Policy::ALL.into_iter().flat_map(|policy| Buffers::all().map(move |at| (policy, at)));
    let jobs = cells.enumerate().map(|(point, (policy, buffers))| {
        let id = throughput_id(copies, policy, buffers);
        Job::outcome(id, "KB/s", &scenario, point, 0, |outcome| rate(&outcome))
    });
    Ok(jobs.collect())
}

/// Table 15.2 as it came out, KB/s.
pub(super) fn throughput(
    outputs: &Outputs,
    copies: Copies,
    policy: Policy,
) -> Result<Matrix, ReproduceError> {
    matrix(outputs, |buffers| throughput_id(copies, policy, buffers))
}

fn loopback_id(copies: Copies, buffers: Buffers) -> String {
    format!("15.1/{}/{}", copies.id(), buffers.id())
}

/// The cells of Table 15.1.
pub(super) fn loopback_jobs(copies: Copies) -> Result<Vec<Job>, ReproduceError> {
    let scenario = LOOPBACK.with_set([copies.set()])?;
    let jobs = Buffers::all().enumerate().map(|(point, buffers)| {
        Job::outcome(loopback_id(copies, buffers), "Mbit/s", &scenario, point, 0, |outcome| {
            outcome.result.flows.first().map(|flow| flow.goodput_bps / 1e6)
        })
    });
    Ok(jobs.collect())
}

/// Table 15.1 as it came out, Mbit/s.
pub(super) fn loopback(outputs: &Outputs, copies: Copies) -> Result<Matrix, ReproduceError> {
    matrix(outputs, |buffers| loopback_id(copies, buffers))
}

/// A whole Table 15.2 with other parameters, as one job. Its output is a list of [`Policy::ALL`]'s
/// matrices, flat.
pub(super) fn variant_job(id: &str, set: &[&str]) -> Result<Job, ReproduceError> {
    let scenario = BUFFERS.with_set(set)?;
    let points = scenario.points();
    let identity = format!("{}\n{points}", identity_of_all(&scenario));
    Ok(Job::new(id, identity, move || {
        let one = |point| ackline_lab::run_one(&scenario, point, 0).map(|outcome| rate(&outcome));
        (0..points).map(one).collect::<Result<Vec<Option<f64>>, _>>().map_err(|error| error.to_string())
    }))
}

/// Times when the path is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Episodes {
    /// Never.
    None,
    /// The five of the figures.
    Five,
    /// Twenty, of all phases, for means; what is lost on the way of the data.
    Twenty,
    /// The same, and ACKs are lost, too.
    BothWays,
    /// Twenty again, with a sender that does not go back to the oldest byte: it marks what is lost.
    Marking,
}

/// How long an episode lasts, s.
const EPISODE: f64 = 0.7;

impl Episodes {
    const fn id(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Five => "five",
            Self::Twenty => "twenty",
            Self::BothWays => "both-ways",
            Self::Marking => "marking",
        }
    }

    /// When they begin, s. The five are those of the scenario.
    pub(super) fn times(self) -> Vec<f64> {
        match self {
            Self::None => vec![],
            Self::Five => vec![500.0, 875.03, 1_250.07, 1_625.11, 1_999.17],
            Self::Twenty | Self::BothWays | Self::Marking => {
                (0..20).map(|number| 500.0 + 75.037 * f64::from(number)).collect()
            }
        }
    }

    /// What it changes in the scenario.
    fn set(self) -> Vec<String> {
        let drops: Vec<String> = self
            .times()
            .iter()
            .map(|from| format!("{{kind=\"drop\",from=\"{from}s\",until=\"{}s\"}}", from + EPISODE))
            .collect();
        let drops = format!("[{}]", drops.join(","));
        match self {
            Self::Five => vec![],
            Self::None | Self::Twenty => vec![format!("link.path.impairments={drops}")],
            Self::Marking => {
                vec![format!("link.path.impairments={drops}"), "conn.rto=conventional".to_owned()]
            }
            Self::BothWays => {
                vec![
                    format!("link.path.impairments={drops}"),
                    format!("link.path.back={{impairments={drops}}}"),
                ]
            }
        }
    }
}

/// The receiver of a congestion run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    A3,
    Csa3,
    /// CSA3 whose pause counts from its own last ACK, if that is later than the data.
    Csa3FromAck,
}

impl Receiver {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::A3 => "A3",
            Self::Csa3 => "CSA3",
            Self::Csa3FromAck => "CSA3, pause from ACK",
        }
    }

    const fn spec(self) -> &'static str {
        match self {
            Self::A3 => "a3:profile=paper,rtt=190ms",
            Self::Csa3 => "csa3:profile=paper,rtt=190ms",
            Self::Csa3FromAck => "csa3:profile=paper,rtt=190ms,pause_from=ack",
        }
    }
}

/// A run with congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) buffers: Buffers,
    pub(super) receiver: Receiver,
    pub(super) episodes: Episodes,
    pub(super) copies: Copies,
}

/// What it gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Course {
    /// Bytes that arrived in 2500 s.
    pub(super) received: u64,
    /// The same in each bin of 10 s.
    pub(super) bins: Vec<u64>,
    /// ACKs of the receiver's timer within 3 s from the beginning of an episode.
    pub(super) timer_acks: u64,
}

impl Run {
    fn id(self) -> String {
        let Self { buffers, receiver, episodes, copies } = self;
        format!("figures/{}/{}/{}/{}", copies.id(), buffers.id(), receiver.words(), episodes.id())
    }

    pub(super) fn job(self) -> Result<Job, ReproduceError> {
        let Self { buffers, receiver, episodes, copies } = self;
        let mut set = vec![
            copies.set(),
            format!("conn.send_buffer={}k", buffers.send),
            format!("conn.recv_buffer={}k", buffers.receive),
            format!("conn.ack={}", receiver.spec()),
        ];
        set.extend(episodes.set());
        let scenario = CONGESTION.with_set(set)?;
        let times = episodes.times();
        Ok(Job::outcome(self.id(), "course", &scenario, 0, 0, move |outcome| course(&outcome, &times)))
    }

    pub(super) fn course(self, outputs: &Outputs) -> Result<Course, ReproduceError> {
        outputs.get(&self.id())
    }
}

fn course(outcome: &Outcome, episodes: &[f64]) -> Course {
    let flow = outcome.result.flows.first();
    let rows = outcome.record.trace.as_ref().map(|trace| trace.rows.as_slice()).unwrap_or_default();
    let timer_acks = rows.iter().filter(|row| {
        let at = row.at_ns as f64 / 1e9;
        row.reason == "ack-by-timer" && episodes.iter().any(|from| (*from..from + 3.0).contains(&at))
    });
    Course {
        received: flow.map_or(0, |flow| flow.received_bytes),
        bins: flow.map(|flow| flow.received_bins.clone()).unwrap_or_default(),
        timer_acks: timer_acks.count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs go through a scenario's points in the order of policies and buffers.
    #[test]
    fn points_are_the_cells_in_order() {
        for text in [BUFFERS, LOOPBACK] {
            let scenario = text.parse().unwrap();
            assert_eq!(scenario.points() % 64, 0);
            for point in 0..scenario.points() {
                let buffers = Buffers::all().nth(point % 64).unwrap();
                let params = scenario.params(point);
                let value =
                    |path: &str| params.iter().find(|param| param.path == path).unwrap().value.clone();
                assert_eq!(value("conn.send_buffer"), format!("{}k", buffers.send));
                assert_eq!(value("conn.recv_buffer"), format!("{}k", buffers.receive));
                if text == BUFFERS {
                    let ack = value("conn.ack");
                    let wanted = match Policy::ALL[point / 64] {
                        Policy::Delayed => ack.starts_with("sunos-delayed:"),
                        Policy::A3 => ack.starts_with("a3:") && !ack.contains("fewer"),
                        Policy::Fewer => ack.starts_with("a3:") && ack.contains("fewer=on"),
                    };
                    assert!(wanted, "{ack}");
                }
            }
        }
    }

    /// The episodes of the figures are those that the scenario says.
    #[test]
    fn the_five_episodes_are_the_scenarios() {
        for from in Episodes::Five.times() {
            let until = from + EPISODE;
            let line = format!("{{ kind = \"drop\", from = \"{from:.2}s\", until = \"{until:.2}s\" }}");
            assert!(CONGESTION.text().contains(&line), "{line}");
        }
        assert_eq!(CONGESTION.text().matches("kind = \"drop\"").count(), 5);
    }
}
