//! From the options of a path to what its links are made of, with the words and the checks of
//! scenarios.

use crate::args::emulate::PathArgs;
use crate::failure::Failure;
use ackline_emulate::LinkSpec;
use ackline_lab::Scenario;

/// A scenario with one link. What is not there does not matter to the link.
const BASE: &str = "\
duration = '1s'
node = [{ name = 'inside' }, { name = 'outside' }]
app = [{ kind = 'bulk', from = 'inside', to = 'outside' }]
[[link]]
name = 'path'
between = ['inside', 'outside']
";

/// The way out and the way back.
pub(super) fn links(args: &PathArgs) -> Result<[LinkSpec; 2], Failure> {
    once("--up", &args.up)?;
    once("--down", &args.down)?;
    if let Some(path) =
        args.path.as_deref().filter(|path| path.split([':', ',']).any(|part| part.starts_with("way=")))
    {
        return Err(Failure::usage(format!(
            "--path {path}: the program is at the user's end; leave out way="
        )));
    }
    let mut scenario = Scenario::parse(BASE, "path").map_err(|error| Failure::usage(error.to_string()))?;
    for (option, setting) in settings(args) {
        scenario = scenario
            .with_set([format!("link.path.{setting}")])
            .map_err(|error| Failure::usage(format!("{option}: {}", error.message)))?;
    }
    let links: Vec<LinkSpec> = scenario.links().into_iter().map(|(_, link)| link).collect();
    links.try_into().map_err(|_| Failure::usage("a path has two directions"))
}

/// Fails if two settings of an option have the same key: the first would not count.
fn once(option: &str, settings: &[String]) -> Result<(), Failure> {
    let keys = || settings.iter().map(|setting| setting.split('=').next().unwrap_or(setting).trim());
    match keys().enumerate().find(|(place, key)| keys().take(*place).any(|before| before == *key)) {
        Some((_, key)) => Err(Failure::usage(format!("{option}: {key} is given twice; leave one out"))),
        None => Ok(()),
    }
}

/// Each option as it was given, and what it sets in the link: `rate=5mbit`, `back.rate=5mbit`.
fn settings(args: &PathArgs) -> Vec<(String, String)> {
    let (impairing, impairments) = impairments(args);
    let both = [
        ("--rate", "rate", args.rate.clone()),
        ("--delay", "delay", args.delay.clone()),
        ("--trace", "trace", args.trace.clone()),
        ("--queue", "queue", args.queue.as_deref().map(queue)),
        (&impairing, "impairments", impairments),
    ];
    // The way out of the program is the user's way up.
    let named = args.path.as_deref().map(|name| {
        let ending = if name.contains(':') { "," } else { ":" };
        ("--path".to_owned(), format!("path={name}{ending}way=up"))
    });
    let both = both.into_iter().flat_map(|(option, key, value)| {
        let each = |value| ["", "back."].map(|way| (option.to_owned(), format!("{way}{key}={value}")));
        value.map(each).into_iter().flatten()
    });
    let one = |option: &str, way: &str, setting: &String| {
        (format!("{option} {setting}"), format!("{way}{}", spelled(setting)))
    };
    let up = args.up.iter().map(|setting| one("--up", "", setting));
    let down = args.down.iter().map(|setting| one("--down", "back.", setting));
    named.into_iter().chain(both).chain(up).chain(down).collect()
}

/// `queue=codel:target=5ms` and `queue=50p` become what a scenario has.
fn spelled(value: &str) -> String {
    match value.split_once('=') {
        Some(("queue", text)) => format!("queue={}", queue(text)),
        _ => value.to_owned(),
    }
}

/// `50p`, `codel`, `codel:target=5ms,limit=100p` as an inline table.
fn queue(text: &str) -> String {
    let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
    if kind.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("{{ kind = 'drop-tail', limit = '{text}' }}");
    }
    let mut table = format!("{{ kind = '{kind}'");
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
        table += &format!(", {key} = {}", literal(value));
    }
    table + " }"
}

/// A value as TOML has it: numbers and switches as they are, all else as a text.
fn literal(value: &str) -> String {
    let is_bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
    if is_bare { value.to_owned() } else { format!("'{value}'") }
}

/// The options that name impairments, and all of these in the order of a packet's way.
fn impairments(args: &PathArgs) -> (String, Option<String>) {
    let given: Vec<(&str, String)> = [
        ("--loss", "loss", "probability", &args.loss),
        ("--duplicate", "duplicate", "probability", &args.duplicate),
        ("--corrupt", "corrupt", "probability", &args.corrupt),
        ("--jitter", "jitter", "limit", &args.jitter),
    ]
    .into_iter()
    .filter_map(|(option, kind, key, value)| {
        let value = literal(value.as_ref()?);
        Some((option, format!("{{ kind = '{kind}', {key} = {value} }}")))
    })
    .collect();
    let join = |parts: Vec<&str>| parts.join(", ");
    let options = join(given.iter().map(|(option, _)| *option).collect());
    let all = join(given.iter().map(|(_, table)| table.as_str()).collect());
    (options, (!given.is_empty()).then(|| format!("[{all}]")))
}
