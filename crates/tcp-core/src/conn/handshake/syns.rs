//! What the two SYNs of a handshake say: offers, numbers, and what both sides agree on.
//!
//! [`Syns`] is the part of a handshake that a half-open connection in the endpoint's SYN cache and
//! a whole connection have in common.

use crate::config::{ConnConfig, EndpointConfig};
use crate::conn::header_len;
use crate::conn::timestamps::TimestampClock;
use crate::packet::SendReason;
use crate::rcv;
use crate::seq::SeqNum;
use crate::time::Instant;
use crate::wire::{
    AccEcnOption, AccEcnOrder, Ecn, FastOpenCookie, TcpFlags, TcpHeader, TcpOptions, TcpSegment,
};
use core::net::IpAddr;
use core::num::NonZeroU16;

/// Largest window shift (RFC 7323, section 2.3).
pub(in crate::conn) const MAX_WSCALE: u8 = 14;
/// Smallest segment size accepted from a peer or the configuration, if the MTU permits it: smaller
/// ones would only multiply headers.
pub(in crate::conn) const MIN_MSS: u16 = 48;

/// The offer in a peer's SYN, in eight bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// TSval, if there is one.
    ts_val: u32,
    /// An offered MSS of 0 counts as 1: both are below what is accepted.
    mss: Option<NonZeroU16>,
    /// The shift, if there is one, and above it the codepoint with which the latest SYN arrived.
    wscale_and_ecn: u8,
    flags: u8,
}

impl Offer {
    const TIMESTAMPS: u8 = 1;
    const WINDOW_SCALE: u8 = 2;
    const SACK: u8 = 4;
    const ECN: u8 = 8;
    const COOKIE: u8 = 16;
    const EXPERIMENTAL: u8 = 32;
    const ACCURATE_ECN: u8 = 64;
    /// Of `wscale_and_ecn`: a shift of at most [`MAX_WSCALE`].
    const WSCALE: u8 = 0xf;
    const ECN_SHIFT: u32 = 4;

    /// The offer of a SYN or SYN-ACK that arrived with the codepoint `ecn`.
    pub(crate) fn of(syn: &TcpSegment<'_>, ecn: Ecn) -> Self {
        let options = &syn.options;
        let val = options.timestamps.map(|ts| ts.val);
        let classic = is_classic(syn.flags);
        let mut offer = Self::new(options.mss, options.window_scale, options.sack_permitted, val, classic);
        offer.set_codepoint(ecn);
        if is_accurate(syn.flags) { offer.with_accurate_ecn() } else { offer }
    }

    /// MSS, window shift, SACK permitted, TSval, and ECN setup.
    pub(crate) fn new(
        mss: Option<u16>,
        window_scale: Option<u8>,
        sack: bool,
        timestamp: Option<u32>,
        ecn: bool,
    ) -> Self {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        Self {
            ts_val: timestamp.unwrap_or(0),
            mss: mss.map(|mss| NonZeroU16::new(mss).unwrap_or(NonZeroU16::MIN)),
            // RFC 7323, section 2.3: a shift above 14 counts as 14.
            wscale_and_ecn: window_scale.unwrap_or(0).min(MAX_WSCALE),
            flags: flag(timestamp.is_some(), Self::TIMESTAMPS)
                | flag(window_scale.is_some(), Self::WINDOW_SCALE)
                | flag(sack, Self::SACK)
                | flag(ecn, Self::ECN),
        }
    }

    /// The same with nothing but the MSS, and accurate ECN, which the peer confirms itself.
    pub(crate) fn mss_only(self) -> Self {
        let mut bare = Self::new(self.mss(), None, false, None, false);
        bare.flags |= self.flags & Self::ACCURATE_ECN;
        bare.set_codepoint(self.codepoint());
        bare
    }

    /// The same with accurate ECN.
    pub(crate) const fn with_accurate_ecn(self) -> Self {
        Self { flags: self.flags | Self::ACCURATE_ECN, ..self }
    }

    /// The same, and the SYN-ACK is to bring the peer a fast open cookie, in the experimental
    /// option if the SYN had that.
    pub(crate) const fn with_cookie(self, experimental: bool) -> Self {
        let flags = if experimental { Self::COOKIE | Self::EXPERIMENTAL } else { Self::COOKIE };
        Self { flags: self.flags | flags, ..self }
    }

