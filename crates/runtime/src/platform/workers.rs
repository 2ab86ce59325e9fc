//! Which kind of runtime this is.

use tokio::runtime::{Handle, RuntimeFlavor};

/// The calling task runs on a runtime with worker threads.
pub(crate) fn has_workers() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}
