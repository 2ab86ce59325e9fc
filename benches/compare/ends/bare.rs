//! The least that can exchange packets with the kernel's TCP: constant data, one ACK for what was
//! read in one go, no timers but one against a standstill, no buffers, nothing checked beside what
//! a packet's reader checks.
//!
//! What a device can carry in one thread's time is this; a stack on it can only be slower.

use super::{Meter, runtime};
use crate::case::Act;
use crate::net::{HERE, PEER, PORT};
use ackline_runtime::device::{Device, OutgoingPacket};
use ackline_runtime::timer;
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, TcpOptions, Transport, TxChecksumMode, emit_tcp, parse,
};
use std::future::poll_fn;
use std::io;
use std::num::NonZeroU16;
use std::time::Duration;

/// Of an MTU of 1500.
const MSS: u16 = 1460;
/// The most segments whose super-packet stays below 64 KiB.
const SEGMENTS: usize = (65_535 - 40) / MSS as usize;
/// About 4 MiB of different memory is sent from, since a TCP must keep what is not acknowledged
/// yet, and cannot send what is in the cache anyway.
const RING: usize = 64 * SEGMENTS * MSS as usize;
/// What is offered to the kernel is 65,535 bytes shifted by this: 1 GiB if it sends super-packets.
const WINDOW_SCALE: u8 = 14;
/// 512 KiB if it sends single packets: fewer than the 500 that wait in a TUN device before it drops
/// one, from which a loop without selective acknowledgments recovers badly.
const PLAIN_WINDOW_SCALE: u8 = 3;
/// Bytes read in one go: an ACK for every so many, so that the kernel never waits for one.
const BATCH: u32 = 4 * SEGMENTS as u32 * MSS as u32;
/// Packets sent between two looks at what came back: of 64 KiB, of single ones.
const SUPER_BURST: usize = 8;
const BURST: usize = 16;
/// After so long without an answer everything is sent again.
const STANDSTILL: Duration = Duration::from_millis(200);
const NEAR_PORT: u16 = 7001;

