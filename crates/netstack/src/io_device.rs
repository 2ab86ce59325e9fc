//! A device over what reads and writes one IP packet per call, like the TUN devices of most crates.

use crate::queue::Sender;
use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest IP packet.
const LONGEST: usize = 65_535;
/// Length of the packet information in front of a packet.
const INFORMATION: usize = 4;

pub(crate) struct IoDevice<D> {
    device: D,
    mtu: u32,
    /// Each packet has four bytes with its protocol in front of it.
    has_information: bool,
    /// What has been read, `read` bytes of it; 0: nothing.
    buffer: Vec<u8>,
    read: usize,
    /// A packet that the device had no room for.
    unsent: Vec<u8>,
    /// Takes what is no IP packet.
    unknown: Sender<Vec<u8>>,
    /// The task that waited for the device last. Every call to the device names it, whichever task
    /// makes it: a device remembers only the latest for each direction.
    waiting: Waker,
    stats: DeviceStats,
}

impl<D: AsyncRead + AsyncWrite + Unpin> IoDevice<D> {
    pub(crate) fn new(device: D, mtu: u32, has_information: bool, unknown: Sender<Vec<u8>>) -> Self {
        let buffer = vec![0; LONGEST + INFORMATION];
        Self {
            device,
            mtu,
            has_information,
            buffer,
            read: 0,
            unsent: vec![],
            unknown,
            waiting: Waker::noop().clone(),
            stats: DeviceStats::default(),
        }
    }

    const fn prefix(&self) -> usize {
        if self.has_information { INFORMATION } else { 0 }
    }

