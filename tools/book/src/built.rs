//! The built book: every link of its pages has a target there.

use crate::links::{attributes, is_elsewhere};
use anyhow::{Result, ensure};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// One line for each link whose target is missing.
pub fn check(out: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    list(out, &mut files)?;
    ensure!(files.iter().any(|file| is_search_index(file)), "{}: no search index", out.display());
    // Reports are checked where they are made; the page for wrong addresses has its links from the
    // site's root.
    let is_page = |file: &&PathBuf| {
        file.extension().is_some_and(|extension| extension == "html")
            && !file.starts_with(out.join("reports"))
            && !file.ends_with("404.html")
    };
    let pages: Vec<&PathBuf> = files.iter().filter(is_page).collect();
    let mut texts = HashMap::new();
    let mut ids = HashMap::new();
    for &page in &pages {
        let text = std::fs::read_to_string(page)?;
        let of_page: HashSet<String> =
            attributes(&text, &["id", "name"]).into_iter().map(|(id, _)| id).collect();
        ids.insert(page.clone(), of_page);
        texts.insert(page.clone(), text);
    }
    let mut problems = Vec::new();
    for page in pages {
        for (target, _) in attributes(&texts[page], &["href", "src"]) {
            if is_elsewhere(&target) || target.starts_with("javascript:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let leads_to = if file.is_empty() { page.clone() } else { plain(&page.with_file_name(file)) };
            let there = match ids.get(&leads_to) {
                Some(ids) => anchor.is_empty() || ids.contains(anchor),
                None => leads_to.is_file(),
            };
            if !there {
                problems.push(format!("{}: {target} is not in the book", page.display()));
            }
        }
    }
    Ok(problems)
}

fn is_search_index(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("searchindex"))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
