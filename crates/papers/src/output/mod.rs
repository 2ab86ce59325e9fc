//! Output of a repeated study: for a terminal, for programs, and as files.

pub(crate) mod json;
pub(crate) mod store;
pub(crate) mod terminal;
