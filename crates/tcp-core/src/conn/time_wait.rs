//! TIME-WAIT: RSTs do not end it (RFC 1337), a newer SYN reuses it (RFC 6191), and the peer's FIN
//! restarts it.
//!
//! The rules are one function of [`Expected`], [`Expected::in_time_wait`]. They serve a whole
//! connection, which the application still holds, and a [`TimeWait`], the part of a released
//! connection that the endpoint keeps.

use super::Connection;
use super::arrival::Disposition;
use super::challenge::AckTrigger;
use super::checks::{Expected, Verdict};
use super::timestamps::TimestampClock;
use crate::State;
use crate::ctx::Ctx;
use crate::events::DropReason;
use crate::rate_limit::{ConnRateLimit, RateLimit};
use crate::rcv;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{SackBlocks, TcpFlags, TcpHeader, TcpOptions, TcpSegment};

/// What a segment in TIME-WAIT calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing: it is dropped.
    Drop(DropReason),
    /// Nothing: it is the ACK of our FIN. A peer in TIME-WAIT would answer an answer.
    Take,
    /// A new connection (RFC 6191), with an initial sequence number above `iss_floor`.
    Reopen {
        /// SND.NXT of the old connection.
        iss_floor: SeqNum,
    },
    /// An ACK, because it is not what this side expects: the peer has nothing to send after its
    /// FIN.
    Answer {
        /// Why it is dropped, unless the checks accept it.
        dropped: Option<DropReason>,
        /// What counts if the limit suppresses the ACK.
        trigger: AckTrigger,
        /// It is the peer's FIN, repeated: TIME-WAIT begins anew.
        restarts: bool,
    },
    /// It is dropped, and answered with a challenge ACK (RFC 5961).
    Challenge(DropReason),
}

impl Expected {
    /// What a segment in TIME-WAIT calls for (RFC 9293, section 3.10.7.4). Changes nothing.
    pub(crate) fn in_time_wait(&self, now: Instant, seg: &TcpSegment<'_>) -> Reaction {
        let answer = |dropped, trigger, restarts| Reaction::Answer { dropped, trigger, restarts };
        match self.judge(now, seg) {
            // RFC 1337, fix F1: an RST must not end TIME-WAIT early.
            Verdict::Reset | Verdict::GuessedReset | Verdict::StrayReset => {
                Reaction::Drop(DropReason::RstInTimeWait)
            }
            Verdict::Syn if !seg.flags.contains(TcpFlags::ACK) && self.is_older_than(now, seg) => {
                Reaction::Reopen { iss_floor: self.snd_nxt }
            }
            Verdict::Syn => Reaction::Challenge(DropReason::UnexpectedSyn),
            Verdict::BadAck => Reaction::Challenge(DropReason::BadAck),
            Verdict::Unstamped => Reaction::Drop(DropReason::NoTimestamp),
            Verdict::Unacknowledging => Reaction::Drop(DropReason::NoAck),
            Verdict::Old => answer(Some(DropReason::OldTimestamp), AckTrigger::OldTimestamp, false),
            Verdict::OutOfWindow | Verdict::AckOnly => {
                answer(Some(DropReason::OutOfWindow), AckTrigger::OutOfWindow, self.is_fin_again(seg))
            }
            Verdict::Acceptable if seg.seg_len() > 0 || seg.seq != self.rcv_nxt => {
                answer(None, AckTrigger::OutOfWindow, false)
            }
            Verdict::Acceptable => Reaction::Take,
        }
    }

    /// Section 3.10.7.4, eighth: the peer's repeated FIN, which is answered like every old segment,
    /// restarts the 2 MSL timer.
    fn is_fin_again(&self, seg: &TcpSegment<'_>) -> bool {
        seg.flags.contains(TcpFlags::FIN)
            && seg.seq + seg.seg_len() == self.rcv_nxt
            && seg.flags.contains(TcpFlags::ACK)
            && self.accepts_ack(seg.ack)
    }

