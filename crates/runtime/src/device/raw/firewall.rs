//! Keeps the kernel's TCP from seeing what the device takes. It has no connections for these
//! segments, and would reset them.
//!
//! A table of nftables drops them at the input hook, which the kernel reaches after its packet
//! sockets have got their copy, and after it has put fragments together. The table belongs to the
//! netlink socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12): nobody else can change it, and it
//! vanishes with the socket, however the process ends. The drop comes before other tables' chains
//! at the same hook, because one of them may answer with a reset as well.
//!
//! The messages are those of `include/uapi/linux/netfilter/nf_tables.h`, all of one transaction.

use super::config::text;
use crate::error::{Error, Result};
use crate::netlink::c_string;
use crate::netlink::message::{Request, messages, u32_at};
use libc::{NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END, NFNL_SUBSYS_NFTABLES};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::ffi::c_int;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Before the chains of other tables (`filter` is 0), and behind the tracking of connections.
const PRIORITY: i32 = -300;
const CHAIN: &str = "input";
const TCP: u8 = 6;

/// Marks an attribute that contains others.
const NESTED: u16 = 0x8000;
/// The table belongs to the socket that makes it.
const TABLE_OWNER: u32 = 2;

// Attributes, in the order of nf_tables.h.
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4 | NESTED;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4 | NESTED;
const LIST_ELEMENT: u16 = 1 | NESTED;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2 | NESTED;
const META_REGISTER: u16 = 1;
const META_KEY: u16 = 2;
const PAYLOAD_REGISTER: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LENGTH: u16 = 4;
const COMPARE_REGISTER: u16 = 1;
const COMPARE_OPERATION: u16 = 2;
const COMPARE_DATA: u16 = 3 | NESTED;
const IMMEDIATE_REGISTER: u16 = 1;
const IMMEDIATE_DATA: u16 = 2 | NESTED;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2 | NESTED;
const VERDICT_CODE: u16 = 1;

/// What is to be dropped: TCP to these ports of these addresses that comes in through an interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) interface: u32,
    pub(super) name: &'a str,
    pub(super) addresses: &'a [IpAddr],
    pub(super) ports: &'a [RangeInclusive<u16>],
}

/// The table; it is gone when this is dropped.
#[derive(Debug)]
pub(super) struct Table {
    _owner: OwnedFd,
}

impl Table {
    /// Makes a table of this name, which no other may have.
    ///
    /// # Errors
    /// [`Error::NoFirewall`] without `CAP_NET_ADMIN`, or if the kernel is too old or has no
    /// nftables.
    pub(super) fn new(name: &str, rules: Rules<'_>) -> Result<Self> {
        let made = connect().and_then(|owner| {
            let kernel = SocketAddrNetlink::new(0, 0);
            rustix::net::sendto(&owner, &transaction(name, rules), SendFlags::empty(), &kernel)?;
            answer(&owner)?;
            Ok(Self { _owner: owner })
        });
        made.map_err(|errno| Error::NoFirewall {
            why: match errno {
                Errno::PERM | Errno::ACCESS => {
                    "it needs CAP_NET_ADMIN in this network namespace (run as root)".to_owned()
                }
                Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::INVAL => {
                    "this kernel has no nftables, or none with tables that have an owner (Linux 5.12)"
                        .to_owned()
                }
                other => std::io::Error::from(other).to_string(),
            },
            command: command(rules),
            ports: rules.ports.iter().map(text).collect::<Vec<_>>().join(","),
        })
    }
}

fn connect() -> std::result::Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))
}

/// Waits for the acknowledgement of the last message, or the first error.
fn answer(owner: &OwnedFd) -> std::result::Result<(), Errno> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let (received, _) = rustix::net::recv(owner, &mut buffer[..], RecvFlags::empty())?;
        for message in messages(buffer.get(..received).unwrap_or(&[])) {
            if i32::from(message.kind) == libc::NLMSG_ERROR {
                let code = u32_at(message.body, 0).ok_or(Errno::BADMSG)?.cast_signed();
                return if code == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(-code)) };
            }
        }
    }
}

/// Table, chain and rules between the marks of a transaction, of which only the last message asks
/// for an acknowledgement.
fn transaction(name: &str, rules: Rules<'_>) -> Vec<u8> {
    let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut parts = vec![mark(NFNL_MSG_BATCH_BEGIN)];
    parts.push(
        of_nftables(libc::NFT_MSG_NEWTABLE, create)
            .attribute(TABLE_NAME, &c_string(name))
            .attribute(TABLE_FLAGS, &TABLE_OWNER.to_be_bytes()),
    );
    parts.push(
        of_nftables(libc::NFT_MSG_NEWCHAIN, create)
            .attribute(CHAIN_TABLE, &c_string(name))
            .attribute(CHAIN_NAME, &c_string(CHAIN))
            .nested(CHAIN_HOOK, |hook| {
                hook.attribute(HOOK_NUMBER, &(libc::NF_INET_LOCAL_IN as u32).to_be_bytes())
                    .attribute(HOOK_PRIORITY, &PRIORITY.to_be_bytes())
            })
            .attribute(CHAIN_TYPE, b"filter\0"),
    );
    let each =
        |address: &IpAddr| rules.ports.iter().map(|ports| (*address, ports.clone())).collect::<Vec<_>>();
    let all: Vec<_> = rules.addresses.iter().flat_map(each).collect();
    for (at, (address, ports)) in all.iter().enumerate() {
        let last = if at + 1 == all.len() { libc::NLM_F_ACK } else { 0 };
        let flags = libc::NLM_F_CREATE | libc::NLM_F_APPEND | last;
        parts.push(
            of_nftables(libc::NFT_MSG_NEWRULE, flags)
                .attribute(RULE_TABLE, &c_string(name))
                .attribute(RULE_CHAIN, &c_string(CHAIN))
                .nested(RULE_EXPRESSIONS, |list| drop_tcp(list, rules.interface, *address, ports)),
        );
    }
    parts.push(mark(NFNL_MSG_BATCH_END));
    parts.into_iter().flat_map(Request::finish).collect()
}

