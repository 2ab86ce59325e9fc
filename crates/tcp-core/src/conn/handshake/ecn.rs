//! What a handshake agrees on for ECN: classic (RFC 3168, section 6.1.1) or accurate (RFC 9768,
//! section 3.1), with every fall-back.
//!
//! ```text
//!   AE CWR ECE of the SYN      listener: accurate         classic          off
//!   0  0   0                   none       0 0 0           none   0 0 0     none 0 0 0
//!   0  1   1                   classic    0 0 1           classic 0 0 1    none 0 0 0
//!   1  1   1                   accurate   codepoint       classic 0 0 1    none 0 0 0
//!   other                      accurate   codepoint       as RFC 3168      none 0 0 0
//! ```
//!
//! A SYN-ACK of accurate ECN says with which codepoint the SYN arrived, and the ACK of the SYN-ACK
//! with which that did ([`TcpFlags::ace_code`]). What arrives with another codepoint than it left
//! with, other than CE, shows a path on which no codepoint can be trusted: this side then never
//! sets ECT.

use super::Handshake;
use super::syns::{EcnHistory, Offer, Syns};
use crate::config::{ConnConfig, Ecn as Mode};
use crate::packet::SendReason;
use crate::snd::ecn::agreement::EcnAgreement;
use crate::wire::{Ecn, TcpFlags, TcpSegment};

/// True if a packet that left with one codepoint can have arrived with the other on a path that
/// knows ECN (RFC 9768, section 3.2.2.3).
const fn is_possible(left: Ecn, arrived: Ecn) -> bool {
    match (left, arrived) {
        (Ecn::NotEct, Ecn::NotEct) | (Ecn::Ce, Ecn::Ce) => true,
        (Ecn::NotEct | Ecn::Ce, _) | (_, Ecn::NotEct) => false,
        // A mark, or a change between the two of ECT, which section 3.2.2.3 tolerates.
        (Ecn::Ect0 | Ecn::Ect1, _) => true,
    }
}

impl Offer {
    /// What a SYN or SYN-ACK with these bits offers a side that wants `own`.
    pub(crate) const fn ecn_mode(self, own: Mode) -> Mode {
        match own {
            Mode::Accurate if self.accurate_ecn() => Mode::Accurate,
            Mode::Accurate if self.ecn() => Mode::Classic,
            Mode::Classic | Mode::Dctcp if self.ecn() => own,
            _ => Mode::Off,
        }
    }
}

impl Syns {
    /// The bits that offer ECN in our SYN or SYN-ACK.
    pub(crate) const fn ecn_setup(&self, own: Mode, reason: SendReason) -> TcpFlags {
        match reason {
            SendReason::Syn => match own {
                // Section 3.1.4.1: once more, because the loss of a SYN is mostly just that.
                Mode::Accurate if self.expiries <= 1 => TcpFlags::ACE,
                // RFC 3168, section 6.1.1.1: if there is no answer, the bits may be the reason.
                Mode::Classic | Mode::Dctcp if self.transmissions == 0 => TcpFlags::ECE.union(TcpFlags::CWR),
                _ => TcpFlags::NONE,
            },
            SendReason::SynAck => match self.peer.ecn_mode(own) {
                // Section 3.2.3.2.2; the codepoint is that of the latest SYN (section 3.1.5).
                Mode::Accurate if self.expiries <= 1 => TcpFlags::ace_code(self.peer.codepoint()),
                Mode::Classic | Mode::Dctcp
                    if !self.ecn.has(EcnHistory::WITHDRAWN) && !self.ecn.has(EcnHistory::PEER_WITHDREW) =>
                {
                    TcpFlags::ECE
                }
                _ => TcpFlags::NONE,
            },
            _ => TcpFlags::NONE,
        }
    }

    /// The codepoint of our next SYN or SYN-ACK. With ECN++ (draft-ietf-tcpm-generalized-ecn,
    /// sections 3.2.1 and 3.2.2) the first one that offers accurate ECN is ECN-capable, since its
    /// mark is told; if it is not answered, that may be why.
    pub(crate) fn codepoint(&self, own: &ConnConfig, reason: SendReason) -> Ecn {
        let offers = match reason {
            SendReason::Syn => own.ecn == Mode::Accurate,
            SendReason::SynAck => self.peer.ecn_mode(own.ecn) == Mode::Accurate,
            _ => false,
        };
        match own.ecn_control && offers && self.transmissions == 0 {
            true if own.l4s => Ecn::Ect1,
            true => Ecn::Ect0,
            false => Ecn::NotEct,
        }
    }

