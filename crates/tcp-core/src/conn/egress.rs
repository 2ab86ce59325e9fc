//! What a connection sends next, how the packet is built, and what its departure commits.
//!
//! ```text
//!   next() ──► Plan ──► (scheduler) ──► claim() ──► build() ──► device says Ok ──► sent()
//!   pure               reserve()       still due?   headers                        state is committed
//! ```

use super::{Connection, header_len};
use crate::State;
use crate::config::{ConnConfig, EndpointConfig};
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::four_tuple::FourTuple;
use crate::info::Blocked;
use crate::packet::SendReason;
use crate::plan::Plan;
use crate::policy::sched::{ControlKind, Descriptor, SegmentClass};
use crate::rcv::{AckNumbers, AckRoom};
use crate::seq::SeqNum;
use crate::snd::SendLimits;
use crate::time::Instant;
use crate::wire::{
    Ecn, EmitError, Emitted, HeaderBuf, MAX_OPTIONS_LEN, TcpFlags, TcpHeader, TcpOptions, Timestamps,
    TxChecksum, TxChecksumMode, emit_tcp,
};

/// A built packet: what `sent` must commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Built {
    /// The headers' length, and what the device must do for the checksum.
    pub(crate) emitted: Emitted,
    /// The receiving half's part of it.
    ack: Option<AckNumbers>,
    flags: TcpFlags,
    /// Acknowledgment number in the header.
    pub(crate) ack_number: SeqNum,
}

/// A header with what all packets of a connection have in common.
#[inline]
pub(crate) fn blank_header(
    config: &ConnConfig,
    host: &EndpointConfig,
    tuple: &FourTuple,
) -> TcpHeader<'static> {
    let mut header = TcpHeader::new(tuple.local(), tuple.remote());
    header.ttl = config.ttl.unwrap_or(host.default_ttl);
    header.tos = config.dscp << 2;
    header
}

