//! What a benchmark ran on.

use crate::Outcome;
use std::fs;
use std::process::Command;

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

/// The commit of the sources that are measured, with `+` if files differ from it; `None` outside a
/// checkout.
pub(crate) fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/crates");
        let output = Command::new("git").current_dir(folder).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs = git(&["status", "--porcelain", "--untracked-files=no", "--", "."])?;
    Some(if differs.is_empty() { commit } else { commit + "+" })
}

/// The machine and the measured sources, as the line below a table names them.
pub(crate) fn place(processors: usize, processor: &str, kernel: &str, commit: Option<&str>) -> String {
    let at_commit = commit.map(|commit| format!(", at commit `{commit}`")).unwrap_or_default();
    format!("{processors} processors ({processor}), Linux {kernel}{at_commit}")
}

/// A setting of the kernel by its path below `/proc/sys`.
pub(crate) fn sysctl(name: &str) -> Outcome<String> {
    Ok(fs::read_to_string(format!("/proc/sys/{name}"))?.trim().to_owned())
}
