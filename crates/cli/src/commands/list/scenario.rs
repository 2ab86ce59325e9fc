//! The keys of a scenario file, with types, ranges and defaults.

use crate::output;
use ackline::registry::Scope;
use ackline_lab::scenario::keys::{Key, SECTIONS, Section};
use ackline_lab::wrap;
use serde::Serialize;
use std::fmt::Write as _;

#[derive(Serialize)]
struct Row {
    section: &'static str,
    /// The kind of the section that has the key; `null`: every kind.
    kind: Option<&'static str>,
    name: &'static str,
    needed: bool,
    #[serde(rename = "type")]
    type_name: String,
    range: String,
    unit: &'static str,
    default: Option<&'static str>,
    summary: &'static str,
    choices: Vec<Choice>,
}

#[derive(Serialize)]
struct Choice {
    name: &'static str,
    summary: &'static str,
}

/// The keys as text, JSON or Markdown.
pub(super) fn text(json: bool, markdown: bool) -> String {
    match (json, markdown) {
        (true, _) => output::json(&SECTIONS.iter().flat_map(|section| rows(section)).collect::<Vec<Row>>()),
        (false, true) => SECTIONS.iter().map(|section| as_markdown(section)).collect::<Vec<_>>().join("\n"),
        (false, false) => {
            let sections: Vec<String> = SECTIONS.iter().map(|section| plain(section)).collect();
            wrap(&sections.join("\n"), 6)
        }
    }
}

fn rows(section: &Section) -> Vec<Row> {
    let row = |kind: Option<&'static str>, key: &Key| Row {
        section: section.heading,
        kind,
        name: key.name,
        needed: key.is_needed(),
        type_name: key.type_name(),
        range: key.range(),
        unit: key.unit(),
        default: key.default(),
        summary: key.summary,
        choices: key.choices().iter().map(|(name, summary)| Choice { name, summary }).collect(),
    };
    let kind_key = (!section.kinds.is_empty()).then(|| Row {
        section: section.heading,
        kind: None,
        name: "kind",
        needed: section.default_kind.is_none(),
        type_name: "choice".to_owned(),
        range: section.kinds.iter().map(|kind| format!("`\"{}\"`", kind.name)).collect::<Vec<_>>().join(", "),
        unit: "",
        default: section.default_kind,
        summary: "which of the kinds below",
        choices: section.kinds.iter().map(|kind| Choice { name: kind.name, summary: kind.summary }).collect(),
    });
    let common = section.keys.iter().map(|key| row(None, key));
    let own =
        section.kinds.iter().flat_map(|kind| kind.keys.iter().map(move |key| row(Some(kind.name), key)));
    kind_key.into_iter().chain(common).chain(own).collect()
}

impl Row {
    /// The type, the range and what is counted: `integer, 0 to 65535 bytes`.
    fn value(&self) -> String {
        let Self { type_name, range, unit, .. } = self;
        let space = if unit.is_empty() { "" } else { " " };
        match (type_name.as_str(), range.as_str()) {
            ("choice", _) => range.clone(),
            (_, "") => type_name.clone(),
            _ => format!("{type_name}, {range}{space}{unit}"),
        }
    }

    /// What it does; of a choice, what each name means, unless the kinds are described below.
    fn meaning(&self) -> String {
        if self.name == "kind" || self.choices.is_empty() {
            return self.summary.to_owned();
        }
        let names: Vec<String> =
            self.choices.iter().map(|choice| format!("`{}`: {}", choice.name, choice.summary)).collect();
        format!("{}. {}", self.summary, names.join("; "))
    }
}

/// The settings that a section or a kind takes beside its own keys.
const fn settings(scope: Option<Scope>) -> Option<(&'static str, &'static str)> {
    match scope {
        Some(Scope::Conn) => Some(("a connection", "conn")),
        Some(Scope::Host) => Some(("a host", "host")),
        None => None,
    }
}

