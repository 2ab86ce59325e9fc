//! TCP Fast Open (RFC 7413): data before the handshake is complete.
//!
//! ```text
//!   client                                                 server
//!      SYN, cookie, data   ───────────────────────────►       the connection exists, its data can be read
//!                          ◄───────────────────────────       SYN-ACK of the data
//!                          ◄───────────────────────────       what the application answers
//!      ACK                 ───────────────────────────►       ESTABLISHED
//! ```
//!
//! **The client's** SYN carries what was written before it leaves. Whatever of that the SYN-ACK
//! does not acknowledge is sent once the connection is established. If the timer expires the SYN
//! goes out again without option and data: a middlebox may have dropped it for them (section
//! 4.2.1).
//!
//! **The server's** connection is in SYN-RECEIVED, with sender and receiver at work: it is *early*
//! until an ACK of the SYN-ACK shows that the client's address is not forged. Meanwhile only the
//! SYN-ACK is retransmitted, as in Linux: the peer has no use for data before it. Its ECN setup is
//! declined, because what the SYN-ACK that arrives will say of it is not known when the first data
//! leaves.
//!
//! What both sides know lies in the handshake, so an established connection holds nothing of it:
//! segments, timers and headers ask the handshake only for what concerns the SYN-ACK.

use super::syns::{Syns, default_mss};
use crate::State;
use crate::config::EndpointConfig;
use crate::conn::{Connection, Notices, header_len};
use crate::counters::Counters;
use crate::ctx::Ctx;
use crate::seq::SeqNum;
use crate::snd::EarlyData;
use crate::time::{Duration, Instant};
use crate::wire::{FastOpenCookie, IpInfo, OptionLayout, TcpSegment};

/// What a handshake does with fast open.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::conn) struct FastOpen {
    /// The option of our first SYN or SYN-ACK.
    option: Option<FastOpenCookie>,
    /// Our first SYN may carry data without the option.
    bare: bool,
    /// MSS of the peer according to its last SYN-ACK; 0: no data goes with the SYN.
    mss: u16,
    /// Bytes of data that our SYN carried.
    pub(in crate::conn) sent: u16,
    /// Data passes although our SYN-ACK is not acknowledged.
    pub(in crate::conn) early: bool,
}

impl FastOpen {
    /// Data of our SYN according to an ACK of it. Counts it.
    pub(in crate::conn) fn early_data(&self, counters: &mut Counters, iss: SeqNum, ack: SeqNum) -> EarlyData {
        let sent = u32::from(self.sent);
        if sent == 0 {
            return EarlyData::default();
        }
        let acked = ack.saturating_distance_from(iss + 1).min(sent);
        if acked == sent {
            counters.tcp_fast_open_active += 1;
        } else {
            counters.tcp_fast_open_active_fail += 1;
        }
        EarlyData { sent, acked }
    }

    /// The options of the SYN or SYN-ACK sent now. Only the first one has a fast open option.
    pub(in crate::conn) fn layout(&self, syns: &Syns) -> OptionLayout<'static> {
        match self.option {
            Some(cookie) if syns.transmissions == 0 => OptionLayout::FastOpen(cookie),
            _ => OptionLayout::Standard,
        }
    }

    /// Our first SYN or SYN-ACK has a fast open option, or may have data without.
    pub(in crate::conn) const fn is_tried(&self) -> bool {
        self.option.is_some() || self.bare
    }

    /// How our SYN, the only one, asked for a cookie, if it did: in the experimental option, or
    /// not.
    pub(in crate::conn) fn asked(&self, syns: &Syns) -> Option<bool> {
        let request = self.option.filter(|option| option.is_request() && syns.transmissions == 1);
        request.map(|option| option.is_experimental())
    }

    /// True if `syn_ack` does not answer the SYN that had the option, or data; `None` if none had.
    /// A SYN-ACK with a cookie, or of data, does.
    pub(in crate::conn) fn was_dropped(&self, syns: &Syns, syn_ack: &TcpSegment<'_>) -> Option<bool> {
        if !self.is_tried() {
            return None;
        }
        let answers = syn_ack.fast_open().is_some() || syn_ack.ack != syns.iss + 1;
        Some(syns.expiries > 0 && !answers)
    }
}

