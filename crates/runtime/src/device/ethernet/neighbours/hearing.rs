//! How messages of other hosts change neighbours and the host's own addresses.

use super::claim::{Claim, Conflict};
use super::entry::{NeighbourState, News};
use super::message::{Advertisement, Arp, Outgoing, Solicitation};
use super::next_hop::Hop;
use super::table::{Room, Slot};
use super::{Event, Neighbours};
use crate::mac::MacAddress;
use ackline_tcp_core::Instant;
use std::net::IpAddr;

impl Neighbours {
    /// RFC 826, "Packet Reception", and RFC 5227.
    pub(super) fn on_arp(&mut self, now: Instant, arp: &Arp) {
        // Our own message, looped back by the network.
        if arp.sender_mac == self.mac {
            return;
        }
        let (sender, target) = (IpAddr::V4(arp.sender), IpAddr::V4(arp.target));
        // RFC 5227, section 2.1.1: while probing, another host's probe for the same address counts
        // as a conflict too. Otherwise it is answered like any request.
        let rival_probe = arp.sender.is_unspecified() && self.claim_of(target).is_some_and(Claim::is_probing);
        if rival_probe {
            return self.conflict(now, target, arp.sender_mac);
        }
        if self.claim_of(sender).is_some() {
            return self.conflict(now, sender, arp.sender_mac);
        }
        let for_us = self.claim_of(target).is_some_and(Claim::is_ours);
        let known = self.table.find(sender);
        if let Some(slot) = known {
            let asked = self.table.get(slot).is_some_and(|entry| entry.state.is_asked());
            let solicited = arp.is_reply && for_us && arp.target_mac == self.mac && asked;
            self.stats.replies_received += u64::from(arp.is_reply);
            self.tell(now, slot, &News { solicited, ..News::of_sender(arp.sender_mac) });
        }
        if for_us && !arp.is_reply {
            self.stats.requests_received += 1;
            // A probe (RFC 5227, section 2.1.1) has no sender to remember, but gets an answer.
            if known.is_none() && !arp.sender.is_unspecified() {
                self.learn(now, sender, arp.sender_mac);
            }
            self.reply(Outgoing::Reply { own: target, to: sender, mac: arp.sender_mac });
        }
    }

    /// RFC 4861, section 7.2.3; RFC 4862, section 5.4.3.
    pub(super) fn on_solicitation(&mut self, now: Instant, solicitation: &Solicitation) {
        let Solicitation { frame_source, source, target, mac } = *solicitation;
        let own = IpAddr::V6(target);
        if frame_source == self.mac {
            return;
        }
        let Some(claim) = self.claim_of(own) else { return };
        let Some(source) = source.map(IpAddr::V6) else {
            match claim {
                // Two hosts are claiming the same address.
                Claim::Probing { .. } => self.conflict(now, own, frame_source),
                // RFC 4861, section 7.2.4: an answer to one without an address goes to all.
                Claim::Ours { .. } => {
                    self.stats.requests_received += 1;
                    self.reply(Outgoing::Announce { own });
                }
                Claim::Unclaimed | Claim::Taken => {}
            }
            return;
        };
        if self.claim_of(source).is_some() {
            return self.conflict(now, source, frame_source);
        }
        if !claim.is_ours() {
            return;
        }
        self.stats.requests_received += 1;
        if let Some(mac) = mac {
            match self.table.find(source) {
                Some(slot) => self.tell(now, slot, &News::of_sender(mac)),
                None => self.learn(now, source, mac),
            }
        }
        self.reply(Outgoing::Reply { own, to: source, mac: mac.unwrap_or(frame_source) });
    }

    /// RFC 4861, section 7.2.5; RFC 4862, section 5.4.4.
    pub(super) fn on_advertisement(&mut self, now: Instant, advertisement: &Advertisement) {
        let Advertisement { frame_source, target, mac, solicited, overrides } = *advertisement;
        let target = IpAddr::V6(target);
        if frame_source == self.mac {
            return;
        }
        if self.claim_of(target).is_some() {
            return self.conflict(now, target, mac.unwrap_or(frame_source));
        }
        if let Some(slot) = self.table.find(target) {
            self.stats.replies_received += 1;
            self.tell(now, slot, &News { mac, solicited, overrides });
        }
    }

    /// Updates a known neighbour.
    fn tell(&mut self, now: Instant, slot: Slot, news: &News) {
        let reachable = self.reachable_time();
        let Some(ip) = self.table.get(slot).map(|entry| entry.ip) else { return };
        let Some(effect) = self.table.update(slot, |state| state.heard(now, news, reachable)) else { return };
        self.stats.changes += u64::from(effect.changed);
        if let Some(mac) = effect.resolved {
            self.stats.resolved += 1;
            self.events.push_back(Event::Resolved { ip, mac });
        }
    }

    /// Remembers a neighbour that asked, if it is one: RFC 826's table after the merge; RFC 4861,
    /// section 7.2.3.
    fn learn(&mut self, now: Instant, ip: IpAddr, mac: MacAddress) {
        if self.hop(ip) != Ok(Hop::Neighbour(ip)) {
            return;
        }
        if self.insert(now, ip, NeighbourState::Stale { mac }, Room::ByLearned).is_none() {
            self.stats.not_learned += 1;
        }
    }

    fn conflict(&mut self, now: Instant, ip: IpAddr, mac: MacAddress) {
        let Some(own) = self.own.iter_mut().find(|own| own.net.addr() == ip) else { return };
        self.stats.conflicts += 1;
        self.claim_changes += 1;
        match own.claim.conflict(now, &self.config.claim) {
            Conflict::Lost => self.events.push_back(Event::InUse { ip, mac }),
            Conflict::Defend => {
                self.stats.defences += 1;
                self.events.push_back(Event::Conflict { ip, mac });
                self.push(Outgoing::Announce { own: ip });
            }
            Conflict::Endure => {}
        }
    }
}
