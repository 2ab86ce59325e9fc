//! The least that can exchange super-packets with the kernel's TCP: constant data, one ACK for what was read in
//! one go, no timers but one against a standstill, no buffers, nothing checked.

use super::{KERNEL, OTHER, Outcome, PORT, Rate, join, kernel_reads, kernel_writes, tun_config};
use ackline_runtime::Device as _;
use ackline_runtime::device::tun::Tun;
use ackline_runtime::timer;
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    HeaderBuf, TcpFlags, TcpHeader, TcpOptions, Transport, TxChecksumMode, emit_tcp, parse,
};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU16;
use std::time::Duration;

/// Of an MTU of 1500.
const MSS: u16 = 1460;
/// The most segments whose super-packet stays below 64 KiB.
const SEGMENTS: usize = (65_535 - 40) / MSS as usize;
const SUPER_PAYLOAD: usize = SEGMENTS * MSS as usize;
/// Super-packets that are different memory: about 4 MiB, since a TCP must keep what is not acknowledged yet, and
/// cannot send what is in the cache anyway.
const RING: usize = 64;
/// What is offered to the kernel: 1 GiB.
const WINDOW_SCALE: u8 = 14;
/// Packets read in one go: an ACK for every so many, so that the kernel never waits for one.
const BATCH: usize = 4;
/// After so long without an answer everything is sent again.
const STANDSTILL: Duration = Duration::from_millis(200);

pub(super) fn sends(length: Duration) -> Outcome<Rate> {
    let tun = Tun::create(&tun_config())?;
    let listener = TcpListener::bind((KERNEL, PORT))?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| kernel_reads(&listener, length));
        let loops = runtime()?.block_on(async {
            let mut bare = Bare::new(tun);
            bare.connect().await?;
            bare.send().await
        });
        let rate = join(reader);
        loops?;
        rate
    })
}

pub(super) fn receives(length: Duration) -> Outcome<Rate> {
    let tun = Tun::create(&tun_config())?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| kernel_writes((OTHER, PORT).into()));
        let rate = runtime()?.block_on(async {
            let mut bare = Bare::new(tun);
            bare.accept().await?;
            bare.receive(length).await
        });
        join(writer)?;
        Ok(rate?)
    })
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// What a loop needs to know of a segment.
struct Segment {
    flags: TcpFlags,
    seq: SeqNum,
    ack: SeqNum,
    window: u32,
    len: u32,
    scale: u8,
    ports: (u16, u16),
}

struct Bare {
    tun: Tun,
    local: SocketAddr,
    remote: SocketAddr,
    snd_una: SeqNum,
    snd_nxt: SeqNum,
    rcv_nxt: SeqNum,
    /// Of the kernel.
    window: u32,
    scale: u8,
}

impl Bare {
    fn new(tun: Tun) -> Self {
        Self {
            tun,
            local: (OTHER, PORT + 1).into(),
            remote: (KERNEL, PORT).into(),
            snd_una: SeqNum(1),
            snd_nxt: SeqNum(1),
            rcv_nxt: SeqNum(0),
            window: 0,
            scale: 0,
        }
    }

    async fn connect(&mut self) -> io::Result<()> {
        self.emit(TcpFlags::SYN, self.snd_nxt, &[])?;
        self.snd_nxt += 1;
        loop {
            let segment = self.next().await?;
            if segment.flags.contains(TcpFlags::SYN | TcpFlags::ACK) {
                self.scale = segment.scale;
                self.window = segment.window;
                self.snd_una = self.snd_nxt;
                self.rcv_nxt = segment.seq + 1;
                return self.emit(TcpFlags::ACK, self.snd_nxt, &[]);
            }
        }
    }

    async fn accept(&mut self) -> io::Result<()> {
        let syn = loop {
            let segment = self.next().await?;
            if segment.flags.contains(TcpFlags::SYN) {
                break segment;
            }
        };
        self.remote.set_port(syn.ports.0);
        self.local.set_port(syn.ports.1);
        self.rcv_nxt = syn.seq + 1;
        self.emit(TcpFlags::SYN | TcpFlags::ACK, self.snd_nxt, &[])?;
        self.snd_nxt += 1;
        Ok(())
    }

