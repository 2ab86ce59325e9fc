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
//! A smaller size is not for ever (RFC 1191, section 6.3): after [`ConnConfig::path_mtu_expiry`] the full one is tried
//! again. If the path is still narrow its routers say so once more; if they keep silent, the next timeout brings the
//! smaller size back. Probing the path (RFC 4821) is not done.
//!
//! Sizes are payload bytes of one packet, as for the SMSS.

use super::Sender;
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::scoreboard::{Claim, Covered};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// The least time after its departure for which a packet may still be acknowledged before a first claim about it is
/// believed: a peer may delay its ACK for longer than a short round trip takes.
const MIN_WAIT: Duration = Duration::from_millis(50);

/// What ICMP has done to a connection's segment size. Exists from the first message that was taken seriously.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// The segment size that the handshake settled.
    full: u32,
    claim: Option<Claim>,
    /// When the full size is tried again; [`Instant::FAR_FUTURE`] while it is in use.
    raise_at: Instant,
    /// The size in use before the full one was tried again, until a packet larger than it has arrived.
    fallback: Option<u32>,
}

impl Sender {
    /// A Packet Too Big message quotes the packet that begins at `quoted`; the MTU that it names has room for `payload`
    /// bytes of data.
    pub(crate) fn on_packet_too_big(&mut self, ctx: &mut Ctx<'_>, quoted: SeqNum, payload: u32) {
        if payload == self.smss {
            // The rest of a flight of larger packets.
            return;
        }
        let packet = self.flight.as_deref().and_then(|flight| {
            let (len, sent_at) = flight.board.packet_at(quoted)?;
            Some((len, sent_at, flight.largest_acked))
        });
        let Some((_, sent_at, largest)) = packet.filter(|(len, ..)| payload < self.smss.min(*len)) else {
            ctx.counters.tcp_mtu_refused += 1;
            return;
        };
        let initial = payload >= u32::from(largest);
        let believe_at = match self.rtt.srtt() {
            Some(srtt) if initial => (sent_at + srtt.saturating_mul(2).max(MIN_WAIT)).max(ctx.now),
            _ => Instant::FAR_FUTURE,
        };
        let full = self.smss;
        let path = self.path_mtu.get_or_insert_with(|| Box::new(PathMtu::new(full)));
        // Of two sizes the larger one is believed first. If it is too large, the path will say so again.
        if path.claim.is_none_or(|claim| claim.payload < payload) {
            path.claim = Some(Claim { payload, quoted, sent_at, believe_at, initial });
        }
    }

    /// What is not decided yet about the path, for the records that an ACK covers.
    pub(super) fn open_claim(&self) -> Option<Claim> {
        self.path_mtu.as_deref()?.claim
    }

    /// What the records that an ACK covers tell of the path.
    pub(super) fn judge_claim(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, covered: &Covered) {
        let una = self.snd_una;
        let Some(flight) = self.flight.as_deref_mut() else { return };
        flight.largest_acked = flight.largest_acked.max(covered.largest_packet);
        let largest = flight.largest_acked;
        let Some(path) = self.path_mtu.as_deref_mut() else { return };
        if path.fallback.is_some_and(|size| u32::from(largest) > size) {
            path.fallback = None;
        }
        if let Some(claim) = path.claim {
            let arrived = claim.quoted.lt(una) || flight.board.is_sacked(claim.quoted, claim.quoted + 1);
            if arrived || covered.refutes_claim {
                path.claim = None;
                ctx.counters.tcp_mtu_refuted += 1;
            } else if claim.initial && covered.is_after_claim {
                self.believe(ctx, config, claim);
                return;
            }
        }
        self.try_full_size(ctx, config);
    }

    /// Loss detection has looked at the board.
    pub(super) fn judge_claim_by_loss(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        if let Some(claim) = self.open_claim()
            && self.flight.as_deref().is_some_and(|flight| flight.board.is_lost(claim.quoted))
        {
            self.believe(ctx, config, claim);
        }
    }

    /// When a claim is believed because nothing was heard.
    pub(super) fn claim_at(&self) -> Instant {
        self.open_claim().map_or(Instant::FAR_FUTURE, |claim| claim.believe_at)
    }

    /// [`claim_at`](Self::claim_at) has come.
    pub(super) fn on_claim_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        if let Some(claim) = self.open_claim() {
            self.believe(ctx, config, claim);
        }
    }

    /// The retransmission timer has fired, and nothing was sent for it yet.
    pub(super) fn judge_path_by_timeout(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        if let Some(claim) = self.open_claim() {
            self.believe(ctx, config, claim);
            return;
        }
        let head = self.flight.as_deref().map_or(0, |flight| flight.board.head_packet_len());
        if let Some(path) = self.path_mtu.as_deref_mut()
            && let Some(size) = path.fallback.take_if(|size| u32::from(head) > *size)
        {
            path.raise_at = ctx.now + config.path_mtu_expiry;
            ctx.counters.tcp_mtu_reduced += 1;
            self.set_smss(ctx, config, size);
        }
    }

    fn believe(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, claim: Claim) {
        let Some(path) = self.path_mtu.as_deref_mut() else { return };
        path.claim = None;
        path.fallback = None;
        if claim.payload >= self.smss {
            return;
        }
        path.raise_at = ctx.now + config.path_mtu_expiry;
        // What arrived before says nothing of the path as it is.
        let most = u16::try_from(claim.payload).unwrap_or(u16::MAX);
        if let Some(flight) = self.flight.as_deref_mut() {
            flight.largest_acked = flight.largest_acked.min(most);
        }
        ctx.counters.tcp_mtu_reduced += 1;
        self.set_smss(ctx, config, claim.payload);
    }

    /// RFC 1191, section 6.3: the path may have widened, and an attacker may have been believed.
    fn try_full_size(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let smss = self.smss;
        let Some(path) = self.path_mtu.as_deref_mut() else { return };
        if path.claim.is_some() || ctx.now < path.raise_at {
            if path.is_settled(smss) {
                self.path_mtu = None;
            }
            return;
        }
        let full = path.full;
        path.raise_at = Instant::FAR_FUTURE;
        path.fallback = Some(smss);
        ctx.counters.tcp_mtu_raised += 1;
        self.set_smss(ctx, config, full);
    }
}

impl PathMtu {
    const fn new(full: u32) -> Self {
        Self { full, claim: None, raise_at: Instant::FAR_FUTURE, fallback: None }
    }

    /// The full size is in use, and nothing speaks against it.
    const fn is_settled(&self, smss: u32) -> bool {
        self.full == smss && self.claim.is_none() && self.fallback.is_none()
    }
}
