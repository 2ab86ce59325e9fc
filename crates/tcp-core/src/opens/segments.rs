//! Segments without a connection: whom they are for, and RSTs.

use super::{Below, Opens};
use crate::conn::RstSpec;
use crate::egress::{Egress, Stray};
use crate::events::DropReason;
use crate::four_tuple::FourTuple;
use crate::id::ConnId;
use crate::seq::SeqNum;
use crate::share::{Cx, Ingested};
use crate::wire::{IpInfo, TcpFlags, TcpSegment};

/// A received segment without a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inbound<'a> {
    /// Its four-tuple.
    pub(crate) tuple: FourTuple,
    pub(crate) ip: &'a IpInfo,
    pub(crate) segment: &'a TcpSegment<'a>,
}

/// What came of a segment without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// Nothing more is to be done.
    Done(Ingested),
    /// It completed a handshake: the connection is to take it.
    Complete(ConnId),
}

impl Opens {
    /// A segment without a connection.
    pub(crate) fn on_segment(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        inbound: &Inbound<'_>,
    ) -> Opened {
        if let Some(place) = self.syn_cache.look_up(&inbound.tuple) {
            return self.on_half_open_segment(below, cx, place, inbound);
        }
        if let Some(name) = below.table.time_wait.look_up(&inbound.tuple) {
            return self.on_time_wait_segment(below, cx, name, inbound);
        }
        match cx.check_addresses(inbound.ip) {
            Some(dropped) => Opened::Done(dropped),
            None => self.on_new_segment(below, cx, inbound, None),
        }
    }

    /// A segment of which nothing is known: RFC 9293, section 3.10.7.2 if there is a listener,
    /// otherwise 3.10.7.1. `iss_floor`: it follows a connection in TIME-WAIT.
    pub(crate) fn on_new_segment(
        &mut self,
        below: &mut Below<'_>,
        cx: &mut Cx<'_>,
        inbound: &Inbound<'_>,
        iss_floor: Option<SeqNum>,
    ) -> Opened {
        let flags = inbound.segment.flags;
        let Some(listener) = self.listeners.find(inbound.tuple.local()) else {
            return Opened::Done(self.refuse_segment(below.egress, cx, inbound));
        };
        if let Some(place) = self.held_syns.look_up(&inbound.tuple) {
            return Opened::Done(self.on_held_syn_segment(below, cx, (place, listener), inbound, iss_floor));
        }
        Opened::Done(if flags.contains(TcpFlags::RST) {
            ignore_segment(cx)
        } else if flags.contains(TcpFlags::ACK) {
            match self.cookie_of(below, cx, listener, inbound) {
                Some(half_open) => return self.complete(below, cx, listener, half_open, inbound),
                None => self.refuse_segment(below.egress, cx, inbound),
            }
        } else if flags.contains(TcpFlags::SYN) {
            self.on_syn(below, cx, listener, inbound, iss_floor)
        } else {
            ignore_segment(cx)
        })
    }

    /// A segment arrived for which there is no connection and no listener.
    pub(crate) fn refuse_segment(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        inbound: &Inbound<'_>,
    ) -> Ingested {
        match RstSpec::answer_to(inbound.segment) {
            Some(rst) if cx.config.reset_unknown => self.send_reset(egress, cx, inbound.tuple, rst),
            _ => ignore_segment(cx),
        }
    }

    /// Queues an RST, within the rate limit: an attacker must not be able to use this host as a
    /// source of traffic.
    pub(crate) fn send_reset(
        &mut self,
        egress: &mut Egress,
        cx: &mut Cx<'_>,
        tuple: FourTuple,
        rst: RstSpec,
    ) -> Ingested {
        if !egress.strays.has_room_for_reset() || !self.resets.allow(cx.now) {
            return cx.drop_packet(DropReason::RstLimited);
        }
        egress.push_stray(cx, Stray::Reset { tuple, rst });
        Ingested::Handled
    }
}

/// A segment without a connection that is not answered.
pub(crate) fn ignore_segment(cx: &mut Cx<'_>) -> Ingested {
    cx.drop_packet(DropReason::NoConnection)
}
