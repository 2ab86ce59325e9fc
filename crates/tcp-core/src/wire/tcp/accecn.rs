//! The AccECN option (RFC 9768, section 3.2.3): byte counters of the data that arrived with each
//! ECN codepoint, in one of two orders, so that the counters that move can come first.

use core::fmt;

/// The order of the counters in an AccECN option.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AccEcnOrder {
    /// Kind 172: ECT(0), CE, ECT(1).
    Ect0First,
    /// Kind 174: ECT(1), CE, ECT(0).
    Ect1First,
}

impl AccEcnOrder {
    const ECT0_FIRST: u8 = 172;
    const ECT1_FIRST: u8 = 174;

    pub(in crate::wire) const fn of_kind(kind: u8) -> Option<Self> {
        match kind {
            Self::ECT0_FIRST => Some(Self::Ect0First),
            Self::ECT1_FIRST => Some(Self::Ect1First),
            _ => None,
        }
    }

    pub(in crate::wire) const fn kind(self) -> u8 {
        match self {
            Self::Ect0First => Self::ECT0_FIRST,
            Self::Ect1First => Self::ECT1_FIRST,
        }
    }
}

/// An AccECN option: up to three counters of 24 bits.
///
/// A counter is the number of payload bytes that arrived with a codepoint, modulo 2^24; those of
/// ECT(0) and ECT(1) start at 1, so that a middlebox which zeroes them is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccEcnOption {
    /// In the order of the option; those that are left out are zero.
    fields: [u32; Self::MAX],
    len: u8,
    order: AccEcnOrder,
}

impl AccEcnOption {
    /// Most counters in an option.
    pub const MAX: usize = 3;
    /// A counter's modulus is one more.
    const MASK: u32 = 0x00ff_ffff;

    /// The first `fields` counters, at most three, in this order; of each the low 24 bits.
    #[must_use]
    pub fn new(order: AccEcnOrder, fields: usize, ect0: u64, ce: u64, ect1: u64) -> Self {
        let len = fields.min(Self::MAX);
        let all = match order {
            AccEcnOrder::Ect0First => [ect0, ce, ect1],
            AccEcnOrder::Ect1First => [ect1, ce, ect0],
        };
        let mut fields = [0; Self::MAX];
        for (field, counter) in fields.iter_mut().zip(all).take(len) {
            *field = (counter & u64::from(Self::MASK)) as u32;
        }
        Self { fields, len: len as u8, order }
    }

    /// The counters in the data of an option. One that is cut off is left out, and what follows the
    /// third ignored (section 3.2.3.2.4).
    pub(in crate::wire) fn decode(order: AccEcnOrder, data: &[u8]) -> Self {
        let mut option = Self { fields: [0; Self::MAX], len: 0, order };
        for (field, octets) in option.fields.iter_mut().zip(data.as_chunks::<3>().0) {
            let [high, middle, low] = *octets;
            *field = u32::from_be_bytes([0, high, middle, low]);
            option.len += 1;
        }
        option
    }

    /// The order of the counters.
    #[must_use]
    pub const fn order(&self) -> AccEcnOrder {
        self.order
    }

    /// The counters, in the order of the option.
    #[must_use]
    pub fn fields(&self) -> &[u32] {
        self.fields.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Octets of the option.
    #[must_use]
    pub const fn option_len(&self) -> usize {
        2 + 3 * self.len as usize
    }

    /// The counter of ECT(0), if it is there.
    #[must_use]
    pub fn ect0(&self) -> Option<u32> {
        self.field(match self.order {
            AccEcnOrder::Ect0First => 0,
            AccEcnOrder::Ect1First => 2,
        })
    }

    /// The counter of CE, if it is there.
    #[must_use]
    pub fn ce(&self) -> Option<u32> {
        self.field(1)
    }

    /// The counter of ECT(1), if it is there.
    #[must_use]
    pub fn ect1(&self) -> Option<u32> {
        self.field(match self.order {
            AccEcnOrder::Ect0First => 2,
            AccEcnOrder::Ect1First => 0,
        })
    }

    fn field(&self, place: usize) -> Option<u32> {
        self.fields().get(place).copied()
    }

    /// By how much a counter of the peer has grown to the `field` of an option, at most by 2^24 -
    /// 1.
    #[must_use]
    pub const fn growth(counter: u64, field: u32) -> u32 {
        field.wrapping_sub(counter as u32) & Self::MASK
    }
}

impl fmt::Debug for AccEcnOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccEcnOption")
            .field("ect0", &self.ect0())
            .field("ce", &self.ce())
            .field("ect1", &self.ect1())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeqNum;
    use crate::wire::{MAX_OPTIONS_LEN, SackBlocks, TcpOption, TcpOptions, Timestamps, emit_option_list};
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt::Write as _;