    /// The SYN-ACK is to bring the peer `cookie`.
    pub(crate) fn gets_cookie(self, cookie: impl FnOnce() -> FastOpenCookie) -> Option<FastOpenCookie> {
        self.has(Self::COOKIE).then(|| cookie().experimental(self.has(Self::EXPERIMENTAL)))
    }

    /// The same without ECN setup.
    pub(crate) const fn without_ecn(self) -> Self {
        Self { flags: self.flags & !(Self::ECN | Self::ACCURATE_ECN), ..self }
    }

    /// The same without the options that `again`, the offer of the repeated SYN, no longer has.
    const fn only_with(self, again: Self) -> Self {
        let options = Self::TIMESTAMPS | Self::WINDOW_SCALE | Self::SACK;
        Self { flags: self.flags & (again.flags | !options), ..self }
    }

    const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// MSS.
    pub(crate) fn mss(self) -> Option<u16> {
        self.mss.map(NonZeroU16::get)
    }

    /// Window shift.
    pub(crate) fn window_scale(self) -> Option<u8> {
        self.has(Self::WINDOW_SCALE).then_some(self.wscale_and_ecn & Self::WSCALE)
    }

    /// SACK permitted.
    pub(crate) const fn sack(self) -> bool {
        self.has(Self::SACK)
    }

    /// TSval.
    pub(crate) fn timestamp(self) -> Option<u32> {
        self.has(Self::TIMESTAMPS).then_some(self.ts_val)
    }

    /// It is an ECN-setup SYN or SYN-ACK.
    pub(crate) const fn ecn(self) -> bool {
        self.has(Self::ECN)
    }

    /// It offers accurate ECN.
    pub(crate) const fn accurate_ecn(self) -> bool {
        self.has(Self::ACCURATE_ECN)
    }

    /// The codepoint with which the latest SYN arrived.
    pub(crate) const fn codepoint(self) -> Ecn {
        Ecn::from_bits(self.wscale_and_ecn >> Self::ECN_SHIFT)
    }

    const fn set_codepoint(&mut self, ecn: Ecn) {
        self.wscale_and_ecn = self.wscale_and_ecn & Self::WSCALE | ecn.bits() << Self::ECN_SHIFT;
    }

    /// The SYN-ACK is to bring a fast open cookie.
    pub(crate) const fn wants_cookie(self) -> bool {
        self.has(Self::COOKIE)
    }
}

/// RFC 3168, section 6.1.1: an ECN-setup SYN has ECE and CWR, an ECN-setup SYN-ACK only ECE. (Some
/// hosts reflect unknown bits of the SYN.)
fn is_classic(flags: TcpFlags) -> bool {
    let ece = flags.contains(TcpFlags::ECE);
    ece && flags.contains(TcpFlags::CWR) != flags.contains(TcpFlags::ACK)
}

/// RFC 9768, section 3.1.3: what is neither classic ECN nor none counts as accurate ECN, so that
/// later standards can use the other combinations. A SYN-ACK with all bits reflects the SYN's.
const fn is_accurate(flags: TcpFlags) -> bool {
    match (flags.ace(), flags.contains(TcpFlags::ACK)) {
        (0b000, _) | (0b011, false) | (0b001 | 0b111, true) => false,
        (_, true | false) => true,
    }
}

/// The peer's MSS if its SYN does not give one (RFC 9293, section 3.7.1).
pub(crate) const fn default_mss(remote: &IpAddr) -> u16 {
    match remote {
        IpAddr::V4(_) => 536,
        IpAddr::V6(_) => 1_220,
    }
}

/// The smallest shift with which the whole buffer can be announced.
pub(in crate::conn) fn wscale_for(buffer: u32) -> u8 {
    (0..MAX_WSCALE).find(|shift| buffer >> shift <= 0xffff).unwrap_or(MAX_WSCALE)
}

/// ECN in the handshake, beside the peer's offer: which of our SYNs, and of the peer's, had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::conn) struct EcnHistory(u8);

impl EcnHistory {
    /// We sent a SYN or SYN-ACK with ECN.
    pub(in crate::conn) const OFFERED: Self = Self(1);
    /// We also sent one without: RFC 3168, section 6.1.1, forbids ECT then.
    pub(in crate::conn) const WITHDRAWN: Self = Self(2);
    /// The peer repeated its SYN without ECN.
    pub(in crate::conn) const PEER_WITHDREW: Self = Self(4);