    /// RFC 6191, section 2: true if the SYN is provably newer than everything that this connection
    /// received.
    fn is_older_than(&self, now: Instant, syn: &TcpSegment<'_>) -> bool {
        let beyond = syn.seq.gt(self.rcv_nxt);
        match (syn.options.timestamps, &self.ts) {
            (Some(stamp), Some(ts)) => {
                let later = !ts.rejects(now, stamp.val) && stamp.val != ts.recent();
                later || (stamp.val == ts.recent() && beyond)
            }
            _ => beyond,
        }
    }
}

/// What TIME-WAIT must remember of a connection: its numbers, in 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeWait {
    snd_nxt: SeqNum,
    oldest_ack: SeqNum,
    rcv_nxt: SeqNum,
    /// Sequence numbers of the peer's stream, or `u32::MAX` if there were more: what lies further
    /// back repeats nothing.
    received: u32,
    /// TS.Recent; 0 without timestamps. Unlike a connection's, it does not expire after 24 days,
    /// which is long for TIME-WAIT.
    ts_recent: u32,
    /// The window field of an ACK.
    window: u16,
    /// Its shift.
    wscale: u8,
    /// Flags of what is in use, and ACE of accurate ECN: see the constants.
    uses: u8,
}

impl TimeWait {
    /// Timestamps are in use.
    const TIMESTAMPS: u8 = 1;
    /// Duplicates are reported by DSACK.
    const DSACK: u8 = 2;
    /// Segments without timestamps are not taken.
    const INSISTS: u8 = 4;
    /// The place of ACE, zero without accurate ECN.
    const ACE_SHIFT: u32 = 3;

    /// Any numbers.
    #[cfg(test)]
    pub(crate) const fn for_test() -> Self {
        let zero = SeqNum(0);
        Self {
            snd_nxt: zero,
            oldest_ack: zero,
            rcv_nxt: zero,
            received: 0,
            ts_recent: 0,
            window: 0,
            wscale: 0,
            uses: 0,
        }
    }

    /// Timestamps are in use.
    pub(crate) const fn has_timestamps(&self) -> bool {
        self.uses & Self::TIMESTAMPS != 0
    }

    /// SND.NXT.
    pub(crate) const fn snd_nxt(&self) -> SeqNum {
        self.snd_nxt
    }

    /// What a segment must be like. `ts_offset` is that of the connection's timestamp clock.
    pub(crate) fn expected(&self, now: Instant, ts_offset: u32) -> Expected {
        Expected {
            rcv_nxt: self.rcv_nxt,
            window: u32::from(self.window) << self.wscale,
            snd_nxt: self.snd_nxt,
            oldest_ack: self.oldest_ack,
            ts: self.timestamps(now, ts_offset),
            insists: self.uses & Self::INSISTS != 0,
        }
    }

    fn timestamps(&self, now: Instant, offset: u32) -> Option<TimestampClock> {
        self.has_timestamps().then(|| {
            let mut ts = TimestampClock::new(offset);
            ts.enable(now, self.ts_recent);
            ts
        })
    }

    /// The ACK of our FIN came again: TS.Recent follows it.
    pub(crate) fn take(&mut self, seg: &TcpSegment<'_>) {
        if let Some(ts) = seg.options.timestamps.filter(|_| self.has_timestamps() && seg.ack == self.snd_nxt)
        {
            self.ts_recent = ts.val;
        }
    }

