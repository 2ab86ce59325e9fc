//! Any bytes at all: nothing panics, nothing grows without bound.

use super::*;
use proptest::prelude::*;

/// A message that is good, so that mutations of it reach far.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let v4_host = (0_u8..=255).prop_map(v4);
    let v6_host = (0_u16..600).prop_map(v6);
    let address = prop_oneof![v4_host, v6_host];
    let mac = (0_u8..4).prop_map(|last| MacAddress([2, 0, 0, 0, 0, last]));
    (0..4, address.clone(), address, mac.clone(), mac).prop_map(|(kind, one, other, from, to)| {
        let other = if one.is_ipv4() == other.is_ipv4() { other } else { one };
        let message = match kind {
            0 => Outgoing::Request { from: one, target: other, to: Some(to) },
            1 => Outgoing::Probe { target: one },
            2 => Outgoing::Reply { own: one, to: other, mac: to },
            _ => Outgoing::Announce { own: one },
        };
        message.frame(from).to_vec()
    })
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    let changed = (message(), prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4))
        .prop_map(|(mut frame, changes)| {
            for (at, value) in changes {
                let at = at.index(frame.len());
                frame[at] = value;
            }
            frame
        });
    let cut = (message(), any::<prop::sample::Index>()).prop_map(|(mut frame, at)| {
        frame.truncate(at.index(frame.len() + 1));
        frame
    });
    // An EtherType that leads inside, then noise.
    let inside =
        (prop_oneof![Just([0x08, 0x06]), Just([0x86, 0xdd])], noise.clone()).prop_map(|(kind, rest)| {
            let mut frame = vec![2; 12];
            frame.extend(kind);
            frame.extend(rest);
            frame
        });
    // An option area of noise behind a good solicitation, with a good checksum.
    let options = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..80))
        .prop_map(|(advert, options)| discovery_with(if advert { 136 } else { 135 }, &options));
    prop_oneof![noise, changed, cut, inside, options, message()]
}

/// A neighbour-discovery message with these octets for options.
fn discovery_with(kind: u8, options: &[u8]) -> Vec<u8> {
    let mut frame = Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None }.frame(PEER_MAC).to_vec();
    frame.truncate(78);
    frame[54] = kind;
    frame.extend(options);
    let len = (frame.len() - 54) as u16;
    frame[18..20].copy_from_slice(&len.to_be_bytes());
    checksummed(frame)
}

proptest! {
    #[test]
    fn frames_never_panic_and_memory_is_bounded(
        inputs in prop::collection::vec((frame(), 0_u64..40_000, any::<u8>()), 0..200),
    ) {
        let config = NeighbourConfig { max_entries: 16, max_outgoing: 8, ..NeighbourConfig::default() };
        let mut machine = Neighbours::new(attachment(), config, [1; 32]).expect("good");
        machine.claim(ms(0));
        let mut now = ms(0);
        for (frame, wait, host) in inputs {
            now += Duration::from_millis(wait);
            machine.handle_timeout(now);
            machine.ingest(now, &frame);
            if host & 1 == 0 {
                machine.resolve(now, v4(host));
            }
            prop_assert!(machine.len() <= 17);
            prop_assert!(machine.outgoing.len() <= 8);
            prop_assert!(machine.events.len() <= 64);
            prop_assert!(machine.poll_timeout().is_none_or(|at| at > now), "every deadline was served");
            if host & 2 == 0 {
                while let Some(frame) = machine.poll_transmit() {
                    prop_assert!(parse(&frame).is_ok_and(|message| message.is_some()));
                }
            }
            while machine.poll_event().is_some() {}
        }
    }
}
