//! What no compiler reads: the text of every tracked file. Conflict markers, rows of tables, the
//! width of comments, and lines that a merge has left twice.

mod prose;

use prose::Line;
use std::path::Path;
use std::process::Command;

/// Columns that a comment may have. Comments wrap at 100; the rest is for a word that would not fit.
const WIDEST: usize = 110;
/// Words that a line must repeat of the line before to count as a leftover of a merge.
const REPEATED: usize = 4;

#[test]
fn text_of_every_tracked_file_is_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = match listed {
        Ok(output) if output.status.success() => output.stdout,
        _ => {
            return ackline::runtime::testing::skip(
                "text_of_every_tracked_file_is_whole",
                &"no git checkout",
            );
        }
    };
    let mut read = 0;
    let mut wrong = Vec::new();
    for name in String::from_utf8_lossy(&listed).split_terminator('\0') {
        // What is deleted and not committed yet has no text, and neither have pictures and captures.
        let Ok(text) = std::fs::read_to_string(root.join(name)) else { continue };
        read += 1;
        wrong.extend(judge(name, &text));
    }
    assert!(read > 1000, "only {read} files read: the check is blind");
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is wrong with a file's text, each as `name:line: what`.
fn judge(name: &str, text: &str) -> Vec<String> {
    let mut wrong = markers(text);
    if name.ends_with(".md") {
        let lines = prose::of_markdown(text);
        wrong.extend(tables(&lines));
        wrong.extend(repetitions(&lines));
    } else if name.ends_with(".rs") {
        let lines = prose::of_comments(text);
        wrong.extend(tables(&lines));
        wrong.extend(repetitions(&lines));
        wrong.extend(wide(text, &lines));
    }
    wrong.sort();
    wrong.into_iter().map(|(line, what)| format!("{name}:{line}: {what}")).collect()
}

type Finding = (usize, String);

/// The lines that `git merge` writes into a file with a conflict. A line of equals signs alone is
/// a heading's underline in Markdown, so it does not count.
fn markers(text: &str) -> Vec<Finding> {
    let marks = ["<", "|", ">"].map(|mark| mark.repeat(7));
    let is_marker = |line: &str| marks.iter().any(|it| line == it || line.starts_with(&format!("{it} ")));
    let found = text.lines().enumerate().filter(|(_, line)| is_marker(line));
    found.map(|(at, _)| (at + 1, "conflict marker".to_owned())).collect()
}

/// Rows that have another number of cells than their table's header, or end without a bar.
fn tables(lines: &[Line<'_>]) -> Vec<Finding> {
    let mut wrong = Vec::new();
    // Cells of the table that the line before belongs to.
    let mut columns = None;
    for (at, line) in lines.iter().enumerate() {
        if line.code || !line.text.starts_with('|') {
            columns = None;
            continue;
        }
        let here = cells(line.text);
        if lines.get(at + 1).is_some_and(|next| !next.code && is_delimiter(next.text)) {
            columns = here;
        }
        match (here, columns) {
            (None, Some(_)) => wrong.push((line.number, "table row that does not end with |".to_owned())),
            (Some(here), Some(wanted)) if here != wanted => {
                wrong.push((line.number, format!("table row of {here} cells below a header of {wanted}")));
            }
            _ => {}
        }
    }
    wrong
}

/// Cells of a row; `None` if it does not end with a bar.
fn cells(row: &str) -> Option<usize> {
    let mut bars = 0;
    let mut escaped = false;
    for c in row.chars() {
        bars += usize::from(c == '|' && !escaped);
        escaped = c == '\\' && !escaped;
    }
    (row.len() > 1 && row.ends_with('|') && !row.ends_with("\\|")).then(|| bars - 1)
}

fn is_delimiter(row: &str) -> bool {
    row.starts_with('|') && row.contains('-') && row.chars().all(|c| "|:- ".contains(c))
}

/// Lines that begin with the words with which the line before ended.
fn repetitions(lines: &[Line<'_>]) -> Vec<Finding> {
    let mut wrong = Vec::new();
    for pair in lines.windows(2) {
        let [before, line] = pair else { continue };
        if before.code || line.code || before.number + 1 != line.number || line.text.starts_with('|') {
            continue;
        }
        let (last, first) = (words(before.text), words(line.text));
        let most = last.len().min(first.len());
        if (REPEATED..=most).any(|n| last[last.len() - n..] == first[..n]) {
            wrong.push((line.number, "repeats the end of the line before".to_owned()));
        }
    }
    wrong
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Comment lines that are too wide. A table's row stands on one line, however long, a link has
/// nowhere to break, and drawings and commands between fences are laid out by hand.
fn wide(text: &str, comments: &[Line<'_>]) -> Vec<Finding> {
    let columns: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
    let mut wrong = Vec::new();
    for line in comments.iter().filter(|line| !line.code) {
        let columns = columns[line.number - 1];
        let table = line.text.starts_with('|');
        let link = line.text.starts_with('[') && line.text.contains("]: ");
        if columns > WIDEST && !table && !link {
            wrong.push((line.number, format!("comment of {columns} columns; it wraps at 100")));
        }
    }
    wrong
}

#[track_caller]
fn found(name: &str, text: &str, wanted: &[&str]) {
    assert_eq!(judge(name, text), wanted, "{text}");
}

#[test]
fn conflict_markers_are_found_in_every_file() {
    let text = ["a", &format!("{} HEAD", "<".repeat(7)), "b", &"=".repeat(7), "c", &">".repeat(7)].join("\n");
    found("x.toml", &text, &["x.toml:2: conflict marker", "x.toml:6: conflict marker"]);
    found("x.md", "Heading\n=======\n", &[]);
}

#[test]
fn broken_rows_are_found() {
    let table = "| a | b |\n|---|---|\n| 1 | x \\| y |\n| 2 | `z` |\n";
    found("x.md", table, &[]);
    found("x.md", &format!("{table}| 3 |\n"), &["x.md:5: table row of 1 cells below a header of 2"]);
    found(
        "x.md",
        &format!("{table}| 3 | a row in\ntwo lines |\n"),
        &["x.md:5: table row that does not end with |"],
    );
    found("x.md", "```text\n| 3 | no table\n```\n", &[]);
    let comments = "/// | a | b |\n/// |---|---|\n/// | 1 |\nstruct S;\n";
    found("x.rs", comments, &["x.rs:3: table row of 1 cells below a header of 2"]);
    found("x.rs", "// |a - b| is the distance.\n", &[]);
}

#[test]
fn wide_comments_are_found() {
    let words = "word ".repeat(22);
    found("x.rs", &format!("// {words}\n"), &["x.rs:1: comment of 113 columns; it wraps at 100"]);
    found("x.rs", &format!("let s = \"{words}\"; // why\n"), &[]);
    found("x.rs", &format!("/// | {words} |\n/// ```text\n/// {words}\n/// ```\n"), &[]);
}

#[test]
fn a_line_that_repeats_the_end_of_the_one_before_is_found() {
    let text = "It counts what was sent\nwhat was sent and not acknowledged.\n";
    found("x.md", text, &[]);
    let text = "It counts all that was sent\nall that was sent and not acknowledged.\n";
    found("x.md", text, &["x.md:2: repeats the end of the line before"]);
    found(
        "x.rs",
        "//! The same line, twice.\n//! The same line, twice.\n",
        &["x.rs:2: repeats the end of the line before"],
    );
}