    /// True if our SYN or SYN-ACK can have arrived with this codepoint on a path that knows ECN.
    /// Of several it is not known which one the peer tells of.
    fn can_arrive(&self, arrived: Ecn) -> bool {
        let capable = self.ecn.has(EcnHistory::CAPABLE);
        let plain = !capable || self.transmissions > 1;
        (capable && is_possible(Ecn::Ect0, arrived)) || (plain && is_possible(Ecn::NotEct, arrived))
    }

    /// True if our SYN or SYN-ACK was marked, as the peer tells.
    fn was_marked(&self, told: Option<Ecn>) -> bool {
        self.ecn.has(EcnHistory::CAPABLE) && told == Some(Ecn::Ce)
    }

    /// True if our SYN-ACK has room and reason for the option: it may be why one was lost (section
    /// 3.2.3.2.2).
    pub(in crate::conn) fn brings_counters(&self, own: Mode) -> bool {
        self.peer.ecn_mode(own) == Mode::Accurate
            && !self.ecn.has(EcnHistory::ANSWERED)
            && !self.peer.wants_cookie()
    }

    /// True if the peer's repeated SYN asks for another kind of ECN than the first: section 3.1.5
    /// has that reset.
    pub(in crate::conn) fn mixes_ecn(&self, own: Mode, again: &TcpSegment<'_>) -> bool {
        let (first, again) = (self.peer.ecn_mode(own), Offer::of(again, Ecn::NotEct).ecn_mode(own));
        own == Mode::Accurate && again != Mode::Off && first != Mode::Off && first != again
    }
}

impl Handshake {
    /// What both sides have agreed on when `seg` completes the handshake. RFC 3168, section 6.1.1:
    /// a host that declined once does not set ECT, but still echoes marks, since the peer may only
    /// have received its acceptance.
    pub(in crate::conn) fn ecn(&self, own: Mode, seg: &TcpSegment<'_>) -> Option<EcnAgreement> {
        let (syns, history) = (&self.syns, self.syns.ecn);
        let mode = syns.peer.ecn_mode(own);
        if mode == Mode::Off || !history.has(EcnHistory::OFFERED) {
            return None;
        }
        let withdrawn = history.has(EcnHistory::WITHDRAWN) || history.has(EcnHistory::PEER_WITHDREW);
        let mut agreed = EcnAgreement::new(mode, !withdrawn);
        if mode != Mode::Accurate {
            return Some(agreed);
        }
        agreed.option_seen = seg.options.accecn.is_some();
        let code = seg.flags.ace();
        if self.passive {
            agreed.answer(code, is_bare(seg), syns);
        } else {
            // Section 3.1.5: a client may set ECT although it has also sent SYNs without ECN.
            agreed.capable = true;
            agreed.hear_syn_ack(syns.peer.codepoint(), Ecn::of_ace_code(code), syns);
        }
        Some(agreed)
    }
}

/// Without data, FIN and SACK blocks: only then ACE is the handshake's code (section 3.2.2.1).
fn is_bare(seg: &TcpSegment<'_>) -> bool {
    seg.payload.is_empty() && !seg.flags.contains(TcpFlags::FIN) && seg.options.sack.is_empty()
}

impl EcnAgreement {
    /// The listener's side: ACE of the segment that acknowledges our SYN-ACK. `bare`: it is a code,
    /// and otherwise a counter (section 3.2.2.1, table 4).
    fn answer(&mut self, ace: u8, bare: bool, syns: &Syns) {
        if ace == 0 {
            // Section 3.2.2.4: some middlebox clears the bits.
            (self.deaf, self.capable) = (true, false);
        } else if bare {
            self.is_code = true;
            if let Some(arrived) = Ecn::of_ace_code(ace) {
                self.delivered += u32::from(arrived == Ecn::Ce);
                self.capable &= syns.can_arrive(arrived);
                self.syn_marked = syns.was_marked(Some(arrived));
            }
        }
    }

    /// The client's side: a SYN-ACK arrived with the codepoint `ecn`, and says that our SYN arrived
    /// with `told`.
    fn hear_syn_ack(&mut self, ecn: Ecn, told: Option<Ecn>, syns: &Syns) {
        self.received += u32::from(ecn == Ecn::Ce);
        self.echo = Some(ecn);
        self.capable &= told.is_none_or(|arrived| syns.can_arrive(arrived));
        self.syn_marked = syns.was_marked(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_changes_only_to_ce() {
        for (left, arrived, possible) in [
            (Ecn::NotEct, Ecn::Ect0, false),
            (Ecn::NotEct, Ecn::Ce, false),
            (Ecn::Ect1, Ecn::NotEct, false),
            (Ecn::Ect1, Ecn::Ect0, true),
            (Ecn::Ect1, Ecn::Ce, true),
            (Ecn::Ce, Ecn::Ect1, false),
        ] {
            assert_eq!(is_possible(left, arrived), possible, "{left:?} {arrived:?}");
        }
    }
}
