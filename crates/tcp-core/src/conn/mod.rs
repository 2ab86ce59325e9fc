//! One connection (RFC 9293): joins a [`Sender`] and a [`Receiver`] into TCP.
//!
//! | file | holds |
//! |---|---|
//! | `transition.rs` | the state diagram, as a total function |
//! | `handshake.rs` | retransmission of the SYN, becoming ESTABLISHED |
//! | `handshake/syns.rs` | what the two SYNs offer and agree on |
//! | `handshake/ecn.rs` | what a handshake agrees on for ECN |
//! | `handshake/fast_open.rs` | data before the handshake is complete (RFC 7413) |
//! | `predict.rs` | header prediction: the segment that a bulk receiver expects |
//! | `checks.rs` | which segments are accepted: PAWS, window, RST, SYN and ACK (RFC 5961) |
//! | `arrival.rs` | segment arrival (section 3.10.7) |
//! | `challenge.rs` | ACKs that anyone can provoke, and their limits |
//! | `opening.rs` | segments before ESTABLISHED |
//! | `time_wait.rs` | segments in TIME-WAIT |
//! | `timestamps.rs` | RFC 7323's clock and PAWS |
//! | `egress.rs` | what to send next, building it, and what its departure commits |
//! | `timers.rs` | every deadline of the connection |
//! | `close.rs` | FIN, RST, abort, TIME-WAIT |
//! | `icmp.rs`, `path.rs` | ICMP errors (RFC 5927), and what is learnt of the path |
//! | `app.rs` | the application's calls |
//! | `settings.rs` | settings that the application changes on a running connection |
//!
//! The endpoint owns connections and calls them; connections are independent of each other.

mod app;
mod arrival;
mod challenge;
mod checks;
mod close;
mod egress;
mod handshake;
mod icmp;
mod notices;
mod opening;
mod path;
mod predict;
mod settings;
mod time_wait;
mod timers;
mod timestamps;
mod transition;

#[cfg(test)]
mod tests;

pub(crate) use arrival::{Disposition, RstSpec};
pub(crate) use challenge::{AckTrigger, count_skipped_ack, may_answer};
pub(crate) use egress::blank_header;
pub(crate) use handshake::syns::{Offer, OwnSyn, Syns, default_mss};
pub(crate) use opening::Opening;
pub(crate) use time_wait::{Reaction, Retired, TimeWait};
pub(crate) use timestamps::TimestampClock;

pub(crate) use icmp::IcmpError;
pub(crate) use notices::Notices;
pub(crate) use path::PathNews;

use crate::State;
use crate::config::ConnConfig;
use crate::counters::Counters;
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::TraceEvent;
use crate::four_tuple::FourTuple;
use crate::memory::budget::{Budget, Grant};
use crate::pattern::Pattern;
use crate::rate_limit::ConnRateLimit;
use crate::rcv::Receiver;
use crate::seq::SeqNum;
use crate::snd::Sender;
use crate::time::Instant;
use crate::wire::TcpSegment;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::IpAddr;
use handshake::Handshake;
use transition::Input;

/// IP and TCP headers without options.
pub(crate) const fn header_len(remote: &IpAddr) -> u32 {
    match remote {
        IpAddr::V4(_) => 40,
        IpAddr::V6(_) => 60,
    }
}

/// A passive open before it is a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfOpen {
    pub(crate) syns: Syns,
    /// When the SYN-ACK first left, if it has.
    pub(crate) first_sent: Option<Instant>,
    /// Wire segments received.
    pub(crate) segs_in: u8,
}

