//! The commands that pages show: each fenced `sh` block is run on a small network of its own, or
//! says why not. Comments before a block say how:
//!
//! ```text
//! <!-- stage: crate cc gentle -->          what there is beside the network; see tools/book/stage/settings
//! <!-- not run: it takes half an hour -->
//! <!-- run by: .ci/run -->                 that script has each line of the block
//! <!-- file: two.toml -->                  before a block of any kind: its text is a file for the page's commands
//! <!-- printed -->                         before a block of any kind: the commands of the last sh block print its lines, perhaps with other
//!                                          numbers and units; or the commands in it do, which stand behind "$ "
//! ```
//!
//! A line's own comment names the peer that the reader has to start: `# with: COMMAND` beside it,
//! `# and: COMMAND` once it waits to be asked.

use crate::pages::Page;
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// At most one block of so many may be left out.
const ONE_IN: usize = 10;
/// How many blocks run at a time. Most of them wait for the clock.
const AT_A_TIME: usize = 3;
/// What has not ended by then has failed. Some compile.
const LONGEST: Duration = Duration::from_secs(1500);

#[derive(Debug, PartialEq, Eq)]
enum How {
    Run { stage: String },
    RunBy(String),
    NotRun(String),
}

#[derive(Debug)]
struct Block<'a> {
    page: &'a str,
    /// Of the opening fence, from 1.
    line: usize,
    text: &'a str,
    how: How,
    /// Lines that it prints.
    prints: &'a str,
}

/// One command, which may have been several lines.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    command: String,
    with: String,
    and: String,
}

/// Runs the blocks of README and docs, those of pages whose name contains `only`, and prints what
/// was and was not run.
pub fn run(root: &Path, ackline: &Path, target: &Path, pages: &[Page], only: Option<&str>) -> Result<()> {
    let mut blocks = Vec::new();
    let mut files = Vec::new();
    for page in pages.iter().filter(|page| is_for_users(&page.path)) {
        let (of_page, files_of_page) =
            blocks_of(&page.path, &page.text).with_context(|| page.path.clone())?;
        blocks.extend(of_page);
        files.extend(files_of_page);
    }
    for block in &blocks {
        if let How::RunBy(script) = &block.how {
            let script_text = std::fs::read_to_string(root.join(script)).with_context(|| script.clone())?;
            for line in lines(block.text) {
                ensure!(
                    script_text.contains(&line.command),
                    "{}:{}: {script} does not run {}",
                    block.page,
                    block.line,
                    line.command
                );
            }
        }
    }
    let wanted = |block: &&Block<'_>| {
        let name = format!("{}:{}", block.page, block.line);
        matches!(block.how, How::Run { .. }) && only.is_none_or(|only| name.contains(only))
    };
    let waiting: Mutex<VecDeque<&Block<'_>>> = Mutex::new(blocks.iter().filter(wanted).collect());
    let count = waiting.lock().expect("no panic").len();
    let (failed, skipped) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(count) {
            scope.spawn(|| {
                loop {
                    let Some(block) = waiting.lock().expect("no panic").pop_front() else { break };
                    let of_page: Vec<_> = files.iter().filter(|file| file.page == block.page).collect();
                    let begun = Instant::now();
                    let outcome = execute(root, ackline, target, block, &of_page);
                    let took = begun.elapsed().as_secs_f64();
                    match outcome {
                        Ok(None) => println!("{}:{}: {took:.1} s", block.page, block.line),
                        Ok(Some(why)) => skipped
                            .lock()
                            .expect("no panic")
                            .push(format!("SKIPPED: {}:{}: {why}", block.page, block.line)),
                        Err(error) => {
                            println!("{}:{}: FAILED after {took:.1} s\n{error:#}\n", block.page, block.line);
                            failed
                                .lock()
                                .expect("no panic")
                                .push(format!("FAILED: {}:{}", block.page, block.line));
                        }
                    }
                }
            });
        }
    });
    let (mut elsewhere, mut left_out) = (0, 0);
    for block in &blocks {
        match &block.how {
            How::Run { .. } => {}
            How::RunBy(script) => {
                elsewhere += 1;
                println!("run by {script}: {}:{}", block.page, block.line);
            }
            How::NotRun(reason) => {
                left_out += 1;
                println!("not run: {}:{}: {reason}", block.page, block.line);
            }
        }
    }
    let (failed, skipped) = (failed.into_inner().expect("no panic"), skipped.into_inner().expect("no panic"));
    for line in skipped.iter().chain(&failed) {
        println!("{line}");
    }
    println!(
        "{} blocks of commands: {} run, {elsewhere} run by other parts of CI, {left_out} not run, {} skipped, {} failed",
        blocks.len(),
        count - skipped.len(),
        skipped.len(),
        failed.len()
    );
    ensure!(failed.is_empty(), "documented commands do not work as written");
    ensure!(
        left_out * ONE_IN <= blocks.len(),
        "{left_out} of {} blocks are not run: at most one in {ONE_IN} may be",
        blocks.len()
    );
    Ok(())
}

