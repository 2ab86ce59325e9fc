//! The handshake: what the SYNs negotiate, their retransmission, and becoming ESTABLISHED.

use super::{Connection, Notices, header_len, transition::Input};
use crate::State;
use crate::config::{ConnConfig, Ecn, EndpointConfig};
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::events::TraceEvent;
use crate::packet::SendReason;
use crate::rcv;
use crate::seq::SeqNum;
use crate::snd;
use crate::snd::ecn::EcnAgreement;
use crate::time::{Duration, Instant};
use crate::wire::{MIN_MTU_V6, TcpFlags, TcpOptions, TcpSegment};

/// Largest window shift (RFC 7323, section 2.3).
const MAX_WSCALE: u8 = 14;
/// Segment size if the peer's SYN does not give one (RFC 9293, section 3.7.1).
const DEFAULT_MSS_V4: u16 = 536;
/// The same for IPv6.
const DEFAULT_MSS_V6: u16 = 1_220;
/// Smallest segment size accepted from a peer or the configuration, if the MTU permits it: smaller ones would
/// only multiply headers.
const MIN_MSS: u16 = 48;

/// State needed until the connection is ESTABLISHED.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Initial send sequence number.
    pub(super) iss: SeqNum,
    /// The peer's, once its SYN has arrived.
    pub(super) irs: SeqNum,
    /// Opened from LISTEN.
    pub(super) passive: bool,
    /// Our SYN (or SYN-ACK) must be transmitted.
    pub(super) due: bool,
    /// Number of its transmissions.
    pub(super) transmissions: u8,
    /// How often the timer has expired.
    pub(super) expiries: u8,
    /// Time of the first transmission.
    first_sent: Option<Instant>,
    /// When to retransmit it, or give up.
    pub(super) deadline: Instant,
    /// Current timeout.
    rto: Duration,
    /// The peer's options.
    peer: TcpOptions,
    /// Window field of the peer's last segment, unscaled.
    peer_window: u32,
    /// Our shift.
    pub(super) wscale: u8,
    /// We sent an ECN-setup SYN or SYN-ACK.
    ecn_offered: bool,
    /// We also sent one without ECN setup: RFC 3168, section 6.1.1, forbids ECT then.
    ecn_withdrawn: bool,
    /// The peer sent an ECN-setup SYN or SYN-ACK.
    peer_ecn: bool,
}

impl Handshake {
    pub(super) fn active(now: Instant, iss: SeqNum, config: &ConnConfig) -> Self {
        Self {
            iss,
            irs: SeqNum(0),
            passive: false,
            due: true,
            transmissions: 0,
            expiries: 0,
            first_sent: None,
            deadline: now + config.initial_rto,
            rto: config.initial_rto,
            peer: TcpOptions::default(),
            peer_window: 0,
            wscale: wscale_for(config.recv_buffer),
            ecn_offered: false,
            ecn_withdrawn: false,
            peer_ecn: false,
        }
    }

    pub(super) fn passive(now: Instant, iss: SeqNum, config: &ConnConfig) -> Self {
        Self { passive: true, ..Self::active(now, iss, config) }
    }

    /// Records the contents of the peer's SYN.
    pub(super) fn learn(&mut self, syn: &TcpSegment<'_>) {
        self.irs = syn.seq;
        self.peer = syn.options;
        // RFC 7323, section 2.2: the window of a SYN is never scaled.
        self.peer_window = u32::from(syn.window);
        self.peer_ecn = is_ecn_setup(syn.flags);
    }

    /// TSval of the peer's SYN.
    pub(super) fn peer_timestamp(&self) -> Option<u32> {
        self.peer.timestamps.map(|ts| ts.val)
    }

    /// The peer repeated its SYN: it may have given up on ECN (RFC 3168, section 6.1.1.1).
    pub(super) fn hear_again(&mut self, flags: TcpFlags) {
        self.peer_ecn &= is_ecn_setup(flags);
    }

    /// What both sides agreed on. RFC 3168, section 6.1.1: a host that declined once does not set ECT, but
    /// still echoes marks, since the peer may only have received its acceptance.
    fn ecn(&self, mode: Ecn) -> Option<EcnAgreement> {
        let agreed = mode != Ecn::Off && self.ecn_offered && self.peer_ecn;
        agreed.then_some(EcnAgreement { mode, capable: !self.ecn_withdrawn })
    }

