//! Packets without a connection: RSTs, ICMP messages, UDP datagrams, and ACKs that keep their
//! original numbers, while they wait for the device.

use super::Egress;
use crate::config::EndpointConfig;
use crate::conn::RstSpec;
use crate::error::ConnError;
use crate::four_tuple::FourTuple;
use crate::id::{ConnId, TxId, UdpId};
use crate::packet::{SendReason, TxPacket};
use crate::plan::Plan;
use crate::policy::sched::{Admission, Ask, ControlKind, Descriptor, DescriptorId, SegmentClass};
use crate::seq::SeqNum;
use crate::share::Cx;
use crate::table::Table;
use crate::time::Instant;
use crate::wire::{
    Ecn, HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, TcpFlags, TcpHeader, TxChecksum, UdpHeader,
    emit_icmp, emit_tcp, emit_udp, mark,
};
use alloc::boxed::Box;
use core::net::IpAddr;
use hashbrown::HashMap;

/// Maximum RSTs waiting for the device; more are dropped like those over the rate limit.
const MAX_WAITING_RESETS: usize = 256;

/// Maximum ACKs of records in TIME-WAIT and of half-open connections waiting for the device.
const MAX_WAITING_ANSWERS: usize = 256;

/// Maximum SYN-ACKs waiting for the device.
const MAX_WAITING_SYN_ACKS: usize = 1_024;

/// Maximum ICMP errors waiting for the device.
const MAX_WAITING_ERRORS: usize = 64;

/// Octets of an ICMP header.
const ICMP_HEADER: u32 = 8;

/// Owner of a packet without a connection, which is told, or charged, when the packet leaves.
pub(crate) trait Origins {
    /// Builds the SYN-ACK of the half-open connection `tuple`; `None` if it is not due any more.
    fn build_syn_ack(
        &self,
        cx: &Cx<'_>,
        tuple: &FourTuple,
        ts_offset: u32,
        buf: &mut HeaderBuf,
    ) -> Option<TxChecksum>;

    /// The SYN-ACK of `tuple` has left as it was built. True if it was a retransmission.
    fn syn_ack_left(&mut self, now: Instant, tuple: &FourTuple) -> bool;

    /// A datagram of `socket` with `len` bytes of data has left, or will not.
    fn datagram_left(&mut self, config: &EndpointConfig, socket: UdpId, len: usize);
}

/// A packet without a connection.
#[derive(Debug)]
pub(crate) enum Stray {
    /// An RST.
    Reset {
        /// Our address and the peer's.
        tuple: FourTuple,
        /// Its numbers.
        rst: RstSpec,
    },
    /// The SYN-ACK of a half-open connection, if it is still due when the device is ready.
    SynAck {
        /// Our address and the peer's.
        tuple: FourTuple,
    },
    /// A SYN-ACK with a cookie, as it was built when the SYN came.
    Cookie {
        /// Its headers.
        header: HeaderBuf,
        /// What the device must still do for its checksum.
        checksum: TxChecksum,
    },
    /// An answer to a ping, or an error.
    Icmp {
        /// Our address.
        src: IpAddr,
        /// Its destination.
        dst: IpAddr,
        /// The message.
        message: IcmpEmit,
        /// The quoted part of the packet that it answers.
        data: Box<[u8]>,
    },
    /// A UDP datagram.
    Datagram {
        /// Its socket, which may have been closed.
        socket: UdpId,
        /// Its headers.
        header: UdpHeader,
        /// Its data.
        data: Box<[u8]>,
    },
    /// A packet that the program has made.
    Packet {
        /// All of it.
        data: Box<[u8]>,
    },
    /// A pure ACK that keeps its numbers in the scheduler: it was built, and counted as sent, when
    /// it was queued.
    Ack {
        /// Its connection, whose scheduler [keeps numbers](crate::policy::sched::QueuedAcks::Kept);
        /// `None` for one that is half-open, or in TIME-WAIT, and only a record.
        conn: Option<ConnId>,
        /// Its headers.
        header: HeaderBuf,
        /// What the device must still do for its checksum.
        checksum: TxChecksum,
        /// Why it is sent.
        reason: SendReason,
    },
}

