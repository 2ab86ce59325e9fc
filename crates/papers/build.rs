//! Hashes what decides the output of a run, so that outputs of other sources are not taken for
//! those of these: the crates of which a simulation consists, with their dependencies, and each
//! file of the studies.
//!
//! Comments, blank lines and tests do not count. A crate from a registry has no sources of its
//! siblings beside it; there the version stands for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What a simulation consists of.
const CRATES: [&str; 8] =
    ["tcp-core", "cc-algos", "ack-policy", "sched", "registry", "observe", "netsim", "lab"];
/// Folders and files of these that only draw and write, or have a hash of their own.
const OUTPUT: [&str; 5] =
    ["lab/src/figures", "lab/src/run_plots.rs", "lab/src/report", "lab/src/league", "observe/src/capture"];

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = own.join("..");
    let mut generated = String::new();
    let engine = engine(&crates).unwrap_or_else(|| format!("version {}", env!("CARGO_PKG_VERSION")));
    let _ = writeln!(
        generated,
        "/// Hash of the sources that decide what a run gives; a version if they do not lie beside.\npub const ENGINE: &str = {engine:?};"
    );
    let _ = writeln!(
        generated,
        "/// The commit of which this program was built, with `+` if files differ from it; `None`\n/// outside a checkout.\npub const COMMIT: Option<&str> = {:?};",
        commit(&crates)
    );
    let _ = writeln!(generated, "const FILES: &[(&str, &str)] = &[");
    let studies = own.join("src/studies");
    println!("cargo::rerun-if-changed={}", studies.display());
    for file in files(&studies) {
        let name = file.strip_prefix(&studies).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        if name.ends_with(".rs") {
            let _ = writeln!(generated, "    ({name:?}, {:?}),", hash(&code(&file)));
        }
    }
    generated.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("sources.rs");
    fs::write(out, generated).expect("cargo's folder can be written to");
}

/// The hash of the crates and their dependencies; `None` if they do not lie beside this one.
fn engine(crates: &Path) -> Option<String> {
    let lock = fs::read_to_string(crates.join("../Cargo.lock")).ok()?;
    println!("cargo::rerun-if-changed={}", crates.join("../Cargo.lock").display());
    let mut all = dependencies(&lock);
    for name in CRATES {
        let folder = crates.join(name).join("src");
        if !folder.is_dir() {
            return None;
        }
        println!("cargo::rerun-if-changed={}", folder.display());
        for file in files(&folder) {
            if OUTPUT.iter().any(|folder| file.starts_with(crates.join(folder))) {
                continue;
            }
            let path = file.strip_prefix(crates).unwrap_or(&file).to_string_lossy().into_owned();
            let _ = writeln!(all, "{path} {}", hash(&code(&file)));
        }
    }
    Some(hash(all.as_bytes()))
}

/// The packages that the crates depend on, as the lock file has them.
fn dependencies(lock: &str) -> String {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "));
        packages.entry(name.unwrap_or_default().trim_matches('"')).or_default().push(package);
    }
    let mut wanted: Vec<String> = CRATES.iter().map(|name| format!("ackline-{name}")).collect();
    let mut seen = BTreeSet::new();
    let mut all = String::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        // Two versions of one package are both taken: which of them is meant makes no difference
        // here.
        for package in packages.get(name.as_str()).into_iter().flatten() {
            let versions =
                package.lines().filter(|line| line.starts_with("version") || line.starts_with("checksum"));
            let _ = writeln!(all, "{name} {}", versions.collect::<Vec<_>>().join(" "));
            let entries = package.lines().filter_map(|line| line.strip_prefix(" \""));
            wanted.extend(entries.filter_map(|line| line.split([' ', '"']).next()).map(str::to_owned));
        }
    }
    all
}

/// All files of a folder that are not tests, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// A file without its tests, comment lines and blank lines.
fn code(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).unwrap_or_default();
    if file.extension().is_none_or(|ending| ending != "rs") {
        return bytes;
    }
    let text = String::from_utf8_lossy(&bytes);
    let (before, tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
    let after = tests.split_once("\n}\n").map_or("", |(_, after)| after);
    let lines = before.lines().chain(after.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}

fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", twox_hash::XxHash3_128::oneshot(bytes))
}

/// The commit that the sources are of, with a `+` if they differ from it; `None` outside of a
/// repository.
fn commit(crates: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(crates).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A package may lie in somebody else's repository.
    git(&["ls-files", "--error-unmatch", "papers/build.rs"])?;
    // Grows with each commit.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={}", crates.join(log).display());
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let differs = git(&["status", "--porcelain", "--untracked-files=no", "--", "."])?;
    Some(if differs.is_empty() { commit } else { commit + "+" })
}
