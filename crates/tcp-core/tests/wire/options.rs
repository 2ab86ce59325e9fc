//! Options: in any order, known and unknown, well and badly formed.

use crate::strategies::{Segment, options, sack_blocks, segment};
use ackline_tcp_core::SeqNum;
use ackline_tcp_core::wire::{
    FastOpenCookie, MAX_OPTIONS_LEN, OptionIter, OptionLayout, RxChecksum, RxPacket, SackBlocks, TcpFlags,
    TcpHeader, TcpOption, TcpOptions, Timestamps, Transport, emit_option_list, parse,
};
use etherparse::{TcpHeaderSlice, TcpOptionElement};
use pnet_packet::Packet;
use pnet_packet::tcp::TcpPacket;
use proptest::collection::vec;
use proptest::prelude::*;

/// An option that owns its data.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Owned {
    End,
    Nop,
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(SackBlocks),
    Timestamps(u32, u32),
    Unknown(u8, Vec<u8>),
}

impl Owned {
    fn borrow(&self) -> TcpOption<'_> {
        match self {
            Self::End => TcpOption::EndOfList,
            Self::Nop => TcpOption::Nop,
            Self::Mss(mss) => TcpOption::MaximumSegmentSize(*mss),
            Self::WindowScale(shift) => TcpOption::WindowScale(*shift),
            Self::SackPermitted => TcpOption::SackPermitted,
            Self::Sack(blocks) => TcpOption::Sack(*blocks),
            Self::Timestamps(val, ecr) => TcpOption::Timestamps(Timestamps { val: *val, ecr: *ecr }),
            Self::Unknown(kind, data) => TcpOption::Unknown { kind: *kind, data },
        }
    }

    fn from_ours(option: TcpOption<'_>) -> Self {
        match option {
            TcpOption::EndOfList => Self::End,
            TcpOption::Nop => Self::Nop,
            TcpOption::MaximumSegmentSize(mss) => Self::Mss(mss),
            TcpOption::WindowScale(shift) => Self::WindowScale(shift),
            TcpOption::SackPermitted => Self::SackPermitted,
            TcpOption::Sack(blocks) => Self::Sack(blocks),
            TcpOption::Timestamps(Timestamps { val, ecr }) => Self::Timestamps(val, ecr),
            // The other decoders do not know these two.
            TcpOption::FastOpen(cookie) => Self::Unknown(34, cookie.as_slice().to_vec()),
            TcpOption::AccEcn(_) => {
                let mut octets = [0; MAX_OPTIONS_LEN];
                emit_option_list(&[option], &mut octets).expect("fits");
                let [kind, length, data @ ..] = octets;
                Self::Unknown(kind, data[..usize::from(length) - 2].to_vec())
            }
            TcpOption::Unknown { kind, data } => Self::Unknown(kind, data.to_vec()),
        }
    }

    fn encoded_len(&self) -> usize {
        match self {
            Self::End | Self::Nop => 1,
            Self::Mss(_) => 4,
            Self::WindowScale(_) => 3,
            Self::SackPermitted => 2,
            Self::Sack(blocks) => 2 + 8 * blocks.len(),
            Self::Timestamps(..) => 10,
            Self::Unknown(_, data) => 2 + data.len(),
        }
    }
}

/// Options in any order that fit; the end of the list is not among them.
fn list() -> impl Strategy<Value = Vec<Owned>> {
    let option = prop_oneof![
        Just(Owned::Nop),
        any::<u16>().prop_map(Owned::Mss),
        any::<u8>().prop_map(Owned::WindowScale),
        Just(Owned::SackPermitted),
        sack_blocks(1).prop_map(Owned::Sack),
        any::<(u32, u32)>().prop_map(|(val, ecr)| Owned::Timestamps(val, ecr)),
        // Kinds that mean nothing to any of the decoders.
        // 172 and 174 are those of accurate ECN.
        (40u8..=171, vec(any::<u8>(), 0..12)).prop_map(|(kind, data)| Owned::Unknown(kind, data)),
    ];
    vec(option, 0..10).prop_map(|mut options| {
        let mut room = MAX_OPTIONS_LEN;
        options.retain(|option| {
            let fits = option.encoded_len() <= room;
            room -= if fits { option.encoded_len() } else { 0 };
            fits
        });
        options
    })
}

