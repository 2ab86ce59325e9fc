//! The proxy as the way out of a network namespace that others have made.

use crate::args::netns::NetnsAt;
use crate::failure::{Exit, Failure};
use crate::network::program::{self, Inside};
use ackline::runtime::Error as SetupError;
use ackline::runtime::device::tun::Tun;
use ackline::runtime::netns::{Namespace, join_user_namespace};
use rustix::io::Errno;

/// Gains the rights to enter it, if they are missing: inside the user namespace of its process. To
/// be called while the process has one thread.
pub(super) fn prepare(at: &NetnsAt) -> Result<(), Failure> {
    match *at {
        NetnsAt::Process(pid) if !program::has_rights() => {
            join_user_namespace(pid).map_err(|error| refused(at, &error))
        }
        _ => Ok(()),
    }
}

/// Does something there, on a thread of its own.
pub(super) fn run<T: Send>(
    at: &NetnsAt,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let entered = Namespace::open(at.path()).and_then(|namespace| namespace.run(work));
    entered.map_err(|error| refused(at, &error))?
}

/// Makes the interface, in the thread's namespace.
pub(super) fn make(at: &NetnsAt, inside: Inside<'_>) -> Result<Tun, Failure> {
    // The new route would take the place of one, and leave none behind.
    if inside.routes.is_empty()
        && let Some(interface) = default_route()
    {
        return Err(Failure::new(
            Exit::Device,
            format!(
                "the network namespace {at} has a default route by {interface}: delete that, or say with --route which \
                 networks the proxy is for"
            ),
        ));
    }
    Ok(Tun::create(&inside.device())?)
}

/// By which interface the thread's namespace has a default route, if it has one.
fn default_route() -> Option<String> {
    let read =
        |file: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    default_of(&read("route"), &read("ipv6_route"))
}

/// The same in the kernel's lists: the interface is the first of the columns (IPv4) or the last
/// (IPv6).
fn default_of(v4: &str, v6: &str) -> Option<String> {
    let v4 = v4.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let v6 = v6.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let v4 = v4.filter(|words| words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000"));
    // The loopback stands for what the kernel refuses.
    let v6 = v6.filter(|words| {
        words.get(..2).is_some_and(|first| first[0].bytes().all(|byte| byte == b'0') && first[1] == "00")
    });
    let interfaces =
        v4.filter_map(|words| words.first().copied()).chain(v6.filter_map(|words| words.last().copied()));
    interfaces.filter(|interface| *interface != "lo").map(str::to_owned).next()
}

fn refused(at: &NetnsAt, error: &SetupError) -> Failure {
    let errno = match error {
        SetupError::System { source, .. } => Errno::from_io_error(source),
        _ => None,
    };
    let message = match (at, errno) {
        (NetnsAt::Process(pid), Some(Errno::NOENT | Errno::SRCH)) => format!("there is no process {pid}"),
        (_, Some(Errno::NOENT | Errno::NOTDIR)) => format!("there is no {}", at.path().display()),
        (_, Some(Errno::INVAL)) => format!("{} is no network namespace", at.path().display()),
        _ if error.is_lack_of_rights() => {
            "no permission to enter it: run as root, or name a process in a user namespace that you have made"
                .to_owned()
        }
        _ => error.to_string(),
    };
    Failure::new(Exit::Device, format!("--netns {at}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_are_found_in_the_kernels_lists() {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let net = "eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let default = "eth1\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
        let zeros = "0".repeat(32);
        let none = format!("{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n");
        let default6 =
            format!("{zeros} 00 {zeros} 00 {zeros} 00000400 00000001 00000000 00000001     eth2\n");
        assert_eq!(default_of(&[head, net].concat(), &none), None);
        assert_eq!(default_of(&[head, net, default].concat(), &none).as_deref(), Some("eth1"));
        assert_eq!(default_of(head, &(none + &default6)).as_deref(), Some("eth2"));
        assert_eq!(default_of("", ""), None);
    }
}
