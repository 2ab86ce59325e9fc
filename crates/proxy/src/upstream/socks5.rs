//! A client of SOCKS5: RFC 1928, and RFC 1929 for user and password.
//!
//! Of the crates, `tokio-socks` has no UDP ASSOCIATE, and `fast-socks5` panics at a reply that it
//! does not know.

use super::url::Credentials;
use super::{ConnectError, Server};
use crate::outside::{Socket, Stream, WayOut};
use crate::target::Target;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::lookup_host;
use tokio::sync::Mutex;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_PASSWORD: u8 = 2;
/// Commands.
const CONNECT: u8 = 1;
const UDP_ASSOCIATE: u8 = 3;
/// Types of addresses.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Asks for a connection to `target`.
pub(super) async fn connect(stream: &mut Stream, target: &Target) -> Result<(), ConnectError> {
    ask(stream, CONNECT, &place(target)).await.map(drop)
}

fn wrong(what: &str) -> ConnectError {
    ConnectError::Server(what.to_owned())
}

/// Connects to the server, and introduces this client.
pub(super) async fn greet(out: &WayOut, server: &Server) -> Result<Stream, ConnectError> {
    let io = ConnectError::of_server;
    let mut stream = server.connect(out).await?;
    let credentials = server.credentials();
    let greeting: &[u8] = match credentials {
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, USER_PASSWORD],
        None => &[VERSION, 1, NO_AUTHENTICATION],
    };
    stream.write_all(greeting).await.map_err(io)?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await.map_err(io)?;
    match (chosen, credentials) {
        ([VERSION, NO_AUTHENTICATION], _) => {}
        ([VERSION, USER_PASSWORD], Some(Credentials { user, password })) => {
            let mut message = vec![1];
            for text in [user, password] {
                // At most 255 bytes: `Credentials` sees to that.
                message.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
                message.extend(text.as_bytes());
            }
            stream.write_all(&message).await.map_err(io)?;
            let mut outcome = [0; 2];
            stream.read_exact(&mut outcome).await.map_err(io)?;
            if outcome[1] != 0 {
                return Err(wrong("it does not accept user and password"));
            }
        }
        ([VERSION, _], None) => return Err(wrong("it wants a user and a password")),
        ([VERSION, _], Some(_)) => return Err(wrong("it wants neither no password nor one")),
        _ => return Err(wrong("it does not speak SOCKS5")),
    }
    Ok(stream)
}

/// An address in an answer or a datagram (RFC 1928, section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
enum SocksAddress {
    Address(SocketAddr),
    Name(String, u16),
}

/// Requests `command`. Returns the address in the answer.
async fn ask(stream: &mut Stream, command: u8, place: &[u8]) -> Result<SocksAddress, ConnectError> {
    let io = ConnectError::of_server;
    let request = [&[VERSION, command, 0][..], place].concat();
    stream.write_all(&request).await.map_err(io)?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.map_err(io)?;
    let [version, reply, _, kind] = head;
    if version != VERSION {
        return Err(wrong("it does not speak SOCKS5"));
    }
    if reply != 0 {
        return Err(refusal(reply));
    }
    let mut address = [0; 256];
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => stream.read_u8().await.map_err(io)?.into(),
        _ => return Err(wrong("its answer has an address of an unknown type")),
    };
    stream.read_exact(&mut address[..length]).await.map_err(io)?;
    let port = stream.read_u16().await.map_err(io)?;
    Ok(match ip(&address[..length], kind) {
        Some(ip) => SocksAddress::Address(SocketAddr::new(ip, port)),
        None => SocksAddress::Name(String::from_utf8_lossy(&address[..length]).into_owned(), port),
    })
}

/// What a reply other than success means (RFC 1928, section 6).
fn refusal(reply: u8) -> ConnectError {
    match reply {
        // Not allowed by the ruleset; network or host unreachable; TTL expired.
        2 | 3 | 4 | 6 => ConnectError::Unreachable,
        // A general failure, and refused.
        1 | 5 => ConnectError::Refused,
        7 => ConnectError::Server("it does not know the command".to_owned()),
        8 => ConnectError::Server("it does not know addresses of this type".to_owned()),
        reply => ConnectError::Server(format!("it answers {reply}")),
    }
}

/// Address and port as requests and datagrams have them: the name, if there is one.
fn place(target: &Target) -> Vec<u8> {
    let mut place = match (&target.name, target.address.ip()) {
        // A name that is too long is no name.
        (Some(name), _) if name.len() <= 255 => {
            [&[NAME, u8::try_from(name.len()).unwrap_or(u8::MAX)], name.as_bytes()].concat()
        }
        (_, IpAddr::V4(v4)) => [&[IPV4][..], &v4.octets()].concat(),
        (_, IpAddr::V6(v6)) => [&[IPV6][..], &v6.octets()].concat(),
    };
    place.extend(target.address.port().to_be_bytes());
    place
}

