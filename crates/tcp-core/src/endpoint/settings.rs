//! Settings that the application changes on a running connection.

use super::Conn;
use crate::config::{ConnConfig, KeepAlive, Nagle};
use crate::policy::{NewAckPolicy, NewCongestionControl, NewRtoResponse};
use crate::time::{Duration, Instant};

impl Conn<'_> {
    /// The current settings: the initial ones with all later changes.
    #[must_use]
    pub fn config(&self) -> &ConnConfig {
        self.conn().config()
    }

    /// `TCP_NODELAY`.
    pub fn set_nodelay(&mut self, now: Instant, on: bool) {
        self.act(now, |conn, _| conn.set_nodelay(on));
    }

    /// Sets the variant of Nagle's algorithm. Data that waited for the old one leaves if the new
    /// one permits.
    pub fn set_nagle(&mut self, now: Instant, nagle: Nagle) {
        self.act(now, |conn, _| conn.set_nagle(nagle));
    }

    /// `TCP_CORK`.
    pub fn set_cork(&mut self, now: Instant, on: bool) {
        self.act(now, |conn, _| conn.set_cork(on));
    }

    /// `SO_KEEPALIVE` with its times; `None`: off. Idle time counts from the last arrival, so a
    /// probe may be due at once.
    pub fn set_keep_alive(&mut self, now: Instant, keep_alive: Option<KeepAlive>) {
        self.act(now, |conn, _| conn.set_keep_alive(keep_alive));
    }

    /// `TCP_USER_TIMEOUT`: time without progress on unacknowledged data, counted from the last
    /// progress; `None`: no limit.
    pub fn set_user_timeout(&mut self, now: Instant, limit: Option<Duration>) {
        self.act(now, |conn, _| conn.set_user_timeout(limit));
    }

    /// How long FIN-WAIT-2 lasts after the application has released the connection. If it has
    /// begun, its time begins anew.
    pub fn set_fin_wait_2(&mut self, now: Instant, time: Duration) {
        self.act(now, |conn, _| conn.set_fin_wait_2(now, time));
    }

    /// Retransmissions of the SYN before giving up; counts when its timer expires next.
    pub fn set_syn_retries(&mut self, now: Instant, retries: u8) {
        self.act(now, |conn, _| conn.set_syn_retries(retries));
    }

    /// Sets the hop limit of packets from now on; `None`: the endpoint's.
    pub fn set_ttl(&mut self, now: Instant, ttl: Option<u8>) {
        self.act(now, |conn, _| conn.set_ttl(ttl));
    }

    /// Sets the DSCP of packets from now on, 0 to 63.
    pub fn set_dscp(&mut self, now: Instant, dscp: u8) {
        self.act(now, |conn, _| conn.set_dscp(dscp));
    }

    /// Sets the limit of the send buffer in bytes, from [`MIN_BUFFER`](crate::config::MIN_BUFFER)
    /// to 2^30. Data already written stays; while it exceeds the limit, writes take nothing.
    pub fn set_send_buffer(&mut self, now: Instant, bytes: u32) {
        self.act(now, |conn, _| conn.set_send_buffer(bytes));
    }

    /// Sets how many bytes of the send buffer may be filled even if the congestion window is small
    /// ([`ConnConfig::min_send_buffer`]); `None`: all of it.
    pub fn set_min_send_buffer(&mut self, now: Instant, bytes: Option<u32>) {
        self.act(now, |conn, _| conn.set_min_send_buffer(bytes));
    }

    /// `TCP_NOTSENT_LOWAT` ([`ConnConfig::notsent_lowat`]); `None`: no limit.
    pub fn set_notsent_lowat(&mut self, now: Instant, bytes: Option<u32>) {
        self.act(now, |conn, _| conn.set_notsent_lowat(bytes));
    }

    /// Sets the limit of the receive buffer in bytes, from
    /// [`MIN_BUFFER`](crate::config::MIN_BUFFER) to 2^30. This ends auto-tuning: the whole buffer
    /// is offered as window. The edge does not move back (RFC 9293, section 3.8.6: SHLD-14): a
    /// smaller window takes effect as data arrives, and neither promised window nor received data
    /// is lost. A larger window is limited by the window scale of the handshake (RFC 7323), which
    /// depended on the limit at that time.
    pub fn set_recv_buffer(&mut self, now: Instant, bytes: u32) {
        self.act(now, |conn, _| conn.set_recv_buffer(bytes));
    }

    /// `TCP_QUICKACK`: sends a held ACK now, and from now on acknowledges each data segment on
    /// arrival, whatever the ACK policy plans; `false`: the policy decides again.
    pub fn set_quick_acks(&mut self, now: Instant, on: bool) {
        self.act(now, |conn, _| conn.set_quick_acks(on));
    }

    /// As set by [`set_quick_acks`](Self::set_quick_acks).
    #[must_use]
    pub fn quick_acks(&self) -> bool {
        self.conn().quick_acks()
    }

    /// Replaces the congestion control; the new one starts with the old one's window and threshold.
    pub fn set_congestion_control(&mut self, now: Instant, make: &NewCongestionControl) {
        self.act(now, |conn, ctx| conn.set_congestion_control(ctx, make));
    }

    /// Replaces the ACK policy.
    pub fn set_ack_policy(&mut self, now: Instant, make: &NewAckPolicy) {
        self.act(now, |conn, ctx| conn.set_ack_policy(ctx, make));
    }

    /// Replaces the response to retransmission timeouts; the new one takes effect at the next
    /// timeout. An episode of the old one ends in the conventional way: outstanding data counts as
    /// lost and is repaired, and congestion control is told of the timeout unless it already was.
    pub fn set_rto_response(&mut self, now: Instant, make: &NewRtoResponse) {
        self.act(now, |conn, ctx| conn.set_rto_response(ctx, make));
    }
}
