//! Standard output, which may be a closed pipe, standard error, and files with results.

pub(crate) mod clock;
pub(crate) mod numbers;
pub(crate) mod result_file;

use crate::failure::Failure;
use ackline_runtime::standard_streams::check_output;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

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
}
