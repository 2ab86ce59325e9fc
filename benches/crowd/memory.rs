//! Memory, in bytes: of this process, and of the kernel's TCP.

use crate::ground::Outcome;
use ackline_runtime::timer;
use std::fs;
use std::time::Duration;

pub(crate) const MEGABYTE: f64 = 1e6;
/// Bytes that may be held by what other programs do meanwhile.
const LITTLE: u64 = 16_000_000;
/// Orphans give up after some retransmissions (`net.ipv4.tcp_orphan_retries`).
const PATIENCE: Duration = Duration::from_secs(180);

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

/// Waits until the kernel's TCP holds little: connections that ended with data that nobody
/// acknowledged hold it for minutes, and near `net.ipv4.tcp_mem` every connection of the machine is
/// slow.
#[expect(clippy::disallowed_methods, reason = "nothing is measured yet")]
pub(crate) fn wait_until_free() -> Outcome<()> {
    let start = timer::now();
    loop {
        let held = of_kernel()?;
        if held <= LITTLE {
            return Ok(());
        }
        if u128::from(timer::now().since(start).as_nanos()) >= PATIENCE.as_nanos() {
            let held = held as f64 / MEGABYTE;
            return Err(
                format!("the kernel's TCP holds {held:.0} MB already (`ss -s`, /proc/net/sockstat)").into()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A line of the process's status, which is in KiB.
fn status(name: &str) -> Outcome<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number.ok_or_else(|| format!("/proc/self/status: no {name}"))?.parse::<u64>()? << 10)
}
