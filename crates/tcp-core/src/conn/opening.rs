//! Segments before ESTABLISHED (RFC 9293, section 3.10.7.3, and 3.10.7.4 in SYN-RECEIVED).

use super::arrival::{Disposition, RstSpec};
use super::handshake::syns::Syns;
use super::{Connection, transition::Input};
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::DropReason;
use crate::packet::SendReason;
use crate::rate_limit::RateLimit;
use crate::rcv;
use crate::seq::SeqNum;
use crate::wire::{IpInfo, TcpFlags, TcpSegment};

/// What a segment in SYN-RECEIVED calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The peer repeated its SYN, which is answered again.
    SynAgain,
    /// The peer's SYN-ACK of a simultaneous open, which acknowledges our SYN.
    SynAck,
    /// It acknowledges our SYN: the connection is ESTABLISHED, and then the segment is processed.
    Complete,
    /// It is answered with an RST. The handshake goes on.
    Refuse(RstSpec),
    /// It is dropped, and answered with a challenge ACK (RFC 5961).
    Challenge(DropReason),
    /// It is dropped.
    Drop(DropReason),
    /// The peer resets the connection.
    Reset,
    /// A SYN inside the window: a passive open returns to LISTEN.
    NewSyn,
}

impl Syns {
    /// What a segment in SYN-RECEIVED calls for (RFC 9293, section 3.10.7.4). Changes nothing.
    pub(crate) fn in_syn_received(&self, config: &ConnConfig, seg: &TcpSegment<'_>) -> Opening {
        self.in_syn_received_after(config, self.irs + 1, self.iss + 1, seg)
    }

    /// The same if data has passed: up to `rcv_nxt` from the peer, and up to `snd_nxt` to it.
    pub(super) fn in_syn_received_after(
        &self,
        config: &ConnConfig,
        rcv_nxt: SeqNum,
        snd_nxt: SeqNum,
        seg: &TcpSegment<'_>,
    ) -> Opening {
        let flags = seg.flags;
        let acknowledges = seg.ack.within(self.iss + 1, snd_nxt + 1) && self.transmissions > 0;

        // The peer's SYN-ACK of a simultaneous open, or its repeated SYN: both start at IRS, which
        // is below the window. The first is processed as an ACK, the second is answered again.
        if flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::RST) && seg.seq == self.irs {
            if !flags.contains(TcpFlags::ACK) {
                if self.mixes_ecn(config.ecn, seg)
                    && let Some(rst) = RstSpec::answer_to(seg)
                {
                    return Opening::Refuse(rst);
                }
                return Opening::SynAgain;
            }
            if acknowledges {
                return Opening::SynAck;
            }
        }
        // PAWS (RFC 7323, section 5.3): later timestamps are compared with that of the peer's SYN.
        if !flags.contains(TcpFlags::RST)
            && config.timestamps
            && let Some(syn) = self.peer.timestamp()
        {
            match seg.options.timestamps {
                Some(ts) if ts.val.wrapping_sub(syn) as i32 >= 0 => {}
                Some(_) => return Opening::Challenge(DropReason::OldTimestamp),
                None if config.require_timestamps => return Opening::Drop(DropReason::NoTimestamp),
                None => {}
            }
        }
        let end = seg.seq + seg.seg_len().saturating_sub(1);
        let limit = rcv_nxt + rcv::syn_window(config);
        let in_window = seg.seq.within(rcv_nxt, limit) || (seg.seg_len() > 0 && end.within(rcv_nxt, limit));
        if flags.contains(TcpFlags::RST) {
            return match seg.seq {
                seq if seq == rcv_nxt => Opening::Reset,
                _ if in_window => Opening::Challenge(DropReason::RstNotExpected),
                _ => Opening::Drop(DropReason::RstOutOfWindow),
            };
        }
        if !in_window {
            return Opening::Challenge(DropReason::OutOfWindow);
        }
        if flags.contains(TcpFlags::SYN) {
            return Opening::NewSyn;
        }
        match (flags.contains(TcpFlags::ACK), acknowledges) {
            (false, _) => Opening::Drop(DropReason::NoAck),
            (true, false) => Opening::Refuse(RstSpec { seq: seg.ack, ack: None }),
            (true, true) => Opening::Complete,
        }
    }
}

