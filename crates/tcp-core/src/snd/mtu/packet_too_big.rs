//! Claims that the path carries less, from a Packet Too Big message to the segment size: see
//! [`path_mtu`](crate::snd::measure::path_mtu).

use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::scoreboard::{AckCx, Claim};
use crate::seq::SeqNum;
use crate::snd::Sender;
use crate::snd::flight::Flight;
use crate::snd::measure::path_mtu::{MtuSearch, PathMtu, base_smss};
use crate::snd::mtu::black_hole::step_down;
use crate::snd::stream::Stream;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// The least time after its departure for which a packet may still be acknowledged before a first
/// claim about it is believed: a peer may delay its ACK for longer than a short round trip takes.
const MIN_WAIT: Duration = Duration::from_millis(50);

impl Sender {
    /// A Packet Too Big message quotes the packet that begins at `quoted`; the MTU that it names
    /// has room for `payload` bytes of data. Below `floor` bytes segments do not shrink; instead
    /// they may be fragmented.
    pub(crate) fn on_packet_too_big(&mut self, ctx: &mut Ctx<'_>, quoted: SeqNum, payload: u32, floor: u32) {
        if payload == self.stream.smss() || (payload < floor && self.may_fragment()) {
            // The rest of a flight of larger packets.
            return;
        }
        let claimed = self.in_flight().is_some_and(|(snd, flight)| {
            let packet = flight.board.packet_at(quoted);
            let packet = packet.filter(|(len, _)| payload < snd.smss().min(*len));
            if let Some((_, sent_at)) = packet {
                let initial = payload >= u32::from(flight.largest_acked);
                let believe_at = snd.believe_at(ctx.now, sent_at, initial);
                snd.take_claim(Claim { payload, floor, quoted, sent_at, believe_at, initial });
            }
            packet.is_some()
        });
        if !claimed {
            ctx.observe.counters.tcp_mtu_refused += 1;
        }
    }
}

impl Stream {
    /// When a claim about a packet that left at `sent_at` is believed if nothing is heard.
    /// `initial`: no packet has arrived that is larger than it says.
    fn believe_at(&self, now: Instant, sent_at: Instant, initial: bool) -> Instant {
        match self.rtt.srtt() {
            Some(srtt) if initial => (sent_at + srtt.saturating_mul(2).max(MIN_WAIT)).max(now),
            _ => Instant::FAR_FUTURE,
        }
    }

    /// A message says that the path does not carry a packet.
    fn take_claim(&mut self, claim: Claim) {
        let full = self.smss();
        let path = self.path_mtu.get_or_insert_with(|| Box::new(PathMtu::new(full)));
        // Of two sizes the larger one is believed first. If it is too large, the path will say so
        // again.
        if path.claim.is_none_or(|open| open.payload < claim.payload) {
            path.claim = Some(claim);
        }
    }

    /// What is not decided yet about the path, for the records that an ACK covers.
    pub(in crate::snd) fn open_claim(&self) -> Option<Claim> {
        self.path_mtu.as_deref()?.claim
    }

    /// When a claim is believed because nothing was heard.
    pub(in crate::snd) fn claim_at(&self) -> Instant {
        self.open_claim().map_or(Instant::FAR_FUTURE, |claim| claim.believe_at)
    }
}

impl Flight {
    /// What the records that an ACK covers tell of the path.
    pub(in crate::snd) fn judge_claim(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
        ack: &AckCx,
    ) {
        self.largest_acked = self.largest_acked.max(ack.largest_packet);
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        self.judge_cut(path, ack);
        if path.search.is_some() {
            self.judge_mtu_probe(snd, ctx, config, ack);
        }
        let smss = snd.smss();
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        path.fallback.take_if(|size| u32::from(self.largest_acked) > *size);
        if u32::from(ack.largest_packet) >= smss {
            path.confirm(smss);
        }
        if let Some(claim) = path.claim {
            let reported = self.board.is_sacked(claim.quoted, claim.quoted + 1);
            if claim.quoted.lt(snd.una) || reported || ack.refutes_claim {
                path.claim = None;
                ctx.observe.counters.tcp_mtu_refuted += 1;
            } else if claim.initial && ack.is_after_claim {
                self.believe(snd, ctx, config, claim);
                return;
            }
        }
        self.try_full_size(snd, ctx, config);
    }