/// Waiting packets without a connection, by the serial numbers of their descriptors. All operations
/// are O(1), except for the end of a connection with ACKs among them.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    waiting: HashMap<u64, Stray>,
    /// The last queued ACK of each connection, if another one may replace it.
    replaceable: HashMap<ConnId, u64>,
    resets: usize,
    syn_acks: usize,
    echoes: usize,
    errors: usize,
    acks: usize,
    answers: usize,
    datagrams: usize,
    packets: usize,
    /// Octets that the waiting ICMP messages quote or echo, and of the data of datagrams and
    /// packets.
    quoted: usize,
}

impl Strays {
    /// True if another RST may wait.
    pub(crate) const fn has_room_for_reset(&self) -> bool {
        self.resets < MAX_WAITING_RESETS
    }

    /// True if another SYN-ACK may wait.
    pub(crate) const fn has_room_for_syn_ack(&self) -> bool {
        self.syn_acks < MAX_WAITING_SYN_ACKS
    }

    /// True if another echo reply may wait, with a limit of `backlog`.
    pub(crate) const fn has_room_for_echo(&self, backlog: usize) -> bool {
        self.echoes < backlog
    }

    /// True if another ICMP error may wait.
    pub(crate) const fn has_room_for_error(&self) -> bool {
        self.errors < MAX_WAITING_ERRORS
    }

    /// Packets of the program that wait.
    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    /// True if another ACK of a record may wait.
    pub(crate) const fn has_room_for_answer(&self) -> bool {
        self.answers < MAX_WAITING_ANSWERS
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.waiting.len() * size_of::<(u64, Stray)>() + self.quoted
    }

    fn insert(&mut self, serial: u64, stray: Stray) {
        self.quoted += stray.payload().len();
        *self.count_of(&stray) += 1;
        self.waiting.insert(serial, stray);
    }

    /// The connection and its queued packets are gone.
    pub(crate) fn remove_conn(&mut self, id: ConnId) {
        if self.acks > 0 {
            let before = self.waiting.len();
            self.waiting.retain(|_, stray| !matches!(stray, Stray::Ack { conn, .. } if *conn == Some(id)));
            self.acks -= before - self.waiting.len();
            self.replaceable.remove(&id);
        }
    }

    /// True if the packet with this serial number is one of these, and the scheduler may drop it.
    pub(crate) fn may_lose(&self, serial: u64) -> bool {
        self.get(serial).is_some_and(Stray::may_be_dropped)
    }

    /// True if the packet with this serial number is one of these.
    pub(crate) fn has(&self, serial: u64) -> bool {
        !self.waiting.is_empty() && self.waiting.contains_key(&serial)
    }

    fn get(&self, serial: u64) -> Option<&Stray> {
        self.waiting.get(&serial)
    }

    fn remove(&mut self, serial: u64) {
        let Some(stray) = self.waiting.remove(&serial) else { return };
        *self.count_of(&stray) -= 1;
        self.quoted -= stray.payload().len();
        if let Stray::Ack { conn: Some(conn), .. } = stray
            && self.replaceable.get(&conn) == Some(&serial)
        {
            self.replaceable.remove(&conn);
        }
    }

    /// Replaces the connection's last ACK with a plain one; false if that must stay.
    fn replace_ack(&mut self, id: ConnId, newer: &HeaderBuf, with: TxChecksum) -> bool {
        let last = self.replaceable.get(&id).and_then(|serial| self.waiting.get_mut(serial));
        match last {
            // The length is in the descriptor.
            Some(Stray::Ack { header, checksum, .. }) if header.len() == newer.len() => {
                header.clone_from(newer);
                *checksum = with;
                true
            }
            _ => false,
        }
    }

