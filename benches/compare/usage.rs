//! Processor time: of threads, of processes, and of the whole machine.
//!
//! What the kernel does for a packet it mostly does inside the system call that brings the packet,
//! and charges the caller for it, whoever's packet it is. Work that it puts off to a thread of its
//! own (`ksoftirqd`) or does in an interrupt is nobody's: only the machine's time has it, together
//! with all else that runs on the machine.

use crate::Outcome;
use ackline_runtime::timer;
use ackline_tcp_core::Instant;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// `USER_HZ`: the unit of times in `/proc`, the same on all machines that Linux speaks of here
/// (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Where the measured end runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Runs {
    /// In a thread of this process.
    Thread(i32),
    /// In all threads of this process but the other end's.
    Threads,
    /// In all threads of another process.
    Process(u32),
}

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
    /// By the thread or process of the measured end.
    pub(crate) here: f64,
    /// By the thread of the other end.
    pub(crate) peer: f64,
    /// By both ends: the process, and the measured end's if it has one of its own.
    pub(crate) both: f64,
    /// Of that, in the kernel; a share between 0 and 1.
    pub(crate) kernel_share: f64,
    /// By everything on the machine.
    pub(crate) machine: f64,
}

impl Usage {
    /// Reads; `here` is the measured end, `peer` the thread of the other one.
    pub(crate) fn read(here: Runs, peer: i32) -> Outcome<Self> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let (mut process, mut kernel_share) =
            (cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9, of_process("self")?);
        let peer = of_thread("self", &peer.to_string())?;
        let here = match here {
            Runs::Thread(thread) => of_thread("self", &thread.to_string())?,
            Runs::Threads => process - peer,
            Runs::Process(id) => {
                let id = id.to_string();
                let (user, system) = of_process(&id)?;
                kernel_share = (kernel_share.0 + user, kernel_share.1 + system);
                let here = of_threads(&id)?;
                process += here;
                here
            }
        };
        Ok(Self { at: timer::now(), here, peer, process, kernel_share, machine: of_machine()? })
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
fn of_thread(process: &str, thread: &str) -> Outcome<f64> {
    let path = format!("/proc/{process}/task/{thread}/schedstat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let nanos = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
    Ok(nanos.ok_or_else(|| format!("{path}: no number"))? as f64 * 1e-9)
}

/// Of all threads of a process that ends none of them.
fn of_threads(process: &str) -> Outcome<f64> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    threads.map(|thread| of_thread(process, &thread?.file_name().to_string_lossy())).sum()
}

/// In a process and in the kernel for it: fields 14 and 15, counted from behind the name in
/// parentheses.
fn of_process(process: &str) -> Outcome<(f64, f64)> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let behind = text.rsplit(')').next().unwrap_or("");
    let mut ticks = behind.split_whitespace().skip(11).map(str::parse::<u64>);
    match (ticks.next(), ticks.next()) {
        (Some(Ok(user)), Some(Ok(system))) => {
            Ok((user as f64 / TICKS_PER_SECOND, system as f64 / TICKS_PER_SECOND))
        }
        _ => Err(format!("{path}: no times").into()),
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
