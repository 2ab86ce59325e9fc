//! Runs the whole library of scenarios and writes its tables, `docs/scenarios/NAME.md`:
//!
//! ```text
//! cargo run --release -p ackline-lab --example library [-- NAME...]
//! ```

use ackline_lab::{EXAMPLES, RunOptions, Scenario, run, table_of};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios");
    std::fs::create_dir_all(&folder)?;
    for example in
        EXAMPLES.iter().filter(|example| wanted.is_empty() || wanted.iter().any(|name| name == example.name))
    {
        let scenario = Scenario::parse(example.text, &format!("scenarios/{}.toml", example.name))?;
        eprintln!("{}", example.name);
        let report = run(&scenario, &RunOptions { progress: true, ..RunOptions::default() })?;
        std::fs::write(folder.join(format!("{}.md", example.name)), table_of(&scenario, &report.summary))?;
    }
    Ok(())
}
