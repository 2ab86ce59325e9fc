//! Readings of what is written behind options: sizes, times, addresses.

use ackline::core::quantity::{Malformed, RATE, SECOND, SIZE, TIME, parse_amount, parse_rate};
use ackline::runtime::MacAddress;
use ackline::runtime::stack::Shards;
use ackline_proxy::Resolver;
use ipnet::IpNet;
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes: `1500`, `64K`, `1G`; at least 1.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    SIZE.parse(text).ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
        let units = SIZE.unit_names();
        format!("not a size; write bytes, or 64K, 10M, 1G (units: {units}; K is 1024 bytes)")
    })
}

/// The longest time that an option takes: a day.
const LONGEST: u64 = 86_400 * SECOND;

/// A time: `10` and `10s` are seconds, `500ms`; more than zero, at most a day.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    nanos(text, SECOND, 1..=LONGEST).ok_or_else(|| {
        let units = TIME.unit_names();
        format!("not a time; write seconds (10, 0.5), or 500ms, 2m (units: {units}); at most 24h")
    })
}

/// A [`time`] that needs its unit.
pub(crate) fn short_time(text: &str) -> Result<Duration, String> {
    match TIME.parse(text) {
        Ok(nanos @ 1..=LONGEST) => Ok(Duration::from_nanos(nanos)),
        Err(Malformed::NoUnit) => Err(format!("the unit is missing; write {text}us or {text}ms")),
        _ => Err(format!("not a time; write 200us or 1ms (units: {}); at most 24h", TIME.unit_names())),
    }
}

/// A time of so many nanoseconds; a number without a unit counts in units of `bare` nanoseconds.
pub(crate) fn nanos(text: &str, bare: u64, range: RangeInclusive<u64>) -> Option<Duration> {
    TIME.parse_bare(text, bare).ok().filter(|nanos| range.contains(nanos)).map(Duration::from_nanos)
}

/// A limit of time that may be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Off,
    After(Duration),
}

/// A [`time`], or `off`.
pub(crate) fn limit(text: &str) -> Result<Limit, String> {
    if text == "off" {
        return Ok(Limit::Off);
    }
    time(text).map(Limit::After).map_err(|why| format!("{why}; or off"))
}

/// A number of shards, or `auto`.
pub(crate) fn shards(text: &str) -> Result<Shards, String> {
    text.parse().map_err(|error: std::io::Error| error.to_string())
}

/// A rate as the shaper takes it; as written.
pub(crate) fn rate(text: &str) -> Result<String, String> {
    if parse_rate(text).is_some() {
        return Ok(text.to_owned());
    }
    Err(match RATE.parse(text) {
        Ok(0) => {
            "at no rate nothing would leave; write 100kbit or 20mbit, or leave the option out for no limit"
                .to_owned()
        }
        Ok(1..8) => "a rate is at least 8bit; write 100kbit, 20mbit or 1gbit".to_owned(),
        Err(Malformed::NoUnit) => {
            format!("the unit is missing; write {text}kbit, {text}mbit or {text}gbit")
        }
        _ if text.trim_start().starts_with('-') => {
            "a rate is more than zero; write 100kbit, 20mbit or 1gbit".to_owned()
        }
        _ => format!("not a rate; write 100kbit, 20mbit or 1gbit (units: {})", RATE.unit_names()),
    })
}

/// A burst as the shaper takes it; as written.
pub(crate) fn burst(text: &str) -> Result<String, String> {
    parse_amount(text).map(|_| text.to_owned()).ok_or_else(|| {
        format!(
            "not a burst; write bytes (32k) or a time at the rate (5ms) (units: {}; {})",
            SIZE.unit_names(),
            TIME.unit_names()
        )
    })
}

/// A factor: more than zero, at most a thousand.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor| *factor > 0.0 && *factor <= 1_000.0)
        .ok_or_else(|| "not a factor; write a number larger than 0, at most 1000, such as 0.5".to_owned())
}

/// The largest IP packet of the device.
pub(crate) fn mtu(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|mtu| (576..=65_535).contains(mtu))
        .ok_or_else(|| "not an MTU; write a number of bytes from 576 to 65535".to_owned())
}

/// A resolver that is asked over UDP, at the port of DNS unless another is named.
pub(crate) fn resolver(text: &str) -> Result<Resolver, String> {
    if text.contains("://") {
        return Err(
            "not an address; write one like 192.0.2.53, 127.0.0.1:5353 or [2001:db8::53]:53".to_owned()
        );
    }
    text.parse()
}

/// A network that is routed somewhere.
pub(crate) fn route(text: &str) -> Result<IpNet, String> {
    let net = if text == "default" { "0.0.0.0/0" } else { text };
    let net = net.parse::<IpNet>().map(|net| net.trunc());
    net.map_err(|_| "not a network; write one like 10.0.0.0/8, fd00::/8 or default".to_owned())
}

