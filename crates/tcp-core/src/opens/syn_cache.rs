//! Half-open connections: a SYN has arrived, and the ACK of the SYN-ACK has not. The SYN cache of
//! RFC 4987, section 3.3.
//!
//! An entry is what a SYN-ACK, and the connection after it, need to know of the SYN: 96 bytes. It
//! has one place in a [`DeadlineTable`], where the deadline is that of the SYN-ACK's next
//! transmission. With each, the time doubles, so entries of one number of transmissions stand in
//! one lane, and the oldest entry is the first of some lane.
//!
//! **Cost.** How many entries each source has is counted in [`Shares`]. All operations are O(1),
//! amortised where the tables grow and shrink. An entry takes 96 bytes, 6 to 12 for its place by
//! hash, and 10 to 21 for the count of its source if it is the only one: at most 128, but for spare
//! capacity while the table grows.

use crate::config::{ConnConfig, EndpointConfig};
use crate::conn::{HalfOpen, OwnSyn, Syns, TimestampClock, blank_header};
use crate::four_tuple::FourTuple;
use crate::packet::SendReason;
use crate::share::{DeadlineTable, Hashed, Shares, spread};
use crate::time::{Duration, Instant};
use crate::wire::{Ecn, FastOpenCookie, HeaderBuf, OptionLayout, TcpFlags, TcpHeader, TxChecksum, emit_tcp};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use siphasher::sip::SipHasher13;

/// The half-open connections of an endpoint.
pub(crate) struct SynCache {
    entries: DeadlineTable<Entry, LANES>,
    shares: Shares,
    hasher: SipHasher13,
}

/// A half-open connection.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The settings that the listener had when the SYN arrived.
    pub(crate) config: Arc<ConnConfig>,
    pub(crate) syns: Syns,
    /// Number of the listener.
    pub(crate) listener: NonZeroU32,
    hash: u32,
    pub(crate) tuple: FourTuple,
    /// Wire segments received; more than 255 count as 255.
    segs_in: u8,
    /// The SYN-ACK waits in the egress scheduler.
    due: bool,
    /// The timer has expired since the SYN-ACK was last sent.
    expired: bool,
    /// A challenge ACK was sent since the timer was last started.
    challenged: bool,
    /// So was a SYN-ACK that answers a repeated SYN.
    answered: bool,
    /// The SYN-ACK was acknowledged, and the listener waits for data.
    acknowledged: bool,
}

/// Lengths of the timer that are told apart: seven of each setting of `initial_rto` in use at the
/// same time. With more, some wait as long as the next longer one.
const LANES: usize = 16;

