//! Why something failed, in the JSON documents of all commands.

use crate::failure::Failure;
use serde::Serialize;

/// Why a transfer or command failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorReport {
    kind: &'static str,
    exit: u8,
    message: String,
}

impl From<&Failure> for ErrorReport {
    fn from(failure: &Failure) -> Self {
        Self { kind: failure.exit.word(), exit: failure.exit.code(), message: failure.to_string() }
    }
}
