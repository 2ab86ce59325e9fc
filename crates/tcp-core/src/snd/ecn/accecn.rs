//! What a peer tells by accurate ECN (RFC 9768, section 3.2): ACE, the lowest three bits of its
//! count of marked packets, and the option's counts of bytes.
//!
//! ACE wraps after eight marks, so an ACK of more than seven segments is ambiguous. Then the option
//! decides, which counts bytes. Without it the ACK is taken to report the most marks that fit: an
//! ACK of that many segments mostly comes after lost ACKs, and too few marks would be worse than
//! too many. A peer whose ACKs mostly are of that many segments (of GRO) is believed (section
//! 3.2.2.5.2, appendix A.2).

use super::agreement::{EcnAgreement, FIRST_COUNT};
use crate::counters::Counters;
use crate::info::CodepointBytes;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::wire::{AccEcnOption, TcpFlags};

/// Fraction bits of the average number of segments per ACK.
const AVERAGE_BITS: u32 = 6;
/// An ACK of more segments is ambiguous.
const UNAMBIGUOUS: u32 = 7;
/// Average segments per ACK above which ACKs of many are ordinary.
const ORDINARY: u32 = 4 << AVERAGE_BITS;
/// Rounds after which marks on everything are believed (section 3.2.2.4).
const MARKED_ROUNDS: u8 = 3;
/// When ECT is tried again after such rounds.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Packets after which too few reported codepoints mean that they are cleared on the way.
const BLEACHING_SAMPLE: u32 = 100;

/// The fields of an ACK that belong to accurate ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccEcnFields {
    /// ACE, 0 to 7.
    pub(crate) ace: u8,
    /// The option.
    pub(crate) option: Option<AccEcnOption>,
    /// The segment is newer than all before it although it acknowledges nothing new: by its
    /// timestamp, or by its data.
    pub(crate) newer: bool,
}

/// What an ACK covers for the first time.
#[derive(Clone, Copy, Debug)]
pub(in crate::snd) struct Covered {
    /// Wire packets.
    pub(in crate::snd) packets: u32,
    /// Bytes.
    pub(in crate::snd) bytes: u32,
    /// SMSS.
    pub(in crate::snd) smss: u32,
    /// SND.UNA after it.
    pub(in crate::snd) una: SeqNum,
    /// SND.NXT.
    pub(in crate::snd) nxt: SeqNum,
}

/// Marks of which an ACK tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::snd) struct Marks {
    pub(in crate::snd) packets: u32,
    /// At most what the ACK covers for the first time.
    pub(in crate::snd) bytes: u32,
    /// The path marks what is not to be marked, or the peer contradicts itself: this side stops to
    /// set ECT.
    pub(in crate::snd) mangled: bool,
}

/// Bytes that have arrived with one codepoint, and whether the next ACKs are taken to be of the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grows {
    Ect0,
    Ce,
    Ect1,
}

/// The peer's counts. Names are those of RFC 9768, section 3.2.1.
#[derive(Debug)]
pub(crate) struct Feedback {
    /// s.cep: marked packets, from 5 on.
    pub(in crate::snd) cep: u32,
    /// s.e0b, s.ceb, s.e1b: bytes, the first and last from 1 on.
    pub(in crate::snd) e0b: u64,
    pub(in crate::snd) ceb: u64,
    pub(in crate::snd) e1b: u64,
    /// The option can be used.
    option: Option<OptionUse>,
    /// Segments covered by an ACK on average; 0 before the first.
    average: u32,
    /// ACE is ignored.
    deaf: bool,
    /// ACE of the next segment is the handshake's code.
    skip: bool,
    /// The only counter that grew in the last option.
    grows: Option<Grows>,
    /// Rounds in which everything was marked, until one in which not.
    marked_rounds: Option<u8>,
    round_end: Option<SeqNum>,
    /// Packets acknowledged, until it is known that ECT arrives.
    unconfirmed: Option<u32>,
    /// When ECT is tried again.
    retry_at: Option<Instant>,
}

/// The use of the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionUse {
    /// None with a counter has arrived yet.
    Awaited,
    /// The last ACK had one.
    Current,
    /// The last ACK had none.
    Missing,
}

