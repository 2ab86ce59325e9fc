//! Two endpoints with any policies under random scripts: see [`script`]; any octets as a packet:
//! see [`packet`]; and the corpus with which both are fuzzed.

mod corpus;
mod packet;
mod script;

use proptest::collection::vec;
use proptest::prelude::*;

/// Settings of the two hosts, and instructions.
fn any_script(len: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 9..len)
}

/// A script without forged packets: the network may do what networks do.
fn honest_script(len: usize) -> impl Strategy<Value = Vec<u8>> {
    let settings = vec(any::<u8>(), 9);
    // An instruction with its parameters; one that forges becomes one that delivers.
    let honest =
        |octet: u8| if matches!(octet & 0x7f, 34..=38 | 116..=121) { octet & 0x80 | 40 } else { octet };
    let instruction = (any::<u8>().prop_map(honest), any::<u8>(), any::<u8>());
    (settings, vec(instruction, 1..len)).prop_map(|(mut script, instructions)| {
        for (instruction, first, second) in instructions {
            script.push(instruction);
            match instruction & 0x7f {
                4..=31 | 112..=115 => script.extend([first, second]),
                39 => script.extend([first, second]),
                32 | 33 | 64..=99 | 122 => script.push(first),
                _ => {}
            }
            if matches!(instruction & 0x7f, 112..=115 | 122) {
                script.push(second);
            }
        }
        script
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn any_script_is_survived(script in any_script(600)) {
        script::run(&script);
    }

    #[test]
    fn everything_arrives_in_the_end(script in honest_script(300)) {
        script::run(&script);
    }
}

/// The instructions of the tests below, as the script reads them: connect, write, read, shut down,
/// deliver all.
const CONNECT: [u8; 1] = [0];
const DELIVER: [u8; 1] = [40];

fn write(connection: u8, size: u8) -> [u8; 3] {
    [4, connection, size]
}

#[test]
fn a_plain_script_moves_data() {
    // IPv4, an MTU of 1,500 and large buffers; 65,535 octets are written in one piece; 128 is the
    // other host's bit.
    let settings = [1, 0, 0, 0, 0, 0, 0, 0, 0];
    let handshake = [&CONNECT[..], &DELIVER, &DELIVER, &DELIVER].concat();
    let script = [&settings[..], &handshake, &write(0, 16), &[128 + 4, 0, 16]].concat();
    let outcome = script::run(&script);
    assert_eq!((outcome.streams, outcome.read), (2, 2 * 65_535), "{outcome:?}");
    assert!(outcome.delivered > 90, "{outcome:?}");
}

#[test]
fn what_the_network_loses_is_sent_again() {
    // Every packet on the way is lost, and then the clock stands at the next timeout.
    let settings = [1, 0, 0, 0, 0, 0, 0, 0, 0];
    let lose = [80, 0].repeat(30);
    let script =
        [&settings[..], &CONNECT, &DELIVER, &DELIVER, &write(0, 16), &lose, &[100], &lose, &[100]].concat();
    let outcome = script::run(&script);
    assert_eq!(outcome.read, 65_535, "{outcome:?}");
    assert!(outcome.time.as_millis() >= 200, "it waited for the RTO: {outcome:?}");
}
