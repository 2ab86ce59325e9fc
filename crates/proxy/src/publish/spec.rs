//! Notation of a published port.

use crate::target::Protocol;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Ports of this machine that lead to a guest: `[ADDR:]PORT[:GUEST][:PORT][/udp][,proxy=1|2]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Publish {
    /// Connections or datagrams.
    pub protocol: Protocol,
    /// Address of this machine to listen at. `None`: all addresses of the guest's IP version.
    pub address: Option<IpAddr>,
    /// Ports of this machine. Port 0 alone takes a free one.
    pub ports: RangeInclusive<u16>,
    /// The guest. `None`: the only one that there is.
    pub guest: Option<IpAddr>,
    /// The guest's first port; the others follow it.
    pub guest_port: u16,
    /// A header before the data of each connection that tells the client's address.
    pub header: Option<ProxyHeader>,
}

/// Versions of the PROXY protocol, in which a connection begins with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyHeader {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Why a text names no ports to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishSyntax {
    /// It has another form.
    #[error("write [ADDR:]PORT[:GUEST][:PORT][/udp], such as 8080:10.0.2.15:80 or [::]:8080:[fd00::15]:80")]
    Form,
    /// There is no such port.
    #[error("ports are 0 to 65535, or a range such as 8000-8100")]
    Port,
    /// The two ranges differ in length.
    #[error("both ranges must have the same number of ports: 8000-8009:10.0.2.15:9000-9009")]
    Ranges,
    /// The guest's ports would go beyond 65535.
    #[error("the guest's ports would go beyond 65535")]
    Beyond,
    /// A listening address and a guest of different IP versions.
    #[error("the address and the guest must be of the same IP version")]
    Versions,
    /// An unknown option after the comma.
    #[error("the only option is proxy=1 or proxy=2, the version of the PROXY protocol, for TCP")]
    Option,
}

impl Publish {
    /// The guest, if it is not named, is the one of `only`. `None` if there is none of the right IP
    /// version.
    #[must_use]
    pub fn to(&self, only: &[IpAddr]) -> Option<Self> {
        let is_v4 = self.address.is_none_or(|address| address.is_ipv4());
        let guest = self.guest.or_else(|| only.iter().copied().find(|guest| guest.is_ipv4() == is_v4))?;
        Some(Self { guest: Some(guest), ..self.clone() })
    }

    /// Each port with the guest's, if the guest is named.
    pub(super) fn pairs(&self) -> Option<impl Iterator<Item = (SocketAddr, SocketAddr)> + '_> {
        let guest = self.guest?;
        let any: IpAddr =
            if guest.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let address = self.address.unwrap_or(any);
        let ports = self.ports.clone().zip(self.guest_port..);
        Some(
            ports.map(move |(port, of_guest)| {
                (SocketAddr::new(address, port), SocketAddr::new(guest, of_guest))
            }),
        )
    }
}

impl FromStr for Publish {
    type Err = PublishSyntax;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (text, option) = text.split_once(',').map_or((text, None), |(text, option)| (text, Some(option)));
        let (text, protocol) = match text.rsplit_once('/') {
            None => (text, Protocol::Tcp),
            Some((text, "tcp")) => (text, Protocol::Tcp),
            Some((text, "udp")) => (text, Protocol::Udp),
            Some(_) => return Err(PublishSyntax::Form),
        };
        let header = match (option, protocol) {
            (None, _) => None,
            (Some("proxy=1"), Protocol::Tcp) => Some(ProxyHeader::V1),
            (Some("proxy=2"), Protocol::Tcp) => Some(ProxyHeader::V2),
            (Some(_), _) => return Err(PublishSyntax::Option),
        };
        let words = words(text).ok_or(PublishSyntax::Form)?;
        let words: Vec<Word> = words.into_iter().map(Word::read).collect::<Result<_, _>>()?;
        use Word::{Address, Ports};
        let (address, ports, guest, of_guest) = match words[..] {
            [Ports(ports)] => (None, ports, None, None),
            [Ports(ports), Ports(of_guest)] => (None, ports, None, Some(of_guest)),
            [Ports(ports), Address(guest)] => (None, ports, Some(guest), None),
            [Ports(ports), Address(guest), Ports(of_guest)] => (None, ports, Some(guest), Some(of_guest)),
            [Address(at), Ports(ports)] => (Some(at), ports, None, None),
            [Address(at), Ports(ports), Ports(of_guest)] => (Some(at), ports, None, Some(of_guest)),
            [Address(at), Ports(ports), Address(guest)] => (Some(at), ports, Some(guest), None),
            [Address(at), Ports(ports), Address(guest), Ports(of_guest)] => {
                (Some(at), ports, Some(guest), Some(of_guest))
            }
            _ => return Err(PublishSyntax::Form),
        };
        let (first, last) = ports;
        let (guest_port, guest_last) = of_guest.unwrap_or(ports);
        let many = last - first;
        // One port of the guest is the first of as many.
        if guest_last != guest_port && guest_last - guest_port != many {
            return Err(PublishSyntax::Ranges);
        }
        if guest_port == 0 || (first == 0 && last != 0) {
            return Err(PublishSyntax::Port);
        }
        if guest_port.checked_add(many).is_none() {
            return Err(PublishSyntax::Beyond);
        }
        if let (Some(address), Some(guest)) = (address, guest)
            && address.is_ipv4() != guest.is_ipv4()
        {
            return Err(PublishSyntax::Versions);
        }
        Ok(Self { protocol, address, ports: first..=last, guest, guest_port, header })
    }
}

impl fmt::Display for Publish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, address, ports, guest, guest_port, header } = self;
        for (address, before) in [(address, true), (guest, false)] {
            match address {
                Some(IpAddr::V6(v6)) => write!(f, "[{v6}]:")?,
                Some(IpAddr::V4(v4)) => write!(f, "{v4}:")?,
                None => {}
            }
            if before {
                range(f, *ports.start(), *ports.end())?;
                f.write_str(":")?;
            }
        }
        range(f, *guest_port, guest_port.saturating_add(ports.end() - ports.start()))?;
        f.write_str(match (protocol, header) {
            (Protocol::Udp, _) => "/udp",
            (Protocol::Tcp, None) => "",
            (Protocol::Tcp, Some(ProxyHeader::V1)) => ",proxy=1",
            (Protocol::Tcp, Some(ProxyHeader::V2)) => ",proxy=2",
        })
    }
}

fn range(f: &mut fmt::Formatter<'_>, first: u16, last: u16) -> fmt::Result {
    if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
}

/// A part between two colons.
#[derive(Clone, Copy)]
enum Word {
    Address(IpAddr),
    /// First and last.
    Ports((u16, u16)),
}

impl Word {
    fn read(text: &str) -> Result<Self, PublishSyntax> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(PublishSyntax::Form);
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self::Ports((first, last))),
            _ => Err(PublishSyntax::Port),
        }
    }
}

/// Divides at the colons outside of brackets, which go.
fn words(mut text: &str) -> Option<Vec<&str>> {
    let mut words = vec![];
    loop {
        let (word, rest) = match text.strip_prefix('[') {
            Some(inside) => {
                let (address, rest) = inside.split_once(']')?;
                (address, rest.strip_prefix(':').map(Some).or(rest.is_empty().then_some(None))?)
            }
            None => text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest))),
        };
        words.push(word);
        match rest {
            Some(rest) => text = rest,
            None => return Some(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Publish {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn each_form_says_where_it_leads_and_is_written_as_it_is_read() {
        let [v4, any, v6] = ["10.0.2.15", "0.0.0.0", "fd00::15"].map(|text| text.parse::<IpAddr>().ok());
        for (text, protocol, address, ports, guest, guest_port, written) in [
            ("80", Protocol::Tcp, None, 80..=80, None, 80, "80:80"),
            ("8080:80", Protocol::Tcp, None, 8_080..=8_080, None, 80, "8080:80"),
            ("53:10.0.2.15/udp", Protocol::Udp, None, 53..=53, v4, 53, "53:10.0.2.15:53/udp"),
            ("0.0.0.0:22:2222/tcp", Protocol::Tcp, any, 22..=22, None, 2_222, "0.0.0.0:22:2222"),
            (
                "0.0.0.0:8000-8009:10.0.2.15:9000",
                Protocol::Tcp,
                any,
                8_000..=8_009,
                v4,
                9_000,
                "0.0.0.0:8000-8009:10.0.2.15:9000-9009",
            ),
            ("8080:[fd00::15]:80", Protocol::Tcp, None, 8_080..=8_080, v6, 80, "8080:[fd00::15]:80"),
            ("0:10.0.2.15:80", Protocol::Tcp, None, 0..=0, v4, 80, "0:10.0.2.15:80"),
        ] {
            let publish = read(text);
            let expected = Publish { protocol, address, ports, guest, guest_port, header: None };
            assert_eq!(publish, expected, "{text}");
            assert_eq!(publish.to_string(), written);
            assert_eq!(read(written), publish);
        }
        assert_eq!(read("443:10.0.2.15,proxy=2").header, Some(ProxyHeader::V2));
        assert_eq!(read("443:10.0.2.15,proxy=1").to_string(), "443:10.0.2.15:443,proxy=1");
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, error) in [
            ("", PublishSyntax::Form),
            ("http:10.0.2.15:80", PublishSyntax::Form),
            ("::1:80:fd00::15:80", PublishSyntax::Form),
            ("80:10.0.2.15:80/sctp", PublishSyntax::Form),
            ("[::1]80:[fd00::15]", PublishSyntax::Form),
            ("1:2:3", PublishSyntax::Form),
            ("65536:10.0.2.15", PublishSyntax::Port),
            ("90-80:10.0.2.15", PublishSyntax::Port),
            ("80:10.0.2.15:0", PublishSyntax::Port),
            ("0-5:10.0.2.15:80", PublishSyntax::Port),
            ("0:10.0.2.15", PublishSyntax::Port),
            ("80-89:10.0.2.15:90-98", PublishSyntax::Ranges),
            ("80-89:10.0.2.15:65530", PublishSyntax::Beyond),
            ("127.0.0.1:80:[fd00::15]:80", PublishSyntax::Versions),
            ("80:10.0.2.15:80,proxy=3", PublishSyntax::Option),
            ("53:10.0.2.15/udp,proxy=1", PublishSyntax::Option),
        ] {
            assert_eq!(text.parse::<Publish>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_guest_without_a_name_is_the_only_one_of_its_version() {
        let only: [IpAddr; 2] = [[100, 64, 0, 2].into(), "fd00::2".parse().expect("an address")];
        assert_eq!(read("80").to(&only).and_then(|to| to.guest), Some(only[0]));
        assert_eq!(read("[::1]:80").to(&only).and_then(|to| to.guest), Some(only[1]));
        assert_eq!(read("80").to(&[]), None);
        let pairs: Vec<_> =
            read("80-81:8080").to(&only).expect("a guest").pairs().expect("a guest").collect();
        let pair = |a: &str, b: &str| (a.parse().expect("an address"), b.parse().expect("an address"));
        assert_eq!(pairs, [pair("0.0.0.0:80", "100.64.0.2:8080"), pair("0.0.0.0:81", "100.64.0.2:8081"),]);
    }
}
