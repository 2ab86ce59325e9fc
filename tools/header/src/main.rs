//! `crates/capi/include/ackline.h`, made from the sources of `crates/capi`. Without an argument it
//! is only checked.
//!
//! `.ci/header [--write]`, in the root of the repository.

use std::error::Error;
use std::process::ExitCode;

const CRATE: &str = "crates/capi";
const HEADER: &str = "crates/capi/include/ackline.h";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let write = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--write") => true,
        Some(other) => return Err(format!("{other}: not an argument; --write, or none").into()),
    };
    let config = cbindgen::Config::from_file("tools/header/cbindgen.toml")?;
    let bindings = cbindgen::generate_with_config(CRATE, config)?;
    let mut made = Vec::new();
    bindings.write(&mut made);
    if write {
        std::fs::write(HEADER, made)?;
    } else if std::fs::read(HEADER)? != made {
        eprintln!("{HEADER} is not what {CRATE} says; correct it with .ci/header --write");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
