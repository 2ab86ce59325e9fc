//! Policies named in text: `name`, or `name:key=value,key=value`.
//!
//! ```
//! use ackline_tcp_core::policy::spec::PolicySpec;
//! let spec: PolicySpec = "kalampoukas:f=0.5,intra=drr".parse().unwrap();
//! assert_eq!(spec.name, "kalampoukas");
//! assert_eq!(spec.params.get("intra").unwrap().text(), "drr");
//! ```

mod entry;
mod error;
pub(crate) mod key;
mod nearest;

pub use entry::{Deployment, Entry, PolicyKind, find, resolve};
pub use error::SpecError;
pub(crate) use key::written;
pub use key::{Key, Keyed, ParamRow, WordOr, set_keys};
pub use nearest::nearest;

use crate::quantity::{Amount, RATE, SIZE, TIME, parse_amount, parse_rate, parse_size, parse_time};
use crate::time::Duration;
use crate::units::Rate;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display};
use core::ops::RangeInclusive;
use core::str::FromStr;

/// A policy's name and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The part before the colon.
    pub name: String,
    /// The part after the colon.
    pub params: Params,
}

impl PolicySpec {
    /// A policy without parameters.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), params: Params::default() }
    }
}

impl FromStr for PolicySpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        if name.is_empty() {
            return Err(SpecError::new(format!(
                "policy {text:?} has no name; write name or name:key=value,..."
            )));
        }
        Ok(Self { name: name.to_owned(), params: rest.parse()? })
    }
}

impl Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let params: Vec<String> =
            self.params.entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if !params.is_empty() {
            write!(f, ":{}", params.join(","))?;
        }
        Ok(())
    }
}

/// Parameters in the order given: `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    entries: Vec<(String, String)>,
}

impl FromStr for Params {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut entries: Vec<(String, String)> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(SpecError::new(format!("parameter {pair:?} has no value; write {pair}=VALUE")));
            };
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(SpecError::new(format!("parameter {pair:?} is not of the form key=value")));
            }
            if entries.iter().any(|(known, _)| known == key) {
                return Err(SpecError::new(format!("parameter {key:?} is given twice")));
            }
            entries.push((key.to_owned(), value.to_owned()));
        }
        Ok(Self { entries })
    }
}

impl Params {
    /// One parameter, with any text as its value.
    #[must_use]
    pub fn single(key: &str, text: &str) -> Self {
        Self { entries: Vec::from([(key.to_owned(), text.to_owned())]) }
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The parameters in the order given.
    pub fn iter(&self) -> impl Iterator<Item = Param<'_>> {
        self.entries.iter().map(|(key, text)| Param { key, text })
    }

    /// The parameter called `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Param<'_>> {
        self.iter().find(|param| param.key == key)
    }

    /// Splits off the parameters of `P`; both parts keep their order. For a policy that wraps
    /// another one and shares a list of parameters with it.
    #[must_use]
    pub fn split<P: Keyed>(&self) -> (Self, Self) {
        let known = |key: &str| P::KEYS.iter().any(|own| own.name == key);
        let (own, rest) = self.entries.iter().cloned().partition(|(key, _)| known(key));
        (Self { entries: own }, Self { entries: rest })
    }

    /// For policies without parameters.
    ///
    /// # Errors
    /// Names the first parameter, if there is one.
    pub fn reject_all(&self, policy: &str) -> Result<(), SpecError> {
        match self.iter().next() {
            None => Ok(()),
            Some(param) => Err(SpecError::new(format!("{policy} takes no parameter {:?}", param.key))),
        }
    }
}

/// A parameter: its key and its text, with methods to parse the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    key: &'a str,
    text: &'a str,
}

