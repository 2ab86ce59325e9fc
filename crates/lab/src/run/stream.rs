//! One direction of a TCP connection as the network sees it: its segments, and which bytes of the
//! stream have arrived.

use ackline_netsim::Packet;
use ackline_tcp_core::wire::TcpFlags;

/// The fields of a TCP segment that meters need.
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) syn: bool,
    pub(crate) ack: bool,
    pub(crate) payload: u32,
}

impl Segment {
    /// `None` if the packet holds no whole TCP header.
    pub(crate) fn read(packet: &Packet) -> Option<Self> {
        if let Some(header) = packet.fields() {
            let (syn, ack) = (header.flags.contains(TcpFlags::SYN), header.flags.contains(TcpFlags::ACK));
            let payload = packet.len().checked_sub(header.standard_len())? as u32;
            return Some(Self { seq: header.seq.0, syn, ack, payload });
        }
        let octets = packet.transport()?;
        let seq = u32::from_be_bytes(octets.get(4..8)?.try_into().ok()?);
        let (offset, flags) = (*octets.get(12)?, *octets.get(13)?);
        let payload = octets.len().checked_sub(usize::from(offset >> 4) * 4)? as u32;
        Some(Self { seq, syn: flags & 2 != 0, ack: flags & 16 != 0, payload })
    }
}

/// Which bytes of a stream have reached the receiving host. Each counts once, however often and in
/// whatever order it comes.
///
/// ```text
///   0 ........ next ...... [apart] .... [apart]
///   all arrived     missing
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// The sequence number of the SYN.
    isn: u32,
    /// All bytes before this one have arrived.
    next: u64,
    /// Ranges beyond a hole, ascending: first byte, and the one after the last.
    apart: Vec<(u64, u64)>,
}

impl Arrived {
    /// Nothing of the stream whose SYN has this number.
    pub(crate) const fn after_syn(isn: u32) -> Self {
        Self { isn, next: 0, apart: vec![] }
    }

    /// The sequence number of the SYN.
    pub(crate) const fn isn(&self) -> u32 {
        self.isn
    }

    /// Bytes that have arrived.
    pub(crate) fn bytes(&self) -> u64 {
        self.next + self.apart.iter().map(|(begin, end)| end - begin).sum::<u64>()
    }

    /// Takes in `payload` bytes from sequence number `seq` on, and returns how many of them are
    /// new.
    pub(crate) fn arrive(&mut self, seq: u32, payload: u32) -> u32 {
        // Sequence numbers wrap; what arrives is less than 2^31 away from the first missing byte.
        let first = self.isn.wrapping_add(1).wrapping_add(self.next as u32);
        let distance = i64::from(seq.wrapping_sub(first).cast_signed());
        let begin = self.next.saturating_add_signed(distance).max(self.next);
        let end = self.next.saturating_add_signed(distance + i64::from(payload)).max(begin);
        let low = self.apart.partition_point(|range| range.1 < begin);
        let high = self.apart.partition_point(|range| range.0 <= end);
        let touched = &self.apart[low..high];
        let known: u64 =
            touched.iter().map(|range| range.1.min(end).saturating_sub(range.0.max(begin))).sum();
        let whole =
            touched.iter().fold((begin, end), |whole, range| (whole.0.min(range.0), whole.1.max(range.1)));
        if whole.0 > self.next {
            if begin < end {
                self.apart.splice(low..high, [whole]);
            }
        } else {
            self.next = whole.1;
            self.apart.drain(low..high);
        }
        (end - begin - known) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once() {
        // The numbers wrap within the stream.
        let isn = 0_u32.wrapping_sub(26);
        let mut arrived = Arrived::after_syn(isn);
        let mut total = 0;
        for (begin, end, new) in [
            (0, 10, 10),
            (20, 30, 10),
            (5, 15, 5),
            (0, 30, 5),
            (0, 30, 0),
            (30, 31, 1),
            (50, 60, 10),
            (40, 50, 10),
            (45, 45, 0),
            (38, 38, 0),
        ] {
            let seq = isn.wrapping_add(1 + begin);
            assert_eq!(arrived.arrive(seq, end - begin), new, "{begin}..{end}");
            total += u64::from(new);
            assert_eq!(arrived.bytes(), total, "after {begin}..{end}");
        }
        assert_eq!(arrived, Arrived { isn, next: 31, apart: vec![(40, 60)] });
    }

    #[test]
    fn a_stream_may_be_longer_than_the_sequence_space() {
        let mut arrived = Arrived::after_syn(7);
        let piece = 1 << 30;
        for number in 0..9_u32 {
            assert_eq!(arrived.arrive(8_u32.wrapping_add(number.wrapping_mul(piece)), piece), piece);
        }
        assert_eq!(arrived.bytes(), 9 << 30);
    }
}
