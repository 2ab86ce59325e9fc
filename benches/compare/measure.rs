//! One measurement: two ends that never stop, and one thread that looks at them twice.

use crate::Outcome;
use crate::case::{Act, Case, Program, Who};
use crate::ends::ackline::SIMPLE;
use crate::ends::{self, Meter};
use crate::net::{self, Here, Net, PEER, PORT};
use crate::results::{Metric, Sample};
use crate::usage::{Runs, Usage};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// From the first byte to the first look: slow start and the growth of buffers are over.
const WARM_UP: Duration = Duration::from_millis(250);
/// For the first byte to come.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Makes and removes everything that a measurement needs.
pub(crate) fn check_rights() -> Outcome<()> {
    net::gain_rights()?;
    Net::new(&Case { contestant: crate::case::TUN, act: Act::Send { flows: 1 } }).map(drop)
}

/// The threads go on when this returns: the process is to end.
pub(crate) fn run(case: Case, length: Duration) -> Outcome<Sample> {
    // If the command is killed, its measurements are not to outlive it.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    net::gain_rights()?;
    let Net { peer, here } = Net::new(&case)?;
    let program = if let Here::Program(program) = &here { Some(program.id()) } else { None };
    let meter = Arc::new(Meter::default());
    let (report, ended) = mpsc::channel();

    let listener = peer.run(|| TcpListener::bind((PEER, PORT)))??;
    // What it accepts has it too.
    ends::kernel::set_congestion_control(&listener, case.contestant.kernel_cc)?;
    let other = spawn("peer", &report, {
        let meter = meter.clone();
        move || {
            peer.enter().map_err(io::Error::other)?;
            ends::kernel::serve(&listener, case.act, &meter)
        }
    })?;
    let measured = spawn("here", &report, {
        let meter = meter.clone();
        move || match (here, case.contestant.who) {
            (Here::Kernel(namespace), _) => {
                namespace.enter().map_err(io::Error::other)?;
                ends::kernel::connect(case.act, case.contestant.kernel_cc, &meter)
            }
            (Here::Device(device), Who::Ackline(acks)) => {
                ends::ackline::connect(device, SIMPLE, acks, None, case.act, &meter)
            }
            (Here::Device(device), Who::Observed(observed)) => {
                let watch = ends::watch::Watch::start(observed)?;
                ends::ackline::connect(device, SIMPLE, None, Some(watch), case.act, &meter)
            }
            (Here::Device(device), Who::Within(program)) => {
                ends::ackline::connect(device, program, None, None, case.act, &meter)
            }
            (Here::Device(device), Who::Smoltcp) => ends::smoltcp::connect(device, case.act, &meter),
            (Here::Device(device), Who::Loop) => ends::bare::connect(device, case.act, &meter),
            (Here::Program(program), _) => ends::gvisor::connect(program, &meter),
            (Here::Device(_), Who::Kernel | Who::Gvisor) => Err(io::ErrorKind::Unsupported.into()),
        }
    })?;

    let measured = match (program, case.contestant.who) {
        (Some(program), _) => Runs::Process(program),
        (None, Who::Within(Program { workers: Some(_), .. })) => Runs::Threads,
        (None, _) => Runs::Thread(measured),
    };
    let mut waited = Duration::ZERO;
    while meter.total() == 0 {
        pause(&ended, LOOK)?;
        waited += LOOK;
        if waited > PATIENCE {
            return Err("nothing came through".into());
        }
    }
    pause(&ended, WARM_UP)?;
    let (before, units) = (Usage::read(measured, other)?, meter.total());
    meter.forget_times();
    pause(&ended, length)?;
    let (after, units) = (Usage::read(measured, other)?, meter.total() - units);
    if units == 0 {
        return Err("it came to a standstill".into());
    }

    let used = after.since(before);
    let mut sample = Sample::default();
    sample.set(Metric::LoadHere, used.here / used.elapsed);
    sample.set(Metric::LoadPeer, used.peer / used.elapsed);
    match case.act {
        Act::Send { .. } | Act::Receive { .. } => {
            let gigabytes = units as f64 * 1e-9;
            sample.set(Metric::GbitPerSecond, gigabytes * 8.0 / used.elapsed);
            sample.set(Metric::CpuHere, used.here / gigabytes);
            sample.set(Metric::CpuPeer, used.peer / gigabytes);
            sample.set(Metric::CpuBoth, used.both / gigabytes);
            sample.set(Metric::CpuMachine, used.machine / gigabytes);
            sample.set(Metric::KernelShare, used.kernel_share);
        }
        Act::RoundTrip { .. } => {
            let mut times = meter.take_times();
            times.sort_unstable();
            sample.set(Metric::MedianMicros, quantile(&times, 0.5));
            sample.set(Metric::P99Micros, quantile(&times, 0.99));
        }
        Act::Open { .. } => {
            sample.set(Metric::PerSecond, units as f64 / used.elapsed);
            sample.set(Metric::CpuMicrosEach, used.both * 1e6 / units as f64);
        }
    }
    for (metric, value) in meter.extra() {
        sample.set(metric, value);
    }
    Ok(sample)
}

/// Starts an end; returns its thread's number. Its end, which is an error, goes to `report`.
fn spawn(
    name: &str,
    report: &Sender<String>,
    end: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Outcome<i32> {
    let (give, take) = mpsc::channel();
    let (label, report) = (name.to_owned(), report.clone());
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Whoever waits for these is there, or the process ends.
        let _ = give.send(rustix::thread::gettid().as_raw_nonzero().get());
        let why = end().map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
        let _ = report.send(format!("{label}: {why}"));
    })?;
    Ok(take.recv()?)
}

/// Waits; an end that ends meanwhile is an error.
fn pause(ended: &Receiver<String>, length: Duration) -> Outcome<()> {
    match ended.recv_timeout(length) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Ok(why) => Err(why.into()),
        Err(RecvTimeoutError::Disconnected) => Err("both ends are gone".into()),
    }
}

/// Of sorted nanoseconds, in microseconds; not a number if there are none.
fn quantile(sorted: &[u32], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at).map_or(f64::NAN, |&nanos| f64::from(nanos) * 1e-3)
}