    /// Reads a packet, unless one waits.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.read == 0 {
            let mut buffer = ReadBuf::new(&mut self.buffer);
            ready!(Pin::new(&mut self.device).poll_read(cx, &mut buffer))?;
            let length = buffer.filled().len();
            if length == 0 {
                let why = "the device has come to its end";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
            }
            let packet = self.buffer.get(self.prefix()..length).unwrap_or_default();
            if is_ip(packet) {
                self.read = length;
            } else {
                self.stats.rx_malformed += 1;
                // Beyond the queue's limit they are lost, which bounds the memory that they take.
                let _ = self.unknown.try_send(packet.to_vec());
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the packet that waits, if any.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let outcome = ready!(Pin::new(&mut self.device).poll_write(cx, &self.unsent));
        let length = self.unsent.len();
        self.unsent.clear();
        match outcome {
            Ok(written) if written == length => {
                self.stats.tx_packets += 1;
                self.stats.tx_bytes += (length - self.prefix()) as u64;
                Poll::Ready(Ok(()))
            }
            Ok(_) => {
                self.stats.tx_errors += 1;
                Poll::Ready(Err(io::Error::new(io::ErrorKind::WriteZero, "a packet was written in part")))
            }
            Err(error) => {
                self.stats.tx_errors += 1;
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<D: AsyncRead + AsyncWrite + Unpin + Send> Device for IoDevice<D> {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps::plain(self.mtu)
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let waiting = self.waiting.clone();
        match self.poll_fill(&mut Context::from_waker(&waiting)) {
            Poll::Ready(outcome) => outcome?,
            Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
        }
        let prefix = self.prefix();
        let length = std::mem::take(&mut self.read);
        self.stats.rx_packets += 1;
        self.stats.rx_bytes += (length - prefix) as u64;
        Ok(RxPacket::new(self.buffer.get(prefix..length).unwrap_or_default()))
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let &OutgoingPacket { header, .. } = packet;
        if packet.length() > self.mtu as usize {
            self.stats.tx_errors += 1;
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the packet is larger than the MTU"));
        }
        let waiting = self.waiting.clone();
        let cx = &mut Context::from_waker(&waiting);
        // An error is that of the earlier packet, which is lost.
        if self.poll_drain(cx).is_pending() {
            self.stats.tx_full += 1;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.has_information {
            let is_ipv4 = header.first().is_some_and(|first| first >> 4 == 4);
            self.unsent.extend_from_slice(&information(is_ipv4));
        }
        packet.append_to(&mut self.unsent);
        match self.poll_drain(cx) {
            Poll::Ready(outcome) => outcome,
            // It is sent before the next one, by the task that waits.
            Poll::Pending => Ok(()),
        }
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waiting.clone_from(cx.waker());
        // The task that reads also sends the packet that waits.
        let _ = self.poll_drain(cx);
        self.poll_fill(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waiting.clone_from(cx.waker());
        // The packet's error is no reason to give up the device.
        self.poll_drain(cx).map(|_| Ok(()))
    }

    fn stats(&self) -> DeviceStats {
        self.stats
    }
}

/// True if it begins with an IP header whose stated length is there.
fn is_ip(packet: &[u8]) -> bool {
    let field = |at: usize| packet.get(at).zip(packet.get(at + 1)).map(|(&a, &b)| u16::from_be_bytes([a, b]));
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
            let total = field(2).map_or(0, usize::from);
            header >= 20 && total >= header && total <= packet.len()
        }
        Some(6) => {
            packet.len() >= 40 && field(4).is_some_and(|length| packet.len() >= 40 + usize::from(length))
        }
        _ => false,
    }
}

/// What stands in front of a packet: the EtherType after two bytes of flags on Linux, the address
/// family elsewhere.
const fn information(is_ipv4: bool) -> [u8; INFORMATION] {
    let number: u16 = if cfg!(any(target_os = "macos", target_os = "ios")) {
        if is_ipv4 { 2 } else { 30 }
    } else if cfg!(target_os = "freebsd") {
        if is_ipv4 { 2 } else { 28 }
    } else if is_ipv4 {
        0x0800
    } else {
        0x86dd
    };
    let [high, low] = number.to_be_bytes();
    [0, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::queue;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// An IPv4 packet without content.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[3]) = (0x45, 20);
        packet
    }

    #[tokio::test]
    async fn packets_have_information_in_front_of_them_and_what_is_no_packet_goes_elsewhere() {
        let (near, mut far) = tokio::io::duplex(1000);
        let (unknown, received) = queue(4);
        let mut device = IoDevice::new(near, 1500, true, unknown);
        assert_eq!(device.try_recv().expect_err("nothing").kind(), io::ErrorKind::WouldBlock);
        far.write_all(&[&[0, 0, 8, 0], &packet()[..]].concat()).await.expect("written");
        poll_fn(|cx| device.poll_readable(cx)).await.expect("readable");
        assert_eq!(device.try_recv().expect("a packet").head, packet());

        far.write_all(&[0, 0, 8, 0, 0x25, 1, 2]).await.expect("written");
        assert_eq!(device.try_recv().expect_err("no IP").kind(), io::ErrorKind::WouldBlock);
        assert_eq!(poll_fn(|cx| received.poll_next(cx)).await, Some(vec![0x25, 1, 2]));
        assert_eq!(device.stats().rx_malformed, 1);

        device.try_send(&OutgoingPacket::whole(&packet())).expect("sent");
        let mut sent = [0; 24];
        far.read_exact(&mut sent).await.expect("read");
        assert_eq!(sent[4..], packet());
        #[cfg(target_os = "linux")]
        assert_eq!(sent[..4], [0, 0, 8, 0]);
    }

    #[tokio::test]
    async fn a_packet_for_which_there_was_no_room_leaves_before_the_next() {
        // The pipe has room for one packet.
        let (near, mut far) = tokio::io::duplex(20);
        let mut device = IoDevice::new(near, 1500, false, queue(1).0);
        let mut send = |ttl: u8| {
            let mut packet = packet();
            packet[8] = ttl;
            device.try_send(&OutgoingPacket::whole(&packet)).map_err(|error| error.kind())
        };
        assert_eq!((send(1), send(2), send(3)), (Ok(()), Ok(()), Err(io::ErrorKind::WouldBlock)));
        let mut first = [0; 20];
        far.read_exact(&mut first).await.expect("read");
        poll_fn(|cx| device.poll_writable(cx)).await.expect("writable");
        let mut second = [0; 20];
        far.read_exact(&mut second).await.expect("read");
        assert_eq!((first[8], second[8]), (1, 2));
        drop(far);
        assert_eq!(device.try_recv().expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
    }
}
