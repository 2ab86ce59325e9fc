//! The program that chooses the queue of a packet in the kernel, in classic BPF: socket(7).
//!
//! It computes the hash that says whose a connection is
//! ([`Steering`](ackline_tcp_core::steering::Steering)), so a segment comes to the queue of its
//! owner. Everything else goes to the first queue: neighbour resolution, UDP, fragments, and what
//! only the shards themselves can tell, such as whose connection an ICMP error is about.

use super::bpf::{jump, load, statement, when};
use ackline_tcp_core::steering::Terms;
use libc::sock_filter as Instruction;
use libc::{
    BPF_A, BPF_ALU, BPF_B, BPF_H, BPF_IND, BPF_JA, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX,
    BPF_MEM, BPF_MISC, BPF_MOD, BPF_MSH, BPF_MUL, BPF_RET, BPF_RSH, BPF_ST, BPF_TAX, BPF_W, BPF_X, BPF_XOR,
};

const TCP: u32 = 6;
/// Bits of an IPv4 header's fourth half-word that a fragment has: RFC 791, section 3.1.
const FRAGMENT: u32 = 0x3fff;

/// Returns the owner of a packet, whose IP header is at offset 0; 0 if it cannot tell. So do
/// packets that are too short: a load beyond their end returns 0.
pub(in crate::device) fn program(terms: &Terms) -> Vec<Instruction> {
    /// Where the ports are kept.
    const PORTS: u32 = 0;
    let first = statement(BPF_RET | BPF_K, 0);
    let unless =
        |test, value, otherwise: [u8; 2]| [jump(test, value, otherwise[0], otherwise[1]), first].to_vec();
    let alu = |operation, value| statement(BPF_ALU | operation | BPF_K, value);
    let xor_index = statement(BPF_ALU | BPF_XOR | BPF_X, 0);
    let to_index = statement(BPF_MISC | BPF_TAX, 0);
    let keep_ports = statement(BPF_ST, PORTS);

    // Each leaves the ports in memory and the address in the accumulator.
    let v4 = [
        vec![load(BPF_B, 9)],
        unless(BPF_JEQ, TCP, [1, 0]),
        vec![load(BPF_H, 6)],
        unless(BPF_JSET, FRAGMENT, [0, 1]),
        // The index is the header's length.
        vec![
            statement(BPF_LDX | BPF_B | BPF_MSH, 0),
            statement(BPF_LD | BPF_W | BPF_IND, 0),
            keep_ports,
            load(BPF_W, 12),
        ],
    ]
    .concat();
    let v6 = [
        vec![load(BPF_B, 6)],
        unless(BPF_JEQ, TCP, [1, 0]),
        vec![load(BPF_W, 40), keep_ports, load(BPF_W, 8)],
        [12, 16, 20].iter().flat_map(|&word| [to_index, load(BPF_W, word), xor_index]).collect(),
    ]
    .concat();
    let Terms { shards, keys, mix, .. } = *terms;
    let hash = vec![
        alu(BPF_XOR, keys[0]),
        alu(BPF_MUL, mix[0]),
        to_index,
        alu(BPF_RSH, 15),
        xor_index,
        statement(BPF_LDX | BPF_W | BPF_MEM, PORTS),
        xor_index,
        alu(BPF_XOR, keys[1]),
        alu(BPF_MUL, mix[1]),
        to_index,
        alu(BPF_RSH, 13),
        xor_index,
        alu(BPF_MUL, mix[0]),
        alu(BPF_RSH, 16),
        alu(BPF_MOD, shards),
        statement(BPF_RET | BPF_A, 0),
    ];
    // The kernel wants memory to be written on every way to where it is read, in the order of the
    // instructions, returns included.
    let other_version = [unless(BPF_JEQ, 6, [1, 0]), v6].concat();
    let over = statement(BPF_JMP | BPF_JA, other_version.len() as u32);
    let version_4 = when(BPF_JEQ, 4, &[v4, vec![over]].concat());
    [vec![load(BPF_B, 0), alu(BPF_RSH, 4)], version_4, other_version, hash].concat()
}

