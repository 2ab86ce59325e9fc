//! Packets that a device reads one by one, each behind the one before in the same buffer.

use super::batch::{Gathered, MOST, RxBatch};
use super::{RxChecksum, RxPacket};
use std::io;
use std::num::NonZeroU16;

/// Bytes after which a batch that is read packet by packet ends: what has just been read is still
/// in the processor's cache when TCP copies it. A super-packet may be as long, and is a batch of
/// its own then.
pub(super) const WORTH: usize = 48 << 10;

/// Bytes of a cache line, at one of which each packet of such a batch begins.
const LINE: usize = 64;

/// A packet in a device's buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketSpan {
    /// Its first byte.
    pub(super) start: usize,
    /// One past its last.
    pub(super) end: usize,
    pub(super) segment_size: Option<NonZeroU16>,
    pub(super) checksum: RxChecksum,
}

impl PacketSpan {
    /// One packet as it is on a wire.
    #[cfg(any(test, feature = "tun-rs", all(target_os = "linux", feature = "tun-tap")))]
    pub(super) const fn plain(start: usize, end: usize) -> Self {
        Self { start, end, segment_size: None, checksum: RxChecksum::Verify }
    }

    pub(super) fn packet<'a>(&self, buffer: &'a [u8]) -> RxPacket<'a> {
        let &Self { start, end, segment_size, checksum } = self;
        let head = buffer.get(start..end).unwrap_or_default();
        RxPacket::new(head).with_segment_size(segment_size).with_checksum(checksum)
    }
}

/// Packets one behind the other in a device's buffer.
pub(super) struct PacketSpans {
    spans: [PacketSpan; MOST],
    count: usize,
    /// There are no more: the next read would say `WouldBlock`.
    pub(super) drained: bool,
}

impl PacketSpans {
    /// Reads up to `most` packets, but at least one, and until they take [`WORTH`] bytes. `read`
    /// puts the next packet behind the first bytes of the buffer, whose number it is given.
    ///
    /// # Errors
    /// That of the first read. A later one ends the batch, and comes again if it lasts.
    pub(super) fn read(
        most: usize,
        mut read: impl FnMut(usize) -> io::Result<PacketSpan>,
    ) -> io::Result<Self> {
        let first = read(0)?;
        let mut these = Self { spans: [first; MOST], count: 1, drained: false };
        let mut at = first.end.next_multiple_of(LINE);
        for span in these.spans.iter_mut().take(most).skip(1) {
            if at > WORTH {
                break;
            }
            match read(at) {
                Ok(next) => *span = next,
                Err(error) => {
                    these.drained = error.kind() == io::ErrorKind::WouldBlock;
                    break;
                }
            }
            these.count += 1;
            at = span.end.next_multiple_of(LINE);
        }
        Ok(these)
    }

    /// The first packet, in this buffer.
    pub(super) fn first<'a>(&self, buffer: &'a [u8]) -> RxPacket<'a> {
        self.spans[0].packet(buffer)
    }

    /// Its length.
    #[cfg(all(target_os = "linux", feature = "tun"))]
    pub(super) const fn first_len(&self) -> usize {
        self.spans[0].end - self.spans[0].start
    }

    /// Hands them over, which lie in one buffer.
    #[cfg(any(test, feature = "tun-rs", all(target_os = "linux", feature = "tun-tap")))]
    pub(super) fn give(&self, buffer: &[u8], take: &mut dyn FnMut(RxBatch<'_>)) {
        self.give_from(self.first(buffer), buffer, take);
    }

    /// Hands them over; the `first` lies elsewhere.
    pub(super) fn give_from(&self, first: RxPacket<'_>, buffer: &[u8], take: &mut dyn FnMut(RxBatch<'_>)) {
        let mut gathered = Gathered::new();
        gathered.push(&[], first);
        for span in self.spans.iter().take(self.count).skip(1) {
            gathered.push(&[], span.packet(buffer));
        }
        gathered.give(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where packets of these lengths go, and whether the device is known to be empty then.
    fn starts(most: usize, lengths: &[usize]) -> (Vec<usize>, bool) {
        let mut waiting = lengths.iter();
        let spans = PacketSpans::read(most, |at| {
            let length = waiting.next().ok_or(io::ErrorKind::WouldBlock)?;
            Ok(PacketSpan::plain(at + 10, at + 10 + length))
        });
        let spans = spans.expect("a packet");
        let buffer = vec![7; WORTH + (1 << 16)];
        let mut starts = Vec::new();
        spans.give(&buffer, &mut |batch| {
            let lengths = batch.packets.iter().map(RxPacket::len);
            assert!(lengths.eq(spans.spans[..spans.count].iter().map(|span| span.end - span.start)));
            starts.extend(spans.spans[..spans.count].iter().map(|span| span.start));
        });
        (starts, spans.drained)
    }

    #[test]
    fn packets_lie_one_behind_the_other_until_they_are_worth_it() {
        assert_eq!(starts(32, &[100, 1_500, 40]), (vec![10, 138, 1_674], true));
        assert_eq!(starts(2, &[100, 1_500, 40]), (vec![10, 138], false));
        assert_eq!(starts(0, &[100, 40]), (vec![10], false), "one at least");
        assert_eq!(starts(32, &[60_000, 40]), (vec![10], false), "a super-packet is enough");
        assert_eq!(starts(32, &[1_500; 50]).0.len(), 32);
        assert_eq!(starts(32, &[9_000; 50]).0.len(), 6);
    }

    #[test]
    fn the_error_of_the_first_read_is_the_batchs() {
        let outcome = PacketSpans::read(32, |_| Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(outcome.err().map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }
}
