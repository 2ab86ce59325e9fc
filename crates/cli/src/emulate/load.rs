//! How busy the emulator and the machine were.

use ackline::core::{Duration, Instant};
use ackline::runtime::timer;
use serde::Serialize;
use std::fs;

/// Shares of the time of a run, 0 to 1; `None` if the kernel does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Load {
    /// The emulator's thread ran. Behind the path it carries the program's connections on, too.
    pub(super) thread_busy: Option<f64>,
    /// The thread could have run, and waited for a processor.
    pub(super) thread_waiting: Option<f64>,
    /// All processors of the machine together were busy.
    pub(super) machine_busy: Option<f64>,
}

/// Measures from its making on, in the thread that makes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadWatch {
    since: Instant,
    thread: Option<Thread>,
    machine: Option<Machine>,
}

impl LoadWatch {
    pub(super) fn start() -> Self {
        Self { since: timer::now(), thread: Thread::read(), machine: Machine::read() }
    }

    /// What has been measured; in the same thread.
    pub(super) fn read(&self) -> Load {
        let elapsed = timer::now().since(self.since);
        let share = |part: Duration| part.as_nanos() as f64 / elapsed.as_nanos().max(1) as f64;
        let thread = self.thread.zip(Thread::read());
        let machine = self.machine.zip(Machine::read());
        Load {
            thread_busy: thread.map(|(from, to)| share(to.ran.saturating_sub(from.ran))),
            thread_waiting: thread.map(|(from, to)| share(to.waited.saturating_sub(from.waited))),
            machine_busy: machine.and_then(|(from, to)| to.busy_since(from)),
        }
    }
}

/// A thread's times so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    /// On a processor.
    ran: Duration,
    /// Runnable, without a processor.
    waited: Duration,
}

impl Thread {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    /// `schedstat` of proc(5): nanoseconds run, nanoseconds waited, and how often it ran.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers =
            text.split_ascii_whitespace().map(|word| word.parse().ok().map(Duration::from_nanos));
        Some(Self { ran: numbers.next()??, waited: numbers.next()?? })
    }
}

/// Ticks of all processors so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Machine {
    busy: u64,
    all: u64,
}

impl Machine {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line of `stat` of proc(5): user, nice, system, idle, iowait, irq, softirq, steal. What follows is in these already.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(8);
        let ticks: Vec<u64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
        let all = ticks.iter().sum();
        Some(Self { busy: u64::saturating_sub(all, idle + waiting), all })
    }

    fn busy_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(self.busy.saturating_sub(before.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let thread = Thread::parse("5000 300 17\n").expect("right");
        assert_eq!((thread.ran.as_nanos(), thread.waited.as_nanos()), (5_000, 300));
        assert_eq!(Thread::parse("5000"), None);
        let before = Machine::parse("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 2 3 4\n").expect("right");
        assert_eq!(before, Machine { busy: 20, all: 100 });
        // Of 100 ticks 60 user, 10 stolen, 25 idle, 5 waiting for a disk.
        let after = Machine::parse("cpu  70 0 10 95 15 0 0 10 5 0").expect("right");
        assert_eq!(after.busy_since(before), Some(0.7));
        assert_eq!((before.busy_since(before), Machine::parse("intr 1 2")), (None, None));
    }

    #[test]
    fn this_kernel_tells_them() {
        let watch = LoadWatch::start();
        let load = watch.read();
        assert!(load.thread_busy.is_some() && load.thread_waiting.is_some(), "{load:?}");
    }
}