/// The expressions of a rule.
fn drop_tcp(list: Request, interface: u32, to: IpAddr, ports: &RangeInclusive<u16>) -> Request {
    let (version, at, address) = match to {
        IpAddr::V4(to) => (libc::NFPROTO_IPV4, 16, to.octets().to_vec()),
        IpAddr::V6(to) => (libc::NFPROTO_IPV6, 24, to.octets().to_vec()),
    };
    let list = compare(meta(list, libc::NFT_META_IIF), libc::NFT_CMP_EQ, &interface.to_ne_bytes());
    let list = compare(meta(list, libc::NFT_META_NFPROTO), libc::NFT_CMP_EQ, &[version as u8]);
    let list = payload(list, libc::NFT_PAYLOAD_NETWORK_HEADER, at, address.len() as u32);
    let list = compare(list, libc::NFT_CMP_EQ, &address);
    let list = compare(meta(list, libc::NFT_META_L4PROTO), libc::NFT_CMP_EQ, &[TCP]);
    let list = payload(list, libc::NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
    let list = compare(list, libc::NFT_CMP_GTE, &ports.start().to_be_bytes());
    let list = compare(list, libc::NFT_CMP_LTE, &ports.end().to_be_bytes());
    let list = expression(list, "counter", |data| data);
    expression(list, "immediate", |data| {
        let drop = (libc::NF_DROP as u32).to_be_bytes();
        data.attribute(IMMEDIATE_REGISTER, &word(libc::NFT_REG_VERDICT)).nested(IMMEDIATE_DATA, |data| {
            data.nested(DATA_VERDICT, |verdict| verdict.attribute(VERDICT_CODE, &drop))
        })
    })
}

/// Loads a fact about the packet into the register.
fn meta(list: Request, key: c_int) -> Request {
    expression(list, "meta", |data| {
        data.attribute(META_REGISTER, &word(libc::NFT_REG_1)).attribute(META_KEY, &word(key))
    })
}

/// Loads bytes of a header into the register.
fn payload(list: Request, header: c_int, at: u32, length: u32) -> Request {
    expression(list, "payload", |data| {
        data.attribute(PAYLOAD_REGISTER, &word(libc::NFT_REG_1))
            .attribute(PAYLOAD_BASE, &word(header))
            .attribute(PAYLOAD_OFFSET, &at.to_be_bytes())
            .attribute(PAYLOAD_LENGTH, &length.to_be_bytes())
    })
}

/// Ends the rule unless the register compares so.
fn compare(list: Request, operation: c_int, value: &[u8]) -> Request {
    expression(list, "cmp", |data| {
        data.attribute(COMPARE_REGISTER, &word(libc::NFT_REG_1))
            .attribute(COMPARE_OPERATION, &word(operation))
            .nested(COMPARE_DATA, |data| data.attribute(DATA_VALUE, value))
    })
}

fn expression(list: Request, name: &str, fill: impl FnOnce(Request) -> Request) -> Request {
    list.nested(LIST_ELEMENT, |element| {
        element.attribute(EXPRESSION_NAME, &c_string(name)).nested(EXPRESSION_DATA, fill)
    })
}

/// A number as nftables has them: in network byte order.
const fn word(value: c_int) -> [u8; 4] {
    value.to_be_bytes()
}

/// A mark of a transaction: `struct nfgenmsg` names the subsystem.
fn mark(kind: c_int) -> Request {
    let [high, low] = (NFNL_SUBSYS_NFTABLES as u16).to_be_bytes();
    Request::new(kind as u16, libc::NLM_F_REQUEST, 0, &[libc::AF_UNSPEC as u8, 0, high, low])
}

/// A message for tables of both IP versions.
fn of_nftables(kind: c_int, flags: c_int) -> Request {
    let kind = ((NFNL_SUBSYS_NFTABLES << 8) | kind) as u16;
    Request::new(kind, libc::NLM_F_REQUEST | flags, 0, &[libc::NFPROTO_INET as u8, 0, 0, 0])
}

/// The same by hand, as one command.
fn command(rules: Rules<'_>) -> String {
    let ports = match rules.ports {
        [range] => text(range),
        several => format!("{{ {} }}", several.iter().map(text).collect::<Vec<_>>().join(", ")),
    };
    let of = |address: &IpAddr| {
        let version = if address.is_ipv4() { "ip" } else { "ip6" };
        let interface = rules.name;
        format!(
            "; add rule inet ackline in iifname \"{interface}\" {version} daddr {address} tcp dport {ports} drop"
        )
    };
    let each: String = rules.addresses.iter().map(of).collect();
    format!(
        "nft 'add table inet ackline; add chain inet ackline in {{ type filter hook input priority {PRIORITY}; }}{each}'"
    )
}

#[cfg(test)]
mod tests;
