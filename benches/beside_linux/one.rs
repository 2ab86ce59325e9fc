//! One run, in this process.

use crate::Outcome;
use crate::design::Sender;
use crate::pool::Job;
use crate::results::Sample;
use ackline_emulate::stage::RealTime;
use ackline_lab::stage::Virtual;
use ackline_lab::{RunResult, Scenario, run_one_on};
use ackline_runtime::Error;
use ackline_runtime::netns::{Namespace, enter_user_namespace};
use ackline_runtime::priority::Priority;

/// The base path.
const PATH: &str = include_str!("path.toml");
/// Bytes of a full segment: 1500 without the headers of IPv4 and TCP with timestamps.
const SEGMENT: f64 = 1448.0;

/// Finds out whether namespaces can be made here.
pub(crate) fn prepare() -> Outcome<()> {
    let made = std::thread::spawn(gain_rights).join();
    made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// As root there are the rights; an ordinary user needs a user namespace. To be called while the
/// process has one thread.
fn gain_rights() -> Outcome<()> {
    match Namespace::new_for_thread() {
        Err(Error::NamespaceForbidden) => Ok(enter_user_namespace()?),
        other => Ok(other.map(drop)?),
    }
}

/// Makes the run that a command line names and prints its result.
pub(crate) fn print(job: &str) -> Outcome<()> {
    gain_rights()?;
    let job: Job = serde_json::from_str(job)?;
    println!("{}", serde_json::to_string(&run(&job)?)?);
    Ok(())
}

fn run(job: &Job) -> Outcome<Sample> {
    let scenario = Scenario::parse(PATH, "path.toml")?.with_set(job.cell.settings(job.sender, job.longer))?;
    let outcome = if job.sender == Sender::Simulated {
        run_one_on(&Virtual, &scenario, 0, job.round)?
    } else {
        // The emulator takes little time, and what it does late spoils its run. An ordinary user
        // may not have the right.
        let priority = Some(Priority::Fifo(1)).filter(|priority| priority.set_for_thread().is_ok());
        run_one_on(&RealTime { priority, ..RealTime::default() }, &scenario, 0, job.round)?
    };
    sample(&outcome.result)
}

fn sample(result: &RunResult) -> Outcome<Sample> {
    let flow = result.flows.first().ok_or("no flow")?;
    let queue = result.queues.iter().find(|queue| queue.link == "path").ok_or("no queue")?;
    if flow.wrong_reads > 0 {
        return Err(format!("{} reads found wrong bytes", flow.wrong_reads).into());
    }
    let again: u64 = flow.transfers.iter().map(|transfer| transfer.redundant_bytes).sum();
    let millis = |seconds: Option<f64>| rounded(seconds.unwrap_or(0.0) * 1e3);
    Ok(Sample {
        goodput: rounded(flow.goodput_bps / 1e6),
        sent: flow.data_packets,
        again: flow.retransmits,
        needless: rounded(again as f64 / SEGMENT),
        delay: millis(queue.delay_s.map(|delay| delay.mean)),
        delay_p95: millis(queue.delay_s.map(|delay| delay.p95)),
        lost: queue.overflows + queue.aqm_drops + queue.impaired,
        marked: queue.marked,
        times: flow.times_s.iter().copied().map(rounded).collect(),
        late_us: result.validity.as_ref().map(|validity| validity.late_p99_us),
        invalid: result.validity.as_ref().map(|validity| validity.reasons.clone()).unwrap_or_default(),
    })
}

/// Digits beyond these say nothing.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
