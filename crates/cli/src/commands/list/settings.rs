//! The settings of connections and hosts, with ranges, defaults and sources.

use crate::output;
use ackline::Registry;
use ackline::registry::{OptionInfo, Scope};
use ackline_lab::wrap;
use serde::Serialize;
use std::fmt::Write as _;

#[derive(Serialize)]
struct Row {
    scope: &'static str,
    name: &'static str,
    aliases: &'static [&'static str],
    range: String,
    default: String,
    summary: &'static str,
    source: &'static str,
}

impl From<OptionInfo> for Row {
    fn from(info: OptionInfo) -> Self {
        let scope = match info.scope {
            Scope::Conn => "conn",
            Scope::Host => "host",
        };
        let OptionInfo { name, aliases, range, default, summary, source, .. } = info;
        Self { scope, name, aliases, range, default, summary, source }
    }
}

/// The list as text, JSON or Markdown.
pub(super) fn text(registry: &Registry, scope: Scope, json: bool, markdown: bool) -> String {
    let rows: Vec<Row> = registry.option_infos(scope).into_iter().map(Row::from).collect();
    match (json, markdown) {
        (true, _) => output::json(&rows),
        (false, true) => as_markdown(&rows),
        (false, false) => plain(scope, &rows),
    }
}

fn plain(scope: Scope, rows: &[Row]) -> String {
    let heading = match scope {
        Scope::Conn => "Settings of a connection (-o KEY=VALUE; [conn] in a scenario)",
        Scope::Host => "Settings of a host (-o KEY=VALUE; [host] and [[node]] in a scenario)",
    };
    let names = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{heading}\n");
    for Row { name, aliases, range, default, summary, source, .. } in rows {
        let mut notes = vec![];
        if !aliases.is_empty() {
            notes.push(format!("also: {}", aliases.join(", ")));
        }
        if !source.is_empty() {
            notes.push((*source).to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let default = if default.is_empty() { "none" } else { default };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", wrap(&format!("  {name:names$}  {summary}{notes}"), names + 4));
        let line = format!("  {:names$}    [{range}; default: {default}]", "");
        let _ = writeln!(text, "{}", wrap(&line, names + 6));
    }
    text
}

fn as_markdown(rows: &[Row]) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut text = "| key | what it does | range | default | source |\n|---|---|---|---|---|\n".to_owned();
    for Row { name, aliases, range, default, summary, source, .. } in rows {
        let keys: Vec<String> = [name].into_iter().chain(*aliases).map(|name| format!("`{name}`")).collect();
        let default = if default.is_empty() { String::new() } else { format!("`{}`", cell(default)) };
        let _ = writeln!(
            text,
            "| {} | {} | `{}` | {default} | {} |",
            keys.join(", "),
            cell(summary),
            cell(range),
            cell(source)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_all_options_is_what_the_tables_say() {
        let page = include_str!("../../../../../docs/options.md");
        for (scope, name) in [(Scope::Conn, "conn"), (Scope::Host, "host")] {
            let table = text(&Registry::default(), scope, false, true);
            let command = format!("ackline list {name} --markdown");
            assert!(
                page.contains(&format!("\n{table}")),
                "docs/options.md lacks what `{command}` prints:\n{table}"
            );
        }
    }

    /// What stands there as `` `key` (value) `` is the setting's default.
    #[test]
    fn the_page_on_timers_has_the_defaults_of_today() {
        let page = include_str!("../../../../../docs/timers.md");
        let registry = Registry::default();
        let infos: Vec<OptionInfo> =
            [Scope::Conn, Scope::Host].into_iter().flat_map(|scope| registry.option_infos(scope)).collect();
        let mut checked = 0;
        for (place, _) in page.match_indices("` (") {
            let name = page[..place].rsplit('`').next().unwrap_or("");
            let Some(info) = infos.iter().find(|info| info.name == name) else { continue };
            let value = page[place + 3..].split([')', ';']).next().unwrap_or("");
            assert_eq!(value, info.default, "docs/timers.md: {name}");
            checked += 1;
        }
        assert!(checked >= 18, "only {checked} defaults");
    }

    #[test]
    fn every_option_is_listed_with_range_and_default() {
        let text = text(&Registry::default(), Scope::Conn, false, false);
        for line in [
            "  initial_window           initial window in segments (also: iw; RFC 6928)",
            "[1..65535; default: 10]",
            "[NAME[:KEY=VALUE,...], see: ackline list cc; default: cubic]",
            "[off|classic|dctcp|accurate; default: off]",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