    /// The ACK under `serial` is the last one of its connection; `plain`: another one may replace
    /// it.
    fn note_ack(&mut self, id: ConnId, serial: u64, plain: bool) {
        if plain {
            self.replaceable.insert(id, serial);
        } else {
            self.replaceable.remove(&id);
        }
    }

    const fn count_of(&mut self, stray: &Stray) -> &mut usize {
        match stray {
            Stray::Reset { .. } => &mut self.resets,
            Stray::SynAck { .. } | Stray::Cookie { .. } => &mut self.syn_acks,
            Stray::Icmp { message: IcmpEmit::Error(_), .. } => &mut self.errors,
            Stray::Icmp { .. } => &mut self.echoes,
            Stray::Datagram { .. } => &mut self.datagrams,
            Stray::Packet { .. } => &mut self.packets,
            Stray::Ack { conn: Some(_), .. } => &mut self.acks,
            Stray::Ack { conn: None, .. } => &mut self.answers,
        }
    }
}

impl Stray {
    const fn class(&self) -> SegmentClass {
        match self {
            Self::Reset { .. } => SegmentClass::Control(ControlKind::Rst),
            Self::SynAck { .. } | Self::Cookie { .. } => SegmentClass::Control(ControlKind::Syn),
            Self::Icmp { .. } | Self::Datagram { .. } | Self::Packet { .. } => {
                SegmentClass::Control(ControlKind::Other)
            }
            Self::Ack { .. } => SegmentClass::PureAck,
        }
    }

    const fn reason(&self) -> SendReason {
        match self {
            Self::Reset { .. } => SendReason::Rst,
            Self::SynAck { .. } | Self::Cookie { .. } => SendReason::SynAck,
            Self::Icmp { message: IcmpEmit::Error(_), .. } => SendReason::IcmpError,
            Self::Icmp { .. } => SendReason::EchoReply,
            Self::Datagram { .. } => SendReason::Datagram,
            Self::Packet { .. } => SendReason::Packet,
            Self::Ack { reason, .. } => *reason,
        }
    }

    fn payload(&self) -> &[u8] {
        match self {
            Self::Reset { .. } | Self::SynAck { .. } | Self::Cookie { .. } | Self::Ack { .. } => &[],
            Self::Icmp { data, .. } | Self::Datagram { data, .. } | Self::Packet { data } => data,
        }
    }

    /// What follows the headers that were built.
    fn behind(&self, headers: usize) -> &[u8] {
        match self {
            Self::Packet { data } => data.get(headers..).unwrap_or_default(),
            _ => self.payload(),
        }
    }

    /// IP bytes, for pricing.
    fn ip_len(&self) -> u32 {
        let (upper, v4) = match self {
            Self::Reset { tuple, .. } | Self::SynAck { tuple } => (20, tuple.remote_ip().is_ipv4()),
            Self::Icmp { dst, data, .. } => (ICMP_HEADER + data.len() as u32, dst.is_ipv4()),
            Self::Cookie { header, .. } | Self::Ack { header, .. } => return header.len() as u32,
            Self::Datagram { header, data, .. } => return (header.len() + data.len()) as u32,
            Self::Packet { data } => return data.len() as u32,
        };
        upper + if v4 { 20 } else { 40 }
    }

    /// Its ECN codepoint.
    fn codepoint(&self) -> Ecn {
        match self {
            Self::Packet { data } => mark::codepoint(data),
            Self::Cookie { header, .. } | Self::Ack { header, .. } => mark::codepoint(header.as_slice()),
            Self::Reset { .. } | Self::SynAck { .. } | Self::Icmp { .. } | Self::Datagram { .. } => {
                Ecn::NotEct
            }
        }
    }

    /// False for a packet that the peer waits for however full the scheduler's queue is.
    const fn may_be_dropped(&self) -> bool {
        !matches!(self, Self::SynAck { .. } | Self::Cookie { .. })
    }

