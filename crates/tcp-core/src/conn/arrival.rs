//! Segment arrival (RFC 9293, section 3.10.7): what a segment does once the [checks](super::checks) have judged it, with
//! RFC 6191's reuse of TIME-WAIT and RFC 1337's answer to RSTs there.

use super::checks::Verdict;
use super::{Connection, Notices, transition::Input};
use crate::State;
use crate::config::EndpointConfig;
use crate::ctx::Ctx;
use crate::drop_reason::DropReason;
use crate::error::ConnError;
use crate::events::TraceEvent;
use crate::packet::SendReason;
use crate::rate_limit::RateLimit;
use crate::rcv::Incoming;
use crate::seq::SeqNum;
use crate::snd::AckSegment;
use crate::time::Instant;
use crate::wire::{Ecn, IpInfo, TcpFlags, TcpSegment};

/// What the endpoint has to do after a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Nothing more than to look what the connection wants to send.
    Handled,
    /// Answer with this RST.
    Reset(RstSpec),
    /// A SYN for a connection in TIME-WAIT opens a new one (RFC 6191): forget this connection and treat the
    /// SYN as in LISTEN, with an initial sequence number above `iss_floor`.
    NewSyn {
        /// SND.NXT of the old connection.
        iss_floor: SeqNum,
    },
}

/// An RST: `<SEQ=seq><CTL=RST>`, or `<SEQ=seq><ACK=ack><CTL=RST,ACK>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RstSpec {
    pub(crate) seq: SeqNum,
    pub(crate) ack: Option<SeqNum>,
}

impl RstSpec {
    /// The RST that answers a segment of no connection (RFC 9293, section 3.10.7.1); none answers an RST.
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

/// What calls for an ACK that the limits may hold back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckTrigger {
    /// A segment that gets a challenge ACK (RFC 5961).
    Challenge,
    /// A segment that PAWS dropped.
    OldTimestamp,
    /// A segment outside the window.
    OutOfWindow,
}

