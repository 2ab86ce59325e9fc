//! Experiments that the draft argues about, or leaves out.

mod all_lost;
mod competing;
mod disorder;
mod subnet;

use super::super::error::ReproduceError;
use super::super::job::{Job, Outputs};
use super::super::reproduction::Reproduction;
use super::super::study::Request;
use super::responses::{RESPONSES, Response};
use crate::results::FlowResult;
use crate::run::Outcome;
use crate::scenario::Scenario;
use std::sync::Arc;

pub(super) const COMPETING: &str = "competing";
pub(super) const SUBNET: &str = "subnet";
pub(super) const ALL_LOST: &str = "all-lost";
pub(super) const DISORDER: &str = "disorder";

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    if request.wants(COMPETING) {
        jobs.extend(competing::plan(request)?);
    }
    if request.wants(SUBNET) {
        jobs.extend(subnet::plan(request)?);
    }
    if request.wants(ALL_LOST) {
        jobs.extend(all_lost::plan(request)?);
    }
    if request.wants(DISORDER) {
        jobs.extend(disorder::plan(request)?);
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    if request.wants(COMPETING) {
        found.extend(competing::evaluate(request, outputs)?);
    }
    if request.wants(SUBNET) {
        found.extend(subnet::evaluate(request, outputs)?);
    }
    if request.wants(ALL_LOST) {
        found.extend(all_lost::evaluate(request, outputs)?);
    }
    if request.wants(DISORDER) {
        found.extend(disorder::evaluate(request, outputs)?);
    }
    Ok(found)
}

/// Those that are compared here: all whose hosts are those of 2002.
fn compared() -> impl Iterator<Item = &'static Response> {
    RESPONSES.iter().filter(|response| response.id != "linux-today")
}

/// Runs with different seeds.
fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { 2 } else { 10 }).max(1)
}

/// The scenario with what a response sets, for the connections of `conn`: all, or those of an application.
fn scenario(
    name: &str,
    text: &str,
    conn: &str,
    response: &Response,
    sets: &[String],
) -> Result<Arc<Scenario>, ReproduceError> {
    let responses = response.sets.iter().map(|set| match set.strip_prefix("conn.") {
        Some(rest) => format!("{conn}.{rest}"),
        None => (*set).to_owned(),
    });
    let all: Vec<String> = responses.chain(sets.iter().cloned()).collect();
    Ok(Arc::new(super::scenario(name, text)?.with_set(all)?))
}

/// The flow of the application called `app`.
fn flow<'a>(outcome: &'a Outcome, app: &str) -> Option<&'a FlowResult> {
    outcome.result.flows.iter().find(|flow| flow.app == app)
}

/// Bytes that reached the flow's receiver again.
fn redundant(flow: &FlowResult) -> u64 {
    flow.transfers.iter().map(|transfer| transfer.redundant_bytes).sum()
}

fn timeouts(flow: &FlowResult) -> u64 {
    flow.transfers.iter().map(|transfer| transfer.timeouts).sum()
}