fn by_smoltcp(mut raw: &[u8]) -> Option<Vec<Owned>> {
    use smoltcp::wire::TcpOption as Theirs;
    let mut options = Vec::new();
    while !raw.is_empty() {
        let option;
        (raw, option) = Theirs::parse(raw).ok()?;
        options.push(match option {
            Theirs::EndOfList => break,
            Theirs::NoOperation => Owned::Nop,
            Theirs::MaxSegmentSize(mss) => Owned::Mss(mss),
            Theirs::WindowScale(shift) => Owned::WindowScale(shift),
            Theirs::SackPermitted => Owned::SackPermitted,
            Theirs::SackRange(blocks) => Owned::Sack(
                blocks.iter().flatten().map(|(start, end)| (SeqNum(*start), SeqNum(*end))).collect(),
            ),
            Theirs::TimeStamp { tsval, tsecr } => Owned::Timestamps(tsval, tsecr),
            Theirs::Unknown { kind, data } => Owned::Unknown(kind, data.to_vec()),
        });
    }
    Some(options)
}

/// Kinds and data as pnet finds them, up to the end of the list.
fn by_pnet(tcp_header: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let packet = TcpPacket::new(tcp_header).expect("a header");
    let options = packet.get_options_iter();
    let options = options.map(|option| (option.get_number().0, option.payload().to_vec()));
    options.take_while(|(kind, _)| *kind != 0).collect()
}

/// As etherparse finds them, up to the first that it does not know.
fn by_etherparse(tcp_header: &[u8]) -> Vec<Owned> {
    let header = TcpHeaderSlice::from_slice(tcp_header).expect("a header");
    let options = header.options_iterator().map_while(Result::ok);
    let options = options.map(|option| match option {
        TcpOptionElement::Noop => Owned::Nop,
        TcpOptionElement::MaximumSegmentSize(mss) => Owned::Mss(mss),
        TcpOptionElement::WindowScale(shift) => Owned::WindowScale(shift),
        TcpOptionElement::SelectiveAcknowledgementPermitted => Owned::SackPermitted,
        TcpOptionElement::SelectiveAcknowledgement(first, more) => {
            let blocks = core::iter::once(first).chain(more.into_iter().flatten());
            Owned::Sack(blocks.map(|(start, end)| (SeqNum(start), SeqNum(end))).collect())
        }
        TcpOptionElement::Timestamp(val, ecr) => Owned::Timestamps(val, ecr),
    });
    options.collect()
}

/// What RFC 9293 makes of a list for a connection: the last of each kind.
fn summary(list: &[Owned]) -> TcpOptions {
    let mut options = TcpOptions::NONE;
    for option in list {
        match *option {
            Owned::Mss(mss) => options.mss = Some(mss),
            Owned::WindowScale(shift) => options.window_scale = Some(shift),
            Owned::SackPermitted => options.sack_permitted = true,
            Owned::Sack(blocks) => options.sack = blocks,
            Owned::Timestamps(val, ecr) => options.timestamps = Some(Timestamps { val, ecr }),
            Owned::End | Owned::Nop | Owned::Unknown(..) => {}
        }
    }
    options
}

