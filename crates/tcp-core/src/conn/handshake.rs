//! The handshake of a connection: retransmission of its SYN, and becoming ESTABLISHED. What the
//! SYNs say is in [`syns`].

pub(crate) mod ecn;
pub(in crate::conn) mod fast_open;
pub(in crate::conn) mod syns;

use super::{Connection, Notices, header_len, transition::Input};
use crate::config::{ConnConfig, Ecn, EndpointConfig};
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::TraceEvent;
use crate::rcv;
use crate::seq::SeqNum;
use crate::snd;
use crate::snd::ecn::agreement::EcnAgreement;
use crate::time::{Duration, Instant};
use crate::wire::{IpInfo, MIN_MTU_V6, TcpFlags, TcpSegment};
use fast_open::FastOpen;
use syns::{MAX_WSCALE, MIN_MSS, OwnSyn, Syns, default_mss, wscale_for};

/// How soon the SYN is repeated after an answer to something else: time for our RST to arrive
/// (Linux, `TCP_TIMEOUT_MIN`: two ticks of its clock).
const AFTER_OLD_ANSWER: Duration = Duration::from_millis(10);

/// Whether a SYN is repeated before its timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hurry {
    Never,
    Due,
    Done,
}

/// State needed until the connection is ESTABLISHED.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) syns: Syns,
    /// Opened from LISTEN.
    pub(super) passive: bool,
    /// Whether our SYN is repeated early, because of an answer that was not for it.
    hurry: Hurry,
    /// Our SYN (or SYN-ACK) must be transmitted.
    pub(super) due: bool,
    /// Time of the first transmission.
    first_sent: Option<Instant>,
    /// When to retransmit it, or give up.
    pub(super) deadline: Instant,
    /// Current timeout.
    rto: Duration,
    /// Our shift.
    pub(super) wscale: u8,
    /// What it does with fast open.
    pub(super) fast_open: FastOpen,
    /// The path's MTU in bytes according to earlier connections, and until when that is believed.
    pub(super) path: Option<(u16, Instant)>,
}

impl Handshake {
    pub(super) fn active(now: Instant, iss: SeqNum, config: &ConnConfig) -> Self {
        Self {
            syns: Syns::active(iss),
            passive: false,
            hurry: Hurry::Never,
            due: true,
            first_sent: None,
            deadline: now + config.initial_rto,
            rto: config.initial_rto,
            wscale: wscale_for(config.recv_buffer),
            fast_open: FastOpen::default(),
            path: None,
        }
    }

    /// A SYN for a listener arrived; `first_sent`: its SYN-ACK has left since.
    pub(super) fn passive(
        now: Instant,
        syns: Syns,
        first_sent: Option<Instant>,
        config: &ConnConfig,
    ) -> Self {
        Self {
            due: first_sent.is_none(),
            syns,
            passive: true,
            first_sent,
            ..Self::active(now, syns.iss, config)
        }
    }

    /// The peer has an old connection of the same addresses and ports, and answers our SYN with
    /// what it expects there (RFC 5961, section 4). Our RST ends it, and the SYN can be repeated at
    /// once instead of when its timer expires. Once only, and not after a timeout, so that nobody
    /// can make us send many (Linux, `tcp_rcv_synsent_state_process`).
    pub(super) fn hurry(&mut self, now: Instant) {
        if self.syns.transmissions == 1 && self.hurry == Hurry::Never && self.deadline != Instant::FAR_FUTURE
        {
            self.hurry = Hurry::Due;
            self.deadline = self.deadline.min(now + AFTER_OLD_ANSWER);
        }
    }

    /// The SYN was sent, with ECN setup or without; `ect`: as an ECN-capable packet.
    pub(super) fn sent(&mut self, now: Instant, max_rto: Duration, ecn_setup: bool, ect: bool) {
        if self.syns.transmissions == 0 {
            self.first_sent = Some(now);
            self.deadline = now + self.rto;
        } else if self.deadline == Instant::FAR_FUTURE {
            if self.syns.expiries > 0 {
                self.rto = self.rto.saturating_mul(2).min(max_rto);
            }
            self.deadline = now + self.rto;
        }
        // Otherwise it answers a repeated SYN: the timer keeps running, without back-off.
        self.syns.sent(ecn_setup, ect);
        self.due = false;
    }

    /// True if one of our SYNs was, or may have been, sent `age` ago, to the millisecond of the
    /// timestamp clock.
    pub(super) fn sent_a_syn_so_long_ago(&self, now: Instant, age: Duration) -> bool {
        self.first_sent.is_some_and(|sent| age <= now.since(sent) + Duration::from_millis(1))
    }

