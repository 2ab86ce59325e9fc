//! Features of a network card, by the kernel's ethtool netlink:
//! `Documentation/networking/ethtool-netlink.rst`.

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, and the attributes of a family:
/// `include/uapi/linux/genetlink.h`.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// `ETHTOOL_MSG_FEATURES_SET` and its attributes: `include/uapi/linux/ethtool_netlink_generated.h`.
const FEATURES_SET: u8 = 12;
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const WANTED: u16 = 3;
const BITSET_BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST: u16 = 5;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;

/// Switches features of an interface of this namespace on or off, by their names in `ethtool -k`'s
/// kernel spelling.
pub(crate) fn set_features(interface: &str, features: &[&str], on: bool) -> io::Result<()> {
    let mut socket = Conversation::open()?;
    let family = socket.family("ethtool\0")?;
    let name = attribute(HEADER_DEV_NAME, format!("{interface}\0").as_bytes());
    let bits: Vec<u8> = features
        .iter()
        .flat_map(|feature| {
            let mut bit = attribute(BIT_NAME, format!("{feature}\0").as_bytes());
            if on {
                bit.extend(attribute(BIT_VALUE, &[]));
            }
            attribute(BIT | NESTED, &bit)
        })
        .collect();
    let wanted = attribute(WANTED | NESTED, &attribute(BITSET_BITS | NESTED, &bits));
    socket.ask(family, FEATURES_SET, &[attribute(HEADER | NESTED, &name), wanted].concat()).map(drop)
}

struct Conversation {
    socket: rustix::fd::OwnedFd,
}

impl Conversation {
    fn open() -> io::Result<Self> {
        let generic = Some(netlink::GENERIC);
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, generic)?;
        Ok(Self { socket })
    }

    /// The number of a family of messages.
    fn family(&mut self, name: &str) -> io::Result<u16> {
        let answer = self.ask(CONTROL, GET_FAMILY, &attribute(FAMILY_NAME, name.as_bytes()))?;
        // Behind the headers of netlink and of generic netlink.
        let mut rest = answer.get(20..).unwrap_or(&[]);
        while let [a, b, c, d, ..] = *rest {
            let length = usize::from(u16::from_ne_bytes([a, b]));
            if u16::from_ne_bytes([c, d]) == FAMILY_ID {
                return Ok(u16::from_ne_bytes([rest[4], rest[5]]));
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Err(io::Error::other("the kernel does not know this family"))
    }

    /// Sends a request; the first message of the answer that is not its acknowledgement, or
    /// nothing.
    fn ask(&mut self, kind: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
        let mut message = Vec::new();
        message.extend(u32::try_from(20 + attributes.len()).expect("short").to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend(attributes);
        rustix::net::sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = Vec::new();
        loop {
            let mut buffer = vec![0; 16 * 1024];
            let (received, _) = rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            if u16::from_ne_bytes([buffer[4], buffer[5]]) == ERROR {
                let code = i32::from_ne_bytes([buffer[16], buffer[17], buffer[18], buffer[19]]);
                return if code == 0 { Ok(answer) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            buffer.truncate(received);
            answer = buffer;
        }
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(u16::try_from(4 + value.len()).expect("short").to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
