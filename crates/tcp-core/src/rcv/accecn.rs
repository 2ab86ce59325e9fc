//! Accurate ECN at the receiver (RFC 9768, section 3.2): counts what arrived with which codepoint,
//! and says what of it the next segment tells.
//!
//! ```text
//!   arrival ──► r.cep, r.e0b, r.ceb, r.e1b ──► an ACK at once?  first mark after none: yes (3.2.2.5.1)
//!                                              second mark since the last ACK, third without data: yes
//!   segment ──► ACE = r.cep mod 8; the option, if a counter has grown and there is room beside SACK
//! ```
//!
//! ACE wraps after eight marks, so an ACK may not wait for more than seven, whatever its policy
//! says. A super-packet of more marked segments than that is told by the option, or by several
//! ACKs.

use crate::counters::Counters;
use crate::info::CodepointBytes;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{AccEcnOption, AccEcnOrder, Ecn, SackBlocks, TcpFlags};

/// Most marks that an ACK may wait for: one more could not be told from none.
const MOST_MARKS: u32 = 7;
/// Where r.cep starts.
const FIRST_COUNT: u32 = 5;
/// Bytes after which a counter is told, at the latest, if options are sent sparingly.
const SPARING_BYTES: u64 = 1 << 22;
/// How long options are left out after they seemed to be why segments are lost.
const FAILED_FOR: Duration = Duration::from_secs(30);

/// A set of the three counters of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Which(u8);

impl Which {
    const ECT0: u8 = 1;
    const CE: u8 = 2;
    const ECT1: u8 = 4;

    /// How many fields it takes to tell them in `order`.
    const fn fields(self, order: AccEcnOrder) -> usize {
        let last = match order {
            AccEcnOrder::Ect0First => Self::ECT1,
            AccEcnOrder::Ect1First => Self::ECT0,
        };
        if self.0 & last != 0 {
            3
        } else if self.0 & Self::CE != 0 {
            2
        } else {
            (self.0 != 0) as usize
        }
    }
}

/// Whether an arrival demands an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    None,
    /// At once, unless the policy withholds ACKs.
    Soft,
    /// At once.
    Hard,
}

/// Packets that arrived with one codepoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) ecn: Ecn,
    /// Payload of all.
    pub(super) bytes: u32,
    /// Wire packets.
    pub(super) packets: u32,
    /// First sequence number.
    pub(super) seq: SeqNum,
    /// Data waits for an ACK, perhaps that of this arrival.
    pub(super) unacked: bool,
    /// No option can tell of them.
    pub(super) ace_only: bool,
}

/// A counter that ACE alone must tell, in steps: what an ACK tells next, and up to where it
/// acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Behind {
    cep: u32,
    ack: SeqNum,
    /// Bytes of a segment.
    segment: u32,
}

/// When an option was told last, and whether it may be.
#[derive(Clone, Copy, Debug)]
struct Telling {
    /// The next ACK, or the next data, carries all counters, whatever has grown: the client's first
    /// (section 3.2.3.2.1).
    first_ack: bool,
    first_data: bool,
    /// If sparing: ACKs that still carry it after a change.
    after_change: u8,
    /// The counter that grew last.
    grew: u8,
    /// Bytes since the last option.
    bytes: u64,
    /// When the last one left.
    at: Instant,
    /// The peer has sent again what ACKs with options acknowledged; once is an accident.
    repeated: u8,
    /// Until when there are none.
    failed_until: Option<Instant>,
}

/// The counters. Names are those of RFC 9768, section 3.2.1.
#[derive(Debug)]
pub(super) struct Counts {
    /// r.cep: marked packets, from 5 on.
    pub(super) cep: u32,
    /// r.e0b, r.ceb, r.e1b: bytes, the first and last from 1 on.
    pub(super) e0b: u64,
    pub(super) ceb: u64,
    pub(super) e1b: u64,
    /// Counters that ever grew, and since the last option that left.
    ever: Which,
    since: Which,
    /// The order that begins with the latest ECT.
    latest: AccEcnOrder,
    /// r.cep as told last.
    told: u32,
    behind: Option<Behind>,
    /// The last packet was marked.
    ce: bool,
    /// Marks on packets without data are why an ACK is due: it has no SACK blocks (section
    /// 3.2.2.5.1).
    for_bare: bool,
    /// The codepoint of the SYN-ACK, which the ACK of it tells instead of a counter.
    echo: Option<Ecn>,
    /// A SYN-ACK was marked; it counts once.
    syn_ack_marked: bool,
    telling: Telling,
}

