//! What a run came to.

use crate::python::Block;
use crate::settings::{Profile, Relaxations};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Everything happened as the script says.
    Passed,
    /// Something did not.
    Failed(Failure),
    /// The script asks for something that the stack, or this runner, does not have.
    Unsupported {
        /// The line, from 1.
        line: u32,
        /// What it asks for.
        reason: String,
    },
    /// It cannot be read.
    Unreadable {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong.
        problem: String,
    },
}

/// Where a script and the stack part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub reason: String,
    /// What was expected, in the script's notation.
    pub expected: Option<String>,
    /// What came, in the script's notation.
    pub got: Option<String>,
    /// The line with up to three before it, each with its number.
    pub context: Vec<(u32, String)>,
    /// The last packets, with their times in seconds.
    pub around: Vec<String>,
    /// What the stack concluded, the latest last, and how its connection stands.
    pub concluded: Vec<String>,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.reason)?;
        for (name, text) in [("expected", &self.expected), ("got     ", &self.got)] {
            if let Some(text) = text {
                writeln!(f, "    {name} {text}")?;
            }
        }
        for (number, text) in &self.context {
            let mark = if *number == self.line { '>' } else { ' ' };
            writeln!(f, "  {mark} {number:>4} | {text}")?;
        }
        for (title, lines) in [("packets:", &self.around), ("the stack:", &self.concluded)] {
            if !lines.is_empty() {
                writeln!(f, "    {title}")?;
                lines.iter().try_for_each(|line| writeln!(f, "      {line}"))?;
            }
        }
        Ok(())
    }
}

/// A packet of the dialogue, for captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialoguePacket {
    /// Nanoseconds since the start of the script.
    pub at_ns: u64,
    /// It came from the stack.
    pub outbound: bool,
    /// The IP packet.
    pub octets: Vec<u8>,
    /// Why the stack sent it; empty for what went in.
    pub comment: &'static str,
}

/// A run, and what remains to be judged of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The result, except for what Python has to say ([`judge`](crate::judge)).
    pub outcome: Outcome,
    /// Defaults that it ran with.
    pub profile: Profile,
    /// In what answers could differ.
    pub relax: Relaxations,
    /// The script's Python, with what was known of the connection.
    pub blocks: Vec<Block>,
    /// The dialogue.
    pub packets: Vec<DialoguePacket>,
}
