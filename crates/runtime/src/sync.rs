//! What the shards of a stack share is made of these. `tests/models` compiles the same code with
//! shuttle's in their place, to try many schedules of the threads.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