impl Connection {
    /// A segment for this connection arrived.
    pub(crate) fn on_segment(
        &mut self,
        ctx: &mut Ctx<'_>,
        host: &EndpointConfig,
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
            State::SynSent => self.in_syn_sent(ctx, host, ip, seg),
            State::SynReceived => self.in_syn_received(ctx, host, challenge, ip, seg),
            _ => self.in_synchronized(ctx, challenge, ip, seg),
        }
    }

    /// Section 3.10.7.3.
    fn in_syn_sent(
        &mut self,
        ctx: &mut Ctx<'_>,
        host: &EndpointConfig,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        let Some(handshake) = self.handshake.as_mut() else { return Disposition::Handled };
        let has_ack = seg.flags.contains(TcpFlags::ACK);
        let acceptable = seg.ack == handshake.iss + 1 && handshake.transmissions > 0;
        // First: an ACK for something that was never sent.
        if has_ack && !acceptable {
            return match RstSpec::answer_to(seg) {
                Some(rst) => Disposition::Reset(rst),
                None => Disposition::Handled,
            };
        }
        // Second: RFC 5961, section 3.2: only an RST that acknowledges the SYN counts.
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
        // RFC 7323, section 3.2: TSecr echoes the TSval of our SYN. One that no SYN of ours showed belongs to
        // another connection. Zero is let pass: some hosts echo nothing in a SYN-ACK.
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
    fn in_syn_received(
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

        // The peer's SYN-ACK of a simultaneous open, or its SYN once more: both begin at IRS, which is below
        // the window. The first is taken as the ACK that it is, the second is answered again.
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
        // PAWS (RFC 7323, section 5.3): the timestamp of the peer's SYN is what its later ones are measured by.
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
                // A passive open returns to LISTEN, which is to say that this connection vanishes.
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

    /// Section 3.10.7.4, for ESTABLISHED and later: what each [`Verdict`] of the checks does.
    fn in_synchronized(
        &mut self,
        ctx: &mut Ctx<'_>,
        challenge: &mut RateLimit,
        ip: &IpInfo,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        let waiting = self.state == State::TimeWait;
        if waiting && let Some(disposition) = self.in_time_wait(ctx, seg) {
            return disposition;
        }
        match self.judge(ctx.now, seg) {
            Verdict::Acceptable if waiting => self.take_in_time_wait(ctx, seg),
            Verdict::Acceptable => self.take(ctx, ip, seg),
            Verdict::Unstamped => ctx.dropped(DropReason::NoTimestamp),
            Verdict::Unacknowledging => ctx.dropped(DropReason::NoAck),
            Verdict::Old => {
                ctx.dropped(DropReason::OldTimestamp);
                self.answer_unacceptable(ctx, seg, AckTrigger::OldTimestamp);
            }
            Verdict::OutOfWindow => {
                ctx.dropped(DropReason::OutOfWindow);
                if waiting {
                    self.restart_time_wait(ctx, seg);
                }
                self.answer_unacceptable(ctx, seg, AckTrigger::OutOfWindow);
            }
            Verdict::AckOnly => {
                ctx.dropped(DropReason::OutOfWindow);
                self.answer_unacceptable(ctx, seg, AckTrigger::OutOfWindow);
                self.take_ack(ctx, seg);
            }
            Verdict::StrayReset => ctx.dropped(DropReason::RstOutOfWindow),
            Verdict::GuessedReset => {
                ctx.dropped(DropReason::RstNotExpected);
                self.send_challenge(ctx, challenge);
            }
            Verdict::Syn => {
                ctx.dropped(DropReason::UnexpectedSyn);
                self.send_challenge(ctx, challenge);
            }
            Verdict::BadAck => {
                ctx.dropped(DropReason::BadAck);
                self.send_challenge(ctx, challenge);
            }
            Verdict::Reset => self.on_reset(ctx),
        }
        Disposition::Handled
    }

    /// An acceptable segment.
    fn take(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>) {
        self.take_timestamp(ctx, seg);
        self.take_ack(ctx, seg);
        if self.state == State::Closed {
            return;
        }
        // Sixth: URG. RFC 6093, section 6: the data stays in the stream, the pointer is not used.
        if seg.flags.contains(TcpFlags::URG) {
            ctx.counters.tcp_urgent += 1;
        }
        // Seventh and eighth: text and FIN.
        self.take_text(ctx, ip, seg, seg.seq);
    }

    /// TS.Recent follows an acceptable segment.
    fn take_timestamp(&mut self, ctx: &Ctx<'_>, seg: &TcpSegment<'_>) {
        if let Some(ts) = self.fresh_timestamp(seg) {
            self.ts.update(ctx.now, ts.val, seg.seq, self.rcv.highest_ack());
        }
    }

    /// The peer resets the connection. It ends in good order only if both sides had closed and nothing is lost by it:
    /// CLOSING and LAST-ACK begin when the application closes, whatever is still to be sent.
    fn on_reset(&mut self, ctx: &mut Ctx<'_>) {
        let both_closed = matches!(self.state, State::Closing | State::LastAck);
        let orderly = both_closed && self.snd.is_delivered();
        self.die(ctx, (!orderly).then_some(ConnError::Reset));
    }

    /// RFC 9293, section 3.10.7.4: a segment that is not acceptable is answered with an ACK.
    ///
    /// Two hosts that each find the other's ACKs unacceptable would answer each other for ever, as fast as the
    /// path carries it. So segments that occupy no sequence space share the connection's limit of challenge ACKs.
    fn answer_unacceptable(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>, trigger: AckTrigger) {
        if seg.seg_len() == 0 && !self.challenges.allow(ctx.now) {
            self.count_skipped_ack(ctx, trigger);
            return;
        }
        self.rcv.on_unacceptable(ctx, &self.config, seg.seq, seg.payload.len() as u32);
    }

    /// What TIME-WAIT does before the checks. `None`: go on with them.
    fn in_time_wait(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) -> Option<Disposition> {
        let flags = seg.flags;
        if flags.contains(TcpFlags::RST) {
            // RFC 1337, fix F1: an RST must not end TIME-WAIT early.
            ctx.dropped(DropReason::RstInTimeWait);
            return Some(Disposition::Handled);
        }
        if flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK) && self.is_newer(ctx, seg) {
            ctx.counters.tcp_tw_recycled += 1;
            let iss_floor = self.snd.snd_nxt();
            self.die(ctx, None);
            return Some(Disposition::NewSyn { iss_floor });
        }
        None
    }

    /// An acceptable segment in TIME-WAIT. The peer has nothing to send beyond its FIN, so whatever is not just the ACK
    /// of ours shows that the two disagree, and is answered. That ACK is not: a peer in TIME-WAIT would answer in turn.
    fn take_in_time_wait(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) {
        if seg.seg_len() > 0 || seg.seq != self.rcv.rcv_nxt() {
            self.answer_unacceptable(ctx, seg, AckTrigger::OutOfWindow);
        } else {
            self.take_timestamp(ctx, seg);
        }
    }

    /// Section 3.10.7.4, eighth: the peer's FIN once more, which is answered like every old segment, restarts the 2 MSL
    /// timer.
    fn restart_time_wait(&mut self, ctx: &Ctx<'_>, seg: &TcpSegment<'_>) {
        let fin_again = seg.flags.contains(TcpFlags::FIN) && seg.seq + seg.seg_len() == self.rcv.rcv_nxt();
        if fin_again && seg.flags.contains(TcpFlags::ACK) && self.snd.accepts(seg.ack) {
            self.wait_until = ctx.now + self.config.time_wait;
        }
    }

    /// RFC 6191, section 2: the SYN is provably newer than everything that this connection received.
    fn is_newer(&self, ctx: &Ctx<'_>, syn: &TcpSegment<'_>) -> bool {
        let beyond = syn.seq.gt(self.rcv.rcv_nxt());
        match syn.options.timestamps {
            Some(ts) if self.ts.enabled() => {
                let later = !self.ts.rejects(ctx.now, ts.val) && ts.val != self.ts.recent();
                later || (ts.val == self.ts.recent() && beyond)
            }
            _ => beyond,
        }
    }

    /// The ACK of a segment that has passed the checks.
    fn take_ack(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) {
        self.heard(ctx);
        let len = seg.payload.len() as u32;
        if len == 0 && !seg.flags.contains(TcpFlags::FIN) {
            ctx.counters.tcp_pure_acks += 1;
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
                sack: if self.sack { seg.options.sack } else { Default::default() },
                tsecr,
                ts_now: self.ts.value(ctx.now),
                ece: seg.flags.contains(TcpFlags::ECE),
                payload_len: len,
                fin: seg.flags.contains(TcpFlags::FIN),
            },
        );
        if outcome.freed {
            self.offer_space();
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
            (State::FinWait1, State::FinWait2) => self.arm_fin_wait_2(ctx),
            (State::Closing, State::TimeWait) => self.enter_time_wait(ctx),
            _ => {}
        }
    }

    /// The seventh and the eighth check: data from `seq` on, and FIN.
    fn take_text(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, seg: &TcpSegment<'_>, seq: SeqNum) {
        let fin = seg.flags.contains(TcpFlags::FIN);
        if (seg.payload.is_empty() && !fin) || !self.state.may_receive() {
            return;
        }
        // RFC 9293, section 3.6.1: data that nobody can read any more is answered with RST.
        let end = seq + seg.payload.len() as u32;
        if self.released && !seg.payload.is_empty() && end.gt(self.rcv.rcv_nxt()) {
            ctx.counters.tcp_abort_on_data += 1;
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

    /// The data of `seg` from `seq` on, for the receiving half.
    #[inline]
    pub(super) fn incoming<'a>(
        &self,
        now: Instant,
        ip: &IpInfo,
        seg: &TcpSegment<'a>,
        seq: SeqNum,
    ) -> Incoming<'a> {
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
            cwr: seg.flags.contains(TcpFlags::CWR),
            segments: seg.wire_segments,
            ts_rtt,
            srtt: self.snd.srtt(),
        }
    }

    /// A segment arrived that only the peer can have sent: it lives.
    pub(super) fn heard(&mut self, ctx: &Ctx<'_>) {
        self.last_arrival = ctx.now;
        self.keep_alive_probes = 0;
        self.soft_error = None;
    }

    /// A challenge ACK (RFC 5961), within the limits of the connection and of the endpoint.
    fn send_challenge(&mut self, ctx: &mut Ctx<'_>, global: &mut RateLimit) {
        if self.challenges.allow(ctx.now) && global.allow(ctx.now) {
            self.challenge_due = true;
        } else {
            self.count_skipped_ack(ctx, AckTrigger::Challenge);
        }
    }

    /// The limits let an ACK not leave. Linux counts by state, and by cause elsewhere.
    fn count_skipped_ack(&self, ctx: &mut Ctx<'_>, trigger: AckTrigger) {
        let counters = &mut *ctx.counters;
        let counter = match (self.state, trigger) {
            (State::SynReceived, _) => &mut counters.tcp_ack_skipped_syn_recv,
            (_, AckTrigger::Challenge) => &mut counters.tcp_ack_skipped_challenge,
            (State::FinWait2, _) => &mut counters.tcp_ack_skipped_fin_wait2,
            (State::TimeWait, _) => &mut counters.tcp_ack_skipped_time_wait,
            (_, AckTrigger::OldTimestamp) => &mut counters.tcp_ack_skipped_paws,
            (_, AckTrigger::OutOfWindow) => &mut counters.tcp_ack_skipped_seq,
        };
        *counter += 1;
    }
}