/// The measured end.
pub(crate) fn connect(device: Box<dyn Device>, act: Act, meter: &Meter) -> io::Result<()> {
    runtime()?.block_on(async {
        let mut bare = Bare::new(device);
        bare.connect().await?;
        match act {
            Act::Send { .. } => bare.send().await,
            Act::Receive { .. } => bare.receive(meter).await,
            Act::RoundTrip { .. } => bare.ping(meter).await,
            Act::Open { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    })
}

/// What a loop needs to know of a segment.
struct Segment {
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    window: u32,
    len: u32,
    scale: u8,
}

struct Bare {
    device: Box<dyn Device>,
    checksum: TxChecksumMode,
    /// Payload bytes of one packet.
    piece: usize,
    snd_una: SeqNum,
    snd_nxt: SeqNum,
    rcv_nxt: SeqNum,
    /// Of the kernel.
    window: u32,
    scale: u8,
}

impl Bare {
    fn new(device: Box<dyn Device>) -> Self {
        let caps = device.caps();
        let super_packets = caps.max_super_packet > 0;
        Self {
            device,
            checksum: if caps.tx_checksum_offload {
                TxChecksumMode::Partial
            } else {
                TxChecksumMode::Complete
            },
            piece: if super_packets { SEGMENTS * usize::from(MSS) } else { MSS.into() },
            snd_una: SeqNum(1),
            snd_nxt: SeqNum(1),
            rcv_nxt: SeqNum(0),
            window: 0,
            scale: 0,
        }
    }

    async fn connect(&mut self) -> io::Result<()> {
        // A device may have to find the neighbour first, and drop what is sent meanwhile.
        loop {
            self.emit(TcpFlags::SYN, self.snd_nxt, &[])?;
            let Ok(segment) = tokio::time::timeout(STANDSTILL, self.next()).await else { continue };
            let segment = segment?;
            if segment.flags.contains(TcpFlags::SYN | TcpFlags::ACK) {
                self.snd_nxt += 1;
                self.snd_una = self.snd_nxt;
                self.scale = segment.scale;
                self.window = segment.window;
                self.rcv_nxt = segment.seq + 1;
                return self.emit(TcpFlags::ACK, self.snd_nxt, &[]);
            }
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        let ring = vec![7; RING];
        let mut pieces = ring.chunks_exact(self.piece).cycle();
        let len = self.piece as u32;
        let burst = if self.piece > usize::from(MSS) { SUPER_BURST } else { BURST };
        loop {
            while self.has_room() {
                for data in pieces.by_ref().take(burst) {
                    if !self.has_room() {
                        break;
                    }
                    match self.emit(TcpFlags::ACK, self.snd_nxt, data) {
                        Ok(()) => self.snd_nxt += len,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            poll_fn(|cx| self.device.poll_writable(cx)).await?;
                            break;
                        }
                        Err(error) => return Err(error),
                    }
                }
                while let Some(segment) = self.try_next()? {
                    self.acknowledged(&segment)?;
                }
            }
            match tokio::time::timeout(STANDSTILL, self.next()).await {
                Ok(segment) => self.acknowledged(&segment?)?,
                Err(_) => self.snd_nxt = self.snd_una,
            }
        }
    }

    /// One more packet fits the kernel's window.
    fn has_room(&self) -> bool {
        self.snd_nxt.distance_from(self.snd_una) + self.piece as u32 <= self.window
    }

    fn acknowledged(&mut self, segment: &Segment) -> io::Result<()> {
        if segment.flags.intersects(TcpFlags::RST | TcpFlags::FIN) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if segment.ack.within(self.snd_una, self.snd_nxt + 1) {
            self.snd_una = segment.ack;
            self.window = segment.window << self.scale;
        }
        Ok(())
    }

    async fn receive(&mut self, meter: &Meter) -> io::Result<()> {
        loop {
            let (mut unacknowledged, mut taken) = (0, 0);
            let mut segment = Some(self.next().await?);
            while let Some(Segment { seq, len, .. }) = segment {
                if seq == self.rcv_nxt {
                    self.rcv_nxt += len;
                    taken += len;
                }
                unacknowledged += len;
                if unacknowledged >= BATCH {
                    break;
                }
                segment = self.try_next()?;
            }
            if unacknowledged > 0 {
                meter.add(taken.into());
                self.emit(TcpFlags::ACK, self.snd_nxt, &[])?;
            }
        }
    }

    async fn ping(&mut self, meter: &Meter) -> io::Result<()> {
        loop {
            let start = timer::now();
            self.emit(TcpFlags::ACK | TcpFlags::PSH, self.snd_nxt, &[7])?;
            self.snd_nxt += 1;
            loop {
                let segment = self.next().await?;
                if segment.len > 0 && segment.seq == self.rcv_nxt {
                    // The next byte carries the ACK.
                    self.rcv_nxt += segment.len;
                    break;
                }
            }
            meter.round_trip(timer::now().since(start));
        }
    }

    fn emit(&mut self, flags: TcpFlags, seq: SeqNum, data: &[u8]) -> io::Result<()> {
        let options = if flags.contains(TcpFlags::SYN) {
            let scale = if self.piece > usize::from(MSS) { WINDOW_SCALE } else { PLAIN_WINDOW_SCALE };
            TcpOptions { mss: Some(MSS), window_scale: Some(scale), ..TcpOptions::NONE }
        } else {
            TcpOptions::NONE
        };
        let header = TcpHeader {
            seq,
            ack: self.rcv_nxt,
            flags,
            window: u16::MAX,
            options,
            ..TcpHeader::new((HERE, NEAR_PORT).into(), (PEER, PORT).into())
        };
        let mut buf = HeaderBuf::new();
        let emitted = emit_tcp(&header, [data, &[]], self.checksum, &mut buf).map_err(io::Error::other)?;
        let size = if data.len() > usize::from(MSS) { NonZeroU16::new(MSS) } else { None };
        self.device.try_send(
            &OutgoingPacket::new(buf.as_slice(), [data, &[]])
                .with_segment_size(size)
                .with_checksum(emitted.checksum),
        )
    }

    fn try_next(&mut self) -> io::Result<Option<Segment>> {
        loop {
            let packet = match self.device.try_recv() {
                Ok(packet) => packet,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            let Ok(datagram) = parse(&packet) else { continue };
            if let Transport::Tcp(segment) = datagram.transport {
                return Ok(Some(Segment {
                    flags: segment.flags,
                    seq: segment.seq,
                    ack: segment.ack,
                    window: segment.window.into(),
                    len: segment.payload.len() as u32,
                    scale: segment.options.window_scale.unwrap_or(0).min(14),
                }));
            }
        }
    }

    async fn next(&mut self) -> io::Result<Segment> {
        loop {
            if let Some(segment) = self.try_next()? {
                return Ok(segment);
            }
            poll_fn(|cx| self.device.poll_readable(cx)).await?;
        }
    }
}