fn plain(section: &Section) -> String {
    let rows = rows(section);
    let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{}\n  {}\n", section.heading, section.summary);
    let also = |text: &mut String, scope| {
        if let Some((what, list)) = settings(scope) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  and the settings of {what}: ackline list {list}");
        }
    };
    let mut kind = None;
    also(&mut text, section.options);
    for row in &rows {
        if row.kind != kind {
            kind = row.kind;
            let _ = writeln!(text, "  of kind {}:", kind.unwrap_or(""));
        }
        let default = match (row.needed, row.default) {
            (true, _) => "; needed".to_owned(),
            (false, Some(default)) => format!("; default: {default}"),
            (false, None) => String::new(),
        };
        let _ = writeln!(text, "  {:names$}  {}", row.name, row.summary.replace('`', ""));
        for choice in &row.choices {
            let _ = writeln!(text, "  {:names$}    {}: {}", "", choice.name, choice.summary.replace('`', ""));
        }
        let _ = writeln!(
            text,
            "  {:names$}    [{}{}]",
            "",
            row.value().replace('`', ""),
            default.replace('`', "")
        );
    }
    for kind in section.kinds {
        if settings(kind.options).is_some() {
            let _ = writeln!(text, "  of kind {}:", kind.name);
            also(&mut text, kind.options);
        }
    }
    text
}

fn as_markdown(section: &Section) -> String {
    // What is written in the file is code, what describes a place is not.
    let ticks = if section.heading.contains(['[', '{']) { "`" } else { "" };
    let mut text = format!("### {ticks}{}{ticks}\n\n{}\n", section.heading, section.summary);
    let settings = |text: &mut String, scope| {
        // Writing to a string cannot fail.
        let _ = match scope {
            Some(Scope::Conn) => {
                writeln!(
                    text,
                    "\nAlso every [setting of a connection](options.md#connections) (`ackline list conn`)."
                )
            }
            Some(Scope::Host) => writeln!(
                text,
                "\nAlso every [setting of a host](options.md#hosts) but its addresses, which the network gives (`ackline list host`)."
            ),
            None => Ok(()),
        };
    };
    let rows = rows(section);
    let table = |text: &mut String, kind: Option<&str>| {
        let mut of_kind = rows.iter().filter(|row| row.kind == kind).peekable();
        if of_kind.peek().is_none() {
            return;
        }
        text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for row in of_kind {
            let default = match (row.needed, row.default) {
                (true, _) => "needed".to_owned(),
                (false, Some(default)) => default.to_owned(),
                (false, None) => String::new(),
            };
            let _ = writeln!(
                text,
                "| `{}` | {} | {default} | {} |",
                row.name,
                row.value().replace('|', "\\|"),
                row.meaning().replace('|', "\\|")
            );
        }
    };
    table(&mut text, None);
    settings(&mut text, section.options);
    for kind in section.kinds {
        let _ = writeln!(text, "\n**`kind = \"{}\"`** {}", kind.name, kind.summary);
        table(&mut text, Some(kind.name));
        settings(&mut text, kind.options);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_scenario_file_is_what_the_tables_say() {
        let page = include_str!("../../../../../docs/scenario-format.md");
        let mut rest = page;
        for section in SECTIONS {
            let block = as_markdown(section);
            let Some(at) = rest.find(&format!("\n{block}\n")) else {
                panic!(
                    "docs/scenario-format.md lacks, in this place, what `ackline list scenario --markdown` prints:\n{block}"
                )
            };
            rest = &rest[at + block.len()..];
        }
        let headings = page.lines().filter(|line| line.starts_with("### ")).count();
        assert_eq!(headings, SECTIONS.len(), "a heading of no section");
    }

    #[test]
    fn every_key_is_listed_with_its_type_and_default() {
        let text = text(false, false);
        for line in [
            "  framing      bytes that this link adds to each packet's price\n                 [integer, 0 to 65535 bytes; default: 0]",
            "                         stis: A wireless path",
            "  and the settings of a connection: ackline list conn",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let json: serde_json::Value = serde_json::from_str(&super::text(true, false)).unwrap();
        let rows = json.as_array().unwrap();
        let row =
            rows.iter().find(|row| row["section"] == "queue = {...}" && row["name"] == "max_p").unwrap();
        assert_eq!((&row["kind"], &row["default"]), (&"red".into(), &"0.02".into()));
    }
}
