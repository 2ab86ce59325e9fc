//! Processor time, as the kernel accounts for it.

use crate::rights::Outcome;
use crate::terminator::Terminator;
use std::fs;

/// What processors have spent, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// On the terminator, with what the kernel did for it.
    pub(crate) terminator: f64,
    /// On everything on the machine.
    pub(crate) all: f64,
}

impl Spent {
    /// Until now.
    pub(crate) fn by(terminator: &Terminator) -> Outcome<Self> {
        let all = fs::read_to_string("/proc/stat")?;
        let all = all.lines().next().and_then(|line| line.strip_prefix("cpu"));
        // user, nice, system, and after idle and iowait: irq, softirq (proc_stat(5)).
        let all = sum(all.ok_or("/proc/stat: no processors")?, &[0, 1, 2, 5, 6])?;
        let own = terminator.proc("stat")?;
        // Behind the name, which may have anything in it: utime and stime are fields 14 and 15, and
        // the first of these is 3 (proc_pid_stat(5)).
        let (_, own) = own.rsplit_once(')').ok_or("the terminator has no name")?;
        Ok(Self { terminator: sum(own, &[11, 12])?, all })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self { terminator: self.terminator - before.terminator, all: self.all - before.all }
    }
}

/// Adds some of the numbers up, which are clock ticks: seconds.
fn sum(numbers: &str, which: &[usize]) -> Outcome<f64> {
    let numbers: Vec<_> = numbers.split_whitespace().collect();
    let mut ticks = 0;
    for &which in which {
        ticks += numbers.get(which).ok_or("a number is missing in /proc")?.parse::<u64>()?;
    }
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
