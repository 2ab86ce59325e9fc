//! Which resolvers there are, and in which order they are asked: resolv.conf(5).

use crate::target::Protocol;
use ackline_runtime::timer;
use ackline_tcp_core::Instant;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The port of DNS.
pub(crate) const DNS: u16 = 53;

/// A resolver that did not answer is asked after the others for so long.
const DOWN: ackline_tcp_core::Duration = ackline_tcp_core::Duration::from_secs(30);

/// A resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolver {
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked. The clients ask over either.
    pub protocol: Protocol,
}

impl FromStr for Resolver {
    type Err = String;

    /// `ADDRESS[%ZONE][:PORT]`, with `tcp://` before it if the upstream carries no datagrams.
    fn from_str(text: &str) -> Result<Self, String> {
        let (protocol, place) = match text.split_once("://") {
            Some(("tcp", place)) => (Protocol::Tcp, place),
            Some(("udp", place)) => (Protocol::Udp, place),
            Some(_) => {
                return Err("no way to ask a resolver; write udp:// or tcp:// before its address".to_owned());
            }
            None => (Protocol::Udp, text),
        };
        let address = socket_address(place)?.ok_or_else(|| {
            "not an address; write one like 192.0.2.53, 192.0.2.53:5353, fe80::1%eth0 or tcp://[2001:db8::53]"
                .to_owned()
        })?;
        Ok(Self { address, protocol })
    }
}

impl Resolver {
    /// Over UDP, at the usual port of an address as resolv.conf(5) has it, with a zone if it is one
    /// of a link. `None` if it is no address.
    ///
    /// # Errors
    /// What is wrong with the zone, and what would be right.
    pub fn parse_nameserver(text: &str) -> Result<Option<Self>, String> {
        let ip = ip_address(text)?;
        Ok(ip.map(|(ip, zone)| Self { address: with_zone(ip, zone, DNS), protocol: Protocol::Udp }))
    }
}

fn socket_address(text: &str) -> Result<Option<SocketAddr>, String> {
    let (place, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((place, "")) => (place, DNS),
        Some((place, port)) => match port.strip_prefix(':').and_then(|port| port.parse().ok()) {
            Some(port) => (place, port),
            None => return Ok(None),
        },
        // A single colon is before a port.
        None => match text.split_once(':').filter(|(_, port)| !port.contains(':')) {
            Some((place, port)) => match port.parse() {
                Ok(port) => (place, port),
                Err(_) => return Ok(None),
            },
            None => (text, DNS),
        },
    };
    let found = ip_address(place)?;
    if found.is_some() && port == 0 {
        return Err("nobody answers on port 0; leave the port out for 53".to_owned());
    }
    Ok(found.map(|(ip, zone)| with_zone(ip, zone, port)))
}

/// An address, and the number of its zone.
fn ip_address(text: &str) -> Result<Option<(IpAddr, u32)>, String> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let Ok(ip) = address.parse::<IpAddr>() else { return Ok(None) };
    match (ip, zone) {
        (IpAddr::V6(v6), Some(zone)) if v6.is_unicast_link_local() => Ok(Some((ip, zone_number(zone)?))),
        (_, Some(_)) => Err(format!("{address} has no zone; only addresses of a link have, as fe80::1%eth0")),
        (IpAddr::V6(v6), None) if v6.is_unicast_link_local() => {
            Err(format!("{address} is of a link; write which, as {address}%eth0"))
        }
        (_, None) => Ok(Some((ip, 0))),
    }
}

/// The number of the interface that a zone names (RFC 4007, section 11.2).
fn zone_number(zone: &str) -> Result<u32, String> {
    if let Ok(number) = zone.parse() {
        return Ok(number);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::net::{AddressFamily, SocketType, netdevice, socket};
        let number = socket(AddressFamily::INET6, SocketType::DGRAM, None)
            .and_then(|any| netdevice::name_to_index(any, zone));
        if let Ok(number) = number {
            return Ok(number);
        }
    }
    Err(format!("there is no interface {zone:?}"))
}