impl<'a> Param<'a> {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &'a str {
        self.key
    }

    /// The value as written.
    #[must_use]
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is not a whole number, or lies outside `range`.
    pub fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, SpecError> {
        self.checked(self.text.parse().ok(), &range, "a whole number")
    }

    /// A number.
    ///
    /// # Errors
    /// If it is not a number, or lies outside `range`.
    pub fn number(&self, range: RangeInclusive<f64>) -> Result<f64, SpecError> {
        self.checked(self.text.parse().ok(), &range, "a number")
    }

    /// A time, in the units of [`TIME`]: `40ms`, `1.5s`, `250us`.
    ///
    /// # Errors
    /// If it is not a time, or lies outside `range`.
    pub fn duration(&self, range: RangeInclusive<Duration>) -> Result<Duration, SpecError> {
        parse_time(self.text).filter(|time| range.contains(time)).ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            self.expected(&format!("a time from {low:?} to {high:?} (units: {})", TIME.unit_names()))
        })
    }

    /// A rate, in the units of [`RATE`]: `100kbit`, `1.5mbit`, `10G`.
    ///
    /// # Errors
    /// If it is not a rate, zero, or outside `range`, in bits per second.
    pub fn rate(&self, range: RangeInclusive<u64>) -> Result<Rate, SpecError> {
        let rate = parse_rate(self.text).filter(|rate| range.contains(&rate.bits_per_second()));
        rate.ok_or_else(|| {
            let units = RATE.unit_names();
            self.expected(&format!("a rate such as 100kbit, 20mbit or 1gbit (units: {units})"))
        })
    }

    /// A number of bytes, in the units of [`SIZE`]: `1500`, `64k`, `1M`.
    ///
    /// # Errors
    /// If it is not a number of bytes, or lies outside `range`.
    pub fn bytes(&self, range: RangeInclusive<u64>) -> Result<u64, SpecError> {
        parse_size(self.text).filter(|bytes| range.contains(bytes)).ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            self.expected(&format!("a number of bytes from {low} to {high} (units: {})", SIZE.unit_names()))
        })
    }

    /// An amount of data, in bytes or as a time at some rate: `32k`, `5ms`.
    ///
    /// # Errors
    /// If it is neither, or more than `most`.
    pub fn amount(&self, most: (u64, Duration)) -> Result<Amount, SpecError> {
        match parse_amount(self.text) {
            Some(Amount::Size(size)) if size <= most.0 => Ok(Amount::Size(size)),
            Some(Amount::Time(time)) if time <= most.1 => Ok(Amount::Time(time)),
            _ => {
                let (size, time) = (key::bytes(most.0), written(most.1));
                let (sizes, times) = (SIZE.unit_names(), TIME.unit_names());
                Err(self.expected(&format!(
                    "bytes up to {size}, or a time up to {time} (units: {sizes}; {times})"
                )))
            }
        }
    }

    /// `on`/`off`, `yes`/`no`, `true`/`false`, `1`/`0`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn switch(&self) -> Result<bool, SpecError> {
        match self.text {
            "on" | "yes" | "true" | "1" => Ok(true),
            "off" | "no" | "false" | "0" => Ok(false),
            _ => Err(self.expected("on or off")),
        }
    }

    /// One of `choices`; returns its position. If `on` and `off` are among them, so are the other
    /// words for a [switch](Self::switch).
    ///
    /// # Errors
    /// Lists the choices.
    pub fn choice(&self, choices: &[&str]) -> Result<usize, SpecError> {
        let at = |word: &str| choices.iter().position(|choice| *choice == word);
        let switched = || {
            let (on, off) = at("on").zip(at("off"))?;
            self.switch().ok().map(|is_on| if is_on { on } else { off })
        };
        at(self.text)
            .or_else(switched)
            .ok_or_else(|| self.expected(&format!("one of {}", choices.join(", "))))
    }

    /// The error for a key unknown to the policy, which has the parameters `known`.
    #[must_use]
    pub fn unknown<'n>(&self, policy: &str, known: impl Iterator<Item = &'n str> + Clone) -> SpecError {
        let mut text = format!("{policy} has no parameter {:?}", self.key);
        if let Some(near) = nearest(self.key, known.clone()) {
            text += &format!("; did you mean {near:?}?");
        }
        let names: Vec<&str> = known.collect();
        if names.is_empty() {
            text += " (it takes none)";
        } else {
            text += &format!(" (it takes {})", names.join(", "));
        }
        SpecError::new(text)
    }

    /// The parameter `key` with the value `text`.
    #[must_use]
    pub const fn new(key: &'a str, text: &'a str) -> Self {
        Self { key, text }
    }

    fn checked<T: PartialOrd + Display>(
        &self,
        value: Option<T>,
        range: &RangeInclusive<T>,
        what: &str,
    ) -> Result<T, SpecError> {
        match value {
            Some(value) if range.contains(&value) => Ok(value),
            _ => Err(self.expected(&format!("{what} from {} to {}", range.start(), range.end()))),
        }
    }

    /// The error for a value that is not `what` the key accepts, such as "on or off".
    #[must_use]
    pub fn expected(&self, what: &str) -> SpecError {
        let (key, text) = (self.key.to_owned(), self.text.to_owned());
        SpecError::of_value(key, text, what.to_owned())
    }
}

#[cfg(test)]
mod tests;
