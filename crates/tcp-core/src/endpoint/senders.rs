//! Owners of the packets without a connection that the egress sends.

use crate::config::EndpointConfig;
use crate::egress::Origins;
use crate::four_tuple::FourTuple;
use crate::id::UdpId;
use crate::opens::Opens;
use crate::share::Cx;
use crate::time::Instant;
use crate::udp::Udp;
use crate::wire::{HeaderBuf, TxChecksum};

/// Owners of the packets without a connection that the egress sends.
pub(super) struct Senders<'a> {
    pub(super) opens: &'a mut Opens,
    pub(super) udp: &'a mut Udp,
}

impl Origins for Senders<'_> {
    fn build_syn_ack(
        &self,
        cx: &Cx<'_>,
        tuple: &FourTuple,
        ts_offset: u32,
        buf: &mut HeaderBuf,
    ) -> Option<TxChecksum> {
        self.opens.build_syn_ack(cx, tuple, ts_offset, buf)
    }

    fn syn_ack_left(&mut self, now: Instant, tuple: &FourTuple) -> bool {
        self.opens.syn_cache.sent(now, tuple)
    }

    fn datagram_left(&mut self, config: &EndpointConfig, socket: UdpId, len: usize) {
        self.udp.departed(socket, len, config.udp_send_buffer as usize);
    }
}