    /// Builds the packet; `None` if it is not due any more. SYN-ACKs of half-open connections are
    /// built by `syn_ack`.
    fn build(
        &self,
        host: &EndpointConfig,
        buf: &mut HeaderBuf,
        syn_ack: impl FnOnce(&FourTuple, &mut HeaderBuf) -> Option<TxChecksum>,
    ) -> Option<TxChecksum> {
        match *self {
            Self::SynAck { ref tuple } => syn_ack(tuple, buf),
            Self::Reset { ref tuple, rst } => {
                let mut header = TcpHeader::new(tuple.local(), tuple.remote());
                header.ttl = host.default_ttl;
                header.seq = rst.seq;
                header.flags = TcpFlags::RST;
                if let Some(ack) = rst.ack {
                    header.ack = ack;
                    header.flags |= TcpFlags::ACK;
                }
                Some(emit_tcp(&header, [&[], &[]], host.tx_checksum, buf).ok()?.checksum)
            }
            Self::Icmp { src, dst, message, ref data } => {
                emit_icmp(&IcmpHeader { src, dst, ttl: host.default_ttl, message }, [data, &[]], buf).ok()?;
                Some(TxChecksum::Complete)
            }
            Self::Datagram { ref header, ref data, .. } => {
                Some(emit_udp(header, [data, &[]], host.tx_checksum, buf).ok()?.checksum)
            }
            Self::Packet { ref data } => {
                buf.take_from(data);
                Some(TxChecksum::Complete)
            }
            Self::Cookie { ref header, checksum } | Self::Ack { ref header, checksum, .. } => {
                buf.clone_from(header);
                Some(checksum)
            }
        }
    }
}

impl Egress {
    /// Queues a packet without a connection; false if the scheduler drops it.
    pub(crate) fn push_stray(&mut self, cx: &mut Cx<'_>, stray: Stray) -> bool {
        let class = stray.class();
        let price = cx.config.pricing.price(stray.ip_len(), 0, 1);
        let admission = self.scheduler.admit(cx.now, &Ask::new(None, class, price));
        if admission == Admission::Dropped && stray.may_be_dropped() {
            cx.observe.counters.egress_dropped += 1;
            return false;
        }
        let serial = self.next_serial();
        let mut id = DescriptorId::new(serial, SeqNum(0), 0);
        id.reason = stray.reason();
        let mut descriptor = Descriptor::new(id, None, class, price);
        descriptor.ecn = stray.codepoint();
        self.strays.insert(serial, stray);
        self.push(cx.now, descriptor);
        true
    }

    /// Builds a connection's pure ACK to be sent later, and counts it as sent. Returns its
    /// acknowledgment number; `None` if it is not queued because there was no room (`dropped`), or
    /// because it replaced a waiting one (`thins`).
    ///
    /// A duplicate ACK, one with SACK blocks or ECE and one that reduces the window neither
    /// replaces another nor is replaced, and no ACK overtakes one of those: the peer counts and
    /// reads each of them (RFC 3449, section 5.2.1).
    pub(crate) fn stamp(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        (id, plan): (ConnId, &Plan),
        serial: u64,
        dropped: bool,
        thins: bool,
    ) -> Option<SeqNum> {
        let conn = table.slots.conn_mut(id.index)?;
        let mut header = HeaderBuf::new();
        let Ok(built) = conn.build(cx.now, cx.config, plan, cx.config.tx_checksum, &mut header) else {
            // No configuration and no peer can cause this; the connection cannot continue.
            conn.abort(&mut cx.conn(id), ConnError::Aborted);
            return None;
        };
        let plain = thins && conn.is_plain_ack(plan, &built);
        conn.sent(&mut cx.conn(id), plan, &built);
        let (checksum, reason) = (built.emitted.checksum, plan.reason);
        let strays = &mut self.strays;
        if plain && strays.replace_ack(id, &header, checksum) {
            cx.observe.counters.egress_thinned += 1;
            return None;
        }
        if dropped {
            cx.observe.counters.egress_dropped += 1;
            return None;
        }
        strays.insert(serial, Stray::Ack { conn: Some(id), header, checksum, reason });
        if thins {
            strays.note_ack(id, serial, plain);
        }
        Some(built.ack_number)
    }

