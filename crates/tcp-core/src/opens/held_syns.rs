//! SYNs that are held for the application: nothing has been answered yet, and the application
//! decides whether, when and how.
//!
//! A held SYN is a record of some 150 bytes, beside the SYN cache: the cache is for handshakes that
//! wait for the client, and its entries make room for each other. A held SYN waits for the
//! application, so a newer one does not displace it; what finds no room is dropped, and comes
//! again. Once the application has accepted it, an entry of the SYN cache takes over, and only a
//! note remains here that tells whose it is.
//!
//! **Cost.** All operations are O(1), amortised where tables grow and shrink, but for listeners, of
//! which there are few: O(log n).

use crate::config::AcceptConfig;
use crate::conn::{HalfOpen, Offer, Syns};
use crate::error::ConnError;
use crate::four_tuple::FourTuple;
use crate::id::{ConnId, ListenerId};
use crate::reserve::Limit;
use crate::seq::SeqNum;
use crate::share::{DeadlineTable, Hashed, KEEP, Shares, spread};
use crate::time::{Duration, Instant};
use crate::wire::{Ecn, IpInfo, MAX_OPTIONS_LEN, OptionIter, TcpOptions, TcpSegment};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::num::NonZeroU32;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

/// A SYN that the application was given. Handles are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SynId {
    pub(crate) tuple: FourTuple,
    serial: u64,
}

/// What a client asks for with its SYN. Anybody may have forged all of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IncomingSyn {
    /// Where the client wants to connect to.
    pub local: SocketAddr,
    /// The client.
    pub remote: SocketAddr,
    /// IPv4 time to live, or IPv6 hop limit, as received.
    pub ttl: u8,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// IPv6 flow label, 20 bits (RFC 6437); 0 in IPv4.
    pub flow_label: u32,
    /// It is an ECN-setup SYN (RFC 3168, section 6.1.1).
    pub ecn_setup: bool,
    /// The client's initial sequence number.
    pub seq: SeqNum,
    /// The client's window in bytes, which is not scaled in a SYN.
    pub window: u16,
    /// The options that a connection uses, the MSS among them.
    pub options: TcpOptions,
    raw: RawOptions,
}

impl IncomingSyn {
    /// All options, known and unknown, in order.
    #[must_use]
    pub fn option_iter(&self) -> OptionIter<'_> {
        OptionIter::new(self.raw.as_slice())
    }
}

/// What happens to the SYNs of listeners that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SynEvent {
    /// A listener holds a SYN that the application has not taken
    /// ([`IncomingSyns::next`](super::IncomingSyns::next)). Told once, and again only after
    /// `next_syn` has returned `None`.
    Arrived(ListenerId),
    /// The handshake of a SYN that the application has accepted is complete. The connection is the
    /// application's.
    Connected {
        /// The SYN.
        syn: SynId,
        /// The connection, which is established.
        conn: ConnId,
    },
    /// A SYN that the application has taken, and not refused, will not become a connection.
    Ended {
        /// The SYN.
        syn: SynId,
        /// `Reset` by the client, which may also have begun anew; `TimedOut` if the application did
        /// not answer in time, or the client did not answer the SYN-ACK; `OutOfMemory`; `Aborted`
        /// if the listener is gone.
        error: ConnError,
    },
}

/// What a held SYN takes, with its share of the tables and of their spare capacity, in bytes.
pub(crate) const RECORD: usize = 256;

/// The option area of a SYN.
#[derive(Clone, Copy, Debug)]
struct RawOptions {
    octets: [u8; MAX_OPTIONS_LEN],
    len: u8,
}

impl RawOptions {
    fn of(syn: &TcpSegment<'_>) -> Self {
        let mut octets = [0; MAX_OPTIONS_LEN];
        let len = syn.raw_options.len().min(MAX_OPTIONS_LEN);
        if let (Some(to), Some(from)) = (octets.get_mut(..len), syn.raw_options.get(..len)) {
            to.copy_from_slice(from);
        }
        Self { octets, len: len as u8 }
    }