#[cfg(all(test, feature = "af-packet"))]
mod tests {
    use super::program;
    use crate::sys::filter::attach_filter;
    use ackline_tcp_core::RxPacket;
    use ackline_tcp_core::steering::Steering;
    use ackline_tcp_core::wire::{HeaderBuf, TcpHeader, TxChecksumMode, emit_tcp};
    use std::net::SocketAddr;
    use std::os::unix::net::UnixDatagram;

    /// The program in the kernel, as the filter of a socket whose messages are packets: it keeps as
    /// many bytes as the number of the owner.
    struct Kernel {
        near: UnixDatagram,
        far: UnixDatagram,
    }

    impl Kernel {
        fn new(steering: &Steering) -> Self {
            let (near, far) = UnixDatagram::pair().expect("a pair");
            near.set_nonblocking(true).expect("non-blocking");
            attach_filter(&near, &mut program(&steering.terms())).expect("a program that the kernel accepts");
            Self { near, far }
        }

        fn owner(&self, packet: &[u8]) -> usize {
            self.far.send(packet).expect("sent");
            self.near.recv(&mut [0; 2048]).unwrap_or(0)
        }
    }

    fn segment(from: &str, to: &str) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().expect("one"), to.parse().expect("one"));
        let (mut buf, payload) = (HeaderBuf::new(), [0; 64]);
        emit_tcp(&TcpHeader::new(from, to), [&payload, &[]], TxChecksumMode::Complete, &mut buf)
            .expect("small");
        [buf.as_slice(), &payload].concat()
    }

    #[test]
    fn the_kernel_computes_the_owners_of_segments() {
        for shards in [2, 3, 64] {
            let steering = Steering::new(shards, &[9; 32]);
            let kernel = Kernel::new(&steering);
            let mut seen = vec![0; shards];
            for port in 1..400 {
                for (from, to) in [
                    (format!("192.0.2.{}:{port}", port % 200), "198.51.100.5:443"),
                    (format!("[2001:db8:{port}::{port:x}]:{}", 60_000 - port), "[2001:db8::5]:80"),
                ] {
                    let packet = segment(&from, to);
                    let owner = steering.shard_for(&RxPacket::new(&packet));
                    assert_eq!(kernel.owner(&packet), owner, "{from} of {shards}");
                    seen[owner] += 1;
                }
            }
            assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
        }
    }

    #[test]
    fn what_it_cannot_tell_is_the_first_queues() {
        let steering = Steering::new(64, &[9; 32]);
        let kernel = Kernel::new(&steering);
        for (from, to) in [("192.0.2.1:1000", "192.0.2.5:80"), ("[2001:db8::1]:1000", "[2001:db8::5]:80")] {
            let packet = segment(from, to);
            assert_ne!(kernel.owner(&packet), 0, "the key is chosen so");
            let is_v4 = packet[0] >> 4 == 4;
            let with = |at: usize, value: u8| {
                let mut packet = packet.clone();
                packet[at] = value;
                kernel.owner(&packet)
            };
            assert_eq!(with(if is_v4 { 9 } else { 6 }, 17), 0, "UDP");
            assert_eq!(with(0, 0), 0, "ARP");
            assert_eq!(with(0, 0x55), 0, "of no version");
            if is_v4 {
                assert_eq!(with(6, 0x20), 0, "the first fragment");
                assert_eq!(with(7, 1), 0, "a later fragment");
            }
            for length in 1..if is_v4 { 24 } else { 44 } {
                assert_eq!(kernel.owner(&packet[..length]), 0, "{length} bytes");
            }
        }
    }

    #[test]
    fn options_of_the_header_are_passed_over() {
        let steering = Steering::new(64, &[9; 32]);
        let mut packet = segment("192.0.2.1:1000", "192.0.2.5:80");
        packet.splice(20..20, [1; 8]);
        packet[0] = 0x47;
        let owner = steering.shard_for(&RxPacket::new(&packet));
        assert_eq!(Kernel::new(&steering).owner(&packet), owner);
        assert_ne!(owner, 0, "the key is chosen so");
    }
}
