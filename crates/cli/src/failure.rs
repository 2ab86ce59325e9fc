//! Why a command did not succeed: one line for people, one exit status for scripts.

use ackline::runtime::Error as SetupError;
use std::fmt::{self, Display};
use std::io;

/// The exit statuses, as `--help` and `docs/cli.md` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Data differs, or a transfer was not completed.
    Incomplete,
    /// The command line asks for something that cannot be.
    Usage,
    /// No device: rights, no such interface, a name or address in use, gone.
    Device,
    /// The peer cannot be reached, or ended the connection early.
    Network,
    /// A file cannot be read or written.
    File,
    /// Ended by a signal.
    Signal(u8),
    /// Of the program that the command ran, which has said itself what was wrong.
    Program(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Incomplete => 1,
            Self::Usage => 2,
            Self::Device => 3,
            Self::Network => 4,
            Self::File => 5,
            // The convention of shells.
            Self::Signal(number) => 128u8.saturating_add(number),
            Self::Program(code) => code,
        }
    }

    /// The word for it in JSON.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Usage => "usage",
            Self::Device => "device",
            Self::Network => "network",
            Self::File => "file",
            Self::Signal(_) => "signal",
            Self::Program(_) => "program",
        }
    }
}

/// Why a command did not succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// The program that the command ran did not succeed.
    pub(crate) fn of_program(code: u8) -> Self {
        Self::new(Exit::Program(code), format!("the program ended with status {code}"))
    }

    /// The same, with the option that it is about in front.
    pub(crate) fn behind(self, option: &str) -> Self {
        Self { message: format!("{option}: {}", self.message), ..self }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// An error of reading or writing `what`, in the words of the operating system.
    pub(crate) fn file(action: &str, what: impl Display, error: &io::Error) -> Self {
        Self::new(Exit::File, format!("cannot {action} {what}: {}", plain(error)))
    }

    /// A service of the operating system that every process needs was refused.
    pub(crate) fn system(action: &str, error: &io::Error) -> Self {
        Self::new(Exit::Device, format!("cannot {action}: {}", plain(error)))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever the parts of the message hold.
        f.write_str(&self.message.replace('\n', " "))
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::System { action, source } => Self::system(action, &source),
            other => Self::new(Exit::Device, other.to_string()),
        }
    }
}

/// The text of an I/O error without the number that `std` appends.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(at) => {
            let mut words = text[..at].to_owned();
            // The C library begins its sentences with a capital; here they follow a colon.
            if let Some(first) = words.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            words
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_errors_lose_number_and_capital() {
        let error = io::Error::from_raw_os_error(28);
        assert_eq!(plain(&error), "no space left on device");
        assert_eq!(plain(&io::Error::other("Strange (things)")), "Strange (things)");
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(Failure::usage("a\nb").to_string(), "a b");
    }
}
