//! Memory, in bytes: of this process, and of the kernel's TCP.

use crate::ground::Outcome;
use std::fs;

pub(crate) const MEGABYTE: f64 = 1e6;

/// What the process has in memory.
pub(crate) fn resident() -> Outcome<u64> {
    status("VmRSS:")
}

/// The most that it had.
pub(crate) fn most_resident() -> Outcome<u64> {
    status("VmHWM:")
}

/// What the kernel's TCP holds, on the whole machine.
pub(crate) fn of_kernel() -> Outcome<u64> {
    let text = fs::read_to_string("/proc/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let mut words = line.into_iter().flat_map(str::split_whitespace).skip_while(|word| *word != "mem");
    let pages: u64 = words.nth(1).ok_or("/proc/net/sockstat: no memory of TCP")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// A line of the process's status, which is in KiB.
fn status(name: &str) -> Outcome<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number.ok_or_else(|| format!("/proc/self/status: no {name}"))?.parse::<u64>()? << 10)
}
