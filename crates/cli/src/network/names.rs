//! How names are resolved inside: resolv.conf(5) of the program, and the resolvers that stand
//! behind it.

use crate::network::program::{Addresses, RESOLV_CONF};
use crate::output;
use ackline_proxy::{Resolver, Resolvers};
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

/// The C library heeds no more resolvers.
const MOST: usize = 3;

/// Longest time-out and most attempts that the C library heeds.
const LONGEST: u64 = 30;
const MOST_ATTEMPTS: u32 = 5;

/// Resolvers of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Stand behind port 53 of the base address.
    pub(crate) resolvers: Resolvers,
    /// Lines of the machine's file that say how to look names up.
    ways: Vec<String>,
    /// What of the file cannot be followed.
    warnings: Vec<String>,
}

impl Names {
    /// Those of this machine; `resolvers` take the place of its own.
    pub(crate) fn of_machine(resolvers: &[Resolver]) -> Self {
        // resolv.conf(5): without a file, the resolver is on this machine.
        let mut names = Self::read(&fs::read_to_string(RESOLV_CONF).unwrap_or_default());
        if !resolvers.is_empty() {
            names.resolvers.servers = resolvers.to_vec();
            names.warnings.clear();
        }
        names
    }

    /// Says what of the machine's file `command` cannot follow.
    pub(crate) fn warn(&self, command: &str) {
        for warning in &self.warnings {
            output::say(&format!("ackline {command}: warning: {warning}"));
        }
    }

    /// As the machine's file says.
    fn read(text: &str) -> Self {
        let mut names = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("nameserver"), Some(address)) => match Resolver::parse_nameserver(address) {
                    Ok(resolver) => names.resolvers.servers.extend(resolver),
                    Err(what) => {
                        names
                            .warnings
                            .push(format!("{RESOLV_CONF}: nameserver {address} is not asked: {what}"));
                    }
                },
                (Some("options"), Some(first)) => {
                    for option in [first].into_iter().chain(words) {
                        names.option(option);
                    }
                    names.ways.push(line.trim().to_owned());
                }
                (Some("search" | "domain"), Some(_)) => names.ways.push(line.trim().to_owned()),
                _ => {}
            }
        }
        let servers = &mut names.resolvers.servers;
        servers.truncate(MOST);
        if servers.is_empty() && names.warnings.is_empty() {
            servers.extend(Resolver::parse_nameserver(&Ipv4Addr::LOCALHOST.to_string()).ok().flatten());
        }
        names
    }

    fn option(&mut self, option: &str) {
        let Resolvers { timeout, attempts, .. } = &mut self.resolvers;
        match option.split_once(':') {
            Some(("timeout", text)) => {
                let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds > 0);
                *timeout = seconds.map_or(*timeout, |seconds| Duration::from_secs(seconds.min(LONGEST)));
            }
            Some(("attempts", text)) => {
                let number = text.parse::<u32>().ok().filter(|number| *number > 0);
                *attempts = number.map_or(*attempts, |number| number.min(MOST_ATTEMPTS));
            }
            _ => {}
        }
    }

    /// The program's file.
    pub(crate) fn resolv_conf(&self, addresses: Addresses) -> String {
        let behind: Vec<_> =
            self.resolvers.servers.iter().map(|resolver| resolver.address.to_string()).collect();
        let behind = if behind.is_empty() { "nobody".to_owned() } else { behind.join(", ") };
        let base = addresses.base;
        let mut text =
            format!("# Of ackline: behind port 53 of this address is {behind}.\nnameserver {base}\n");
        for way in &self.ways {
            let _ = writeln!(text, "{way}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: Addresses =
        Addresses { program: Ipv4Addr::new(100, 64, 0, 2), base: Ipv4Addr::new(100, 64, 0, 1) };

    /// The resolvers behind the base address, and the program's file without its comment.
    fn of(text: &str) -> (Vec<String>, Vec<String>) {
        let names = Names::read(text);
        let inside = names.resolv_conf(INSIDE);
        let lines = inside.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        let servers = names.resolvers.servers.iter().map(|resolver| resolver.address.to_string());
        (servers.collect(), lines)
    }

    #[test]
    fn all_resolvers_stand_behind_the_base_address_in_their_order() {
        let stub = "# systemd\nnameserver 127.0.0.53\noptions edns0 trust-ad\nsearch example.org\n";
        let expected = ["nameserver 100.64.0.1", "options edns0 trust-ad", "search example.org"];
        assert_eq!(of(stub), (vec!["127.0.0.53:53".into()], expected.map(String::from).into()));
        let base = vec!["nameserver 100.64.0.1".to_owned()];
        assert_eq!(of(""), (vec!["127.0.0.1:53".into()], base.clone()));
        // resolv.conf(5): at most three.
        let text = "nameserver 192.0.2.1\nnameserver ::1\n; nameserver 192.0.2.9\nnameserver fe80::1%1\n\
                    nameserver 192.0.2.3\n";
        let expected = ["192.0.2.1:53", "[::1]:53", "[fe80::1%1]:53"].map(String::from);
        assert_eq!(of(text), (expected.into(), base));
    }

    #[test]
    fn times_and_attempts_are_the_files_within_the_c_librarys_bounds() {
        let of = |options: &str| {
            let Resolvers { timeout, attempts, .. } = Names::read(options).resolvers;
            (timeout.as_secs(), attempts)
        };
        assert_eq!(of(""), (5, 2));
        assert_eq!(of("options rotate timeout:1 attempts:3\n"), (1, 3));
        assert_eq!(of("options timeout:99\noptions attempts:99\n"), (30, 5));
        assert_eq!(of("options timeout:0 attempts:x\n"), (5, 2));
    }

    #[test]
    fn an_address_of_a_link_that_is_not_there_is_told() {
        let names = Names::read("nameserver fe80::1%no-such-link\nnameserver fe80::2\n");
        assert!(names.resolvers.servers.is_empty(), "nobody else is asked instead");
        let [zone, link] = &names.warnings[..] else { panic!("{:?}", names.warnings) };
        assert!(
            zone.ends_with("fe80::1%no-such-link is not asked: there is no interface \"no-such-link\""),
            "{zone}"
        );
        assert!(link.ends_with("fe80::2 is of a link; write which, as fe80::2%eth0"), "{link}");
    }
}