impl SynCache {
    /// An empty cache with a secret key, which must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self {
            entries: DeadlineTable::default(),
            shares: Shares::new(secret),
            hasher: SipHasher13::new_with_key(&secret),
        }
    }

    /// Number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes allocated. The settings of the entries are shared with their listeners.
    pub(crate) fn memory(&self) -> usize {
        self.entries.memory() + self.shares.memory()
    }

    /// The place of the entry of `tuple`. Valid until an entry is removed.
    pub(crate) fn look_up(&self, tuple: &FourTuple) -> Option<u32> {
        // Not worth a hash if there are none.
        if self.len() == 0 {
            return None;
        }
        self.entries.find(spread(self.hash(tuple)), |entry| entry.tuple == *tuple)
    }

    /// The entry at `place`.
    pub(crate) fn get(&self, place: u32) -> Option<&Entry> {
        self.entries.get(place)
    }

    /// The entry at `place`.
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Entry> {
        self.entries.get_mut(place)
    }

    /// What a connection needs to know of the handshake of the entry at `place`.
    pub(crate) fn half_open(&self, place: u32) -> Option<HalfOpen> {
        self.get(place).zip(self.entries.since(place)).map(|(entry, since)| entry.half_open(since))
    }

    /// Number of entries that come from the same source as `tuple`.
    pub(crate) fn share_of(&self, tuple: &FourTuple) -> u32 {
        self.shares.of(tuple)
    }

    /// Adds an entry, which must not be in the cache; the cache is not to hold more than `most`.
    /// Returns its place.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        listener: NonZeroU32,
        config: Arc<ConnConfig>,
        half_open: HalfOpen,
        most: u32,
    ) -> u32 {
        self.shares.enter(tuple);
        let length = config.initial_rto;
        let entry = Entry {
            config,
            syns: half_open.syns,
            listener,
            hash: self.hash(tuple),
            tuple: *tuple,
            segs_in: half_open.segs_in,
            due: false,
            expired: false,
            challenged: false,
            answered: false,
            acknowledged: false,
        };
        self.entries.insert(entry, now, length, most as usize)
    }

    /// Removes the entry at `place`.
    pub(crate) fn remove(&mut self, place: u32) -> Option<Entry> {
        let entry = self.entries.remove(place)?;
        self.shares.leave(&entry.tuple);
        Some(entry)
    }

    /// The place of the entry whose SYN came first, as far as the timers tell: before the last of
    /// `n` timeouts, it had waited for as long again.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.entries.oldest()
    }

    /// When the next timer expires.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.entries.next().map(|(at, _)| at)
    }

    /// The place of an entry whose timer has expired by `now`; [`back_off`](Self::back_off) or
    /// [`remove`](Self::remove) must follow.
    pub(crate) fn overdue(&self, now: Instant) -> Option<u32> {
        self.entries.next().filter(|(at, _)| *at <= now).map(|(_, place)| place)
    }

    /// The timer of the entry at `place` has expired. Starts it anew, with back-off unless the
    /// SYN-ACK still waits for the device. Without a departure nothing is retransmitted.
    pub(crate) fn back_off(&mut self, place: u32, now: Instant) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        if !entry.due {
            entry.syns.expiries = entry.syns.expiries.saturating_add(1);
            entry.expired = true;
            (entry.challenged, entry.answered) = (false, false);
        }
        let length = entry.timeout(entry.syns.expiries);
        self.entries.move_to(place, now, length);
    }

    /// Builds the SYN-ACK of `tuple`, with a checksum as `host` says; `None` if it is not due any
    /// more. `cookie` makes the fast open cookie, if it brings one.
    pub(crate) fn build_syn_ack(
        &self,
        now: Instant,
        host: &EndpointConfig,
        tuple: &FourTuple,
        ts_offset: u32,
        cookie: impl FnOnce() -> FastOpenCookie,
        buf: &mut HeaderBuf,
    ) -> Option<TxChecksum> {
        let entry = self.get(self.look_up(tuple)?).filter(|entry| entry.due)?;
        let mut header = blank_header(&entry.config, host, tuple);
        header.seq = entry.syns.iss;
        let clock = TimestampClock::new(ts_offset);
        entry.own(host).write(now, SendReason::SynAck, &entry.syns, &clock, &mut header);
        header.tos |= entry.syns.codepoint(&entry.config, SendReason::SynAck).bits();
        // If it is lost, the option may be the reason.
        if entry.syns.transmissions == 0
            && let Some(cookie) = entry.syns.peer.gets_cookie(cookie)
        {
            header.layout = OptionLayout::FastOpen(cookie);
        }
        Some(emit_tcp(&header, [&[], &[]], host.tx_checksum, buf).ok()?.checksum)
    }

    /// The SYN-ACK of `tuple` has left as it was built. True if it was a retransmission.
    pub(crate) fn sent(&mut self, now: Instant, tuple: &FourTuple) -> bool {
        let Some(place) = self.look_up(tuple) else { return false };
        let Some(entry) = self.entries.get_mut(place) else { return false };
        let again = entry.syns.transmissions > 0;
        let ecn_setup = entry.syns.ecn_setup(entry.config.ecn, SendReason::SynAck);
        let ect = entry.syns.codepoint(&entry.config, SendReason::SynAck) != Ecn::NotEct;
        entry.syns.sent(ecn_setup != TcpFlags::NONE, ect);
        entry.due = false;
        // Otherwise it answers a repeated SYN: the timer keeps running, without back-off.
        if core::mem::take(&mut entry.expired) || !again {
            self.entries.restart(place, now);
        }
        again
    }

    /// The four-tuples of the entries for which `which` is true.
    pub(crate) fn tuples_where(&self, which: impl Fn(&Entry) -> bool) -> Vec<FourTuple> {
        self.entries.iter().filter(|entry| which(entry)).map(|entry| entry.tuple).collect()
    }

    fn hash(&self, tuple: &FourTuple) -> u32 {
        self.hasher.hash(tuple.as_bytes()) as u32
    }
}