impl Feedback {
    pub(in crate::snd) fn new(agreed: &EcnAgreement) -> Self {
        Self {
            cep: agreed.delivered,
            e0b: 1,
            ceb: 0,
            e1b: 1,
            option: Some(OptionUse::Awaited),
            average: 0,
            deaf: agreed.deaf,
            skip: agreed.is_code,
            grows: None,
            marked_rounds: Some(0),
            round_end: None,
            unconfirmed: agreed.capable.then_some(0),
            retry_at: None,
        }
    }

    /// The bits that a segment without news has.
    pub(crate) fn expects(&self, flags: TcpFlags) -> bool {
        self.deaf || (!self.skip && flags.ace() == (self.cep & 7) as u8)
    }

    /// True if ACE and the option of a segment say something: it is not older than one that has
    /// been heard (section 3.2.2.5.2).
    pub(in crate::snd) fn hears(&mut self, covers: bool, fields: &AccEcnFields) -> bool {
        !core::mem::take(&mut self.skip) && !self.deaf && (covers || fields.newer)
    }

    /// A segment with these fields covers so much; it [is heard](Self::hears).
    pub(in crate::snd) fn on_ack(
        &mut self,
        counters: &mut Counters,
        now: Instant,
        fields: &AccEcnFields,
        covered: &Covered,
    ) -> Marks {
        let growth = self.take_option(counters, fields.option.as_ref());
        let d = u32::from(fields.ace.wrapping_sub(self.cep as u8) & 7);
        let packets = self.count(counters, d, growth, covered);
        self.cep = self.cep.wrapping_add(packets);
        let estimated = match (growth, self.grows) {
            (Some(bytes), _) => bytes,
            (None, Some(Grows::Ce)) => covered.bytes,
            (None, _) => packets.saturating_mul(covered.smss),
        };
        if growth.is_none() {
            self.estimate(covered.bytes);
        }
        let mut marks = Marks { packets, bytes: estimated.min(covered.bytes), mangled: false };
        // Section 3.2.3.2.4: more marked bytes without a marked packet.
        let contradicts = d == 0 && covered.packets <= UNAMBIGUOUS && growth.is_some_and(|bytes| bytes > 0);
        marks.mangled = contradicts;
        self.watch_marks(now, covered, &mut marks);
        self.watch_codepoints(counters, covered, packets);
        marks
    }

    /// Section 3.2.2.5.2: by how many marks `cep` has grown, if ACE says `d` modulo 8.
    fn count(&mut self, counters: &mut Counters, d: u32, growth: Option<u32>, covered: &Covered) -> u32 {
        let packets = covered.packets;
        let average = self.average;
        if packets > 0 {
            let sample = packets << AVERAGE_BITS;
            self.average = match average {
                0 => sample,
                _ => ((average << AVERAGE_BITS) - average + sample) >> AVERAGE_BITS,
            };
        }
        if packets <= UNAMBIGUOUS {
            return d;
        }
        let safe = packets - ((packets - d) & 7);
        let is_exact = match growth {
            // Appendix A.2.2: no more bytes than `d` packets have.
            Some(bytes) => bytes <= covered.smss.saturating_mul(d),
            None => average > ORDINARY,
        };
        if is_exact {
            return d;
        }
        counters.acc_ecn_safe_readings += u64::from(safe > d);
        safe
    }

    /// The counters of an option. Returns the growth of `ceb` if it has that, and the one before it
    /// was usable, too.
    fn take_option(&mut self, counters: &mut Counters, option: Option<&AccEcnOption>) -> Option<u32> {
        let usage = self.option?;
        let Some(option) = option.filter(|option| !option.fields().is_empty()) else {
            if usage == OptionUse::Current {
                self.option = Some(OptionUse::Missing);
            }
            return None;
        };
        let first = usage == OptionUse::Awaited;
        if first && [option.ect0(), option.ect1()].contains(&Some(0)) {
            // Section 3.2.3.2.4: some middlebox clears what it does not know.
            counters.acc_ecn_option_failed += 1;
            self.option = None;
            return None;
        }
        self.option = Some(OptionUse::Current);
        let mut grew = [None; 3];
        let of = [
            (&mut self.e0b, option.ect0(), Grows::Ect0),
            (&mut self.ceb, option.ce(), Grows::Ce),
            (&mut self.e1b, option.ect1(), Grows::Ect1),
        ];
        let mut ce = None;
        for ((counter, field, grows), grew) in of.into_iter().zip(&mut grew) {
            let Some(field) = field else { continue };
            let growth = AccEcnOption::growth(*counter, field);
            *counter += u64::from(growth);
            *grew = (growth > 0).then_some(grows);
            if grows == Grows::Ce {
                ce = Some(growth);
            }
        }
        let mut growing = grew.into_iter().flatten();
        self.grows = match (growing.next(), growing.next()) {
            (Some(one), None) => Some(one),
            (None, _) => self.grows,
            _ => None,
        };
        // A counter that an option leaves out has not grown (section 3.2.3.3).
        Some(ce.unwrap_or(0)).filter(|_| !first)
    }