/// What there is room for beside the options on every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Octets.
    pub(super) octets: usize,
    /// SACK blocks that could be told.
    pub(super) blocks: usize,
}

impl Counts {
    /// This side has counted so many marked packets. `echo`: of a client, the codepoint of the
    /// SYN-ACK.
    pub(super) fn new(marked: u32, echo: Option<Ecn>) -> Self {
        Self {
            cep: marked,
            e0b: 1,
            ceb: 0,
            e1b: 1,
            ever: Which::default(),
            since: Which::default(),
            latest: AccEcnOrder::Ect1First,
            told: marked,
            behind: None,
            ce: false,
            for_bare: false,
            echo,
            syn_ack_marked: echo == Some(Ecn::Ce),
            telling: Telling {
                first_ack: echo.is_some(),
                first_data: echo.is_some(),
                after_change: 0,
                grew: 0,
                bytes: 0,
                at: Instant::ZERO,
                repeated: 0,
                failed_until: None,
            },
        }
    }

    /// Acceptable packets arrived.
    pub(super) fn on_arrival(&mut self, arrival: &Arrival, withholding: bool) -> Demand {
        let bytes = u64::from(arrival.bytes);
        let counter = match arrival.ecn {
            Ecn::NotEct => 0,
            Ecn::Ect0 => {
                self.e0b += bytes;
                self.latest = AccEcnOrder::Ect0First;
                Which::ECT0
            }
            Ecn::Ect1 => {
                self.e1b += bytes;
                self.latest = AccEcnOrder::Ect1First;
                Which::ECT1
            }
            Ecn::Ce => {
                self.ceb += bytes;
                Which::CE
            }
        };
        if bytes > 0 {
            self.ever.0 |= counter;
            self.since.0 |= counter;
            self.telling.bytes += bytes;
            if counter == Which::CE || (counter != self.telling.grew && counter != 0) {
                self.telling.after_change = 2;
            }
            if counter != 0 {
                self.telling.grew = counter;
            }
        }
        let was_marked = core::mem::replace(&mut self.ce, arrival.ecn == Ecn::Ce);
        if arrival.ecn != Ecn::Ce {
            return Demand::None;
        }
        let before = self.cep;
        self.cep = self.cep.wrapping_add(arrival.packets);
        let marks = self.cep.wrapping_sub(self.told);
        if marks > MOST_MARKS && arrival.ace_only && bytes > 0 {
            self.fall_behind(arrival, before);
        }
        let n = match (withholding, arrival.unacked) {
            (true, _) => MOST_MARKS,
            (false, true) => 2,
            (false, false) => 3,
        };
        let edge = bytes > 0 && !was_marked && !withholding;
        if marks >= MOST_MARKS {
            Demand::Hard
        } else if edge || marks >= n {
            Demand::Soft
        } else {
            Demand::None
        }
    }

    /// More marks than ACE can tell, all in one super-packet: ACKs of parts of it tell them.
    fn fall_behind(&mut self, arrival: &Arrival, before: u32) {
        let segment = arrival.bytes.div_ceil(arrival.packets.max(1));
        let cep = self.told.wrapping_add(MOST_MARKS);
        let inside = cep.wrapping_sub(before);
        if self.behind.is_none() && inside <= arrival.packets {
            self.behind = Some(Behind { cep, ack: arrival.seq + inside * segment, segment });
        }
    }

    /// The counter that the next segment tells, and the highest number that it acknowledges.
    fn next(&self, rcv_nxt: SeqNum) -> (u32, SeqNum) {
        match self.behind {
            Some(Behind { cep, ack, .. }) => (cep, ack.min(rcv_nxt)),
            None => (self.cep, rcv_nxt),
        }
    }

    /// ACE of the next segment, and what it acknowledges. `bare`: it has neither data nor FIN.
    pub(super) fn ace(&self, rcv_nxt: SeqNum, bare: bool) -> (TcpFlags, SeqNum) {
        if let Some(ecn) = self.echo.filter(|_| bare) {
            return (TcpFlags::ace_code(ecn), rcv_nxt);
        }
        let (cep, ack) = self.next(rcv_nxt);
        (TcpFlags::ace_of(cep), ack)
    }

    /// The next ACK is to have no SACK blocks.
    pub(super) const fn forbids_sack(&self) -> bool {
        self.for_bare || self.echo.is_some()
    }

    /// An ACK is due, because of marks on packets without data alone.
    pub(super) const fn ask_for_bare(&mut self) {
        self.for_bare = true;
    }

    /// Data arrived.
    pub(super) const fn on_data(&mut self) {
        self.for_bare = false;
    }