    fn as_slice(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A held SYN.
#[derive(Debug)]
pub(crate) struct HeldSyn {
    /// With our sequence number once it is answered.
    pub(crate) syns: Syns,
    /// Number of the listener.
    pub(crate) listener: NonZeroU32,
    serial: u64,
    hash: u32,
    /// What our sequence number must be above, because it follows a connection in TIME-WAIT.
    pub(crate) iss_floor: Option<SeqNum>,
    flow_label: u32,
    window: u16,
    pub(crate) tuple: FourTuple,
    ttl: u8,
    dscp: u8,
    ecn_setup: bool,
    /// Wire segments received; more than 255 count as 255.
    segs_in: u8,
    /// The application has it.
    pub(crate) taken: bool,
    raw: RawOptions,
}

impl HeldSyn {
    pub(crate) const fn id(&self) -> SynId {
        SynId { tuple: self.tuple, serial: self.serial }
    }

    /// What the application is told.
    pub(crate) fn incoming(&self) -> IncomingSyn {
        IncomingSyn {
            local: self.tuple.local(),
            remote: self.tuple.remote(),
            ttl: self.ttl,
            dscp: self.dscp,
            flow_label: self.flow_label,
            ecn_setup: self.ecn_setup,
            seq: self.syns.irs,
            window: self.window,
            options: TcpOptions::parse(self.raw.as_slice()).0,
            raw: self.raw,
        }
    }

    /// The client has repeated its SYN.
    pub(crate) fn hear_again(&mut self, syn: &TcpSegment<'_>, ecn: Ecn) {
        self.segs_in = self.segs_in.saturating_add(1);
        self.syns.hear_again(syn, ecn);
    }

    /// What the handshake begins with, with our sequence number `iss`.
    pub(crate) const fn half_open(&self, iss: SeqNum) -> HalfOpen {
        let mut syns = self.syns;
        syns.iss = iss;
        HalfOpen { syns, first_sent: None, segs_in: self.segs_in }
    }
}

impl Hashed for HeldSyn {
    fn table_hash(&self) -> u64 {
        spread(self.hash)
    }
}

/// What a listener has of them.
#[derive(Debug)]
struct OfListener {
    /// To be taken by the application, in the order in which they came; stale entries are skipped.
    untaken: VecDeque<SynId>,
    held: u32,
    /// What the endpoints of the host may have of them together.
    limit: Limit,
    /// The application has been told of those in the queue.
    told: bool,
}

/// The held SYNs of an endpoint, and the answered ones that are half-open.
pub(crate) struct HeldSyns {
    /// A lane for the timeout, and one for SYNs that came before it was changed.
    held: DeadlineTable<HeldSyn, 2>,
    shares: Shares,
    /// Of the listeners that have had any.
    listeners: BTreeMap<NonZeroU32, OfListener>,
    /// Entries of the listeners' queues.
    queued: usize,
    /// Accepted SYNs, each with an entry in the SYN cache.
    answered: HashTable<SynId>,
    news: VecDeque<SynEvent>,
    made: u64,
    /// Bytes held: asked for after each burst, and computed when they change.
    memory: usize,
    hasher: SipHasher13,
}

impl HeldSyns {
    /// None. The secret must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self {
            held: DeadlineTable::default(),
            shares: Shares::new(secret),
            listeners: BTreeMap::new(),
            queued: 0,
            answered: HashTable::new(),
            news: VecDeque::new(),
            made: 0,
            memory: 0,
            hasher: SipHasher13::new_with_key(&secret),
        }
    }

