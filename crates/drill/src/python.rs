//! The Python of scripts, in one interpreter for all of them: a program for each script, whose
//! blocks share their variables.

use crate::info;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// One `%{ }%`: what is known of the connection, and what the script says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The line of the script.
    pub line: u32,
    /// Assignments of `tcp_info`'s fields at that time.
    pub known: String,
    /// The script's lines.
    pub code: String,
}

/// What went wrong in a block.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Complaint {
    pub(crate) line: u32,
    pub(crate) problem: String,
    /// It asks for a field of `tcp_info` that this stack does not have.
    pub(crate) unsupported: bool,
}

/// Runs the programs that come in as JSON and says for each what went wrong first.
const HARNESS: &str = r#"
import json, sys, textwrap
sent = json.load(sys.stdin)
answers = []
sys.stdout, real = sys.stderr, sys.stdout
for blocks in sent["programs"]:
    names, answer = {}, None
    exec(sent["constants"], names)
    for block in blocks:
        try:
            exec(block["known"], names)
            exec(compile(textwrap.dedent(block["code"]).strip(), "script", "exec"), names)
        except BaseException as error:
            text = "%s: %s" % (type(error).__name__, error) if str(error) else type(error).__name__
            unknown = isinstance(error, NameError) and str(getattr(error, "name", "")).startswith("tcpi_")
            answer = {"line": block["line"], "problem": text, "unsupported": unknown}
            break
    answers.append(answer)
json.dump(answers, real)
"#;

/// What is wrong with each of `programs`; `None` for what is right.
///
/// # Errors
/// If there is no `python3`, or it does not answer.
pub(crate) fn check(programs: &[&[Block]]) -> Result<Vec<Option<Complaint>>, String> {
    if programs.is_empty() {
        return Ok(vec![]);
    }
    let mut child = Command::new("python3")
        .args(["-I", "-S", "-c", HARNESS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("python3 cannot be run: {error}"))?;
    let input = serde_json::json!({ "programs": programs, "constants": info::CONSTANTS }).to_string();
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(|error| format!("python3: {error}"))?;
    }
    let output = child.wait_with_output().map_err(|error| format!("python3: {error}"))?;
    let answers: Vec<Option<Complaint>> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("python3: {error}"))?;
    if answers.len() == programs.len() { Ok(answers) } else { Err("python3 gave up".to_owned()) }
}
