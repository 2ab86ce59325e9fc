//! Shared by all emitters: the header buffer, and who computes the transport checksum.

/// Space for the headers of one packet, without allocation: IPv6 or IPv4 with options, and the
/// longest TCP header.
#[derive(Clone, Debug)]
pub struct HeaderBuf {
    pub(super) bytes: [u8; Self::CAPACITY],
    pub(super) len: usize,
}

impl HeaderBuf {
    /// Maximum octets of headers.
    pub const CAPACITY: usize = 128;

    /// An empty buffer. It can be reused; each emitter overwrites it.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], len: 0 }
    }

    /// Takes the first octets of a packet for its headers, as many as there is room for.
    pub(crate) fn take_from(&mut self, packet: &[u8]) {
        self.len = packet.len().min(Self::CAPACITY);
        if let (Some(bytes), Some(head)) = (self.bytes.get_mut(..self.len), packet.get(..self.len)) {
            bytes.copy_from_slice(head);
        }
    }

    /// The headers written last.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The same, to be changed.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }

    /// The length of the headers written last, octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if nothing has been written, or the last emitter failed.
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

/// Whether the stack or the device computes the transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TxChecksumMode {
    /// The emitter, over headers and payload: any receiver can verify the packet.
    #[default]
    Complete,
    /// The device: the field holds the folded sum of the pseudo-header, uncomplemented, as virtio's
    /// NEEDS_CSUM requires.
    Partial,
    /// Nobody: the field is zero, for in-memory links whose receiver trusts them.
    Omit,
}

/// What remains to be done for the transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TxChecksum {
    /// Nothing: it is complete.
    Complete,
    /// Sum everything from `start` to the end of the packet, and store the complement `offset`
    /// octets after `start`.
    Partial {
        /// Start of the transport header, octets from the start of the IP header.
        start: u16,
        /// Position of the checksum field, octets from `start`.
        offset: u16,
    },
    /// There is none, and the receiver must be told to trust the packet.
    Omitted,
}

/// The result of an emitter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Emitted {
    /// The length of the headers, octets; the payload follows them.
    pub header_len: usize,
    /// What remains to be done for the transport checksum.
    pub checksum: TxChecksum,
}