/// An address that is no name.
fn ip(bytes: &[u8], kind: u8) -> Option<IpAddr> {
    match kind {
        IPV4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        IPV6 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Header of each datagram to `to` (RFC 1928, section 7).
pub(super) fn header(to: SocketAddr) -> Vec<u8> {
    [&[0; 3][..], &place(&to.into())].concat()
}

/// A way for datagrams through the server (RFC 1928, section 7). It lasts as long as the connection
/// that asked for it.
#[derive(Debug)]
pub(crate) struct Association {
    /// Locked by the task that waits for datagrams.
    control: Mutex<Stream>,
    socket: Socket,
}

impl Association {
    pub(super) async fn new(out: &WayOut, server: &Server) -> Result<Self, ConnectError> {
        let mut control = greet(out, server).await?;
        let peer = control.peer_addr().map_err(ConnectError::of_server)?;
        // Which address this machine sends from is not known before it sends.
        let any: IpAddr =
            if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let unknown = place(&SocketAddr::new(any, 0).into());
        let relay = match ask(&mut control, UDP_ASSOCIATE, &unknown).await? {
            // A server behind an address translation does not know its own address: then it is
            // where the connection goes. An empty name says no more.
            SocksAddress::Address(relay) if relay.ip().is_unspecified() => {
                SocketAddr::new(peer.ip(), relay.port())
            }
            SocksAddress::Address(relay) => relay,
            SocksAddress::Name(name, port) if name.is_empty() => SocketAddr::new(peer.ip(), port),
            SocksAddress::Name(name, port) => resolve_relay(&name, port, peer).await?,
        };
        let socket = out.socket(relay).await.map_err(ConnectError::of_server)?;
        Ok(Self { control: Mutex::new(control), socket })
    }

    /// Sends a datagram behind its [header].
    pub(super) async fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.socket.send(packet).await
    }

    /// Waits for a datagram, and returns where in `buffer` it is, and who sent it, unless that is a
    /// name. Fails once the server has ended the association.
    pub(super) async fn recv(&self, buffer: &mut [u8]) -> io::Result<(Range<usize>, Option<SocketAddr>)> {
        let mut control = self.control.lock().await;
        let mut said = [0; 64];
        loop {
            tokio::select! {
                length = self.socket.recv(buffer) => {
                    let length = length?;
                    // Fragments are optional, and what is none of the server's is dropped.
                    if let Some((start, from)) = payload(&buffer[..length]) {
                        return Ok((start..length, from));
                    }
                }
                // Dropping a read loses nothing: the server has nothing to say there.
                read = control.read(&mut said) => {
                    if read? == 0 {
                        return Err(ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }
}

/// The address of a relay that the server names, of the family by which the server itself is
/// reached if there is one.
async fn resolve_relay(name: &str, port: u16, server: SocketAddr) -> Result<SocketAddr, ConnectError> {
    let unknown =
        |why: &dyn std::fmt::Display| wrong(&format!("the name of its relay, {name:?}, is not known: {why}"));
    let found = lookup_host((name, port)).await.map_err(|error| unknown(&error))?;
    let found: Vec<SocketAddr> = found.collect();
    let same = found.iter().find(|address| address.is_ipv4() == server.is_ipv4());
    same.or(found.first()).copied().ok_or_else(|| unknown(&"it has no address"))
}

/// Offset of the payload in a whole datagram, and its source, unless that is a name.
fn payload(packet: &[u8]) -> Option<(usize, Option<SocketAddr>)> {
    let [_, _, 0, kind, rest @ ..] = packet else { return None };
    let length = match *kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => 1 + usize::from(*rest.first()?),
        _ => return None,
    };
    let (address, rest) = rest.split_at_checked(length)?;
    let port = u16::from_be_bytes(*rest.first_chunk()?);
    Some((4 + length + 2, ip(address, *kind).map(|ip| SocketAddr::new(ip, port))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_names_where_they_are_known() {
        let mut target = Target::from(SocketAddr::from(([192, 0, 2, 7], 443)));
        assert_eq!(place(&target), [1, 192, 0, 2, 7, 1, 187]);
        target.name = Some("a.test".into());
        assert_eq!(place(&target), [&[3, 6][..], b"a.test", &[1, 187]].concat());
        target.name = Some("x".repeat(256).into());
        assert_eq!(place(&target), [1, 192, 0, 2, 7, 1, 187]);
    }

    #[test]
    fn the_payload_is_behind_any_address_and_no_fragment() {
        for (header, expected) in [
            (&[0, 0, 0, 1, 1, 2, 3, 4, 0, 53][..], Some((10, Some(([1, 2, 3, 4], 53).into())))),
            (&[0, 0, 0, 3, 2, b'h', b'i', 0, 53], Some((9, None))),
            (&[0, 0, 1, 1, 1, 2, 3, 4, 0, 53], None),
            (&[0, 0, 0, 9, 1, 2, 3, 4, 0, 53], None),
            (&[0, 0, 0, 3], None),
            (&[0, 0, 0, 4, 1, 2, 3, 4, 0, 53], None),
            (&[], None),
        ] {
            assert_eq!(payload(header), expected, "{header:?}");
        }
        let refused = [1, 5].map(refusal);
        assert!(refused.iter().all(|error| matches!(error, ConnectError::Refused)), "{refused:?}");
        let unreachable = [2, 3, 4, 6].map(refusal);
        assert!(
            unreachable.iter().all(|error| matches!(error, ConnectError::Unreachable)),
            "{unreachable:?}"
        );
        for reply in 7..=255 {
            assert!(matches!(refusal(reply), ConnectError::Server(_)), "{reply}");
        }
    }
}
