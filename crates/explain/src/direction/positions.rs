//! Sequence numbers as octets of a stream.

/// The position of the first octet: far enough from zero for what comes before it.
pub(super) const ORIGIN: u64 = 1 << 32;

/// Where sequence numbers, which wrap around, are in a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Positions {
    /// The sequence number at [`ORIGIN`], less `ORIGIN`.
    base: Option<u32>,
}

impl Positions {
    pub(super) const fn is_known(self) -> bool {
        self.base.is_some()
    }

    /// The first octet is at `seq`, unless an earlier one told.
    pub(super) const fn begin(&mut self, seq: u32) {
        if self.base.is_none() {
            self.base = Some(seq.wrapping_sub(ORIGIN as u32));
        }
    }

    /// The position of `seq`, which is less than 2 GiB from the position `near`. The first that is
    /// seen is at [`ORIGIN`].
    pub(super) fn of(&mut self, seq: u32, near: u64) -> u64 {
        self.begin(seq);
        let here = self.base.unwrap_or_default().wrapping_add(near as u32);
        near.saturating_add_signed(i64::from(seq.wrapping_sub(here).cast_signed()))
    }
}
