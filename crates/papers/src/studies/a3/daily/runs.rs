//! The axes of the daily matrix, its jobs, and what they measure.

use crate::job::identity_of_all;
use crate::{Job, Outputs, ReproduceError, Request, ScenarioText, scenario};
use ackline_lab::{Outcome, Scenario, run_one};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const DAILY: ScenarioText = scenario!("a3/daily");

/// An ACK policy, in the order of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Linux,
    Delayed,
    A3,
    Csa3,
    /// A3 without what its default profile adds for senders that push.
    Samplings,
    /// A3 as published.
    Paper,
}

impl Policy {
    pub(super) const ALL: [Self; 6] =
        [Self::Linux, Self::Delayed, Self::A3, Self::Csa3, Self::Samplings, Self::Paper];
    /// Those that are run with losses.
    pub(super) const LOSSY: [Self; 4] = [Self::Linux, Self::Delayed, Self::A3, Self::Csa3];
    /// Those that claim to be never worse than Linux's.
    pub(super) const CLAIMS: [Self; 2] = [Self::A3, Self::Csa3];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Linux => "linux-like",
            Self::Delayed => "delayed",
            Self::A3 => "a3",
            Self::Csa3 => "csa3",
            Self::Samplings => "samplings",
            Self::Paper => "paper",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Samplings => "a3, samplings only",
            Self::Paper => "a3:profile=paper",
            _ => self.id(),
        }
    }
}

/// What the applications do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workload {
    Bulk,
    Requests,
    Writes,
    LateReader,
}

impl Workload {
    pub(super) const ALL: [Self; 4] = [Self::Bulk, Self::Requests, Self::Writes, Self::LateReader];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Requests => "requests",
            Self::Writes => "writes",
            Self::LateReader => "late-reader",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Requests => "requests of 3 KB, responses of 20 KB",
            Self::Writes => "writes of 100 bytes",
            Self::LateReader => "bulk, read every 100 ms",
        }
    }

    fn app(self) -> String {
        let what = match self {
            Self::Bulk => r#"kind="bulk""#,
            Self::Requests => r#"kind="request",request="3k",response="20k",think="1ms""#,
            Self::Writes => r#"kind="writes",size=100,interval="200us""#,
            Self::LateReader => r#"kind="bulk",reader={bytes="1M",interval="100ms"}"#,
        };
        format!(r#"app=[{{name="flow",from="sender",to="receiver",{what}}}]"#)
    }
}

/// A path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// Its round trip, for ids and tables.
    pub(super) name: &'static str,
    delay_us: u64,
    rate: &'static str,
    seconds: u32,
}

pub(super) const PATHS: [Path; 3] = [
    Path { name: "0.2 ms", delay_us: 100, rate: "1gbit", seconds: 1 },
    Path { name: "20 ms", delay_us: 10_000, rate: "100mbit", seconds: 3 },
    Path { name: "170 ms", delay_us: 85_000, rate: "100mbit", seconds: 8 },
];

/// Send buffers of the scenario, KB.
pub(super) const BUFFERS: [u32; 8] = [2, 4, 8, 16, 32, 64, 128, 256];
/// Payload of a segment, bytes; timestamps take 12 of the MSS.
const SEGMENTS: [u32; 3] = [536, 1448, 8948];
/// Send buffers with losses, KB.
const LOSSY_BUFFERS: [u32; 3] = [8, 64, 256];
/// Seeds of a point with losses.
const SEEDS: u32 = 10;

/// The runs of one job: all policies and send buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) workload: Workload,
    pub(super) path: Path,
    /// Payload of a segment, bytes.
    pub(super) segment: u32,
    pub(super) nagle: bool,
}

impl Setting {
    /// Those of a request; quick runs have one segment size.
    pub(super) fn all(request: &Request) -> Vec<Self> {
        let segments = if request.quick { &[1448][..] } else { &SEGMENTS };
        let mut all = vec![];
        for workload in Workload::ALL {
            for path in PATHS {
                for &segment in segments {
                    all.extend([true, false].map(|nagle| Self { workload, path, segment, nagle }));
                }
            }
        }
        all
    }

    fn id(self) -> String {
        let Self { workload, path, segment, nagle } = self;
        let nagle = if nagle { "nagle" } else { "no-nagle" };
        format!("daily/{}/{}/{segment}/{nagle}", workload.id(), path.name)
    }