    /// The scheduler has dropped a packet without a connection.
    pub(crate) fn lose_stray(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        origins: &mut impl Origins,
        descriptor: &Descriptor,
    ) {
        let serial = descriptor.id.serial;
        if let Some(Stray::Datagram { socket, data, .. }) = self.strays.get(serial) {
            origins.datagram_left(cx.config, *socket, data.len());
        }
        self.strays.remove(serial);
        if let Some(conn) = descriptor.conn {
            // It may have waited for nothing else.
            table.settle_later(conn);
        }
    }

    /// Builds a packet without a connection and offers it to the device. Returns its IP bytes;
    /// `None` if there is no such packet.
    pub(crate) fn emit_stray<E>(
        &mut self,
        table: &mut Table,
        cx: &mut Cx<'_>,
        origins: &mut impl Origins,
        descriptor: &Descriptor,
        emit: &mut impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let serial = descriptor.id.serial;
        let Some(stray) = self.strays.get(serial) else { return Ok(None) };
        let header = &mut self.header;
        let syn_ack = |tuple: &FourTuple, buf: &mut HeaderBuf| {
            origins.build_syn_ack(cx, tuple, table.isn.timestamp_offset(tuple), buf)
        };
        let datagram = match stray {
            Stray::Datagram { socket, data, .. } => Some((*socket, data.len())),
            _ => None,
        };
        let Some(checksum) = stray.build(cx.config, header, syn_ack) else {
            self.strays.remove(serial);
            if let Some((socket, len)) = datagram {
                origins.datagram_left(cx.config, socket, len);
            }
            return Ok(None);
        };
        if descriptor.ecn == Ecn::Ce {
            mark::mark(header.as_mut_slice());
        }
        let packet = TxPacket {
            fields: None,
            id: TxId(serial),
            header: header.as_slice(),
            payload: [stray.behind(header.len()), &[]],
            segment_size: None,
            checksum,
            conn: descriptor.conn,
            class: stray.class(),
            reason: stray.reason(),
        };
        let bytes = packet.len() as u64;
        let counters = &mut cx.observe.counters;
        if let Err(error) = emit(packet) {
            counters.tx_refused += 1;
            self.held = Some(*descriptor);
            return Err(error);
        }
        counters.ip_out_requests += 1;
        self.accounts.sent(descriptor.class, 1, bytes);
        match stray {
            Stray::Reset { .. } => {
                counters.tcp_out_rsts += 1;
                counters.tcp_out_segs += 1;
            }
            Stray::SynAck { tuple } => {
                if origins.syn_ack_left(cx.now, tuple) {
                    counters.tcp_retrans_segs += 1;
                    counters.tcp_syn_retrans += 1;
                } else {
                    counters.tcp_out_segs += 1;
                }
            }
            Stray::Icmp { message: IcmpEmit::Error(IcmpErrorKind::ParameterProblem { .. }), .. } => {
                counters.icmp_out_parm_probs += 1;
            }
            Stray::Icmp { message: IcmpEmit::Error(IcmpErrorKind::TimeExceeded { .. }), .. } => {
                counters.icmp_out_time_excds += 1;
            }
            Stray::Icmp { message: IcmpEmit::Error(_), .. } => counters.icmp_out_dest_unreachs += 1,
            Stray::Icmp { .. } => counters.icmp_out_echo_reps += 1,
            Stray::Cookie { .. } => counters.tcp_out_segs += 1,
            Stray::Datagram { .. } => counters.udp_out_datagrams += 1,
            Stray::Packet { .. } => counters.packets_sent += 1,
            // Counted when it was built.
            Stray::Ack { .. } => {}
        }
        self.strays.remove(serial);
        if let Some((socket, len)) = datagram {
            origins.datagram_left(cx.config, socket, len);
        }
        if let Some(conn) = descriptor.conn {
            // It may have waited for nothing else.
            table.settle_later(conn);
        }
        Ok(Some(bytes))
    }
}