    /// The ACK of the SYN-ACK is due and tells how that arrived.
    pub(super) const fn answers_syn_ack(&self) -> bool {
        self.echo.is_some()
    }

    /// The peer has sent its SYN-ACK again.
    pub(super) fn on_syn_ack_again(&mut self, ecn: Ecn) {
        self.echo = Some(ecn);
        if ecn == Ecn::Ce && !core::mem::replace(&mut self.syn_ack_marked, true) {
            self.cep = self.cep.wrapping_add(1);
        }
    }

    /// True if no option can tell of the next arrival.
    pub(super) fn is_ace_only(&self, now: Instant, frequency: u8) -> bool {
        frequency == 0 || self.has_failed(now, frequency)
    }

    fn has_failed(&self, now: Instant, frequency: u8) -> bool {
        frequency < 3 && self.telling.failed_until.is_some_and(|until| now < until)
    }

    /// The option of the next segment. `ack`: an ACK is due with it; `bare`: it has neither data nor
    /// FIN. `frequency` is that of `accecn_option`.
    pub(super) fn option(
        &self,
        now: Instant,
        frequency: u8,
        srtt: Option<Duration>,
        (ack, bare): (bool, bool),
        room: Room,
    ) -> AccEcnReport {
        let telling = &self.telling;
        if self.is_ace_only(now, frequency) {
            return AccEcnReport::Nothing;
        }
        let beacon = telling.bytes > 0 && srtt.is_some_and(|srtt| now.since(telling.at) > srtt.div(3));
        let due = ack
            && match frequency {
                1 => telling.after_change > 0 || telling.bytes >= SPARING_BYTES || beacon,
                _ => self.since != Which::default() || beacon,
            };
        let first = if bare { telling.first_ack } else { telling.first_data };
        if !first && !due {
            return AccEcnReport::Nothing;
        }
        let nothing_yet = self.ever == Which::default();
        let all = Which(Which::ECT0 | Which::CE | Which::ECT1);
        let (ever, since) = if nothing_yet { (all, all) } else { (self.ever, self.since) };
        match choose(ever, since, self.latest, room) {
            Some((order, fields)) => {
                AccEcnReport::Option(AccEcnOption::new(order, fields, self.e0b, self.ceb, self.e1b))
            }
            None => AccEcnReport::NoRoom,
        }
    }

    /// A segment left that told ACE and perhaps an option. `bare`: it had neither data nor FIN.
    /// True if another one must follow, because ACE could not tell all.
    pub(super) fn on_sent(
        &mut self,
        counters: &mut Counters,
        now: Instant,
        option: Option<&AccEcnOption>,
        bare: bool,
    ) -> bool {
        if let Some(option) = option {
            counters.acc_ecn_options_sent += 1;
            self.since.0 &= !told_by(option);
            let telling = &mut self.telling;
            (telling.bytes, telling.at) = (0, now);
            telling.after_change = telling.after_change.saturating_sub(1);
        }
        if bare {
            self.telling.first_ack = false;
        } else {
            self.telling.first_data = false;
        }
        if bare && self.echo.take().is_some() {
            return self.cep != self.told;
        }
        self.for_bare = false;
        match &mut self.behind {
            Some(behind) => {
                self.told = behind.cep;
                let left = self.cep.wrapping_sub(behind.cep);
                if left > MOST_MARKS {
                    behind.cep = behind.cep.wrapping_add(MOST_MARKS);
                    behind.ack += MOST_MARKS * behind.segment;
                } else {
                    self.behind = None;
                }
                left > 0
            }
            None => {
                self.told = self.cep;
                false
            }
        }
    }

    /// Marked packets received.
    pub(super) const fn marked(&self) -> u32 {
        self.cep - FIRST_COUNT
    }

    /// Bytes received with each codepoint.
    pub(super) const fn bytes(&self) -> CodepointBytes {
        CodepointBytes { ect0: self.e0b - 1, ce: self.ceb, ect1: self.e1b - 1 }
    }

    /// Nothing was told since r.cep grew.
    pub(super) const fn is_told(&self) -> bool {
        self.told == self.cep
    }

    /// The peer has sent again what an ACK with an option has acknowledged: twice, and options are
    /// left out for a while (section 3.2.3.2.2).
    pub(super) fn on_repeat(&mut self, counters: &mut Counters, now: Instant) {
        let telling = &mut self.telling;
        if telling.at == Instant::ZERO {
            return;
        }
        telling.repeated += 1;
        if telling.repeated >= 2 {
            telling.repeated = 0;
            telling.failed_until = Some(now + FAILED_FOR);
            counters.acc_ecn_option_failed += 1;
        }
    }
}

