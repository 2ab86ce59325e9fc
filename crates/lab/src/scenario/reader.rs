//! Reads tables and values as the rows of [`keys`] say.

use super::keys::{self, Accepts, FREE, Key, Kind, ROOT, Section};
use super::tree::{Entry, Node, Origin, Source, Value};
use crate::error::ScenarioError;
use ackline_netsim::queue::Limit;
use ackline_registry::{Registry, Scope};
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::nearest;
use ackline_tcp_core::quantity::{self, Amount, RATE, SIZE, TIME};

type Result<T> = std::result::Result<T, ScenarioError>;

/// What every item is read with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a Source,
    pub(crate) registry: &'a Registry,
}

/// A table, what it may hold, and where it stands. Its keys are those of its section and kind,
/// checked when it was entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    reading: Reading<'a>,
    section: &'static Section,
    kind: Option<&'static Kind>,
    entries: &'a [Entry],
    origin: &'a Origin,
    path: &'a str,
}

/// A value, what it may be, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    reading: Reading<'a>,
    accepts: &'static Accepts,
    node: &'a Node,
    pub(crate) path: String,
}

impl<'a> Table<'a> {
    /// Enters a table of `section`: finds its kind and refuses unknown keys.
    fn enter(
        reading: Reading<'a>,
        section: &'static Section,
        entries: &'a [Entry],
        origin: &'a Origin,
        path: &'a str,
    ) -> Result<Self> {
        let mut table = Self { reading, section, kind: None, entries, origin, path };
        if !section.kinds.is_empty() {
            let name = match (table.entry("kind", &Accepts::Text), section.default_kind) {
                (Some(item), _) => {
                    let names: Vec<&str> = section.kinds.iter().map(|kind| kind.name).collect();
                    item.one_of(&names)?
                }
                (None, Some(name)) => name,
                (None, None) => return Err(table.error("`kind` is missing")),
            };
            table.kind = section.kind(name);
        }
        if !std::ptr::eq(section, &raw const FREE) {
            table.only_known()?;
        }
        Ok(table)
    }

    fn only_known(&self) -> Result<()> {
        let is_row =
            |key: &str| (key == "kind" && self.kind.is_some()) || self.rows().any(|row| row.name == key);
        let others: Vec<&Entry> = self.entries.iter().filter(|entry| !is_row(&entry.key)).collect();
        if others.is_empty() {
            return Ok(());
        }
        let options = self.scope().into_iter().flat_map(|scope| keys::options(self.reading.registry, scope));
        let options: Vec<&str> = options.filter(|key| !is_row(key)).collect();
        let Some(entry) = others.iter().find(|entry| !options.contains(&entry.key.as_str())) else {
            return Ok(());
        };
        let kind = self.kind.map(|_| "kind");
        let allowed: Vec<&str> =
            kind.into_iter().chain(self.rows().map(|row| row.name)).chain(options).collect();
        let mut text = "unknown key".to_owned();
        let called = self.kind.map_or(self.section.called, |kind| kind.name);
        if !called.is_empty() {
            text += &format!(" for {called}");
        }
        if let Some(near) = nearest(&entry.key, allowed.iter().copied()) {
            text += &format!("; did you mean `{near}`?");
        }
        text += &format!(" (allowed: {})", allowed.join(", "));
        Err(self.source().error(&entry.origin, &join(self.path, &entry.key), text))
    }

