//! ICMP errors (RFC 5927): hints about a connection, never proof.

use super::{Connection, header_len};
use crate::State;
use crate::ctx::Ctx;
use crate::error::ConnError;
use crate::seq::SeqNum;
use crate::wire::{MIN_MTU, MIN_MTU_V6};

/// IPv4 path MTU below which segments do not shrink, as in Linux (`net.ipv4.route.min_pmtu`): a
/// forged message must not shrink them to almost nothing (RFC 5927, section 7.1). Routers fragment
/// what their links do not carry then.
const MIN_PMTU_V4: u32 = 552;

/// An ICMP error about a segment of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpError {
    /// The packet exceeded the next link's MTU, in bytes; 0 if an old router does not report it.
    TooBig(u32),
    /// Host or network unreachable, time exceeded.
    Unreachable,
    /// Port or protocol unreachable.
    Refused,
}

impl Connection {
    /// An ICMP error quotes a segment of this connection that starts at `quoted`.
    pub(crate) fn on_icmp(&mut self, ctx: &mut Ctx<'_>, error: IcmpError, quoted: SeqNum) {
        // RFC 5927, section 4.1: the quoted data must be outstanding.
        let outstanding = match &self.handshake {
            Some(handshake) => handshake.syns.is_outstanding(quoted),
            None => self.state.is_synchronized() && quoted.within(self.snd.snd_una(), self.snd.snd_nxt()),
        };
        if !outstanding {
            ctx.observe.counters.out_of_window_icmps += 1;
            return;
        }
        match error {
            IcmpError::TooBig(mtu) => self.on_packet_too_big(ctx, mtu, quoted),
            IcmpError::Unreachable => self.soft(ctx, ConnError::Unreachable),
            IcmpError::Refused => self.soft(ctx, ConnError::Refused),
        }
    }

    /// RFC 5461, section 4.1: before the connection is established the error ends the attempt, as
    /// of a connection that fast open has made before its handshake; afterwards it is only
    /// remembered, and reported if the connection times out.
    fn soft(&mut self, ctx: &mut Ctx<'_>, error: ConnError) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            ctx.observe.counters.tcp_attempt_fails += 1;
            self.die(ctx, Some(error));
        } else {
            self.soft_error = Some(error);
        }
    }

    /// Path MTU discovery (RFC 1191, RFC 8201).
    fn on_packet_too_big(&mut self, ctx: &mut Ctx<'_>, mtu: u32, quoted: SeqNum) {
        let remote = self.tuple.remote().ip();
        let headers = header_len(&remote) + self.option_len();
        let mtu = match mtu {
            0 if remote.is_ipv4() => plateau_below(self.snd.smss() + headers),
            _ => mtu,
        };
        // RFC 1191, section 3, and RFC 8201, section 4: every link carries at least this much. A
        // SYN is never larger.
        let least = if remote.is_ipv4() { MIN_MTU } else { MIN_MTU_V6 };
        if mtu < least || self.handshake.is_some() {
            ctx.observe.counters.tcp_mtu_refused += 1;
            return;
        }
        let floor = if remote.is_ipv4() { MIN_PMTU_V4 - headers } else { 0 };
        self.snd.on_packet_too_big(ctx, quoted, mtu.saturating_sub(headers), floor);
    }
}

/// RFC 1191, section 7: if a router reports no MTU, the next lower common one.
fn plateau_below(size: u32) -> u32 {
    const PLATEAUS: [u32; 8] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, MIN_PMTU_V4];
    PLATEAUS.into_iter().find(|plateau| *plateau < size).unwrap_or(MIN_PMTU_V4)
}
