//! Sweeps: which values which keys take, and the points that follow.

use super::keys::RANGES;
use super::quantity::{Unit, quantity, written};
use super::reader::Item;
use super::tree::{Node, Origin, Value};
use crate::error::ScenarioError;
use std::sync::Arc;

type Result<T> = std::result::Result<T, ScenarioError>;

/// One dimension of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// The path that is set, or `case`.
    pub(crate) path: String,
    pub(crate) values: Vec<Choice>,
}

/// One value of an axis: what it is called, and what it sets.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) sets: Vec<(String, Node)>,
}

/// Most points of a sweep.
pub(crate) const MAX_POINTS: usize = 100_000;

/// The axes: cases first, then those of `[sweep]` in the order in which they were written. The last
/// one varies fastest.
pub(crate) fn axes(root: &Item<'_>) -> Result<Vec<Axis>> {
    let top = root.table()?;
    let mut axes = vec![];
    if let Some(item) = top.get("case") {
        axes.push(Axis { path: "case".to_owned(), values: cases(&item)? });
    }
    if let Some(item) = top.get("sweep") {
        descend(&item, "", &mut axes)?;
    }
    let points = axes.iter().try_fold(1_usize, |points, axis| points.checked_mul(axis.values.len()));
    if points.is_none_or(|points| points > MAX_POINTS) {
        return Err(root.error(format!("the sweep has more than {MAX_POINTS} points")));
    }
    Ok(axes)
}

fn cases(item: &Item<'_>) -> Result<Vec<Choice>> {
    let mut cases: Vec<Choice> = vec![];
    for item in item.list()? {
        let table = item.table()?;
        let label = table.need("name")?.text()?.to_owned();
        if cases.iter().any(|case| case.label == label) {
            return Err(table.error(format!("two cases are named {label:?}")));
        }
        let mut sets = vec![];
        if let Some(item) = table.get("set") {
            flatten(&item, "", &mut sets)?;
        }
        cases.push(Choice { label, sets });
    }
    if cases.is_empty() {
        return Err(item.error("there is no case"));
    }
    Ok(cases)
}

/// The keys of a case's `set`. What stands behind a path in quotes replaces all that was there;
/// tables behind a simple key lead on, and leave their other keys alone.
fn flatten(item: &Item<'_>, path: &str, sets: &mut Vec<(String, Node)>) -> Result<()> {
    for (key, item) in item.table()?.iter() {
        let whole = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        if item.is_table() && !key.contains('.') {
            flatten(&item, &whole, sets)?;
        } else {
            sets.push((whole, item.node().clone()));
        }
    }
    Ok(())
}

/// The first value that was there before, perhaps written in another way.
fn first_twice<'a>(path: &str, values: &'a [Choice]) -> Option<&'a str> {
    let same = |one: &Choice, other: &Choice| {
        one.label == other.label
            || quantity(path, &one.label).is_some_and(|value| Some(value) == quantity(path, &other.label))
    };
    let twice =
        values.iter().enumerate().find(|(place, value)| values[..*place].iter().any(|old| same(old, value)));
    twice.map(|(_, value)| value.label.as_str())
}

/// Tables lead on along the path; lists and ranges are values.
fn descend(item: &Item<'_>, path: &str, axes: &mut Vec<Axis>) -> Result<()> {
    for (key, item) in item.table()?.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let values = match &item.node().value {
            Value::Array(nodes) => list(nodes, &path),
            Value::Table(_) if item.table()?.has("steps") => range(&item, &path)?,
            Value::Table(_) => {
                descend(&item, &path, axes)?;
                continue;
            }
            _ => {
                return Err(item.error(
                    "write a list of values, or a range { from = \"1mbit\", to = \"100mbit\", steps = 5, scale = \"log\" }",
                ));
            }
        };
        if values.is_empty() {
            return Err(item.error("there is no value"));
        }
        if let Some(twice) = first_twice(&path, &values) {
            return Err(
                item.error(format!("{twice} is there twice, and would be run twice; name each value once"))
            );
        }
        if axes.iter().any(|axis| axis.path == path) {
            return Err(item.error("this key is swept twice"));
        }
        axes.push(Axis { path, values });
    }
    Ok(())
}

fn list(nodes: &[Node], path: &str) -> Vec<Choice> {
    let values = nodes.iter().map(|node| {
        let label = node.to_line();
        let origin = Origin::Given(Arc::from(format!("sweep {path} = {label}")));
        // An error about the value is found where it stands in the text; one that comes of it is
        // told by the point.
        let node = match node.origin {
            Origin::Text(_) => node.clone(),
            Origin::Given(_) => Node { origin, ..node.clone() },
        };
        Choice { label, sets: vec![(path.to_owned(), node)] }
    });
    values.collect()
}

fn range(item: &Item<'_>, path: &str) -> Result<Vec<Choice>> {
    let item = item.as_if(&RANGES);
    let table = item.table()?;
    let end = |key: &str| -> Result<(f64, Unit)> {
        let item = table.need(key)?;
        quantity(path, &item.node().to_line()).ok_or_else(|| {
            item.error("this is no number: a range goes from a number to another one of the same unit")
        })
    };
    let ((from, unit), (to, other)) = (end("from")?, end("to")?);
    if unit != other {
        return Err(table.error("from and to have different units"));
    }
    if from == to {
        return Err(
            table.error("from and to are the same: a range has two ends; for one value write a list of it")
        );
    }
    let steps = table.need("steps")?.integer()? as usize;
    let log = table.or("scale", false, |item| item.choice(&[("linear", false), ("log", true)]))?;
    if log && (from <= 0.0 || to <= 0.0) {
        return Err(table.error("a logarithmic range needs ends larger than zero"));
    }
    let values = (0..steps).map(|step| {
        let share = step as f64 / (steps - 1) as f64;
        let number = if log { from * libm::pow(to / from, share) } else { from + (to - from) * share };
        let label = written(number, unit);
        let value = match (unit, label.parse::<i64>(), label.parse::<f64>()) {
            (Unit::One, Ok(number), _) => Value::Integer(number),
            (Unit::One, _, Ok(number)) => Value::Float(number),
            _ => Value::Text(label.clone()),
        };
        Choice { label, sets: vec![(path.to_owned(), Node { value, origin: item.node().origin.clone() })] }
    });
    let values: Vec<Choice> = values.collect();
    if let Some(twice) = first_twice(path, &values) {
        return Err(
            table.error(format!("the steps are so small that {twice} comes twice; write fewer steps"))
        );
    }
    Ok(values)
}

/// The choices of point `index`: one of each axis.
pub(crate) fn choices(axes: &[Axis], index: usize) -> Vec<&Choice> {
    let mut rest = index;
    let mut choices: Vec<&Choice> = axes
        .iter()
        .rev()
        .map(|axis| {
            let choice = &axis.values[rest % axis.values.len()];
            rest /= axis.values.len();
            choice
        })
        .collect();
    choices.reverse();
    choices
}
