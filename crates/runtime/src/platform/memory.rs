//! The memory budget of a stack that sets none: a share of the machine's memory, or of its
//! container's.

use std::fs;

/// The budget is one part of this many: 12.5 %. Linux gives all its TCP sockets together 9.4 % at
/// most (`tcp_init_mem`), without their structs.
const SHARE: u64 = 8;

/// The smallest budget, in bytes.
const LEAST: u64 = 64 << 20;

/// The limits of a container: those of cgroups of version 2 and 1.
const LIMITS: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// [`EndpointConfig::max_memory`](ackline_tcp_core::EndpointConfig::max_memory) for this machine,
/// in bytes; `None` if it does not say how much memory it has.
pub(crate) fn budget() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok()?;
    let limits = LIMITS.map(|path| fs::read_to_string(path).unwrap_or_default());
    share_of(&machine, &limits)
}

/// The budget, given what the machine says, and its limits. Some of them may say nothing.
fn share_of(meminfo: &str, limits: &[String]) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let limit = limits.iter().filter_map(|limit| limit.trim().parse().ok()).min();
    let memory = limit.unwrap_or(u64::MAX).min(kilobytes.saturating_mul(1_024));
    Some((memory / SHARE).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_what_there_is() {
        let meminfo = "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n";
        let with = |limits: [&str; 2]| share_of(meminfo, &limits.map(String::from));
        assert_eq!(with(["", ""]), Some(2 << 30));
        assert_eq!(with(["max\n", "9223372036854771712\n"]), Some(2 << 30), "no limit");
        assert_eq!(with(["4294967296\n", ""]), Some(512 << 20));
        assert_eq!(with(["16777216\n", ""]), Some(LEAST));
        assert_eq!(share_of("", &[]), None);
    }

    #[test]
    fn linux_has_memory() {
        if cfg!(target_os = "linux") {
            assert!(budget().is_some_and(|bytes| bytes >= LEAST));
        }
    }
}
