//! TCP's promises, checked by a model that has none of the stack's code ([`reference`]): two
//! endpoints with random settings and policies, random calls, and a network that loses, delays,
//! repeats and corrupts packets ([`pair`]).
//!
//! A failure shrinks to few steps, faults and settings, and is printed as a script of `ackline
//! drill`. `ACKLINE_RUNS` is how many plans are played, `ACKLINE_SEED` where they begin.

mod pair;
mod reference;
mod wire;

use pair::{Broken, Fate, Outcome, Plan, Step, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;

/// Settings of a connection, each with several values; the first is the simplest.
const SETTINGS: &[&[&str]] = &[
    &[
        "",
        "cc=reno",
        "cc=bbr",
        "cc=dctcp",
        "cc=hstcp",
        "cc=vegas",
        "cc=westwood",
        "cc=illinois",
        "cc=htcp",
        "cc=copa",
    ],
    &["", "ack=immediate", "ack=delayed", "ack=a3", "ack=csa3"],
    &["", "rto=conventional", "rto=frto", "rto=dclor", "rto=go-back-n"],
    &["", "sack=off"],
    &["", "timestamps=off"],
    &["", "window_scale=off"],
    &["", "ecn=off", "ecn=accurate"],
    &["", "tlp=off"],
    &["", "loss=dupack"],
    &["", "prr=off"],
    &["", "nagle=off"],
    &["", "window_phases=on"],
    &["", "recv_buffer=3000", "recv_buffer=20000"],
    &["", "send_buffer=3000", "send_buffer=20000"],
];

fn settings() -> impl Strategy<Value = String> {
    let choices: Vec<_> =
        SETTINGS.iter().map(|values| prop_oneof![3 => Just(0), 1 => 0..values.len()].boxed()).collect();
    choices.prop_map(|chosen| {
        let texts = chosen.iter().zip(SETTINGS).map(|(at, values)| values[*at]);
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(",")
    })
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        2 => Just(Fate::IsLost),
        1 => (0..400_000u64).prop_map(Fate::IsLate),
        1 => (0..400_000u64).prop_map(Fate::ComesTwice),
        1 => any::<usize>().prop_map(Fate::IsCorrupted),
    ];
    prop_oneof![1 => Just(vec![]), 6 => prop::collection::vec(fate, 0..60)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = || prop_oneof![1..10usize, 1..2_000usize, 1..100_000usize];
    let step = prop_oneof![
        6 => (0..2usize, bytes()).prop_map(|(end, bytes)| Step::Write { end, bytes }),
        4 => (0..2usize, bytes()).prop_map(|(end, bytes)| Step::Read { end, bytes }),
        6 => prop_oneof![0..2_000u64, 0..300_000u64, 0..5_000_000u64].prop_map(|micros| Step::Wait { micros }),
        1 => (0..2usize).prop_map(|end| Step::Shutdown { end }),
    ];
    let steps = prop::collection::vec(step, 0..40);
    (steps, prop::option::weighted(0.1, 0..2usize)).prop_map(|(mut steps, aborts)| {
        steps.extend(aborts.map(|end| Step::Abort { end }));
        steps
    })
}

prop_compose! {
    fn plan()(
        here in settings(),
        there in settings(),
        mtu in prop_oneof![Just(1_500u32), Just(296), Just(576), Just(9_000)],
        delay in 0..150_000u64,
        both_connect in prop::bool::weighted(0.1),
        first in fates(),
        second in fates(),
        steps in steps(),
    ) -> Plan {
        Plan { settings: [here, there], mtu, delay, both_connect, fates: [first, second], steps }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number"));
    std::env::var(name).ok().map_or(default, number)
}

#[test]
fn two_ends_keep_what_tcp_promises() {
    let (runs, seed) = (setting("ACKLINE_RUNS", 400), setting("ACKLINE_SEED", 1));
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: u32::try_from(runs).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &key));
    let (delivered, failed) = (Cell::new(0u64), Cell::new(0u64));
    let result = runner.run(&plan(), |plan| {
        match run(&plan) {
            Ok(Outcome::Delivered) => delivered.set(delivered.get() + 1),
            Ok(Outcome::Failed) => failed.set(failed.get() + 1),
            Err(Broken { what, .. }) => return Err(TestCaseError::fail(what)),
        }
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, plan)) => {
            let script = run(&plan).err().map(|broken| broken.script).unwrap_or_default();
            panic!("{why}\n{plan:#?}\nthe first end's dialogue:\n{script}");
        }
        Err(error) => panic!("{error}"),
    }
    let (delivered, failed) = (delivered.get(), failed.get());
    println!("{runs} plans from seed {seed}: {delivered} delivered everything, {failed} ended with an error");
    assert!(delivered > failed, "the plans test nothing");
}

/// A model that notices nothing is none: each of these lies is told from the truth.
#[test]
fn the_model_notices_what_is_wrong() {
    use reference::Reference;
    use wire::Segment;
    let syn = |seq| Segment {
        seq,
        ack: None,
        syn: true,
        fin: false,
        rst: false,
        window: 1_000,
        wscale: None,
        sack: vec![],
        data: vec![],
    };
    let mut model = Reference::default();
    model.sends(0, &syn(100)).unwrap();
    model.reaches(1, &syn(100));
    let syn_ack = Segment { ack: Some(101), ..syn(500) };
    model.sends(1, &syn_ack).unwrap();
    model.reaches(0, &syn_ack);
    let plain = Segment { seq: 101, ack: Some(501), syn: false, ..syn(0) };
    model.wrote(0, 10).unwrap();
    let data: Vec<u8> = (0..10).map(|offset| reference::byte(0, offset)).collect();
    let says = |segment: &Segment, end| model.clone().sends(end, segment);
    assert_eq!(says(&Segment { data: data.clone(), ..plain.clone() }, 0), Ok(()));
    assert!(says(&Segment { data: vec![1; 10], ..plain.clone() }, 0).is_err(), "other bytes");
    assert!(says(&Segment { ack: Some(502), ..plain.clone() }, 0).is_err(), "an ACK of nothing");
    assert!(says(&Segment { fin: true, ..plain.clone() }, 0).is_err(), "a FIN without a close");
    assert!(says(&Segment { sack: vec![(510, 520)], ..plain.clone() }, 0).is_err(), "a SACK of nothing");
    let answer = Segment { seq: 501, ack: Some(101), ..plain.clone() };
    assert!(says(&Segment { window: 900, ..answer }, 1).is_err(), "a window that shrinks");
    let again = Segment { seq: 700, ..syn_ack };
    assert!(says(&again, 1).is_err(), "another SYN of the same connection");
    let mut reset = model.clone();
    reset.reaches(1, &Segment { rst: true, ..plain.clone() });
    assert_eq!(reset.sends(1, &again), Ok(()), "of the next one, after a reset");
    assert!(model.clone().read(1, &data).is_err(), "bytes that have not come");
    assert!(model.ended(1).is_err(), "an end that nobody made");
}