/// The name of a network interface.
pub(crate) fn interface(text: &str) -> Result<String, String> {
    let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if text.is_empty() || text.len() > 15 || text == "." || text == ".." || text.contains(wrong) {
        return Err("not an interface name; at most 15 bytes, without '/', ':' and spaces".to_owned());
    }
    Ok(text.to_owned())
}

/// A port, or a range of ports.
pub(crate) fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let ports = low.parse().and_then(|low: u16| high.parse().map(|high: u16| low..=high));
    ports
        .ok()
        .filter(|ports| !ports.is_empty() && *ports.start() > 0)
        .ok_or_else(|| "not a range of ports; write 5001 or 61000-61007, from 1 to 65535".to_owned())
}

/// An Ethernet address that one station can have.
pub(crate) fn mac(text: &str) -> Result<MacAddress, String> {
    let mac: MacAddress =
        text.parse().map_err(|_| "not an Ethernet address; write 02:00:00:00:00:01".to_owned())?;
    if !mac.is_station() {
        return Err("the address of a group or of nobody; the first byte of a station's is even".to_owned());
    }
    Ok(mac)
}

/// A station and the IPv4 address that it gets.
pub(crate) fn lease(text: &str) -> Result<(MacAddress, Ipv4Addr), String> {
    let (station, address) = text.split_once('=').ok_or("no =; write 52:54:00:12:34:56=10.0.2.15")?;
    let address =
        address.parse().map_err(|_| format!("{address:?} is not an IPv4 address; write 10.0.2.15"))?;
    Ok((mac(station)?, address))
}

/// A name and its address.
pub(crate) fn host(text: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = text.split_once('=').ok_or("no =; write db.test=10.0.0.5")?;
    let address = address.parse().map_err(|_| format!("{address:?} is not an address; write 10.0.0.5"))?;
    Ok((name.to_owned(), address))
}

/// An address with the length of its network's prefix.
pub(crate) fn cidr(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text.parse().map_err(|_| match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => format!("the prefix length is missing; write {text}/24"),
        Ok(IpAddr::V6(_)) => format!("the prefix length is missing; write {text}/64"),
        Err(_) => "not an address with a prefix length; write 198.18.0.2/24 or fd00::2/64".to_owned(),
    })?;
    host_address(net.addr())?;
    if is_whole_network(&net) {
        return Err(format!("{} is the address of the network itself; choose one of its hosts", net.addr()));
    }
    Ok(net)
}

/// An address that one host can have.
pub(crate) fn address(text: &str) -> Result<IpAddr, String> {
    let address = text.parse().map_err(|_| "not an IP address; write 198.18.0.1 or fd00::1".to_owned())?;
    host_address(address)?;
    Ok(address)
}

fn host_address(address: IpAddr) -> Result<(), String> {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast {
        return Err(format!("{address} cannot be the address of a host"));
    }
    Ok(())
}

/// An IPv4 network's first or last address if it has hosts between them.
fn is_whole_network(net: &IpNet) -> bool {
    match net {
        IpNet::V4(v4) if v4.prefix_len() < 31 => v4.addr() == v4.network() || v4.addr() == v4.broadcast(),
        _ => false,
    }
}

/// Where `send` connects to: a host by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: address.ip().to_string(), port: port(&address.port().to_string())? });
        }
        let (host, digits) = split_port(text, "HOST:PORT, such as 198.18.0.1:5001 or [fd00::1]:5001")?;
        if host.is_empty() {
            return Err(format!("the host is missing; write HOST:{digits}"));
        }
        Ok(Self { host: host.to_owned(), port: port(digits)? })
    }
}

impl Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<Ipv6Addr>() {
            Ok(v6) => write!(f, "[{v6}]:{}", self.port),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Where `recv` listens: an address, or all of the stack's, and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenAt {
    /// `None`: every address of the stack.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
}

impl FromStr for ListenAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "ADDR:PORT, such as 198.18.0.2:5001, [fd00::2]:5001 or :5001 for every address";
        if let Ok(address) = text.parse::<SocketAddr>() {
            let ip = address.ip();
            if !ip.is_unspecified() {
                host_address(ip)?;
            }
            let address_or_all = (!ip.is_unspecified()).then_some(ip);
            return Ok(Self { address: address_or_all, port: port(&address.port().to_string())? });
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(Self { address: None, port: port(text)? });
        }
        let (host, digits) = split_port(text, FORM)?;
        match host {
            "" | "*" => Ok(Self { address: None, port: port(digits)? }),
            _ => {
                // A good port in bad company, or the other way round: say which.
                port(digits)?;
                Err(format!("{host:?} is not an IP address; write {FORM}"))
            }
        }
    }
}

impl Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).fmt(f),
            None => write!(f, "*:{}", self.port),
        }
    }
}

