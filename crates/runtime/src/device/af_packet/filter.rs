//! The classic BPF program that selects frames for the socket, generated for the stack's addresses.
//!
//! On an interface that the kernel uses too, most frames are not for the stack. Dropping them
//! before they are queued saves the copy and their space in the receive buffer. The program
//! accepts:
//!
//! - frames without a VLAN tag, or with one that only carries a priority (VLAN 0). The kernel
//!   strips the tag, so a frame tagged for another VLAN would otherwise look like one of this
//!   network;
//! - ARP to the stack's Ethernet address or to a group;
//! - IPv4 and IPv6 to the stack's Ethernet address and one of its IP addresses: every protocol, so
//!   that the stack can refuse those it does not support. Without addresses to compare with, only
//!   TCP, ICMP and extension headers: the rest may be the kernel's;
//! - ICMPv6 to a multicast group.

use crate::device::interface::bpf::{DROP, KEEP, load, one_of, own_vlan, v6_address, when};
use crate::mac::MacAddress;
use crate::sys::filter::Instruction;
use libc::{BPF_B, BPF_H, BPF_JEQ, BPF_JSET, BPF_W, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6};
use std::net::IpAddr;

/// Offsets of the fields in an Ethernet frame.
const ETHERTYPE: u32 = 12;
const IPV4_PROTOCOL: u32 = 14 + 9;
const IPV4_DESTINATION: u32 = 14 + 16;
const IPV6_NEXT_HEADER: u32 = 14 + 6;
const IPV6_DESTINATION: u32 = 14 + 24;

/// Largest number of addresses that a program compares: it checks each packet against all of them,
/// and the kernel limits its length (`net.core.optmem_max`, 20 KiB in older kernels).
const MAX_ADDRESSES: usize = 32;

const ICMP: u32 = 1;
const TCP: u32 = 6;
const ICMPV6: u32 = 58;
/// Hop-by-hop options, routing, fragment, destination options: RFC 8200, section 4.
const EXTENSION_HEADERS: [u32; 4] = [0, 43, 44, 60];

/// The program for a stack with this Ethernet address. It accepts any IP address if `addresses` is
/// `None` or has more than [`MAX_ADDRESSES`] entries.
pub(super) fn program(mac: MacAddress, addresses: Option<&[IpAddr]>) -> Vec<Instruction> {
    let addresses = addresses.filter(|addresses| addresses.len() <= MAX_ADDRESSES);
    let mut program = own_vlan();
    program.push(load(BPF_H, ETHERTYPE));
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
            block.extend(v6_address(IPV6_DESTINATION, *address, &[KEEP]));
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

#[cfg(test)]
mod tests;