    /// Without an option, the bytes go to the counter that grew alone in the last one, until the
    /// next one corrects it.
    fn estimate(&mut self, bytes: u32) {
        let counter = match self.grows {
            Some(Grows::Ect0) => &mut self.e0b,
            Some(Grows::Ce) => &mut self.ceb,
            Some(Grows::Ect1) => &mut self.e1b,
            None => return,
        };
        if self.option.is_some() {
            *counter += u64::from(bytes);
        }
    }

    /// Section 3.2.2.4: a path that marks everything from the start does not tell of congestion.
    fn watch_marks(&mut self, now: Instant, covered: &Covered, marks: &mut Marks) {
        let Some(rounds) = self.marked_rounds.filter(|_| covered.packets > 0) else { return };
        if marks.packets < covered.packets {
            self.marked_rounds = None;
            return;
        }
        if self.round_end.is_some_and(|end| covered.una.le(end)) {
            return;
        }
        self.round_end = Some(covered.nxt);
        self.marked_rounds = Some(rounds + 1);
        if rounds >= MARKED_ROUNDS {
            self.marked_rounds = None;
            self.retry_at = Some(now + RETRY_AFTER);
            *marks = Marks { mangled: true, ..Marks::default() };
        }
    }

    /// Whether at least one in a hundred packets arrives with ECT or CE. If not, codepoints are
    /// cleared on the way: that is counted and changes nothing.
    fn watch_codepoints(&mut self, counters: &mut Counters, covered: &Covered, marked: u32) {
        let Some(acknowledged) = self.unconfirmed.as_mut() else { return };
        if marked > 0 || self.e0b > 1 || self.e1b > 1 || self.option.is_none() {
            self.unconfirmed = None;
            return;
        }
        *acknowledged += covered.packets;
        if *acknowledged >= BLEACHING_SAMPLE {
            counters.acc_ecn_mangled += u64::from(self.option != Some(OptionUse::Awaited));
            self.unconfirmed = None;
        }
    }

    /// Marked packets that the peer has counted.
    pub(in crate::snd) const fn marked(&self) -> u32 {
        self.cep.wrapping_sub(FIRST_COUNT)
    }

    /// Bytes that have arrived with each codepoint.
    pub(in crate::snd) const fn bytes(&self) -> CodepointBytes {
        CodepointBytes { ect0: self.e0b - 1, ce: self.ceb, ect1: self.e1b - 1 }
    }