    /// True if the SYN sent `age` ago, to the millisecond of the timestamp clock, left before the
    /// timer could have repeated it. If the peer has received that one, nothing was lost (RFC 3522;
    /// Linux undoes the reduction of the initial window then).
    fn first_syn_was_so_long_ago(&self, now: Instant, age: Duration, config: &ConnConfig) -> bool {
        let sent = now.as_millis().saturating_sub(age.as_millis());
        self.first_sent.is_some_and(|first| sent < (first + config.initial_rto).as_millis())
    }

    /// True if `ack` acknowledges our SYN, and nothing beyond the data that it carried.
    pub(super) fn is_acknowledged_by(&self, ack: SeqNum) -> bool {
        let first = self.syns.iss + 1;
        self.syns.transmissions > 0 && ack.within(first, first + u32::from(self.fast_open.sent) + 1)
    }

    /// RTT of the handshake; `None` if the SYN was retransmitted (Karn).
    fn rtt(&self, now: Instant) -> Option<Duration> {
        (self.syns.transmissions == 1).then_some(self.first_sent).flatten().map(|sent| now.since(sent))
    }
}

impl Connection {
    /// This side of the handshake.
    pub(super) fn own_syn<'a>(&'a self, host: &'a EndpointConfig) -> OwnSyn<'a> {
        let own = OwnSyn::new(&self.config, host, self.tuple.remote_ip());
        // The receive buffer may have changed since the first SYN.
        OwnSyn { wscale: self.handshake.as_ref().map_or(own.wscale, |handshake| handshake.wscale), ..own }
    }

    /// The MSS to announce.
    pub(super) fn announced_mss(&self, host: &EndpointConfig) -> u16 {
        self.own_syn(host).mss()
    }

    /// Both SYNs are acknowledged: starts sender and receiver.
    ///
    /// `window` is the peer's window in bytes, scaled if the segment that carried it says so.
    pub(super) fn establish(&mut self, ctx: &mut Ctx<'_>, seg: &TcpSegment<'_>) {
        let Some(handshake) = self.handshake.take() else { return };
        if handshake.fast_open.early {
            self.confirm_early(ctx, handshake.rtt(ctx.now));
            return;
        }
        self.open_halves(ctx, &handshake, seg);
        self.notices.add(if handshake.passive { Notices::ACCEPTED } else { Notices::CONNECTED });
        if self.shut {
            self.snd.queue_fin();
        }
    }

    /// Starts sender and receiver with what `handshake` and the peer's last segment of it say.
    pub(super) fn open_halves(&mut self, ctx: &mut Ctx<'_>, handshake: &Handshake, seg: &TcpSegment<'_>) {
        let peer = handshake.syns.peer;
        let config = self.config.clone();

        let scaling = config.window_scale && peer.window_scale().is_some();
        self.scaling = scaling;
        // RFC 7323, section 2.3: a shift above 14 counts as 14.
        self.snd_wscale = if scaling { peer.window_scale().unwrap_or(0).min(MAX_WSCALE) } else { 0 };
        let sack = config.sack && peer.sack();
        if config.timestamps
            && let Some(val) = peer.timestamp()
        {
            self.ts.enable(ctx.now, val);
        }

        let echo = seg.options.timestamps.filter(|_| self.ts.enabled());
        let age = echo.and_then(|ts| self.ts.age(ctx.now, ts.ecr));
        let was_late = age.is_some_and(|age| handshake.first_syn_was_so_long_ago(ctx.now, age, &config));

        self.peer_mss = peer.mss().unwrap_or_else(|| default_mss(&self.tuple.remote_ip()));
        let smss = self.full_smss(ctx.host);
        ctx.observe.counters.tcp_min_snd_mss +=
            u64::from(peer.mss().is_some_and(|mss| mss < config.min_snd_mss));
        let rtt = handshake.rtt(ctx.now);
        let ecn = handshake.ecn(config.ecn, seg);
        if let Some(EcnAgreement { mode, capable, deaf, .. }) = ecn {
            ctx.trace(|| TraceEvent::EcnAgreed { mode, capable });
            ctx.observe.counters.acc_ecn_agreed += u64::from(mode == Ecn::Accurate);
            ctx.observe.counters.acc_ecn_ace_zero += u64::from(deaf);
            ctx.observe.counters.acc_ecn_mangled += u64::from(mode == Ecn::Accurate && !capable && !deaf);
        }
        let headers = header_len(&self.tuple.remote_ip()) + self.option_len();
        let path = handshake.path.map(|(mtu, until)| (u32::from(mtu).saturating_sub(headers).max(1), until));
        let early = handshake.fast_open.early_data(&mut ctx.observe.counters, handshake.syns.iss, seg.ack);
        self.syn_data = early.acked > 0;
        let snd_wnd = if seg.flags.contains(TcpFlags::SYN) {
            u32::from(seg.window)
        } else {
            u32::from(seg.window) << self.snd_wscale
        };
        self.snd.open(
            ctx,
            &config,
            &snd::OpenParams {
                smss,
                least_smss: self.least_smss(),
                snd_wnd,
                wl1: seg.seq,
                sack,
                timestamps: self.ts.enabled(),
                handshake_rtt: rtt,
                syn_timed_out: handshake.syns.expiries > 0,
                syn_lost: handshake.syns.expiries > 0 && !was_late,
                ecn,
                path,
                early,
            },
        );
        self.rcv.open(
            ctx,
            &config,
            &rcv::OpenParams {
                irs: handshake.syns.irs,
                wscale: if scaling { handshake.wscale } else { 0 },
                rmss: u32::from(self.announced_mss(ctx.host)).saturating_sub(self.option_len()),
                sack,
                handshake_rtt: rtt,
                ecn: ecn.as_ref().map(|agreed| rcv::EcnStart {
                    mode: agreed.mode,
                    marked: agreed.received,
                    echo: agreed.echo,
                }),
            },
        );
        self.trace_policies(ctx);
    }