    fn set(self) -> Vec<String> {
        let Self { workload, path, segment, nagle } = self;
        vec![
            workload.app(),
            format!("link.path.delay={}us", path.delay_us),
            format!("link.path.rate={}", path.rate),
            format!("duration={}s", path.seconds),
            format!("conn.mss={}", segment + 12),
            format!("conn.nagle={}", if nagle { "minshall" } else { "off" }),
        ]
    }
}

/// Send buffers of a request, KB.
pub(super) fn buffers(request: &Request) -> &'static [u32] {
    if request.quick { &[2, 8, 64] } else { &BUFFERS }
}

/// What a run gives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measurement {
    pub(super) goodput_bps: f64,
    /// ACKs without data, of both ends.
    pub(super) acks: u64,
    /// Retransmissions of both ends.
    pub(super) retransmits: u64,
    /// Times in which both ends wait; and how long altogether, s.
    pub(super) stalls: u32,
    pub(super) stalled_s: f64,
}

/// Longer silence than a packet needs for its way counts as a stall, ns.
const PATIENCE: u64 = 10_000_000;

impl Measurement {
    /// `delay`: of the path, one way, ns. Whatever is sent arrives after it, and the applications
    /// always have something to send or to answer; so if nothing arrives for longer, both ends
    /// wait.
    fn of(outcome: &Outcome, delay: u64) -> Result<Self, String> {
        let trace = outcome.record.trace.as_ref().ok_or("the scenario keeps no trace")?;
        if trace.omitted > 0 {
            return Err(format!("the trace is too short by {} packets", trace.omitted));
        }
        let (mut stalls, mut stalled) = (0, 0);
        for pair in trace.rows.windows(2) {
            let silence = pair[1].at_ns - pair[0].at_ns;
            if silence > delay + PATIENCE {
                stalls += 1;
                stalled += silence - delay;
            }
        }
        let flow = outcome.result.flows.first().ok_or("the scenario has no flow")?;
        Ok(Self {
            goodput_bps: flow.goodput_bps,
            acks: outcome.result.queues.iter().map(|queue| queue.classes.ack.packets).sum(),
            retransmits: trace.rows.iter().filter(|row| row.class == "retransmit").count() as u64,
            stalls,
            stalled_s: stalled as f64 / 1e9,
        })
    }
}

/// The scenario's point of a policy and a send buffer.
fn point(policy: Policy, buffer: u32) -> usize {
    let place = BUFFERS.iter().position(|other| *other == buffer).unwrap_or(0);
    policy as usize * BUFFERS.len() + place
}

/// Runs points of a scenario, each with so many seeds. Its output is a list of lists.
fn job(id: String, scenario: Arc<Scenario>, path: Path, points: Vec<usize>, seeds: u32) -> Job {
    let identity = format!("{}\n{points:?} {seeds}", identity_of_all(&scenario));
    Job::new(id, identity, move || {
        let one = |point, seed| {
            let outcome = run_one(&scenario, point, seed).map_err(|error| error.to_string())?;
            Measurement::of(&outcome, path.delay_us * 1_000)
        };
        let each = |point: &usize| (0..seeds).map(|seed| one(*point, seed)).collect::<Result<Vec<_>, _>>();
        points.iter().map(each).collect::<Result<Vec<_>, _>>()
    })
}

fn loss_id(workload: Workload, path: Path) -> String {
    format!("daily/loss/{}/{}", workload.id(), path.name)
}

/// The jobs of a request; quick ones lose nothing.
pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for setting in Setting::all(request) {
        let points = points(&Policy::ALL, buffers(request));
        jobs.push(job(setting.id(), DAILY.with_set(setting.set())?, setting.path, points, 1));
    }
    if request.quick {
        return Ok(jobs);
    }
    for workload in Workload::ALL {
        for path in PATHS {
            let mut set = Setting { workload, path, segment: 1448, nagle: true }.set();
            set.push(r#"link.path.impairments=[{kind="loss",probability="1%"}]"#.to_owned());
            set.push(format!("repeat={SEEDS}"));
            let points = points(&Policy::LOSSY, &LOSSY_BUFFERS);
            jobs.push(job(loss_id(workload, path), DAILY.with_set(set)?, path, points, SEEDS));
        }
    }
    Ok(jobs)
}

fn points(policies: &[Policy], buffers: &[u32]) -> Vec<usize> {
    policies.iter().flat_map(|policy| buffers.iter().map(|buffer| point(*policy, *buffer))).collect()
}

