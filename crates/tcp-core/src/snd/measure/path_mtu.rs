//! The path MTU according to ICMP (RFC 1191, RFC 8201), after the checks of RFC 5927, section 7.2.
//!
//! Anyone can send a Packet Too Big message, and believing one lets a stranger choose the segment
//! size. So a message is a claim about one packet, which must be outstanding and larger than the
//! claimed limit:
//!
//! ```text
//!   claim ──┬─ the packet is acknowledged, or one as large that left later ──► a lie: forget it
//!           ├─ larger packets have arrived before: a timeout, or the packet is found lost ──► believe it
//!           └─ none has: also if something that left later arrives, or nothing for two round trips ──► believe it
//! ```
//!
//! A smaller size is not permanent (RFC 1191, section 6.3): after
//! [`ConnConfig::path_mtu_expiry`](crate::config::ConnConfig::path_mtu_expiry) the full one is
//! tried again. If the path is still narrow its routers report it again; if they stay silent, the
//! next timeout restores the smaller size.
//!
//! A path whose routers never say anything is found by [`black_hole`](crate::snd::mtu::black_hole),
//! which ends in the same way: with a smaller size to fall back to. Such a path is not flooded with
//! segments of the full size: [probes](crate::snd::mtu::mtu_search) find what it carries.
//!
//! The full size is what the device and the peer permit. It changes with [the device's
//! MTU](crate::snd::mtu::device_mtu).
//!
//! Sizes are payload bytes of one packet, as for the SMSS.

use crate::config::ConnConfig;
use crate::scoreboard::Claim;
use crate::seq::SeqNum;
use crate::time::Instant;

/// How the path has changed a connection's segment size. Exists from the first message or suspicion
/// on.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// The segment size that the device and the peer permit.
    pub(in crate::snd) full: u32,
    pub(in crate::snd) claim: Option<Claim>,
    /// When the full size is tried again; [`Instant::FAR_FUTURE`] while it is in use.
    pub(in crate::snd) raise_at: Instant,
    /// The size that is known to arrive while a larger one is tried, until a larger packet has
    /// arrived.
    pub(in crate::snd) fallback: Option<u32>,
    /// The size to which repeated timeouts have cut the segment that they send, until something
    /// arrives.
    pub(in crate::snd) cut: Option<u32>,
    /// Nobody has said that the path carries less: timeouts have shown it.
    pub(in crate::snd) silent: bool,
    /// Larger sizes are tried by probes, instead of at `raise_at`.
    pub(in crate::snd) search: Option<MtuSearch>,
    /// Segments are larger than the path carries, and routers fragment them (IPv4).
    pub(in crate::snd) may_fragment: bool,
    /// Packets have shown that larger ones do not arrive, or that none has arrived yet: more than a
    /// message of anybody.
    pub(in crate::snd) proven: bool,
    /// The segment size that was last shown to arrive, and not yet told.
    pub(in crate::snd) news: Option<u16>,
    /// The last one that was told.
    pub(in crate::snd) told: u32,
}

impl PathMtu {
    pub(in crate::snd) const fn new(full: u32) -> Self {
        Self {
            full,
            claim: None,
            raise_at: Instant::FAR_FUTURE,
            fallback: None,
            cut: None,
            silent: false,
            search: None,
            may_fragment: false,
            proven: false,
            news: None,
            told: full,
        }
    }

    /// The packet that began at `seq` is a probe whose fate is open.
    pub(in crate::snd) fn is_probed_by(&self, seq: SeqNum) -> bool {
        self.search.as_ref().and_then(|search| search.probe).is_some_and(|probe| probe.start == seq)
    }

    /// Segments of `smss` bytes arrive, and it is known that those of `full` do, or do not.
    pub(in crate::snd) fn confirm(&mut self, smss: u32) {
        let open = self.claim.is_some() || self.fallback.is_some() || self.cut.is_some();
        if !open && self.told != smss && (self.proven || smss == self.full) {
            self.told = smss;
            self.news = u16::try_from(smss).ok();
        }
    }

    /// The full size falls to `full`: what concerns larger ones is over.
    pub(in crate::snd) fn limit(&mut self, full: u32) {
        self.full = full;
        self.told = self.told.min(full);
        self.fallback.take_if(|size| *size >= full);
        self.cut.take_if(|size| *size >= full);
        if let Some(search) = &mut self.search {
            search.limit(full);
        }
    }

    /// The full size rises to `full`, of which nothing has been told.
    pub(in crate::snd) const fn extend(&mut self, full: u32) {
        if self.told == self.full {
            self.told = full;
        }
        self.full = full;
    }

    /// The full size is in use, and nothing contradicts it.
    pub(in crate::snd) const fn is_settled(&self, smss: u32) -> bool {
        self.full == smss
            && self.claim.is_none()
            && self.fallback.is_none()
            && self.cut.is_none()
            && !self.may_fragment
            && self.news.is_none()
    }
}

/// Payload bytes of the first segment that is sent in place of larger ones, if every path carries
/// `least`.
pub(in crate::snd) fn base_smss(least: u16, config: &ConnConfig) -> u32 {
    u32::from(config.base_mss.max(least))
}

/// A range that is at most so wide ends the search (Linux, `tcp_probe_threshold`).
const NARROW: u32 = 8;

/// Which sizes are still to be tried.
#[derive(Debug)]
pub(crate) struct MtuSearch {
    /// Payload bytes of the largest segment that may arrive.
    high: u32,
    /// One as large as `high` has not been tried since the search began.
    untried: bool,
    /// When the next probe may leave.
    pub(in crate::snd) next_at: Instant,
    /// The probe that is outstanding.
    pub(in crate::snd) probe: Option<MtuProbe>,
}

/// A segment that is larger than the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuProbe {
    pub(in crate::snd) start: SeqNum,
    /// Payload bytes.
    pub(in crate::snd) size: u32,
}

impl MtuSearch {
    /// Up to `high`, which is to be tried first.
    pub(in crate::snd) const fn up_to(high: u32, next_at: Instant) -> Self {
        Self { high, untried: true, next_at, probe: None }
    }

    /// Below `size`, which does not arrive.
    pub(in crate::snd) const fn below(size: u32, now: Instant) -> Self {
        Self { high: size - 1, untried: false, next_at: now, probe: None }
    }

    /// Payload bytes of the next probe, if segments of `smss` arrive.
    pub(in crate::snd) fn next_size(&self, smss: u32) -> Option<u32> {
        let range = self.high.saturating_sub(smss);
        match range {
            0 => None,
            _ if self.untried => Some(self.high),
            range if range <= NARROW => None,
            range => Some(smss + range.div_ceil(2)),
        }
    }

    /// Nothing above `full` is tried any more.
    fn limit(&mut self, full: u32) {
        self.high = self.high.min(full);
        self.probe.take_if(|probe| probe.size > full);
    }

    /// What was tried up to `before` is tried up to `full`, unless it was found that less arrives.
    pub(in crate::snd) fn extend(&mut self, before: u32, full: u32) {
        if self.high == before {
            (self.high, self.untried) = (full, true);
        }
    }

    /// The probe does not arrive.
    pub(in crate::snd) fn refute(&mut self, size: u32) {
        self.high = self.high.min(size - 1);
        self.untried = false;
    }
}
