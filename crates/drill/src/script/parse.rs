//! The whole of a script: option lines, shell lines, and events with their times.

use super::cursor::{Cursor, is_word};
use super::{Action, Event, Script, ScriptError, ScriptTime, Shell, call, packet};
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
        (_, ScriptTime::Any | ScriptTime::Between(..) | ScriptTime::BetweenAfter(..)) => {
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
fn time(cursor: &mut Cursor<'_>) -> Result<(ScriptTime, Option<u64>), ScriptError> {
    if cursor.eat("*")? {
        return Ok((ScriptTime::Any, None));
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
            if relative { ScriptTime::BetweenAfter(first, last) } else { ScriptTime::Between(first, last) },
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
    Ok((if relative { ScriptTime::After(first) } else { ScriptTime::At(first) }, until))
}

#[cfg(test)]
mod tests {
    use crate::script::{Action, Script, ScriptTime};

    fn parse(text: &str) -> Script {
        Script::parse(text, &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn times_are_absolute_relative_any_or_ranges() {
        let script = parse(
            "1.5 > . 1:1(0) ack 1
             +.0000019 > . 1:1(0) ack 1
             * > . 1:1(0) ack 1
             .2~.3 > . 1:1(0) ack 1
             +.2~+.3 > . 1:1(0) ack 1
             +0...0.1 read(4, ..., 10) = 10",
        );
        let times: Vec<ScriptTime> = script.events.iter().map(|event| event.when).collect();
        let expected = [
            ScriptTime::At(1_500_000),
            ScriptTime::After(1),
            ScriptTime::Any,
            ScriptTime::Between(200_000, 300_000),
            ScriptTime::BetweenAfter(200_000, 300_000),
            ScriptTime::After(0),
        ];
        assert_eq!(times, expected);
        assert!(matches!(script.events[5].action, Action::Call { until: Some(100_000), .. }));
    }

    #[test]
    fn packets_are_written_as_they_were_read() {
        for line in [
            "< S 0:0(0) win 1000 <mss 1460,sackOK,TS val 5 ecr 0,nop,wscale 7>",
            "> [ect0] P. 1:1001(1000) ack 1 <nop,nop,sack 1:2 5:6>",
            "< [ect01] . 1:1(0) ack 1 win 0",
            "> 8080 > 49152 FP. 4294967295:4(5) ack 1 win 7 urg 3",
            "> . 1:1(0) ack 1 <...>",
            "< - 1:1(0) win 5",
            "< S 0:10(10) win 5 <FO 0011223344556677,nop,nop,FOEXP>",
            "< . 1:1(0) ack 1 win 5 <ECN e1b 1 ceb 0 e0b 9,nop>",
            "< icmp unreachable frag_needed mtu 1200 [1:1461(1460)]",
        ] {
            let outbound = line.replace("< [ect01]", "> [ect01]");
            let script = parse(&format!("+0 {outbound}"));
            let Action::Packet(packet) = &script.events[0].action else { panic!("{line}") };
            assert_eq!(packet.to_string(), outbound);
        }
    }

    #[test]
    fn an_error_has_its_place_and_says_what_would_be_right() {
        for (text, expected) in [
            ("+0 < S 0:0(0)\n", "2:1: a packet into the stack needs its window: win N"),
            ("\n+0 > S 0:5(4)\n", "2:14: 0:5(4) does not agree: 0:5 are 5 bytes"),
            ("+0 > S 0:0(0) <mss 1460,nop>", "1:29: the options take 5 bytes"),
            ("+0 > Q 0:0(0)", "1:6: expected flags"),
            ("+0 read(4, ..., 1000 = 5", "1:22: expected \",\""),
            ("5~4 > . 1:1(0)", "1:4: the range ends before it begins"),
            ("", "1:1: there are no events"),
            ("+0 /* no end", "1:4: this comment has no end"),
        ] {
            let error = Script::parse(text, &[]).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{text:?}: {error}");
            assert!(!error.unsupported);
        }
        assert!(Script::parse("+0 < udp (1000)", &[]).unwrap_err().unsupported);
    }

    #[test]
    fn words_are_replaced_by_what_is_defined() {
        let defines = [("SIZE".to_owned(), "300".to_owned())];
        let script = Script::parse("-D LEN=10\n+0 read(4, ..., SIZE) = LEN", &defines).unwrap();
        let Action::Call { call, .. } = &script.events[0].action else { panic!() };
        assert_eq!(
            (&call.args[2], &call.result),
            (&crate::script::Expr::Int(300), &crate::script::Expr::Int(10))
        );
    }
}
