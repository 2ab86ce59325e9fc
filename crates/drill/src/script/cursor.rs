//! A place in the text, and the small things that are read there. The language has no line
//! structure; what a word means depends on where it stands, so there are no tokens.

use super::{Position, ScriptError};
use std::cell::Cell;

pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The line last asked for: a position in it, its number, and where it starts.
    known: Cell<(usize, u32, usize)>,
    defines: &'a [(String, String)],
}

type ParseResult<T> = Result<T, ScriptError>;

impl<'a> Cursor<'a> {
    /// At position `at` of the text.
    pub(super) const fn new(text: &'a str, at: usize, defines: &'a [(String, String)]) -> Self {
        Self { text, at, known: Cell::new((0, 1, 0)), defines }
    }

    pub(super) const fn position(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn place(&self) -> Position {
        let (mut from, mut line, mut start) = self.known.get();
        if self.at < from {
            (from, line, start) = (0, 1, 0);
        }
        let between = self.text.get(from..self.at).unwrap_or_default();
        for (at, _) in between.match_indices('\n') {
            (line, start) = (line + 1, from + at + 1);
        }
        self.known.set((self.at, line, start));
        Position { line, column: (self.at - start) as u32 + 1 }
    }

    pub(super) fn error<T>(&self, problem: impl Into<String>) -> ParseResult<T> {
        Err(ScriptError::new(self.place(), problem))
    }

    pub(super) fn unsupported<T>(&self, problem: impl Into<String>) -> ParseResult<T> {
        Err(ScriptError::unsupported(self.place(), problem))
    }

    /// What was expected here, and what stands here instead.
    pub(super) fn expected<T>(&self, what: &str) -> ParseResult<T> {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len()).clamp(0, 20);
        let found: String = rest.chars().take(end.max(1)).collect();
        let found = if found.is_empty() { "the end of the script".to_owned() } else { format!("{found:?}") };
        self.error(format!("expected {what}, found {found}"))
    }

    /// White space and comments.
    pub(super) fn skip_space(&mut self) -> ParseResult<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return self.error("this comment has no end: */ is missing"),
                }
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes `text` if it stands here, after white space.
    pub(super) fn eat(&mut self, text: &str) -> ParseResult<bool> {
        self.skip_space()?;
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, text: &str) -> ParseResult<()> {
        if self.eat(text)? { Ok(()) } else { self.expected(&format!("{text:?}")) }
    }

    /// Takes what `keep` accepts, without white space before.
    pub(super) fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// A word that stands here, without taking it.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Takes a word; it may be empty.
    pub(super) fn word(&mut self) -> ParseResult<&'a str> {
        self.skip_space()?;
        Ok(self.take_while(is_word))
    }

    /// Takes `word` if exactly that stands here.
    pub(super) fn eat_word(&mut self, word: &str) -> ParseResult<bool> {
        self.skip_space()?;
        let found = self.peek_word() == word;
        if found {
            self.at += word.len();
        }
        Ok(found)
    }

    /// What is defined for `word`.
    pub(super) fn defined(&self, word: &str) -> Option<&'a str> {
        self.defines.iter().rev().find(|(name, _)| name == word).map(|(_, value)| value.as_str())
    }

    /// A whole number, decimal or hexadecimal, or a word that is defined as one.
    pub(super) fn number(&mut self) -> ParseResult<i64> {
        self.skip_space()?;
        let start = self.at;
        let negative = self.rest().starts_with('-');
        if negative {
            self.at += 1;
        }
        let word = self.peek_word();
        let text = self.defined(word).unwrap_or(word);
        let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        };
        match value.and_then(|value| i64::try_from(value).ok()) {
            Some(value) => {
                self.at += word.len();
                Ok(if negative { -value } else { value })
            }
            None => {
                self.at = start;
                self.expected("a whole number")
            }
        }
    }

    /// A number of `T`'s range.
    pub(super) fn integer<T: TryFrom<i64>>(&mut self, what: &str) -> ParseResult<T> {
        let value = self.number()?;
        T::try_from(value).or_else(|_| self.error(format!("{value} is no {what}")))
    }

    /// A decimal number of seconds, in microseconds, the rest cut off.
    pub(super) fn seconds(&mut self) -> ParseResult<u64> {
        let place = self.place();
        // `0...0.1` is two times with dots between them.
        let rest = self.rest();
        let end = rest.find("...").unwrap_or(rest.len());
        let rest = rest.get(..end).unwrap_or_default();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default();
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if text.is_empty() || text == "." {
            return self.expected("a time in seconds");
        }
        let digits = |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<u64>() };
        let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
        let seconds = digits(whole).ok().and_then(|whole| whole.checked_mul(1_000_000));
        match (seconds, digits(&micros)) {
            (Some(seconds), Ok(micros)) => {
                self.at += text.len();
                Ok(seconds + micros)
            }
            _ => Err(ScriptError::new(place, format!("{text:?} is no time in seconds"))),
        }
    }

    /// What stands before `end`, which is taken too.
    pub(super) fn until(&mut self, end: &str) -> ParseResult<&'a str> {
        let rest = self.rest();
        match rest.find(end) {
            Some(length) => {
                self.at += length + end.len();
                Ok(rest.get(..length).unwrap_or_default())
            }
            None => self.error(format!("{end:?} is missing")),
        }
    }
}

pub(super) const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
