//! What the path carries, as ICMP says (RFC 1191, RFC 8201), after the checks of RFC 5927, section 7.2.
//!
//! Anybody can send a Packet Too Big message, and whoever believes one lets a stranger choose the segment size. So a
//! message is a claim about one packet, which must be outstanding and larger than what the path is said to carry:
//!
//! ```text
//!   claim ──┬─ the packet is acknowledged, or one as large that left later ──► a lie: forget it
//!           ├─ larger packets have arrived before: a timeout, or the packet is found lost ──► believe it
//!           └─ none has: also if something that left later arrives, or nothing for two round trips ──► believe it
//! ```
//!
//! A smaller size is not for ever (RFC 1191, section 6.3): after [`ConnConfig::path_mtu_expiry`](crate::config::ConnConfig::path_mtu_expiry) the full one is tried
//! again. If the path is still narrow its routers say so once more; if they keep silent, the next timeout brings the
//! smaller size back. Probing the path (RFC 4821) is not done.
//!
//! Sizes are payload bytes of one packet, as for the SMSS.

use crate::scoreboard::Claim;
use crate::time::Instant;

/// What ICMP has done to a connection's segment size. Exists from the first message that was taken seriously.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// The segment size that the handshake settled.
    pub(super) full: u32,
    pub(super) claim: Option<Claim>,
    /// When the full size is tried again; [`Instant::FAR_FUTURE`] while it is in use.
    pub(super) raise_at: Instant,
    /// The size in use before the full one was tried again, until a packet larger than it has arrived.
    pub(super) fallback: Option<u32>,
}

impl PathMtu {
    pub(super) const fn new(full: u32) -> Self {
        Self { full, claim: None, raise_at: Instant::FAR_FUTURE, fallback: None }
    }

    /// The full size is in use, and nothing speaks against it.
    pub(super) const fn is_settled(&self, smss: u32) -> bool {
        self.full == smss && self.claim.is_none() && self.fallback.is_none()
    }
}
