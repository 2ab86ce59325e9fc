//! `ackline new`: a crate with one policy, to start from.

use crate::args::{NewArgs, NewKind};
use crate::failure::{Exit, Failure};
use crate::output;
use ackline::Registry;
use ackline::core::policy::spec::PolicyKind;
use std::path::{Path, PathBuf};
use std::{fs, io};

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
const MANIFEST: &str = include_str!("../../templates/Cargo.toml.txt");
const README: &str = include_str!("../../templates/README.md.txt");
const MAIN: &str = include_str!("../../templates/main.rs");

impl NewKind {
    const fn policy(self) -> PolicyKind {
        match self {
            Self::Cc => PolicyKind::Cc,
            Self::Ack => PolicyKind::Ack,
            Self::Rto => PolicyKind::Rto,
            Self::Sched => PolicyKind::Sched,
        }
    }

    const fn template(self) -> &'static str {
        match self {
            Self::Cc => include_str!("../../templates/cc.rs"),
            Self::Ack => include_str!("../../templates/ack.rs"),
            Self::Rto => include_str!("../../templates/rto.rs"),
            Self::Sched => include_str!("../../templates/sched.rs"),
        }
    }
}

pub(crate) fn run(args: &NewArgs, registry: &Registry) -> Result<(), Failure> {
    let name = args.name.as_str();
    check_name(name)?;
    let kind = args.kind.policy();
    if let Some(taken) = registry.list(kind).iter().find(|policy| policy.is_called(name)) {
        return Err(Failure::usage(format!(
            "{name:?} is taken: {kind} ({}: {}); choose another one",
            taken.name, taken.summary
        )));
    }
    let here =
        std::env::current_dir().map_err(|error| Failure::file("find", "the current folder", &error))?;
    let checkout = match &args.path {
        Some(path) => Some(checkout_at(path)?),
        None => here.ancestors().find(|folder| is_checkout(folder)).map(Path::to_owned),
    };
    let fill = |text: &str| {
        text.replace("{{league}}", league(args.kind))
            .replace("{{name}}", name)
            .replace("{{kind}}", &kind.to_string())
            .replace("{{keyword}}", kind.keyword())
            .replace("{{ackline}}", &dependency(checkout.as_deref(), ""))
            .replace("{{ackline-cli}}", &dependency(checkout.as_deref(), "crates/cli"))
    };
    let files = [
        ("Cargo.toml", fill(MANIFEST)),
        (".gitignore", "/target\n".to_owned()),
        ("README.md", fill(README)),
        ("src/main.rs", fill(MAIN)),
        ("src/policy.rs", fill(args.kind.template())),
    ];
    let folder = here.join(name);
    write(&folder, &files)?;
    output::say(&format!(
        "wrote {name}/: the policy is src/policy.rs\n  cd {name}\n  cargo test\n  cargo run -- list {keyword}\n  cargo run --release -- demo --{keyword} {name}",
        keyword = kind.keyword()
    ));
    if checkout.is_none() {
        output::say(&format!("it depends on {REPOSITORY}; --path DIR makes it depend on a checkout"));
    }
    Ok(())
}

/// Congestion controls have a league.
const fn league(kind: NewKind) -> &'static str {
    match kind {
        NewKind::Cc => {
            "cargo run --release -- evaluate {{name}} --quick    # beside Reno and CUBIC: throughput, delay, fairness, harm\n"
        }
        NewKind::Ack | NewKind::Rto | NewKind::Sched => "",
    }
}

/// Words of Rust (The Rust Reference, "Keywords"), with those that are reserved. None can be the
/// name of a crate.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Crates that the new one depends on or that come with Rust, and folders that Cargo makes beside a
/// program: a crate with such a name does not compile.
const TAKEN: [&str; 11] = [
    "ackline",
    "ackline-cli",
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "std",
    "test",
];

/// A name that policy, crate and folder can have.
fn check_name(name: &str) -> Result<(), Failure> {
    if KEYWORDS.contains(&name) {
        return Err(Failure::usage(format!(
            "{name:?} is a keyword of Rust and cannot be the name of a crate; choose another one, such as my-{name}"
        )));
    }
    if TAKEN.contains(&name) {
        return Err(Failure::usage(format!(
            "{name:?} is the name of another crate or of a folder of Cargo's; choose another one, such as my-{name}"
        )));
    }
    let mut letters = name.chars();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if letters.next().is_some_and(|c| c.is_ascii_lowercase()) && letters.all(fits) && !name.ends_with('-') {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name:?} is no name for a policy and its crate: use lower-case letters, digits and -, beginning with a letter"
    )))
}

/// Where `ackline` and `ackline-cli` come from: a checkout, or the repository. No registry has
/// them.
fn dependency(checkout: Option<&Path>, inside: &str) -> String {
    match checkout {
        Some(folder) => format!("path = {:?}", folder.join(inside).to_string_lossy().trim_end_matches('/')),
        None => format!("git = {REPOSITORY:?}"),
    }
}

fn is_checkout(folder: &Path) -> bool {
    let manifest = |path: &str| fs::read_to_string(folder.join(path)).unwrap_or_default();
    manifest("Cargo.toml").contains("name = \"ackline\"\n")
        && manifest("crates/cli/Cargo.toml").contains("name = \"ackline-cli\"\n")
}

fn checkout_at(path: &Path) -> Result<PathBuf, Failure> {
    let folder = fs::canonicalize(path).map_err(|error| Failure::file("read", path.display(), &error))?;
    if is_checkout(&folder) {
        return Ok(folder);
    }
    Err(Failure::usage(format!(
        "--path {}: no checkout of ackline; name the folder that has crates/cli",
        path.display()
    )))
}

/// Writes all files or none. What exists is not touched.
fn write(folder: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let failed = |error: &io::Error| Failure::file("write", folder.display(), error);
    if folder.exists() {
        return Err(Failure::new(Exit::File, format!("{} exists already", folder.display())));
    }
    let mut beside = folder.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::create_dir(&beside).and_then(|()| fs::create_dir(beside.join("src"))).and_then(|()| {
        files.iter().try_for_each(|(name, text)| fs::write(beside.join(name), text))?;
        fs::rename(&beside, folder)
    });
    written.map_err(|error| {
        // Nothing half-written stays; what cannot be removed either is of this process alone.
        let _ = fs::remove_dir_all(&beside);
        failed(&error)
    })
}
