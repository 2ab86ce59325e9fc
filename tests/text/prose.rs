//! The lines of prose in Markdown and in Rust's comments, with code told apart.

/// One line without its indentation and comment mark.
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    /// From 1.
    pub(crate) number: usize,
    /// Inside a fenced block.
    pub(crate) code: bool,
}

pub(crate) fn of_markdown(text: &str) -> Vec<Line<'_>> {
    fenced(text.lines().enumerate().map(|(at, line)| Line { text: line.trim(), number: at + 1, code: false }))
}

pub(crate) fn of_comments(text: &str) -> Vec<Line<'_>> {
    let lines = text.lines().enumerate();
    fenced(lines.filter_map(|(at, line)| Some(Line { text: comment(line)?, number: at + 1, code: false })))
}

/// The text of a line that has nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.strip_prefix(['/', '!']).unwrap_or(rest).trim())
}

/// Marks what stands between fences. A gap in the numbers ends a comment, and a fence with it.
fn fenced<'a>(lines: impl Iterator<Item = Line<'a>>) -> Vec<Line<'a>> {
    let mut inside = false;
    let mut last = 0;
    lines
        .map(|line| {
            let fence = line.text.starts_with("```") || line.text.starts_with("~~~");
            inside &= line.number == last + 1;
            last = line.number;
            let code = inside || fence;
            inside ^= fence;
            Line { code, ..line }
        })
        .collect()
}
