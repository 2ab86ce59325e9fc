//! A target without libFuzzer, for a stable compiler: every input of its corpus, then mutations of
//! them that follow from a seed.
//!
//! ```text
//! cargo run --manifest-path fuzz/Cargo.toml --no-default-features --bin NAME [MUTATIONS | FILE...]
//! ```
//!
//! The mutations are blind: what libFuzzer finds by coverage this finds by luck. It keeps the
//! targets running, and what they once found from coming back.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Mutations, if the command does not say how many.
const MUTATIONS: u64 = 1_000;
/// Longest mutated input.
const MAX_LEN: usize = 4_096;

/// Runs `target` over its corpus and mutations of it, or over the files of the command line.
pub fn main(name: &str, target: impl Fn(&[u8])) -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments: Vec<String> = env::args().skip(1).collect();
    let run = |octets: &[u8]| catch_unwind(AssertUnwindSafe(|| target(octets))).is_ok();
    let mutations = match &arguments[..] {
        [] => MUTATIONS,
        [number] if number.parse::<u64>().is_ok() => number.parse().unwrap_or(MUTATIONS),
        files => {
            let failed = files.iter().filter(|file| !run(&fs::read(file).expect("a file")));
            let failed: Vec<&String> = failed.inspect(|file| eprintln!("{name}: {file} fails")).collect();
            return if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    let corpus = corpus(&folder.join("corpus").join(name));
    let words = dictionary(&folder.join("dict").join(format!("{name}.dict")));
    for (path, octets) in &corpus {
        if !run(octets) {
            eprintln!("{name}: {} fails", path.display());
            return ExitCode::FAILURE;
        }
    }
    let seed = env::var("ACKLINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed);
    for number in 0..mutations {
        let octets = mutation(&mut random, &corpus, &words);
        if !run(&octets) {
            let file = folder.join("artifacts").join(name).join(format!("replay-{seed}-{number}"));
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(&file, octets).expect("a file");
            eprintln!("{name}: mutation {number} of ACKLINE_SEED={seed} fails; it is {}", file.display());
            return ExitCode::FAILURE;
        }
    }
    println!("{name}: {} inputs, {mutations} mutations", corpus.len());
    ExitCode::SUCCESS
}

/// The inputs that are checked in, in the order of their names.
fn corpus(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder).expect("a corpus").map(|file| file.expect("readable").path());
    let is_seed =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"seed-"));
    let mut files: Vec<PathBuf> = files.filter(is_seed).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no seed-*", folder.display());
    files.into_iter().map(|path| (path.clone(), fs::read(path).expect("readable"))).collect()
}

/// The words of a dictionary of libFuzzer; none if there is no such file.
fn dictionary(file: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let quoted = |line: &str| line.trim().strip_prefix('"')?.strip_suffix('"').map(unescape);
    text.lines().filter_map(quoted).collect()
}

/// A word without its escapes: a quote, a backslash, or an octet such as `\xff`.
fn unescape(word: &str) -> Vec<u8> {
    let mut octets = vec![];
    let mut rest = word.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let hex = more.strip_prefix(b"x").and_then(|more| std::str::from_utf8(more.get(..2)?).ok());
        let (octet, length) = match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'\\', Some(octet)) => (octet, 4),
            (b'\\', None) => (more.first().copied().unwrap_or(first), 2),
            _ => (first, 1),
        };
        octets.push(octet);
        rest = rest.get(length..).unwrap_or_default();
    }
    octets
}

/// One of the inputs, changed in a few places.
fn mutation(random: &mut Random, corpus: &[(PathBuf, Vec<u8>)], words: &[Vec<u8>]) -> Vec<u8> {
    let mut octets = corpus[random.below(corpus.len())].1.clone();
    for _ in 0..=random.below(6) {
        let at = random.below(octets.len() + 1);
        let end = (at + 1 + random.below(16)).min(octets.len());
        match random.below(8) {
            0 if at < octets.len() => octets[at] ^= 1 << random.below(8),
            1 if at < octets.len() => {
                octets[at] = [0, 1, 0x7f, 0x80, 0xff, b'9', b'-', b'"'][random.below(8)]
            }
            2 if at < octets.len() => octets[at] = random.next() as u8,
            3 => drop(octets.drain(at..end)),
            4 => {
                let copy = octets[at..end].to_vec();
                let to = random.below(octets.len() + 1);
                octets.splice(to..to, copy);
            }
            5 if !words.is_empty() => {
                let over = if random.below(2) == 0 { at } else { end };
                octets.splice(at..over, words[random.below(words.len())].iter().copied());
            }
            6 => {
                // The rest of another one, from the same place on or from any.
                let other = &corpus[random.below(corpus.len())].1;
                let from = if random.below(2) == 0 { at } else { random.below(other.len() + 1) };
                octets.truncate(at);
                octets.extend(other.get(from..).unwrap_or_default());
            }
            _ => octets.insert(at, random.next() as u8),
        }
    }
    octets.truncate(MAX_LEN);
    octets
}

/// xorshift64*: Vigna, *An experimental exploration of Marsaglia's xorshift generators, scrambled*.
struct Random(u64);

impl Random {
    /// The state must not be zero.
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}
