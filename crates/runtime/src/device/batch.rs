//! Packets that a device lends together.

use super::RxPacket;

/// The most packets that one [`RxBatch`] of this crate's devices has.
pub(super) const MOST: usize = 32;

/// Packets that a device has received, in the order of their arrival, lent until
/// [`Device::try_recv_batch`](super::Device::try_recv_batch) returns.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RxBatch<'a> {
    /// The packets, at least one.
    pub packets: &'a [RxPacket<'a>],
    /// The header of the link in front of each packet, for [observers](crate::Stack::set_observer);
    /// empty if there was none.
    pub links: &'a [&'a [u8]],
}

impl<'a> RxBatch<'a> {
    /// A batch of these packets. `links` must have an item for each of them.
    ///
    /// # Panics
    /// If it has not.
    #[must_use]
    pub const fn new(packets: &'a [RxPacket<'a>], links: &'a [&'a [u8]]) -> Self {
        assert!(packets.len() == links.len(), "a link header for each packet");
        Self { packets, links }
    }
}

/// A batch that is put together.
pub(super) struct Gathered<'a> {
    packets: [RxPacket<'a>; MOST],
    links: [&'a [u8]; MOST],
    count: usize,
}

impl<'a> Gathered<'a> {
    pub(super) const fn new() -> Self {
        Self { packets: [RxPacket::new(&[]); MOST], links: [&[]; MOST], count: 0 }
    }

    /// Adds a packet; beyond [`MOST`] it is lost.
    pub(super) fn push(&mut self, link: &'a [u8], packet: RxPacket<'a>) {
        if let (Some(place), Some(front)) = (self.packets.get_mut(self.count), self.links.get_mut(self.count))
        {
            (*place, *front) = (packet, link);
            self.count += 1;
        }
    }

    /// Hands over what was gathered, if anything was.
    pub(super) fn give(&self, take: &mut dyn FnMut(RxBatch<'_>)) {
        let packets = self.packets.get(..self.count).unwrap_or_default();
        let links = self.links.get(..self.count).unwrap_or_default();
        if !packets.is_empty() {
            take(RxBatch::new(packets, links));
        }
    }
}