impl Connection {
    /// What to send next; `None` if nothing may be sent. If the egress scheduler has deferred data,
    /// everything but that. No super-packet exceeds `max_super_packet`, but new data may be a run
    /// of up to `run` packets, to be split before it is sent.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        host: &EndpointConfig,
        max_super_packet: u32,
        data_deferred: bool,
        run: u32,
    ) -> Option<Plan> {
        if self.rst_due {
            return (!self.control_queued).then(|| {
                let class = SegmentClass::Control(ControlKind::Rst);
                Plan::control(class, SendReason::Rst, self.seq_without_data())
            });
        }
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => {
                let plan = self.next_syn(host);
                if plan.is_some() || !self.may_send_early() {
                    return plan;
                }
            }
            _ => {}
        }
        if self.challenge_due && !self.control_queued {
            return Some(self.pure_ack(SendReason::ChallengeAck));
        }
        let ack = self.ack_due();
        // Out-of-order data is reported at once and in full: payload would leave no room for SACK
        // blocks. The ACK of a SYN-ACK with accurate ECN tells how that arrived, which a segment
        // with data cannot (RFC 9768, section 3.2.2.1).
        if let Some(reason) = ack
            && (self.rcv.has_out_of_order() || self.rcv.answers_syn_ack())
        {
            return Some(self.pure_ack(reason));
        }
        if self.state != State::TimeWait && !self.snd.rests() {
            let limits = self.send_limits(host, max_super_packet, run);
            let plan = self.snd.next(now, &self.config, &limits);
            if let Some(plan) = plan.filter(|plan| !(data_deferred && plan.may_be_deferred())) {
                return Some(plan);
            }
        }
        if let Some(reason) = ack {
            return Some(self.pure_ack(reason));
        }
        if self.probe_due && !self.control_queued {
            // RFC 9293, section 3.8.4: SEG.SEQ = SND.NXT - 1 makes the peer answer.
            let class = SegmentClass::Control(ControlKind::Probe);
            return Some(Plan::control(class, SendReason::KeepAlive, self.snd.snd_nxt() - 1));
        }
        None
    }

    /// True if [`next`](Self::next) would return nothing, for a connection that only receives: no
    /// more than a pure ACK is ever due, and none is at present.
    #[inline]
    pub(crate) fn rests(&mut self) -> bool {
        let owes = self.rst_due || self.challenge_due || self.probe_due || self.ack_due().is_some();
        self.state == State::Established && !owes && self.snd.rests()
    }

    fn next_syn(&self, host: &EndpointConfig) -> Option<Plan> {
        let handshake = self.handshake.as_ref()?;
        if !handshake.due {
            if self.challenge_due && !self.control_queued && !handshake.fast_open.early {
                return Some(Plan::control(
                    SegmentClass::PureAck,
                    SendReason::ChallengeAck,
                    handshake.syns.iss + 1,
                ));
            }
            return None;
        }
        if self.control_queued {
            return None;
        }
        let class = SegmentClass::Control(ControlKind::Syn);
        if self.state == State::SynSent {
            let len = self.syn_data(host);
            // With data, it begins with that: one past the SYN's own number.
            let seq = handshake.syns.iss + u32::from(len > 0);
            return Some(Plan { len, ..Plan::control(class, SendReason::Syn, seq) });
        }
        Some(Plan::control(class, SendReason::SynAck, handshake.syns.iss))
    }

    /// A pure ACK that is due and not already in the scheduler.
    pub(super) fn ack_due(&self) -> Option<SendReason> {
        self.rcv.ack_wanted(self.acks_queued)
    }

    fn pure_ack(&self, reason: SendReason) -> Plan {
        Plan::control(SegmentClass::PureAck, reason, self.seq_without_data())
    }

    /// True if `plan` is a pure ACK that later data or a FIN would make redundant.
    pub(crate) fn may_keep(&self, plan: &Plan) -> bool {
        plan.class == SegmentClass::PureAck
            && plan.reason != SendReason::ChallengeAck
            && self.rcv.ack_may_wait()
    }

    /// True if `plan` is new data that does not fill a packet, more of which may come from the
    /// application, while something is outstanding. `max_super_packet` as for [`next`](Self::next).
    pub(crate) fn may_cork(&self, host: &EndpointConfig, max_super_packet: u32, plan: &Plan) -> bool {
        let smss = self.snd.smss();
        let full = self.send_limits(host, max_super_packet, 1).max_payload / smss * smss;
        let unsent = self.snd.unsent();
        plan.reason == SendReason::NewData
            && !plan.fin
            && unsent < full
            && unsent.saturating_sub(plan.len) < smss
            && self.snd.is_outstanding()
    }

    /// SEG.SEQ of an ACK or RST.
    fn seq_without_data(&self) -> SeqNum {
        self.snd.seq_without_data(1 << self.snd_wscale)
    }

    fn send_limits(&self, host: &EndpointConfig, max_super_packet: u32, run: u32) -> SendLimits {
        let smss = self.snd.smss();
        let headers = header_len(&self.tuple.remote_ip()) + self.option_len();
        // RFC 3168's segmentation clears CWR in all packets but the first. As a bit of ACE it
        // belongs into all of them, so while it is set there is nothing to divide (RFC 9768,
        // section 6).
        let divisible = !self.rcv.ace().contains(TcpFlags::CWR);
        let (max_super_packet, run) = if divisible { (max_super_packet, run) } else { (0, 1) };
        let max_payload = max_super_packet.saturating_sub(headers).max(smss);
        // A run is built as one packet, whose header has no room for SACK blocks: a small segment
        // at its end would be the only one to carry them.
        let run = if self.rcv.has_sack() && self.rcv.has_out_of_order() { 1 } else { run };
        let max_run = smss.saturating_mul(run).min(u32::from(u16::MAX) - headers).max(max_payload);
        SendLimits { max_payload, max_run, departure_tick: host.departure_tick }
    }

    /// The packet was queued in the egress scheduler as `serial`.
    pub(crate) fn reserve(&mut self, plan: &Plan, serial: u64) {
        if plan.is_stream() {
            self.snd.reserve(plan, serial);
        } else {
            self.queue_control(plan);
        }
    }

    const fn queue_control(&mut self, plan: &Plan) {
        if matches!(plan.class, SegmentClass::PureAck) && !matches!(plan.reason, SendReason::ChallengeAck) {
            self.acks_queued = self.acks_queued.saturating_add(1);
        } else {
            self.control_queued = true;
        }
    }

    /// The acknowledgment number of an ACK sent now.
    pub(crate) const fn ack_number(&self) -> SeqNum {
        self.rcv.rcv_nxt()
    }

    /// The scheduler popped the reserved `descriptor`: returns what is still to be sent of it.
    /// [`sent`](Self::sent) or [`unclaim`](Self::unclaim) must follow.
    pub(crate) fn claim(&mut self, host: &EndpointConfig, descriptor: &Descriptor) -> Option<Plan> {
        let id = &descriptor.id;
        let reason = id.reason;
        let mut plan = Plan::control(descriptor.class, reason, id.seq);
        if reason == SendReason::Syn {
            // The device's MTU may have become smaller.
            plan.len = id.payload.min(self.syn_data(host));
        }
        if plan.is_stream() {
            return self.snd.claim(id.serial);
        }
        // CLOSED owes nothing but an RST, which leaves when what was queued before it is out of its
        // way.
        let may_leave = self.state != State::Closed || reason == SendReason::Rst;
        if descriptor.class == SegmentClass::PureAck && reason != SendReason::ChallengeAck {
            self.acks_queued = self.acks_queued.saturating_sub(1);
            // Data sent in the meantime may have carried it.
            return self.ack_due().filter(|_| may_leave).map(|reason| self.pure_ack(reason));
        }
        self.control_queued = false;
        let due = match reason {
            SendReason::Rst => self.rst_due,
            SendReason::Syn | SendReason::SynAck => self.handshake.as_ref().is_some_and(|shake| shake.due),
            SendReason::ChallengeAck => self.challenge_due,
            SendReason::KeepAlive => self.probe_due,
            _ => false,
        };
        (due && may_leave).then_some(plan)
    }

    /// The device refused the claimed packet.
    pub(crate) const fn unclaim(&mut self, plan: &Plan) {
        // The sender's reservations last until the packet has been sent.
        if !plan.is_stream() {
            self.queue_control(plan);
        }
    }

    /// The serial of a reserved retransmission that became void.
    pub(crate) fn take_voided(&mut self) -> Option<u64> {
        self.snd.take_voided()
    }

    /// Sees to it that two slices contain the payload of `plan`. Call it before
    /// [`payload`](Self::payload).
    #[inline]
    pub(crate) fn gather(&mut self, plan: &Plan) {
        if plan.len > 0 {
            self.snd.gather(plan.seq, plan.len);
        }
    }

    /// The payload of `plan`.
    pub(crate) fn payload(&self, plan: &Plan) -> [&[u8]; 2] {
        if plan.len == 0 { [&[], &[]] } else { self.snd.payload(plan.seq, plan.len) }
    }

    /// IP bytes of `plan`, to price it before it is built; for a super-packet, those of all wire
    /// segments.
    pub(crate) fn ip_len(&self, plan: &Plan) -> u32 {
        let headers = header_len(&self.tuple.remote_ip()) + self.option_len();
        headers.saturating_mul(plan.segments()).saturating_add(plan.len)
    }

    /// Builds the headers of `plan` into `buf`, with a checksum as `checksum` says.
    ///
    /// # Errors
    /// If the packet cannot be expressed on the wire.
    #[inline]
    pub(crate) fn build(
        &self,
        now: Instant,
        host: &EndpointConfig,
        plan: &Plan,
        checksum: TxChecksumMode,
        buf: &mut HeaderBuf,
    ) -> Result<Built, EmitError> {
        let mut header = blank_header(&self.config, host, &self.tuple);
        let ack = self.compose(now, host, plan, &mut header);
        let emitted = emit_tcp(&header, self.payload(plan), checksum, buf)?;
        Ok(Built { emitted, ack, flags: header.flags, ack_number: header.ack })
    }

    /// Puts the headers of `plan` as fields into `place`, if they can remain so: in the standard
    /// layout, and no SYN's.
    #[inline]
    pub(crate) fn build_fields(
        &self,
        now: Instant,
        host: &EndpointConfig,
        plan: &Plan,
        place: &mut Option<TcpHeader<'static>>,
    ) -> Option<Built> {
        if self.handshake.is_some() {
            return None;
        }
        // In place: it is large.
        let header = place.insert(blank_header(&self.config, host, &self.tuple));
        let ack = self.compose(now, host, plan, header);
        let emitted = Emitted { header_len: header.standard_len(), checksum: TxChecksum::Omitted };
        Some(Built { emitted, ack, flags: header.flags, ack_number: header.ack })
    }

    /// Completes the blank headers of `plan`. Returns the receiving half's part of them.
    #[inline(always)]
    fn compose(
        &self,
        now: Instant,
        host: &EndpointConfig,
        plan: &Plan,
        header: &mut TcpHeader<'static>,
    ) -> Option<AckNumbers> {
        header.seq = plan.seq;
        let mut ack = None;
        if let Some(handshake) = self.handshake.as_deref()
            && (!handshake.fast_open.early || plan.reason == SendReason::SynAck)
        {
            ack = self.syn_header(now, host, plan, handshake, header);
        } else {
            header.flags = TcpFlags::ACK;
            if self.snd.may_fragment() {
                header.may_fragment = true;
                // RFC 6864, section 4.3: unique within the lifetime of fragments. Counted by
                // connection, from a place that nobody can guess.
                header.identification = (self.segs_out as u16).wrapping_add(self.ts.offset() as u16);
            }
            let room = AckRoom { options: self.option_room(host, plan), bare: plan.is_bare() };
            let numbers = self.rcv.ack_numbers(now, &self.config, room);
            header.ack = numbers.ack;
            header.window = numbers.window;
            header.options = TcpOptions { sack: numbers.sack, accecn: numbers.accecn, ..TcpOptions::NONE };
            if self.ts.enabled() {
                header.options.timestamps = Some(self.ts.option(now));
            }
            if plan.reason == SendReason::Rst {
                header.flags = header.flags.union(TcpFlags::RST).union(self.rcv.ace());
                // RFC 7323, section 3.2: an RST SHOULD carry the timestamps; its other options are
                // irrelevant.
                header.options = TcpOptions { timestamps: header.options.timestamps, ..TcpOptions::NONE };
            } else {
                header.flags = header.flags.union(numbers.ecn);
                if plan.class == SegmentClass::Data
                    && plan.len > 0
                    && self.snd.ecn().is_some_and(|ecn| ecn.cwr_due)
                {
                    header.flags = header.flags.union(TcpFlags::CWR);
                }
                ack = Some(numbers);
            }
        }
        header.tos |= plan.mark(self.codepoint(plan)).bits();
        if plan.fin {
            header.flags = header.flags.union(TcpFlags::FIN);
        }
        if plan.psh {
            header.flags = header.flags.union(TcpFlags::PSH);
        }
        ack
    }

    /// The ECN codepoint of `plan`, unmarked.
    pub(crate) fn codepoint(&self, plan: &Plan) -> Ecn {
        if plan.class == SegmentClass::Data && plan.len > 0 {
            return self.snd.codepoint(self.config.l4s);
        }
        // RFC 3168, sections 6.1.4 to 6.1.6: no pure ACK, retransmission or probe is ECN-capable.
        if !self.config.ecn_control {
            return Ecn::NotEct;
        }
        self.control_codepoint(plan)
    }

    /// The codepoint of a control packet or a retransmission with ECN++
    /// (draft-ietf-tcpm-generalized-ecn, section 3.2).
    #[cold]
    fn control_codepoint(&self, plan: &Plan) -> Ecn {
        match plan.reason {
            SendReason::Syn | SendReason::SynAck => {
                let syns = self.handshake.as_deref().map(|handshake| &handshake.syns);
                syns.map_or(Ecn::NotEct, |syns| syns.codepoint(&self.config, plan.reason))
            }
            // Section 3.2.8: if the path drops ECN-capable packets, this one has to get through.
            reason if reason.is_rto() => Ecn::NotEct,
            // Section 3.2.3: only accurate ECN tells of marks on pure ACKs; without SACK the ACKs that
            // do so could be taken for duplicates.
            _ if plan.class == SegmentClass::PureAck
                && !(self.snd.has_accurate_ecn() && self.rcv.has_sack()) =>
            {
                Ecn::NotEct
            }
            _ => self.snd.codepoint(self.config.l4s),
        }
    }

    /// Headers before ESTABLISHED: SYN, SYN-ACK, RST, challenge ACK. Returns the receiving half's
    /// part, if it is at work.
    #[cold]
    fn syn_header(
        &self,
        now: Instant,
        host: &EndpointConfig,
        plan: &Plan,
        handshake: &super::handshake::Handshake,
        header: &mut TcpHeader<'static>,
    ) -> Option<AckNumbers> {
        let (own, syns) = (self.own_syn(host), &handshake.syns);
        match plan.reason {
            SendReason::Rst => {
                header.flags = TcpFlags::RST.union(TcpFlags::ACK);
                header.ack = syns.irs + 1;
                // RFC 7323, section 3.2.
                let agreed = syns.peer.timestamp().filter(|_| self.config.timestamps);
                header.options.timestamps = agreed.map(|ecr| Timestamps { ecr, ..self.ts.option(now) });
            }
            SendReason::Syn | SendReason::SynAck => {
                header.seq = syns.iss;
                own.write(now, plan.reason, syns, &self.ts, header);
                header.layout = handshake.fast_open.layout(syns);
                if handshake.fast_open.early {
                    let numbers = self.rcv.syn_ack_numbers();
                    (header.ack, header.window) = (numbers.ack, numbers.window);
                    return Some(numbers);
                }
            }
            _ => own.write_ack(syns, header),
        }
        None
    }

    /// Octets for options beside those on every segment: a full segment has no room (RFC 6691,
    /// section 3).
    fn option_room(&self, host: &EndpointConfig, plan: &Plan) -> usize {
        if plan.segment_size.is_some() {
            return 0;
        }
        let headers = header_len(&self.tuple.remote_ip()) + self.option_len();
        let room = host.mtu.saturating_sub(headers + plan.len);
        let room = if plan.len > 0 { room.min(self.snd.smss().saturating_sub(plan.len)) } else { room };
        (room as usize).min(MAX_OPTIONS_LEN - self.option_len() as usize)
    }

    /// True if the built ACK contains nothing that a later one would not also say. Call it before
    /// [`sent`](Self::sent).
    pub(crate) fn is_plain_ack(&self, plan: &Plan, built: &Built) -> bool {
        plan.class == SegmentClass::PureAck
            && plan.reason != SendReason::ChallengeAck
            && built.ack.as_ref().is_some_and(|numbers| self.rcv.is_plain(numbers))
    }

    /// The ACK policy and the rule that asked for `plan`; `None` unless it is an ACK that the
    /// receiver owes.
    pub(crate) fn ack_rule(&self, now: Instant, plan: &Plan) -> Option<(&'static str, &'static str)> {
        matches!(plan.reason, SendReason::AckByPolicy | SendReason::AckByTimer | SendReason::AckByObligation)
            .then(|| self.rcv.ack_rule(now, &self.config, plan.reason))
    }

    /// Why the sender stands still, after [`next`](Self::next) returned nothing.
    pub(crate) fn blocked(&self) -> Blocked {
        self.snd.blocked()
    }

    /// The scheduler has deferred the data that [`next`](Self::next) returned.
    pub(crate) fn on_deferred(&mut self, now: Instant) {
        self.snd.on_deferred(now);
    }

    /// The device took the packet.
    pub(crate) fn sent(&mut self, ctx: &mut Ctx<'_>, plan: &Plan, built: &Built) {
        let segments = u64::from(plan.segments());
        self.segs_out += segments;
        let is_retransmission = match plan.reason {
            SendReason::Syn | SendReason::SynAck => {
                self.handshake.as_ref().is_some_and(|handshake| handshake.syns.transmissions > 0)
            }
            SendReason::FastRetransmit | SendReason::RtoRetransmit => true,
            _ => plan.class == SegmentClass::Retransmit,
        };
        if is_retransmission {
            ctx.observe.counters.tcp_retrans_segs += segments;
        } else {
            ctx.observe.counters.tcp_out_segs += segments;
        }
        ctx.trace(|| TraceEvent::Sent {
            seq: plan.seq,
            len: plan.len,
            ack: built.ack_number,
            flags: built.flags,
            reason: plan.reason,
        });
        let max_rto = self.config.max_rto;
        match plan.reason {
            SendReason::Syn | SendReason::SynAck => {
                if let Some(handshake) = self.handshake.as_mut() {
                    if handshake.syns.transmissions > 0 {
                        ctx.observe.counters.tcp_syn_retrans += 1;
                    }
                    if plan.len > 0 {
                        handshake.fast_open.sent = plan.len as u16;
                    }
                    let ect = handshake.syns.codepoint(&self.config, plan.reason) != Ecn::NotEct;
                    handshake.sent(ctx.now, max_rto, built.flags.intersects(TcpFlags::ACE), ect);
                }
            }
            SendReason::Rst => {
                ctx.observe.counters.tcp_out_rsts += 1;
                self.rst_due = false;
                self.handshake = None;
                self.control_queued = false;
                return;
            }
            SendReason::ChallengeAck => {
                ctx.observe.counters.tcp_challenge_ack += 1;
                self.challenge_due = false;
            }
            SendReason::KeepAlive => {
                ctx.observe.counters.tcp_keep_alive += 1;
                self.keep_alive_probes = self.keep_alive_probes.saturating_add(1);
                self.probe_due = false;
            }
            _ if plan.is_stream() => {
                self.snd.sent(ctx, &self.config, plan);
            }
            _ => {}
        }
        if let Some(ack) = &built.ack {
            self.rcv.ack_sent(ctx, &self.config, plan.is_bare(), plan.reason, ack);
        }
    }
}
