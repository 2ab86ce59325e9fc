//! Names: the README has every crate and every command, and every benchmark that a page names
//! exists.

use crate::pages::Page;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::Command;

const README: &str = "README.md";

/// One line for each name that is missing.
pub fn check(root: &Path, ackline: &Path, pages: &[Page]) -> Result<Vec<String>> {
    let readme = pages.iter().find(|page| page.path == README).context(README)?;
    let help = Command::new(ackline).arg("-h").output().context("cannot run ackline")?;
    ensure!(help.status.success(), "ackline -h: {}", String::from_utf8_lossy(&help.stderr).trim());
    let mut problems = Vec::new();
    for name in crates(root)? {
        if !readme.text.contains(&format!("`{name}`")) {
            problems.push(format!("{README}: the crate {name} is missing"));
        }
    }
    for name in commands(&String::from_utf8(help.stdout)?) {
        if !readme.text.contains(&format!("`ackline {name}")) {
            problems.push(format!("{README}: the command ackline {name} is missing"));
        }
    }
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    for page in pages {
        for name in benchmarks(&page.text) {
            if !manifest.contains(&format!("name = \"{name}\"")) {
                problems.push(format!("{}: there is no benchmark {name}", page.path));
            }
        }
    }
    Ok(problems)
}

fn crates(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let manifest = entry?.path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        names.push(name.with_context(|| manifest.display().to_string())?.to_owned());
    }
    names.sort();
    Ok(names)
}

/// The commands that clap lists: two spaces, a word, and what it does. Longer descriptions go on
/// further in.
fn commands(help: &str) -> Vec<&str> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

fn benchmarks(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.split("cargo bench --bench ").skip(1).filter_map(move |rest| {
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::{benchmarks, commands};

    #[test]
    fn names_are_found() {
        let help = "A stack\n\nUsage: x\n\nCommands:\n  demo   Exchange\n         data\n  new    Create\n  help   Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["demo", "new"]);
        let text = "`cargo bench --bench idle`, cargo bench --bench beside_linux -- --quick, cargo bench --bench NAME";
        assert_eq!(benchmarks(text).collect::<Vec<_>>(), ["idle", "beside_linux", "NAME"]);
    }
}
