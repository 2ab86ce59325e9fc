//! How busy the emulator and the machine were.

use ackline_runtime::timer;
use ackline_tcp_core::{Duration, Instant};
use std::fs;

/// The emulator's thread runs at most for this share of the time, unless it spins: without a pause
/// it has more to do than it can, and packets wait before the network.
const MOST_BUSY: f64 = 0.95;

/// The thread waits for a processor at most for this share of the time. While it waits, it reads
/// nothing.
const MOST_WAITING: f64 = 0.1;

/// All processors together are busy at most for this share of the time. Beyond, the hosts outside
/// do not get theirs: what they do then depends on the machine, not on the network.
const MACHINE_BUSIEST: f64 = 0.95;

/// Shorter runs are not judged by shares of time: beginning is most of what they do, and the kernel
/// counts in hundredths of a second.
const JUDGED_FROM: Duration = Duration::from_secs(1);

/// Shares of the time of a run, 0 to 1; `None` if the system does not tell, as only Linux does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// The thread ran.
    pub thread_busy: Option<f64>,
    /// The thread could have run, and waited for a processor.
    pub thread_waiting: Option<f64>,
    /// All processors of the machine together were busy.
    pub machine_busy: Option<f64>,
}

impl Load {
    /// Why a run of this length is not to be believed, in words: what kept the emulator from its
    /// work, or the hosts outside from theirs. Empty if nothing did. The thread's own business does
    /// not count if it spins.
    ///
    /// The lateness of departures does not tell this: a packet that waits until the emulator reads
    /// it enters late, and nobody knows when it came.
    #[must_use]
    pub fn reasons(&self, length: Duration, spins: bool) -> Vec<String> {
        if length < JUDGED_FROM {
            return vec![];
        }
        let judged = [
            ("the emulator was busy", self.thread_busy.filter(|_| !spins), MOST_BUSY),
            ("the emulator waited for a processor", self.thread_waiting, MOST_WAITING),
            ("the whole machine was busy", self.machine_busy, MACHINE_BUSIEST),
        ];
        let above = judged.into_iter().filter_map(|(what, share, most)| {
            let share = share.filter(|share| *share > most)? * 100.0;
            Some(format!("{what} {share:.0} % of the time; at most {:.0} % are right", most * 100.0))
        });
        above.collect()
    }
}

/// Measures from its making on, in the thread that makes it.
#[derive(Clone, Copy, Debug)]
pub struct LoadWatch {
    since: Instant,
    thread: Option<Thread>,
    machine: Option<Machine>,
}

impl LoadWatch {
    /// Begins.
    #[must_use]
    pub fn start() -> Self {
        Self { since: timer::now(), thread: Thread::read(), machine: Machine::read() }
    }

    /// What has been measured; in the same thread.
    #[must_use]
    pub fn read(&self) -> Load {
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

    /// The first line of `stat` of proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
    /// What follows is in these already.
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
    fn each_share_has_its_bound() {
        let (long, short) = (Duration::from_secs(10), Duration::from_millis(900));
        let calm = Load { thread_busy: Some(0.9), thread_waiting: Some(0.05), machine_busy: Some(0.9) };
        assert_eq!(calm.reasons(long, false), [""; 0]);
        assert_eq!(Load::default().reasons(long, false), [""; 0], "what is not known is not held against it");
        let loaded = Load { thread_busy: Some(0.99), thread_waiting: Some(0.4), machine_busy: Some(1.0) };
        let told = loaded.reasons(long, false);
        assert_eq!(
            told,
            [
                "the emulator was busy 99 % of the time; at most 95 % are right",
                "the emulator waited for a processor 40 % of the time; at most 10 % are right",
                "the whole machine was busy 100 % of the time; at most 95 % are right",
            ]
        );
        assert_eq!(loaded.reasons(long, true), told[1..], "who spins is always busy");
        assert_eq!(loaded.reasons(short, false), [""; 0], "too short for shares");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_kernel_tells_them() {
        let load = LoadWatch::start().read();
        assert!(load.thread_busy.is_some() && load.thread_waiting.is_some(), "{load:?}");
    }
}
