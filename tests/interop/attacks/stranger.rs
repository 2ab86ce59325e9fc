//! A host that says anything to the stack, in anybody's name, and sees all that the stack sends.

use super::super::support::STACK4;
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    HeaderBuf, RxChecksum, RxPacket, TcpFlags, TcpHeader, TcpOptions, Transport, TxChecksumMode, emit_tcp,
    parse,
};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

/// IPv4 in the header of an Ethernet frame, as `socket` wants it: in network byte order.
const ETH_P_IP: u32 = (0x0800_u16).to_be() as u32;

/// The sockets of a stranger, in the namespace of the thread that made them.
#[derive(Debug)]
pub(super) struct Stranger {
    mouth: OwnedFd,
    ears: OwnedFd,
    buffer: Vec<u8>,
}

/// What the stack has said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) to: SocketAddr,
    pub(super) seq: SeqNum,
    pub(super) flags: TcpFlags,
    /// Octets of data.
    pub(super) len: u32,
}

impl Stranger {
    pub(super) fn new() -> Self {
        let socket = |family, kind, protocol| {
            rustix::net::socket_with(family, kind, SocketFlags::NONBLOCK, Some(protocol))
                .expect("a raw socket")
        };
        let everything = Protocol::from_raw(NonZeroU32::new(ETH_P_IP).expect("not zero"));
        Self {
            // With headers of its own (raw(7)).
            mouth: socket(AddressFamily::INET, SocketType::RAW, ipproto::RAW),
            ears: socket(AddressFamily::PACKET, SocketType::DGRAM, everything),
            buffer: vec![0; 65_536],
        }
    }

    /// Says it. A full queue loses it, as a network would.
    pub(super) fn say(&self, header: &TcpHeader<'_>, data: &[u8]) {
        let mut buf = HeaderBuf::new();
        emit_tcp(header, [data, &[]], TxChecksumMode::Complete, &mut buf).expect("a packet");
        let packet = [buf.as_slice(), data].concat();
        match rustix::net::sendto(
            &self.mouth,
            &packet,
            SendFlags::empty(),
            &SocketAddr::new(header.dst.ip(), 0),
        ) {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS) => {}
            Err(other) => panic!("send: {other}"),
        }
    }

    /// The next segment that the stack has sent, if there is one.
    pub(super) fn hear(&mut self) -> Option<Segment> {
        loop {
            let len = match rustix::net::recv(&self.ears, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((len, _)) => len,
                Err(Errno::AGAIN) => return None,
                Err(other) => panic!("receive: {other}"),
            };
            // A super-packet's checksum is not complete.
            let packet = RxPacket::new(&self.buffer[..len]).with_checksum(RxChecksum::Trusted);
            if let Ok(datagram) = parse(&packet)
                && let Transport::Tcp(segment) = datagram.transport
            {
                return Some(Segment {
                    to: SocketAddr::new(datagram.ip.dst, segment.dst_port),
                    seq: segment.seq,
                    flags: segment.flags,
                    len: segment.payload.len() as u32,
                });
            }
        }
    }

    /// What the stack sends next to `to`; everything else is forgotten.
    pub(super) async fn hear_at(&mut self, to: SocketAddr) -> Segment {
        loop {
            match self.hear() {
                Some(heard) if heard.to == to => return heard,
                Some(_) => {}
                None => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
            }
        }
    }

    /// Opens a connection to `port`, in the name of `own`.
    pub(super) async fn open(&mut self, own: SocketAddr, port: u16, options: TcpOptions) -> Liar {
        let mut liar = Liar::at(own, SocketAddr::new(STACK4, port));
        let mut syn = liar.header(TcpFlags::SYN);
        (syn.seq, syn.options) = (SeqNum(0), options);
        self.say(&syn, &[]);
        let answer = self.hear_at(own).await;
        assert!(answer.flags.contains(TcpFlags::SYN.union(TcpFlags::ACK)), "{answer:?}");
        liar.ack = answer.seq + 1;
        self.say(&liar.header(TcpFlags::ACK), &[]);
        liar
    }
}

/// A stranger's side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liar {
    pub(super) own: SocketAddr,
    pub(super) stack: SocketAddr,
    /// The next number of its own.
    pub(super) seq: SeqNum,
    /// What it acknowledges.
    pub(super) ack: SeqNum,
}

impl Liar {
    /// Its first octet is number 1.
    pub(super) const fn at(own: SocketAddr, stack: SocketAddr) -> Self {
        Self { own, stack, seq: SeqNum(1), ack: SeqNum(0) }
    }

    /// A segment without data, with a window of 65,535.
    pub(super) fn header(&self, flags: TcpFlags) -> TcpHeader<'static> {
        let mut header = TcpHeader::new(self.own, self.stack);
        (header.seq, header.ack, header.flags, header.window) = (self.seq, self.ack, flags, u16::MAX);
        header
    }
}

/// The `index`th stranger's address and port: nobody's on this network, and no answer comes from
/// there.
pub(super) fn somewhere(index: u32) -> SocketAddr {
    // 198.18.0.0/15: RFC 2544, for benchmarks.
    let address = Ipv4Addr::from(0xc612_0000 | (index & 0x1_ffff));
    SocketAddr::new(IpAddr::V4(address), 1_024 + (index >> 17) as u16)
}
