//! Settings that the application changes while a connection runs.

use super::Conn;
use crate::config::{ConnConfig, KeepAlive};
use crate::policy::{NewAckPolicy, NewCongestionControl, NewRtoResponse};
use crate::time::{Duration, Instant};

impl Conn<'_> {
    /// The settings in force: those that the connection began with, and what was changed since.
    #[must_use]
    pub fn config(&self) -> &ConnConfig {
        self.conn().config()
    }

    /// `TCP_NODELAY`.
    pub fn set_nodelay(&mut self, now: Instant, on: bool) {
        self.act(now, |conn, _| conn.set_nodelay(on));
    }

    /// `TCP_CORK`.
    pub fn set_cork(&mut self, now: Instant, on: bool) {
        self.act(now, |conn, _| conn.set_cork(on));
    }

    /// `SO_KEEPALIVE` with its times; `None`: off. Idle time counts from the last arrival, so that a probe may be due at
    /// once.
    pub fn set_keep_alive(&mut self, now: Instant, keep_alive: Option<KeepAlive>) {
        self.act(now, |conn, _| conn.set_keep_alive(keep_alive));
    }

    /// `TCP_USER_TIMEOUT`: time without progress on unacknowledged data, counted from the last progress; `None`: no
    /// limit.
    pub fn set_user_timeout(&mut self, now: Instant, limit: Option<Duration>) {
        self.act(now, |conn, _| conn.set_user_timeout(limit));
    }

    /// The hop limit of packets from here on; `None`: the endpoint's.
    pub fn set_ttl(&mut self, now: Instant, ttl: Option<u8>) {
        self.act(now, |conn, _| conn.set_ttl(ttl));
    }

    /// The DSCP of packets from here on, 0 to 63.
    pub fn set_dscp(&mut self, now: Instant, dscp: u8) {
        self.act(now, |conn, _| conn.set_dscp(dscp));
    }

    /// The limit of the send buffer in bytes, from [`MIN_BUFFER`](crate::config::MIN_BUFFER) to 2^30. What is written
    /// already stays, and no write takes more before there is less than that.
    pub fn set_send_buffer(&mut self, now: Instant, bytes: u32) {
        self.act(now, |conn, _| conn.set_send_buffer(bytes));
    }

    /// The limit of the receive buffer in bytes, from [`MIN_BUFFER`](crate::config::MIN_BUFFER) to 2^30. The window is all of
    /// it from here on, and no longer grows with need. Its edge does not move back (RFC 9293, section 3.8.6: SHLD-14): a
    /// smaller window comes into force as data arrives, and nothing that was promised or has arrived is dropped. A larger one is
    /// bounded by the window scale of the handshake (RFC 7323), which the limit of that time has decided.
    pub fn set_recv_buffer(&mut self, now: Instant, bytes: u32) {
        self.act(now, |conn, _| conn.set_recv_buffer(bytes));
    }

    /// `TCP_QUICKACK`: data that is held back is acknowledged now, and from here on each segment with data when it comes,
    /// whatever the ACK policy plans; `false`: the policy decides again.
    pub fn set_quick_acks(&mut self, now: Instant, on: bool) {
        self.act(now, |conn, _| conn.set_quick_acks(on));
    }

    /// As set by [`set_quick_acks`](Self::set_quick_acks).
    #[must_use]
    pub fn quick_acks(&self) -> bool {
        self.conn().quick_acks()
    }

    /// Swaps the congestion control; the new one starts from the old one's window and threshold.
    pub fn set_congestion_control(&mut self, now: Instant, make: &NewCongestionControl) {
        self.act(now, |conn, ctx| conn.set_congestion_control(ctx, make));
    }

    /// Swaps the ACK policy.
    pub fn set_ack_policy(&mut self, now: Instant, make: &NewAckPolicy) {
        self.act(now, |conn, ctx| conn.set_ack_policy(ctx, make));
    }

    /// Swaps the response to retransmission timeouts; the new one begins with the next expiry. An episode of the old one
    /// ends in the conventional way: what is outstanding counts as lost and is repaired, and congestion control hears of
    /// the timeout unless it has.
    pub fn set_rto_response(&mut self, now: Instant, make: &NewRtoResponse) {
        self.act(now, |conn, ctx| conn.set_rto_response(ctx, make));
    }
}