    /// Number of held SYNs.
    pub(crate) const fn len(&self) -> usize {
        self.held.len()
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    fn measure(&mut self) {
        self.memory = self.held.len() * RECORD
            + self.listeners.len() * size_of::<(NonZeroU32, OfListener)>()
            + self.queued * size_of::<SynId>()
            + self.answered.len() * 2 * size_of::<SynId>()
            + self.news.len() * size_of::<SynEvent>();
    }

    /// The place of the held SYN of `tuple`. Valid until one is removed.
    pub(crate) fn look_up(&self, tuple: &FourTuple) -> Option<u32> {
        // Not worth a hash if there are none.
        if self.len() == 0 {
            return None;
        }
        self.held.find(table_hash(&self.hasher, tuple), |held| held.tuple == *tuple)
    }

    /// The place of a SYN that the application has taken, if it is still held.
    pub(crate) fn place_of(&self, id: &SynId) -> Option<u32> {
        let place = self.look_up(&id.tuple)?;
        self.held.get(place).filter(|held| held.serial == id.serial).map(|_| place)
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut HeldSyn> {
        self.held.get_mut(place)
    }

    /// True if the listener with this number may have one more.
    pub(crate) fn has_room_for(&mut self, listener: NonZeroU32, accept: &AcceptConfig) -> bool {
        let of = self.listeners.entry(listener).or_insert_with(|| OfListener {
            untaken: VecDeque::new(),
            held: 0,
            limit: accept.held_syns_of_host(),
            told: false,
        });
        let has_room = of.held < accept.max_held_syns && of.limit.has_room(of.held as usize);
        self.measure();
        has_room
    }

    /// SYNs of the source of `tuple`.
    pub(crate) fn of_source(&self, tuple: &FourTuple) -> u32 {
        self.shares.of(tuple)
    }

    /// What had room did not come.
    pub(crate) fn settle(&mut self, listener: NonZeroU32) {
        if let Some(of) = self.listeners.get_mut(&listener) {
            of.limit.settle(of.held as usize);
        }
    }

    /// Nobody has room any more.
    pub(crate) fn leave_host(&mut self) {
        self.listeners.values_mut().for_each(|of| of.limit = Limit::own(0));
    }

    /// Holds a SYN for `timeout`. None of `tuple` may be held; at most `most` are, and the listener
    /// [has room](Self::has_room_for).
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        (listener, tuple): (NonZeroU32, &FourTuple),
        (ip, syn): (&IpInfo, &TcpSegment<'_>),
        iss_floor: Option<SeqNum>,
        timeout: Duration,
        most: u32,
    ) {
        self.made += 1;
        let offer = Offer::of(syn, ip.ecn);
        let held = HeldSyn {
            syns: Syns::passive(SeqNum(0), syn.seq, offer),
            listener,
            serial: self.made,
            hash: hash(&self.hasher, tuple),
            iss_floor,
            flow_label: ip.flow_label,
            window: syn.window,
            tuple: *tuple,
            ttl: ip.ttl,
            dscp: ip.dscp,
            ecn_setup: offer.ecn(),
            segs_in: syn.wire_segments.min(255) as u8,
            taken: false,
            raw: RawOptions::of(syn),
        };
        let id = held.id();
        self.held.insert(held, now, timeout, most as usize);
        self.shares.enter(tuple);
        let Some(of) = self.listeners.get_mut(&listener) else { return };
        of.held += 1;
        // More than half of them are stale: this is O(1) per SYN.
        if of.untaken.len() > 2 * of.held as usize {
            let (held, hasher) = (&self.held, &self.hasher);
            let before = of.untaken.len();
            of.untaken
                .retain(|id| held.find(table_hash(hasher, &id.tuple), |held| held.id() == *id).is_some());
            self.queued -= before - of.untaken.len();
        }
        of.untaken.push_back(id);
        self.queued += 1;
        if !core::mem::replace(&mut of.told, true) {
            self.news.push_back(SynEvent::Arrived(ListenerId(listener.get())));
        }
        self.measure();
    }

    /// Gives the application the SYN of a listener that has waited longest for it.
    pub(crate) fn take_next(&mut self, listener: NonZeroU32) -> Option<(SynId, IncomingSyn)> {
        loop {
            let of = self.listeners.get_mut(&listener)?;
            let Some(id) = of.untaken.pop_front() else {
                of.told = false;
                return None;
            };
            self.queued -= 1;
            self.measure();
            if let Some(place) = self.place_of(&id)
                && let Some(held) = self.held.get_mut(place)
            {
                held.taken = true;
                return Some((id, held.incoming()));
            }
        }
    }

    /// Ends the holding of the SYN at `place`.
    pub(crate) fn remove(&mut self, place: u32) -> Option<HeldSyn> {
        let held = self.held.remove(place)?;
        self.shares.leave(&held.tuple);
        if let Some(of) = self.listeners.get_mut(&held.listener) {
            of.held -= 1;
            of.limit.settle(of.held as usize);
            if of.held == 0 {
                // What is left in its queue is stale.
                self.queued -= of.untaken.len();
                of.untaken = VecDeque::new();
            }
        }
        self.measure();
        Some(held)
    }

    /// A listener whose SYNs have ended is gone.
    pub(crate) fn forget_listener(&mut self, listener: NonZeroU32) {
        self.listeners.remove(&listener);
        self.measure();
    }

    /// The four-tuples of a listener's held SYNs.
    pub(crate) fn tuples_of(&self, listener: NonZeroU32) -> Vec<FourTuple> {
        self.held.iter().filter(|held| held.listener == listener).map(|held| held.tuple).collect()
    }

    /// The place of the SYN that has been held for longest.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.held.oldest()
    }

    /// When a SYN has been held for too long.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.held.next().map(|(at, _)| at)
    }

