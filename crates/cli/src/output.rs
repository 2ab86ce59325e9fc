//! Numbers as people read them, and standard output that may be a closed pipe.

use crate::failure::Failure;
use ackline_runtime::standard_streams::check_output;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Writes text to standard output, without [control characters](harmless). A reader that has gone
/// is no error: it has what it wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(harmless(text).as_bytes()).map_err(|error| refused(&error))
}

/// Writes clap's own text, with its colours, to standard output.
pub(crate) fn print_help(help: &clap::Error) -> Result<(), Failure> {
    check_output()
        .and_then(|()| unless_reader_gone(help.print().and_then(|()| io::stdout().flush())))
        .map_err(|error| refused(&error))
}

/// Standard output as a file, for data.
pub(crate) fn file() -> Result<File, Failure> {
    let file = check_output().and_then(|()| io::stdout().as_fd().try_clone_to_owned());
    file.map(File::from).map_err(|error| refused(&error))
}

fn write(text: &[u8]) -> io::Result<()> {
    check_output()?;
    let mut out = io::stdout().lock();
    unless_reader_gone(out.write_all(text).and_then(|()| out.flush()))
}

fn unless_reader_gone(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn refused(error: &io::Error) -> Failure {
    Failure::file("write to", "standard output", error)
}

/// Writes a line to standard error, without [control characters](harmless). If that is closed there
/// is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
}

/// Text in which no character commands a terminal or turns the reading direction: names and
/// messages may be of a file or a peer, and ESC ] 52 in one of them would write the user's
/// clipboard. Line ends and tabs stay; others are written as JSON does, so that JSON stays what it
/// was.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns_direction(c);
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if commands(c) {
            // All of them are below U+10000.
            let _ = write!(plain, "\\u{:04x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// True for the formatting characters of the bidirectional algorithm (Unicode Standard Annex #9,
/// section 2), which let a text show something else than it says.
const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A JSON document with a line end behind it.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Fails only for maps with keys that are no strings; the CLI's documents are structs.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// A JSON document on one line.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Rows as lines: the first column to the left, all others to the right, each as wide as its widest
/// cell.
pub(crate) fn grid<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width_of = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width_of);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Bytes with a binary unit: `1.50 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.995 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2} {}", UNITS[unit])
}

/// `bytes` over `time`, in 10^9 bits per second; 0 if no time passed.
pub(crate) fn gbit_s(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() / 1e9 }
}

/// `bytes` over `time` with a decimal unit: `20.5 Gbit/s`.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    bit_rate(gbit_s(bytes, time) * 1e9)
}

/// Bits per second with a decimal unit.
pub(crate) fn bit_rate(bits: f64) -> String {
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    let digits = digits(value);
    format!("{value:.digits$} {unit}")
}

/// Digits behind the point that give three digits in all.
fn digits(value: f64) -> usize {
    match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    }
}

/// Seconds: `0.412 s`, `83.1 s`.
pub(crate) fn seconds(time: Duration) -> String {
    let value = time.as_secs_f64();
    if value < 10.0 { format!("{value:.3} s") } else { format!("{value:.1} s") }
}

/// A round-trip time: `85 µs`, `1.35 ms`.
pub(crate) fn round_trip(time: Option<Duration>) -> String {
    match time {
        None => "-".to_owned(),
        Some(time) if time < Duration::from_millis(1) => format!("{} µs", time.as_micros()),
        Some(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
    }
}

/// The wall clock, for reports.
pub(crate) fn wall_clock() -> std::time::SystemTime {
    let rustix::time::Timespec { tv_sec, tv_nsec } =
        rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    // Neither part is negative after 1970.
    let since = Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0));
    std::time::SystemTime::UNIX_EPOCH + since
}

/// The wall clock in whole microseconds, which JSON's numbers hold exactly.
pub(crate) fn micros_since_1970() -> u64 {
    let since = wall_clock().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_command_a_terminal_is_written_out() {
        assert_eq!(harmless("\tcubic: 3\u{a0}ms\n"), "\tcubic: 3\u{a0}ms\n");
        assert_eq!(
            harmless("a\u{1b}]52;c;eA==\u{7}b\rc\u{7f}\u{9b}31m"),
            "a\\u001b]52;c;eA==\\u0007b\\u000dc\\u007f\\u009b31m"
        );
        assert_eq!(harmless("user\u{202e}nimda"), "user\\u202enimda");
        // JSON means the same afterwards.
        let document = json(&"\u{1b}\u{9b}\u{202e}");
        let read: String = serde_json::from_str(&harmless(&document)).expect("JSON");
        assert_eq!(read, "\u{1b}\u{9b}\u{202e}");
    }

    #[test]
    fn rows_stand_below_each_other() {
        let rows =
            [["", "median"], ["gaps", "10 µs"], ["a longer name", "2 ms"]].map(|row| row.map(str::to_owned));
        assert_eq!(grid(&rows), ["               median", "gaps            10 µs", "a longer name    2 ms"]);
    }

    #[test]
    fn bytes_have_binary_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(1 << 20), "1.00 MiB");
        assert_eq!(bytes((1 << 30) - 1), "1.00 GiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
    }

    #[test]
    fn rates_have_decimal_units_and_three_digits() {
        let second = Duration::from_secs(1);
        assert_eq!(rate(2_562_500_000, second), "20.5 Gbit/s");
        assert_eq!(rate(125_000, second), "1.00 Mbit/s");
        assert_eq!(rate(12_500_000, second), "100 Mbit/s");
        assert_eq!(rate(1, second), "8.00 bit/s");
        assert_eq!(rate(1, Duration::ZERO), "0.00 bit/s");
    }

    #[test]
    fn times() {
        assert_eq!(seconds(Duration::from_millis(412)), "0.412 s");
        assert_eq!(round_trip(Some(Duration::from_micros(85))), "85 µs");
        assert_eq!(round_trip(Some(Duration::from_micros(1_350))), "1.35 ms");
        assert_eq!(round_trip(None), "-");
    }
}
