//! What a test may ask for, at either end: iperf3's own limits.

use std::ops::RangeInclusive;

/// Most streams in one direction.
pub(crate) const MAX_STREAMS: u32 = 128;
/// Largest block, in bytes.
pub(crate) const MAX_BLOCK: u64 = 1 << 20;
/// Longest test, in seconds.
pub(crate) const MAX_TIME: u32 = 86_400;
/// Most seconds that do not count at the beginning.
pub(crate) const MAX_OMIT: u32 = 60;
/// Largest buffer that `-w` may ask for, in bytes.
pub(crate) const MAX_WINDOW: u64 = 512 << 20;
/// Memory that a server lets the buffers of a test's connections have together, in bytes, unless
/// its user says otherwise.
pub(crate) const DEFAULT_BUFFERS: u64 = 1 << 30;
/// Segment sizes that `-M` may ask for, in bytes.
pub(crate) const MSS_RANGE: RangeInclusive<u32> = 88..=9216;
/// Most blocks that may leave at once.
pub(crate) const MAX_BURST: u32 = 1000;
