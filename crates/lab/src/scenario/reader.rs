//! Reads tables: which keys are allowed, which are needed, and what their values mean.

use super::tree::{Entry, Node, Origin, Source, Value};
use crate::error::ScenarioError;
use ackline_netsim::queue::Limit;
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::nearest;
use ackline_tcp_core::quantity::{self, Amount, RATE, SIZE, TIME};
use std::ops::RangeInclusive;

type Result<T> = std::result::Result<T, ScenarioError>;

/// A table, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    source: &'a Source,
    entries: &'a [Entry],
    origin: &'a Origin,
    path: &'a str,
}

/// A value, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    source: &'a Source,
    node: &'a Node,
    pub(crate) path: String,
}

impl<'a> Table<'a> {
    /// The entry called `key`.
    pub(crate) fn get(&self, key: &str) -> Option<Item<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Item { source: self.source, node: &entry.node, path: join(self.path, key) })
    }

    /// The entry called `key`, which must be there.
    pub(crate) fn need(&self, key: &str) -> Result<Item<'a>> {
        self.get(key).ok_or_else(|| self.error(format!("`{key}` is missing")))
    }

    /// Refuses keys that are not in `allowed`.
    pub(crate) fn only(&self, allowed: &[&str]) -> Result<()> {
        self.only_for("", allowed)
    }

    /// The same; `what` says for what they are allowed.
    pub(crate) fn only_for(&self, what: &str, allowed: &[&str]) -> Result<()> {
        let Some(entry) = self.entries.iter().find(|entry| !allowed.contains(&entry.key.as_str())) else {
            return Ok(());
        };
        let mut text = "unknown key".to_owned();
        if !what.is_empty() {
            text += &format!(" for {what}");
        }
        if let Some(near) = nearest(&entry.key, allowed.iter().copied()) {
            text += &format!("; did you mean `{near}`?");
        }
        text += &format!(" (allowed: {})", allowed.join(", "));
        Err(self.source.error(&entry.origin, &join(self.path, &entry.key), text))
    }

    /// Keys and values, in the order in which they were written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Item<'a>)> + '_ {
        self.entries.iter().map(|entry| {
            let path = join(self.path, &entry.key);
            (entry.key.as_str(), Item { source: self.source, node: &entry.node, path })
        })
    }

    /// An error about the table as a whole.
    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error(self.origin, self.path, message)
    }

    /// The value of `key` read by `read`; `default` where it is not there.
    pub(crate) fn or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(&Item<'a>) -> Result<T>,
    ) -> Result<T> {
        self.get(key).map_or(Ok(default), |item| read(&item))
    }

    /// The value of `key` read by `read`; `None` where it is not there.
    pub(crate) fn maybe<T>(&self, key: &str, read: impl FnOnce(&Item<'a>) -> Result<T>) -> Result<Option<T>> {
        self.get(key).map(|item| read(&item)).transpose()
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'a> Item<'a> {
    pub(crate) fn root(source: &'a Source, node: &'a Node) -> Self {
        Self { source, node, path: String::new() }
    }

    pub(crate) const fn node(&self) -> &'a Node {
        self.node
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source.error(&self.node.origin, &self.path, message)
    }

    /// The error for a value that is not `what` the key takes.
    pub(crate) fn expected(&self, what: &str) -> ScenarioError {
        let found = match &self.node.value {
            Value::Text(text) => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            other => other.kind().to_owned(),
        };
        self.error(format!("{found} is not possible: it must be {what}"))
    }

    pub(crate) fn table(&self) -> Result<Table<'_>> {
        match &self.node.value {
            Value::Table(entries) => {
                Ok(Table { source: self.source, entries, origin: &self.node.origin, path: &self.path })
            }
            _ => Err(self.expected("a table")),
        }
    }

    /// The items of a list; tables in it stand under their names, or else their places.
    pub(crate) fn list(&self) -> Result<Vec<Item<'a>>> {
        let Value::Array(nodes) = &self.node.value else { return Err(self.expected("a list")) };
        Ok(nodes
            .iter()
            .enumerate()
            .map(|(place, node)| {
                let name = match &node.value {
                    Value::Table(entries) => entries.iter().find(|entry| entry.key == "name"),
                    _ => None,
                };
                let key = match name.map(|entry| &entry.node.value) {
                    Some(Value::Text(name)) => name.clone(),
                    _ => place.to_string(),
                };
                Item { source: self.source, node, path: join(&self.path, &key) }
            })
            .collect())
    }

    pub(crate) fn text(&self) -> Result<&'a str> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.node.value, Value::Table(_))
    }

    /// A single value, as it would be written on a command line.
    pub(crate) fn spelled(&self) -> Result<String> {
        match &self.node.value {
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Bool(_) => Ok(self.node.to_line()),
            _ => Err(self.expected("a text, a number, true or false")),
        }
    }

    /// A text or a list of texts.
    pub(crate) fn texts(&self) -> Result<Vec<Item<'a>>> {
        match &self.node.value {
            Value::Array(_) => self.list(),
            _ => Ok(vec![self.clone()]),
        }
    }

    /// [`list`](Self::list) of at least one item.
    pub(crate) fn some(&self) -> Result<Vec<Item<'a>>> {
        let items = self.list()?;
        if items.is_empty() {
            return Err(self.error("the list is empty; name at least one, or leave the key out"));
        }
        Ok(items)
    }

    /// A name of a node, link or app: letters, digits, `-` and `_`.
    pub(crate) fn name(&self) -> Result<String> {
        let text = self.text()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || !text.chars().all(fits) || text.chars().all(|c| c.is_ascii_digit()) {
            return Err(self.expected("a name of letters, digits, - and _ that is no number"));
        }
        Ok(text.to_owned())
    }

    pub(crate) fn switch(&self) -> Result<bool> {
        match &self.node.value {
            Value::Bool(value) => Ok(*value),
            Value::Text(text) if text == "on" => Ok(true),
            Value::Text(text) if text == "off" => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(crate) fn integer(&self, range: RangeInclusive<u64>) -> Result<u64> {
        let number = match &self.node.value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            self.expected(&format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    pub(crate) fn number(&self, range: RangeInclusive<f64>) -> Result<f64> {
        let number = match &self.node.value {
            #[expect(
                clippy::cast_precision_loss,
                reason = "numbers beyond 2^53 are not exact as floats either"
            )]
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(text) => percent(text),
            _ => None,
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.expected(&format!("a number from {} to {}", range.start(), range.end())))
    }

    /// From 0 to 1, also as `"1%"`.
    pub(crate) fn share(&self) -> Result<f64> {
        self.number(0.0..=1.0)
    }

    pub(crate) fn time(&self) -> Result<Duration> {
        let time = match &self.node.value {
            Value::Text(text) => quantity::parse_time(text),
            // Zero needs no unit.
            Value::Integer(0) => Some(Duration::ZERO),
            _ => None,
        };
        time.ok_or_else(|| {
            let units = TIME.unit_names();
            self.expected(&format!("a time with its unit, such as \"10ms\" or \"1.5s\" (units: {units})"))
        })
    }

    /// A time longer than zero.
    pub(crate) fn some_time(&self) -> Result<Duration> {
        match self.time()? {
            Duration::ZERO => Err(self.expected("longer than zero")),
            time => Ok(time),
        }
    }

    /// Bits per second.
    pub(crate) fn rate(&self) -> Result<u64> {
        let rate = match &self.node.value {
            Value::Text(text) => quantity::parse_rate(text),
            _ => None,
        };
        rate.map(|rate| rate.bits_per_second()).ok_or_else(|| {
            let units = RATE.unit_names();
            self.expected(&format!("a rate such as \"100kbit\", \"20mbit\" or \"1gbit\" (units: {units})"))
        })
    }

    pub(crate) fn bytes(&self, range: RangeInclusive<u64>) -> Result<u64> {
        let bytes = match &self.node.value {
            Value::Text(text) => quantity::parse_size(text),
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        bytes.filter(|bytes| range.contains(bytes)).ok_or_else(|| {
            let (low, high) = range.into_inner();
            self.expected(&format!(
                "a number of bytes from {low} to {high}, such as 1500 or \"64k\" (units: {})",
                SIZE.unit_names()
            ))
        })
    }

    /// The size of a buffer: `"100k"` bytes, `"50p"` packets, `"20ms"` of the link's rate, `"unlimited"`.
    pub(crate) fn limit(&self) -> Result<Limit> {
        let text = match &self.node.value {
            Value::Text(text) => text.trim(),
            _ => "",
        };
        if text == "unlimited" {
            return Ok(Limit::Unlimited);
        }
        let packets = text.strip_suffix('p').and_then(|number| number.trim().parse().ok());
        let amount = quantity::parse_amount(text).map(|amount| match amount {
            Amount::Size(bytes) => Limit::Bytes(bytes),
            Amount::Time(time) => Limit::Time(time),
        });
        let limit = packets.map(Limit::Packets).or(amount);
        if matches!(limit, Some(Limit::Packets(0) | Limit::Bytes(0) | Limit::Time(Duration::ZERO))) {
            return Err(
                self.expected("larger than zero, or no packet would pass: \"1p\", \"100k\" or \"20ms\"")
            );
        }
        limit
            .ok_or_else(|| {
                self.expected("a buffer's size: \"100k\" or \"64KiB\" (bytes), \"50p\" (packets), \"20ms\" (of the link's rate) or \"unlimited\"")
            })
    }

    /// One of `choices`, by name.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let mut message = format!("{text:?} is not possible");
        if let Some(near) = nearest(text, names.iter().copied()) {
            message += &format!("; did you mean {near:?}?");
        }
        Err(self.error(format!("{message} (allowed: {})", names.join(", "))))
    }
}

fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    Some(number / 100.0)
}
