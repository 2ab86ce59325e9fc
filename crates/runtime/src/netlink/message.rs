//! Building and parsing rtnetlink messages: rtnetlink(7), `include/uapi/linux/netlink.h`.

/// Everything in a netlink message is aligned to four bytes.
const ALIGN: usize = 4;
/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;

/// A request under construction. The kernel's fields are in native byte order.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of type `kind` whose fixed part is `body`.
    pub(crate) fn new(kind: u16, flags: i32, sequence: u32, body: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        // Every NLM_F_* constant fits in the 16 bits of `nlmsg_flags`.
        bytes.extend_from_slice(&(flags as u16).to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(body);
        let mut request = Self { bytes };
        request.pad();
        request
    }

    /// Appends an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        // Values here are addresses, names and integers: far below the 64 KiB that the length field
        // holds.
        let length = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.pad();
        self
    }

    /// Appends an attribute that contains the attributes added by `fill`.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut inner = fill(self);
        let length = (inner.bytes.len() - start) as u16;
        inner.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        inner.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        inner
    }

    /// Appends the fixed part that precedes the attributes of some nested ones.
    #[cfg(feature = "netns")]
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// The finished message.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGN), 0);
    }
}

/// One message of a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of one datagram, up to the first that is truncated.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let body = bytes.get(HEADER..length)?;
        let message = Message { kind: u16_at(bytes, 4)?, sequence: u32_at(bytes, 8)?, body };
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or(&[]);
        Some(message)
    })
}

/// The attributes in `bytes`, as (kind, value), up to the first that is truncated.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// The `u16` at `offset`, in native byte order.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|&chunk| u16::from_ne_bytes(chunk))
}

/// The `u32` at `offset`, in native byte order.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|&chunk| u32::from_ne_bytes(chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_it_was_built() {
        let bytes = Request::new(16, 5, 7, &[1, 2, 3, 4])
            .attribute(3, b"abc")
            .nested(26, |request| request.attribute(8, &[9]))
            .finish();
        let all: Vec<_> = messages(&bytes).collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kind, all[0].sequence), (16, 7));
        let attrs: Vec<_> = attributes(&all[0].body[4..]).collect();
        assert_eq!(attrs[0], (3, &b"abc"[..]));
        assert_eq!(attrs[1].0, 26);
        assert_eq!(attributes(attrs[1].1).collect::<Vec<_>>(), [(8, &[9u8][..])]);
    }

    #[test]
    fn cut_messages_end_the_iteration() {
        let bytes = Request::new(16, 5, 7, &[1, 2, 3, 4]).attribute(3, b"abc").finish();
        for cut in 0..bytes.len() {
            assert_eq!(messages(&bytes[..cut]).count(), 0, "cut at {cut}");
        }
        assert_eq!(attributes(&[2, 0, 1, 0, 0, 0]).count(), 0, "a length below its own header");
    }
}
