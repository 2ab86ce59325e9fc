//! Text that fits on a terminal.

/// The widest line that commands print, in characters.
pub const WIDTH: usize = 100;

/// `text` with line breaks between words, so that no line has more than [`WIDTH`] characters. Lines
/// that continue another one begin with `indent` spaces. A longer word stays whole.
#[must_use]
pub fn wrap(text: &str, indent: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, indent)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, indent: usize) -> String {
    let width = |text: &str| text.chars().count();
    if width(line) <= WIDTH {
        return line.to_owned();
    }
    let (mut wrapped, mut used, mut is_first) = (String::new(), 0, true);
    // A word with the spaces before it, so that those inside a line stay as they are.
    let mut rest = line;
    while !rest.is_empty() {
        let begin = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[begin..].find(' ').map_or(rest.len(), |at| begin + at);
        let (word, after) = rest.split_at(end);
        if !is_first && used + width(word) > WIDTH {
            let word = word.trim_start();
            wrapped += &format!("\n{:indent$}{word}", "");
            used = indent + width(word);
        } else {
            wrapped += word;
            used += width(word);
        }
        (rest, is_first) = (after, false);
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_spaces() {
        assert_eq!(wrap("  short  line\nother", 4), "  short  line\nother");
        let long = format!("  name  {}", "word ".repeat(40));
        let wrapped = wrap(&long, 8);
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH), "{wrapped}");
        assert!(wrapped.starts_with("  name  word") && wrapped.contains("\n        word"), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().count(), 41);
        assert_eq!(wrap(&"µ".repeat(100), 0), "µ".repeat(100));
        let path = "p".repeat(150);
        assert_eq!(wrap(&format!("into {path} now"), 2), format!("into\n  {path}\n  now"));
    }
}