impl Connection {
    /// Section 3.10.7.3.
    pub(super) fn in_syn_sent(
        &mut self,
        ctx: &mut Ctx<'_>,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        let Some(handshake) = self.handshake.as_mut() else { return Disposition::Handled };
        let has_ack = seg.flags.contains(TcpFlags::ACK);
        let acceptable = handshake.is_acknowledged_by(seg.ack);
        // First: an ACK of something never sent.
        if has_ack && !acceptable {
            handshake.hurry(ctx.now);
            return match RstSpec::answer_to(seg) {
                Some(rst) => Disposition::Reset(rst),
                None => Disposition::Handled,
            };
        }
        // Second: RFC 5961, section 3.2: only an RST that acknowledges the SYN is accepted.
        if seg.flags.contains(TcpFlags::RST) {
            if has_ack {
                ctx.observe.counters.tcp_attempt_fails += 1;
                self.die(ctx, Some(ConnError::Refused));
            }
            return Disposition::Handled;
        }
        if !seg.flags.contains(TcpFlags::SYN) {
            return Disposition::Handled;
        }
        if !has_ack {
            self.simultaneous_open(ctx, ip, seg);
            return Disposition::Handled;
        }
        // RFC 7323, section 3.2: TSecr echoes the TSval of our SYN. A value that none of our SYNs
        // carried belongs to another connection. Zero is accepted: some hosts echo nothing in a
        // SYN-ACK.
        if self.config.timestamps
            && let Some(ts) = seg.options.timestamps
            && ts.ecr != 0
            && !self.ts.age(ctx.now, ts.ecr).is_some_and(|age| handshake.sent_a_syn_so_long_ago(ctx.now, age))
        {
            ctx.dropped(DropReason::ForeignTimestamp);
            handshake.hurry(ctx.now);
            return Disposition::Reset(RstSpec { seq: seg.ack, ack: None });
        }
        handshake.syns.learn(seg, ip.ecn);
        let dropped = handshake.fast_open.was_dropped(&handshake.syns, seg);
        let asked = handshake.fast_open.asked(&handshake.syns);
        self.establish(ctx, seg);
        self.change_state(ctx, Input::SynAck);
        if self.shut {
            self.change_state(ctx, Input::Close);
        }
        self.rcv.oblige(SendReason::AckByObligation);
        self.take_text(ctx, ip, seg, seg.seq + 1);
        dropped.map_or(Disposition::Handled, |dropped| Disposition::FastOpen { dropped, asked })
    }

    /// Section 3.10.7.4, for a connection whose SYN is not acknowledged.
    pub(super) fn in_syn_received(
        &mut self,
        ctx: &mut Ctx<'_>,
        challenge: &mut RateLimit,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        let Some(handshake) = self.handshake.as_mut() else { return Disposition::Handled };
        let early = handshake.fast_open.early;
        let (rcv_nxt, snd_nxt) = match early {
            true => (self.rcv.rcv_nxt(), self.snd.snd_nxt()),
            false => (handshake.syns.irs + 1, handshake.syns.iss + 1 + u32::from(handshake.fast_open.sent)),
        };
        match handshake.syns.in_syn_received_after(&self.config, rcv_nxt, snd_nxt, seg) {
            Opening::SynAgain => {
                handshake.syns.hear_again(seg, ip.ecn);
                // Anybody can repeat the peer's SYN.
                if handshake.due || self.stray_answers.allow(ctx.now) {
                    handshake.due = true;
                } else {
                    ctx.observe.counters.tcp_ack_skipped_syn_recv += 1;
                }
            }
            Opening::SynAck => {
                handshake.syns.hear_syn_ack(ip.ecn);
                self.complete(ctx, seg);
                self.rcv.oblige(SendReason::AckByObligation);
                self.take_text(ctx, ip, seg, seg.seq + 1);
            }
            Opening::Complete => {
                self.complete(ctx, seg);
                return self.in_synchronized(ctx, challenge, ip, seg);
            }
            Opening::Refuse(rst) => return Disposition::Reset(rst),
            Opening::Challenge(reason) => {
                ctx.dropped(reason);
                self.send_challenge(ctx, challenge);
            }
            Opening::Drop(reason) => ctx.dropped(reason),
            // A passive open returns to LISTEN, which means that this connection disappears.
            Opening::Reset => {
                let error = match handshake.passive {
                    // The application may have it.
                    true if early => Some(ConnError::Reset),
                    true => None,
                    false => Some(ConnError::Refused),
                };
                ctx.observe.counters.tcp_attempt_fails += 1;
                self.die(ctx, error);
            }
            Opening::NewSyn if handshake.passive && !early => {
                ctx.observe.counters.tcp_attempt_fails += 1;
                self.die(ctx, None);
            }
            Opening::NewSyn => {
                ctx.dropped(DropReason::UnexpectedSyn);
                self.send_challenge(ctx, challenge);
            }
        }
        Disposition::Handled
    }

    /// The peer has acknowledged our SYN.
    fn complete(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) {
        self.establish(ctx, seg);
        self.change_state(ctx, Input::AckOfSyn);
        if self.shut {
            self.change_state(ctx, Input::Close);
        }
    }
}
