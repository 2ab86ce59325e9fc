//! System calls: a name, arguments, and what the call returns.

use super::ScriptError;
use super::cursor::Cursor;

/// A system call and its expected result.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// The expected result.
    pub result: Expr,
    /// The expected error, if the result is -1.
    pub errno: Option<String>,
}

/// A value in a system call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Int(i64),
    /// A string in quotes.
    Text(String),
    /// Names of constants, joined by `|`.
    Names(Vec<String>),
    /// `...`: what the runner chooses, or does not check.
    Ellipsis,
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{name=value, value}`.
    Struct(Vec<Field>),
    /// `htons(8080)`.
    Apply(String, Vec<Expr>),
}

/// A field of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name; empty, if only the value is given.
    pub name: String,
    /// Its value.
    pub value: Expr,
}

impl Expr {
    /// The field `name` of a structure.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Struct(fields) => fields.iter().find(|field| field.name == name).map(|field| &field.value),
            _ => None,
        }
    }
}

/// The rest of a call, behind its name.
pub(super) fn call(cursor: &mut Cursor<'_>, name: &str) -> Result<Call, ScriptError> {
    let args = arguments(cursor)?;
    cursor.expect("=")?;
    let result = expr(cursor)?;
    cursor.skip_space()?;
    let word = cursor.peek_word();
    let mut errno = None;
    if word.starts_with('E') && word.len() > 1 && !word.starts_with(|c: char| c.is_ascii_digit()) {
        errno = Some(cursor.word()?.to_owned());
    }
    if cursor.eat("(")? {
        cursor.until(")")?;
    }
    Ok(Call { name: name.to_owned(), args, result, errno })
}

/// Arguments in parentheses, the opening one included.
fn arguments(cursor: &mut Cursor<'_>) -> Result<Vec<Expr>, ScriptError> {
    cursor.expect("(")?;
    items(cursor, ")")
}

fn items(cursor: &mut Cursor<'_>, end: &str) -> Result<Vec<Expr>, ScriptError> {
    let mut all = vec![];
    while !cursor.eat(end)? {
        if !all.is_empty() {
            cursor.expect(",")?;
        }
        all.push(expr(cursor)?);
    }
    Ok(all)
}

pub(super) fn expr(cursor: &mut Cursor<'_>) -> Result<Expr, ScriptError> {
    cursor.skip_space()?;
    if cursor.eat("...")? {
        return Ok(Expr::Ellipsis);
    }
    match cursor.peek() {
        Some('"') => {
            cursor.expect("\"")?;
            let text = cursor.until("\"")?.to_owned();
            // `"text"...9000` repeats the text up to a length, which nothing here looks at.
            if cursor.eat("...")? {
                cursor.number()?;
            }
            Ok(Expr::Text(text))
        }
        Some('[') => {
            cursor.expect("[")?;
            Ok(Expr::List(items(cursor, "]")?))
        }
        Some('{') => structure(cursor),
        Some('`') => cursor.unsupported("the output of a shell command as a value"),
        Some('-' | '0'..='9') => {
            let number = cursor.number()?;
            // A flag as a number among names.
            if cursor.eat("|")? {
                let rest = expr(cursor)?;
                return match rest {
                    Expr::Int(other) => Ok(Expr::Int(number | other)),
                    Expr::Names(mut names) => {
                        names.push(number.to_string());
                        Ok(Expr::Names(names))
                    }
                    _ => cursor.error("only numbers and names can be joined by |"),
                };
            }
            Ok(Expr::Int(number))
        }
        _ => names(cursor),
    }
}

fn names(cursor: &mut Cursor<'_>) -> Result<Expr, ScriptError> {
    let mut names = vec![];
    loop {
        cursor.skip_space()?;
        if let Some('0'..='9') = cursor.peek() {
            names.push(cursor.number()?.to_string());
        } else {
            let word = cursor.word()?;
            if word.is_empty() {
                return cursor.expected("a value");
            }
            if names.is_empty() && cursor.eat("(")? {
                return Ok(Expr::Apply(word.to_owned(), items(cursor, ")")?));
            }
            match cursor.defined(word) {
                Some(value) if names.is_empty() && value.starts_with('"') => {
                    return Ok(Expr::Text(value.trim_matches('"').to_owned()));
                }
                Some(value) => names.push(value.to_owned()),
                None => names.push(word.to_owned()),
            }
        }
        if !cursor.eat("|")? {
            break;
        }
    }
    if let [one] = names.as_slice()
        && let Ok(number) = one.parse()
    {
        return Ok(Expr::Int(number));
    }
    Ok(Expr::Names(names))
}

fn structure(cursor: &mut Cursor<'_>) -> Result<Expr, ScriptError> {
    cursor.expect("{")?;
    let mut fields: Vec<Field> = vec![];
    while !cursor.eat("}")? {
        if !fields.is_empty() {
            cursor.expect(",")?;
        }
        let value = expr(cursor)?;
        // `name = value`, or `name(count) = value`.
        let name = match &value {
            Expr::Names(names) if names.len() == 1 => names.first().cloned(),
            Expr::Apply(name, _) => Some(name.clone()),
            _ => None,
        };
        match name {
            Some(name) if cursor.eat("=")? => fields.push(Field { name, value: expr(cursor)? }),
            _ => fields.push(Field { name: String::new(), value }),
        }
    }
    Ok(Expr::Struct(fields))
}
