//! The same dialogues with the kernel of this machine: it answers alike, or docs/differences.md
//! says why not.
//!
//! `ACKLINE_WRITE=1 cargo test --test drill linux`, as root, writes the page's table anew; what
//! stands in its last column stays.

use crate::scripts;
use ackline_drill::kernel::Kernel;
use ackline_drill::{Options, Outcome, Relaxations, Report, judge, run_on};
use ackline_runtime::testing::{has_programs, skip};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scripts that run at once: they mostly wait.
const AT_ONCE: usize = 12;
/// How often a script that failed runs again, alone: the kernel's clock is the machine's.
const TRIES: usize = 3;
const BEGIN: &str = "<!-- differences: begin -->\n";
const END: &str = "<!-- differences: end -->\n";
/// What stands in the last column of a difference that nobody has explained.
const UNKNOWN: &str = "unexplained";

/// A script whose answers differ.
struct Difference {
    script: String,
    line: u32,
    stack: String,
    linux: String,
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/differences.md")
}

fn options() -> Options {
    // Options in another order, the size of windows and where PSH stands are each stack's own, and
    // so is when to acknowledge (RFC 1122, section 4.2.3.2).
    Options { relax: Relaxations { options: true, window: true, psh: true, ack: true }, ..Options::default() }
}

fn run_all(texts: &[&str], workers: usize) -> Vec<Report> {
    let options = options();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = vec![];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(at) else { return done };
            done.push((at, run_on(text, &options, Kernel::open)));
        }
    };
    let mut numbered: Vec<(usize, Report)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    numbered.sort_by_key(|(at, _)| *at);
    let mut reports: Vec<Report> = numbered.into_iter().map(|(_, report)| report).collect();
    judge(&mut reports, texts);
    reports
}

/// The differences, how many scripts were asked, and why the others were not.
fn differences() -> (Vec<Difference>, usize, BTreeMap<String, usize>) {
    let all = scripts();
    let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
    let reports = run_all(&texts, AT_ONCE);
    let (mut found, mut asked, mut unasked) = (vec![], 0, BTreeMap::new());
    for ((file, text), report) in all.iter().zip(reports) {
        let mut outcome = report.outcome;
        for _ in 0..TRIES {
            if !matches!(outcome, Outcome::Failed(_)) {
                break;
            }
            outcome = run_all(&[text], 1).remove(0).outcome;
        }
        match outcome {
            Outcome::Passed => asked += 1,
            Outcome::Failed(failure) => {
                asked += 1;
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drill");
                let script = file.strip_prefix(folder).expect("a script of the folder").display().to_string();
                let line = text.lines().nth(failure.line as usize - 1).unwrap_or_default().trim();
                let stack = failure.expected.unwrap_or_else(|| line.to_owned());
                let linux = failure.got.unwrap_or(failure.reason);
                found.push(Difference { script, line: failure.line, stack, linux });
            }
            Outcome::Unsupported { reason, .. } => *unasked.entry(reason).or_default() += 1,
            Outcome::Unreadable { problem, .. } => panic!("{}: {problem}", file.display()),
        }
    }
    (found, asked, unasked)
}

/// A row of the page.
struct Row {
    line: String,
    linux: String,
    why: String,
}

/// The rows of the page, by script.
fn rows(text: &str) -> BTreeMap<String, Row> {
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, line, _, linux, why] = cells[..] else { return None };
        let script = name.strip_prefix('[')?.split(']').next()?.to_owned();
        let (line, linux, why) = (line.to_owned(), linux.trim_matches('`').to_owned(), why.to_owned());
        Some((script, Row { line, linux, why }))
    });
    rows.collect()
}

fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// The answer without numbers that differ from run to run.
fn steady(text: &str) -> String {
    let is_time = |word: &str| word.contains('.') && word.trim_end_matches(',').parse::<f64>().is_ok();
    // The number of a SYN that the script does not know.
    let is_isn = |word: &str| {
        word.split_once(':')
            .is_some_and(|(number, _)| number.parse::<u32>().is_ok_and(|number| number > 99_999))
    };
    let mut before = "";
    let words = text.split(' ').map(|word| {
        // TS val, of a clock that runs while the script waits.
        let is_timestamp = std::mem::replace(&mut before, word) == "val";
        if is_time(word) || is_isn(word) || is_timestamp { "…" } else { word }
    });
    words.collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn table(found: &[Difference], asked: usize, unasked: &BTreeMap<String, usize>, old: &str) -> String {
    let rows = rows(old);
    let others: usize = unasked.values().sum();
    let mut text = format!(
        "Linux {}: {asked} scripts asked, {} answered alike, {} differently; {others} not asked, below.\n\n",
        release(),
        asked - found.len(),
        found.len()
    );
    text += "| script | line | the stack | Linux | why both are allowed |\n|---|---|---|---|---|\n";
    for Difference { script, line, stack, linux } in found {
        let why = rows.get(script).map_or(UNKNOWN, |row| row.why.as_str());
        let (stack, linux) = (steady(stack), steady(linux));
        text +=
            &format!("| [{script}](../tests/drill/{script}) | {line} | `{stack}` | `{linux}` | {why} |\n");
    }
    text += "\nNot asked, and how many scripts each:\n\n";
    for (reason, count) in unasked {
        text += &format!("- {count}: {}\n", reason.replace('<', "&lt;"));
    }
    text
}

#[test]
fn linux_answers_alike_or_the_page_says_why_not() {
    const NAME: &str = "linux::linux_answers_alike_or_the_page_says_why_not";
    if !rustix::process::geteuid().is_root() {
        return skip(NAME, &"the kernel's TCP is asked as root");
    }
    if !Path::new("/dev/net/tun").exists() {
        return skip(NAME, &"there is no /dev/net/tun");
    }
    if !has_programs(NAME, &["python3"]) {
        return;
    }
    let text = fs::read_to_string(page()).expect("the page");
    let writes = std::env::var_os("ACKLINE_WRITE").is_some();
    if !writes && !text.contains(&format!("Linux {}:", release())) {
        return skip(NAME, &format!("the page is of another kernel than {}", release()));
    }
    let (found, asked, unasked) = differences();
    assert!(asked > 100, "{asked} scripts were asked: {unasked:?}");
    if writes {
        let (before, rest) = text.split_once(BEGIN).expect("the table's begin");
        let (old, after) = rest.split_once(END).expect("the table's end");
        let table = table(&found, asked, &unasked, old);
        fs::write(page(), format!("{before}{BEGIN}{table}{END}{after}")).expect("the page is written");
    }
    let mut known = rows(&text);
    let new: Vec<String> = found
        .iter()
        .filter(|found| {
            let row = known.remove(&found.script);
            row.is_none_or(|row| row.line != found.line.to_string() || row.linux != steady(&found.linux))
        })
        .map(|found| format!("{}:{}: {} / {}", found.script, found.line, found.stack, found.linux))
        .collect();
    assert!(writes || new.is_empty(), "differences that the page does not have:\n{}", new.join("\n"));
    assert!(writes || known.is_empty(), "differences that are gone: {:?}", known.keys());
}

#[test]
fn each_difference_has_a_reason() {
    let rows = rows(&fs::read_to_string(page()).expect("the page"));
    assert!(!rows.is_empty(), "the page has no rows");
    for (script, Row { why, .. }) in rows {
        assert!(why != UNKNOWN && !why.is_empty(), "{script}");
        assert!(why.contains("section") || why.contains("Linux"), "{script}: {why}");
    }
}