fn with_zone(ip: IpAddr, zone: u32, port: u16) -> SocketAddr {
    match ip {
        IpAddr::V6(v6) => with_zone_v6(v6, zone, port).into(),
        IpAddr::V4(v4) => SocketAddr::from((v4, port)),
    }
}

const fn with_zone_v6(ip: Ipv6Addr, zone: u32, port: u16) -> SocketAddrV6 {
    SocketAddrV6::new(ip, port, 0, zone)
}

/// Resolvers, which are asked as resolv.conf(5) has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolvers {
    /// In the order in which they are asked. Default: none.
    pub servers: Vec<Resolver>,
    /// Time that one has to answer before the next one is asked (`timeout`). Default: 5 s.
    pub timeout: Duration,
    /// How often all of them are asked (`attempts`). Default: 2.
    pub attempts: u32,
}

impl Default for Resolvers {
    fn default() -> Self {
        Self { servers: vec![], timeout: Duration::from_secs(5), attempts: 2 }
    }
}

impl From<Resolver> for Resolvers {
    fn from(server: Resolver) -> Self {
        Self { servers: vec![server], ..Self::default() }
    }
}

/// Which resolvers did not answer lately.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Few: one for each that was silent.
    silent: Mutex<Vec<(SocketAddr, Instant)>>,
}

impl Health {
    /// It did not answer.
    pub(crate) fn is_silent(&self, server: SocketAddr) {
        let now = timer::now();
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.retain(|(other, until)| *other != server && now < *until);
        silent.push((server, now + DOWN));
    }

    /// It has answered.
    pub(crate) fn answers(&self, server: SocketAddr) {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != server);
    }

    /// Whether it was silent lately.
    pub(crate) fn was_silent(&self, server: SocketAddr) -> bool {
        let now = timer::now();
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        silent.iter().any(|(other, until)| *other == server && now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_are_addresses_with_port_zone_and_protocol() {
        for (text, address, protocol) in [
            ("192.0.2.53", "192.0.2.53:53", Protocol::Udp),
            ("192.0.2.53:5353", "192.0.2.53:5353", Protocol::Udp),
            ("udp://[2001:db8::53]:54", "[2001:db8::53]:54", Protocol::Udp),
            ("tcp://2001:db8::53", "[2001:db8::53]:53", Protocol::Tcp),
            ("tcp://[2001:db8::53]", "[2001:db8::53]:53", Protocol::Tcp),
            ("fe80::1%3", "[fe80::1%3]:53", Protocol::Udp),
            ("[fe80::1%3]:5353", "[fe80::1%3]:5353", Protocol::Udp),
        ] {
            let expected = Resolver { address: address.parse().expect("an address"), protocol };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        if cfg!(target_os = "linux") {
            let lo: Resolver = "fe80::1%lo".parse().expect("every machine has it");
            assert_eq!(lo.address, "[fe80::1%1]:53".parse().expect("an address"));
        }
        for (text, error) in [
            ("one.test", "not an address"),
            ("192.0.2.53:0", "nobody answers on port 0"),
            ("192.0.2.53:x", "not an address"),
            ("[2001:db8::53", "not an address"),
            ("tls://192.0.2.53", "no way to ask"),
            ("fe80::1", "write which, as fe80::1%eth0"),
            ("fe80::1%no-such-link", "there is no interface \"no-such-link\""),
            ("2001:db8::53%1", "has no zone"),
            ("192.0.2.53%1", "has no zone"),
        ] {
            let told = text.parse::<Resolver>().expect_err(text);
            assert!(told.contains(error), "{text}: {told}");
        }
    }

    #[test]
    fn one_that_was_silent_is_asked_later_until_it_answers() {
        let health = Health::default();
        let [one, two] = [1, 2].map(|last| SocketAddr::from(([192, 0, 2, last], DNS)));
        health.is_silent(one);
        health.is_silent(one);
        assert_eq!((health.was_silent(one), health.was_silent(two)), (true, false));
        health.answers(one);
        assert!(!health.was_silent(one));
    }
}
