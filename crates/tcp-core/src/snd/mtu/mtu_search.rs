//! The search for the largest segment that the path carries (RFC 4821, section 7; Linux,
//! `tcp_mtu_probe`).
//!
//! A probe is one segment of new data that is larger than the others, with enough behind it that
//! SACK tells its fate:
//!
//! ```text
//!   known to arrive                                    known not to, or the full size
//!   ─────┼──────────────────────┼──────────────────────────┼─────
//!       SMSS                  probe                      high
//!                 it arrives: SMSS = probe    it alone is lost: high = probe - 1, and no congestion
//! ```
//!
//! The first probe has the full size, for most paths carry it; those after it halve the range. The
//! search ends when the range is narrow, and begins anew some time later, for the path may have
//! become wider. It needs SACK, and an application that sends more than single segments; others
//! keep the smaller size.
//!
//! A probe that is lost together with other data says nothing, and the loss counts as any other.

use crate::config::{ConnConfig, PathMtuProbing};
use crate::ctx::Ctx;
use crate::info::Blocked;
use crate::packet::{SegmentClass, SendReason};
use crate::plan::Plan;
use crate::policy::cc::Phase;
use crate::recovery::DUP_THRESH;
use crate::recovery::loss::Finding;
use crate::scoreboard::AckCx;
use crate::seq::SeqNum;
use crate::snd::flight::Flight;
use crate::snd::gate::Gate;
use crate::snd::measure::path_mtu::{MtuProbe, MtuSearch, PathMtu};
use crate::snd::stream::Stream;
use crate::time::Instant;
use alloc::boxed::Box;

impl Stream {
    /// Segments of `payload` bytes have arrived over the same path before, and larger ones have
    /// not: they are tried at `until`.
    pub(in crate::snd) fn begin_narrow(&mut self, config: &ConnConfig, payload: u32, until: Instant) {
        let full = self.smss();
        if payload >= full {
            return;
        }
        let mut path = PathMtu::new(full);
        (path.proven, path.told) = (true, payload);
        if config.path_mtu_probing != PathMtuProbing::Off && self.sack {
            path.search = Some(MtuSearch::up_to(full, until));
        } else {
            path.raise_at = until;
        }
        self.path_mtu = Some(Box::new(path));
        self.set_smss(payload);
    }

    /// RFC 4821, section 7.2: with [`PathMtuProbing::Always`] segments begin at the base, and
    /// larger ones are searched for.
    pub(in crate::snd) fn begin_mtu_search(&mut self, now: Instant, config: &ConnConfig, base: u32) {
        let full = self.smss();
        if config.path_mtu_probing != PathMtuProbing::Always || !self.sack || full <= base {
            return;
        }
        let mut path = PathMtu::new(full);
        path.search = Some(MtuSearch::up_to(full, now));
        self.path_mtu = Some(Box::new(path));
        self.set_smss(base);
    }
}

impl Flight {
    /// A probe from `nxt` on, if one is to leave in place of other new data, of which there are
    /// `data` bytes.
    pub(in crate::snd) fn next_mtu_probe(
        &self,
        snd: &Stream,
        now: Instant,
        gate: &Gate,
        nxt: SeqNum,
        data: u32,
    ) -> Option<Result<Plan, Blocked>> {
        let path = snd.path_mtu.as_deref()?;
        let search = path.search.as_ref().filter(|search| search.probe.is_none() && search.next_at <= now)?;
        let undecided = path.claim.is_some() || path.fallback.is_some() || path.cut.is_some();
        // One that waits in the scheduler is not outstanding yet. Other data that waits is no
        // reason to put a probe off: behind a busy device there always is some.
        let waits = || self.reserved.holds(|reason| reason == SendReason::PathMtuProbe);
        if undecided || !snd.sack || self.recovery.phase != Phase::Open || waits() {
            return None;
        }
        let size = search.next_size(snd.smss())?;
        // RFC 4821, section 7.4: enough must follow that the loss of the probe is detected without
        // a timeout.
        let whole = size + DUP_THRESH * snd.smss();
        let usable = snd.wnd_end().saturating_distance_from(nxt);
        if !gate.retransmit
            || gate.clocked
            || data < whole
            || usable < whole
            || gate.window < u64::from(whole)
        {
            return None;
        }
        if gate.room < size {
            // What is outstanding makes room soon.
            return (self.pipe() > 0).then_some(Err(Blocked::CongestionWindow));
        }
        Some(Ok(Plan {
            class: SegmentClass::Data,
            reason: SendReason::PathMtuProbe,
            seq: nxt,
            len: size,
            segment_size: None,
            fin: false,
            psh: false,
            marked: false,
        }))
    }

    /// The probe of `size` bytes from `start` on has left.
    pub(in crate::snd) fn on_mtu_probe_sent(&self, snd: &mut Stream, start: SeqNum, size: u32) {
        if let Some(search) = snd.path_mtu.as_deref_mut().and_then(|path| path.search.as_mut()) {
            search.probe = Some(MtuProbe { start, size });
        }
    }

    /// What the records that an ACK covers tell of the probe.
    pub(in crate::snd) fn judge_mtu_probe(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        ack: &AckCx,
    ) {
        let (una, smss) = (snd.una, snd.smss());
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        let Some(search) = path.search.as_mut() else { return };
        let Some(probe) = search.probe else { return };
        if u32::from(ack.largest_packet) >= probe.size && probe.size > smss {
            search.probe = None;
            ctx.observe.counters.tcp_mtup_success += 1;
            self.set_smss(snd, ctx, config, probe.size);
            self.end_mtu_search_if_done(snd, ctx.now, config);
        } else if una.ge(probe.start + probe.size) {
            // It was sent again in smaller segments, by a timer: that says nothing.
            search.probe = None;
        }
    }

    /// RFC 4821, section 7.6.2: if nothing is lost but the probe, the path does not carry it, and
    /// there is no congestion. Returns what is left of `finding`.
    pub(in crate::snd) fn excuse_mtu_probe(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        finding: Finding,
    ) -> Finding {
        let smss = snd.smss();
        let in_episode = self.recovery.in_episode();
        let Some(path) = snd.path_mtu.as_deref_mut() else { return finding };
        let Some(search) = path.search.as_mut() else { return finding };
        let Some(probe) = search.probe.take_if(|probe| self.board.is_lost(probe.start)) else {
            return finding;
        };
        if in_episode || finding.newly_lost > probe.size {
            return finding;
        }
        search.refute(probe.size);
        path.proven = true;
        ctx.observe.counters.tcp_mtup_fail += 1;
        self.board.mark_larger_than(smss);
        self.recovery.dup_acks = 0;
        self.recovery.phase = Phase::Disorder;
        self.end_mtu_search_if_done(snd, ctx.now, config);
        Finding::default()
    }

    /// The retransmission timer has fired: whatever became of a probe, it is over.
    pub(in crate::snd) fn abandon_mtu_probe(&self, path: &mut PathMtu, now: Instant, config: &ConnConfig) {
        if let Some(search) = &mut path.search
            && let Some(probe) = search.probe.take()
        {
            // RFC 4821, section 7.6.3: severe, so that nothing is tried again soon.
            search.refute(probe.size);
            search.next_at = now + config.path_mtu_expiry;
        }
    }

    fn end_mtu_search_if_done(&self, snd: &mut Stream, now: Instant, config: &ConnConfig) {
        let smss = snd.smss();
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        if path.search.as_ref().is_some_and(|search| search.next_size(smss).is_none()) {
            path.search =
                (smss < path.full).then(|| MtuSearch::up_to(path.full, now + config.path_mtu_expiry));
        }
    }
}