    /// We answered a SYN with accurate ECN.
    pub(in crate::conn) const ANSWERED: Self = Self(8);
    /// Our first SYN or SYN-ACK was ECN-capable.
    pub(in crate::conn) const CAPABLE: Self = Self(16);

    const fn add(&mut self, what: Self) {
        self.0 |= what.0;
    }

    pub(in crate::conn) const fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }

    /// Our SYN or SYN-ACK was sent, with ECN or without.
    const fn sent(&mut self, ecn_setup: bool) {
        self.add(if ecn_setup { Self::OFFERED } else { Self::WITHDRAWN });
    }

    /// The peer repeated its SYN.
    const fn heard_again(&mut self, again: Offer) {
        if !again.ecn() && !again.accurate_ecn() {
            self.add(Self::PEER_WITHDREW);
        }
    }
}

/// Both SYNs of a handshake, in 20 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syns {
    /// Initial send sequence number.
    pub(crate) iss: SeqNum,
    /// The peer's, once its SYN has arrived.
    pub(crate) irs: SeqNum,
    /// The peer's offer.
    pub(crate) peer: Offer,
    /// Number of transmissions of our SYN or SYN-ACK.
    pub(crate) transmissions: u8,
    /// How often its timer has expired.
    pub(crate) expiries: u8,
    /// Which of the SYNs had ECN.
    pub(in crate::conn) ecn: EcnHistory,
}

impl Syns {
    /// Those of an active open; the peer's is yet to come.
    pub(crate) fn active(iss: SeqNum) -> Self {
        Self {
            iss,
            irs: SeqNum(0),
            peer: Offer::default(),
            transmissions: 0,
            expiries: 0,
            ecn: EcnHistory::default(),
        }
    }

    /// Those of a passive open: a SYN with the number `irs` has arrived.
    pub(crate) fn passive(iss: SeqNum, irs: SeqNum, peer: Offer) -> Self {
        Self { irs, peer, ..Self::active(iss) }
    }

    /// The peer's SYN arrived, with the codepoint `ecn`.
    pub(crate) fn learn(&mut self, syn: &TcpSegment<'_>, ecn: Ecn) {
        self.irs = syn.seq;
        self.peer = Offer::of(syn, ecn);
    }

    /// The peer's SYN-ACK of a simultaneous open arrived: its SYN has decided what is agreed (RFC
    /// 9768, section 3.1.2).
    pub(in crate::conn) const fn hear_syn_ack(&mut self, ecn: Ecn) {
        self.peer.set_codepoint(ecn);
    }

    /// The peer repeated its SYN. It may have given up on ECN (RFC 3168, section 6.1.1.1), or on
    /// its other options, in case they are the reason why nobody answers; then it does not use them
    /// any more, whichever SYN is answered (BSD, `tcp_rexmit_drop_options`). Its timestamp is
    /// echoed (RFC 7323, section 4.3), so that the peer can tell a SYN-ACK that was late from one
    /// that answers again.
    pub(crate) fn hear_again(&mut self, syn: &TcpSegment<'_>, ecn: Ecn) {
        let again = Offer::of(syn, ecn);
        self.ecn.heard_again(again);
        self.peer = self.peer.only_with(again);
        self.peer.set_codepoint(ecn);
        if let Some(ts) = syn.options.timestamps
            && (ts.val.wrapping_sub(self.peer.ts_val) as i32) > 0
            && self.peer.timestamp().is_some()
        {
            self.peer.ts_val = ts.val;
        }
    }

    /// Our SYN or SYN-ACK was sent, with ECN setup or without; `ect`: as an ECN-capable packet.
    pub(crate) const fn sent(&mut self, ecn_setup: bool, ect: bool) {
        self.ecn.sent(ecn_setup);
        if ect {
            self.ecn.add(EcnHistory::CAPABLE);
        }
        if self.peer.accurate_ecn() {
            self.ecn.add(EcnHistory::ANSWERED);
        }
        self.transmissions = self.transmissions.saturating_add(1);
    }

    /// True if `seq` is the number of our SYN, and it was sent.
    pub(crate) fn is_outstanding(&self, seq: SeqNum) -> bool {
        self.transmissions > 0 && seq == self.iss
    }
}