    fn hex(octets: &[u8]) -> String {
        octets.iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "{octet:02x}");
            text
        })
    }

    fn octets(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    #[test]
    fn writes_the_fields_that_are_asked_for() {
        use AccEcnOrder::{Ect0First, Ect1First};
        for (order, fields, [ect0, ce, ect1], expected) in [
            (Ect1First, 3, [1, 0, 1], "ae0b000001000000000001"),
            (Ect0First, 3, [1, 0, 1], "ac0b000001000000000001"),
            (Ect1First, 2, [1, 16_777_216, 16_777_217], "ae08000001000000"),
            (Ect0First, 1, [1_461, 0, 1], "ac050005b5"),
            (Ect1First, 0, [1, 0, 1], "ae02"),
        ] {
            let option = AccEcnOption::new(order, fields, ect0, ce, ect1);
            let mut out = [0; MAX_OPTIONS_LEN];
            emit_option_list(&[TcpOption::AccEcn(option)], &mut out).expect("it fits");
            assert_eq!(hex(&out[..option.option_len()]), expected);
        }
    }

    #[test]
    fn reads_whole_fields_and_at_most_three() {
        for (text, [ect0, ce, ect1]) in [
            ("ae08000065000064", [None, Some(100), Some(101)]),
            ("ac0b000001000000000000", [Some(1), Some(0), Some(0)]),
            ("ac07000010ffff", [Some(16), None, None]),
            ("ae0e000002000003000004ffffff", [Some(4), Some(3), Some(2)]),
            ("ae02", [None; 3]),
        ] {
            let (options, malformed) = TcpOptions::parse(&octets(text));
            let option = options.accecn.expect("one is there");
            assert_eq!([option.ect0(), option.ce(), option.ect1()], [ect0, ce, ect1], "{text}");
            assert!(!malformed);
        }
        let (options, malformed) = TcpOptions::parse(&octets("ae01000000"));
        assert_eq!((options.accecn, malformed), (None, true));
    }

    #[test]
    fn counters_never_move_back() {
        assert_eq!(AccEcnOption::growth(33_554_433, 1_461), 1_460);
        assert_eq!(AccEcnOption::growth(16_777_215, 0), 1);
    }

    #[test]
    fn shares_the_option_area_with_timestamps_and_sack() {
        let stamps = Some(Timestamps { val: 1, ecr: 2 });
        let two = [(SeqNum(1_000), SeqNum(2_000)), (SeqNum(5_000), SeqNum(6_000))];
        let new = AccEcnOption::new;
        for (timestamps, option, blocks, expected) in [
            (
                stamps,
                new(AccEcnOrder::Ect1First, 2, 1, 1_448, 28_961),
                &two[..],
                "0101080a0000000100000002ae080071210005a801010512000003e8000007d00000138800001770",
            ),
            (None, new(AccEcnOrder::Ect1First, 1, 1, 0, 1_449), &[][..], "ae050005a9010101"),
            (
                stamps,
                new(AccEcnOrder::Ect0First, 1, 2_897, 0, 1),
                &two[..1],
                "0101080a0000000100000002ac05000b5101050a000003e8000007d0",
            ),
        ] {
            let sack = SackBlocks::from_slice(blocks);
            let options = TcpOptions { timestamps, accecn: Some(option), sack, ..TcpOptions::NONE };
            let mut out = [0; MAX_OPTIONS_LEN];
            let len = options.emit(&mut out);
            assert_eq!(hex(&out[..len]), expected);
            assert_eq!(len, options.encoded_len());
            assert_eq!(TcpOptions::parse(&out[..len]), (options, false));
        }
    }
}
