//! Errors in a name or a parameter.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Display};

/// What is wrong with a policy's name or parameters, in one line for humans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    mistake: Mistake,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Mistake {
    /// `key` does not accept the value `text`, but `expected`.
    Value {
        key: String,
        text: String,
        expected: String,
    },
    Other(String),
}

impl SpecError {
    /// An error with the text `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { mistake: Mistake::Other(message.into()) }
    }

    /// `key` does not accept the value `text`, but `expected`.
    pub(super) const fn of_value(key: String, text: String, expected: String) -> Self {
        Self { mistake: Mistake::Value { key, text, expected } }
    }

    /// The key with the wrong value, and what it accepts, such as "on or off". `None` for other
    /// errors.
    #[must_use]
    pub fn expectation(&self) -> Option<(&str, &str)> {
        match &self.mistake {
            Mistake::Value { key, expected, .. } => Some((key, expected)),
            Mistake::Other(_) => None,
        }
    }

    /// The same error, if the key also accepts `word`.
    pub(crate) fn or(mut self, word: &str) -> Self {
        if let Mistake::Value { expected, .. } = &mut self.mistake {
            *expected += &format!(", or {word}");
        }
        self
    }
}

impl Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mistake {
            Mistake::Value { key, text, expected } => {
                write!(f, "{key}={text} is not possible: {key} must be {expected}")
            }
            Mistake::Other(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for SpecError {}
