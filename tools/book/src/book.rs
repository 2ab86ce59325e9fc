//! The book itself: mdBook over docs/, with links that lead out of docs/ turned to the forge, and
//! the reports framed.

use crate::links;
use crate::pages::{BOOK, resolve};
use anyhow::{Context as _, Result};
use mdbook_driver::MDBook;
use mdbook_driver::book::BookItem;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FORGE: &str = "https://github.com/ackline/ackline";

/// Builds the book and returns its folder.
pub fn build(root: &Path, reports: &Path) -> Result<PathBuf> {
    let mut book = MDBook::load(root)?;
    let mut framed = BTreeSet::new();
    book.book.for_each_mut(|item| {
        if let BookItem::Chapter(chapter) = item
            && let Some(path) = &chapter.path
        {
            let page = format!("{BOOK}/{}", path.display());
            chapter.content = frame_reports(&page, &turn_links(root, &page, &chapter.content), &mut framed);
        }
    });
    book.build()?;
    let out = root.join(&book.config.build.build_dir);
    for name in framed {
        let from = reports.join(&name).join("report.html");
        let to = out.join("reports").join(&name);
        std::fs::create_dir_all(&to)?;
        std::fs::copy(&from, to.join("report.html")).with_context(|| from.display().to_string())?;
    }
    Ok(out)
}

/// Links to what the book does not have lead to the forge; a link to a folder of docs/, to the
/// folder's page.
fn turn_links(root: &Path, page: &str, text: &str) -> String {
    let mut turned = text.to_owned();
    for link in links::of(text).into_iter().rev() {
        let (file, anchor) =
            link.target.find('#').map_or((&link.target[..], ""), |at| link.target.split_at(at));
        if file.is_empty() || links::is_elsewhere(file) {
            continue;
        }
        let Some(target) = resolve(page, file) else { continue };
        let folder = root.join(&target).is_dir();
        let in_book = target == BOOK || target.starts_with("docs/");
        let to = match (in_book, folder) {
            // A folder's README is its index in the book.
            (true, true) => format!("{}/index.md{anchor}", file.trim_end_matches('/')),
            (true, false) => match file.strip_suffix("README.md") {
                Some(folder) => format!("{folder}index.md{anchor}"),
                None => continue,
            },
            (false, true) => format!("{FORGE}/tree/main/{target}"),
            (false, false) => format!("{FORGE}/blob/main/{target}{anchor}"),
        };
        turned.replace_range(link.at, &to);
    }
    turned
}

/// `<!-- report: NAME -->` becomes a frame with that report. On the forge it stays a comment.
fn frame_reports(page: &str, text: &str, framed: &mut BTreeSet<String>) -> String {
    let up = "../".repeat(page.matches('/').count() - 1);
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let name = line.trim().strip_prefix("<!-- report: ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(name) = name else {
            out.push_str(line);
            continue;
        };
        framed.insert(name.to_owned());
        let file = format!("{up}reports/{name}/report.html");
        out.push_str(&format!(
            "<p><a href=\"{file}\">The report on a page of its own</a></p>\n\
             <iframe src=\"{file}\" title=\"Report: {name}\" loading=\"lazy\" style=\"width: 100%; height: 85vh; border: 1px solid #8888\"></iframe>\n"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{frame_reports, turn_links};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn links_out_of_the_book_lead_to_the_forge() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let turned = |text: &str| turn_links(root, "docs/page.md", text);
        assert_eq!(
            turned("[a](../README.md#x) [b](cli.md#y) [c](../examples)"),
            "[a](https://github.com/ackline/ackline/blob/main/README.md#x) [b](cli.md#y) \
             [c](https://github.com/ackline/ackline/tree/main/examples)"
        );
        assert_eq!(
            turned("[s](scenarios/) [r](scenarios/README.md#x) [t](#here)"),
            "[s](scenarios/index.md) [r](scenarios/index.md#x) [t](#here)"
        );
    }

    #[test]
    fn a_report_is_framed_where_the_page_asks_for_it() {
        let mut framed = BTreeSet::new();
        let text = frame_reports("docs/a/page.md", "a\n<!-- report: one -->\nb\n", &mut framed);
        assert!(text.contains("<iframe src=\"../reports/one/report.html\""), "{text}");
        assert_eq!(framed.into_iter().collect::<Vec<_>>(), ["one"]);
    }
}
