//! The MTU of the device has changed, and with it the size of a full segment (RFC 9293, section
//! 3.7.1: MMS_S).
//!
//! A smaller size holds from the next packet on. What left before fitted the device, so it is not
//! held to be lost. If some of it is lost, it is repaired in segments of the new size, and the loss
//! counts as any other.
//!
//! A larger size says that the device and the peer take such segments, but not that the path
//! between them does. One [probe](super::mtu_search) finds out. Without SACK the next ACK raises
//! the segment size, with the old one to fall back to. A connection that has been idle takes the
//! larger size as a new one would.

use crate::config::{ConnConfig, PathMtuProbing};
use crate::ctx::Ctx;
use crate::snd::Sender;
use crate::snd::measure::path_mtu::{MtuSearch, PathMtu};
use crate::time::Instant;
use alloc::boxed::Box;

impl Sender {
    /// The device and the peer permit segments of `full` payload bytes from now on.
    pub(crate) fn set_full_size(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, full: u32) {
        let before = self.stream.full_smss();
        if full < before {
            self.lower_full_size(ctx, full);
        } else if full > before {
            self.raise_full_size(ctx, config, before, full);
        }
    }

    fn lower_full_size(&mut self, ctx: &mut Ctx<'_>, full: u32) {
        let smss = self.stream.smss().min(full);
        if let Some(path) = self.stream.path_mtu.as_deref_mut() {
            path.limit(full);
            if smss == full {
                path.raise_at = Instant::FAR_FUTURE;
                path.search = None;
            }
            if path.is_settled(smss) {
                self.stream.path_mtu = None;
            }
        }
        if smss < self.stream.smss() {
            ctx.observe.counters.tcp_mtu_followed += 1;
            self.change_smss(ctx.now, smss);
        }
    }

    fn raise_full_size(&mut self, ctx: &mut Ctx<'_>, config: &ConnConfig, before: u32, full: u32) {
        let snd = &mut self.stream;
        let searches = config.path_mtu_probing == PathMtuProbing::Always;
        if self.flight.is_none() && snd.path_mtu.is_none() && !searches {
            ctx.observe.counters.tcp_mtu_raised += 1;
            self.change_smss(ctx.now, full);
            return;
        }
        let smss = snd.smss();
        let path = snd.path_mtu.get_or_insert_with(|| Box::new(PathMtu::new(full)));
        path.extend(full);
        if smss < before {
            // The path carries less than the device did, and the larger size is tried when that was
            // due anyway.
            if let Some(search) = &mut path.search {
                search.extend(before, full);
            }
        } else if config.path_mtu_probing != PathMtuProbing::Off && snd.sack {
            path.search = Some(MtuSearch::up_to(full, ctx.now));
        } else {
            path.raise_at = ctx.now;
            if let Some(flight) = self.flight.as_deref_mut() {
                // What arrived before says nothing of the path as it is.
                flight.largest_acked = flight.largest_acked.min(snd.smss);
            }
        }
    }

    /// Segments have `smss` payload bytes from here on; what is outstanding stays as it is.
    fn change_smss(&mut self, now: Instant, smss: u32) {
        let old = self.stream.smss();
        self.stream.set_smss(smss);
        if let Some((snd, flight)) = self.in_flight() {
            let view = flight.flow_view(snd, now);
            flight.tell(snd, |cc| cc.on_smss_change(&view, old));
        } else {
            // A policy is asked for a decision before it is told of anything.
            self.stream.ask_for_decision();
            let view = self.stream.flow_view(now);
            self.stream.cc.on_smss_change(&view, old);
        }
    }
}
