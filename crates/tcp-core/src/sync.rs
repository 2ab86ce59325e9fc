//! What the endpoints of a host share is made of these. `tests/models` compiles the same code with
//! shuttle's in their place, to try many schedules of the threads.
//!
//! No target needs atomics of 64 bits for it.

pub(crate) use alloc::sync::Arc;
pub(crate) use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicUsize, Ordering};
