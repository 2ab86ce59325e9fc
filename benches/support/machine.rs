//! What a benchmark ran on.

use crate::Outcome;
use std::fs;

pub(crate) fn processors() -> Outcome<usize> {
    Ok(std::thread::available_parallelism()?.get())
}

/// The name of its model.
pub(crate) fn processor() -> Outcome<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let name = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Ok(name.map_or("unknown", |(_, name)| name.trim()).to_owned())
}

/// Its release.
pub(crate) fn kernel() -> Outcome<String> {
    sysctl("kernel/osrelease")
}

/// A setting of the kernel by its path below `/proc/sys`.
pub(crate) fn sysctl(name: &str) -> Outcome<String> {
    Ok(fs::read_to_string(format!("/proc/sys/{name}"))?.trim().to_owned())
}
