//! Peers: finding their addresses, and saying in one line what went wrong with them.

use crate::args::values::Destination;
use crate::failure::{Exit, Failure, plain};
use crate::output::numbers::bytes;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

/// The addresses of `to` that a stack can connect to, in the resolver's order. `stack` are its own
/// addresses, `kernel` those at which it reaches this machine's kernel.
pub(crate) fn resolve(
    to: &Destination,
    stack: &[IpAddr],
    kernel: &[IpAddr],
) -> Result<Vec<SocketAddr>, Failure> {
    let found = (to.host.as_str(), to.port).to_socket_addrs().map_err(|error| {
        // The resolver's own words stand behind a prefix of std's.
        let text = plain(&error);
        let why = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        let why = why.to_lowercase();
        Failure::new(Exit::Network, format!("cannot resolve {:?}: {why}", to.host))
    })?;
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    if !all.is_empty() && all.iter().all(|to| to.ip().is_loopback()) {
        let kernel: Vec<String> = kernel.iter().map(ToString::to_string).collect();
        let way = match &kernel[..] {
            [] => "nothing gets there from an Ethernet; a TUN device (without --dev or --raw) reaches this machine"
                .to_owned(),
            ends => format!("the stack reaches this machine's kernel at {}", ends.join(" and ")),
        };
        return Err(Failure::usage(format!("{to} is inside the kernel's own loopback; {way}")));
    }
    let speaks = |to: &SocketAddr| stack.iter().any(|own| own.is_ipv4() == to.is_ipv4());
    let usable: Vec<SocketAddr> = all.iter().copied().filter(speaks).collect();
    match (usable.is_empty(), all.first()) {
        (false, _) => Ok(usable),
        (true, Some(first)) => {
            let (version, example) =
                if first.is_ipv6() { ("IPv6", "fd00::2/64") } else { ("IPv4", "198.18.0.2/24") };
            Err(Failure::usage(format!(
                "{to} has an {version} address only, and the stack has none: give it one with --local {example}"
            )))
        }
        (true, None) => Err(Failure::new(Exit::Network, format!("{:?} has no address", to.host))),
    }
}

/// Why a connection to `to` did not come about.
pub(crate) fn unreachable(to: impl Display, port: u16, error: &io::Error) -> Failure {
    let why = match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!("connection refused (is a receiver running? for instance: nc -l {port})")
        }
        ErrorKind::TimedOut => "no answer".to_owned(),
        ErrorKind::HostUnreachable => "host or network unreachable".to_owned(),
        ErrorKind::NetworkDown => return Failure::new(Exit::Device, plain(error)),
        _ => plain(error),
    };
    Failure::new(Exit::Network, format!("cannot reach {to}: {why}"))
}

/// Why a connection with `peer` ended early, after `moved` bytes of `total`.
pub(crate) fn cut_short(peer: impl Display, moved: u64, total: Option<u64>, error: &io::Error) -> Failure {
    ended_by(peer, error, &format!(" {}", after(moved, total)))
}

/// Why a connection with `peer` ended early.
pub(crate) fn lost(peer: impl Display, error: &io::Error) -> Failure {
    ended_by(peer, error, "")
}

fn ended_by(peer: impl Display, error: &io::Error, after: &str) -> Failure {
    let what = match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused => {
            format!("{peer} reset the connection")
        }
        ErrorKind::TimedOut => format!("{peer} stopped answering"),
        ErrorKind::HostUnreachable => format!("{peer} became unreachable"),
        ErrorKind::NetworkDown => {
            return Failure::new(Exit::Device, format!("{}{after}", plain(error)));
        }
        _ => format!("the connection with {peer} failed: {}", plain(error)),
    };
    Failure::new(Exit::Network, format!("{what}{after}"))
}

/// The peer was silent for as long as `--timeout` permits.
pub(crate) fn stalled(peer: impl Display, moved: u64, total: Option<u64>, limit: Duration) -> Failure {
    let limit = limit.as_secs_f64();
    Failure::new(Exit::Network, format!("no progress with {peer} for {limit} s, {}", after(moved, total)))
}

/// `after 3.00 MiB of 1.00 GiB`.
pub(crate) fn after(moved: u64, total: Option<u64>) -> String {
    match total {
        Some(total) => format!("after {} of {}", bytes(moved), bytes(total)),
        None => format!("after {}", bytes(moved)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> Destination {
        text.parse().expect("a destination")
    }

    #[test]
    fn addresses_of_both_versions_need_a_local_one_of_theirs() {
        let v4: IpAddr = [198, 18, 0, 1].into();
        let v6: IpAddr = "fd00::1".parse().expect("an address");
        assert_eq!(resolve(&destination("198.18.0.1:5"), &[v4], &[]).expect("usable").len(), 1);
        assert_eq!(resolve(&destination("[fd00::1]:5"), &[v4, v6], &[]).expect("usable").len(), 1);
        let failure = resolve(&destination("[fd00::1]:5"), &[v4], &[]).expect_err("no IPv6 address");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.to_string().contains("[fd00::1]:5 has an IPv6 address only"), "{failure}");
    }

    #[test]
    fn the_loopback_is_answered_with_the_address_to_use() {
        let (stack, kernel): (IpAddr, IpAddr) = ([198, 18, 0, 2].into(), [198, 18, 0, 1].into());
        for to in ["127.0.0.1:5001", "localhost:5001", "[::1]:5001"] {
            let failure = resolve(&destination(to), &[stack], &[kernel]).expect_err("not reachable");
            assert_eq!(failure.exit, Exit::Usage);
            assert!(
                failure.to_string().ends_with("reaches this machine's kernel at 198.18.0.1"),
                "{failure}"
            );
        }
    }

    #[test]
    fn refusal_is_told_with_advice() {
        let failure = unreachable("198.18.0.1:5001", 5001, &ErrorKind::ConnectionRefused.into());
        assert_eq!(failure.exit, Exit::Network);
        assert_eq!(
            failure.to_string(),
            "cannot reach 198.18.0.1:5001: connection refused (is a receiver running? for instance: nc -l 5001)"
        );
    }

    #[test]
    fn a_reset_says_how_far_it_came() {
        let failure = cut_short("10.0.0.1:5", 3 << 20, Some(1 << 30), &ErrorKind::ConnectionReset.into());
        assert_eq!(failure.to_string(), "10.0.0.1:5 reset the connection after 3.00 MiB of 1.00 GiB");
        let removed = io::Error::new(ErrorKind::NetworkDown, "the interface ack0 was removed");
        let failure = cut_short("10.0.0.1:5", 3, None, &removed);
        assert_eq!(failure.exit, Exit::Device);
        assert_eq!(failure.to_string(), "the interface ack0 was removed after 3 B");
    }
}
