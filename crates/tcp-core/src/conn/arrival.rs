//! Segment arrival (RFC 9293, section 3.10.7): what a segment does after the
//! [checks](super::checks). TIME-WAIT has [rules of its own](super::time_wait).

use super::challenge::AckTrigger;
use super::checks::Verdict;
use super::handshake::syns::Offer;
use super::{Connection, Notices, transition::Input};
use crate::State;
use crate::config::Ecn as Mode;
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::DropReason;
use crate::events::TraceEvent;
use crate::rate_limit::RateLimit;
use crate::rcv::{Counted, Incoming};
use crate::seq::SeqNum;
use crate::snd::AckSegment;
use crate::snd::ecn::accecn::AccEcnFields;
use crate::time::Instant;
use crate::wire::{Ecn, IpInfo, TcpFlags, TcpSegment};

/// What the endpoint must do after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Nothing but check what the connection wants to send.
    Handled,
    /// Answer with this RST.
    Reset(RstSpec),
    /// A SYN for a connection in TIME-WAIT opens a new one (RFC 6191): forget this connection and
    /// handle the SYN as in LISTEN, with an initial sequence number above `iss_floor`.
    NewSyn {
        /// SND.NXT of the old connection.
        iss_floor: SeqNum,
    },
    /// It is a SYN-ACK, and the first SYN had a fast open option: learn from its options what the
    /// server does with it.
    FastOpen {
        /// Nobody answered the SYN with the option.
        dropped: bool,
        /// That, alone, asked for a cookie: in the experimental option, or not.
        asked: Option<bool>,
    },
}

/// An RST: `<SEQ=seq><CTL=RST>`, or `<SEQ=seq><ACK=ack><CTL=RST,ACK>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RstSpec {
    pub(crate) seq: SeqNum,
    pub(crate) ack: Option<SeqNum>,
}

impl RstSpec {
    /// The RST that answers a segment without a connection (RFC 9293, section 3.10.7.1); `None` if
    /// the segment is an RST.
    pub(crate) fn answer_to(seg: &TcpSegment<'_>) -> Option<Self> {
        if seg.flags.contains(TcpFlags::RST) {
            None
        } else if seg.flags.contains(TcpFlags::ACK) {
            Some(Self { seq: seg.ack, ack: None })
        } else {
            Some(Self { seq: SeqNum(0), ack: Some(seg.seq + seg.seg_len()) })
        }
    }
}

impl Connection {
    /// A segment for this connection arrived.
    pub(crate) fn on_segment(
        &mut self,
        ctx: &mut Ctx<'_>,
        challenge: &mut RateLimit,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        ctx.trace(|| TraceEvent::Received {
            seq: seg.seq,
            len: seg.payload.len() as u32,
            ack: seg.ack,
            flags: seg.flags,
        });
        self.segs_in += u64::from(seg.wire_segments);
        if self.take_predicted(ctx, ip, seg) {
            return Disposition::Handled;
        }
        match self.state {
            State::Closed | State::Listen => match RstSpec::answer_to(seg) {
                Some(rst) => Disposition::Reset(rst),
                None => Disposition::Handled,
            },
            State::SynSent => self.in_syn_sent(ctx, ip, seg),
            State::SynReceived => self.in_syn_received(ctx, challenge, ip, seg),
            _ => self.in_synchronized(ctx, challenge, ip, seg),
        }
    }

