//! Segments before ESTABLISHED (RFC 9293, section 3.10.7.3, and 3.10.7.4 in SYN-RECEIVED).

use super::arrival::{Disposition, RstSpec};
use super::{Connection, transition::Input};
use crate::config::EndpointConfig;
use crate::ctx::Ctx;
use crate::drop_reason::DropReason;
use crate::error::ConnError;
use crate::packet::SendReason;
use crate::rate_limit::RateLimit;
use crate::wire::{IpInfo, TcpFlags, TcpSegment};

impl Connection {
    /// Section 3.10.7.3.
    pub(super) fn in_syn_sent(
        &mut self,
        ctx: &mut Ctx<'_>,
        host: &EndpointConfig,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        let Some(handshake) = self.handshake.as_mut() else { return Disposition::Handled };
        let has_ack = seg.flags.contains(TcpFlags::ACK);
        let acceptable = seg.ack == handshake.iss + 1 && handshake.transmissions > 0;
        // First: an ACK of something never sent.
        if has_ack && !acceptable {
            return match RstSpec::answer_to(seg) {
                Some(rst) => Disposition::Reset(rst),
                None => Disposition::Handled,
            };
        }
        // Second: RFC 5961, section 3.2: only an RST that acknowledges the SYN is accepted.
        if seg.flags.contains(TcpFlags::RST) {
            if has_ack {
                ctx.counters.tcp_attempt_fails += 1;
                self.die(ctx, Some(ConnError::Refused));
            }
            return Disposition::Handled;
        }
        if !seg.flags.contains(TcpFlags::SYN) {
            return Disposition::Handled;
        }
        if !has_ack {
            self.simultaneous_open(ctx, seg);
            return Disposition::Handled;
        }
        // RFC 7323, section 3.2: TSecr echoes the TSval of our SYN. A value that none of our SYNs carried
        // belongs to another connection. Zero is accepted: some hosts echo nothing in a SYN-ACK.
        if self.config.timestamps
            && let Some(ts) = seg.options.timestamps
            && ts.ecr != 0
            && !self.ts.age(ctx.now, ts.ecr).is_some_and(|age| handshake.sent_a_syn_so_long_ago(ctx.now, age))
        {
            ctx.dropped(DropReason::ForeignTimestamp);
            return Disposition::Reset(RstSpec { seq: seg.ack, ack: None });
        }
        handshake.learn(seg);
        self.establish(ctx, host, seg);
        self.change_state(ctx, Input::SynAck);
        if self.shut {
            self.change_state(ctx, Input::Close);
        }
        self.rcv.oblige(SendReason::AckByObligation);
        self.take_text(ctx, ip, seg, seg.seq + 1);
        Disposition::Handled
    }

    /// Section 3.10.7.4, for a connection whose SYN is not acknowledged.
    pub(super) fn in_syn_received(
        &mut self,
        ctx: &mut Ctx<'_>,
        host: &EndpointConfig,
        challenge: &mut RateLimit,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        let window = self.syn_window();
        let Some(handshake) = self.handshake.as_mut() else { return Disposition::Handled };
        let (irs, iss, passive) = (handshake.irs, handshake.iss, handshake.passive);
        let flags = seg.flags;
        let rcv_nxt = irs + 1;

        // The peer's SYN-ACK of a simultaneous open, or its repeated SYN: both start at IRS, which is below
        // the window. The first is processed as an ACK, the second is answered again.
        if flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::RST) && seg.seq == irs {
            if !flags.contains(TcpFlags::ACK) {
                handshake.hear_again(flags);
                handshake.due = true;
                return Disposition::Handled;
            }
            if seg.ack == iss + 1 && handshake.transmissions > 0 {
                self.establish(ctx, host, seg);
                self.change_state(ctx, Input::AckOfSyn);
                if self.shut {
                    self.change_state(ctx, Input::Close);
                }
                self.rcv.oblige(SendReason::AckByObligation);
                self.take_text(ctx, ip, seg, seg.seq + 1);
                return Disposition::Handled;
            }
        }
        // PAWS (RFC 7323, section 5.3): later timestamps are compared with that of the peer's SYN.
        if !flags.contains(TcpFlags::RST)
            && self.config.timestamps
            && let Some(syn) = handshake.peer_timestamp()
        {
            match seg.options.timestamps {
                Some(ts) if ts.val.wrapping_sub(syn) as i32 >= 0 => {}
                Some(_) => {
                    ctx.dropped(DropReason::OldTimestamp);
                    self.send_challenge(ctx, challenge);
                    return Disposition::Handled;
                }
                None => {
                    ctx.dropped(DropReason::NoTimestamp);
                    return Disposition::Handled;
                }
            }
        }
        let end = seg.seq + seg.seg_len().saturating_sub(1);
        let limit = rcv_nxt + window;
        let in_window = seg.seq.within(rcv_nxt, limit) || (seg.seg_len() > 0 && end.within(rcv_nxt, limit));
        if !in_window {
            if flags.contains(TcpFlags::RST) {
                ctx.dropped(DropReason::RstOutOfWindow);
            } else {
                ctx.dropped(DropReason::OutOfWindow);
                self.send_challenge(ctx, challenge);
            }
            return Disposition::Handled;
        }
        if flags.contains(TcpFlags::RST) {
            if seg.seq == rcv_nxt {
                // A passive open returns to LISTEN, which means that this connection disappears.
                ctx.counters.tcp_attempt_fails += 1;
                self.die(ctx, (!passive).then_some(ConnError::Refused));
            } else {
                ctx.dropped(DropReason::RstNotExpected);
                self.send_challenge(ctx, challenge);
            }
            return Disposition::Handled;
        }
        if flags.contains(TcpFlags::SYN) {
            if passive {
                ctx.counters.tcp_attempt_fails += 1;
                self.die(ctx, None);
            } else {
                ctx.dropped(DropReason::UnexpectedSyn);
                self.send_challenge(ctx, challenge);
            }
            return Disposition::Handled;
        }
        if !flags.contains(TcpFlags::ACK) {
            ctx.dropped(DropReason::NoAck);
            return Disposition::Handled;
        }
        if seg.ack != iss + 1 || handshake.transmissions == 0 {
            return Disposition::Reset(RstSpec { seq: seg.ack, ack: None });
        }
        self.establish(ctx, host, seg);
        self.change_state(ctx, Input::AckOfSyn);
        if self.shut {
            self.change_state(ctx, Input::Close);
        }
        self.in_synchronized(ctx, challenge, ip, seg)
    }
}
