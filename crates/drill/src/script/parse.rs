//! The whole of a script: option lines, shell lines, and events with their times.

use super::cursor::{Cursor, is_word};
use super::{Action, Event, Script, ScriptError, Shell, When, call, packet};
use std::sync::Arc;

pub(super) fn script(text: &str, defines: &[(String, String)]) -> Result<Script, ScriptError> {
    let mut own = defines.to_vec();
    let (options, after) = options(text, &mut own)?;
    let mut cursor = Cursor::new(text, after, &own);
    let mut script = Script { text: Arc::from(text), options, init: None, events: vec![], cleanup: None };
    cursor.skip_space()?;
    if cursor.peek() == Some('`') {
        script.init = Some(shell(&mut cursor)?);
    }
    loop {
        cursor.skip_space()?;
        match cursor.peek() {
            None => break,
            Some('`') if script.cleanup.is_none() => script.cleanup = Some(shell(&mut cursor)?),
            Some(_) if script.cleanup.is_some() => {
                return cursor.error("nothing can follow the shell lines at the end");
            }
            Some(_) => script.events.push(event(&mut cursor)?),
        }
    }
    if script.events.is_empty() {
        return cursor.error("there are no events");
    }
    Ok(script)
}

type OptionLines = Vec<(String, Option<String>)>;

/// The `--option` lines, and where they end.
fn options(text: &str, defines: &mut Vec<(String, String)>) -> Result<(OptionLines, usize), ScriptError> {
    let mut options = vec![];
    let mut end = 0;
    loop {
        let mut cursor = Cursor::new(text, end, &[]);
        cursor.skip_space()?;
        let rest = cursor.rest();
        end = cursor.position();
        let is_option = rest.starts_with("--") || rest.starts_with("-D");
        if !is_option {
            return Ok((options, end));
        }
        let line = rest.lines().next().unwrap_or_default();
        end += line.len();
        // Several may stand on a line; a comment ends it.
        let line = line.split("//").next().unwrap_or_default();
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            if let Some(define) = word.strip_prefix("-D").or_else(|| word.strip_prefix("--define=")) {
                let define = if define.is_empty() { words.next().unwrap_or_default() } else { define };
                let (name, value) = define.split_once('=').unwrap_or((define, "1"));
                defines.push((name.to_owned(), value.to_owned()));
                continue;
            }
            let Some(option) = word.strip_prefix("--") else {
                return cursor.expected("an option that begins with --");
            };
            options.push(match option.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.trim_matches('"').to_owned())),
                None => (option.to_owned(), None),
            });
        }
    }
}

fn shell(cursor: &mut Cursor<'_>) -> Result<Shell, ScriptError> {
    cursor.expect("`")?;
    let place = cursor.place();
    Ok(Shell { place, text: cursor.until("`")?.to_owned() })
}

fn event(cursor: &mut Cursor<'_>) -> Result<Event, ScriptError> {
    cursor.skip_space()?;
    let place = cursor.place();
    let (when, until) = time(cursor)?;
    cursor.skip_space()?;
    let action = match cursor.peek() {
        Some('<' | '>') => Action::Packet(packet::packet(cursor)?),
        Some('`') => Action::Shell(shell(cursor)?),
        Some('%') => {
            cursor.expect("%{")?;
            Action::Python(cursor.until("}%")?.to_owned())
        }
        Some(c) if is_word(c) => {
            let name = cursor.word()?;
            if !cursor.rest().trim_start().starts_with('(') {
                return cursor.expected("( behind the name of a system call");
            }
            Action::Call { call: call::call(cursor, name)?, until }
        }
        _ => return cursor.expected("a packet (< or >), a system call, `shell` or %{ python }%"),
    };
    match (&action, when) {
        (Action::Packet(line), _) if line.is_outbound() => {}
        (_, When::Any | When::Between(..) | When::BetweenAfter(..)) => {
            return Err(ScriptError::new(place, "only a packet that is expected can have a range of times"));
        }
        _ => {}
    }
    if until.is_some() && !matches!(action, Action::Call { .. }) {
        return Err(ScriptError::new(place, "only a system call can have an end"));
    }
    Ok(Event { place, when, action })
}

/// A time, and the end of a call that blocks.
fn time(cursor: &mut Cursor<'_>) -> Result<(When, Option<u64>), ScriptError> {
    if cursor.eat("*")? {
        return Ok((When::Any, None));
    }
    let relative = cursor.eat("+")?;
    cursor.skip_space()?;
    let first = cursor.seconds()?;
    if cursor.eat("~")? {
        let also = cursor.eat("+")?;
        if also != relative {
            return cursor.error("both ends of a range are relative (+), or none is");
        }
        cursor.skip_space()?;
        let last = cursor.seconds()?;
        if last < first {
            return cursor.error("the range ends before it begins");
        }
        return Ok((
            if relative { When::BetweenAfter(first, last) } else { When::Between(first, last) },
            None,
        ));
    }
    let mut until = None;
    if cursor.eat("...")? {
        cursor.eat("+")?;
        cursor.skip_space()?;
        let end = cursor.seconds()?;
        if end < first {
            return cursor.error("the call ends before it begins");
        }
        until = Some(end);
    }
    Ok((if relative { When::After(first) } else { When::At(first) }, until))
}
