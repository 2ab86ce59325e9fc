//! Network namespaces that exist as long as the process, and the right to make them.

use ackline_runtime::Error;
use ackline_runtime::netns::{Namespace, enter_user_net_namespace};

/// How something ended that can go wrong in many ways.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Makes the calling thread able to make namespaces, if it may: as root it is, an ordinary user
/// needs a user namespace around them. To be called while the process has one thread.
pub(crate) fn gain_rights() -> Outcome<()> {
    match Namespace::new_for_thread() {
        Err(Error::NamespaceForbidden) => Ok(enter_user_net_namespace()?),
        other => Ok(other.map(drop)?),
    }
}

pub(crate) fn namespace() -> Outcome<Namespace> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(Namespace::new_for_thread);
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    })
}
