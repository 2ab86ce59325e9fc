//! Processor time: of threads, of the process, and of the whole machine.
//!
//! What the kernel does for a packet it mostly does inside the system call that brings the packet, and charges the
//! caller for it, whoever's packet it is. Work that it puts off to a thread of its own (`ksoftirqd`) or does in an
//! interrupt is nobody's: only the machine's time has it, together with all else that runs on the machine.

use crate::Outcome;
use ackline_runtime::timer;
use ackline_tcp_core::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// `USER_HZ`: the unit of times in `/proc`, the same on all machines that Linux speaks of here (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Readings of the moment; times in seconds since something began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    at: Instant,
    here: f64,
    peer: f64,
    process: f64,
    kernel_share: (f64, f64),
    machine: f64,
}

/// What was used between two readings, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) elapsed: f64,
    /// By the thread of the measured end.
    pub(crate) here: f64,
    /// By the thread of the other end.
    pub(crate) peer: f64,
    /// By the process.
    pub(crate) both: f64,
    /// Of that, in the kernel; a share between 0 and 1.
    pub(crate) kernel_share: f64,
    /// By everything on the machine.
    pub(crate) machine: f64,
}

impl Usage {
    /// Reads; `here` and `peer` are the threads of the two ends.
    pub(crate) fn read(here: i32, peer: i32) -> Outcome<Self> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            at: timer::now(),
            here: of_thread(here)?,
            peer: of_thread(peer)?,
            process: cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9,
            kernel_share: of_process()?,
            machine: of_machine()?,
        })
    }

    pub(crate) fn since(self, before: Self) -> Used {
        let user = self.kernel_share.0 - before.kernel_share.0;
        let system = self.kernel_share.1 - before.kernel_share.1;
        Used {
            elapsed: self.at.since(before.at).as_secs_f64(),
            here: self.here - before.here,
            peer: self.peer - before.peer,
            both: self.process - before.process,
            kernel_share: if user + system > 0.0 { system / (user + system) } else { 0.0 },
            machine: self.machine - before.machine,
        }
    }
}

/// The first number of a thread's `schedstat`: nanoseconds on a processor.
fn of_thread(thread: i32) -> Outcome<f64> {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let nanos = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
    Ok(nanos.ok_or_else(|| format!("{path}: no number"))? as f64 * 1e-9)
}

/// In the process and in the kernel for it: fields 14 and 15, counted from behind the name in parentheses.
fn of_process() -> Outcome<(f64, f64)> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let behind = text.rsplit(')').next().unwrap_or("");
    let mut ticks = behind.split_whitespace().skip(11).map(str::parse::<u64>);
    match (ticks.next(), ticks.next()) {
        (Some(Ok(user)), Some(Ok(system))) => {
            Ok((user as f64 / TICKS_PER_SECOND, system as f64 / TICKS_PER_SECOND))
        }
        _ => Err("/proc/self/stat: no times".into()),
    }
}

/// All that was not idle, on all processors.
fn of_machine() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let first = text.lines().next().unwrap_or("");
    // cpu user nice system idle iowait irq softirq
    let ticks: Vec<u64> = first.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    match ticks[..] {
        [user, nice, system, _, _, irq, softirq, ..] => {
            Ok((user + nice + system + irq + softirq) as f64 / TICKS_PER_SECOND)
        }
        _ => Err("/proc/stat: no times".into()),
    }
}
