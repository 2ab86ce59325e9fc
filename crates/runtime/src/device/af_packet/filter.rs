//! The classic BPF program that selects frames for the socket, generated for the stack's addresses.
//!
//! On an interface that the kernel uses too, most frames are not for the stack. Dropping them before they are
//! queued saves the copy and their space in the receive buffer. The program accepts:
//!
//! - frames without a VLAN tag, or with one that only carries a priority (VLAN 0). The kernel strips the tag,
//!   so a frame tagged for another VLAN would otherwise look like one of this network;
//! - ARP to the stack's Ethernet address or to a group;
//! - IPv4 and IPv6 to the stack's Ethernet address and one of its IP addresses: every protocol, so that the
//!   stack can refuse those it does not support. Without addresses to compare with, only TCP, ICMP and
//!   extension headers: the rest may be the kernel's;
//! - ICMPv6 to a multicast group.

use crate::mac::MacAddress;
use crate::sys::filter::Instruction;
use libc::{
    BPF_ABS, BPF_B, BPF_H, BPF_JA, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, ETH_P_ARP,
    ETH_P_IP, ETH_P_IPV6, SKF_AD_OFF, SKF_AD_VLAN_TAG, SKF_AD_VLAN_TAG_PRESENT,
};
use std::net::IpAddr;

/// Offsets of the fields in an Ethernet frame.
const ETHERTYPE: u32 = 12;
const IPV4_PROTOCOL: u32 = 14 + 9;
const IPV4_DESTINATION: u32 = 14 + 16;
const IPV6_NEXT_HEADER: u32 = 14 + 6;
const IPV6_DESTINATION: u32 = 14 + 24;

/// Largest number of addresses that a program compares: it checks each packet against all of them, and the
/// kernel limits its length (`net.core.optmem_max`, 20 KiB in older kernels).
const MAX_ADDRESSES: usize = 32;

const ICMP: u32 = 1;
const TCP: u32 = 6;
const ICMPV6: u32 = 58;
/// Hop-by-hop options, routing, fragment, destination options: RFC 8200, section 4.
const EXTENSION_HEADERS: [u32; 4] = [0, 43, 44, 60];

const DROP: Instruction = statement(BPF_RET | BPF_K, 0);
const KEEP: Instruction = statement(BPF_RET | BPF_K, u32::MAX);

/// The program for a stack with this Ethernet address. It accepts any IP address if `addresses` is `None` or
/// has more than [`MAX_ADDRESSES`] entries.
pub(super) fn program(mac: MacAddress, addresses: Option<&[IpAddr]>) -> Vec<Instruction> {
    let addresses = addresses.filter(|addresses| addresses.len() <= MAX_ADDRESSES);
    let mut program = vec![
        load(BPF_W, ancillary(SKF_AD_VLAN_TAG_PRESENT)),
        jump(BPF_JEQ, 0, 3, 0),
        load(BPF_W, ancillary(SKF_AD_VLAN_TAG)),
        // The low 12 bits are the VLAN: IEEE 802.1Q, section 9.6.
        jump(BPF_JSET, 0x0fff, 0, 1),
        DROP,
        load(BPF_H, ETHERTYPE),
    ];
    let group = when(BPF_JSET, 1, &[KEEP]);
    let arp = [vec![load(BPF_B, 0)], group, to_station(mac), vec![KEEP]].concat();
    program.extend(when(BPF_JEQ, ETH_P_ARP as u32, &arp));
    program.extend(when(BPF_JEQ, ETH_P_IP as u32, &ipv4(mac, addresses)));
    program.extend(when(BPF_JEQ, ETH_P_IPV6 as u32, &ipv6(mac, addresses)));
    program.push(DROP);
    program
}

fn ipv4(mac: MacAddress, addresses: Option<&[IpAddr]>) -> Vec<Instruction> {
    let mut block = to_station(mac);
    let Some(addresses) = addresses else {
        block.push(load(BPF_B, IPV4_PROTOCOL));
        block.extend(one_of(&[TCP, ICMP]));
        block.push(KEEP);
        return block;
    };
    block.push(load(BPF_W, IPV4_DESTINATION));
    for address in addresses {
        if let IpAddr::V4(address) = address {
            block.extend(when(BPF_JEQ, address.to_bits(), &[KEEP]));
        }
    }
    block.push(DROP);
    block
}

fn ipv6(mac: MacAddress, addresses: Option<&[IpAddr]>) -> Vec<Instruction> {
    // RFC 2464, section 7: multicast is sent to groups, and these are neighbour discovery's.
    let discovery =
        when(BPF_JEQ, 0xff, &[vec![load(BPF_B, IPV6_NEXT_HEADER)], one_of(&[ICMPV6]), vec![KEEP]].concat());
    let mut block = [vec![load(BPF_B, IPV6_DESTINATION)], discovery, to_station(mac)].concat();
    let Some(addresses) = addresses else {
        block.push(load(BPF_B, IPV6_NEXT_HEADER));
        block.extend(one_of(&[&[TCP, ICMPV6], &EXTENSION_HEADERS[..]].concat()));
        block.push(KEEP);
        return block;
    };
    for address in addresses {
        if let IpAddr::V6(address) = address {
            let bits = address.to_bits();
            let mut equal = vec![KEEP];
            for (word, shift) in [(3, 0), (2, 32), (1, 64), (0, 96)] {
                let test = when(BPF_JEQ, (bits >> shift) as u32, &equal);
                equal = [vec![load(BPF_W, IPV6_DESTINATION + 4 * word)], test].concat();
            }
            block.extend(equal);
        }
    }
    block.push(DROP);
    block
}

/// Continues if the frame is for the station `mac`; otherwise drops it.
fn to_station(mac: MacAddress) -> Vec<Instruction> {
    let MacAddress([a, b, c, d, e, f]) = mac;
    let mut block = vec![load(BPF_W, 0)];
    block.extend(one_of(&[u32::from_be_bytes([a, b, c, d])]));
    block.push(load(BPF_H, 4));
    block.extend(one_of(&[u32::from_be_bytes([0, 0, e, f])]));
    block
}

/// Continues if the accumulator is one of a few values; otherwise drops the frame.
fn one_of(values: &[u32]) -> Vec<Instruction> {
    let left = |index: usize| (values.len() - index) as u8;
    let tests = values.iter().enumerate().map(|(index, &value)| jump(BPF_JEQ, value, left(index), 0));
    tests.chain([DROP]).collect()
}

/// Runs `block` if the accumulator passes the test, and leaves the accumulator alone if not.
fn when(test: u32, value: u32, block: &[Instruction]) -> Vec<Instruction> {
    // A conditional jump reaches 255 instructions only.
    let over = statement(BPF_JMP | BPF_JA, block.len() as u32);
    [&[jump(test, value, 1, 0), over], block].concat()
}

fn load(size: u32, at: u32) -> Instruction {
    statement(BPF_LD | size | BPF_ABS, at)
}

/// Offset at which the kernel provides metadata about the frame.
const fn ancillary(what: i32) -> u32 {
    (SKF_AD_OFF + what) as u32
}

/// Skips `then` instructions if the accumulator passes the test, else `otherwise`.
const fn jump(test: u32, value: u32, then: u8, otherwise: u8) -> Instruction {
    Instruction { jt: then, jf: otherwise, ..statement(BPF_JMP | test | BPF_K, value) }
}

const fn statement(code: u32, value: u32) -> Instruction {
    Instruction { code: code as u16, jt: 0, jf: 0, k: value }
}

#[cfg(test)]
mod tests;
