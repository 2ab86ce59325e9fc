//! A lie costs only the liar: random scripts of a hostile peer that sees everything, see
//! [`script`].
//!
//! `ACKLINE_SEED` is the seed of the first script, `ACKLINE_SCRIPTS` how many run, one after the
//! other. With `ACKLINE_STEPS` only so many steps of that one script run, to look at it.

mod peer;
mod rng;
mod script;

use script::{Outcome, STEPS, run};
use std::panic::catch_unwind;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let number = |text: String| text.parse().unwrap_or_else(|_| panic!("{name} must be a whole number"));
    std::env::var(name).ok().map_or(default, number)
}

/// The fewest steps after which the script of `seed` fails.
fn shrink(seed: u64) -> usize {
    (0..STEPS).find(|&steps| catch_unwind(|| run(seed, steps)).is_err()).unwrap_or(STEPS)
}

#[test]
fn a_lie_costs_only_the_liar() {
    if std::env::var_os("ACKLINE_STEPS").is_some() {
        run(setting("ACKLINE_SEED", 1), setting("ACKLINE_STEPS", STEPS as u64) as usize);
        return;
    }
    let (first, count) = (setting("ACKLINE_SEED", 1), setting("ACKLINE_SCRIPTS", 1_000));
    println!("scripts {first} to {}", first + count.saturating_sub(1));
    let (mut failed, mut delivered, mut left) = (vec![], 0, 0);
    for seed in first..first + count {
        match catch_unwind(|| run(seed, STEPS)) {
            Ok(Outcome::Delivered) => delivered += 1,
            Ok(Outcome::Left) => left += 1,
            Ok(Outcome::Failed) => {}
            Err(_) => {
                let steps = shrink(seed);
                println!("FAILED: seed {seed}, from {steps} steps on");
                failed.push((seed, steps));
                assert!(failed.len() < 20, "too many failures: {failed:?}");
            }
        }
    }
    println!(
        "{count} scripts: {delivered} ended with everything delivered, {left} by the application's leave, the others with an error"
    );
    assert!(failed.is_empty(), "seeds and steps that fail: {failed:?}");
    assert!(
        delivered * 2 > count - left || count < 20,
        "{delivered} of {count} delivered: the scripts test nothing"
    );
}