/// A cell of the matrix: a setting and a send buffer, under each policy.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) setting: Setting,
    /// KB.
    pub(super) buffer: u32,
    by_policy: Vec<Measurement>,
}

impl Cell {
    pub(super) fn of(&self, policy: Policy) -> &Measurement {
        &self.by_policy[policy as usize]
    }

    /// Goodput over that of Linux's policy.
    pub(super) fn gain(&self, policy: Policy) -> f64 {
        self.of(policy).goodput_bps / self.of(Policy::Linux).goodput_bps
    }

    /// The share of the run that is stalled, less that under Linux's policy.
    pub(super) fn more_stalled(&self, policy: Policy) -> f64 {
        let seconds = f64::from(self.setting.path.seconds);
        (self.of(policy).stalled_s - self.of(Policy::Linux).stalled_s) / seconds
    }

    /// Retransmissions more than under Linux's policy.
    pub(super) fn more_retransmits(&self, policy: Policy) -> f64 {
        self.of(policy).retransmits as f64 - self.of(Policy::Linux).retransmits as f64
    }
}

/// All cells without loss.
pub(super) fn cells(request: &Request, outputs: &Outputs) -> Result<Vec<Cell>, ReproduceError> {
    let buffers = buffers(request);
    let mut cells = vec![];
    for setting in Setting::all(request) {
        let measured: Vec<Vec<Measurement>> = outputs.get(&setting.id())?;
        let first: Vec<Measurement> = measured.into_iter().flatten().collect();
        for (place, &buffer) in buffers.iter().enumerate() {
            let by_policy = first.iter().skip(place).step_by(buffers.len()).copied().collect();
            cells.push(Cell { setting, buffer, by_policy });
        }
    }
    Ok(cells)
}

/// A cell with losses: each policy of [`Policy::LOSSY`] with a number per seed.
#[derive(Clone, Debug)]
pub(super) struct LossyCell {
    pub(super) workload: Workload,
    pub(super) path: Path,
    /// KB.
    pub(super) buffer: u32,
    /// By policy, then by seed.
    pub(super) by_policy: Vec<Vec<Measurement>>,
}

/// All cells with losses.
pub(super) fn lossy_cells(outputs: &Outputs) -> Result<Vec<LossyCell>, ReproduceError> {
    let mut cells = vec![];
    for workload in Workload::ALL {
        for path in PATHS {
            let measured: Vec<Vec<Measurement>> = outputs.get(&loss_id(workload, path))?;
            for (place, &buffer) in LOSSY_BUFFERS.iter().enumerate() {
                let by_policy = measured.iter().skip(place).step_by(LOSSY_BUFFERS.len()).cloned().collect();
                cells.push(LossyCell { workload, path, buffer, by_policy });
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_policies_and_send_buffers_in_order() {
        let scenario = DAILY.parse().unwrap();
        assert_eq!(scenario.points(), Policy::ALL.len() * BUFFERS.len());
        for policy in Policy::ALL {
            for buffer in BUFFERS {
                let params = scenario.params(point(policy, buffer));
                let value =
                    |path: &str| params.iter().find(|param| param.path == path).unwrap().value.clone();
                assert_eq!(value("conn.send_buffer"), format!("{buffer}k"));
                let spec = match policy {
                    Policy::Samplings => "a3:push=off,linger=ipat,delay=200ms",
                    _ => policy.words(),
                };
                assert_eq!(value("conn.ack"), spec);
            }
        }
    }

    /// Under delayed ACKs a bulk transfer with 2 KB of send buffer sends, waits for the receiver's
    /// timer, and sends again.
    #[test]
    fn a_wait_for_the_timer_is_a_stall() {
        let setting = Setting { workload: Workload::Bulk, path: PATHS[1], segment: 1448, nagle: true };
        let scenario = DAILY.with_set(setting.set()).unwrap();
        let measured = |policy| {
            let outcome = run_one(&scenario, point(policy, 2), 0).unwrap();
            Measurement::of(&outcome, 10_000_000).unwrap()
        };
        let delayed = measured(Policy::Delayed);
        assert!(delayed.stalls > 10 && delayed.stalled_s > 1.5, "{delayed:?}");
        let linux = measured(Policy::Linux);
        assert_eq!((linux.stalls, linux.stalled_s, linux.retransmits), (0, 0.0, 0));
        assert!(linux.acks > 100 && linux.goodput_bps > 2.0 * delayed.goodput_bps, "{linux:?}");
    }
}