/// Pages whose commands a user of ackline types, as opposed to those for who changes it.
fn is_for_users(path: &str) -> bool {
    path == "README.md"
        || path.starts_with("docs/")
        || (path.starts_with("crates/") && path.ends_with("/README.md"))
}

/// A file that a page shows.
#[derive(Debug)]
struct Shown<'a> {
    page: &'a str,
    name: String,
    text: &'a str,
}

/// The blocks of commands of a page, and the files that it shows.
fn blocks_of<'a>(page: &'a str, text: &'a str) -> Result<(Vec<Block<'a>>, Vec<Shown<'a>>)> {
    let (mut blocks, mut files) = (Vec::new(), Vec::new());
    let mut at = 0;
    let mut number = 0;
    let mut comments: Vec<&str> = Vec::new();
    while at < text.len() {
        let line = next_line(text, at);
        number += 1;
        at += line.len();
        let trimmed = line.trim();
        let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
        if ticks >= 3 {
            let (opened, start) = (number, at);
            let mut end = at;
            loop {
                ensure!(end < text.len(), "the block of line {opened} has no end");
                let line = next_line(text, end);
                number += 1;
                at = end + line.len();
                if line.trim() == &trimmed[..ticks] {
                    break;
                }
                end = at;
            }
            let inside = &text[start..end];
            let value = |key: &str| comments.iter().find_map(|comment| comment.strip_prefix(key));
            if let Some(name) = value("file: ") {
                files.push(Shown { page, name: name.to_owned(), text: inside });
            }
            if comments.contains(&"printed") {
                if inside.starts_with("$ ") {
                    let how = How::Run { stage: value("stage: ").unwrap_or("plain").to_owned() };
                    blocks.push(Block { page, line: opened, text: inside, how, prints: inside });
                } else {
                    let last = blocks.last_mut().with_context(|| format!("nothing prints line {opened}"))?;
                    last.prints = inside;
                }
            }
            if trimmed[ticks..].trim() == "sh" {
                let how = match (value("not run: "), value("run by: ")) {
                    (Some(reason), None) => How::NotRun(reason.to_owned()),
                    (None, Some(script)) => How::RunBy(script.to_owned()),
                    (None, None) => How::Run { stage: value("stage: ").unwrap_or("plain").to_owned() },
                    (Some(_), Some(_)) => bail!("the block of line {opened} is both run and not run"),
                };
                blocks.push(Block { page, line: opened, text: inside, how, prints: "" });
            }
            comments.clear();
        } else if let Some(comment) = trimmed.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"))
        {
            comments.push(comment);
        } else if !trimmed.is_empty() {
            comments.clear();
        }
    }
    Ok((blocks, files))
}

fn next_line(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    rest.find('\n').map_or(rest, |end| &rest[..=end])
}

/// The commands of a block.
fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut joined = String::new();
    for line in text.lines() {
        joined.push_str(line);
        if let Some(continued) = joined.strip_suffix('\\') {
            joined.truncate(continued.len());
            continue;
        }
        let (command, comment) = split_comment(&joined);
        if !command.is_empty() {
            let peer = |word: &str| comment.strip_prefix(word).unwrap_or_default().trim().to_owned();
            lines.push(Line { command: command.to_owned(), with: peer("with:"), and: peer("and:") });
        }
        joined.clear();
    }
    lines
}

/// A command and its comment, which begins at a `#` outside of quotes and behind a space.
fn split_comment(line: &str) -> (&str, &str) {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return (line[..at].trim(), line[at + 1..].trim()),
            _ => {}
        }
        before = c;
    }
    (line.trim(), "")
}

/// The commands of a block that has them behind "$ ", and what they print.
fn session(text: &str) -> Option<String> {
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    (!commands.is_empty()).then(|| commands.join("\n"))
}

/// A line without what differs from run to run: numbers, their units, and spaces.
fn shape(line: &str) -> String {
    const UNITS: [&str; 12] = [
        "Bytes",
        "KBytes",
        "MBytes",
        "GBytes",
        "bits/sec",
        "Kbits/sec",
        "Mbits/sec",
        "Gbits/sec",
        "ns",
        "us",
        "ms",
        "s",
    ];
    let mut shape: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        if UNITS.contains(&word.trim_end_matches(',')) && shape.last().is_some_and(|last| last.contains('#'))
        {
            continue;
        }
        let mut masked = String::new();
        for c in word.chars() {
            let is_of_number = c.is_ascii_digit() || (c == '.' && masked.ends_with('#'));
            match (is_of_number, masked.ends_with('#')) {
                (true, true) => {}
                (true, false) => masked.push('#'),
                (false, _) => masked.push(c),
            }
        }
        shape.push(masked);
    }
    shape.join(" ")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What `run` ends with if a program is missing.