    /// The SYN was sent, with ECN setup or without.
    pub(super) fn sent(&mut self, now: Instant, max_rto: Duration, ecn_setup: bool) {
        self.ecn_offered |= ecn_setup;
        self.ecn_withdrawn |= !ecn_setup;
        if self.transmissions == 0 {
            self.first_sent = Some(now);
            self.deadline = now + self.rto;
        } else if self.deadline == Instant::FAR_FUTURE {
            self.rto = self.rto.saturating_mul(2).min(max_rto);
            self.deadline = now + self.rto;
        }
        // Otherwise it answers a repeated SYN: the timer keeps running, without back-off.
        self.transmissions = self.transmissions.saturating_add(1);
        self.due = false;
    }

    /// True if one of our SYNs was, or may have been, sent `age` ago, to the millisecond of the timestamp
    /// clock.
    pub(super) fn sent_a_syn_so_long_ago(&self, now: Instant, age: Duration) -> bool {
        self.first_sent.is_some_and(|sent| age <= now.since(sent) + Duration::from_millis(1))
    }

    /// RTT of the handshake; `None` if the SYN was retransmitted (Karn).
    fn rtt(&self, now: Instant) -> Option<Duration> {
        (self.transmissions == 1).then_some(self.first_sent).flatten().map(|sent| now.since(sent))
    }
}

/// RFC 3168, section 6.1.1: an ECN-setup SYN has ECE and CWR, an ECN-setup SYN-ACK only ECE. (Some hosts
/// reflect unknown bits of the SYN.)
fn is_ecn_setup(flags: TcpFlags) -> bool {
    let ece = flags.contains(TcpFlags::ECE);
    ece && flags.contains(TcpFlags::CWR) != flags.contains(TcpFlags::ACK)
}

/// The smallest shift with which the whole buffer can be announced.
fn wscale_for(buffer: u32) -> u8 {
    (0..MAX_WSCALE).find(|shift| buffer >> shift <= 0xffff).unwrap_or(MAX_WSCALE)
}

impl Connection {
    /// The MSS to announce: what fits the MTU without options (RFC 6691), or less if configured.
    pub(super) fn announced_mss(&self, host: &EndpointConfig) -> u16 {
        let fits = host.mtu.saturating_sub(header_len(&self.tuple.remote().ip())).min(65_495) as u16;
        self.config.mss.map_or(fits, |mss| mss.max(MIN_MSS).min(fits))
    }

    /// The options of our SYN or SYN-ACK. A SYN-ACK only has those of the peer's SYN.
    pub(super) fn syn_options(
        &self,
        host: &EndpointConfig,
        handshake: &Handshake,
        now: Instant,
    ) -> TcpOptions {
        let answer = self.state == State::SynReceived;
        let peer = &handshake.peer;
        let mut options = TcpOptions { mss: Some(self.announced_mss(host)), ..TcpOptions::default() };
        if self.config.window_scale && (!answer || peer.window_scale.is_some()) {
            options.window_scale = Some(handshake.wscale);
        }
        options.sack_permitted = self.config.sack && (!answer || peer.sack_permitted);
        if self.config.timestamps && (!answer || peer.timestamps.is_some()) {
            let mut timestamps = self.ts.option(now);
            timestamps.ecr = if answer { peer.timestamps.map_or(0, |ts| ts.val) } else { 0 };
            options.timestamps = Some(timestamps);
        }
        options
    }

    /// The flags that make a SYN or SYN-ACK an ECN-setup one.
    pub(super) fn ecn_setup(&self, reason: SendReason, handshake: &Handshake) -> TcpFlags {
        if self.config.ecn == Ecn::Off {
            return TcpFlags::NONE;
        }
        match reason {
            // RFC 3168, section 6.1.1.1: if there is no answer, the bits may be the reason.
            SendReason::Syn if handshake.transmissions == 0 => TcpFlags::ECE.union(TcpFlags::CWR),
            SendReason::SynAck if handshake.peer_ecn && !handshake.ecn_withdrawn => TcpFlags::ECE,
            _ => TcpFlags::NONE,
        }
    }

