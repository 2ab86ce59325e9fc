//! A scenario as a tree of values that know where they stand, before anything is understood of it.

use crate::error::{Location, ScenarioError};
use ackline_tcp_core::policy::spec::nearest;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// These octets of the text.
    Text(Range<usize>),
    /// A value given beside the text.
    Given(Arc<str>),
}

/// A value and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Array(Vec<Node>),
    Table(Vec<Entry>),
    Other(&'static str),
}

/// A key of a table and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

impl Value {
    /// What it is, for error messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

impl Node {
    fn from_toml(value: &DeValue<'_>, span: Range<usize>) -> Self {
        let value = match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Value::Other("a number that is too large"), Value::Integer),
            DeValue::Float(number) => {
                number.as_str().parse().map_or(Value::Other("an unreadable number"), Value::Float)
            }
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| Self::from_toml(item.get_ref(), item.span())).collect())
            }
            DeValue::Table(table) => Value::Table(entries(table)),
        };
        Self { value, origin: Origin::Text(span) }
    }

    /// The value as a text on one line, as it would be written on a command line.
    pub(crate) fn to_line(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Other(kind) => (*kind).to_owned(),
            Value::Array(items) => {
                format!("[{}]", items.iter().map(Self::to_line).collect::<Vec<_>>().join(", "))
            }
            Value::Table(entries) => {
                let pairs: Vec<_> =
                    entries.iter().map(|entry| format!("{} = {}", entry.key, entry.node.to_line())).collect();
                format!("{{{}}}", pairs.join(", "))
            }
        }
    }
}

fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<(usize, Entry)> = table
        .iter()
        .map(|(key, value)| {
            let node = Node::from_toml(value.get_ref(), value.span());
            let entry = Entry { key: key.get_ref().to_string(), origin: Origin::Text(key.span()), node };
            (key.span().start, entry)
        })
        .collect();
    // In the order in which they were written.
    entries.sort_by_key(|(start, _)| *start);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// The text of a scenario, to say where something stands in it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

impl Source {
    pub(crate) fn parse(&self) -> Result<Node, ScenarioError> {
        match DeTable::parse(&self.text) {
            Ok(table) => {
                Ok(Node { value: Value::Table(entries(table.get_ref())), origin: Origin::Text(0..0) })
            }
            Err(error) => {
                let place = error.span().map_or(Location::Nowhere, |span| self.place(span.start));
                Err(self.error_at(place, "", error.message().to_owned()))
            }
        }
    }

    fn place(&self, offset: usize) -> Location {
        let before = &self.text[..self.text.floor_char_boundary(offset)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Location::Text { line, column }
    }

    fn error_at(&self, place: Location, key: &str, message: String) -> ScenarioError {
        ScenarioError { name: self.name.to_string(), place, key: key.to_owned(), message }
    }

    pub(crate) fn error(&self, origin: &Origin, key: &str, message: impl Into<String>) -> ScenarioError {
        let place = match origin {
            Origin::Text(span) => self.place(span.start),
            Origin::Given(text) => Location::Given(text.to_string()),
        };
        self.error_at(place, key, message.into())
    }
}

/// Reads a value as it stands on a command line: TOML if it parses as TOML (`3`, `true`,
/// `["a", "b"]`), otherwise a text.
pub(crate) fn given(text: &str, origin: &Arc<str>) -> Node {
    let line = format!("v = {text}");
    let parsed = DeTable::parse(&line).ok().and_then(|table| {
        let table = table.into_inner();
        // More than one key: the text held a line break.
        let (_, value) = table.iter().next().filter(|_| table.len() == 1)?;
        Some(Node::from_toml(value.get_ref(), 0..0))
    });
    let mut node =
        parsed.unwrap_or_else(|| Node { value: Value::Text(text.to_owned()), origin: Origin::Text(0..0) });
    set_origin(&mut node, origin);
    node
}

fn set_origin(node: &mut Node, origin: &Arc<str>) {
    node.origin = Origin::Given(origin.clone());
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| set_origin(item, origin)),
        Value::Table(entries) => entries.iter_mut().for_each(|entry| {
            entry.origin = Origin::Given(origin.clone());
            set_origin(&mut entry.node, origin);
        }),
        _ => {}
    }
}

/// Puts `value` at `path`: keys, and in lists the `name` of the table that is meant, or its place
/// from 0, or `*` for every one. Tables on the way are made if they are missing; lists are not. The
/// error says what is wrong.
pub(crate) fn set(root: &mut Node, path: &str, value: &Node) -> Result<(), String> {
    let keys: Vec<&str> = path.split('.').map(str::trim).collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(format!(
            "`{path}` is no path; write keys with dots between, such as link.bottleneck.rate"
        ));
    }
    set_at(root, &keys, value)
}

fn set_at(node: &mut Node, keys: &[&str], value: &Node) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match &mut node.value {
        Value::Table(entries) => {
            let place = entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
                entries.push(Entry {
                    key: (*key).to_owned(),
                    origin: value.origin.clone(),
                    node: Node { value: Value::Table(vec![]), origin: value.origin.clone() },
                });
                entries.len() - 1
            });
            set_at(&mut entries[place].node, rest, value)
        }
        Value::Array(items) => {
            let places = matching(items, key);
            if places.is_empty() {
                return Err(no_match(items, key));
            }
            places.into_iter().try_for_each(|place| set_at(&mut items[place], rest, value))
        }
        other => Err(format!("`{key}` cannot be set inside {}", other.kind())),
    }
}

fn name_of(node: &Node) -> Option<&str> {
    let Value::Table(entries) = &node.value else { return None };
    match &entries.iter().find(|entry| entry.key == "name")?.node.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}

fn matching(items: &[Node], key: &str) -> Vec<usize> {
    if key == "*" {
        return (0..items.len()).collect();
    }
    if let Some(place) = items.iter().position(|item| name_of(item) == Some(key)) {
        return vec![place];
    }
    key.parse().ok().filter(|place| *place < items.len()).into_iter().collect()
}

fn no_match(items: &[Node], key: &str) -> String {
    let names: Vec<&str> = items.iter().filter_map(name_of).collect();
    let mut text = format!("nothing is named `{key}` here");
    if let Some(near) = nearest(key, names.iter().copied()) {
        text += &format!("; did you mean `{near}`?");
    }
    match (names.is_empty(), items.len()) {
        (_, 0) => text + " (there is none)",
        (true, 1) => text + " (write 0 for the only one, or give it a name)",
        (true, count) => text + &format!(" (write 0 to {} for one of them, * for all)", count - 1),
        (false, _) => text + &format!(" (there are {})", names.join(", ")),
    }
}