    /// Loss detection has looked at the board.
    pub(in crate::snd) fn judge_claim_by_loss(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
    ) {
        if let Some(claim) = snd.open_claim()
            && self.board.is_lost(claim.quoted)
        {
            self.believe(snd, ctx, config, claim);
        }
    }

    /// [`claim_at`](Stream::claim_at) has come.
    pub(in crate::snd) fn on_claim_timeout(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
    ) {
        if let Some(claim) = snd.open_claim() {
            self.believe(snd, ctx, config, claim);
        }
    }

    /// The retransmission timer has fired, and nothing was sent for it yet.
    pub(in crate::snd) fn judge_path_by_timeout(
        &mut self,
        snd: &mut Stream,
        ctx: &mut Ctx<'_>,
        config: &ConnConfig,
    ) {
        let head = u32::from(self.board.head_packet_len());
        // What lies beyond the peer's window is dropped there, however much the path carries.
        let fits = snd.wnd_end().ge(snd.una + head);
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        self.abandon_mtu_probe(path, ctx.now, config);
        if let Some(claim) = path.claim {
            self.believe(snd, ctx, config, claim);
            return;
        }
        if let Some(known) = path.fallback.filter(|size| fits && head > *size) {
            let size =
                if path.silent { step_down(head, known, base_smss(snd.least_smss, config)) } else { known };
            path.fallback.take_if(|known| *known == size);
            if path.silent && snd.sack {
                path.search = Some(MtuSearch::below(head, ctx.now));
            } else {
                path.raise_at = ctx.now + config.path_mtu_expiry;
            }
            ctx.observe.counters.tcp_mtu_reduced += 1;
            ctx.observe.counters.tcp_mtu_black_holes += u64::from(path.silent);
            path.proven |= path.silent;
            self.set_smss(snd, ctx, config, size);
        }
    }

    fn believe(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig, claim: Claim) {
        let smss = snd.smss();
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        path.claim = None;
        path.fallback = None;
        path.cut = None;
        path.silent = false;
        if claim.payload >= smss {
            return;
        }
        path.may_fragment = claim.payload < claim.floor;
        // RFC 5927, section 7.2: if larger packets have arrived, the loss of one of them may have
        // been chance. And what is fragmented is no size that others should begin with.
        path.proven = claim.initial && !path.may_fragment;
        let raise_at = ctx.now + config.path_mtu_expiry;
        match &mut path.search {
            Some(search) => *search = MtuSearch::up_to(path.full, raise_at),
            None => path.raise_at = raise_at,
        }
        // What arrived before says nothing of the path as it is.
        let most = u16::try_from(claim.payload).unwrap_or(u16::MAX);
        self.largest_acked = self.largest_acked.min(most);
        ctx.observe.counters.tcp_mtu_reduced += 1;
        if path.may_fragment {
            ctx.observe.counters.tcp_mtu_fragmented += 1;
            // Those of the floor's size are sent again, too.
            self.board.mark_larger_than(claim.payload);
        }
        self.set_smss(snd, ctx, config, claim.payload.max(claim.floor).min(smss));
    }

    /// RFC 1191, section 6.3: the path may have widened, and an attacker may have been believed.
    fn try_full_size(&mut self, snd: &mut Stream, ctx: &mut Ctx<'_>, config: &ConnConfig) {
        let smss = snd.smss();
        let Some(path) = snd.path_mtu.as_deref_mut() else { return };
        if path.claim.is_some() || ctx.now < path.raise_at {
            if path.is_settled(smss) {
                snd.path_mtu = None;
            }
            return;
        }
        let full = path.full;
        path.raise_at = Instant::FAR_FUTURE;
        path.may_fragment = false;
        path.fallback.get_or_insert(smss);
        ctx.observe.counters.tcp_mtu_raised += 1;
        self.set_smss(snd, ctx, config, full);
    }

    /// The path carries less, or may carry more: segments have `smss` payload bytes from here on.
    pub(in crate::snd) fn set_smss(
        &mut self,
        snd: &mut Stream,
        ctx: &Ctx<'_>,
        config: &ConnConfig,
        smss: u32,
    ) {
        let old = snd.smss();
        snd.set_smss(smss);
        // RFC 1191, section 5: what was dropped is sent again, and the window stays as it is.
        self.board.mark_larger_than(snd.smss());
        let view = self.flow_view(snd, ctx.now);
        self.tell(snd, |cc| cc.on_smss_change(&view, old));
        self.restart_rto(snd, ctx.now, config);
    }
}