/// What a segment tells beside ACE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccEcnReport {
    Nothing,
    /// An option was due, and there was no room.
    NoRoom,
    Option(AccEcnOption),
}

/// The counters in an option.
fn told_by(option: &AccEcnOption) -> u8 {
    let flag = |there: bool, flag: u8| if there { flag } else { 0 };
    flag(option.ect0().is_some(), Which::ECT0)
        | flag(option.ce().is_some(), Which::CE)
        | flag(option.ect1().is_some(), Which::ECT1)
}

/// Section 3.2.3.3: the order and number of fields. All counters that `ever` grew if there is room,
/// at least those that grew `since` the last option, and up to two SACK blocks go first.
fn choose(ever: Which, since: Which, latest: AccEcnOrder, room: Room) -> Option<(AccEcnOrder, usize)> {
    let other = match latest {
        AccEcnOrder::Ect0First => AccEcnOrder::Ect1First,
        AccEcnOrder::Ect1First => AccEcnOrder::Ect0First,
    };
    let orders = if ever.fields(other) < ever.fields(latest) { [other, latest] } else { [latest, other] };
    let wanted = room.blocks.min(2);
    orders.into_iter().find_map(|order| {
        let least = since.fields(order).max(1);
        let fits = |fields: &usize| {
            let option = AccEcnOption::new(order, *fields, 0, 0, 0);
            option.option_len().next_multiple_of(4) <= room.octets
                && SackBlocks::that_fit(room.octets, Some(&option)) >= wanted
        };
        (least..=ever.fields(order)).rev().find(fits).map(|fields| (order, fields))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString as _};
    use alloc::vec::Vec;
    use std::format;

    fn counts() -> Counts {
        Counts::new(5, None)
    }

    /// Arrivals `codepoint,payload[,packets]` with a scheduled ACK at every `every`-th packet, and
    /// an option beside ACE if `option`: ACE of the ACKs after each, and the counters.
    fn acks(every: u32, option: bool, arrivals: &str) -> (String, Counts) {
        let mut counts = counts();
        let mut counters = Counters::default();
        let (mut rcv_nxt, mut waiting) = (SeqNum(0), 0);
        let mut told = Vec::new();
        for arrival in arrivals.split(' ') {
            let parts: Vec<&str> = arrival.split(',').collect();
            let number = |place: usize| parts.get(place).map(|text| text.parse::<u32>().expect("a number"));
            let (payload, packets) = (number(1).expect("payload"), number(2).unwrap_or(1));
            let ecn = match parts[0] {
                "ect0" => Ecn::Ect0,
                "ect1" => Ecn::Ect1,
                _ => Ecn::Ce,
            };
            waiting += if payload > 0 { packets } else { 0 };
            let bytes = payload * packets;
            let (seq, unacked) = (rcv_nxt, waiting > 0);
            let demand =
                counts.on_arrival(&Arrival { ecn, bytes, packets, seq, unacked, ace_only: !option }, false);
            rcv_nxt += bytes;
            let mut of_this = Vec::new();
            if demand != Demand::None || waiting >= every {
                waiting = 0;
                loop {
                    let (ace, _) = counts.ace(rcv_nxt, true);
                    of_this.push(format!("{:03b}", ace.ace()));
                    if !counts.on_sent(&mut counters, Instant::ZERO, None, true) {
                        break;
                    }
                }
            }
            told.push(if of_this.is_empty() { ".".to_string() } else { of_this.join("+") });
        }
        (told.join(" "), counts)
    }

    #[test]
    fn acknowledges_marks_as_the_rfc_says() {
        for (every, option, arrivals, expected, [cep, e0, ce, e1]) in [
            (
                2,
                true,
                "ect1,1448 ect1,1448 ce,1448 ce,1448 ect1,1448 ce,1448 ect1,1448 ect1,1448",
                ". 101 110 . 111 000 . 000",
                [8, 1, 4_344, 7_241],
            ),
            (2, true, "ce,0 ce,0 ce,0 ce,0 ce,0 ce,0", ". . 000 . . 011", [11, 1, 0, 1]),
            (2, false, "ect1,1448,16 ce,1448,20 ect1,1448,2", "101 100+011+001 001", [25, 1, 28_960, 26_065]),
            (2, true, "ect1,1448,16 ce,1448,20 ect1,1448,2", "101 001 001", [25, 1, 28_960, 26_065]),
            (
                8,
                true,
                "ce,1448 ce,1448 ce,1448 ect0,1448 ce,0 ect0,1448",
                "110 . 000 . . .",
                [9, 2_897, 4_344, 1],
            ),
        ] {
            let (told, counts) = acks(every, option, arrivals);
            assert_eq!(told, expected, "{arrivals}");
            assert_eq!([u64::from(counts.cep), counts.e0b, counts.ceb, counts.e1b], [cep, e0, ce, e1]);
        }
    }

    fn which(names: &str) -> Which {
        let bit = |name: &str| match name {
            "e0" => Which::ECT0,
            "ce" => Which::CE,
            _ => Which::ECT1,
        };
        Which(names.split(',').map(bit).fold(0, |all, bit| all | bit))
    }

    #[test]
    fn shares_its_room_with_sack() {
        use AccEcnOrder::{Ect0First, Ect1First};
        for (stamps, blocks, ever, since, latest, expected, fit) in [
            (true, 3, "e1,ce", "e1", Ect1First, Some((Ect1First, 2)), 2),
            (true, 3, "e0,ce,e1", "ce", Ect0First, Some((Ect0First, 2)), 2),
            (true, 2, "e0,ce,e1", "e0,e1", Ect0First, None, 2),
            (false, 4, "e1,ce", "ce", Ect1First, Some((Ect1First, 2)), 3),
            (false, 4, "e0,ce,e1", "e0,ce,e1", Ect0First, Some((Ect0First, 3)), 3),
            (true, 1, "e0,ce,e1", "e0,ce,e1", Ect1First, Some((Ect1First, 3)), 1),
        ] {
            let room = Room { octets: if stamps { 28 } else { 40 }, blocks };
            let chosen = choose(which(ever), which(since), latest, room);
            assert_eq!(chosen, expected, "{ever} {since}");
            let option = chosen.map(|(order, fields)| AccEcnOption::new(order, fields, 0, 0, 0));
            let found = SackBlocks::that_fit(room.octets, option.as_ref()).min(blocks);
            assert_eq!(found, fit, "{ever} {since}");
        }
    }

    #[test]
    fn a_policy_can_hold_seven_marks_and_no_more() {
        let mut counts = counts();
        let mut arrive = || {
            let (ecn, bytes, packets, seq) = (Ecn::Ce, 1_000, 1, SeqNum(0));
            counts.on_arrival(&Arrival { ecn, bytes, packets, seq, unacked: true, ace_only: false }, true)
        };
        assert!((0..6).all(|_| arrive() == Demand::None));
        assert_eq!(arrive(), Demand::Hard);
    }

    #[test]
    fn a_sparing_receiver_tells_changes_marks_and_now_and_then() {
        let mut counts = counts();
        let mut counters = Counters::default();
        let srtt = Some(Duration::from_millis(30));
        let room = Room { octets: 28, blocks: 0 };
        let mut told = String::new();
        for (millis, ecn) in [
            (0, Ecn::Ect1),
            (1, Ecn::Ect1),
            (2, Ecn::Ect1),
            (3, Ecn::Ce),
            (4, Ecn::Ect1),
            (5, Ecn::Ect1),
            (6, Ecn::Ect1),
            (17, Ecn::Ect1),
        ] {
            let now = Instant::from_millis(1_000 + millis);
            let (bytes, packets, seq) = (1_000, 1, SeqNum(0));
            counts.on_arrival(&Arrival { ecn, bytes, packets, seq, unacked: true, ace_only: false }, false);
            let option = match counts.option(now, 1, srtt, (true, true), room) {
                AccEcnReport::Option(option) => Some(option),
                _ => None,
            };
            told.push(if option.is_some() { 'o' } else { '.' });
            counts.on_sent(&mut counters, now, option.as_ref(), true);
        }
        assert_eq!(told, "oo.ooo.o");
        assert_eq!(counters.acc_ecn_options_sent, 6);
    }

    #[test]
    fn options_pause_if_the_peer_repeats_what_they_acknowledged() {
        let mut counts = counts();
        let mut counters = Counters::default();
        let at = Instant::from_secs(5);
        let option = AccEcnOption::new(AccEcnOrder::Ect1First, 1, 1, 0, 2);
        counts.on_repeat(&mut counters, at);
        counts.on_sent(&mut counters, at, Some(&option), true);
        counts.on_repeat(&mut counters, at);
        assert!(!counts.is_ace_only(at, 2));
        counts.on_repeat(&mut counters, at);
        assert!(counts.is_ace_only(at, 2));
        assert!(!counts.is_ace_only(at, 3), "not if options are insisted on");
        assert!(!counts.is_ace_only(Instant::from_secs(35), 2));
    }
}
