//! CPU time of this process as a share of the time that passed.

use super::report::record::Cpu;
use crate::transfer::traffic::Stopwatch;
use std::fs;

/// Measures from its making on.
#[derive(Clone, Copy)]
pub(super) struct CpuWatch {
    watch: Stopwatch,
    ticks: (u64, u64),
}

impl CpuWatch {
    pub(super) fn start() -> Self {
        Self { watch: Stopwatch::of_process(), ticks: ticks() }
    }

    /// Percentages since the start, of one processor.
    pub(super) fn read(&self) -> Cpu {
        let elapsed = self.watch.elapsed().as_secs_f64();
        if elapsed <= 0.0 {
            return Cpu::default();
        }
        let total = 100.0 * self.watch.cpu().as_secs_f64() / elapsed;
        let (user, system) = ticks();
        let (user, system) = (user.saturating_sub(self.ticks.0), system.saturating_sub(self.ticks.1));
        let share = if user + system == 0 { 0.0 } else { user as f64 / (user + system) as f64 };
        Cpu { total, user: total * share, system: total * (1.0 - share) }
    }
}

/// The clock says how much exactly, and the kernel's ticks how it is divided into user and system
/// time.
fn ticks() -> (u64, u64) {
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| parse(&stat)).unwrap_or_default()
}

/// Fields 14 and 15 of proc(5)'s `stat`, counted from behind the command's name, which may hold
/// anything.
fn parse(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_command_does_not_matter() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 146 0 0 0 12 34 0 0 20 0 1 0 100 8 9";
        assert_eq!(parse(stat), Some((12, 34)));
        assert_eq!(parse("7 (x) S 1"), None);
        assert!(fs::read_to_string("/proc/self/stat").is_ok_and(|stat| parse(&stat).is_some()));
    }

    #[test]
    fn user_and_system_make_the_total() {
        let watch = CpuWatch::start();
        let cpu = watch.read();
        assert!((cpu.user + cpu.system - cpu.total).abs() < 1e-6, "{cpu:?}");
    }
}
