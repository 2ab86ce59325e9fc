//! Reading a peer's JSON, which may hold anything.

use serde_json::Value;

/// Longest text that is taken from a peer, in characters; more is cut off.
const MAX_TEXT: usize = 1024;

/// A number that is not negative. Some write whole numbers with a fraction.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.is_finite() && *float >= 0.0)?;
        (float < u64::MAX as f64).then_some(float as u64)
    })
}

/// A number of at most `most`; 0 if there is none; the error says which is wrong.
pub(super) fn bounded(document: &Value, name: &str, most: u64) -> Result<u64, String> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => number(value)
            .filter(|number| *number <= most)
            .ok_or_else(|| format!("{name} is not a number from 0 to {most}")),
    }
}

/// True for `true` and for numbers other than 0.
pub(super) fn flag(document: &Value, name: &str) -> bool {
    match document.get(name) {
        Some(Value::Bool(on)) => *on,
        Some(value) => number(value).is_some_and(|number| number > 0),
        None => false,
    }
}

/// A text on one line; without what would steer a terminal.
pub(super) fn text(document: &Value, name: &str) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    Some(text.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect())
}

/// Lines of text; without what would steer a terminal, but for line ends and tabs.
pub(super) fn lines(document: &Value, name: &str) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    Some(text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect())
}
