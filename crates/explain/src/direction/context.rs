//! What a connection tells its two directions.

/// What the connection knows when a packet passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// The smallest round trip from the capture to this direction's sender, ns.
    pub(crate) to_sender_ns: u64,
    /// From the capture to its receiver.
    pub(crate) to_receiver_ns: u64,
    /// The shift of the receiver's windows; `None` if its SYN was not captured.
    pub(crate) scale: Option<u8>,
    /// The largest segment by the handshake, without options.
    pub(crate) agreed_mss: Option<u32>,
    /// The handshake agreed on accurate ECN.
    pub(crate) accurate_ecn: bool,
}

impl Context {
    /// The capture is not at the sender: what it sees was spaced by the path before it.
    pub(super) fn is_away(&self) -> bool {
        self.to_sender_ns > 200_000 && self.to_sender_ns * 5 > self.to_sender_ns + self.to_receiver_ns
    }

    /// Octets of a full segment: what the handshake agreed on, or the largest that passed.
    pub(super) fn segment_size(&self, largest: u32) -> u64 {
        // Less than agreed on, but not by much: the path's MTU. Much less: no full segment has
        // passed.
        let size = match self.agreed_mss {
            Some(agreed) if largest * 2 > agreed => agreed.min(largest),
            Some(agreed) => agreed,
            None => largest,
        };
        u64::from(size.max(1))
    }
}