impl HalfOpen {
    /// With this SYN, which makes `offer`, and our sequence number `iss`.
    pub(crate) fn begun_by(syn: &TcpSegment<'_>, iss: SeqNum, offer: Offer) -> Self {
        let segs_in = syn.wire_segments.min(255) as u8;
        Self { syns: Syns::passive(iss, syn.seq, offer), first_sent: None, segs_in }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    tuple: FourTuple,
    config: Arc<ConnConfig>,
    snd: Sender,
    rcv: Receiver,
    ts: TimestampClock,
    /// Present until ESTABLISHED.
    handshake: Option<Box<Handshake>>,
    /// End of TIME-WAIT, or of an orphan's FIN-WAIT-2.
    wait_until: Instant,
    /// Arrival of the last segment, from which keep-alive counts.
    last_arrival: Instant,
    /// When memory was last given back; first, when the connection was created.
    trimmed_at: Instant,
    /// Wire segments received.
    segs_in: u64,
    /// Wire segments sent.
    segs_out: u64,
    /// When data or a FIN last arrived, in units of [`Instant::coarse`].
    last_data: u32,
    /// Challenge ACKs of this connection (RFC 5961, section 7).
    challenges: ConnRateLimit,
    /// Answers to keep-alive and window probes.
    probe_answers: ConnRateLimit,
    /// Answers to other segments that are not acceptable and occupy no sequence space.
    stray_answers: ConnRateLimit,
    notices: Notices,
    state: State,
    error: Option<ConnError>,
    /// Reported by ICMP; becomes the connection's error if it times out (RFC 5927, section 5.2).
    soft_error: Option<ConnError>,
    /// The peer's MSS, from the handshake: a larger MTU of the device permits segments up to it.
    peer_mss: u16,
    /// Shift for the peer's window field.
    snd_wscale: u8,
    /// Window scaling is in use.
    scaling: bool,
    /// Keep-alive probes sent since the last arrival.
    keep_alive_probes: u8,
    /// A keep-alive probe is due.
    probe_due: bool,
    /// A challenge ACK is due.
    challenge_due: bool,
    /// An RST is due, and then nothing more.
    rst_due: bool,
    /// The SYN carried data that was acknowledged with it.
    syn_data: bool,
    /// The application has closed its sending side.
    shut: bool,
    /// The application has released the connection.
    released: bool,
    /// The acknowledgment of the FIN was reported.
    flushed: bool,
    /// Bytes that the memory budget was charged with for the connection.
    charged: u32,
    /// What of the send buffer the endpoint's memory permitted when it was last asked.
    send_grant: Grant,
    /// Pure ACKs in the egress scheduler.
    acks_queued: u8,
    /// A control segment is in the egress scheduler.
    control_queued: bool,
}

impl Connection {
    /// An active open: SYN-SENT, with the SYN to be transmitted.
    pub(crate) fn connect(
        ctx: &mut Ctx<'_>,
        tuple: FourTuple,
        config: Arc<ConnConfig>,
        iss: SeqNum,
        ts_offset: u32,
    ) -> Self {
        ctx.trace(|| TraceEvent::Opened { tuple, passive: false });
        let mut conn = Self::closed(ctx, tuple, config, iss, ts_offset);
        conn.handshake = Some(Box::new(Handshake::active(ctx.now, iss, &conn.config)));
        conn.change_state(ctx, Input::ActiveOpen);
        ctx.observe.counters.tcp_active_opens += 1;
        conn
    }

    /// A passive open, from what its handshake has said so far: SYN-RECEIVED, with the SYN-ACK to
    /// be transmitted unless it has been.
    pub(crate) fn accept(
        ctx: &mut Ctx<'_>,
        tuple: FourTuple,
        config: Arc<ConnConfig>,
        ts_offset: u32,
        half_open: HalfOpen,
    ) -> Self {
        let HalfOpen { syns, first_sent, segs_in } = half_open;
        ctx.trace(|| TraceEvent::Opened { tuple, passive: true });
        let mut conn = Self::closed(ctx, tuple, config, syns.iss, ts_offset);
        conn.change_state(ctx, Input::PassiveOpen);
        conn.segs_in = u64::from(segs_in);
        conn.segs_out = u64::from(syns.transmissions);
        let handshake = Handshake::passive(ctx.now, syns, first_sent, &conn.config);
        conn.handshake = Some(Box::new(handshake));
        conn.change_state(ctx, Input::Syn);
        ctx.observe.counters.tcp_passive_opens += 1;
        conn
    }

    fn closed(ctx: &Ctx<'_>, tuple: FourTuple, config: Arc<ConnConfig>, iss: SeqNum, ts_offset: u32) -> Self {
        Self {
            tuple,
            snd: Sender::new(&config, iss),
            rcv: Receiver::new(&config),
            ts: TimestampClock::new(ts_offset),
            handshake: None,
            wait_until: Instant::FAR_FUTURE,
            last_arrival: ctx.now,
            trimmed_at: ctx.now,
            segs_in: 0,
            segs_out: 0,
            last_data: 0,
            challenges: ConnRateLimit::default(),
            probe_answers: ConnRateLimit::default(),
            stray_answers: ConnRateLimit::default(),
            notices: Notices::default(),
            state: State::Closed,
            error: None,
            soft_error: None,
            peer_mss: 0,
            snd_wscale: 0,
            scaling: false,
            keep_alive_probes: 0,
            probe_due: false,
            challenge_due: false,
            rst_due: false,
            syn_data: false,
            shut: false,
            released: false,
            flushed: false,
            charged: 0,
            send_grant: Grant::UNLIMITED,
            acks_queued: 0,
            control_queued: false,
            config,
        }
    }