/// This side of a handshake: its settings, and what they depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSyn<'a> {
    pub(crate) config: &'a ConnConfig,
    pub(crate) host: &'a EndpointConfig,
    /// The peer's address.
    pub(crate) remote: IpAddr,
    /// Our shift.
    pub(crate) wscale: u8,
}

impl<'a> OwnSyn<'a> {
    /// This side of a handshake that begins.
    pub(crate) fn new(config: &'a ConnConfig, host: &'a EndpointConfig, remote: IpAddr) -> Self {
        Self { config, host, remote, wscale: wscale_for(config.recv_buffer) }
    }

    /// The MSS to announce: what fits the MTU without options (RFC 6691), or less if configured.
    pub(crate) fn mss(&self) -> u16 {
        let fits = self.host.mtu.saturating_sub(header_len(&self.remote)).min(65_495) as u16;
        self.config.mss.map_or(fits, |mss| mss.max(MIN_MSS).min(fits))
    }

    /// Bytes of data that a SYN may carry beside a fast open option with this cookie, if there is
    /// one, to a peer that accepts segments of `mss` bytes, options included (RFC 7413, section
    /// 4.2.1).
    pub(crate) fn room_beside(
        &self,
        cookie: Option<FastOpenCookie>,
        mss: u16,
        clock: &TimestampClock,
    ) -> u16 {
        let cookie = cookie.map_or(0, |cookie| cookie.padded_len());
        let options = self.options(Instant::ZERO, clock, None).encoded_len() + cookie;
        self.mss().min(mss).saturating_sub(options as u16)
    }

    /// The window announced by our SYN, in bytes.
    pub(crate) fn window(&self) -> u32 {
        rcv::syn_window(self.config)
    }

    /// Fills in our SYN (or, as `reason` says, SYN-ACK), except for its number.
    pub(crate) fn write(
        &self,
        now: Instant,
        reason: SendReason,
        syns: &Syns,
        clock: &TimestampClock,
        header: &mut TcpHeader<'_>,
    ) {
        header.flags = header.flags.union(TcpFlags::SYN).union(syns.ecn_setup(self.config.ecn, reason));
        let peer = (reason == SendReason::SynAck).then_some(syns.peer);
        if peer.is_some() {
            header.flags = header.flags.union(TcpFlags::ACK);
            header.ack = syns.irs + 1;
        }
        // RFC 7323, section 2.2: never scaled in a SYN.
        header.window = self.window() as u16;
        header.options = self.options(now, clock, peer);
        if peer.is_some() && syns.brings_counters(self.config.ecn) && self.config.accecn_option > 0 {
            // RFC 9768, section 3.2.1: the counters' initial values. Section 3.2.3.3: where the other
            // options leave no room, the option is left out.
            let counters = AccEcnOption::new(AccEcnOrder::Ect1First, AccEcnOption::MAX, 1, 0, 1);
            let options = TcpOptions { accecn: Some(counters), ..header.options };
            if options.encoded_len() <= usize::from(self.mss()) {
                header.options = options;
            }
        }
    }

    /// Fills in an ACK without data before ESTABLISHED, except for its number.
    pub(crate) fn write_ack(&self, syns: &Syns, header: &mut TcpHeader<'_>) {
        header.flags = TcpFlags::ACK;
        header.ack = syns.irs + 1;
        // RFC 7323, section 2.2: scaled only if both SYNs have the option.
        let scaled = self.config.window_scale && syns.peer.window_scale().is_some();
        header.window = (self.window() >> if scaled { self.wscale } else { 0 }) as u16;
    }

    /// The options of our SYN, or of the SYN-ACK that answers `peer`, which only has those of the
    /// peer's SYN.
    fn options(&self, now: Instant, clock: &TimestampClock, peer: Option<Offer>) -> TcpOptions {
        let config = self.config;
        let offered = |is_offered: fn(Offer) -> bool| peer.is_none_or(is_offered);
        let mut options = TcpOptions { mss: Some(self.mss()), ..TcpOptions::default() };
        if config.window_scale && offered(|peer| peer.window_scale().is_some()) {
            options.window_scale = Some(self.wscale);
        }
        options.sack_permitted = config.sack && offered(Offer::sack);
        if config.timestamps && offered(|peer| peer.timestamp().is_some()) {
            let mut timestamps = clock.option(now);
            timestamps.ecr = peer.and_then(Offer::timestamp).unwrap_or(0);
            options.timestamps = Some(timestamps);
        }
        options
    }
}