    /// Bytes of options on every segment of an established connection.
    pub(super) const fn option_len(&self) -> u32 {
        if self.ts.enabled() { 12 } else { 0 }
    }

    /// The sender's segment size: the smaller of what the peer accepts and what the MTU allows,
    /// less the options on every segment (RFC 6691, section 3).
    pub(super) fn full_smss(&self, host: &EndpointConfig) -> u32 {
        let peer = self.peer_mss.max(self.config.min_snd_mss).max(MIN_MSS);
        u32::from(peer.min(self.announced_mss(host))).saturating_sub(self.option_len()).max(1)
    }

    /// Payload bytes that every path carries: IPv6 has no smaller packets (RFC 8200, section 5; RFC
    /// 4821, section 7.7), IPv4 has.
    fn least_smss(&self) -> u16 {
        match self.tuple.remote().ip() {
            core::net::IpAddr::V4(_) => 1,
            remote @ core::net::IpAddr::V6(_) => {
                (MIN_MTU_V6 - header_len(&remote) - self.option_len()) as u16
            }
        }
    }

    /// The handshake's timer fired.
    pub(super) fn on_handshake_timeout(&mut self, ctx: &mut Ctx<'_>) {
        let Some(handshake) = self.handshake.as_mut() else { return };
        if handshake.hurry == Hurry::Due {
            // Nothing was lost.
            handshake.hurry = Hurry::Done;
            handshake.due = true;
            handshake.deadline = Instant::FAR_FUTURE;
            return;
        }
        let retries = if handshake.passive { self.config.syn_ack_retries } else { self.config.syn_retries };
        ctx.observe.counters.tcp_timeouts += 1;
        if handshake.syns.expiries >= retries {
            ctx.observe.counters.tcp_abort_on_timeout += 1;
            ctx.observe.counters.tcp_attempt_fails += 1;
            let error = self.soft_error.unwrap_or(ConnError::TimedOut);
            let unanswered = self.handshake.take_if(|handshake| !handshake.passive);
            self.die(ctx, Some(error));
            // Until the endpoint has noted what it says of fast open.
            self.handshake = unanswered.filter(|handshake| handshake.fast_open.is_tried());
            return;
        }
        handshake.syns.expiries += 1;
        handshake.due = true;
        // The deadline is set again when the retransmission is sent; a full device must not make
        // the timer fire again.
        handshake.deadline = Instant::FAR_FUTURE;
    }

    /// SYN-RECEIVED after a simultaneous open: the SYN is answered; our SYN-ACK is pending.
    pub(super) fn simultaneous_open(&mut self, ctx: &mut Ctx<'_>, ip: &IpInfo, syn: &TcpSegment<'_>) {
        if let Some(handshake) = self.handshake.as_mut() {
            handshake.syns.learn(syn, ip.ecn);
            handshake.due = true;
        }
        self.change_state(ctx, Input::Syn);
    }
}