    /// Sends until the kernel has closed its end.
    async fn send(&mut self) -> io::Result<()> {
        let ring = vec![0; RING * SUPER_PAYLOAD];
        let mut pieces = ring.chunks_exact(SUPER_PAYLOAD).cycle();
        let len = SUPER_PAYLOAD as u32;
        loop {
            while self.snd_nxt.distance_from(self.snd_una) + len <= self.window {
                let Some(data) = pieces.next() else { break };
                match self.emit(TcpFlags::ACK, self.snd_nxt, data) {
                    Ok(()) => self.snd_nxt += len,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                // What the packet caused is there: the kernel has taken it in within the call.
                while let Some(segment) = self.try_next()? {
                    if self.acknowledged(&segment) {
                        return Ok(());
                    }
                }
            }
            match tokio::time::timeout(STANDSTILL, self.next()).await {
                Ok(segment) => {
                    if self.acknowledged(&segment?) {
                        return Ok(());
                    }
                }
                Err(_) => self.snd_nxt = self.snd_una,
            }
        }
    }

    /// Books an ACK; true where it is the end.
    fn acknowledged(&mut self, segment: &Segment) -> bool {
        if segment.flags.intersects(TcpFlags::RST | TcpFlags::FIN) {
            return true;
        }
        if segment.ack.within(self.snd_una, self.snd_nxt + 1) {
            self.snd_una = segment.ack;
            self.window = segment.window << self.scale;
        }
        false
    }

    /// Receives for `length` from the first byte on, then resets.
    async fn receive(&mut self, length: Duration) -> io::Result<Rate> {
        let mut start = None;
        let mut bytes = 0;
        loop {
            let mut unacknowledged = 0;
            let mut segment = Some(self.next().await?);
            while let Some(Segment { seq, len, .. }) = segment {
                if seq == self.rcv_nxt {
                    self.rcv_nxt += len;
                    bytes += u64::from(len);
                }
                if len > 0 {
                    unacknowledged += 1;
                    if unacknowledged == BATCH {
                        break;
                    }
                }
                segment = self.try_next()?;
            }
            if unacknowledged > 0 {
                self.emit(TcpFlags::ACK, self.snd_nxt, &[])?;
                let start = *start.get_or_insert_with(|| {
                    bytes = 0;
                    timer::now()
                });
                let elapsed = Duration::from(timer::now().since(start));
                if elapsed >= length {
                    self.emit(TcpFlags::RST | TcpFlags::ACK, self.snd_nxt, &[])?;
                    return Ok(Rate { bytes, seconds: elapsed.as_secs_f64() });
                }
            }
        }
    }

    fn emit(&mut self, flags: TcpFlags, seq: SeqNum, data: &[u8]) -> io::Result<()> {
        let options = if flags.contains(TcpFlags::SYN) {
            TcpOptions { mss: Some(MSS), window_scale: Some(WINDOW_SCALE), ..TcpOptions::NONE }
        } else {
            TcpOptions::NONE
        };
        let header = TcpHeader {
            seq,
            ack: self.rcv_nxt,
            flags,
            window: u16::MAX,
            options,
            ..TcpHeader::new(self.local, self.remote)
        };
        let mut buf = HeaderBuf::new();
        let emitted =
            emit_tcp(&header, [data, &[]], TxChecksumMode::Partial, &mut buf).map_err(io::Error::other)?;
        let size = if data.is_empty() { None } else { NonZeroU16::new(MSS) };
        self.tun.try_send(buf.as_slice(), [data, &[]], size, emitted.checksum)
    }

    fn try_next(&mut self) -> io::Result<Option<Segment>> {
        loop {
            let packet = match self.tun.try_recv() {
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
                    ports: (segment.src_port, segment.dst_port),
                }));
            }
        }
    }

    async fn next(&mut self) -> io::Result<Segment> {
        loop {
            if let Some(segment) = self.try_next()? {
                return Ok(segment);
            }
            poll_fn(|cx| self.tun.poll_readable(cx)).await?;
        }
    }
}
