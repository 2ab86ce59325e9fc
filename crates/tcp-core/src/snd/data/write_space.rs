//! What a writer waits for.

use crate::config::MAX_BUFFER;
use core::num::NonZeroU32;

/// The free space that a writer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteSpace(pub(in crate::snd) NonZeroU32);

impl WriteSpace {
    /// Enough to be worth a write.
    pub(crate) const USUAL: Self = Self(NonZeroU32::MAX);

    /// This number of bytes, or the most that there can be.
    pub(crate) fn bytes(bytes: usize) -> Self {
        let bytes = bytes.clamp(1, MAX_BUFFER as usize) as u32;
        Self(NonZeroU32::MIN.saturating_add(bytes - 1))
    }
}
