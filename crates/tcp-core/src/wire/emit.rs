//! What all emitters share: the buffer for headers, and who computes the transport checksum.

/// Room for the headers of one packet, without a heap: IPv6 or IPv4 with options, and the longest TCP header.
#[derive(Clone, Debug)]
pub struct HeaderBuf {
    pub(super) bytes: [u8; Self::CAPACITY],
    pub(super) len: usize,
}

impl HeaderBuf {
    /// The most octets of headers that are written.
    pub const CAPACITY: usize = 128;

    /// An empty buffer. It can be used again and again; each emitter starts it anew.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], len: 0 }
    }

    /// The headers that were written last.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The length of the headers that were written last, octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True where nothing was written yet, or the last emitter failed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for HeaderBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<[u8]> for HeaderBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Who computes the transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TxChecksumMode {
    /// The emitter, over headers and payload: any receiver can check the packet.
    #[default]
    Complete,
    /// The device: the field holds the folded sum of the pseudo-header, uncomplemented, as virtio's NEEDS_CSUM wants it.
    Partial,
    /// Nobody: the field is zero, for links in memory whose receiver trusts them.
    Omit,
}

/// What is left to do about the transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TxChecksum {
    /// Nothing: it is in place.
    Complete,
    /// Add everything from `start` to the end of the packet, and store the complement `offset` octets after `start`.
    Partial {
        /// Where the transport header begins, octets from the IP header's first.
        start: u16,
        /// Where the checksum field lies, octets from `start`.
        offset: u16,
    },
    /// It is missing, and the receiver must be told to trust the packet.
    Omitted,
}

/// What an emitter wrote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Emitted {
    /// The length of the headers, octets; the payload follows them.
    pub header_len: usize,
    /// What is left to do about the transport checksum.
    pub checksum: TxChecksum,
}
