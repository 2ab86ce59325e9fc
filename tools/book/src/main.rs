//! Builds the documentation book from the pages in docs/, and checks what those pages claim: every
//! link has a target, every quoted file and every quoted output is what it says. `.ci/book` runs
//! it.
//!
//! ```text
//! ackline-book [--write] ACKLINE REPORTS
//! ackline-book commands ACKLINE TARGET [PAGE]     runs the commands that the pages show; as root
//!
//! ACKLINE   the program whose output pages quote
//! REPORTS   folder with NAME/report.html for each <!-- report: NAME --> of a page
//! --write   correct the quoted code and output in the pages
//! TARGET    cargo's target folder
//! PAGE      a part of PATH:LINE: only these blocks
//! ```

mod book;
mod built;
mod commands;
mod links;
mod names;
mod pages;
mod quotes;

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ackline-book: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let root = std::env::current_dir()?;
    if let [command, ackline, target, page @ ..] = &args[..]
        && command == "commands"
    {
        let (ackline, target) = (absolute(ackline)?, absolute(target)?);
        let page = page.first().map(String::as_str);
        return commands::run(&root, &ackline, &target, &pages::read(&root)?, page);
    }
    let write = args.first().is_some_and(|arg| arg == "--write");
    if write {
        args.remove(0);
    }
    let [ackline, reports] = &args[..] else {
        bail!(
            "usage: ackline-book [--write] ACKLINE REPORTS, or ackline-book commands ACKLINE TARGET [PAGE]"
        );
    };
    let (ackline, reports) = (absolute(ackline)?, absolute(reports)?);

    let mut pages = pages::read(&root)?;
    let mut problems = quotes::check(&root, &ackline, &mut pages, write)?;
    problems.extend(links::check(&root, &pages));
    problems.extend(pages::not_in_summary(&pages));
    problems.extend(names::check(&root, &ackline, &pages)?);
    stop_at(&problems)?;

    let out = book::build(&root, &reports)?;
    stop_at(&built::check(&out)?)?;
    println!("{}: {} pages checked", out.join("index.html").display(), pages.len());
    Ok(())
}

fn absolute(path: &str) -> Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| Path::new(path).display().to_string())
}

fn stop_at(problems: &[String]) -> Result<()> {
    for problem in problems {
        eprintln!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => bail!("1 problem"),
        more => bail!("{more} problems"),
    }
}
