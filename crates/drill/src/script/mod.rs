//! A script as it is written: options, shell lines, and events in time.

mod call;
mod cursor;
mod packet;
mod parse;
mod print;

pub use call::{Call, Expr, Field};
pub(crate) use packet::{ACC_ECN_0, ACC_ECN_1, MD5};
pub use packet::{Direction, IcmpLine, IpFields, OptionLine, PacketLine, Payload, TcpLine};
pub use print::flags;

use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A script, parsed.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its text.
    pub text: Arc<str>,
    /// The `--option` lines at its beginning: name without the dashes, and value.
    pub options: Vec<(String, Option<String>)>,
    /// The shell lines before the first event.
    pub init: Option<Shell>,
    /// The events.
    pub events: Vec<Event>,
    /// The shell lines after the last event.
    pub cleanup: Option<Shell>,
}

/// Lines for a shell.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Where they begin.
    pub place: Position,
    /// What stands between the backquotes.
    pub text: String,
}

/// A position in the text, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Something that happens, or is expected, at a time.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where it begins.
    pub place: Position,
    /// When.
    pub when: ScriptTime,
    /// What.
    pub action: Action,
}

/// A time of a script, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptTime {
    /// Since the start of the script.
    At(u64),
    /// Since the moment at which the event before finished.
    After(u64),
    /// At any time.
    Any,
    /// From the first to the second time since the start.
    Between(u64, u64),
    /// From the first to the second time since the event before finished.
    BetweenAfter(u64, u64),
}

/// What happens at an event.
#[derive(Clone, Debug)]
pub enum Action {
    /// A packet goes into the stack, or is expected from it.
    Packet(PacketLine),
    /// A system call. One with an end blocks until then; in the units and from the origin of the
    /// event's time.
    Call {
        /// The call.
        call: Call,
        /// When it returns, in microseconds.
        until: Option<u64>,
    },
    /// Lines for a shell.
    Shell(Shell),
    /// Lines of Python about `tcp_info`.
    Python(String),
}

/// What is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct ScriptError {
    /// Where.
    pub place: Position,
    /// What, and what would be right.
    pub problem: String,
    /// It is written correctly, but asks for something that this runner does not have.
    pub unsupported: bool,
}

impl ScriptError {
    pub(crate) fn new(place: Position, problem: impl Into<String>) -> Self {
        Self { place, problem: problem.into(), unsupported: false }
    }

    pub(crate) fn unsupported(place: Position, problem: impl Into<String>) -> Self {
        Self { unsupported: true, ..Self::new(place, problem) }
    }
}

impl Script {
    /// Parses the text of a script. `defines` replace words, as `-D NAME=VALUE` does.
    ///
    /// # Errors
    /// The first place that cannot be read.
    pub fn parse(text: &str, defines: &[(String, String)]) -> Result<Self, ScriptError> {
        parse::script(text, defines)
    }

    /// The shell lines among the events that come before anything else.
    pub(crate) fn first_shells(&self) -> impl Iterator<Item = &Shell> {
        self.events.iter().map_while(|event| match &event.action {
            Action::Shell(shell) => Some(shell),
            _ => None,
        })
    }
}