impl Entry {
    /// The same. The SYN-ACK was sent for the first time, or by the timer, at `since`.
    fn half_open(&self, since: Instant) -> HalfOpen {
        // Each time the timer was started anew, the time before had passed.
        let waited = (0..self.syns.expiries).map(|expiries| self.timeout(expiries).as_nanos());
        let waited = waited.fold(0, u64::saturating_add);
        let first_sent = Instant::from_nanos(since.as_nanos().saturating_sub(waited));
        let first_sent = (self.syns.transmissions > 0).then_some(first_sent);
        HalfOpen { syns: self.syns, first_sent, segs_in: self.segs_in }
    }

    /// A segment of the peer arrived.
    pub(crate) const fn heard(&mut self) {
        self.segs_in = self.segs_in.saturating_add(1);
    }

    /// The SYN-ACK is to be sent; false if it waits already.
    pub(crate) const fn queue(&mut self) -> bool {
        !core::mem::replace(&mut self.due, true)
    }

    /// The SYN-ACK waits in the egress scheduler.
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// True if a challenge ACK may be sent (RFC 5961, section 7): one per timeout.
    pub(crate) const fn may_challenge(&mut self) -> bool {
        !core::mem::replace(&mut self.challenged, true)
    }

    /// True if a repeated SYN may be answered with another SYN-ACK: one per timeout. A SYN-ACK that
    /// waits is an answer.
    pub(crate) const fn may_answer_again(&mut self) -> bool {
        self.due || !core::mem::replace(&mut self.answered, true)
    }

    /// The SYN-ACK has been retransmitted as often as it may be, and data is not waited for.
    pub(crate) fn is_given_up(&self) -> bool {
        let waits = self.acknowledged && self.syns.expiries < self.deferred_for();
        !self.due && !waits && self.syns.expiries >= self.config.syn_ack_retries
    }

    /// A bare ACK of the SYN-ACK arrived. True if data is waited for, and the ACK is only noted.
    pub(crate) fn defers(&mut self) -> bool {
        let defers = self.syns.expiries < self.deferred_for();
        self.acknowledged |= defers;
        defers
    }

    /// True if the timer is to send the SYN-ACK again: not while data is waited for, but for the
    /// last time of that, so that an ACK can come which is enough (Linux: `syn_ack_recalc`).
    pub(crate) fn repeats(&self) -> bool {
        !self.acknowledged || self.syns.expiries >= self.deferred_for().saturating_sub(1)
    }

    /// How many timeouts the time takes for which data is waited (Linux: `secs_to_retrans`).
    fn deferred_for(&self) -> u8 {
        let Some(limit) = self.config.defer_accept else { return 0 };
        let mut waited = Duration::ZERO;
        let enough = (0..u8::MAX).find(|expiries| {
            waited = waited.saturating_add(self.timeout(*expiries));
            waited >= limit
        });
        enough.map_or(u8::MAX, |expiries| expiries + 1)
    }

    /// The timer has backed off.
    pub(crate) const fn is_backed_off(&self) -> bool {
        self.syns.expiries > 0
    }

    /// The headers of a challenge ACK.
    pub(crate) fn challenge_ack(&self, host: &EndpointConfig) -> TcpHeader<'static> {
        let mut header = blank_header(&self.config, host, &self.tuple);
        header.seq = self.syns.iss + 1;
        self.own(host).write_ack(&self.syns, &mut header);
        header
    }

    fn own<'a>(&'a self, host: &'a EndpointConfig) -> OwnSyn<'a> {
        OwnSyn::new(&self.config, host, self.tuple.remote_ip())
    }

    /// The timer's length after it has expired so many times (RFC 6298, 5.5).
    fn timeout(&self, expiries: u8) -> Duration {
        let factor = 1 << expiries.min(32);
        self.config.initial_rto.saturating_mul(factor).min(self.config.max_rto)
    }
}

impl Hashed for Entry {
    fn table_hash(&self) -> u64 {
        spread(self.hash)
    }
}

