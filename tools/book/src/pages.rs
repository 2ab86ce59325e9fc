//! The Markdown pages of the repository.

use crate::links;
use anyhow::{Context as _, Result, ensure};
use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

/// The folder that the book is made of, and its table of contents.
pub const BOOK: &str = "docs";
pub const SUMMARY: &str = "docs/SUMMARY.md";

#[derive(Debug)]
pub struct Page {
    /// From the root of the repository, with `/`.
    pub path: String,
    pub text: String,
}

/// All pages that git has or would add. Page templates of `ackline reproduce` are left out: their
/// links hold where the finished page goes.
pub fn read(root: &Path) -> Result<Vec<Page>> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    ensure!(git.status.success(), "git ls-files: {}", String::from_utf8_lossy(&git.stderr).trim());
    let listed = String::from_utf8(git.stdout).context("a file name that is not UTF-8")?;
    let mut pages = Vec::new();
    for path in listed.split_terminator('\0') {
        if path.starts_with("crates/papers/src/studies/") || !root.join(path).exists() {
            continue;
        }
        let text = std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        pages.push(Page { path: path.to_owned(), text });
    }
    Ok(pages)
}

/// Pages of the book that its table of contents leaves out.
pub fn not_in_summary(pages: &[Page]) -> Vec<String> {
    let summary = pages.iter().find(|page| page.path == SUMMARY);
    let listed: HashSet<String> = summary
        .map(|summary| links::of(&summary.text))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|link| resolve(SUMMARY, &link.target))
        .collect();
    let in_book = |page: &&Page| page.path.starts_with("docs/") && page.path != SUMMARY;
    let missing = pages.iter().filter(in_book).filter(|page| !listed.contains(&page.path));
    missing.map(|page| format!("{SUMMARY}: {} is missing", page.path)).collect()
}

/// Where a relative link of the page leads, from the root of the repository; `None` if that is
/// outside of it.
pub fn resolve(page: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{Page, not_in_summary, resolve};

    #[test]
    fn relative_links_are_resolved_from_the_page() {
        assert_eq!(resolve("docs/a/b.md", "../c.md").as_deref(), Some("docs/c.md"));
        assert_eq!(resolve("README.md", "./docs/").as_deref(), Some("docs"));
        assert_eq!(resolve("docs/a.md", "../../x"), None);
    }

    #[test]
    fn a_page_of_the_book_must_be_in_its_summary() {
        let page = |path: &str, text: &str| Page { path: path.into(), text: text.into() };
        let pages = [
            page("docs/SUMMARY.md", "- [A](a.md)\n"),
            page("docs/a.md", ""),
            page("docs/b/c.md", ""),
            page("README.md", ""),
        ];
        assert_eq!(not_in_summary(&pages), ["docs/SUMMARY.md: docs/b/c.md is missing"]);
    }
}