    /// Fills in the ACK that answers `seg`, but for its addresses. `reports`: it tells of repeated
    /// data (RFC 2883), which a challenge ACK does not.
    pub(crate) fn answer(
        &self,
        now: Instant,
        ts_offset: u32,
        seg: &TcpSegment<'_>,
        reports: bool,
        header: &mut TcpHeader<'_>,
    ) {
        let len = seg.payload.len() as u32;
        let mut sack = SackBlocks::EMPTY;
        if reports
            && self.uses & Self::DSACK != 0
            && len > 0
            && rcv::repeats(self.rcv_nxt, u64::from(self.received), seg.seq, len)
        {
            sack.push(seg.seq, seg.seq + len);
        }
        header.seq = self.snd_nxt;
        header.ack = self.rcv_nxt;
        header.flags = TcpFlags::ACK | TcpFlags::ace_of(u32::from(self.uses >> Self::ACE_SHIFT));
        header.window = self.window;
        let timestamps = self.timestamps(now, ts_offset).map(|ts| ts.option(now));
        header.options = TcpOptions { timestamps, sack, ..TcpOptions::NONE };
    }
}

/// A connection in TIME-WAIT that needs nothing but its [`TimeWait`] any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retired {
    /// Its numbers.
    pub(crate) numbers: TimeWait,
    /// When TIME-WAIT began, or began anew.
    pub(crate) since: Instant,
    /// How long it lasts.
    pub(crate) length: Duration,
    /// Limit of the ACKs that anyone can provoke.
    pub(crate) answers: ConnRateLimit,
    /// Limit of challenge ACKs.
    pub(crate) challenges: ConnRateLimit,
    /// The type of service of its packets.
    pub(crate) tos: u8,
    /// Their hop limit, unless it is the endpoint's.
    pub(crate) ttl: Option<u8>,
}

impl Connection {
    /// A segment in TIME-WAIT.
    pub(super) fn in_time_wait(
        &mut self,
        ctx: &mut Ctx<'_>,
        challenge: &mut RateLimit,
        seg: &TcpSegment<'_>,
    ) -> Disposition {
        match self.expected().in_time_wait(ctx.now, seg) {
            Reaction::Drop(reason) => ctx.dropped(reason),
            Reaction::Take => self.take_timestamp(ctx, seg),
            Reaction::Reopen { iss_floor } => {
                ctx.observe.counters.tcp_tw_reopened += 1;
                self.die(ctx, None);
                return Disposition::NewSyn { iss_floor };
            }
            Reaction::Answer { dropped, trigger, restarts } => {
                if let Some(reason) = dropped {
                    ctx.dropped(reason);
                }
                if restarts {
                    self.wait_until = ctx.now + self.config.time_wait;
                }
                self.answer_unacceptable(ctx, seg, trigger);
            }
            Reaction::Challenge(reason) => {
                ctx.dropped(reason);
                self.send_challenge(ctx, challenge);
            }
        }
        Disposition::Handled
    }

    /// What remains of this connection once nobody holds it and nothing of it is queued; `None` if
    /// it still has to send something, or is in another state.
    pub(crate) fn retire(&self) -> Option<Retired> {
        let idle = self.state == State::TimeWait
            && self.ack_due().is_none()
            && self.acks_queued == 0
            && !self.challenge_due
            && !self.control_queued;
        if !idle {
            return None;
        }
        let flag = |on, flag| if on { flag } else { 0 };
        let numbers = TimeWait {
            snd_nxt: self.snd.snd_nxt(),
            oldest_ack: self.snd.oldest_ack(),
            rcv_nxt: self.rcv.rcv_nxt(),
            received: u32::try_from(self.rcv.received()).unwrap_or(u32::MAX),
            ts_recent: self.ts.recent(),
            window: self.rcv.window_field(&self.config),
            wscale: self.rcv.wscale(),
            uses: flag(self.ts.enabled(), TimeWait::TIMESTAMPS)
                | flag(self.config.require_timestamps, TimeWait::INSISTS)
                | flag(self.rcv.has_sack() && self.config.dsack, TimeWait::DSACK)
                | self.rcv.ace().ace() << TimeWait::ACE_SHIFT,
        };
        Some(Retired {
            numbers,
            since: self.wait_until - self.config.time_wait,
            length: self.config.time_wait,
            answers: self.stray_answers,
            challenges: self.challenges,
            tos: self.config.dscp << 2,
            ttl: self.config.ttl,
        })
    }
}