impl core::fmt::Debug for SynCache {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SynCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, SynCache};
    use crate::config::ConnConfig;
    use crate::conn::{HalfOpen, Syns};
    use crate::four_tuple::FourTuple;
    use crate::seq::SeqNum;
    use crate::time::{Duration, Instant};
    use alloc::sync::Arc;
    use core::num::NonZeroU32;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    fn insert(cache: &mut SynCache, now: Instant, tuple: &FourTuple, most: u32) -> u32 {
        let half_open = HalfOpen { syns: Syns::active(SeqNum(1)), first_sent: None, segs_in: 1 };
        cache.insert(now, tuple, NonZeroU32::MIN, Arc::new(ConnConfig::default()), half_open, most)
    }

    #[test]
    fn an_entry_takes_at_most_128_bytes_with_its_share_of_the_tables() {
        assert!(size_of::<Entry>() <= 96, "for either family");
        for most in [1 << 10, 1 << 14] {
            let mut cache = SynCache::new([1; 16]);
            for number in 0..most {
                insert(&mut cache, Instant::ZERO, &FourTuple::numbered(number << 16), most);
                let each = cache.memory() / cache.len().max(100);
                assert!(each <= 96 * 5 / 4 + 32, "{each} while it grows");
            }
            assert_eq!(cache.shares.sources(), most as usize, "each from another source");
            let each = cache.memory() / cache.len();
            assert!(each <= 128, "{each} of {most}");
            while cache.len() > 0 {
                cache.remove(0);
                assert!(cache.memory() <= 4 * 140 * cache.len().max(64), "{}", cache.len());
            }
            assert_eq!(cache.shares.sources(), 0);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32),
        Remove(u32),
        Sent(u32),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u32..24).prop_map(Step::Insert),
            (0u32..24).prop_map(Step::Remove),
            (0u32..24).prop_map(Step::Sent),
            (0u64..2_000).prop_map(Step::Pass),
        ]
    }

    proptest! {
        /// Against a map of deadlines and numbers of timeouts.
        #[test]
        fn timers_and_shares_behave_as_those_of_a_map(steps in prop::collection::vec(step(), 0..200)) {
            let tuple = |number: u32| FourTuple::numbered((number % 3) << 16 | number);
            let mut cache = SynCache::new([3; 16]);
            let mut model: BTreeMap<u32, (Instant, u32, bool)> = BTreeMap::new();
            let mut now = Instant::from_secs(100);
            for step in steps {
                match step {
                    Step::Insert(number) => {
                        if let std::collections::btree_map::Entry::Vacant(vacant) = model.entry(number) {
                            let place = insert(&mut cache, now, &tuple(number), u32::MAX);
                            prop_assert!(cache.get_mut(place).unwrap().queue());
                            vacant.insert((now + Duration::from_secs(1), 0, true));
                        }
                    }
                    Step::Remove(number) => {
                        let place = cache.look_up(&tuple(number));
                        prop_assert_eq!(place.and_then(|place| cache.remove(place)).is_some(), model.remove(&number).is_some());
                    }
                    Step::Sent(number) => {
                        if let Some((at, expiries, due)) = model.get_mut(&number) && *due {
                            cache.sent(now, &tuple(number));
                            *at = now + Duration::from_secs(1 << *expiries);
                            *due = false;
                        }
                    }
                    Step::Pass(millis) => {
                        now += Duration::from_millis(millis);
                        while let Some(place) = cache.overdue(now) {
                            let was = cache.get(place).unwrap().is_given_up();
                            if was { cache.remove(place); } else {
                                cache.back_off(place, now);
                                cache.get_mut(place).unwrap().queue();
                            }
                        }
                        model.retain(|_, (at, expiries, due)| {
                            if *at <= now {
                                if !*due && *expiries == 5 {
                                    return false;
                                }
                                *expiries += u32::from(!*due);
                                *due = true;
                                *at = now + Duration::from_secs(1 << *expiries);
                            }
                            true
                        });
                    }
                }
                prop_assert_eq!(cache.len(), model.len());
                prop_assert_eq!(cache.next_deadline(), model.values().map(|(at, ..)| *at).min());
                for number in 0..24 {
                    prop_assert_eq!(cache.look_up(&tuple(number)).is_some(), model.contains_key(&number));
                    let same: Vec<_> = model.keys().filter(|other| cache.shares.are_one(&tuple(**other), &tuple(number))).collect();
                    prop_assert_eq!(cache.share_of(&tuple(number)) as usize, same.len());
                }
            }
        }
    }
}