impl Connection {
    /// It is an active open that may use fast open.
    pub(crate) fn connects_fast(&self) -> bool {
        self.config.fast_open.connects()
    }

    /// An active open requests a cookie, or uses the one that it got from a server with this MSS.
    /// Called before the SYN leaves.
    pub(crate) fn try_fast_open(&mut self, cookie: FastOpenCookie, mss: u16) {
        if let Some(handshake) = self.handshake.as_deref_mut() {
            let mss = if cookie.is_request() { 0 } else { mss };
            handshake.fast_open = FastOpen { option: Some(cookie), mss, ..FastOpen::default() };
        }
    }

    /// An active open sends data with its SYN although it has no cookie, to a peer with this MSS;
    /// 0: it is not known.
    pub(crate) fn send_without_cookie(&mut self, mss: u16) {
        let mss = if mss == 0 { default_mss(&self.tuple.remote_ip()) } else { mss };
        if let Some(handshake) = self.handshake.as_deref_mut() {
            handshake.fast_open = FastOpen { bare: true, mss, ..FastOpen::default() };
        }
    }

    /// True, once, if it has ended because nobody answered its SYNs, of which the first had a fast
    /// open option.
    pub(crate) fn take_unanswered_fast_open(&mut self) -> bool {
        self.state == State::Closed
            && self.handshake.take_if(|handshake| handshake.fast_open.is_tried()).is_some()
    }

    /// Bytes of what was written that go with the SYN. Only the first one carries data.
    pub(in crate::conn) fn syn_data(&self, host: &EndpointConfig) -> u32 {
        let Some(handshake) = self.handshake.as_deref() else { return 0 };
        let FastOpen { option, mss: mss @ 1.., .. } = handshake.fast_open else { return 0 };
        if handshake.syns.transmissions > 0 {
            return 0;
        }
        let headers = header_len(&self.tuple.remote_ip());
        let path = handshake.path.map_or(u16::MAX, |(mtu, _)| mtu.saturating_sub(headers as u16));
        let room = self.own_syn(host).room_beside(option, mss.min(path), &self.ts);
        self.snd.unsent().min(u32::from(room))
    }

    /// True if data passes although the handshake is not complete.
    pub(in crate::conn) fn is_early(&self) -> bool {
        self.handshake.as_deref().is_some_and(|handshake| handshake.fast_open.early)
    }

    /// True if our SYN-ACK has left and data may follow it.
    pub(in crate::conn) fn may_send_early(&self) -> bool {
        self.handshake
            .as_deref()
            .is_some_and(|handshake| handshake.fast_open.early && handshake.syns.transmissions > 0)
    }

    /// A passive open by a SYN with a valid cookie: takes its data. The SYN-ACK brings `cookie`, if
    /// there is one.
    pub(crate) fn open_early(
        &mut self,
        ctx: &mut Ctx<'_>,
        ip: &IpInfo,
        syn: &TcpSegment<'_>,
        cookie: Option<FastOpenCookie>,
    ) {
        let Some(mut handshake) = self.handshake.take() else { return };
        handshake.fast_open = FastOpen { option: cookie, early: true, ..FastOpen::default() };
        handshake.syns.peer = handshake.syns.peer.without_ecn();
        self.open_halves(ctx, &handshake, syn);
        self.handshake = Some(handshake);
        self.notices.add(Notices::ACCEPTED);
        let incoming = self.incoming(ctx.now, ip, syn, syn.seq + 1);
        if !incoming.payload.is_empty() && self.rcv.on_data(ctx, &self.config, &incoming).readable {
            self.syn_data = true;
            self.notices.add(Notices::READABLE);
        }
    }

    /// The peer has acknowledged the SYN-ACK of an early connection, `rtt` after it was sent if
    /// that was only once.
    pub(in crate::conn) fn confirm_early(&mut self, ctx: &Ctx<'_>, rtt: Option<Duration>) {
        self.snd.on_early_handshake(ctx, &self.config, rtt);
        self.rcv.on_early_handshake(rtt);
    }

    /// When an early connection may send more, besides the SYN-ACK.
    pub(in crate::conn) fn early_departure(&self) -> Option<Instant> {
        if self.is_early() { self.snd.next_departure() } else { None }
    }
}
