//! What users and programs see of a stack.

mod observing;
mod printing;
mod spans;
