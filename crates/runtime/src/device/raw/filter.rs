//! The classic BPF program that selects frames for the device on an interface that is the kernel's.
//!
//! Of what the kernel itself would take (frames for this host, without the tag of a VLAN) the
//! program accepts:
//!
//! - TCP to the own address and one of the own ports. Of a packet in fragments only the first one
//!   has the ports; the others are accepted, and those of other connections are never completed;
//! - ICMP and ICMPv6 errors that quote a TCP segment from the own address and one of the own ports;
//! - IPv6 with extension headers other than a fragment's: a program without loops cannot find the
//!   ports behind them. The stack drops what is not its own, and the device lets no answer from
//!   another port leave.

use crate::device::interface::bpf::{
    DROP, KEEP, ancillary, jump, load, one_of, own_vlan, statement, v6_address, when,
};
use crate::sys::filter::Instruction;
use libc::{
    BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JSET, BPF_K, BPF_LD,
    BPF_LDX, BPF_LSH, BPF_MISC, BPF_MSH, BPF_TAX, BPF_W, BPF_X, ETH_P_IP, ETH_P_IPV6, SKF_AD_PKTTYPE,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Offsets in an Ethernet frame.
const ETHERTYPE: u32 = 12;
const IP: u32 = libc::ETH_HLEN as u32;
const IPV4_FRAGMENT: u32 = IP + 6;
const IPV4_PROTOCOL: u32 = IP + 9;
const IPV4_DESTINATION: u32 = IP + 16;
const IPV6_NEXT_HEADER: u32 = IP + 6;
const IPV6_DESTINATION: u32 = IP + 24;
/// What is behind an IPv6 header.
const IPV6_PAYLOAD: u32 = IP + 40;
/// The packet that an ICMP error quotes begins so far behind the error's own header: RFC 792, RFC
/// 4443.
const QUOTED: u32 = 8;

/// `PACKET_HOST`: the frame is for this host.
const FOR_THIS_HOST: u32 = 0;
const ICMP: u32 = 1;
const TCP: u32 = 6;
const FRAGMENT: u32 = 44;
const ICMPV6: u32 = 58;
/// Destination unreachable, time exceeded, parameter problem: RFC 792.
const ICMP_ERRORS: [u32; 3] = [3, 11, 12];
/// The same and packet too big: RFC 4443.
const ICMPV6_ERRORS: [u32; 4] = [1, 2, 3, 4];
/// Hop-by-hop options, routing, destination options: RFC 8200, section 4.
const EXTENSION_HEADERS: [u32; 3] = [0, 43, 60];

/// The programs for these addresses and ports: for everything, and for ICMP errors alone.
pub(super) fn programs(
    own: &[IpAddr],
    ports: &[RangeInclusive<u16>],
) -> (Vec<Instruction>, Vec<Instruction>) {
    (program(own, ports, true), program(own, ports, false))
}

fn program(own: &[IpAddr], ports: &[RangeInclusive<u16>], tcp: bool) -> Vec<Instruction> {
    let mut program = own_vlan();
    program.push(load(BPF_W, ancillary(SKF_AD_PKTTYPE)));
    program.extend(one_of(&[FOR_THIS_HOST]));
    program.push(load(BPF_H, ETHERTYPE));
    for address in own {
        program.extend(match address {
            IpAddr::V4(address) => when(BPF_JEQ, ETH_P_IP as u32, &ipv4(*address, ports, tcp)),
            IpAddr::V6(address) => when(BPF_JEQ, ETH_P_IPV6 as u32, &ipv6(*address, ports, tcp)),
        });
    }
    program.push(DROP);
    program
}

fn ipv4(own: Ipv4Addr, ports: &[RangeInclusive<u16>], with_tcp: bool) -> Vec<Instruction> {
    let later = |outcome| [vec![load(BPF_H, IPV4_FRAGMENT)], when(BPF_JSET, 0x1fff, &[outcome])].concat();
    let tcp = [later(KEEP), vec![header_length(IP), load_behind(BPF_H, IP + 2)], one_in(ports)].concat();
    let icmp = [
        later(DROP),
        vec![header_length(IP), load_behind(BPF_B, IP)],
        one_of(&ICMP_ERRORS),
        vec![load_behind(BPF_B, IP + QUOTED + 9)],
        one_of(&[TCP]),
        vec![load_behind(BPF_W, IP + QUOTED + 12)],
        one_of(&[own.to_bits()]),
        // Both headers' lengths: from the outer IP header to the quoted TCP header there are also
        // the 8 bytes of ICMP.
        vec![
            load_behind(BPF_B, IP + QUOTED),
            statement(BPF_ALU | BPF_AND | BPF_K, 0x0f),
            statement(BPF_ALU | BPF_LSH | BPF_K, 2),
            statement(BPF_ALU | BPF_ADD | BPF_X, 0),
            statement(BPF_MISC | BPF_TAX, 0),
            load_behind(BPF_H, IP + QUOTED),
        ],
        one_in(ports),
    ]
    .concat();
    [
        vec![load(BPF_W, IPV4_DESTINATION)],
        one_of(&[own.to_bits()]),
        vec![load(BPF_B, IPV4_PROTOCOL)],
        if with_tcp { when(BPF_JEQ, TCP, &tcp) } else { vec![] },
        when(BPF_JEQ, ICMP, &icmp),
        vec![DROP],
    ]
    .concat()
}

fn ipv6(own: Ipv6Addr, ports: &[RangeInclusive<u16>], with_tcp: bool) -> Vec<Instruction> {
    let quoted = IPV6_PAYLOAD + QUOTED;
    let tcp = [vec![load(BPF_H, IPV6_PAYLOAD + 2)], one_in(ports)].concat();
    let fragment = [
        vec![load(BPF_B, IPV6_PAYLOAD)],
        one_of(&[TCP]),
        vec![load(BPF_H, IPV6_PAYLOAD + 2)],
        when(BPF_JSET, 0xfff8, &[KEEP]),
        vec![load(BPF_H, IPV6_PAYLOAD + 8 + 2)],
        one_in(ports),
    ]
    .concat();
    let from_own = [vec![load(BPF_H, quoted + 40)], one_in(ports)].concat();
    let icmp = [
        vec![load(BPF_B, IPV6_PAYLOAD)],
        one_of(&ICMPV6_ERRORS),
        vec![load(BPF_B, quoted + 6)],
        one_of(&[TCP]),
        v6_address(quoted + 8, own, &from_own),
        vec![DROP],
    ]
    .concat();
    let mut to_own = vec![load(BPF_B, IPV6_NEXT_HEADER)];
    to_own.extend(when(BPF_JEQ, ICMPV6, &icmp));
    if with_tcp {
        to_own.extend(when(BPF_JEQ, TCP, &tcp));
        to_own.extend(when(BPF_JEQ, FRAGMENT, &fragment));
        for header in EXTENSION_HEADERS {
            to_own.extend(when(BPF_JEQ, header, &[KEEP]));
        }
    }
    to_own.push(DROP);
    [v6_address(IPV6_DESTINATION, own, &to_own), vec![DROP]].concat()
}

/// Accepts the frame if the accumulator is one of the ports; otherwise drops it.
fn one_in(ports: &[RangeInclusive<u16>]) -> Vec<Instruction> {
    let mut block = Vec::new();
    for range in ports {
        block.push(jump(BPF_JGE, u32::from(*range.start()), 0, 2));
        block.push(jump(BPF_JGT, u32::from(*range.end()), 1, 0));
        block.push(KEEP);
    }
    block.push(DROP);
    block
}

/// Puts the length of the IPv4 header at this offset into the index register.
const fn header_length(at: u32) -> Instruction {
    statement(BPF_LDX | BPF_B | BPF_MSH, at)
}

/// Loads from this offset behind the index register.
const fn load_behind(size: u32, at: u32) -> Instruction {
    statement(BPF_LD | size | BPF_IND, at)
}

#[cfg(test)]
mod tests;