const MISSING: &str = "exit status: 77";

/// Runs a block in namespaces that end with it. Returns why it was skipped, if it was. The error
/// has what was printed.
fn execute(
    root: &Path,
    ackline: &Path,
    target: &Path,
    block: &Block<'_>,
    files: &[&Shown<'_>],
) -> Result<Option<String>> {
    let How::Run { stage } = &block.how else { return Ok(None) };
    let mut script = String::new();
    for file in files {
        // Writing to a string does not fail.
        let _ = writeln!(script, "printf %s {} >{}", quoted(file.text), quoted(&file.name));
    }
    let session = session(block.text);
    for Line { command, with, and } in lines(session.as_deref().unwrap_or(block.text)) {
        let _ = writeln!(script, "command_line {} {} {}", quoted(&command), quoted(&with), quoted(&and));
    }
    let folder = tempfile::tempdir()?;
    let (calls, log) = (folder.path().join("block"), folder.path().join("log"));
    std::fs::write(&calls, script)?;
    let output = std::fs::File::create(&log)?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(root.join("tools/book/stage/run")).args([root, target, ackline, &calls]);
    command.args(stage.split_whitespace()).current_dir(root);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let mut child = command.spawn().context("unshare")?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status.to_string();
        }
        if begun.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            break format!("not done within {} s", LONGEST.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let printed = std::fs::read(&log)?;
    let printed = String::from_utf8_lossy(&printed);
    if status == "exit status: 0" {
        let shapes: HashSet<String> = printed.lines().map(shape).collect();
        let absent = block.prints.lines().find(|line| *line != "..." && !shapes.contains(&shape(line)));
        return match absent {
            None => Ok(None),
            Some(line) => bail!("{printed}\nit does not print\n{line}"),
        };
    }
    if status == MISSING {
        return Ok(Some(printed.lines().last().unwrap_or_default().to_owned()));
    }
    let last: Vec<&str> = printed.lines().rev().take(60).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    bail!("{}\n{status}", last.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{How, Line, blocks_of, lines, shape};

    #[test]
    fn a_block_says_how_it_is_run() {
        let page = "a\n```sh\none\n```\n<!-- not run: slow -->\n```sh\ntwo\n```\n\
                    <!-- stage: crate cc x -->\n\n```sh\nthree\n```\n<!-- file: x.toml -->\n```toml\nk = 1\n```\n\
                    <!-- not run: no -->\ntext\n```sh\nfour\n```\n````text\n```sh\nno\n```\n````\n";
        let (blocks, files) = blocks_of("p", page).unwrap();
        let run = |stage: &str| How::Run { stage: stage.to_owned() };
        let seen: Vec<_> = blocks.iter().map(|block| (block.line, block.text, &block.how)).collect();
        assert_eq!(
            seen,
            [
                (2, "one\n", &run("plain")),
                (6, "two\n", &How::NotRun("slow".to_owned())),
                (11, "three\n", &run("crate cc x")),
                (20, "four\n", &run("plain")),
            ]
        );
        assert_eq!((files.len(), &*files[0].name, files[0].text), (1, "x.toml", "k = 1\n"));
        assert!(blocks_of("p", "```sh\none\n").is_err());
    }

    #[test]
    fn what_is_printed_may_have_other_numbers() {
        let line = "[  5]   0.00-1.00   sec   119 MBytes  1.00 Gbits/sec    0   1.12 MBytes      80 us";
        assert_eq!(shape(line), "[ #] #-# sec # # # # #");
        assert_eq!(shape("[  5] 0.00-10.05 sec 1.1 GBytes 9 Mbits/sec 0 767 KBytes 1.35 ms"), shape(line));
        assert_ne!(shape("rto 5 ms"), shape("rtt 5 ms"));
        let page =
            "```sh\na\n```\n\n<!-- printed -->\n```\none\n```\n<!-- printed -->\n```text\n$ b\ntwo\n```\n";
        let (blocks, _) = blocks_of("p", page).unwrap();
        let prints: Vec<_> = blocks.iter().map(|block| (block.line, block.prints)).collect();
        assert_eq!(prints, [(1, "one\n"), (10, "$ b\ntwo\n")]);
        assert!(blocks_of("p", "<!-- printed -->\n```\none\n```\n").is_err());
    }

    #[test]
    fn a_lines_comment_names_its_peer() {
        let line = |command: &str, with: &str, and: &str| Line {
            command: command.to_owned(),
            with: with.to_owned(),
            and: and.to_owned(),
        };
        assert_eq!(
            lines("a 'x # y' b#c   # with: nc -l 5 > copy\nb \\\n  c # and: d\n\n# e\nf # more\n"),
            [line("a 'x # y' b#c", "nc -l 5 > copy", ""), line("b   c", "", "d"), line("f", "", ""),]
        );
    }
}