proptest! {
    #[test]
    fn any_list_is_kept_in_order_by_all_decoders(segment in segment(100), list in list()) {
        let options: Vec<_> = list.iter().map(Owned::borrow).collect();
        let header = TcpHeader { layout: OptionLayout::Listed(&options), ..segment.header };
        let segment = Segment { header, ..segment };
        let packet = segment.packet();
        let Transport::Tcp(parsed) = parse(&RxPacket::new(&packet)).expect("valid").transport else { panic!() };

        prop_assert!(!parsed.options_malformed);
        let ours: Vec<_> = parsed.option_iter().map(Owned::from_ours).take_while(|it| *it != Owned::End).collect();
        prop_assert_eq!(&ours, &list);
        prop_assert_eq!(parsed.options, summary(&list));

        let tcp = &packet[segment.ip_header_len()..];
        let raw: Vec<_> = list.iter().map(|option| {
            let mut out = [0; MAX_OPTIONS_LEN];
            emit_option_list(&[option.borrow()], &mut out).expect("fits");
            (out[0], if option.encoded_len() == 1 { Vec::new() } else { out[2..option.encoded_len()].to_vec() })
        }).collect();
        prop_assert_eq!(by_pnet(tcp), raw);

        let three_blocks: Vec<_> = list.iter().cloned().map(|option| match option {
            Owned::Sack(blocks) => Owned::Sack(blocks.iter().take(3).collect()),
            other => other,
        }).collect();
        prop_assert_eq!(by_smoltcp(parsed.raw_options), Some(three_blocks));

        let known = list.iter().take_while(|option| !matches!(option, Owned::Unknown(..)));
        let known: Vec<_> = known.cloned().collect();
        prop_assert_eq!(by_etherparse(tcp), known);
    }

    #[test]
    fn standard_layout_is_aligned_and_says_all(options in options(), segment in segment(10)) {
        let mut segment = segment;
        segment.header.options = options;
        let packet = segment.packet();
        let Transport::Tcp(parsed) = parse(&RxPacket::new(&packet)).expect("valid").transport else { panic!() };
        let sent = parsed.options.sack.len();
        prop_assert_eq!(parsed.options.sack.as_slice(), &options.sack.as_slice()[..sent], "the first blocks");
        prop_assert_eq!(parsed.options, TcpOptions { sack: parsed.options.sack, ..options });
        let all = sent == options.sack.len();
        // The first comes with two octets of its option and two that align it.
        let block = if sent == 0 { 12 } else { 8 };
        prop_assert!(all || parsed.raw_options.len() + block > MAX_OPTIONS_LEN, "no block is left out that fits");
        if options.timestamps.is_some()
            && options.mss.is_none()
            && options.window_scale.is_none()
            && options.accecn.is_none()
        {
            prop_assert_eq!(sent, options.sack.len().min(3), "RFC 2018, section 3");
        }
        // Every 32-bit value of an option lies at a multiple of four (RFC 7323, appendix A).
        let mut at = 0;
        for option in parsed.option_iter().map(Owned::from_ours) {
            if matches!(option, Owned::Timestamps(..) | Owned::Sack(_)) {
                prop_assert_eq!((at + 2) % 4, 0);
            }
            at += option.encoded_len();
        }
        prop_assert_eq!(at % 4, 0);
    }

    #[test]
    fn random_option_areas_are_read_as_others_read_them(raw in option_area()) {
        let mut iter = OptionIter::new(&raw);
        let ours: Vec<_> = iter.by_ref().map(Owned::from_ours).collect();
        let malformed = iter.is_malformed();
        let (options, parse_malformed) = TcpOptions::parse(&raw);
        prop_assert_eq!(parse_malformed, malformed);
        prop_assert_eq!(options, summary(&ours));
        // No octet is read twice, nor left out before the end.
        let read: usize = ours.iter().map(Owned::encoded_len).sum();
        prop_assert!(read <= raw.len());
        prop_assert!(malformed || read == raw.len() || ours.last() == Some(&Owned::End));
        if let Some(theirs) = by_smoltcp(&raw) {
            prop_assert!(!malformed);
            let ours = ours.into_iter().take_while(|option| *option != Owned::End);
            let ours: Vec<_> = ours.map(|option| match option {
                Owned::Sack(blocks) => Owned::Sack(blocks.iter().take(3).collect()),
                other => other,
            }).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}

/// Octets that often look like options.
fn option_area() -> impl Strategy<Value = Vec<u8>> {
    // Of accurate ECN's kinds, 172 and 174, counters that are cut off are not kept.
    let octet = any::<u8>().prop_map(|octet| if matches!(octet, 172 | 174) { octet + 1 } else { octet });
    (0usize..=10)
        .prop_flat_map(move |words| vec(prop_oneof![0u8..=12, octet.clone(), Just(1), Just(10)], words * 4))
}

#[test]
fn literal_options_of_a_linux_syn() {
    let raw = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0x5f, 1, 2, 3, 0, 0, 0, 0, 1, 3, 3, 7];
    let (options, malformed) = TcpOptions::parse(&raw);
    assert!(!malformed);
    assert_eq!(
        options,
        TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { val: 0x5f01_0203, ecr: 0 }),
            accecn: None,
            sack: SackBlocks::EMPTY,
        }
    );
}