    /// Both streams of the new connection follow `pattern`.
    pub(crate) fn expect_pattern(&mut self, pattern: Pattern) {
        self.snd.expect(pattern);
        self.rcv.expect(pattern);
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    pub(crate) const fn tuple(&self) -> &FourTuple {
        &self.tuple
    }

    pub(crate) const fn error(&self) -> Option<ConnError> {
        self.error
    }

    /// True in CLOSED with nothing left to send: the connection can be forgotten once the
    /// application has released it.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Closed) && !self.rst_due
    }

    /// SND.UNA: it moves when the peer acknowledges something new.
    pub(crate) const fn snd_una(&self) -> SeqNum {
        self.snd.snd_una()
    }

    /// Bytes that the connection holds, its own struct included. O(1).
    pub(crate) fn memory(&self) -> usize {
        let handshake = self.handshake.as_deref().map_or(0, size_of_val);
        size_of::<Self>() + handshake + self.snd.memory() + self.rcv.memory()
    }

    /// Charges the budget with what the connection holds, and with `entries` bytes that the
    /// endpoint holds for it, instead of what it was charged with before.
    pub(crate) fn charge(&mut self, budget: &mut Budget, entries: usize) {
        let held = u32::try_from(entries + self.memory()).unwrap_or(u32::MAX);
        budget.charge(core::mem::replace(&mut self.charged, held), held);
    }

    /// True if it is known that the endpoint's memory permits buffers of `grant`.
    #[inline]
    pub(crate) fn heeds(&self, grant: Grant) -> bool {
        self.rcv.heeds(grant)
    }

    /// The endpoint's memory permits buffers of `grant` from now on.
    pub(crate) fn heed(&mut self, grant: Grant) {
        self.rcv.heed(&self.config, grant);
    }

    /// Bytes that the memory budget was charged with for the connection.
    pub(crate) const fn charged(&self) -> u32 {
        self.charged
    }

    /// Since when nothing has moved: what was written is not acknowledged, or else, nothing has
    /// arrived.
    pub(crate) fn idle_since(&self) -> Instant {
        self.snd.stalled_since().unwrap_or(self.last_arrival)
    }

    /// Memory is under pressure: frees what the buffers do not need for what they hold.
    pub(crate) fn shrink(&mut self, counters: &mut Counters) {
        let before = self.rcv.memory();
        self.rcv.trim();
        self.snd.shrink();
        counters.tcp_rcv_collapsed += u64::from(self.rcv.readable() > 0 && self.rcv.memory() < before);
    }

    /// Memory is short: drops what arrived out of order.
    pub(crate) fn prune(&mut self, counters: &mut Counters) {
        counters.ofo_pruned += u64::from(self.rcv.prune());
    }

    /// Charges the budget with nothing for the connection, which is about to be forgotten.
    pub(crate) const fn discharge(&mut self, budget: &mut Budget) {
        budget.charge(core::mem::replace(&mut self.charged, 0), 0);
    }

    /// Wire segments whose data was accepted.
    pub(crate) const fn data_segments_in(&self) -> u64 {
        self.rcv.data_segments_in()
    }

    /// Follows the state diagram.
    fn change_state(&mut self, ctx: &mut Ctx<'_>, input: Input) {
        let from = self.state;
        let to = transition::next(from, input);
        if from == to {
            return;
        }
        let counted = |state| matches!(state, State::Established | State::CloseWait);
        match (counted(from), counted(to)) {
            (false, true) => ctx.observe.counters.tcp_curr_estab += 1,
            (true, false) => {
                ctx.observe.counters.tcp_curr_estab -= 1;
                ctx.observe.counters.tcp_estab_resets += u64::from(to == State::Closed);
            }
            _ => {}
        }
        self.state = to;
        ctx.trace(|| TraceEvent::State { from, to });
    }
}
