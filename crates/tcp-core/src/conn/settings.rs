//! Settings that change on a running connection.
//!
//! Connections share their configuration until a setting differs; then the connection gets a copy.

use super::Connection;
use crate::config::{ConnConfig, KeepAlive, MAX_BUFFER, MIN_BUFFER, Nagle};
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::{NewAckPolicy, NewCongestionControl, NewRtoResponse};
use crate::rcv::syn_window;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;

/// Clamps a buffer limit to its valid range.
fn sensible(bytes: u32) -> u32 {
    bytes.clamp(MIN_BUFFER, MAX_BUFFER)
}

impl Connection {
    /// The current settings.
    pub(crate) fn config(&self) -> &ConnConfig {
        &self.config
    }

    /// `TCP_NODELAY`. Clearing it restores the default variant of Nagle's algorithm.
    pub(crate) fn set_nodelay(&mut self, on: bool) {
        if on != (self.config.nagle == Nagle::Off) {
            self.set_nagle(if on { Nagle::Off } else { Nagle::default() });
        }
    }

    /// Sets the variant of Nagle's algorithm.
    pub(crate) fn set_nagle(&mut self, nagle: Nagle) {
        if nagle != self.config.nagle {
            Arc::make_mut(&mut self.config).nagle = nagle;
        }
    }

    /// `TCP_CORK`.
    pub(crate) fn set_cork(&mut self, on: bool) {
        if on != self.config.cork {
            Arc::make_mut(&mut self.config).cork = on;
        }
    }

    /// `SO_KEEPALIVE` and its times. Idle time counts from the last arrival, even if that was
    /// before this call.
    pub(crate) fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>) {
        if keep_alive == self.config.keep_alive {
            return;
        }
        Arc::make_mut(&mut self.config).keep_alive = keep_alive;
        if keep_alive.is_none() {
            self.keep_alive_probes = 0;
            self.probe_due = false;
        }
    }

    /// `TCP_USER_TIMEOUT`.
    pub(crate) fn set_user_timeout(&mut self, limit: Option<Duration>) {
        if limit != self.config.user_timeout {
            Arc::make_mut(&mut self.config).user_timeout = limit;
        }
    }

    /// `TCP_LINGER2`. If FIN-WAIT-2 has begun, its time begins anew.
    pub(crate) fn set_fin_wait_2(&mut self, now: Instant, time: Duration) {
        if time != self.config.fin_wait_2 {
            Arc::make_mut(&mut self.config).fin_wait_2 = time;
            self.arm_fin_wait_2(now);
        }
    }

    /// `TCP_SYNCNT`: counts when the SYN's timer expires next.
    pub(crate) fn set_syn_retries(&mut self, retries: u8) {
        if retries != self.config.syn_retries {
            Arc::make_mut(&mut self.config).syn_retries = retries;
        }
    }

    /// Sets the hop limit of packets from now on; `None`: the endpoint's.
    pub(crate) fn set_ttl(&mut self, ttl: Option<u8>) {
        if ttl != self.config.ttl {
            Arc::make_mut(&mut self.config).ttl = ttl;
        }
    }

    /// Sets the DSCP of packets from now on.
    pub(crate) fn set_dscp(&mut self, dscp: u8) {
        let dscp = dscp & 0x3f;
        if dscp != self.config.dscp {
            Arc::make_mut(&mut self.config).dscp = dscp;
        }
    }

    /// Sets the limit of the send buffer. Data already written stays, even if it exceeds the limit.
    pub(crate) fn set_send_buffer(&mut self, bytes: u32) {
        let bytes = sensible(bytes);
        if bytes != self.config.send_buffer {
            Arc::make_mut(&mut self.config).send_buffer = bytes;
        }
    }

    /// Sets what of the send buffer may always be filled; `None`: all of it.
    pub(crate) fn set_min_send_buffer(&mut self, bytes: Option<u32>) {
        if bytes != self.config.min_send_buffer {
            Arc::make_mut(&mut self.config).min_send_buffer = bytes;
        }
    }

    /// `TCP_NOTSENT_LOWAT`.
    pub(crate) fn set_notsent_lowat(&mut self, bytes: Option<u32>) {
        if bytes != self.config.notsent_lowat {
            Arc::make_mut(&mut self.config).notsent_lowat = bytes;
        }
    }

    /// Sets the limit of the receive buffer. The window follows at once, except that its edge does
    /// not move back (RFC 9293, section 3.8.6: SHLD-14). Received data stays, and data up to the
    /// promised edge is accepted.
    pub(crate) fn set_recv_buffer(&mut self, bytes: u32) {
        let mut bytes = sensible(bytes);
        if self.handshake.is_some() {
            // The SYN may have promised that much.
            bytes = bytes.max(syn_window(&self.config));
        }
        if bytes != self.config.recv_buffer {
            Arc::make_mut(&mut self.config).recv_buffer = bytes;
            self.rcv.on_buffer_change(&self.config);
        }
    }

    /// `TCP_QUICKACK`: data is acknowledged on arrival, whatever the ACK policy wants.
    pub(crate) fn set_quick_acks(&mut self, on: bool) {
        self.rcv.set_quick_acks(on);
    }

    /// As set by [`set_quick_acks`](Self::set_quick_acks).
    pub(crate) const fn quick_acks(&self) -> bool {
        self.rcv.quick_acks()
    }

    pub(crate) fn set_congestion_control(&mut self, ctx: &mut Ctx<'_>, make: &NewCongestionControl) {
        self.snd.swap_cc(ctx, &self.config, make);
        self.trace_policies(ctx);
    }

    pub(crate) fn set_ack_policy(&mut self, ctx: &mut Ctx<'_>, make: &NewAckPolicy) {
        self.rcv.swap_policy(ctx, &self.config, make);
        self.trace_policies(ctx);
    }

    pub(crate) fn set_rto_response(&mut self, ctx: &mut Ctx<'_>, make: &NewRtoResponse) {
        self.snd.swap_rto_response(ctx, &self.config, make);
        self.trace_policies(ctx);
    }

    /// Traces which policies are in use from now on.
    pub(super) fn trace_policies(&self, ctx: &mut Ctx<'_>) {
        if ctx.observe.tracer.is_some()
            && let Some(cc) = self.snd.shown_cc()
            && let Some(ack) = self.rcv.shown_policy()
        {
            let (cc, ack, rto) = (cc.name(), ack.name(), self.snd.rto_response_name(&self.config));
            ctx.trace(|| TraceEvent::Policies { cc, ack, rto });
        }
    }
}