    const fn source(&self) -> &'a Source {
        self.reading.source
    }

    pub(crate) const fn registry(&self) -> &'a Registry {
        self.reading.registry
    }

    /// The keys of its section and kind.
    fn rows(&self) -> impl Iterator<Item = &'static Key> {
        self.section.keys.iter().chain(self.kind.map_or(&[][..], |kind| kind.keys))
    }

    /// The settings it takes.
    fn scope(&self) -> Option<Scope> {
        self.kind.and_then(|kind| kind.options).or(self.section.options)
    }

    /// The name of its kind; empty if its section has none.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind.map_or("", |kind| kind.name)
    }

    fn entry(&self, key: &str, accepts: &'static Accepts) -> Option<Item<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Item { reading: self.reading, accepts, node: &entry.node, path: join(self.path, key) })
    }

    /// True if `key` is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// The entry called `key`, which is a key of this table.
    pub(crate) fn get(&self, key: &str) -> Option<Item<'a>> {
        let row = self.rows().find(|row| row.name == key);
        debug_assert!(
            row.is_some(),
            "{}: {key} is read, but is no key of {}",
            self.path,
            self.section.heading
        );
        #[cfg(test)]
        if let Some(row) = row {
            super::tests::keys::note(self.section, self.kind, row, self.path, self.has(key));
        }
        self.entry(key, &row?.accepts)
    }

    /// The entry called `key`, which must be there.
    pub(crate) fn need(&self, key: &str) -> Result<Item<'a>> {
        self.get(key).ok_or_else(|| self.error(format!("`{key}` is missing")))
    }

    /// The settings among its entries, in the order in which they were written.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&'a str, Item<'a>)> + '_ {
        self.iter().filter(|(key, item)| match self.rows().find(|row| row.name == *key) {
            Some(row) => matches!(row.accepts, Accepts::OptionOr(_)) && !item.is_table(),
            None => *key != "kind" || self.section.kinds.is_empty(),
        })
    }

    /// Keys and values, in the order in which they were written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, Item<'a>)> + '_ {
        self.entries.iter().map(|entry| {
            let path = join(self.path, &entry.key);
            (
                entry.key.as_str(),
                Item { reading: self.reading, accepts: &Accepts::Anything, node: &entry.node, path },
            )
        })
    }

    /// An error about the table as a whole.
    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.source().error(self.origin, self.path, message)
    }

    /// The value of `key` read by `read`; `default` if it is not there.
    pub(crate) fn or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(&Item<'a>) -> Result<T>,
    ) -> Result<T> {
        self.get(key).map_or(Ok(default), |item| read(&item))
    }

    /// The value of `key` read by `read`; `None` if it is not there.
    pub(crate) fn maybe<T>(&self, key: &str, read: impl FnOnce(&Item<'a>) -> Result<T>) -> Result<Option<T>> {
        self.get(key).map(|item| read(&item)).transpose()
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<'a> Item<'a> {
    /// The whole file.
    pub(crate) fn root(source: &'a Source, registry: &'a Registry, node: &'a Node) -> Self {
        Self { reading: Reading { source, registry }, accepts: &ROOT, node, path: String::new() }
    }

    /// The same value, read as another key's.
    pub(crate) fn as_if(&self, accepts: &'static Accepts) -> Self {
        Self { accepts, ..self.clone() }
    }

    /// What may be drawn, if the key takes a value or how it is drawn.
    pub(crate) const fn drawn(&self) -> Option<&'static Accepts> {
        match self.accepts {
            Accepts::Drawn(of) => Some(of),
            _ => None,
        }
    }

    pub(crate) const fn accepts(&self) -> &'static Accepts {
        self.accepts
    }

    /// The error for a value that is read in another way than its key's row says. Tests read every
    /// key, so that none ships.
    fn misread(&self) -> ScenarioError {
        debug_assert!(false, "{} is read as something else than {:?}", self.path, self.accepts);
        self.error("this key cannot be read")
    }

    pub(crate) const fn node(&self) -> &'a Node {
        self.node
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> ScenarioError {
        self.reading.source.error(&self.node.origin, &self.path, message)
    }

    /// File, line, column and key.
    pub(crate) fn place(&self) -> String {
        let error = self.error("").to_string();
        error.trim_end_matches(": ").to_owned()
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
        let section = match self.accepts {
            Accepts::Table(section)
            | Accepts::Tables(section)
            | Accepts::WordOr(_, section)
            | Accepts::OptionOr(section) => *section,
            Accepts::Drawn(_) => &keys::DRAW,
            Accepts::Anything | Accepts::Paths => &FREE,
            _ => return Err(self.misread()),
        };
        match &self.node.value {
            Value::Table(entries) => {
                Table::enter(self.reading, section, entries, &self.node.origin, &self.path)
            }
            _ => Err(self.expected("a table")),
        }
    }

    /// The items of a list; tables in it stand under their names, or else their places.
    pub(crate) fn list(&self) -> Result<Vec<Item<'a>>> {
        let accepts = match self.accepts {
            Accepts::List(of) | Accepts::OneOrMore(of) => *of,
            // Its items are tables of the same section.
            Accepts::Tables(_) | Accepts::Anything => self.accepts,
            _ => return Err(self.misread()),
        };
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
                Item { reading: self.reading, accepts, node, path: join(&self.path, &key) }
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

    /// One, or a list of them.
    pub(crate) fn one_or_more(&self) -> Result<Vec<Item<'a>>> {
        match (&self.node.value, self.accepts) {
            (Value::Array(_), _) => self.list(),
            (_, Accepts::OneOrMore(of)) => Ok(vec![self.as_if(of)]),
            _ => Err(self.misread()),
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

    pub(crate) fn integer(&self) -> Result<u64> {
        let Accepts::Integer(low, high, _) = *self.accepts else { return Err(self.misread()) };
        let number = match &self.node.value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        number
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| self.expected(&format!("a whole number from {low} to {high}")))
    }

    /// A number, also as a percentage.
    pub(crate) fn number(&self) -> Result<f64> {
        let (low, high) = match *self.accepts {
            Accepts::Number(low, high) => (low, high),
            Accepts::Probability => (0.0, 1.0),
            _ => return Err(self.misread()),
        };
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
            .filter(|number| (low..=high).contains(number))
            .ok_or_else(|| self.expected(&format!("a number from {low} to {high}")))
    }

    /// A time; longer than zero if the key's row says so.
    pub(crate) fn time(&self) -> Result<Duration> {
        let is_period = match self.accepts {
            Accepts::Time => false,
            Accepts::Period => true,
            _ => return Err(self.misread()),
        };
        let time = match &self.node.value {
            Value::Text(text) => quantity::parse_time(text),
            // Zero needs no unit.
            Value::Integer(0) => Some(Duration::ZERO),
            _ => None,
        };
        match time {
            Some(Duration::ZERO) if is_period => Err(self.expected("longer than zero")),
            Some(time) => Ok(time),
            None => {
                let units = TIME.unit_names();
                Err(self.expected(&format!(
                    "a time with its unit, such as \"10ms\" or \"1.5s\" (units: {units})"
                )))
            }
        }
    }

    /// Bits per second.
    pub(crate) fn rate(&self) -> Result<u64> {
        let Accepts::Rate = self.accepts else { return Err(self.misread()) };
        let rate = match &self.node.value {
            Value::Text(text) => quantity::parse_rate(text),
            _ => None,
        };
        rate.map(|rate| rate.bits_per_second()).ok_or_else(|| {
            let units = RATE.unit_names();
            self.expected(&format!("a rate such as \"100kbit\", \"20mbit\" or \"1gbit\" (units: {units})"))
        })
    }

    pub(crate) fn bytes(&self) -> Result<u64> {
        let Accepts::Bytes(low, high) = *self.accepts else { return Err(self.misread()) };
        let bytes = match &self.node.value {
            Value::Text(text) => quantity::parse_size(text),
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        bytes.filter(|bytes| (low..=high).contains(bytes)).ok_or_else(|| {
            self.expected(&format!(
                "a number of bytes from {low} to {high}, such as 1500 or \"64k\" (units: {})",
                SIZE.unit_names()
            ))
        })
    }

    /// The size of a buffer: `"100k"` bytes, `"50p"` packets, `"20ms"` of the link's rate,
    /// `"unlimited"`.
    pub(crate) fn limit(&self) -> Result<Limit> {
        let Accepts::Limit = self.accepts else { return Err(self.misread()) };
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

    /// One of the names that the key's row has, as the value beside it here.
    pub(crate) fn choice<T: Copy>(&self, values: &[(&str, T)]) -> Result<T> {
        let Accepts::Choice(names) = self.accepts else { return Err(self.misread()) };
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        debug_assert!(values.iter().map(|(name, _)| *name).eq(names.iter().copied()), "{}", self.path);
        let name = self.one_of(&names)?;
        values
            .iter()
            .find(|(value, _)| *value == name)
            .map_or_else(|| Err(self.misread()), |(_, value)| Ok(*value))
    }

    /// True for the word that may stand in place of a table.
    pub(crate) fn is_word(&self) -> Result<bool> {
        match (self.accepts, &self.node.value) {
            (Accepts::WordOr(..), Value::Table(_)) => Ok(false),
            (Accepts::WordOr(word, _), _) => self.one_of(&[*word]).map(|_| true),
            _ => Err(self.misread()),
        }
    }

    /// The text, which is one of `names`.
    fn one_of<'n>(&self, names: &[&'n str]) -> Result<&'n str> {
        let text = self.text()?;
        if let Some(name) = names.iter().find(|name| **name == text) {
            return Ok(name);
        }
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
