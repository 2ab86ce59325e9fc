//! The data of a received packet: up to three slices that form one stream.

use bytes::Bytes;
use core::hash::{Hash, Hasher};

/// Up to three slices, in stream order, that together are the data of one segment or message.
///
/// Trim a segment that overlaps received data with [`advance`](Self::advance) and
/// [`truncate`](Self::truncate); nothing is copied before [`copy_to`](Self::copy_to).
///
/// Two are equal if their slices are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Payload<'a> {
    slices: [&'a [u8]; 3],
    memory: Option<&'a Bytes>,
}

impl<'a> Payload<'a> {
    /// No data.
    pub const EMPTY: Self = Self::new([&[], &[], &[]]);

    /// The data in these slices, in order; any of them may be empty.
    #[must_use]
    pub const fn new(slices: [&'a [u8]; 3]) -> Self {
        Self { slices, memory: None }
    }

    /// The same data, which lie in `memory` as far as [`RxPacket::memory`](super::RxPacket::memory)
    /// says.
    #[must_use]
    pub(crate) const fn in_memory(self, memory: Option<&'a Bytes>) -> Self {
        Self { memory, ..self }
    }

    /// The memory in which the device has received the data.
    #[must_use]
    pub(crate) const fn memory(&self) -> Option<&'a Bytes> {
        self.memory
    }

    /// The data as a part of that memory, if they lie together in it.
    #[must_use]
    pub(crate) fn lent(&self) -> Option<Bytes> {
        let memory = self.memory?;
        let [only, [], []] = self.slices else { return None };
        let start = only.as_ptr().addr().checked_sub(memory.as_ptr().addr())?;
        let end = start + only.len();
        (end <= memory.len()).then(|| memory.slice(start..end))
    }

    /// The octets of all slices.
    #[must_use]
    pub const fn len(&self) -> usize {
        let [a, b, c] = self.slices;
        a.len() + b.len() + c.len()
    }

    /// True if no octets are left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [a, b, c] = self.slices;
        a.is_empty() && b.is_empty() && c.is_empty()
    }

    /// The slices in stream order; any of them may be empty.
    #[must_use]
    pub const fn slices(&self) -> [&'a [u8]; 3] {
        self.slices
    }

    /// The octets in stream order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + 'a {
        self.slices.into_iter().flatten().copied()
    }

    /// Copies as many of the first octets as fit into `out`; returns the number.
    pub fn copy_to(&self, out: &mut [u8]) -> usize {
        let mut copied = 0;
        for slice in self.slices {
            let room = out.get_mut(copied..).unwrap_or_default();
            let take = slice.len().min(room.len());
            if let (Some(room), Some(slice)) = (room.get_mut(..take), slice.get(..take)) {
                room.copy_from_slice(slice);
            }
            copied += take;
        }
        copied
    }

    /// Drops the first `count` octets, or all if there are fewer.
    pub fn advance(&mut self, count: usize) {
        let mut left = count;
        for slice in &mut self.slices {
            let take = left.min(slice.len());
            *slice = slice.get(take..).unwrap_or_default();
            left -= take;
        }
    }

    /// Keeps the first `count` octets, or all if there are fewer.
    pub fn truncate(&mut self, count: usize) {
        if count >= self.len() {
            return;
        }
        let mut left = count;
        for slice in &mut self.slices {
            let keep = left.min(slice.len());
            *slice = slice.get(..keep).unwrap_or_default();
            left -= keep;
        }
    }

    /// Removes the first `count` octets (or all if there are fewer) and returns them.
    #[must_use]
    pub fn split_to(&mut self, count: usize) -> Self {
        let [first, second, third] = self.slices;
        // Usually everything is in one slice.
        if let Some((front, rest)) = first.split_at_checked(count) {
            self.slices = [rest, second, third];
            return Self { slices: [front, &[], &[]], ..*self };
        }
        let mut front = *self;
        front.truncate(count);
        self.advance(count);
        front
    }
}

impl PartialEq for Payload<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.slices == other.slices
    }
}

impl Eq for Payload<'_> {}

impl Hash for Payload<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.slices.hash(state);
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(slice: &'a [u8]) -> Self {
        Self::new([slice, &[], &[]])
    }
}

impl<'a> From<[&'a [u8]; 2]> for Payload<'a> {
    fn from([first, second]: [&'a [u8]; 2]) -> Self {
        Self::new([first, second, &[]])
    }
}
