//! The networks of a command: the machine's interfaces, the device of its own stack, peers, and the
//! namespace of a program that it runs.

pub(crate) mod interfaces;
pub(crate) mod names;
pub(crate) mod peer;
pub(crate) mod program;
pub(crate) mod tunnel;