    /// True once if ECT is to be tried again.
    pub(in crate::snd) fn retries(&mut self, now: Instant) -> bool {
        self.retry_at.take_if(|at| *at <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Ecn;
    use crate::wire::AccEcnOrder;
    use alloc::vec::Vec;

    fn feedback(cep: u32) -> Feedback {
        let mut agreed = EcnAgreement::new(Ecn::Accurate, true);
        agreed.delivered = cep;
        Feedback::new(&agreed)
    }

    /// `packets,bytes,ACE[,growth of ceb | ,n for newer]` in turn: `s.cep` after each.
    fn course(mut feedback: Feedback, acks: &str) -> Vec<u32> {
        let mut counters = Counters::default();
        let smss = 1_448;
        if acks.split(' ').any(|ack| ack.split(',').nth(3).is_some_and(|last| last != "n")) {
            // One before it, as section 3.2.2.5.2 demands.
            feedback.option = Some(OptionUse::Current);
        }
        let one = |ack: &str| {
            let parts: Vec<&str> = ack.split(',').collect();
            let number = |place: usize| parts[place].parse::<u32>().expect("a number");
            let (packets, bytes) = (number(0), number(1));
            let ace = u8::from_str_radix(parts[2], 2).expect("three bits");
            let last = parts.get(3).copied();
            let growth = last.and_then(|last| last.parse::<u64>().ok());
            let option = growth.map(|growth| {
                AccEcnOption::new(AccEcnOrder::Ect1First, 2, 1, feedback.ceb + growth, feedback.e1b)
            });
            let fields = AccEcnFields { ace, option, newer: last == Some("n") };
            let covered = Covered { packets, bytes, smss, una: SeqNum(0), nxt: SeqNum(0) };
            if feedback.hears(packets > 0, &fields) {
                feedback.on_ack(&mut counters, Instant::ZERO, &fields, &covered);
            }
            feedback.cep
        };
        acks.split(' ').map(one).collect()
    }

    #[test]
    fn reads_ace_as_the_rfc_says() {
        for (cep, acks, expected) in [
            (5, "2,2896,101 2,2896,110 2,2896,000", &[5, 6, 8][..]),
            (12, "7,10136,011", &[19]),
            (5, "8,11584,101", &[13]),
            (5, "9,13032,111", &[7]),
            (5, "10,14480,111", &[15]),
            (5, "10,14480,111,1448", &[7]),
            (5, "8,11584,101,1448", &[13]),
            (5, "40,57920,101,0", &[5]),
            (5, "40,57920,101,57920", &[45]),
            (5, "0,0,110 0,0,110,n", &[5, 6]),
            (5, "1,1448,000", &[8]),
            (5, "16,23168,101 16,23168,101", &[21, 21]),
        ] {
            assert_eq!(course(feedback(cep), acks), expected, "{acks}");
        }
        let mut used_to_many = feedback(5);
        used_to_many.average = 320;
        assert_eq!(course(used_to_many, "10,14480,111"), [7]);
    }

    #[test]
    fn marked_bytes_are_those_of_the_option_or_of_as_many_packets() {
        let mut counters = Counters::default();
        let mut take = |feedback: &mut Feedback, ace, option, packets: u32| {
            let covered =
                Covered { packets, bytes: packets * 1_000, smss: 1_000, una: SeqNum(0), nxt: SeqNum(0) };
            let fields = AccEcnFields { ace, option, newer: false };
            feedback.on_ack(&mut counters, Instant::ZERO, &fields, &covered)
        };
        let mut told = feedback(5);
        assert_eq!(take(&mut told, 6, None, 2), Marks { packets: 1, bytes: 1_000, mangled: false });
        let option = |ce, ect1| Some(AccEcnOption::new(AccEcnOrder::Ect1First, 2, 1, ce, ect1));
        // The first option only says where the counters are.
        take(&mut told, 6, option(700, 2_301), 2);
        assert_eq!(
            take(&mut told, 7, option(1_100, 3_901), 2),
            Marks { packets: 1, bytes: 400, mangled: false }
        );
        // More marked bytes, but no marked packet.
        assert!(take(&mut told, 7, option(2_100, 3_901), 2).mangled);
    }

    #[test]
    fn a_middlebox_that_clears_counters_is_found() {
        let mut counters = Counters::default();
        let mut told = feedback(5);
        let cleared = AccEcnOption::new(AccEcnOrder::Ect0First, 3, 0, 0, 0);
        assert_eq!(told.take_option(&mut counters, Some(&cleared)), None);
        let later = AccEcnOption::new(AccEcnOrder::Ect0First, 3, 5, 6, 7);
        assert_eq!(told.take_option(&mut counters, Some(&later)), None);
        assert_eq!((told.e0b, told.option, counters.acc_ecn_option_failed), (1, None, 1));
    }

    #[test]
    fn a_path_that_marks_everything_is_not_believed() {
        let mut counters = Counters::default();
        let mut told = feedback(5);
        let mut ends = Vec::new();
        for round in 0..6_u32 {
            let ace = ((5 + 2 * (round + 1)) & 7) as u8;
            let covered = Covered {
                packets: 2,
                bytes: 2_000,
                smss: 1_000,
                una: SeqNum(1_000 * (round + 1)),
                nxt: SeqNum(1_000 * (round + 1)),
            };
            let fields = AccEcnFields { ace, option: None, newer: false };
            ends.push(told.on_ack(&mut counters, Instant::ZERO, &fields, &covered).mangled);
        }
        assert_eq!(ends, [false, false, false, true, false, false]);
        assert!(!told.retries(Instant::from_secs(29)));
        assert!(told.retries(Instant::from_secs(30)));
    }
}