    /// Both SYNs are acknowledged: starts sender and receiver.
    ///
    /// `window` is the peer's window in bytes, scaled if the segment that carried it says so.
    pub(super) fn establish(&mut self, ctx: &mut Ctx<'_>, host: &EndpointConfig, seg: &TcpSegment<'_>) {
        let Some(handshake) = self.handshake.take() else { return };
        let peer = &handshake.peer;
        let config = self.config.clone();

        let scaling = config.window_scale && peer.window_scale.is_some();
        self.rcv_wscale = scaling.then_some(handshake.wscale);
        // RFC 7323, section 2.3: a shift above 14 counts as 14.
        self.snd_wscale = if scaling { peer.window_scale.unwrap_or(0).min(MAX_WSCALE) } else { 0 };
        self.sack = config.sack && peer.sack_permitted;
        if config.timestamps
            && let Some(ts) = peer.timestamps
        {
            self.ts.enable(ctx.now, ts.val);
        }

        let smss = self.smss_for(host, peer.mss);
        let rtt = handshake.rtt(ctx.now);
        let ecn = handshake.ecn(config.ecn);
        if let Some(EcnAgreement { mode, capable }) = ecn {
            ctx.trace(|| TraceEvent::EcnAgreed { mode, capable });
        }
        let snd_wnd = if seg.flags.contains(crate::wire::TcpFlags::SYN) {
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
                sack: self.sack,
                timestamps: self.ts.enabled(),
                handshake_rtt: rtt,
                syn_retransmitted: handshake.transmissions > 1,
                ecn,
            },
        );
        self.rcv.open(
            ctx,
            &config,
            &rcv::OpenParams {
                irs: handshake.irs,
                wscale: self.rcv_wscale.unwrap_or(0),
                rmss: u32::from(self.announced_mss(host)).saturating_sub(self.option_len()),
                sack: self.sack,
                handshake_rtt: rtt,
                ecn: ecn.map_or(Ecn::Off, |agreed| agreed.mode),
            },
        );
        self.notices.add(if handshake.passive { Notices::ACCEPTED } else { Notices::CONNECTED });
        if self.shut {
            self.snd.queue_fin();
        }
    }

    /// Bytes of options on every segment of an established connection.
    pub(super) const fn option_len(&self) -> u32 {
        if self.ts.enabled() { 12 } else { 0 }
    }

    /// The sender's segment size: the smaller of what the peer accepts and what the MTU allows, less the
    /// options on every segment (RFC 6691, section 3).
    pub(super) fn smss_for(&self, host: &EndpointConfig, peer: Option<u16>) -> u32 {
        let default = match self.tuple.remote().ip() {
            core::net::IpAddr::V4(_) => DEFAULT_MSS_V4,
            core::net::IpAddr::V6(_) => DEFAULT_MSS_V6,
        };
        let peer = peer.unwrap_or(default).max(MIN_MSS);
        u32::from(peer.min(self.announced_mss(host))).saturating_sub(self.option_len()).max(1)
    }

    /// Payload bytes that every path carries: IPv6 has no smaller packets (RFC 8200, section 5; RFC 4821, section
    /// 7.7), IPv4 has.
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
        let retries = self.config.syn_retries;
        let Some(handshake) = self.handshake.as_mut() else { return };
        ctx.counters.tcp_timeouts += 1;
        if handshake.expiries >= retries {
            ctx.counters.tcp_abort_on_timeout += 1;
            ctx.counters.tcp_attempt_fails += 1;
            let error = self.soft_error.unwrap_or(ConnError::TimedOut);
            self.die(ctx, Some(error));
            return;
        }
        handshake.expiries += 1;
        handshake.due = true;
        // The deadline is set again when the retransmission is sent; a full device must not make the timer
        // fire again.
        handshake.deadline = Instant::FAR_FUTURE;
    }

    /// SYN-RECEIVED after a simultaneous open: the SYN is answered; our SYN-ACK is pending.
    pub(super) fn simultaneous_open(&mut self, ctx: &mut Ctx<'_>, syn: &TcpSegment<'_>) {
        if let Some(handshake) = self.handshake.as_mut() {
            handshake.learn(syn);
            handshake.due = true;
        }
        self.change_state(ctx, Input::Syn);
    }
}
