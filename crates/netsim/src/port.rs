//! A node where packets enter the network from outside, and leave it.

use crate::packet::Packet;
use ackline_tcp_core::Instant;
use std::collections::VecDeque;

/// The state of a port: packets that have arrived and nobody has taken yet, with the time of arrival.
#[derive(Debug, Default)]
pub(crate) struct Port {
    pub(crate) arrived: VecDeque<(Instant, Packet)>,
}