    /// Section 3.10.7.4, for ESTABLISHED and later: acts on the [`Verdict`] of the checks.
    pub(super) fn in_synchronized(
        &mut self,
        ctx: &mut Ctx<'_>,
        challenge: &mut RateLimit,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        if self.state == State::TimeWait {
            return self.in_time_wait(ctx, challenge, seg);
        }
        match self.judge(ctx.now, seg) {
            Verdict::Acceptable => self.take(ctx, ip, seg),
            Verdict::Unstamped => ctx.dropped(DropReason::NoTimestamp),
            Verdict::Unacknowledging => ctx.dropped(DropReason::NoAck),
            Verdict::Old => {
                ctx.dropped(DropReason::OldTimestamp);
                self.answer_unacceptable(ctx, seg, AckTrigger::OldTimestamp);
            }
            Verdict::OutOfWindow => {
                ctx.dropped(DropReason::OutOfWindow);
                self.answer_unacceptable(ctx, seg, AckTrigger::OutOfWindow);
            }
            Verdict::AckOnly => {
                ctx.dropped(DropReason::OutOfWindow);
                self.answer_unacceptable(ctx, seg, AckTrigger::OutOfWindow);
                self.take_ack(ctx, seg, false);
            }
            Verdict::StrayReset => ctx.dropped(DropReason::RstOutOfWindow),
            Verdict::GuessedReset => {
                ctx.dropped(DropReason::RstNotExpected);
                self.send_challenge(ctx, challenge);
            }
            Verdict::Syn => {
                self.hear_syn_ack_again(ip, seg);
                ctx.dropped(DropReason::UnexpectedSyn);
                self.send_challenge(ctx, challenge);
            }
            Verdict::BadAck => {
                ctx.dropped(DropReason::BadAck);
                self.send_challenge(ctx, challenge);
            }
            // RFC 9293, section 3.10.7.4, tells nobody in CLOSING and LAST-ACK. But our FIN, and
            // there perhaps data before it, is not acknowledged: Linux and FreeBSD tell.
            Verdict::Reset => self.die(ctx, Some(ConnError::Reset)),
        }
        Disposition::Handled
    }

    /// Processes an acceptable segment.
    fn take(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>) {
        let newer = self.is_newer(seg);
        self.take_timestamp(ctx, seg);
        self.count(ctx, ip, seg, seg.payload.len() as u32, seg.wire_segments);
        self.take_ack(ctx, seg, newer);
        if self.state == State::Closed {
            return;
        }
        // Sixth: URG. RFC 6093, section 6: the data stays in the stream, the pointer is not used.
        if seg.flags.contains(TcpFlags::URG) {
            ctx.observe.counters.tcp_urgent += 1;
        }
        // Seventh and eighth: text and FIN.
        self.take_text(ctx, ip, seg, seg.seq);
    }

    /// Accurate ECN counts what arrives with which codepoint.
    #[inline]
    pub(super) fn count(
        &mut self,
        ctx: &Ctx<'_>,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
        bytes: u32,
        packets: u32,
    ) {
        self.rcv.count(ctx.now, &self.config, &Counted { ecn: ip.ecn, seq: seg.seq, bytes, packets });
    }

    /// True if an acceptable segment left later than all that were received before it: its
    /// timestamp says so, or if that cannot, its data.
    fn is_newer(&self, seg: &TcpSegment<'_>) -> bool {
        let ahead = match seg.options.timestamps {
            Some(ts) if self.ts.enabled() => self.ts.ahead(ts.val),
            _ => 0,
        };
        let end = seg.seq + seg.payload.len() as u32;
        ahead > 0 || (ahead == 0 && !seg.payload.is_empty() && end.gt(self.rcv.highest_received()))
    }

    /// A SYN arrived on a connection that is open. If the peer has not received the ACK of its
    /// SYN-ACK, it sends that again, and the ACK tells how it arrived (RFC 9768, section 3.2.2.1).
    fn hear_syn_ack_again(&mut self, ip: &IpInfo, seg: &TcpSegment<'_>) {
        let confirms = Offer::of(seg, ip.ecn).ecn_mode(Mode::Accurate) == Mode::Accurate;
        let is_first = self.rcv.data_segments_in() == 0 && seg.seq + 1 == self.rcv.rcv_nxt();
        if seg.flags.contains(TcpFlags::ACK) && confirms && is_first {
            self.rcv.on_syn_ack_again(ip.ecn);
        }
    }

    /// TS.Recent follows an acceptable segment.
    pub(super) fn take_timestamp(&mut self, ctx: &Ctx<'_>, seg: &TcpSegment<'_>) {
        if let Some(ts) = seg.options.timestamps.filter(|_| self.ts.enabled()) {
            let old_ack = seg.ack.lt(self.snd.snd_una());
            self.ts.update(ctx.now, ts.val, seg.seq, self.rcv.highest_ack(), old_ack);
        }
    }

