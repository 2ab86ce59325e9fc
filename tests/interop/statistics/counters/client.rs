//! The peer of both: it says what the test wants, and knows the numbers of its connection.

use super::subject::{PLACE, Subject};
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    HeaderBuf, RxChecksum, RxPacket, TcpFlags, TcpHeader, TcpOptions, Timestamps, Transport, TxChecksumMode,
    emit_tcp, parse,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(super) const MSS: u16 = 1_000;

const ACK: TcpFlags = TcpFlags::ACK;

/// A client and its connection.
pub(super) struct Client<'a> {
    pub(super) subject: &'a mut dyn Subject,
    own: SocketAddr,
    /// The next number of its own, and what it acknowledges.
    pub(super) seq: SeqNum,
    pub(super) ack: SeqNum,
    /// Its timestamp, if it uses them.
    pub(super) clock: Option<u32>,
    sack: bool,
    /// The last TSval of the subject.
    echo: u32,
}

/// A segment of the subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) seq: SeqNum,
    pub(super) flags: TcpFlags,
    /// Octets of data.
    pub(super) len: u32,
}

impl<'a> Client<'a> {
    /// One that has not said anything.
    pub(super) fn new(subject: &'a mut dyn Subject) -> Self {
        let own = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 79, 0, 7)), 40_000);
        Self { subject, own, seq: SeqNum(5_000_000), ack: SeqNum(0), clock: None, sack: true, echo: 0 }
    }

    /// With timestamps.
    pub(super) fn stamped(self) -> Self {
        Self { clock: Some(3_000_000), ..self }
    }

    /// Without SACK.
    pub(super) fn plain(self) -> Self {
        Self { sack: false, ..self }
    }

    /// Says a segment that begins `seq` octets after the next number of its own, and acknowledges
    /// so much more than it has.
    pub(super) fn say_at(&mut self, flags: TcpFlags, seq: i32, ack: i32, len: usize) {
        let mut header = TcpHeader::new(self.own, PLACE);
        header.flags = flags;
        header.seq = SeqNum(self.seq.0.wrapping_add_signed(seq));
        if flags.contains(ACK) {
            header.ack = SeqNum(self.ack.0.wrapping_add_signed(ack));
        }
        header.window = u16::MAX;
        header.options = TcpOptions {
            timestamps: self.clock.map(|val| Timestamps { val, ecr: self.echo }),
            ..TcpOptions::NONE
        };
        if flags.contains(TcpFlags::SYN) {
            header.options.mss = Some(MSS);
            header.options.sack_permitted = self.sack;
        }
        let (mut buf, data) = (HeaderBuf::new(), vec![2; len]);
        emit_tcp(&header, [&data, &[]], TxChecksumMode::Complete, &mut buf).expect("a packet");
        self.subject.take(&[buf.as_slice(), &data].concat());
    }

    /// Says a segment at the next number of its own.
    pub(super) fn say(&mut self, flags: TcpFlags) {
        self.say_at(flags, 0, 0, 0);
    }

    /// What the subject says next.
    pub(super) fn hear(&mut self) -> Segment {
        let packet = self.subject.give();
        let packet = RxPacket::new(&packet).with_checksum(RxChecksum::Trusted);
        let datagram = parse(&packet).expect("a packet");
        let Transport::Tcp(segment) = datagram.transport else { panic!("no TCP") };
        if let Some(stamp) = segment.options.timestamps {
            self.echo = stamp.val;
        }
        Segment { seq: segment.seq, flags: segment.flags, len: segment.payload.len() as u32 }
    }

    /// Waits until the subject says something that `wanted` takes.
    pub(super) fn hear_until(&mut self, wanted: impl Fn(&Segment) -> bool) -> Segment {
        loop {
            let heard = self.hear();
            if wanted(&heard) {
                return heard;
            }
        }
    }

    /// Opens the connection up to the SYN-ACK.
    pub(super) fn begin(&mut self) {
        self.say(TcpFlags::SYN);
        let answer = self.hear();
        assert!(answer.flags.contains(TcpFlags::SYN.union(ACK)), "{answer:?}");
        self.seq += 1;
        self.ack = answer.seq + 1;
    }

    /// Opens the connection.
    pub(super) fn open(&mut self) {
        self.begin();
        self.say(ACK);
        self.subject.accept();
    }

    /// The subject has sent its FIN, which this acknowledges.
    pub(super) fn acknowledge_fin(&mut self) {
        let fin = self.hear_until(|heard| heard.flags.contains(TcpFlags::FIN));
        self.ack = fin.seq + fin.len + 1;
        self.say(ACK);
    }
}