    /// The place of a SYN that has been held for too long at `now`.
    pub(crate) fn overdue(&self, now: Instant) -> Option<u32> {
        self.held.next().filter(|(at, _)| *at <= now).map(|(_, place)| place)
    }

    /// An accepted SYN has an entry in the SYN cache.
    pub(crate) fn answered(&mut self, id: SynId) {
        let hasher = &self.hasher;
        let hash = |id: &SynId| table_hash(hasher, &id.tuple);
        self.answered.insert_unique(hash(&id), id, hash);
        self.measure();
    }

    /// The accepted SYN of a half-open connection.
    pub(crate) fn is_answered(&self, tuple: &FourTuple) -> Option<SynId> {
        if self.answered.is_empty() {
            return None;
        }
        self.answered.find(table_hash(&self.hasher, tuple), |id| id.tuple == *tuple).copied()
    }

    /// The half-open connection of an accepted SYN is over. Returns the SYN.
    pub(crate) fn take_answered(&mut self, tuple: &FourTuple) -> Option<SynId> {
        if self.answered.is_empty() {
            return None;
        }
        let hash = table_hash(&self.hasher, tuple);
        let (id, _) = self.answered.find_entry(hash, |id| id.tuple == *tuple).ok()?.remove();
        if self.answered.capacity() > KEEP && self.answered.len() < self.answered.capacity() / 8 {
            let (hasher, len) = (&self.hasher, 2 * self.answered.len());
            self.answered.shrink_to(len.max(KEEP / 2), |id| table_hash(hasher, &id.tuple));
        }
        self.measure();
        Some(id)
    }

    /// The application is to be told.
    pub(crate) fn tell(&mut self, event: SynEvent) {
        self.news.push_back(event);
        self.measure();
    }

    pub(crate) fn next_event(&mut self) -> Option<SynEvent> {
        let event = self.news.pop_front();
        self.measure();
        event
    }
}

/// The keyed hash of a four-tuple, of which 32 bits are used.
fn hash(hasher: &SipHasher13, tuple: &FourTuple) -> u32 {
    hasher.hash(tuple.as_bytes()) as u32
}

fn table_hash(hasher: &SipHasher13, tuple: &FourTuple) -> u64 {
    spread(hash(hasher, tuple))
}

impl core::fmt::Debug for HeldSyns {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HeldSyns")
            .field("held", &self.held.len())
            .field("answered", &self.answered.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{HeldSyn, HeldSyns, RECORD};
    use crate::config::AcceptConfig;
    use crate::four_tuple::FourTuple;
    use crate::seq::SeqNum;
    use crate::time::{Duration, Instant};
    use crate::wire::{Ecn, IpInfo, IpVersion, Payload, TcpFlags, TcpOptions, TcpSegment};
    use core::num::NonZeroU32;

    #[test]
    fn a_held_syn_takes_what_it_is_charged() {
        assert!(size_of::<HeldSyn>() <= 160, "for either family");
        let ip = IpInfo {
            src: [192, 0, 2, 2].into(),
            dst: [192, 0, 2, 1].into(),
            version: IpVersion::V4,
            ttl: 64,
            dscp: 0,
            ecn: Ecn::NotEct,
            flow_label: 0,
            header_len: 20,
            total_len: 40,
        };
        let syn = TcpSegment {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(3),
            ack: SeqNum(0),
            flags: TcpFlags::SYN,
            window: 4,
            urgent: 0,
            options: TcpOptions::NONE,
            options_malformed: false,
            raw_options: &[],
            payload: Payload::EMPTY,
            wire_segments: 1,
        };
        let mut syns = HeldSyns::new([1; 16]);
        let (now, most) = (Instant::ZERO, 1 << 14);
        for number in 0..most {
            let tuple = FourTuple::numbered(number << 16);
            let listener = NonZeroU32::MIN;
            let mut accept = AcceptConfig::default();
            accept.max_held_syns = most;
            assert!(syns.has_room_for(listener, &accept));
            syns.hold(now, (listener, &tuple), (&ip, &syn), None, Duration::from_secs(1), most);
            let allocated = syns.held.memory() + syns.shares.memory();
            assert!(allocated <= RECORD * syns.len().max(64), "{allocated} for {}", syns.len());
        }
    }
}