    /// Processes the ACK of a segment that passed the checks.
    /// `newer`: it [is newer](Self::is_newer) than those before it.
    fn take_ack(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>, newer: bool) {
        self.heard(ctx);
        let len = seg.payload.len() as u32;
        if len == 0 && !seg.flags.contains(TcpFlags::FIN) {
            ctx.observe.counters.tcp_pure_acks += 1;
        }
        let tsecr = if self.ts.enabled() { seg.options.timestamps.map(|ts| ts.ecr) } else { None };
        let outcome = self.snd.on_ack(
            ctx,
            &self.config,
            &AckSegment {
                seq: seg.seq,
                ack: seg.ack,
                rcv_nxt: self.rcv.rcv_nxt(),
                window: u32::from(seg.window) << self.snd_wscale,
                sack: if self.rcv.has_sack() { seg.options.sack } else { Default::default() },
                tsecr,
                ts_now: self.ts.value(ctx.now),
                ece: seg.flags.contains(TcpFlags::ECE),
                accecn: AccEcnFields { ace: seg.flags.ace(), option: seg.options.accecn, newer },
                payload_len: len,
                fin: seg.flags.contains(TcpFlags::FIN),
            },
        );
        if outcome.freed && self.released {
            self.snd.shrink();
        }
        if outcome.fin_acked {
            self.on_fin_acked(ctx);
        }
    }

    /// Our FIN is acknowledged.
    fn on_fin_acked(&mut self, ctx: &mut Ctx<'_>) {
        if !self.flushed {
            self.flushed = true;
            self.notices.add(Notices::FLUSHED);
        }
        let before = self.state;
        if before == State::LastAck {
            self.die(ctx, None);
            return;
        }
        self.change_state(ctx, Input::AckOfFin);
        match (before, self.state) {
            (State::FinWait1, State::FinWait2) => self.arm_fin_wait_2(ctx.now),
            (State::Closing, State::TimeWait) => self.enter_time_wait(ctx),
            _ => {}
        }
    }

    /// The seventh and eighth check: data from `seq` on, and FIN.
    pub(super) fn take_text(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>, seq: SeqNum) {
        let fin = seg.flags.contains(TcpFlags::FIN);
        if (seg.payload.is_empty() && !fin) || !self.state.may_receive() {
            return;
        }
        // RFC 9293, section 3.6.1: data that can no longer be read is answered with RST.
        let end = seq + seg.payload.len() as u32;
        if self.released && !seg.payload.is_empty() && end.gt(self.rcv.rcv_nxt()) {
            ctx.observe.counters.tcp_abort_on_data += 1;
            self.rst_due = true;
            self.die(ctx, Some(ConnError::DataAfterClose));
            return;
        }
        let incoming = self.incoming(ctx.now, ip, seg, seq);
        let received = self.rcv.on_data(ctx, &self.config, &incoming);
        if received.readable {
            self.notices.add(Notices::READABLE);
        }
        if received.fin {
            self.change_state(ctx, Input::Fin);
            self.notices.add(Notices::READABLE);
            if self.state == State::TimeWait {
                self.enter_time_wait(ctx);
            }
        }
    }

    /// The data of `seg` from `seq` on, or its FIN, for the receiving half.
    #[inline]
    pub(super) fn incoming<'a>(
        &mut self,
        now: Instant,
        ip: &IpInfo,
        seg: &TcpSegment<'a>,
        seq: SeqNum,
    ) -> Incoming<'a> {
        self.last_data = now.coarse();
        let ts_rtt = match seg.options.timestamps {
            Some(ts) if self.ts.enabled() => self.ts.age(now, ts.ecr),
            _ => None,
        };
        Incoming {
            seq,
            payload: seg.payload,
            fin: seg.flags.contains(TcpFlags::FIN),
            psh: seg.flags.contains(TcpFlags::PSH),
            urg: seg.flags.contains(TcpFlags::URG),
            ce: ip.ecn == Ecn::Ce,
            // With accurate ECN the bit is part of a counter.
            cwr: seg.flags.contains(TcpFlags::CWR) && !self.rcv.counts_codepoints(),
            segments: seg.wire_segments,
            ts_rtt,
            srtt: self.snd.srtt(),
        }
    }

    /// A segment arrived that only the peer can have sent: the peer is alive.
    pub(super) fn heard(&mut self, ctx: &Ctx<'_>) {
        self.last_arrival = ctx.now;
        self.keep_alive_probes = 0;
        self.soft_error = None;
    }
}
