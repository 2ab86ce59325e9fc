//! What a run's plots show beside its numbers: limits that do not change, and what the scenario
//! does at which time.

use crate::scenario::setup::{ChangeSetup, LinkSetup, Setup, What};
use ackline_netsim::Service;
use ackline_netsim::queue::Limit;

/// The setting of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Length of the run, s.
    pub duration_s: f64,
    /// What the scenario changes: when, in seconds, and what.
    pub changes: Vec<(f64, String)>,
    /// The measured links, in the order of the record's queues.
    pub links: Vec<SceneLink>,
}

/// A link, and the queue before it.
#[derive(Clone, Debug, PartialEq)]
pub struct SceneLink {
    /// Its name.
    pub name: String,
    /// Bits per second, if they stay the same throughout the run.
    pub rate_bps: Option<u64>,
    /// What its queue holds.
    pub limit: QueueLimit,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// Packets.
    Packets(f64),
    /// Bytes.
    Bytes(f64),
    /// Anything, or what depends on a rate that changes.
    Open,
}

impl Scene {
    /// `measured`: the places of the links, in the order of the record's queues.
    pub(crate) fn of(setup: &Setup, measured: &[usize]) -> Self {
        let link = |place: &usize| SceneLink::of(&setup.links[*place], *place, &setup.changes);
        let mut changes: Vec<(f64, String)> = vec![];
        for change in &setup.changes {
            let name = change.links.first().map_or("", |place| setup.links[*place].name.as_str());
            let change = (change.at.as_secs_f64(), description(name.trim_end_matches(".back"), &change.what));
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        Self { duration_s: setup.duration.as_secs_f64(), changes, links: measured.iter().map(link).collect() }
    }
}

impl SceneLink {
    fn of(link: &LinkSetup, place: usize, changes: &[ChangeSetup]) -> Self {
        let changes = changes.iter().filter(|change| change.links.contains(&place));
        let changing = changes.into_iter().any(|change| matches!(change.what, What::Rate(_)));
        let rate_bps = match link.path.service {
            Service::Rate(rate) if !changing => Some(rate),
            _ => None,
        };
        let limit = match (link.path.queue.limit(), rate_bps) {
            (Limit::Packets(packets), _) => QueueLimit::Packets(packets as f64),
            (Limit::Bytes(bytes), _) => QueueLimit::Bytes(bytes as f64),
            (Limit::Time(time), Some(rate)) => QueueLimit::Bytes(time.as_secs_f64() * rate as f64 / 8.0),
            (Limit::Time(_), None) | (Limit::Unlimited, _) => QueueLimit::Open,
        };
        Self { name: link.name.clone(), rate_bps, limit }
    }
}

fn description(link: &str, what: &What) -> String {
    match what {
        What::Rate(rate) => format!("{link}: {} Mbit/s", *rate as f64 / 1e6),
        What::Delay(delay) => format!("{link}: {} ms", delay.as_secs_f64() * 1e3),
        What::Stall => format!("{link} stalls"),
        What::Resume => format!("{link} resumes"),
        What::Down => format!("{link} down"),
        What::Up => format!("{link} up"),
    }
}