#[test]
fn one_to_four_sack_blocks_and_no_other_length() {
    for octets in 0..=38 {
        let mut raw = vec![5, 2 + octets as u8];
        raw.extend(0..octets as u8);
        let (options, malformed) = TcpOptions::parse(&raw);
        assert!(!malformed);
        let blocks = if octets % 8 == 0 && octets <= 32 { octets / 8 } else { 0 };
        assert_eq!(options.sack.len(), blocks, "{octets} octets");
        if let Some(first) = options.sack.iter().next() {
            assert_eq!(first, (SeqNum(0x0001_0203), SeqNum(0x0405_0607)));
        }
    }
}

#[test]
fn broken_lists_end_where_they_break() {
    let timestamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    for tail in [&[3][..], &[3, 0], &[3, 1], &[3, 3], &[77, 40, 1, 1], &[255, 255]] {
        let raw = [&timestamps[..], tail].concat();
        let (options, malformed) = TcpOptions::parse(&raw);
        assert!(malformed, "{tail:?}");
        assert_eq!(options.timestamps, Some(Timestamps { val: 1, ecr: 2 }), "what stood before counts");
        assert_eq!(options.window_scale, None);
    }
    // After the end of the list anything may follow.
    let (options, malformed) = TcpOptions::parse(&[0, 3, 3, 7]);
    assert_eq!((options, malformed), (TcpOptions::NONE, false));
    assert_eq!(OptionIter::new(&[0, 3, 3, 7]).count(), 1);
}

#[test]
fn a_broken_list_does_not_refuse_the_segment() {
    // RFC 9293, MUST-7: TCP must be prepared to handle an illegal option length.
    let mut header = TcpHeader::new("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
    header.flags = TcpFlags::ACK;
    let broken =
        [TcpOption::Nop, TcpOption::Nop, TcpOption::Nop, TcpOption::Unknown { kind: 253, data: &[9; 7] }];
    header.layout = OptionLayout::Listed(&broken);
    let segment = Segment { header, payload: b"data".to_vec(), cut: 0 };
    let mut packet = segment.packet();
    assert_eq!(packet[44], 9, "the length of the last option");
    packet[44] = 99;
    let trusted = RxPacket::new(&packet).with_checksum(RxChecksum::Trusted);
    let Transport::Tcp(parsed) = parse(&trusted).unwrap().transport else { panic!() };
    assert!(parsed.options_malformed);
    assert_eq!(parsed.payload.iter().collect::<Vec<_>>(), b"data");
}

#[test]
fn a_cookie_has_4_to_16_octets_an_even_number_or_none() {
    for octets in 0..=20 {
        let data: Vec<u8> = (0..octets).collect();
        let permitted = [0, 4, 6, 8, 10, 12, 14, 16].contains(&octets);
        let raw = [&[34, 2 + octets][..], &data].concat();
        let read: Vec<_> = OptionIter::new(&raw).collect();
        match FastOpenCookie::new(&data) {
            Some(cookie) => {
                assert!(permitted && cookie.as_slice() == data && cookie.is_request() == (octets == 0));
                assert_eq!(read, [TcpOption::FastOpen(cookie)]);
            }
            None => assert!(!permitted && read == [TcpOption::Unknown { kind: 34, data: &data }]),
        }
    }
}

#[test]
fn a_fast_open_option_stands_behind_the_others_and_fits() {
    let mut header = TcpHeader::new("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
    header.flags = TcpFlags::SYN;
    header.options = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: 1, ecr: 0 }),
        accecn: None,
        sack: SackBlocks::EMPTY,
    };
    for octets in [0, 4, 6, 8, 14, 16] {
        let data: Vec<u8> = (100..100 + octets).collect();
        let cookie = FastOpenCookie::new(&data).unwrap();
        header.layout = OptionLayout::FastOpen(cookie);
        let packet = Segment { header, payload: b"data".to_vec(), cut: 0 }.packet();
        let Transport::Tcp(parsed) = parse(&RxPacket::new(&packet)).unwrap().transport else { panic!() };
        assert_eq!((parsed.fast_open(), parsed.options), (Some(cookie), header.options));
        assert!(parsed.option_iter().all(|option| option != TcpOption::EndOfList), "no padding at the end");
        assert_eq!(parsed.payload.iter().collect::<Vec<_>>(), b"data");
    }
    header.layout = OptionLayout::Standard;
    let packet = Segment { header, payload: vec![], cut: 0 }.packet();
    let Transport::Tcp(parsed) = parse(&RxPacket::new(&packet)).unwrap().transport else { panic!() };
    assert_eq!(parsed.fast_open(), None);
}
