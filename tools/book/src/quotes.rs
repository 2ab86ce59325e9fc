//! Code and output that pages quote. A comment before a fenced block says where its text comes
//! from:
//!
//! ```text
//! <!-- code: examples/plugin/src/main.rs -->
//! <!-- code: crates/cli/templates/cc.rs; name=gentle; until #[cfg(test)] -->     {{name}} is replaced; the part before that line
//! <!-- code: crates/cli/templates/cc.rs; name=gentle; from #[cfg(test)] -->      the part from that line on
//! <!-- output: ackline list rto -->
//! ```

use crate::pages::Page;
use anyhow::{Context as _, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// One line for each block that is not what its source says. With `write` the pages and their files
/// are corrected instead.
pub fn check(root: &Path, ackline: &Path, pages: &mut [Page], write: bool) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for page in pages {
        let correct =
            renew(&page.text, |source| text_of(root, ackline, source)).with_context(|| page.path.clone())?;
        if correct == page.text {
            continue;
        }
        if write {
            std::fs::write(root.join(&page.path), &correct)?;
            page.text = correct;
        } else {
            let differs = |(ours, theirs): (&str, &str)| ours != theirs;
            let line = page.text.lines().zip(correct.lines()).position(differs).map_or(0, |line| line + 1);
            problems.push(format!(
                "{}:{line}: not what the quoted source says; correct it with .ci/book --write",
                page.path
            ));
        }
    }
    Ok(problems)
}

/// The page with every quoted block replaced by what its source says.
fn renew(text: &str, source: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut renewed = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n');
    // Inside of a block that is not a quotation, comments are text.
    let mut open: Option<&str> = None;
    while let Some(line) = lines.next() {
        renewed.push_str(line);
        if let Some(fence) = fence(line) {
            open = match open {
                None => Some(fence),
                Some(opened) if fence.len() >= opened.len() && line.trim() == fence => None,
                still => still,
            };
            continue;
        }
        let Some(quoted) = quotation(line).filter(|_| open.is_none()) else { continue };
        let opening = lines.by_ref().find(|line| {
            renewed.push_str(line);
            !line.trim().is_empty()
        });
        let fence =
            opening.and_then(fence).with_context(|| format!("no fenced block after {}", line.trim()))?;
        let correct = source(quoted)?;
        ensure!(
            !correct.lines().any(|line| line.starts_with(fence)),
            "{quoted}: the block needs a longer fence than {fence}"
        );
        renewed.push_str(&correct);
        let closing = lines.by_ref().find(|line| line.trim_end() == fence);
        renewed.push_str(closing.with_context(|| format!("the block of {quoted} has no end"))?);
    }
    Ok(renewed)
}

/// Backticks that open or close a block.
fn fence(line: &str) -> Option<&str> {
    let length = line.bytes().take_while(|byte| *byte == b'`').count();
    (length >= 3).then(|| &line[..length])
}

fn quotation(line: &str) -> Option<&str> {
    let inside = line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    (inside.starts_with("code: ") || inside.starts_with("output: ")).then_some(inside)
}

fn text_of(root: &Path, ackline: &Path, quoted: &str) -> Result<String> {
    if let Some(command) = quoted.strip_prefix("output: ackline ") {
        let output = Command::new(ackline)
            .args(command.split_whitespace())
            .current_dir(root)
            .env("COLUMNS", "100")
            .output()
            .context("cannot run ackline")?;
        ensure!(
            output.status.success(),
            "ackline {command}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        return Ok(String::from_utf8(output.stdout)?);
    }
    let mut parts = quoted.trim_start_matches("code: ").split("; ");
    let path = parts.next().unwrap_or_default();
    let mut text = std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
    for part in parts {
        let line = |wanted: &str| {
            let at = if text.starts_with(wanted) {
                Some(0)
            } else {
                text.find(&format!("\n{wanted}")).map(|at| at + 1)
            };
            at.with_context(|| format!("{path} has no line that begins with {wanted}"))
        };
        if let Some(wanted) = part.strip_prefix("until ") {
            text = format!("{}\n", text[..line(wanted)?].trim_end());
        } else if let Some(wanted) = part.strip_prefix("from ") {
            text = text.split_off(line(wanted)?);
        } else if let Some((key, value)) = part.split_once('=') {
            text = text.replace(&format!("{{{{{key}}}}}"), value);
        } else {
            bail!("{quoted}: {part:?} is not KEY=VALUE, from LINE or until LINE");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{renew, text_of};
    use std::path::Path;

    #[test]
    fn a_block_becomes_what_its_source_says() {
        let page = "a\n\n<!-- code: x -->\n```rust\nold\n```\nb\n";
        let renewed = renew(page, |quoted| Ok(format!("new {quoted}\n"))).unwrap();
        assert_eq!(renewed, "a\n\n<!-- code: x -->\n```rust\nnew code: x\n```\nb\n");
    }

    #[test]
    fn blocks_without_a_source_and_comments_inside_of_blocks_stay() {
        let page = "```\n<!-- code: x -->\n```\n<!-- a note -->\n```\nmine\n```\n";
        assert_eq!(renew(page, |_| panic!("nothing is quoted")).unwrap(), page);
    }

    #[test]
    fn a_comment_without_a_block_is_an_error() {
        assert!(renew("<!-- code: x -->\ntext\n", |_| Ok(String::new())).is_err());
        assert!(renew("<!-- code: x -->\n```\nno end\n", |_| Ok(String::new())).is_err());
    }

    #[test]
    fn a_file_is_quoted_whole_or_in_part() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let part = |quoted: &str| text_of(root, Path::new("none"), quoted);
        assert_eq!(
            part("code: Cargo.toml; until description").unwrap(),
            "[package]\nname = \"ackline-book\"\n"
        );
        assert_eq!(part("code: Cargo.toml; from [workspace]").unwrap(), "[workspace]\n");
        assert!(part("code: Cargo.toml; from [nothing]").is_err());
        assert!(part("code: Cargo.toml; nonsense").is_err());
        assert!(part("code: gone.toml").is_err());
    }
}
