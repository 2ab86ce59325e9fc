//! A client of SOCKS5: RFC 1928, and RFC 1929 for user and password.
//!
//! Of the crates, `tokio-socks` has no UDP ASSOCIATE, and `fast-socks5` panics at a reply that it does not know.

use super::url::Credentials;
use super::{ConnectError, Server};
use crate::outside::{Socket, Stream, WayOut};
use crate::target::Target;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

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

/// Asks for `command`. Returns the address of the answer, unless that is a name.
async fn ask(stream: &mut Stream, command: u8, place: &[u8]) -> Result<Option<SocketAddr>, ConnectError> {
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
    Ok(ip(&address[..length], kind).map(|ip| SocketAddr::new(ip, port)))
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

/// A way for datagrams through the server (RFC 1928, section 7). It lasts as long as the connection that asked for it.
#[derive(Debug)]
pub(crate) struct Association {
    control: Stream,
    socket: Socket,
    /// Before each datagram to the destination.
    header: Vec<u8>,
}

impl Association {
    pub(super) async fn new(out: &WayOut, server: &Server, target: &Target) -> Result<Self, ConnectError> {
        let mut control = greet(out, server).await?;
        let peer = control.peer_addr().map_err(ConnectError::of_server)?;
        // Which address this machine sends from is not known before it sends.
        let any: IpAddr =
            if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let unknown = place(&SocketAddr::new(any, 0).into());
        let relay = ask(&mut control, UDP_ASSOCIATE, &unknown).await?;
        let relay = match relay {
            // A server behind an address translation does not know its own address: then it is where the connection goes.
            Some(relay) if relay.ip().is_unspecified() => SocketAddr::new(peer.ip(), relay.port()),
            Some(relay) => relay,
            None => {
                return Err(ConnectError::Server("it names its address for datagrams by a name".to_owned()));
            }
        };
        let socket = out.socket(relay).await.map_err(ConnectError::of_server)?;
        Ok(Self { control, socket, header: [&[0; 3][..], &place(target)].concat() })
    }

    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Sends the datagram behind the header's room in `packet`.
    pub(super) async fn send(&self, packet: &mut [u8]) -> io::Result<()> {
        packet[..self.header.len()].copy_from_slice(&self.header);
        self.socket.send(packet).await
    }

    /// Waits for a datagram, and returns where in `buffer` it is. Fails once the server has ended the association.
    pub(super) async fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Range<usize>> {
        let mut said = [0; 64];
        loop {
            tokio::select! {
                length = self.socket.recv(buffer) => {
                    let length = length?;
                    // Fragments are optional, and what is none of the server's is dropped.
                    if let Some(start) = payload(&buffer[..length]) {
                        return Ok(start..length);
                    }
                }
                // Dropping a read loses nothing: the server has nothing to say there.
                read = self.control.read(&mut said) => {
                    if read? == 0 {
                        return Err(ErrorKind::ConnectionAborted.into());
                    }
                }
            }
        }
    }
}

/// Where the payload of a whole datagram begins.
fn payload(packet: &[u8]) -> Option<usize> {
    let [_, _, 0, kind, rest @ ..] = packet else { return None };
    let address = match *kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => 1 + usize::from(*rest.first()?),
        _ => return None,
    };
    let start = 4 + address + 2;
    (start <= packet.len()).then_some(start)
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
        for (header, start) in [
            (&[0, 0, 0, 1, 1, 2, 3, 4, 0, 53][..], Some(10)),
            (&[0, 0, 0, 3, 2, b'h', b'i', 0, 53], Some(9)),
            (&[0, 0, 1, 1, 1, 2, 3, 4, 0, 53], None),
            (&[0, 0, 0, 9, 1, 2, 3, 4, 0, 53], None),
            (&[0, 0, 0, 3], None),
            (&[0, 0, 0, 4, 1, 2, 3, 4, 0, 53], None),
            (&[], None),
        ] {
            assert_eq!(payload(header), start, "{header:?}");
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