/// Cuts `host:port` or `[host]:port` at its last colon.
fn split_port<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), String> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("the port is missing; write [{text}]:PORT"));
    }
    let Some((host, digits)) = text.rsplit_once(':') else {
        return Err(format!("the port is missing; write {form}"));
    };
    match host.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(v6) if v6.parse::<Ipv6Addr>().is_ok() => Ok((v6, digits)),
            _ => Err(format!("not an IPv6 address in brackets; write {form}")),
        },
        None if host.contains(':') => Err(format!("write {form}")),
        None => Ok((host, digits)),
    }
}

fn port(digits: &str) -> Result<u16, String> {
    digits
        .parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| format!("{digits:?} is not a port; write a number from 1 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> Result<(String, u16), String> {
        text.parse::<Destination>().map(|to| (to.host, to.port))
    }

    fn listen(text: &str) -> Result<(Option<IpAddr>, u16), String> {
        text.parse::<ListenAt>().map(|at| (at.address, at.port))
    }

    #[test]
    fn sizes_have_binary_multiples() {
        assert_eq!(size("1500"), Ok(1500));
        assert_eq!(size("64k"), Ok(65_536));
        assert_eq!(size("1G"), Ok(1 << 30));
        for bad in ["", "0", "-1", "1x", "G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_that_cannot_be_are_told_apart() {
        assert_eq!(rate("100kbit"), Ok("100kbit".to_owned()));
        let complaint = |text: &str| rate(text).expect_err("refused");
        for nothing in ["0", "0kbit", "0.0mbit"] {
            assert!(complaint(nothing).starts_with("at no rate nothing would leave"), "{nothing}");
        }
        assert!(complaint("-5kbit").starts_with("a rate is more than zero"));
        assert_eq!(complaint("100"), "the unit is missing; write 100kbit, 100mbit or 100gbit");
        assert!(complaint("fast").starts_with("not a rate"));
        assert!(complaint("5knots").starts_with("not a rate"));
    }

    #[test]
    fn bare_times_are_seconds() {
        assert_eq!(time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("24h"), Ok(Duration::from_secs(86_400)));
        for bad in ["", "0", "-1", "inf", "NaN", "1h?", "86401", "1e30", "25h", "1M"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert_eq!(short_time("200us"), Ok(Duration::from_micros(200)));
        assert_eq!(short_time("200"), Err("the unit is missing; write 200us or 200ms".to_owned()));
    }

    #[test]
    fn destinations() {
        assert_eq!(destination("example.org:80"), Ok(("example.org".to_owned(), 80)));
        assert_eq!(destination("10.0.0.1:5001"), Ok(("10.0.0.1".to_owned(), 5001)));
        assert_eq!(destination("[::1]:80"), Ok(("::1".to_owned(), 80)));
        assert_eq!(
            "[fd00::1]:80".parse::<Destination>().map(|to| to.to_string()),
            Ok("[fd00::1]:80".to_owned())
        );
        for bad in [
            "",
            "host",
            "host:",
            ":80",
            "host:0",
            "host:65536",
            "host:http",
            "::1",
            "fd00::1:x",
            "[::1]",
            "[::1",
        ] {
            assert!(destination(bad).is_err(), "{bad}");
        }
        assert_eq!(
            destination("host:99999").unwrap_err(),
            "\"99999\" is not a port; write a number from 1 to 65535"
        );
        assert_eq!(destination("fd00::1").unwrap_err(), "the port is missing; write [fd00::1]:PORT");
    }

    #[test]
    fn places_to_listen_on() {
        assert_eq!(listen("5001"), Ok((None, 5001)));
        assert_eq!(listen(":5001"), Ok((None, 5001)));
        assert_eq!(listen("*:5001"), Ok((None, 5001)));
        assert_eq!(listen("0.0.0.0:5001"), Ok((None, 5001)));
        assert_eq!(listen("[::]:5001"), Ok((None, 5001)));
        assert_eq!(listen("198.18.0.2:1"), Ok((Some([198, 18, 0, 2].into()), 1)));
        assert_eq!(listen("[fd00::2]:1"), Ok((Some("fd00::2".parse().expect("an address")), 1)));
        for bad in
            ["", ":", "0", ":0", "1.2.3:5", "name:80", "127.0.0.1:80", "224.0.0.1:80", "fd00::2", "70000"]
        {
            assert!(listen(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_need_a_prefix_length_and_a_host() {
        assert!(cidr("198.18.0.2/24").is_ok());
        assert!(cidr("198.18.0.2/31").is_ok());
        assert!(cidr("fd00::2/64").is_ok());
        assert_eq!(cidr("10.0.0.2").unwrap_err(), "the prefix length is missing; write 10.0.0.2/24");
        for bad in [
            "10.0.0.300/24",
            "10.0.0.2/33",
            "10.0.0.0/24",
            "10.0.0.255/24",
            "0.0.0.0/0",
            "127.0.0.1/8",
            "x/24",
        ] {
            assert!(cidr(bad).is_err(), "{bad}");
        }
    }
}
